"""Limits of differential inverse kinematics: bounds of every rate, and rows for what must not touch.

Bounds are reconciled, never contradictory: those of the configuration and of braking give way to those of the
acceleration, and these to those of the velocity. From outside its limits a robot so comes back as fast as it may.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..contact.distances import AUTO, chosen_pairs
from ..contact.pairs import ContactCandidate, held_geom, interaction_of, with_ground
from ..errors import InputError, warn_caller
from ..io.given import Array, number, numbers
from ..mechanics.algorithms.colliders import places
from ..mechanics.scalar import Scalar, Vector, clip, maximum, minimum, sqrt, where
from ..mechanics.tree import build_tree
from ..model.description import Model
from ..model.draft import shorten
from ..model.pairing import TOUCHING_PAIRS, as_ruled
from .kinds import Posed

NO_WEIGHT = 0.0, 0.0  # of a place whose force is not asked for
ROUNDING_SHARE = 1e-9  # of the change of a rate in a step: less is no overrun
Bound = Scalar | None  # None where there is none
Bounds = list[tuple[Bound, Bound]]  # of every rate, rad/s or m/s: lower and upper


class RateRanges(NamedTuple):
    """Limits of every rate's own coordinate (nv,), infinite where it has none, and of the rates."""

    lower: Array
    upper: Array
    speed: Array

    @staticmethod
    def of(robot: Any) -> RateRanges:
        """Those of a robot; limits of mimic joints are limits of the joints that they follow."""
        model: Model = robot.model
        lower, upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        low, high = robot.lower, robot.upper
        for sq, sv in plain_parts(model):
            lower[sv], upper[sv] = low[sq], high[sq]
        place = {j.name: sv.start for j, _, sv in model.slices()}
        for joint in model.joints:
            if joint.mimic and joint.limit and joint.mimic.joint in place and joint.mimic.multiplier:
                ends = [(x - joint.mimic.offset) / joint.mimic.multiplier for x in _ends(joint.limit)]
                at = place[joint.mimic.joint]
                lower[at], upper[at] = max(lower[at], min(ends)), min(upper[at], max(ends))
        return RateRanges(lower, upper, np.array(robot.max_velocity))


def _ends(limit: Any) -> tuple[float, float]:
    return (-math.inf if limit.lower is None else limit.lower, math.inf if limit.upper is None else limit.upper)


def plain_parts(model: Model) -> list[tuple[slice, slice]]:
    """Coordinates and rates of the joints whose coordinates are numbers, no quaternions."""
    return [(sq, sv) for j, sq, sv in model.slices() if j.nq == j.nv]


@dataclass(frozen=True)
class ConfigurationLimit:
    """Keeps coordinates within the limits of the file. gain: the share of what is left that one step may take.

    margin: how far from the limits they stay, rad or m.
    """

    gain: float = 0.95
    margin: float = 0.0

    def __post_init__(self) -> None:
        number("ConfigurationLimit: gain", self.gain, "a number above 0, up to 1", lambda x: 0.0 < x <= 1.0)
        number("ConfigurationLimit: margin", self.margin)


@dataclass(frozen=True)
class VelocityLimit:
    """Bounds speeds. speeds: a number, (nv,), or by joint name, rad/s or m/s; by default those of the file.

    Of a floating base they are those of its body axes: linear, then angular.
    """

    speeds: Any = None


@dataclass(frozen=True)
class AccelerationLimit:
    """Bounds accelerations from step to step, and speeds by the way that is left to brake in, so that limits of
    the configuration are never met faster than they can be kept. accelerations: a number, (nv,), or by joint name.
    A robot that begins too near to a limit to brake passes it: `IkStep.overrun` says so.
    """

    accelerations: Any


