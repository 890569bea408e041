"""What refers to the links and joints of a description: loops, couplings, contacts, configurations."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate

from drevo.model.description import JOINT_LOOPS, JOINT_SIZES, Keyframe, Loop
from drevo.model.draft import Draft
from drevo.model.rotations import unit


def check_closures(draft: Draft) -> None:
    links = {link.name for link in draft.links}
    used = [("contact", contact.link) for contact in draft.contacts]
    used += [("loop", name) for loop in draft.loops for name in (loop.link_a, loop.link_b)]
    for what, name in used:
        if name not in links:
            draft.problems.append(
                f"a {what} names the {draft.noun} {name!r}, which does not exist{draft.meant(name, links)}"
            )
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
