"""Checks of references to the links and joints of a description: loops, couplings, contacts, configurations.

Parts of a joint beside its axis, judged: rotor, damper, friction, spring, formula.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import accumulate

from .description import (
    JOINT_LOOPS,
    JOINT_SIZES,
    Joint,
    JointDynamics,
    Keyframe,
    Limit,
    Loop,
    Tendon,
    TendonSegment,
)
from .draft import Draft
from .formula import faults, faults_of_values
from .rotations import unit


def check_closures(draft: Draft) -> None:
    links = {link.name for link in draft.links}
    used = [("contact", contact.link) for contact in draft.contacts]
    used += [("loop", name) for loop in draft.loops for name in (loop.link_a, loop.link_b)]
    used += [("tendon", name) for t in draft.tendons for x in t.segments for name in x.links]
    for user, name in used:
        if name not in links:
            draft.problems.append(
                f"a {user} names the {draft.noun} {name!r}, which does not exist{draft.meant(name, links)}"
            )
    known = [x for x in draft.exclusions if {x.link_a, x.link_b} <= links]
    for pair in draft.exclusions:
        if pair not in known:
            draft.doubts.append(
                f"a contact exclusion names {pair.link_a!r} and {pair.link_b!r}, which are not both there; "
                "correct the names"
            )
    draft.exclusions = known
    draft.loops = [_checked_loop(draft, loop) for loop in draft.loops]
    joints = {joint.name: joint for joint in draft.joints}
    for name in (x for coupling in draft.couplings for x in (coupling.joint, coupling.driver) if x):
        if name not in joints or (joints[name].nq, joints[name].nv) != (1, 1):
            user = "does not own just one coordinate" if name in joints else "does not exist"
            draft.problems.append(f"a coupling names the joint {name!r}, which {user}{draft.meant(name, joints)}")


def _checked_loop(draft: Draft, loop: Loop) -> Loop:
    """The loop with unit axes, and all that its kind needs."""
    label = f"the {loop.kind} loop between {loop.link_a!r} and {loop.link_b!r}"
    if loop.kind == "rod" and not loop.length > 0.0:
        draft.problems.append(f"{label} has the length {loop.length:g}; a rod has a positive one")
    if loop.kind == "prismatic" and loop.rotation is None:
        draft.problems.append(f"{label} keeps an orientation, which nobody gives; give it a rotation")
    if loop.kind not in JOINT_LOOPS:
        return replace(loop, axis_a=None, axis_b=None)
    axes = []
    for name, axis in (("axis_a", loop.axis_a), ("axis_b", loop.axis_b)):
        if axis is None or not any(axis):
            draft.problems.append(f"{label} has {'no' if axis is None else 'a zero'} {name}; give it a direction")
            axis = (0.0, 0.0, 1.0)
        axes.append(unit(axis))
    return replace(loop, axis_a=axes[0], axis_b=axes[1])


def check_tendons(draft: Draft) -> None:
    """Names, and coordinates of joints that have their own; a mimic joint's is told by its driver's."""
    joints = {joint.name: joint for joint in draft.joints}
    known = Counter(tendon.name for tendon in draft.tendons)
    for k, tendon in enumerate(draft.tendons):
        label = f"the tendon {tendon.name!r}"
        if known[tendon.name] > 1:
            draft.problems.append(f"{label} is defined {known[tendon.name]} times; names must be unique: rename")
        offset, ends = tendon.offset, []
        for end in tendon.joints:
            joint = joints.get(end.joint)
            if joint is None or (not joint.mimic and (joint.nq, joint.nv) != (1, 1)):
                fault = "does not have just one coordinate" if joint else "does not exist"
                hint = draft.meant(end.joint, joints)
                draft.problems.append(f"{label} names the joint {end.joint!r}, which {fault}{hint}")
            elif mimic := joint.mimic:
                offset += end.coefficient * mimic.offset
                end = replace(end, joint=mimic.joint, coefficient=end.coefficient * mimic.multiplier)
            ends.append(end)
        segments = tuple(_checked_wrap(draft, label, x) for x in tendon.segments)
        draft.tendons[k] = replace(tendon, joints=tuple(ends), offset=offset, segments=segments)
        _check_forces(draft, label, tendon)
    for coupling in draft.tendon_couplings:
        for name in (coupling.tendon, coupling.driver) if coupling.driver else (coupling.tendon,):
            if name not in known:
                draft.problems.append(
                    f"a coupling names the tendon {name!r}, which does not exist{draft.meant(name, known)}"
                )
        if not coupling.coefficients:
            draft.problems.append(
                f"the coupling of the tendon {coupling.tendon!r} has no coefficients; give c0, c1"
            )


def _checked_wrap(draft: Draft, label: str, x: TendonSegment) -> TendonSegment:
    """The segment, with a unit axis of what it lies around."""
    around = x.around
    if around is None:
        return x
    size = 1.0 if around.axis is None else math.hypot(*around.axis)
    if not around.radius > 0.0:
        draft.problems.append(f"{label} lies around a radius of {around.radius:g}; give a positive one")
    elif not size > 0.0:
        draft.problems.append(f"{label} lies around a cylinder whose axis is 0 0 0; give its direction")
    elif around.axis is not None:
        return replace(x, around=replace(around, axis=unit(around.axis)))
    return x


def _check_forces(draft: Draft, label: str, tendon: Tendon) -> None:
    """Doubts negative terms of a tendon."""
    for term in ("stiffness", "damping", "quadratic", "friction", "limit_stiffness", "limit_damping"):
        if getattr(tendon, term) < 0.0:
            draft.doubts.append(
                f"{label} has the negative {term} {getattr(tendon, term):g}, which drives it; correct it"
            )
    if tendon.rest[0] > tendon.rest[1] or (
        tendon.lower is not None and tendon.upper is not None and tendon.lower > tendon.upper
    ):
        draft.problems.append(f"{label} has bounds that are crossed; exchange them")


def check_keyframes(draft: Draft) -> None:
    """Keep those with as many numbers as q has, and bring their quaternions to length one."""
    kept, names = [], set()
    sizes = [joint.nq for joint in draft.joints if joint.kind in JOINT_SIZES]
    for key in draft.keyframes:
        q, wrong = list(key.q), "" if len(key.q) == sum(sizes) else f"{len(key.q)} numbers, q has {sum(sizes)}"
        for end, size in zip(accumulate(sizes), sizes) if not wrong else ():
            if size >= 4:
                length = math.hypot(*q[end - 4 : end])
                wrong = wrong if length > 0.0 else "a quaternion of length zero"
                q[end - 4 : end] = [x / (length or 1.0) for x in q[end - 4 : end]]
        if wrong or key.name in names:
            draft.doubts.append(
                f"keyframe {key.name!r} has {wrong or 'a name that is given'}, and is left out; mend it"
            )
        else:
            kept.append(Keyframe(key.name, tuple(q)))
        names.add(key.name)
    draft.keyframes = kept


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
    label = draft.at(joint)
    if d.rotor < 0.0:
        draft.problems.append(f"{label} has a rotor of the negative inertia {d.rotor:g}; correct it")
    if d.gear == 0.0:
        draft.problems.append(
            f"{label} has the gear ratio 0; give how often its rotor turns for a turn of the joint"
        )
    if d.rotor and joint.sizes[1] != 1:
        draft.problems.append(f"{label} of type {kind} has a rotor, which is of joints with one rate; remove it")
    if d.rotor_axis is None or not d.rotor:
        return replace(d, armature=d.reflected, rotor=0.0, gear=1.0, rotor_axis=None)
    if math.hypot(*d.rotor_axis) < SMALLEST_AXIS:
        draft.problems.append(
            f"{label} has the zero axis (0 0 0) for its rotor; give it a direction, such as 0 0 1"
        )
        return replace(d, rotor_axis=(0.0, 0.0, 1.0))
    return replace(d, rotor_axis=unit(d.rotor_axis))


def checked_dynamics(draft: Draft, joint: Joint, d: JointDynamics, kind: str) -> JointDynamics | None:
    """The checked dynamics of a joint; None for nothing. A spring is of joints whose coordinates are numbers."""
    if d.armature < 0.0:
        draft.problems.append(
            f"{draft.at(joint)} has the negative armature {d.armature:g}; it is zero or positive: correct it"
        )
    d = _checked_rotor(draft, joint, d, kind)
    for term in ("damping", "quadratic", "cubic", "friction"):
        value = getattr(d, term)
        if value < 0.0:
            draft.doubts.append(
                f"{draft.at(joint)} has the negative {term} {value:g}, which drives it; correct it"
            )
        elif math.copysign(1.0, value) < 0.0:
            draft.doubts.append(f"{draft.at(joint)} has the {term} -0, taken as 0; correct it")
            d = replace(d, **dict.fromkeys((term,), 0.0))  # type: ignore[arg-type]
    if not d.springy:
        d = replace(d, reference=0.0, rest=())
    return None if kind == "fixed" or d == JointDynamics() else d
