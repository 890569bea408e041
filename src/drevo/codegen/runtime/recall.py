"""A method of a robot whose calls are known again, see `llvm_recall`: its entry, and what is remembered."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import is_
from types import BuiltinFunctionType, SimpleNamespace
from typing import Any, NamedTuple

from ...errors import DrevoError
from ...io.asked import asked
from ..emit.llvm_recall import MORE, Recall, recall_text
from ..emit.objects import KEPT, RECALLED, ObjectLayout
from . import native, selftest
from .build import Spec
from .key import key
from .memo import persisted

_POINTER = 8  # bytes


class Recalled(NamedTuple):
    """function: of a robot and `arrays` arrays, then of what is asked, where arguments in `alike` need only be
    equal to those of a call before; kind: what it gives; told, found: its members that are known and that kernels
    find."""

    function: Callable[..., Any]
    arrays: int
    alike: tuple[str, ...]
    kind: type
    told: tuple[str, ...]
    found: tuple[str, ...]


class KnownCalls:
    """Of a robot. `entry`: a builtin, or None where there are none; `method`: the same, or the function itself."""

    def __init__(self, how: Recalled, robot: Any) -> None:
        self.how, self.robot = how, robot
        self.entry: Callable[..., Any] | None = None
        self.method: Callable[..., Any] = asked(partial(how.function, robot), how.function.__name__)
        self.calls: list[tuple[Any, ...]] = []  # what was asked, and all that is remembered
        layout = native.layout()
        if layout is not None and layout.base == 16 and selftest.wanted() == "native":
            self._enter(layout)

    def _enter(self, layout: ObjectLayout) -> None:
        _, *parameters = inspect.signature(self.how.function).parameters.values()
        names, how = [p.name for p in parameters], self.how
        told, found = (tuple(_offset(how.kind, x) for x in members) for members in (how.told, how.found))
        alike = tuple(map(names.index, how.alike))
        self.alike = [k - how.arrays for k in alike]
        code = native.Loaded(_object(Recall(len(names), how.arrays, alike, told, found), layout))
        kept = [self.method, (ValueError, DrevoError), how.kind, list, None]
        others = [native.address_of(x) for x in RECALLED[len(kept) :]]
        behind = [*map(sys.intern, names), *(p.default for p in parameters[how.arrays :])]
        words = [*map(id, kept), *others, *map(id, behind), *[0] * KEPT]
        self.table = code.fill(words)
        name, usage = how.function.__name__, ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)
        doc = f"{name}({usage})\n--\n\n{inspect.getdoc(how.function)}"
        self.method = self.entry = native.callable_of(code, self, name, doc, *kept, *behind)

    @property
    def fast(self) -> Callable[..., Any] | None:
        """By which a pickled entry is found again."""
        return self.entry

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.how.function  # it stands in its module under a wrapper
        return _opened, (getattr(sys.modules[own.__module__], own.__name__), self.robot)

    def remember(
        self,
        asked: tuple[Any, ...],
        given: tuple[Any, ...],
        told: tuple[Any, ...],
        kernels: Sequence[Any],
        behind: Sequence[Any],
    ) -> None:
        """A call. asked: beside the arrays, a copy of what was given; told: members; kernels: one, or two; behind:
        what these are given behind the arrays. Without builtins there is nothing to remember."""
        builtins = self.entry is not None and all(type(k) is BuiltinFunctionType for k in kernels)
        if not builtins or len(behind) > MORE - 3:
            return
        shapes = [fixed_members(given[k], asked[k]) for k in self.alike]
        now = *asked, *shapes, *told, *kernels, *[None] * (2 - len(kernels)), *behind
        others = [x for x in self.calls if not equal(x[0], asked)]
        before, self.calls = self.calls, [(asked, now), *others[: KEPT - 1]]
        for k, (_, x) in enumerate(self.calls):
            self.table[len(self.table) - KEPT + k] = id(x)
        del before  # which the table no longer names


@lru_cache
def _object(how: Recall, layout: ObjectLayout) -> bytes:
    """The same for all robots."""
    text = recall_text(how, layout)
    return persisted(key(text, Spec()), True, lambda: native.compile_text(text))


def _opened(function: Callable[..., Any], robot: Any) -> SimpleNamespace:
    """What a pickled entry is the `fast` of."""
    return SimpleNamespace(fast=partial(function, robot))


def fixed_members(given: Any, copy: Any) -> tuple[Any, ...] | None:
    """Of a list of dictionaries whose values cannot change: each with its entries, see `_Recall.unchanged`."""
    if type(given) is not list or not all(type(x) is dict for x in given):
        return None
    if not all(all(map(is_, x.values(), y.values())) for x, y in zip(given, copy)):
        return None
    return tuple(part for x in given for part in (x, tuple(chain(*x.items()))))


def equal(mine: Any, given: Any) -> bool:
    """Whether they are certain to be."""
    try:
        return bool(mine == given)
    except ValueError:  # arrays have no single answer
        return False


def _offset(kind: Any, member: str) -> int:
    """Where a member stands in objects of a kind: found in one of them."""
    made, mark = kind.__new__(kind), object()
    getattr(kind, member).__set__(made, mark)
    words = (ctypes.c_int64 * (kind.__basicsize__ // _POINTER)).from_address(id(made))
    return _POINTER * list(words).index(id(mark))
