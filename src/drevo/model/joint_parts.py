"""Parts of a joint beside its axis, judged: rotor, damper, friction, spring, formula."""

from __future__ import annotations

import math
from dataclasses import replace

from .description import Joint, JointDynamics, Limit
from .draft import Draft
from .formula import faults, faults_of_values
from .rotations import unit

SMALLEST_AXIS = 1e-9  # shorter than this is a zero with rounding in it
LARGEST_LIMIT = 1e3  # rad or m: files write 1e16 where they mean that there is no limit


def check_formula(draft: Draft, joint: Joint, kind: str) -> None:
    """A custom joint has one that moves it in as many ways as it has coordinates, and no other joint has any."""
    if joint.formula is None:
        if kind == "custom":
            draft.problems.append(f"{draft.at(joint)} is custom and has no formula; give its pose")
        return
    wrong = list(faults(joint.formula)) if kind == "custom" else [f"is {kind} and has a formula; make it custom"]
    wrong = wrong or list(filter(None, [faults_of_values(joint.formula, *_range(draft, joint))]))
    draft.problems += [f"{draft.at(joint)} {fault}" for fault in wrong]


def _range(draft: Draft, joint: Joint) -> tuple[float, float]:
    """Between what a formula is looked at: its limits, or those of the joint that drives it."""
    mimic, holder = joint.mimic, joint
    if mimic:
        holder = next((x for x in draft.joints if x.name == mimic.joint), joint)
    low, high = random_range(holder.limit)
    if mimic is None or holder is joint:
        return low, high
    low, high = sorted(mimic.multiplier * x + mimic.offset for x in (low, high))
    return low, high


def random_range(limit: Limit | None, default: float = math.pi) -> tuple[float, float]:
    """The interval to draw coordinates from: the limits, if there are two within UNBOUNDED, else +- default."""
    low, high = (limit.lower, limit.upper) if limit else (None, None)
    if low is None or high is None or not -LARGEST_LIMIT <= low < high <= LARGEST_LIMIT:
        return -default, default
    return low, high


def _checked_rotor(draft: Draft, joint: Joint, d: JointDynamics, kind: str) -> JointDynamics:
    """A rotor without an axis of its own is armature."""
    who = draft.at(joint)
    if d.rotor < 0.0:
        draft.problems.append(f"{who} has a rotor of the negative inertia {d.rotor:g}; correct it")
    if d.gear == 0.0:
        draft.problems.append(
            f"{who} has the gear ratio 0; give how often its rotor turns for a turn of the joint"
        )
    if d.rotor and joint.sizes[1] != 1:
        draft.problems.append(f"{who} of type {kind} has a rotor, which is of joints with one rate; remove it")
    if d.rotor_axis is None or not d.rotor:
        return replace(d, armature=d.reflected, rotor=0.0, gear=1.0, rotor_axis=None)
    if math.hypot(*d.rotor_axis) < SMALLEST_AXIS:
        draft.problems.append(f"{who} has the zero axis (0 0 0) for its rotor; give it a direction, such as 0 0 1")
        return replace(d, rotor_axis=(0.0, 0.0, 1.0))
    return replace(d, rotor_axis=unit(d.rotor_axis))


def checked_dynamics(draft: Draft, joint: Joint, d: JointDynamics, kind: str) -> JointDynamics | None:
    """The checked dynamics of a joint; None for nothing. A spring is of joints whose coordinates are numbers."""
    if d.armature < 0.0:
        draft.problems.append(
            f"{draft.at(joint)} has the negative armature {d.armature:g}; it is zero or positive: correct it"
        )
    d = _checked_rotor(draft, joint, d, kind)
    for what in ("damping", "quadratic", "cubic", "friction"):
        value = getattr(d, what)
        if value < 0.0:
            draft.doubts.append(
                f"{draft.at(joint)} has the negative {what} {value:g}, which drives it; correct it"
            )
        elif math.copysign(1.0, value) < 0.0:
            draft.doubts.append(f"{draft.at(joint)} has the {what} -0, taken as 0; correct it")
            d = replace(d, **dict.fromkeys((what,), 0.0))  # type: ignore[arg-type]
    if not d.springy:
        d = replace(d, reference=0.0, rest=())
    return None if kind == "fixed" or d == JointDynamics() else d
