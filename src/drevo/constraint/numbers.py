"""The numbers of a set of constraints: points, normals, offsets, ratios, places. Compiled code takes them as
arguments, so that sets which differ in numbers only share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import count, repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..mechanics.algorithms.constraints import orientation
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.tree import build_tree
from ..model.description import Model
from .kinds import Constraint, Contact
from .values import ContactFields

Array = np.ndarray[Any, Any]
KEPT_ORIENTATIONS = 8  # orientations that are kept


class Numbered(NamedTuple):
    """A set taken apart. signature: all but the numbers, as something to look up by."""

    signature: tuple[Any, ...]
    numbers: list[Scalar]

    @staticmethod
    def of(constraints: Iterable[Constraint | ContactFields]) -> Numbered:
        numbers: list[Scalar] = []
        signature = []
        for c in constraints:
            if type(c) is tuple and c[3] is None and c[4] is None:  # a contact, nearly always so: as below
                signature.append((Contact, (c[0], c[2]), 3, None, None))
                numbers += c[1]
                continue
            cls: Any = type(c)
            kind, plain, numeric = _parts(cls)
            shape = [kind, plain(c)]
            for x in numeric(c):
                if x is None:
                    shape.append(None)
                elif type(x) is tuple and x and type(x[0]) is float:  # nearly always so
                    shape.append(len(x))
                    numbers += x
                else:
                    shape.append(_taken(x, numbers))
            signature.append(tuple(shape))
        return Numbered(tuple(signature), numbers)


@lru_cache
def _parts(kind: Any) -> tuple[type, Callable[[Any], Any], Callable[[Any], Any]]:
    """A kind of constraint, and what gives its fields that are no numbers, and those that are."""
    cls = Contact if kind is tuple else kind
    names = [f.name for f in fields(cls)]
    plain, numeric = [n for n in names if n not in cls.numeric], cls.numeric
    if kind is tuple:
        return cls, itemgetter(*map(names.index, plain)), itemgetter(*map(names.index, numeric))
    if len(numeric) > 1:  # of one name attrgetter gives no tuple
        return cls, attrgetter(*plain), attrgetter(*numeric)
    return cls, attrgetter(*plain), lambda c: tuple([getattr(c, n) for n in numeric])


def _taken(value: Any, out: list[Scalar]) -> Any:
    """Appends the numbers of a field; its shape."""
    if value is None:
        return None
    if not isinstance(value, tuple):
        out.append(value)
        return -1
    if value and isinstance(value[0], tuple):
        return tuple([_taken(x, out) for x in value])
    out += value
    return len(value)


def with_numbers(constraints: Iterable[Constraint], numbers: Iterable[Scalar]) -> tuple[Constraint, ...]:
    """A copy of the set with other numbers, scalars of any kind, in the order of `Numbered`."""
    rest = iter(numbers)

    def filled(c: Any) -> Any:
        return replace(c, **{name: _filled(getattr(c, name), rest) for name in c.numeric})

    return tuple(map(filled, constraints))


def _filled(value: Any, rest: Iterator[Scalar]) -> Any:
    if isinstance(value, tuple):
        return tuple([_filled(x, rest) for x in value])
    return None if value is None else next(rest)


def pattern_of(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The set with zeros for its numbers: what code is compiled for."""
    return with_numbers(constraints, repeat(0.0))


def places_of(pattern: Sequence[Constraint]) -> dict[str, Array]:
    """The indices of the points (n, 3), normals (n, 3) and offsets (n,) of the first constraints of a set among
    its numbers."""
    points, normals, offsets = list[Any](), list[Any](), list[Any]()
    for c in with_numbers(pattern, count()):
        points += c.points
        normals += c.normals
        offsets += c.offsets
    shaped = {"points": (points, (-1, 3)), "normals": (normals, (-1, 3)), "offsets": (offsets, -1)}
    return {name: np.array(x, int).reshape(shape) for name, (x, shape) in shaped.items()}


# -- what a configuration decides ---------------------------------------------------------------------------


def anchors(constraints: Sequence[Constraint]) -> int:
    """The count of numbers for what is left open: places and orientations of contacts, orientations of welds."""
    return sum(c.open_numbers for c in constraints)


def anchored(constraints: Sequence[Constraint], numbers: Vector) -> tuple[Constraint, ...]:
    """The constraints with these numbers in place of what they leave open; scalars of any kind."""
    rest = iter(numbers)
    return tuple([c.anchored(rest) for c in constraints])


def with_places(constraints: Sequence[Constraint], held: Array) -> tuple[tuple[Constraint, ...], Array]:
    """The set with what it leaves open as numbers, and all its numbers, (..., n): those of `anchored` are held."""
    numbers = np.array(Numbered.of(anchored(constraints, [np.nan] * held.shape[-1])).numbers)
    out = np.array(np.broadcast_to(numbers, (*held.shape[:-1], len(numbers))))
    out[..., np.isnan(numbers)] = held
    return anchored(constraints, [0.0] * held.shape[-1]), out


def settled(
    model: Model, constraints: Sequence[Any], known: dict[Any, Any] | None = None
) -> tuple[Constraint, ...]:
    """The set with traces of its functions, and orientations that welds take from a configuration.

    known: such ones, which are kept.
    """
    kept: dict[Any, Any] = {} if known is None else known

    def turned(c: Constraint) -> Constraint:
        c = c.traced([x.name for x in model.links], model.nq)
        if c.turn is None:
            return c
        R = kept.get(c.turn) or tuple(tuple(map(float, row)) for row in orientation(build_tree(model), *c.turn))
        if len(kept) >= KEPT_ORIENTATIONS:
            kept.clear()
        kept[c.turn] = R
        return c.turned(R)

    return tuple(map(turned, constraints))
