"""Functions of a robot whose calls are known again: where only the arrays are new, straight into compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from operator import is_
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ..codegen.runtime.memo import memoised
from ..codegen.runtime.recall import KnownCalls, Recalled
from ..errors import DrevoError
from ..io.asked import asked
from .constraint import KINDS
from .prepared import PreparedSet

_MADE: dict[str, Recalled] = {}
F = TypeVar("F", bound=Callable[..., Any])
Found = TypeVar("Found")
P = ParamSpec("P")


def recalled(
    arrays: int, alike: tuple[str, ...], kind: type, told: tuple[str, ...], found: tuple[str, ...]
) -> Callable[[F], F]:
    """Of a function: what `Recalled` says. Arguments that do not fit its signature are an InputError."""

    def wrapped(function: F) -> F:
        name, judged = function.__name__, asked(function)
        _MADE[name] = Recalled(function, arrays, alike, kind, told, found)

        @wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            try:
                entry = args[0]._made[name, "recalled"].method
            except (AttributeError, IndexError, KeyError):
                return judged(*args, **given)
            return entry(*args[1:], **given)

        return cast(F, call)

    return wrapped


def known_calls(robot: Any, name: str) -> KnownCalls:
    """Those of a function."""
    return memoised(robot, (name, "recalled"), lambda: KnownCalls(_MADE[name], robot))


def as_method(robot: Any, function: Callable[Concatenate[Any, P], Found]) -> Callable[P, Found]:
    """A function as the attribute of a robot."""
    name = function.__name__
    method: Callable[P, Found] = known_calls(robot, name).method
    robot.__dict__[name] = method
    return method


def called(
    name: str,
    given: PreparedSet,
    arrays: tuple[Any, ...],
    kernels: Sequence[Callable[..., Any]],
    behind: Sequence[Any],
    asked: tuple[Any, ...] | None,
    told: tuple[Any, ...],
) -> Any:
    """What kernels find for arrays as they come, one from the results of the other; None where they refuse, which
    is said elsewhere. A call with a set that comes again is remembered, where it is told what was asked for: the
    next one is known."""
    first, *others = kernels
    try:
        found = first(*arrays, *behind)
        for f in others:
            found = f(*found, arrays[-1], *behind)
    except (ValueError, DrevoError):
        return None
    if given.again and asked is not None:
        with suppress(TypeError):  # something that was asked may change unseen
            known_calls(given.robot, name).remember(copy_of(asked), asked, told, kernels, behind)
    return found


def copy_of(x: Any) -> Any:
    """A copy that nobody else can change; TypeError for what may change unseen."""
    if x is None or isinstance(x, (str, int, float, *KINDS)):
        return x
    if type(x) in (tuple, list):
        copies = [copy_of(y) for y in x]
        same = type(x) is tuple and all(map(is_, copies, x))
        return x if same else type(x)(copies)
    if type(x) is dict:
        return {k: copy_of(y) for k, y in x.items()}
    raise TypeError(type(x))
