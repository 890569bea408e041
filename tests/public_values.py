"""What people pass in place of what fits, the same numbers in other clothes, and the numbers of a result."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from public_calls import Call, Rng

# -- what else people pass ----------------------------------------------------------------------------------------

_VALUES: tuple[Any, ...] = (
    None, "", "x", "link1", "joint1", b"q", "\ud800", "q" * 2000, True, 0, 1, -1, 2**70, 0.0, -0.0, 1e-320, 1e300,
    -1e9, 2.5, 1j, float("nan"), float("inf"), np.float32(1.0), (), [], {}, set(), [None], ["a"], [[]], {"a": 1},
    {"link1": [1, 2]}, object(), int, print, lambda *x: x[0], range(3), slice(3),
    np.array([]), np.array(None), np.array("a"), np.zeros(0), np.full(3, np.nan), np.zeros((3, 0)), np.eye(3),
    np.eye(4), np.ones(3) * 1j, np.ones(3, int), np.ones(3, "datetime64[s]"),
    np.ma.masked_array(np.ones(3), [1, 0, 0]),
)  # fmt: skip


def of_array(x: np.ndarray, rng: Rng) -> Any:
    """An array that somebody could take for x."""
    spoilt = x.astype(float).copy()
    if spoilt.size:
        spoilt.flat[rng.integers(spoilt.size)] = rng.choice([np.nan, np.inf, 1e200, 1e12, 0.0])
    ways = [
        x.tolist(), x.astype(np.float32), x.astype(complex), x + 1j, x.astype(object), x.astype(str), x[..., :-1],
        np.append(x, 1.0), x[None], x.T, x[..., ::-1], -x, 1e8 * x, 0.0 * x, spoilt, np.asfortranarray(x),
        x.astype(">f8"), x.view(np.recarray) if x.ndim else x, np.broadcast_to(x, (2, *x.shape)), 
        memoryview(x.copy()),
    ]  # fmt: skip
    return ways[rng.integers(len(ways))]


def spoilt(c: Call, rng: Rng) -> Call:
    """The call with one argument, or two, of another kind."""
    args, given = list(c.args), dict(c.given)
    places: list[Any] = [*range(len(args)), *given]
    for _ in range(1 + (rng.random() < 0.2)):
        if not places:
            return c
        at = places[rng.integers(len(places))]
        old = args[at] if isinstance(at, int) else given[at]
        if isinstance(old, np.ndarray) and old.dtype.kind == "f" and rng.random() < 0.7:
            with np.errstate(all="ignore"):
                new = of_array(old, rng)
        else:
            new = _VALUES[rng.integers(len(_VALUES))]
        if isinstance(at, int):
            args[at] = new
        else:
            given[at] = new
    return Call(c.name, c.function, tuple(args), given)


# -- the same in other clothes ------------------------------------------------------------------------------------


class Twins(NamedTuple):
    """A call, and one whose argument is the same numbers as another object."""

    plain: Call
    odd: Call


class Sub(np.ndarray):
    """An array of somebody's own class."""


def fresh(x: Any) -> Any:
    """A generator of random numbers that begins where this one stands; all else as it is."""
    return copy.deepcopy(x) if isinstance(x, np.random.Generator) else x


def dressed(x: Any, rng: Rng) -> tuple[Any, Any] | None:
    """A plain value and the same in other clothes; None for what has none."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim:
        return of_plain(x, rng)
    if isinstance(x, bool):
        return x, np.bool_(x)
    if isinstance(x, int):
        return x, rng.choice([np.int64, np.int32])(x)  # type: ignore[arg-type]
    if isinstance(x, float):
        near = float(np.float32(x))
        return (x, np.float64(x)) if rng.random() < 0.5 else (near, np.float32(near))
    if isinstance(x, str):
        return x, np.str_(x)
    if isinstance(x, (tuple, list)) and x and all(isinstance(y, (int, float)) for y in x):
        return x, [np.array(x), list(x), tuple(np.array(x))][rng.integers(3)]
    return None


def of_plain(x: np.ndarray, rng: Rng) -> tuple[Any, Any]:
    """An array, or one near it, and the same numbers stored in another way."""
    near, whole, several = (
        x.astype(np.float32).astype(float),
        np.round(x),
        np.array(np.broadcast_to(x, (2, *x.shape))),
    )
    fixed, strided, offset = x.copy(), np.empty((*x.shape[:-1], 2 * x.shape[-1])), np.empty(x.nbytes + 1, np.uint8)
    fixed.setflags(write=False)
    strided[..., ::2] = x
    unaligned = offset[1:].view(float).reshape(x.shape)
    unaligned[...] = x
    ways: list[tuple[Any, Any]] = [
        (x, x.tolist()), (x, list(x)), (x, tuple(x)), (near, near.astype(np.float32)), (whole, whole.astype(int)),
        (near, near.astype(np.longdouble)), (whole, whole.astype(np.int8)), (x, x.astype(">f8")),
        (x, np.asfortranarray(x)), (x, memoryview(x.copy())), (x, fixed), 
        (several, np.broadcast_to(x, several.shape[:1] + x.shape)),
        (x, strided[..., ::2]), (x, unaligned), (x, x.view(Sub)), (x, copy.deepcopy(x)),
        (x, x[::-1].copy()[::-1]), (x, np.ma.masked_array(x)), (several, [x, x.tolist()]),
    ]  # fmt: skip
    return ways[rng.integers(len(ways))]


def twins(c: Call, rng: Rng) -> Twins | None:
    """The call with one argument that has twins; None where no argument has."""
    args, given = list(c.args), dict(c.given)
    places: list[Any] = [*range(len(args)), *(k for k in given if k != "out")]  # what is written to is no number
    for at in rng.permutation(np.array(places, object)):
        into: Any = args if isinstance(at, int) else given
        if (pair := dressed(into[at], rng)) is None:
            continue
        both = []
        for x in pair:
            into[at] = x
            both.append(Call(c.name, c.function, tuple(map(fresh, args)), {k: fresh(y) for k, y in given.items()}))
        return Twins(*both)
    return None


# -- what comes back ----------------------------------------------------------------------------------------------


BOUNDS = ("limit", "stiffness")  # inf says that there is none


def parts(x: Any) -> Iterator[Any]:
    """What a result is made of."""
    if isinstance(x, Mapping):
        yield from x.values()
    elif isinstance(x, (tuple, list)):
        yield from x
    elif not isinstance(x, type):
        names = [f.name for f in dataclasses.fields(x)] if dataclasses.is_dataclass(x) else getattr(x, "shown", ())
        yield from (getattr(x, name, None) for name in names if name not in BOUNDS)


def numbers(x: Any, depth: int = 0) -> Iterator[np.ndarray]:
    """The arrays and numbers in a result."""
    if isinstance(x, (float, complex, np.ndarray, np.generic)):
        if np.asarray(x).dtype.kind in "fc":
            yield np.asarray(x)
    elif depth <= 6:
        for part in parts(x):
            yield from numbers(part, depth + 1)


__all__ = ["Twins", "fresh", "numbers", "spoilt", "twins"]
