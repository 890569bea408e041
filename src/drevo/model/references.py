"""Checks of references to the links and joints of a description: loops, couplings, contacts, configurations."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import accumulate

from .description import JOINT_LOOPS, JOINT_SIZES, Keyframe, Loop, Tendon
from .draft import Draft
from .rotations import unit


def check_closures(draft: Draft) -> None:
    links = {link.name for link in draft.links}
    used = [("contact", contact.link) for contact in draft.contacts]
    used += [("loop", name) for loop in draft.loops for name in (loop.link_a, loop.link_b)]
    used += [("tendon", name) for t in draft.tendons for x in t.segments for name in (x.link_a, x.link_b)]
    for what, name in used:
        if name not in links:
            draft.problems.append(
                f"a {what} names the {draft.noun} {name!r}, which does not exist{draft.meant(name, links)}"
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
            what = "does not own just one coordinate" if name in joints else "does not exist"
            draft.problems.append(f"a coupling names the joint {name!r}, which {what}{draft.meant(name, joints)}")


def _checked_loop(draft: Draft, loop: Loop) -> Loop:
    """The loop with unit axes, and all that its kind needs."""
    who = f"the {loop.kind} loop between {loop.link_a!r} and {loop.link_b!r}"
    if loop.kind == "rod" and not loop.length > 0.0:
        draft.problems.append(f"{who} has the length {loop.length:g}; a rod has a positive one")
    if loop.kind == "prismatic" and loop.rotation is None:
        draft.problems.append(f"{who} keeps an orientation, which nobody gives; give it a rotation")
    if loop.kind not in JOINT_LOOPS:
        return replace(loop, axis_a=None, axis_b=None)
    axes = []
    for name, axis in (("axis_a", loop.axis_a), ("axis_b", loop.axis_b)):
        if axis is None or not any(axis):
            draft.problems.append(f"{who} has {'no' if axis is None else 'a zero'} {name}; give it a direction")
            axis = (0.0, 0.0, 1.0)
        axes.append(unit(axis))
    return replace(loop, axis_a=axes[0], axis_b=axes[1])


def check_tendons(draft: Draft) -> None:
    """Names, and coordinates of joints that have their own; a mimic joint's is told by its driver's."""
    joints = {joint.name: joint for joint in draft.joints}
    known = Counter(tendon.name for tendon in draft.tendons)
    for k, tendon in enumerate(draft.tendons):
        who = f"the tendon {tendon.name!r}"
        if known[tendon.name] > 1:
            draft.problems.append(f"{who} is defined {known[tendon.name]} times; names must be unique: rename")
        offset, ends = tendon.offset, []
        for end in tendon.joints:
            joint = joints.get(end.joint)
            if joint is None or (not joint.mimic and (joint.nq, joint.nv) != (1, 1)):
                what = "does not have just one coordinate" if joint else "does not exist"
                hint = draft.meant(end.joint, joints)
                draft.problems.append(f"{who} names the joint {end.joint!r}, which {what}{hint}")
            elif mimic := joint.mimic:
                offset += end.coefficient * mimic.offset
                end = replace(end, joint=mimic.joint, coefficient=end.coefficient * mimic.multiplier)
            ends.append(end)
        draft.tendons[k] = replace(tendon, joints=tuple(ends), offset=offset)
        _check_forces(draft, who, tendon)
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


def _check_forces(draft: Draft, who: str, tendon: Tendon) -> None:
    for what in ("stiffness", "damping", "quadratic", "friction", "limit_stiffness", "limit_damping"):
        if getattr(tendon, what) < 0.0:
            draft.doubts.append(
                f"{who} has the negative {what} {getattr(tendon, what):g}, which drives it; correct it"
            )
    if tendon.rest[0] > tendon.rest[1] or (
        tendon.lower is not None and tendon.upper is not None and tendon.lower > tendon.upper
    ):
        draft.problems.append(f"{who} has bounds that are crossed; exchange them")


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
