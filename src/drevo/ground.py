"""Ground that is no plane: height grids and functions z(x, y), with their normals."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from .codegen.graph.node import Expr
from .codegen.graph.program import Parameter
from .compiler.tracer import TracedFunction, Tracer
from .constraint.functions import call_traced
from .errors import InputError, shown
from .io.given import Array, asked_all, finite, number, numbers
from .mechanics.jet import Jet, jet
from .mechanics.scalar import Scalar, clip, sqrt, where
from .mechanics.spatial import Vec

__all__ = ["function", "grid"]

Height = Callable[[Scalar, Scalar], Scalar]
Deciding = tuple[tuple[str, float], ...]  # geoms by name, with the friction that each of them has
GROUND = "ground"  # among the parameters of a step: all of the ground's
MOST_NODES = 1024  # of a grid in compiled code, which holds every height


class Uneven:
    """Ground z(x, y) in the world, m; what is below it is solid. `digest` tells it from others in keys of code.

    friction: the coefficient at (x, y), in place of that of what touches, where it is not None. parameters:
    numbers by name that steps may take by sample.
    """

    digest: str
    friction: Height | None = None
    parameters: Mapping[str, Scalar] = {}

    @contextmanager
    def traced(self, t: Tracer, wanted: Sequence[str]) -> Iterator[None]:
        """While a tracer makes a program, parameters are symbols of it, if "ground" is wanted."""
        usual = self.parameters
        if GROUND in wanted:
            if not usual:
                raise InputError(
                    "the ground has no parameters: a grid and drevo.ground.function(z, parameters={..}) have"
                )
            symbols = {name: t.graph.parameter(f"{GROUND}.{name}") for name in usual}
            for name, x in symbols.items():
                told = f"{GROUND}.{name}"
                t.symbols.made[told] = Parameter(told, x.edge >> 1, float(usual[name]))
            self.parameters = symbols
        try:
            yield
        finally:
            self.parameters = usual

    def surface(self, x: Scalar, y: Scalar) -> tuple[Scalar, Vec]:
        """The height and the unit normal, upward."""
        z, along, across = self.slopes(x, y)
        over = 1.0 / sqrt(along * along + across * across + 1.0)
        return z, Vec(-along * over, -across * over, over)

    def slopes(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The height and what the normal is made of: its slopes along x and y."""
        raise NotImplementedError


LEVEL = Uneven()  # where there is none that is not


class FunctionGround:
    """Ground by a function over scalars, and friction by another: every step that is compiled traces them anew."""

    def __init__(
        self, height: Callable[..., Scalar], friction: Height | None = None, parameters: Mapping[str, float] = {}
    ) -> None:
        self.height, self.friction, self.parameters = height, friction, parameters
        seen = self.traced()
        try:
            here, mu = seen.slopes(0.0, 0.0), seen.friction(0.0, 0.0) if seen.friction else 0.0
        except ZeroDivisionError as error:
            raise InputError(f"the ground z(x, y) fails: {error}") from None
        if not np.isfinite(here).all():
            raise InputError(f"the ground z(x, y) is {here[0]} at the origin; give a height that is finite")
        if not 0.0 <= mu < np.inf:
            raise InputError(
                f"the ground's friction(x, y) is {mu} at the origin; a coefficient is a number from 0"
            )

    def traced(self) -> TracedGround:
        """The ground as its functions are now."""
        surface, sliding = Tracer("ground"), Tracer("ground_friction")
        x, y = surface.input("place", 2)
        given = dict(zip(self.parameters, surface.input("parameters", len(self.parameters))))

        def trace() -> None:
            z = jet(self.height(Jet(x, 1.0), Jet(y), **given))
            surface.output("slopes", [z.x, z.d, jet(self.height(Jet(x), Jet(y, 1.0), **given)).d])
            if self.friction:
                sliding.output("friction", [self.friction(*sliding.input("place", 2))])

        call_traced("the ground z(x, y)", trace)
        mu = TracedFunction(sliding.program()) if self.friction else None
        return TracedGround(TracedFunction(surface.program()), mu, self.parameters)


