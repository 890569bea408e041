"""The problem of a step under the exact law, out of a Model: what may touch, and the rows of its joints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ....compiler.tracer import Tracer
from ....errors import InputError, one_of, warn_caller
from ....ground import LEVEL, Deciding, Height, Uneven, ground_of
from ....io.given import number, seconds
from ....mechanics.acting import offsets_of
from ....mechanics.algorithms.delassus import ContactSlot, JointBounds, MoreauStep
from ....model.contact import Geom, Sensor
from ....model.description import Model
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import is_sized, searched_places
from ...pairs import ContactCandidate, HeldGeom, contact_candidates, with_ground

MOST_PLACES = 24  # of contacts: each is coupled with every other one


@dataclass(frozen=True)
class TouchingRobot:
    """A robot and its possible contacts, for which a step under the exact law is made.

    checked: joints whose bounds are looked at in the end, and have no rows. parameters: patterns of numbers of the
    model that stay symbols; "friction" is that of all slots with any."""

    model: Model
    slots: tuple[ContactSlot, ...]
    joints: tuple[JointBounds, ...]
    stepping: MoreauStep
    checked: tuple[JointBounds, ...] = ()
    parameters: tuple[str, ...] = ()
    floor: Uneven = LEVEL
    searched: tuple[SearchedSlots, ...] = ()
    whole: bool = True  # whether all pairs that are searched for are among them
    places: tuple[ContactCandidate, ...] = ()  # of the slots
    controls: bool = False  # of the actuators, in the place of efforts
    sensors: tuple[Sensor, ...] = ()  # that are read

    def sized(self, geoms: Mapping[str, Geom]) -> TouchingRobot:
        """The problem with other sizes of its geoms; the reach of pairs that are searched for stays."""
        places = [x.sized(geoms) for x in self.places]
        slots = tuple(slot._replace(touch=x.touch) for slot, x in zip(self.slots, places))
        searched = tuple(x._replace(solids=places[x.first].solids) for x in self.searched)
        for a, b in (x.solids for x in searched):
            if a.geom.kind == "hfield" and is_sized(b.geom):
                raise InputError(
                    f"step: the size of {b.geom.name!r}, which may touch the height field {a.geom.name!r}, is no "
                    "parameter under law='coulomb'; take law='soft', or leave that size out"
                )
        return replace(self, slots=slots, searched=searched)


class SearchedSlots(NamedTuple):
    """Slots, from `first` on, whose places are searched for between two solids, up to `reach` apart, m."""

    first: int
    solids: tuple[HeldGeom, HeldGeom]
    reach: float

    @property
    def most(self) -> int:
        return searched_places(*(x.geom for x in self.solids))


def exact_robot(
    model: Model, dt: float, ground: object, friction: float | None = None, restitution: float = 0.0,
    touching: Sequence[str] | None = None, searched: bool = False,
) -> TouchingRobot:  # fmt: skip
    """The TouchingRobot for which a step of `dt` seconds is made. friction: in place of that of the geoms.
    searched: with pairs whose places are searched for, where the places are not too many then.
    touching: the links or geoms that may touch, where not all may."""
    if model.closed:
        raise InputError(
            f"robot {model.name!r} has loops or couplings, which law='coulomb' does not know; take them out, "
            "or simulate with constraints and without ground"
        )
    mu = None if friction is None else number("friction", friction, "a number from 0", lambda x: 0.0 <= x < 1e6)
    bounce = number("restitution", restitution, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    stepping = MoreauStep(seconds("dt", dt), bounce)
    floor = ground_of(ground)
    every = contact_candidates(model, floor, searched)
    within = _named(model, every, touching)
    whole = len(within) <= MOST_PLACES
    places = within if whole else _few(model, [x for x in within if not x.searched], touching)
    slots = [ContactSlot(x.bodies, x.touch, _friction(x, mu), _deciding(x, mu)) for x in places]
    standing = with_ground(model, floor)
    uneven = floor if isinstance(floor, Uneven) else LEVEL
    pairs = tuple(
        SearchedSlots(k, x.solids, min(geom.radius for geom in x.geoms))
        for k, x in enumerate(places)
        if x.searched and not x.place
    )
    return TouchingRobot(
        standing, tuple(slots), joint_rows(model), stepping, floor=uneven, searched=pairs,
        whole=whole or not any(x.searched for x in every), places=tuple(places),
    )  # fmt: skip


def _named(
    model: Model, found: Sequence[ContactCandidate], touching: Sequence[str] | None
) -> Sequence[ContactCandidate]:
    """Those of the links or geoms that are named."""
    if touching is not None:
        known = {name for x in found for geom in x.geoms for name in (geom.name, geom.link)}
        wanted = {
            one_of("touching", name, sorted(known) or ["nothing that touches"], InputError) for name in touching
        }
        found = [x for x in found if any(wanted & {geom.name, geom.link} for geom in x.geoms)]
    return found


def _few(
    model: Model, found: Sequence[ContactCandidate], touching: Sequence[str] | None
) -> Sequence[ContactCandidate]:
    """All, or where they are too many the spheres, as feet mostly are, with a warning."""
    if len(found) <= MOST_PLACES:
        return found
    balls = [x for x in found if x.geoms[1].kind == "sphere"] if touching is None else []
    what = (
        f"robot {model.name!r} has {len(found)} places of contact, and law='coulomb' couples {MOST_PLACES} at most"
    )
    if not 0 < len(balls) <= MOST_PLACES:
        raise InputError(f"{what}: name the links that matter, touching=[..], or take law='soft'")
    links = ", ".join(dict.fromkeys(x.geoms[1].link for x in balls))
    warn_caller(f"{what}: only the spheres of {links} touch; name others by touching=[..]")
    return balls


def _friction(x: ContactCandidate, given: float | None) -> float | Height:
    own = x.interaction
    if own.condim > 1 and x.ground and x.ground.friction:
        return x.ground.friction
    return 0.0 if own.condim == 1 else own.friction[0] if given is None else given


def _deciding(x: ContactCandidate, given: float | None) -> Deciding:
    by = x.interaction.by
    return by if given is None else tuple((name, given) for name, _ in by)


def joint_rows(model: Model, limits: bool = True) -> tuple[JointBounds, ...]:
    """Limits of joints of one coordinate each and of balls, and dry friction, of a mimic joint as its driver feels
    it.

    What the model's own steps leave out is left out.
    """
    offsets, out, off = offsets_of(model), dict[int, JointBounds](), model.stepping.disabled
    limits = limits and "limit" not in off
    for j in model.joints:
        (iq, iv), d, ratio = offsets[j.name], j.dynamics, abs(j.mimic.multiplier) if j.mimic else 1.0
        low, high = -math.inf, math.inf
        if limits and j.limit and not j.mimic and not j.turns and not j.formula:
            low = -math.inf if j.limit.lower is None else j.limit.lower
            high = math.inf if j.limit.upper is None else j.limit.upper
        eta = ratio * d.friction if d and "frictionloss" not in off else 0.0
        for k in range(j.sizes[1]):
            along = (iv, iq, k) if j.kind == "free" and k < 3 else (iv + k, iq + k, None)
            new = JointBounds(*along[:2], -math.inf, math.inf, 0.0, axis=along[2])
            before = out.get(iv + k, new)
            out[iv + k] = before._replace(
                lower=max(low, before.lower), upper=min(high, before.upper), friction=before.friction + eta
            )
    balls = [
        JointBounds(offsets[x.joint][1], offsets[x.joint][0], -math.inf, x.limit_angle, 0.0, True)
        for x in model.softness
        if limits and x.limit_angle is not None
    ]
    found = (*out.values(), *balls)
    return tuple(x for x in found if x.friction or x.lower > -math.inf or x.upper < math.inf)


def found_slots(t: Tracer, robot: TouchingRobot) -> list[ContactSlot]:
    """The slots of a robot, with what has been searched for of their places as inputs."""
    slots, count = list(robot.slots), sum(pair.most for pair in robot.searched)
    given = iter(t.input("places", PLACE_NUMBERS * count) if count else [])
    for pair in robot.searched:
        for k in range(pair.first, pair.first + pair.most):
            place = [next(given) for _ in range(PLACE_NUMBERS)]
            slots[k] = slots[k]._replace(touch=partial(slots[k].touch, place=place))
    return slots