@dataclass(frozen=True)
class CollisionLimit:
    """Keeps geoms of the file apart. pairs: "auto", or names [(geom or link, geom or link), ...], as of
    robot.distance.

    distance: m that they keep. gain: the share of what is left that one step may take.
    """

    pairs: Any = AUTO
    distance: float = 0.005
    gain: float = 0.85

    def __post_init__(self) -> None:
        number("CollisionLimit: distance", self.distance)
        number("CollisionLimit: gain", self.gain, "a number above 0, up to 1", lambda x: 0.0 < x <= 1.0)

    def chosen(self, robot: Any) -> CollisionLimit:
        """The limit with its pairs by name of geoms, those that `robot.distance(q, pairs)` has.

        A DrevoWarning names pairs without a closed form, which are not kept apart; InputError where all are so.
        """
        geoms = {x.name: x for x in with_ground(robot.model, None).geoms}
        pairs = chosen_pairs(robot, self.pairs)
        ruled = [tuple(x.kind for x in as_ruled(geoms[a], geoms[b])) in TOUCHING_PAIRS for a, b in pairs]
        lost = [f"{a!r} and {b!r}" for (a, b), fine in zip(pairs, ruled) if not fine]
        if lost and (self.pairs == AUTO or any(ruled)):
            warn_caller(f"CollisionLimit of robot {robot.name!r}: {_unruled(lost)}")
        elif lost:
            raise InputError(f"CollisionLimit: {_unruled(lost)}")
        return replace(self, pairs=tuple(pair for pair, fine in zip(pairs, ruled) if fine))

    def places(self, model: Model) -> tuple[ContactCandidate, ...]:
        """The places where its geoms, chosen by name, may touch."""
        model, out = with_ground(model, None), []
        tree, geoms = build_tree(model), {x.name: x for x in model.geoms}
        for a, b in (as_ruled(geoms[a], geoms[b]) for a, b in self.pairs):
            ends = held_geom(tree, a), held_geom(tree, b)
            rest = (ends[0].body, ends[1].body), interaction_of(a, b), NO_WEIGHT, ends
            out += [ContactCandidate((a, b), k, *rest) for k in range(places((a.kind, b.kind), len(b.points)))]
        return tuple(out)


def _unruled(pairs: Sequence[str]) -> str:
    return (
        f"these are not kept apart, for their distance has no closed form: {shorten(pairs)}; "
        "put spheres, capsules or hulls in their place"
    )


StackLimit = ConfigurationLimit | VelocityLimit | AccelerationLimit | CollisionLimit


def by_rate(name: str, given: Any, model: Model, usual: ArrayLike = np.inf) -> Array:
    """A number for each rate, above 0, from one, from (nv,), or by joint name; `usual` where none is given."""
    if isinstance(given, Mapping):
        out = np.broadcast_to(np.asarray(usual, float), (model.nv,)).copy()
        place = {j.name: sv for j, _, sv in model.slices()}
        for joint, x in given.items():
            if joint not in place:
                raise InputError(f"{name}: no joint {joint!r}; joints are {', '.join(place)}")
            out[place[joint]] = numbers(f"{name}: {joint}", x)
    else:
        x = numbers(name, given)
        if x.shape not in ((), (model.nv,)):
            raise InputError(f"{name} has shape {x.shape}; give a number, ({model.nv},), or numbers by joint name")
        out = np.broadcast_to(x, (model.nv,)).copy()
    if not (out >= 0.0).all():
        raise InputError(f"{name} must be 0 or more, the least is {np.nanmin(out):g}")
    return out


