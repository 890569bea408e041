"""Checks of arguments, given by place and by name, for a whole function: missing, twice, unknown or too many."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar, cast

from ..errors import InputError, nearest, shown

Asked = TypeVar("Asked", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def asked(function: Asked, name: str = "") -> Asked:
    """The function; arguments that do not fit its signature are an InputError in place of Python's TypeError.

    name: what its caller knows it by, if not by its own."""
    told = name or function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it comes from within
                raise
            raise InputError(_misfit(told, function, args, given)) from None

    return cast(Asked, call)


def asked_methods(owner: Class, but: Sequence[str] = ()) -> Class:
    """A class whose public methods, and what makes it, are all so; it costs a call 0.25 us."""
    for name, value in list(vars(owner).items()):
        if name in but or (name.startswith("_") and name != "__init__"):
            continue
        if isinstance(value, FunctionType):
            setattr(owner, name, asked(value))
        elif isinstance(value, (classmethod, staticmethod)):
            setattr(owner, name, type(value)(asked(value.__func__)))
    return owner


def asked_all(module: str) -> None:
    """Applies `asked` to all that a public module names in `__all__` and has of its own; where it is defined too,
    as pickle finds it there."""
    here = sys.modules[module]
    for name in here.__all__:
        value = getattr(here, name)
        home = sys.modules.get(getattr(value, "__module__", ""))
        if home is None or not f"{home.__name__}.".startswith(f"{module}."):
            continue
        if isinstance(value, type):
            asked_methods(value)
        elif isinstance(value, FunctionType):
            for place in (here, home):
                setattr(place, name, asked(value))


def _misfit(name: str, function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]) -> str:
    """The error message that tells what is wrong with the arguments."""
    every = inspect.signature(function).parameters.values()
    own = [p for p in every if p.name not in ("self", "cls")]
    args = args[len(every) - len(own) :]
    placed = [p.name for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in own if p.kind is p.KEYWORD_ONLY]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in own)
    usage = f"{name}({', '.join([*placed, *(f'{n}=' for n in named), *['...'] * open_ended])})"
    if len(args) > len(placed) and not any(p.kind is p.VAR_POSITIONAL for p in own):
        more = "; what else it takes goes by name" if named or open_ended else ""
        return f"{usage} takes {len(placed)} by place, {len(args)} are given{more}"
    if twice := [n for n in placed[: len(args)] if n in given]:
        return f"{usage} was given {twice[0]!r} twice, by place and by name"
    if not open_ended and (unknown := [n for n in given if n not in (*placed, *named)]):
        near = nearest(unknown[0], [*placed, *named])
        return f"{usage} takes no argument {shown(unknown[0])}" + (f"; did you mean {near!r}?" if near else "")
    free = [p.name for p in own if p.default is p.empty and p.name in (*placed[len(args) :], *named)]
    return f"{usage} is missing {', '.join(repr(n) for n in free if n not in given)}"
