"""Judges what touches, drives and measures in a description: geoms, pairs, softness, actuators, sensors, steps.

Paths of tendons as straight segments.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from .contact import (
    ACTUATOR_DYNAMICS,
    CONDIMS,
    CONES,
    DRAGGED,
    GEOM_SIZES,
    JOINT_SENSORS,
    LINK_SENSORS,
    MOTOR_INPUTS,
    MUSCLE_NUMBERS,
    PAIR_FRICTION,
    PID_INPUTS,
    SENSOR_SHAPES,
    STEP_INTEGRATORS,
    Actuator,
    ContactPair,
    Geom,
    JointSoftness,
    Sensor,
    Solimp,
    Solref,
)
from .description import Joint, TendonSegment, TendonWrap, Vec3
from .draft import Draft, listed
from .pairing import LEFT_OUT

GRID_SLACK = 1e-9  # of half a side of a height field: nodes that are nearer to their place are there


def check_touching(draft: Draft) -> None:
    """Every fault goes to the problems of the draft; each sentence says what to do."""
    links = {link.name for link in draft.links}
    joints = {joint.name: joint for joint in draft.joints}
    geoms = {geom.name for geom in draft.geoms}
    for kind, things in (("geom", draft.geoms), ("actuator", draft.actuators), ("sensor", draft.sensors)):
        _check_unique(draft, kind, [thing.name for thing in things])
    for geom in draft.geoms:
        _say(draft, f"geom {geom.name!r}", [*_unknown(draft, "link", geom.link, links), *_geom(geom)])
    for pair in draft.pairs:
        missing = [x for name in {pair.geom_a, pair.geom_b} for x in _unknown(draft, "geom", name, geoms)]
        _say(draft, f"the pair of {pair.geom_a!r} and {pair.geom_b!r}", [*missing, *_pair(pair)])
    for soft in draft.softness:
        _say(draft, f"the softness of joint {soft.joint!r}", _joint(draft, soft, joints))
    for actuator in draft.actuators:
        _say(draft, f"actuator {actuator.name!r}", _actuator(draft, actuator, joints))
    for sensor in draft.sensors:
        _say(draft, f"sensor {sensor.name!r}", _sensor(draft, sensor, links, joints))
    _check_stepping(draft)
    draft.notes += [f"{LEFT_OUT}{kind} {listed(labels)}" for kind, labels in draft.left_out.items()]
    for loop in draft.loops:
        _say(
            draft, f"the {loop.kind} loop of {loop.link_a!r} and {loop.link_b!r}", _soft(loop.solref, loop.solimp)
        )
    for tendon in draft.tendons:
        _say(draft, f"tendon {tendon.name!r}", _soft(tendon.friction_solref, tendon.friction_solimp))
        _say(draft, f"tendon {tendon.name!r}", _soft(tendon.limit_solref or (0.0, 0.0), tendon.limit_solimp))
    for tied in draft.tendon_couplings:
        _say(draft, f"the coupling of tendon {tied.tendon!r}", _soft(tied.solref, tied.solimp))
    for coupling in draft.couplings:
        _say(draft, f"the coupling of joint {coupling.joint!r}", _soft(coupling.solref, coupling.solimp))


def _say(draft: Draft, label: str, faults: Iterable[str]) -> None:
    draft.problems += [f"{label} {fault}" for fault in faults]


def _check_unique(draft: Draft, kind: str, names: list[str]) -> None:
    if many := [name for name, count in Counter(names).items() if count > 1]:
        draft.problems.append(
            f"the {kind} name {listed(many)} is given more than once; names must be unique: rename"
        )


def _unknown(draft: Draft, kind: str, name: str, known: Iterable[str]) -> Iterator[str]:
    if name not in set(known):
        noun = draft.noun if kind == "link" else kind
        yield f"names the {noun} {name!r}, which does not exist{draft.meant(name, known)}; correct the name"


def _geom(geom: Geom) -> Iterator[str]:
    count = GEOM_SIZES.get(geom.kind)
    if count is None:
        yield f"has the unknown kind {geom.kind!r}; known are {', '.join(GEOM_SIZES)}"
    elif len(geom.size) != count:
        yield f"is a {geom.kind} with {len(geom.size)} sizes, {count} needed"
    elif any(size < 0.0 for size in geom.size) or (geom.kind != "sphere" and 0.0 in geom.size):
        yield f"has the size {geom.size}; sizes are positive (a sphere of radius 0 is a point): correct it"
    if (geom.kind in ("hull", "hfield")) != bool(geom.points):
        yield "has points and is no hull" if geom.points else f"is a {geom.kind} without points; give it some"
    if geom.kind == "hfield" and geom.points and count == len(geom.size) and not _is_grid(geom):
        yield "has points that are no grid over its sides, row by row; give 2 x 2 or more, all above its base"
    corners = len(geom.points)
    if any(len(face) < 3 or min(face) < 0 or max(face) >= corners for face in geom.faces):
        yield f"has a face of less than 3 points, or of one that is none of its {corners}; correct it"
    yield from _friction(geom.friction)
    if geom.condim not in CONDIMS:
        yield f"has condim {geom.condim}; it is one of 1, 3, 4, 6"
    if geom.solmix < 0.0:
        yield f"has the negative solmix {geom.solmix:g}; it is zero or positive"
    yield from _soft(geom.solref, geom.solimp)
    if len(geom.surface) != 6:
        yield f"has a surface velocity of {len(geom.surface)} numbers; it has 6"
    if geom.fluid and (len(geom.fluid) != 5 or geom.kind not in DRAGGED):
        yield f"has {len(geom.fluid)} numbers of drag in a medium; it has 5, of a {', '.join(DRAGGED)}, or none"
    if min(geom.contype, geom.conaffinity) < 0:
        yield "has a negative contype or conaffinity; they are sets of bits: correct them"


def _is_grid(geom: Geom) -> bool:
    """True if the points of a height field are nodes over its rectangle, row by row, above its base."""
    columns, (x, y, deep) = geom.columns, geom.size
    rows = len(geom.points) // columns
    if min(rows, columns) < 2 or rows * columns != len(geom.points):
        return False
    nodes = ((2 * k / (columns - 1) - 1, 2 * r / (rows - 1) - 1) for r in range(rows) for k in range(columns))
    off = (max(abs(p[0] / x - a), abs(p[1] / y - b)) for p, (a, b) in zip(geom.points, nodes))
    return max(off) < GRID_SLACK and min(p[2] for p in geom.points) > -deep


def _friction(friction: tuple[float, ...]) -> Iterator[str]:
    if min(friction) < 0.0:
        yield f"has the friction {' '.join(f'{x:g}' for x in friction)}; friction is zero or positive: correct it"


def _override(x: tuple[float, ...]) -> Iterator[str]:
    yield from _soft((x[1], x[2]), (x[3], x[4], x[5], x[6], x[7]))
    yield from _friction(x[8:])


def _pair(pair: ContactPair) -> Iterator[str]:
    if pair.condim not in CONDIMS:
        yield f"has condim {pair.condim}; it is one of 1, 3, 4, 6"
    if len(pair.friction) != len(PAIR_FRICTION):
        yield f"has {len(pair.friction)} coefficients of friction; a pair has {len(PAIR_FRICTION)}"
    yield from _friction((*pair.friction, 0.0))
    yield from _soft(pair.solref, pair.solimp)
    yield from _soft(pair.solref_friction, None)


def _joint(draft: Draft, soft: JointSoftness, joints: Mapping[str, Joint]) -> Iterator[str]:
    yield from _unknown(draft, "joint", soft.joint, joints)
    if soft.limit_angle is not None:
        if soft.joint in joints and joints[soft.joint].kind not in ("spherical", "ball"):
            yield "has a limit_angle, which ball joints have; give limits of the coordinate instead"
        if not 0.0 < soft.limit_angle < math.inf:
            yield f"has the limit_angle {soft.limit_angle:g}; it is an angle above 0: correct it"
    yield from _soft(soft.limit_solref, soft.limit_solimp)
    yield from _soft(soft.friction_solref, soft.friction_solimp)


def _soft(solref: Solref, solimp: Solimp | None) -> Iterator[str]:
    if (solref[0] > 0.0) != (solref[1] > 0.0):
        yield f"has solref {solref[0]:g} {solref[1]:g}; both are positive, or both are not: correct it"
    if solimp is not None and not all(map(math.isfinite, solimp)):
        yield "has a solimp that is not finite; correct it"


def _actuator(draft: Draft, actuator: Actuator, joints: Mapping[str, Joint]) -> Iterator[str]:
    driven = joints.get(actuator.joint)
    if actuator.tendon:
        yield from _unknown(draft, "tendon", actuator.tendon, [x.name for x in draft.tendons])
    if actuator.joint or not actuator.tendon:
        yield from _unknown(draft, "joint", actuator.joint, joints)
    if driven and (driven.nq, driven.nv) != (1, 1):
        yield f"acts on joint {driven.name!r}, which does not own just one coordinate; name another"
    if actuator.dynamics not in ACTUATOR_DYNAMICS:
        yield f"has the unknown dynamics {actuator.dynamics!r}; known are {', '.join(ACTUATOR_DYNAMICS)}"
    if actuator.joint and actuator.tendon:
        yield f"acts on joint {actuator.joint!r} and along tendon {actuator.tendon!r}; name one of the two"
    if actuator.muscle and len(actuator.muscle) != MUSCLE_NUMBERS:
        yield f"has {len(actuator.muscle)} numbers of a muscle; a muscle has {MUSCLE_NUMBERS}"
    if actuator.inputs or actuator.motor:
        yield from _setpoints(actuator)
    for signal in ("control", "force", "activation", "velocity", "feedforward"):
        bounds = getattr(actuator, f"{signal}_range")
        if bounds and not bounds[0] < bounds[1]:
            yield f"has the {signal} range {bounds[0]:g} to {bounds[1]:g}, which is none; exchange or widen it"


def _setpoints(actuator: Actuator) -> Iterator[str]:
    known = MOTOR_INPUTS if actuator.motor else PID_INPUTS
    if actuator.inputs != tuple(x for x in known if x in actuator.inputs):
        yield f"has the inputs {' '.join(actuator.inputs)}; some of {', '.join(known)} in this order"
    if m := actuator.motor:
        if min(m.constant, m.resistance) <= 0.0:
            yield f"has the constant {m.constant:g} N m/A and resistance {m.resistance:g} Ohm; both are positive"
        if min(m.time_constant, m.current_rate, m.voltage) < 0.0:
            bounds = f"bounds {m.current_rate:g} A/s and {m.voltage:g} V"
            yield f"has the time constant {m.time_constant:g} s and {bounds}; none is negative, 0 is none"
        if any(heat := (m.thermal_resistance, m.heat_capacity)) and min(heat) <= 0.0:
            yield f"has the thermal resistance {heat[0]:g} K/W and capacity {heat[1]:g} J/K; both are positive"
        rubs = m.bristle_stiffness, m.bristle_damping, m.coulomb, m.static, m.stribeck
        if min(rubs) < 0.0 or (rubs[0] and min(rubs[2:]) <= 0.0):
            yield f"has LuGre's friction {' '.join(f'{x:g}' for x in rubs)}; both forces and the rate are positive"
    if min(actuator.pid) < 0.0:
        yield f"has the negative pid {actuator.pid}; ki and both bounds are zero or positive"
    if max(actuator.pid[0], actuator.pid[2]) > 0.0 and "pos" not in actuator.inputs:
        yield "has ki or a bounded rate and no input pos, which these are of; give it"
    if actuator.gain != (1.0, 0.0, 0.0) or actuator.bias[0] or actuator.dynamics != "none" or actuator.muscle:
        yield "has inputs, with the gain (1, 0, 0), the bias (0, -kp, -kv), no dynamics, no muscle; correct it"


def _sensor(draft: Draft, sensor: Sensor, links: Iterable[str], joints: Iterable[str]) -> Iterator[str]:
    if sensor.kind in JOINT_SENSORS:
        yield from _unknown(draft, "joint", sensor.joint, joints)
    elif sensor.kind in LINK_SENSORS:
        yield from _unknown(draft, "link", sensor.link, links)
    else:
        yield f"has the unknown kind {sensor.kind!r}; known are {', '.join((*JOINT_SENSORS, *LINK_SENSORS))}"
    if sensor.shape not in SENSOR_SHAPES:
        yield f"has the unknown shape {sensor.shape!r}; known are {', '.join(SENSOR_SHAPES)}"


def _check_stepping(draft: Draft) -> None:
    s = draft.stepping
    faults = {
        f"the time step {s.dt:g} s; it is positive": not 0.0 < s.dt < math.inf,
        f"the integrator {s.integrator!r}; known are {', '.join(STEP_INTEGRATORS)}": s.integrator
        not in STEP_INTEGRATORS,
        f"the cone {s.cone!r}; known are {', '.join(CONES)}": s.cone not in CONES,
        f"impratio {s.impratio:g}; it is positive": not 0.0 < s.impratio < math.inf,
        f"the density {s.density:g}; it is not negative": not 0.0 <= s.density < math.inf,
        f"{s.noslip} sweeps of noslip; there are 0 or more": s.noslip < 0,
        f"the viscosity {s.viscosity:g}; it is not negative": not 0.0 <= s.viscosity < math.inf,
    }
    if s.override and len(s.override) != 13:
        faults[f"an override of {len(s.override)} numbers; it has 13"] = True
    elif s.override:
        faults |= dict.fromkeys((f"an override that {x}" for x in _override(s.override)), True)
    _say(draft, "the robot steps with", [fault for fault, wrong in faults.items() if wrong])
    count = sum(joint.nq for joint in draft.joints)
    if draft.initial and not draft.problems and len(draft.initial) != count:
        draft.problems.append(
            f"the initial configuration has {len(draft.initial)} numbers, q has {count}; correct it"
        )


Waypoint = tuple[str, Vec3]  # a link, a point of it


def segments_along(path: Iterable[Waypoint | TendonWrap | float]) -> tuple[TendonSegment, ...]:
    """The segments between places one after the other, around what stands between two; a number is a pulley,
    behind which a branch begins anew and counts divided by the number."""
    segments, last, share, around = [], None, 1.0, None
    for step in path:
        if isinstance(step, TendonWrap):
            around = step
            continue
        if not isinstance(step, tuple):
            last, share = None, 1.0 / step
            continue
        if last is not None:
            segments.append(TendonSegment(*last, *step, share, around))
        last, around = step, None
    return tuple(segments)