class TracedGround(Uneven):
    """Ground by the traces of a function, with its own slopes, and of its friction."""

    def __init__(
        self, surface: TracedFunction, friction: TracedFunction | None, parameters: Mapping[str, float]
    ) -> None:
        self.trace, self.parameters = surface, parameters
        if friction is not None:
            self.friction = partial(_friction_at, friction)
        parts = surface.digest, friction and friction.digest, list(parameters.items())
        self.digest = hashlib.sha256(repr(parts).encode()).hexdigest()

    def slopes(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        ((z, along, across),) = self.trace([x, y], list(self.parameters.values()))
        return z, along, across


def _friction_at(trace: TracedFunction, x: Scalar, y: Scalar) -> Scalar:
    """The coefficient of friction of a traced ground at a place."""
    return trace([x, y])[0][0]


class GridGround(Uneven):
    """Heights at the nodes of a grid, bilinear between them; slopes too, so that normals have no edges.

    Beyond its border it goes on as the border is. Heights are its parameters, "ground.I.J" of node (i, j).
    """

    def __init__(self, heights: Array, spacing: tuple[float, float], origin: tuple[float, float]) -> None:
        self.heights, self.spacing, self.origin = heights, spacing, origin
        self.parameters = {f"{i}.{j}": x for (i, j), x in np.ndenumerate(heights)}
        self.tables = self._tables(heights)
        self.digest = hashlib.sha256(
            heights.tobytes() + repr((heights.shape, spacing, origin)).encode()
        ).hexdigest()

    def _tables(self, heights: Array) -> list[Array]:
        """Tables of the heights, numbers or symbols, and of their slopes along both axes."""
        return [heights, *(_slopes_along(heights, step, k) for k, step in enumerate(self.spacing))]

    def slopes(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """In compiled code by choices among all nodes, of which there may not be many."""
        last = [size - 1.0 for size in self.heights.shape]
        u = clip((x - self.origin[0]) * (1.0 / self.spacing[0]), 0.0, last[0])
        w = clip((y - self.origin[1]) * (1.0 / self.spacing[1]), 0.0, last[1])
        if not any(isinstance(at, Expr) for at in (u, w)):
            i, j = (int(min(at, end - 1.0)) for at, end in zip((u, w), last))
            z, along, across = (self._between(table[i : i + 2, j : j + 2], u - i, w - j) for table in self.tables)
            return z, along, across
        if self.heights.size > MOST_NODES:
            raise InputError(
                f"a height grid of {self.heights.size} nodes is beyond {MOST_NODES}, the most that is compiled; "
                "give a coarser one, or a function"
            )
        tables, own = self.tables, list(self.parameters.values())
        if isinstance(own[0], Expr):
            heights = np.empty(len(own), object)
            heights[:] = own
            tables = self._tables(heights.reshape(self.heights.shape))
        z, along, across = (self._chosen(table, u, w) for table in tables)
        return z, along, across

    @staticmethod
    def _between(corners: Array, u: Scalar, w: Scalar) -> Scalar:
        (a, b), (c, d) = corners.tolist()
        return (a + (b - a) * w) * (1.0 - u) + (c + (d - c) * w) * u

    def _chosen(self, table: Array, u: Scalar, w: Scalar) -> Scalar:
        """The rows interpolated along w, then their column along u."""
        rows = [_piecewise(row.tolist(), w) for row in table]
        return _piecewise(rows, u)


def _slopes_along(heights: Array, step: float, axis: int) -> Array:
    """By central differences, at the border by the last two nodes."""
    z = np.moveaxis(heights, axis, 0)
    ends = [(z[k + 1 : k + 2] - z[k : k + 1]) * (1.0 / step) for k in (0, len(z) - 2)]
    found = np.concatenate([ends[0], (z[2:] - z[:-2]) * (0.5 / step), ends[1]])
    return np.moveaxis(found, 0, axis)


def _piecewise(values: list[Scalar], u: Scalar) -> Scalar:
    """Linear between values at 0, 1, 2, ..; u within them."""
    pieces = [a + (b - a) * (u - float(k)) for k, (a, b) in enumerate(pairwise(values))]
    first = 0
    while len(pieces) > 1:  # neighbours in pairs: as deep as the logarithm of their number
        width = 1 << first
        joined = [
            where(u < float((2 * k + 1) * width), pieces[2 * k], pieces[2 * k + 1])
            for k in range(len(pieces) // 2)
        ]
        pieces = joined + pieces[2 * len(joined) :]
        first += 1
    return pieces[0]


def function(
    height: Callable[..., Scalar], friction: Height | None = None, parameters: Mapping[str, float] | None = None
) -> FunctionGround:
    """Ground z(x, y), m: a function over scalars, of + - * / and `drevo.sin`, `drevo.where` and their like.

    parameters: numbers that the height takes by name, z(x, y, slope=..), which a step compiled with
    parameters="ground" takes by sample.
    friction: under the exact law, the coefficient at (x, y), such a function too, in place of what the robot and
    `friction=` of a step say. InputError where one fails, is not finite at the origin, or friction is negative
    there.
    """
    if not callable(height):
        raise InputError(f"the ground is a function z(x, y), not {shown(height)}")
    if friction is not None and not callable(friction):
        raise InputError(f"the ground's friction is a function of (x, y), not {shown(friction)}")
    told = {name: number(f"the ground's {name}", x, "a number") for name, x in (parameters or {}).items()}
    return FunctionGround(height, friction, told)


def grid(
    heights: ArrayLike, spacing: float | tuple[float, float], origin: tuple[float, float] | None = None
) -> GridGround:
    """Ground by heights (along x, along y), m, at nodes so far apart, m; the grid is about the world's origin.

    origin: x, y of its first node instead. InputError for heights that are not finite or fewer than 2 x 2, and a
    spacing that is not positive.
    """
    found = numbers("the heights of a grid", heights).copy()
    if found.ndim != 2 or min(found.shape) < 2:
        raise InputError(f"the heights of a grid have the shape {found.shape}; give at least 2 x 2 nodes")
    if not np.isfinite(found).all():
        i, j = np.argwhere(~np.isfinite(found))[0]
        raise InputError(f"the height at node ({i}, {j}) of the grid is {found[i, j]}; heights are finite")
    step = numbers("the spacing of a height grid", spacing)
    if step.shape not in ((), (2,)) or not ((step > 0.0) & np.isfinite(step)).all():
        raise InputError(f"the spacing of a height grid is {shown(spacing)}; it is positive, one number or two, m")
    dx, dy = np.broadcast_to(step, 2).tolist()
    if not np.isfinite(4.0 * float(np.abs(found).max()) / min(dx, dy)):
        raise InputError(f"slopes of a grid of spacing {shown(spacing)} are beyond the largest number; scale it")
    middle = -0.5 * dx * (found.shape[0] - 1), -0.5 * dy * (found.shape[1] - 1)
    first = finite("the origin of a height grid", middle if origin is None else origin, (2,), InputError)
    return GridGround(found, (dx, dy), (float(first[0]), float(first[1])))


def ground_of(given: object) -> Uneven | str | None:
    """The ground that was given: None, "plane", or one that is not even, a function as it is now."""
    if isinstance(given, FunctionGround):
        return given.traced()
    if given is None or isinstance(given, Uneven):
        return given
    if isinstance(given, str) and given == "plane":
        return given
    raise InputError(
        f"the ground is 'plane', drevo.ground.grid(..) or drevo.ground.function(..), not {shown(given)}"
    )


asked_all(__name__)
