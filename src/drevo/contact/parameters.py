"""The numbers of contact that stay symbols in a step: friction of sliding, sizes of geoms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ..codegen.graph.program import Parameter
from ..compiler.tracer import Tracer, names_parameter
from ..errors import InputError
from ..ground import GROUND, Deciding
from ..mechanics.scalar import Scalar, Vector, maximum, sqrt, where
from ..model.contact import DRAGGED, Geom
from ..model.description import Model
from ..model.draft import shorten

FRICTION = "friction"  # the name of a parameter: of sliding, at all places with any; of a geom "friction.GEOM"
SIZE = "size"  # of size K of a geom "size.GEOM.K"
LARGEST_PARAMETER = 3e38  # of single precision the largest numbers


class Frictions:
    """The friction of sliding as parameters of a program in the making: of all places together, or by geom.

    Where places take that of geoms, it is the larger one, as it is of numbers.
    """

    def __init__(self, t: Tracer, wanted: Sequence[str], places: Iterable[tuple[Scalar, Deciding]]) -> None:
        """places: of each its friction, and the geoms that decide it."""
        known = [(mu, by) for mu, by in places if not (isinstance(mu, float) and mu == 0.0)]
        asked = [x for x in wanted if is_friction(x)]
        geoms = {f"{FRICTION}.{name}": mu for _, by in known for name, mu in by}
        self.made: dict[str, Scalar] = {}
        for pattern in asked:
            usual = {FRICTION: known[0][0]} if pattern == FRICTION and known else {}
            names = usual or {x: mu for x, mu in geoms.items() if fnmatchcase(x, pattern)}
            if not names or (FRICTION in asked and len(asked) > 1):
                raise InputError(
                    f"step: {pattern!r} names no friction that could be a parameter: it is {FRICTION!r} alone, of "
                    f"all places, or of some of {', '.join(sorted(geoms)) or 'no geoms: no place has any'}"
                )
            for name, mu in names.items():
                self.made[name] = t.graph.parameter(name)
                t.symbols.made[name] = Parameter(name, self.made[name].edge >> 1, float(mu))

    def of(self, mu: Scalar, by: Deciding) -> Scalar:
        """The friction of a place which has mu: a parameter where asked for (the larger of two geoms), else mu."""
        if isinstance(mu, float) and mu == 0.0:
            return mu
        if not any(f"{FRICTION}.{name}" in self.made for name, _ in by):
            return self.made.get(FRICTION, mu)
        first, *more = (self.made.get(f"{FRICTION}.{name}", least) for name, least in by)
        return maximum(first, more[0]) if more else first


def with_sizes(model: Model, t: Tracer, wanted: Sequence[str]) -> tuple[Model, list[Scalar]]:
    """The model whose geoms have symbols of a program in the making for the sizes that are asked for; these."""
    asked = [x for x in wanted if is_size(x)]
    usual = {
        f"{SIZE}.{x.name}.{k}": size
        for x in model.geoms
        if x.kind in DRAGGED and not x.fluid
        for k, size in enumerate(x.size)
        if size > 0.0
    }
    for pattern in asked:
        if not any(names_parameter(pattern, name) for name in usual):
            raise InputError(
                f"step: {pattern!r} names no size that could be a parameter: these are, as a geom has them and no "
                "medium drags it, 'size.GEOM.0' and so on, of spheres, capsules, cylinders, boxes and ellipsoids, "
                f"here {shorten(list(usual)) or 'none'}"
            )
    symbols: dict[str, Scalar] = {}
    for name, size in usual.items():
        if any(names_parameter(pattern, name) for pattern in asked):
            symbols[name] = x = t.graph.parameter(name)
            t.symbols.made[name] = Parameter(name, x.edge >> 1, size)

    def with_symbols(geom: Geom) -> Geom:
        size = tuple(symbols.get(f"{SIZE}.{geom.name}.{k}", x) for k, x in enumerate(geom.size))
        return geom if size == geom.size else replace(geom, size=size)

    return replace(model, geoms=tuple(map(with_symbols, model.geoms))), list(symbols.values())


def is_friction(parameter: str) -> bool:
    """True if a name or pattern is of friction, not of a number of the model."""
    return parameter == FRICTION or parameter.startswith(f"{FRICTION}.")


def is_size(parameter: str) -> bool:
    """True if a name or pattern is of sizes of geoms."""
    return parameter == SIZE or parameter.startswith(f"{SIZE}.")


def numbers_of_model(parameters: Sequence[str]) -> list[str]:
    """Those that are numbers of the model's bodies and joints."""
    return [x for x in parameters if x != GROUND and not is_friction(x) and not is_size(x)]


def judged(coefficients: Iterable[Scalar], values: Vector, sizes: Iterable[Scalar] = ()) -> Vector:
    """The values; NaN, for which programs have no constant, so that the call is refused, where a friction is below
    zero, a size is not above it, or one is not finite."""
    fits = [(mu >= 0.0) & (mu < LARGEST_PARAMETER) for mu in coefficients]
    fits += [(x > 0.0) & (x < LARGEST_PARAMETER) for x in sizes]
    good: Scalar = 1.0
    for x in fits:
        good = where(x, good, -1.0)
    return [x * sqrt(good) for x in values]