@dataclass(frozen=True)
class RateLimits:
    """The limits of a stack as numbers: ranges of coordinates with their gain, speeds, accelerations.

    braking: whether speeds are bounded by the way that is left.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    gain: float
    speed: tuple[float, ...]
    acceleration: tuple[float, ...]
    braking: bool

    @staticmethod
    def of(robot: Any, limits: Sequence[StackLimit]) -> RateLimits:
        """The limits of a robot; each kind of limit at most once."""
        model, ranges = robot.model, RateRanges.of(robot)
        free = np.full(model.nv, np.inf)
        kinds = {type(x): x for x in limits}
        configuration: Any = kinds.get(ConfigurationLimit)
        speed: Any = kinds.get(VelocityLimit)
        more: Any = kinds.get(AccelerationLimit)
        margin = configuration.margin if configuration else 0.0
        bounded = configuration is not None or more is not None
        lower, upper = (ranges.lower + margin, ranges.upper - margin) if bounded else (-free, free)
        speeds, accelerations = free, free
        if speed is not None:
            given = ranges.speed if speed.speeds is None else speed.speeds
            speeds = by_rate("VelocityLimit: speeds", given, model, ranges.speed)
        if more is not None:
            accelerations = by_rate("AccelerationLimit: accelerations", more.accelerations, model)
        rows = (tuple(map(float, x)) for x in (lower, upper, speeds, accelerations))
        low, high, fast, strong = rows
        return RateLimits(low, high, configuration.gain if configuration else 1.0, fast, strong, more is not None)

    def bounds(self, at: Posed, before: Vector) -> Bounds:
        """Bounds of every rate at a configuration; before: the rates of the last step."""
        place = {sv.start + k: sq.start + k for sq, sv in plain_parts(at.model) for k in range(sv.stop - sv.start)}
        return [self._bounds(k, at.q[place[k]] if k in place else 0.0, at.dt, before) for k in range(at.model.nv)]

    def overruns(self, at: Posed, before: Vector) -> list[Scalar]:
        """By how much every rate must be faster than a limit of its coordinate allows, as it brakes no harder."""
        place = {sv.start + k: sq.start + k for sq, sv in plain_parts(at.model) for k in range(sv.stop - sv.start)}
        out: list[Scalar] = [0.0] * at.model.nv
        for k, a in enumerate(self.acceleration):
            for limit, sign in ((self.upper[k], 1.0), (self.lower[k], -1.0)):
                if a < math.inf and math.isfinite(limit):
                    allowed = self._approach(sign * (limit - at.q[place[k]]), a, at.dt)
                    least = sign * before[k] - a * at.dt * (1.0 + ROUNDING_SHARE)
                    out[k] = maximum(out[k], least - allowed)
        return out

    def _bounds(self, k: int, q: Scalar, dt: float, before: Vector) -> tuple[Bound, Bound]:
        a, v = self.acceleration[k], self.speed[k]
        low = None if self.lower[k] == -math.inf else -self._approach(q - self.lower[k], a, dt)
        high = None if self.upper[k] == math.inf else self._approach(self.upper[k] - q, a, dt)
        if a < math.inf:
            least, most = before[k] - a * dt, before[k] + a * dt
            low = least if low is None else clip(low, least, most)
            high = most if high is None else clip(high, least, most)
        if v < math.inf:
            low, high = (end if x is None else clip(x, -v, v) for x, end in ((low, -v), (high, v)))
        return low, high

    def _approach(self, left: Scalar, a: float, dt: float) -> Scalar:
        """The greatest speed towards a limit that is so far: in one step, and to brake before it."""
        return _least(left * (self.gain / dt), braking_speed(left, a, dt) if a < math.inf else None)


def _least(x: Scalar, y: Bound) -> Scalar:
    """The smaller of a number and a bound, which may be none."""
    return x if y is None else minimum(x, y)


def braking_speed(left: Scalar, a: float, dt: float) -> Scalar:
    """The greatest speed v from which a joint that slows down by a dt each step stops within a way.

    The way is v^2 / (2 a) + v dt / 2 + a dt^2 / 8 at most, whatever the share of the last step; below a dt^2,
    where one step is enough, it is v dt. The bound holds again after every step that keeps it: it never chatters.
    """
    long = maximum(left, a * dt * dt)
    speed = sqrt(2.0 * a * (long - a * dt * dt / 8.0) + (a * dt / 2.0) ** 2) - a * dt / 2.0
    return where(left > a * dt * dt, speed, left * (1.0 / dt))
