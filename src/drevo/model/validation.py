"""From a description as read to a valid Model: every problem at once, or one warning for all doubts.

Refused is what cannot be computed or is ambiguous. Warned about is what can be computed but is doubtful.
Everything here is linear in the size of the robot and free of recursion.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from dataclasses import replace

import numpy as np

from ..errors import DrevoWarning, shown, warn_caller
from ..io.given import flag
from .base import put_in_world, with_base
from .description import IDENTITY, JOINT_SIZES, ORIGIN, Inertial, Joint, Limit, Link, Mimic, Model, Vec3
from .draft import MOST_PROBLEMS, Draft, listed, refuse, shorten
from .references import (
    SMALLEST_AXIS,
    check_closures,
    check_formula,
    check_keyframes,
    check_tendons,
    checked_dynamics,
)
from .rotations import add_vectors, apply, matmul, unit
from .touching import check_touching
from .values import control_character

KIND_NAMES = {**{kind: kind for kind in JOINT_SIZES}, "floating": "free", "ball": "spherical", "screw": "helical"}
NO_AXIS = ("fixed", "spherical", "free", "custom")  # kinds whose motion needs no axis
LIMITED_KINDS = ("revolute", "prismatic", "helical", "custom")  # kinds whose coordinates have limits
LARGEST_RATIO = 1e6  # of a mimic joint to the one that drives it
INERTIA_ROUNDING = 1e-9  # of the trace: what an inertia that was printed and read again may miss by


def _check_mocap(draft: Draft) -> None:
    """A link of motion capture stands on the base itself, so that nothing else says where it is."""
    carriers = {joint.child: joint for joint in draft.joints}
    for link in draft.links:
        joint = carriers.get(link.name)
        if link.mocap and (not joint or joint.kind != "fixed" or joint.parent in carriers):
            draft.problems.append(
                f"link {link.name!r} is of motion capture and not welded to the base; weld it, or take mocap away"
            )


def finish(draft: Draft, base: str = "fixed", strict: bool = False) -> Model:
    """A valid Model on its base; ModelError with every problem, or one DrevoWarning with every doubt."""
    if base == "fixed":
        put_in_world(draft)
    _check_names(draft)
    _check_inertias(draft)
    draft.joints = [_checked_joint(draft, joint) for joint in draft.joints]
    _check_tree(draft)
    _check_mocap(draft)
    check_closures(draft)
    draft.joints = _resolve_mimics(draft)
    check_keyframes(draft)
    check_tendons(draft)
    check_touching(draft)
    if flag("strict", strict):
        draft.problems += [f"{doubt} (refused because strict=True)" for doubt in draft.doubts + _unread(draft)]
    if base != "fixed":
        draft.problems += draft.standing
    refuse(draft.where, draft.problems)
    model = with_base(_assemble(draft), base, draft.kinematic)
    if draft.doubts or draft.unread or draft.missing_meshes:
        warn_caller(_doubtful(draft))
    return model


def _doubtful(draft: Draft) -> DrevoWarning:
    """One warning: what is doubtful, what acts on the motion and is not read, and mesh files that are missing."""
    parts = []
    if count := len(draft.doubts):
        parts.append(
            f"{count} doubtful element{'s' * (count > 1)}, computed all the same (strict=True refuses): "
            + shorten(draft.doubts, MOST_PROBLEMS, "; ", "; ")
        )
    if draft.unread:
        effects = "; ".join(f"{x} of {_labels(labels, 12)}" for x, labels in _together(draft.unread))
        parts.append(f"this changes the dynamics and is not read (strict=True refuses): {effects}")
    lost = [f"{file!r} of {listed(links, 2)}" for file, links in draft.missing_meshes.items()]
    if lost:
        parts.append(
            f"{len(lost)} mesh file{'s are' if len(lost) > 1 else ' is'} not there, so nothing touches by them or "
            f"shows them; masses and inertias are the file's: {shorten(lost, 3)}; correct the paths (drevo check "
            "--fix finds moved files) or set ROS_PACKAGE_PATH"
        )
    warning = DrevoWarning(f"{os.path.basename(draft.where)}: {'; '.join(parts)}")
    warning.problems = (*draft.doubts, *_unread(draft), *(f"mesh file {x} is not there" for x in lost))
    return warning


def _unread(draft: Draft) -> list[str]:
    """A sentence for everything that acts on the motion and is not read."""
    groups = _together(draft.unread)
    return [f"{x} of {', '.join(labels)}, not read, though it changes the dynamics" for x, labels in groups]


def _labels(labels: list[str], most: int) -> str:
    """joints 'a', 'b' and 3 more: what all labels begin with is said once."""
    noun = labels[0].partition(" '")[0]
    if len(labels) == 1 or " " in noun or not all(label.startswith(f"{noun} '") for label in labels):
        return shorten(labels, most)
    nouns = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{nouns} {shorten([label[len(noun) + 1 :] for label in labels], most)}"


def _together(unread: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Groups things not read by the elements that have them, so that the same elements are listed once."""
    same: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for effect, labels in unread.items():
        same[tuple(labels)].append(effect)
    return [(", ".join(whats), list(labels)) for labels, whats in same.items()]


def _assemble(draft: Draft) -> Model:
    """Links in the order of the joints that carry them, after the root."""
    joints = draft.joints if draft.ordered else joints_depth_first(draft)
    links = {link.name: link for link in draft.links}
    for joint in joints:
        links[joint.child] = links.pop(joint.child)
    return Model(
        draft.name,
        tuple(links.values()),
        tuple(joints),
        draft.gravity,
        tuple(draft.loops),
        tuple(draft.couplings),
        tuple(draft.contacts),
        tuple(draft.notes),
        draft.source,
        keyframes=tuple(draft.keyframes),
        tendons=tuple(draft.tendons),
        tendon_couplings=tuple(draft.tendon_couplings),
        exclusions=tuple(draft.exclusions),
        geoms=tuple(draft.geoms),
        pairs=tuple(draft.pairs),
        softness=tuple(draft.softness),
        actuators=tuple(draft.actuators),
        sensors=tuple(draft.sensors),
        stepping=draft.stepping,
        initial=draft.initial,
    )


# --- names and numbers -----------------------------------------------------


def _check_names(draft: Draft) -> None:
    if not draft.links:
        draft.problems.append("the robot has no link; it needs at least one")
    named = (draft.links, draft.joints, draft.keyframes, draft.tendons, draft.contacts, draft.geoms,
             draft.actuators, draft.sensors, draft.loops)  # fmt: skip
    for name in {draft.name, *(str(getattr(thing, "name", "")) for things in named for thing in things)}:
        if refused := control_character(name):
            draft.problems.append(f"the name {shown(name)} holds the control character {refused!r}; rename it")
    for noun, things in ((draft.noun, draft.links), ("joint", draft.joints)):
        if len({thing.name for thing in things}) == len(things):
            continue
        lines: defaultdict[str, list[int]] = defaultdict(list)
        for thing in things:
            lines[thing.name].append(thing.line)
        for name, places in lines.items():
            if len(places) > 1:
                lines_known = [str(line) for line in places if line]  # an element that a loader made has none
                where = f" (line{'s' * (len(lines_known) > 1)} {shorten(lines_known)})" if lines_known else ""
                draft.problems.append(
                    f"{noun} {name!r} is defined {len(places)} times{where}; names must be unique: rename "
                    "all but one"
                )


def _check_inertias(draft: Draft) -> None:
    """Judge masses and principal moments (ascending) about the centre of mass.

    With a mass, the 4x4 pseudo-inertia is positive semidefinite exactly when the moments keep the triangle
    inequality, so that this is the complete test. The slack is for printed digits, and for what is left of a
    point mass when its tensor was moved to the centre of mass by subtraction.
    """
    bodies = [(link, link.inertial) for link in draft.links if link.inertial]
    mass = np.array([body.mass for _, body in bodies])
    com = np.array([body.com for _, body in bodies]).reshape(-1, 3)
    moments = np.linalg.eigvalsh(np.array([body.tensor for _, body in bodies]).reshape(-1, 3, 3))
    slack = INERTIA_ROUNDING * np.abs(moments).sum(1) + 1e-15 * np.abs(mass) * (com * com).sum(1)
    low, middle, high = moments.T
    bad = (mass < 0.0) | (low < -slack) | (low + middle < high - slack) | ((mass == 0.0) & (high > slack))
    for i in np.flatnonzero(bad):
        link, body = bodies[i]
        _say_inertia(draft, draft.at(link), body, moments[i].tolist(), float(slack[i]))


def _say_inertia(draft: Draft, label: str, body: Inertial, moments: list[float], slack: float) -> None:
    """Reports all that is wrong or doubtful about a mass and its principal moments."""
    shown = ", ".join(f"{moment if abs(moment) > slack else 0.0:.6g}" for moment in moments) + " kg m^2"
    if body.mass < 0.0:
        draft.problems.append(
            f"{label} has the negative mass {body.mass:g} kg; a mass is zero or positive: correct it"
        )
    if moments[0] < -slack:
        draft.problems.append(
            f"{label} has a negative principal moment of inertia ({shown}); they are zero or positive: "
            "correct the tensor (often a sign or an off-diagonal element)"
        )
    elif moments[0] + moments[1] < moments[2] - slack:
        draft.doubts.append(
            f"{label}: the principal moments of inertia {shown} break the triangle inequality (the largest "
            "is more than the sum of the others, which no real body has); correct the tensor"
        )
    if body.mass == 0.0 and moments[2] > slack:
        draft.doubts.append(f"{label} has an inertia tensor ({shown}) but no mass; give it a mass")


def _checked_joint(draft: Draft, joint: Joint) -> Joint:
    """The joint with its kind in Drevo's words and unit axes, limits uncrossed."""
    if joint.kind not in KIND_NAMES:
        draft.problems.append(
            f"{draft.at(joint)} has the unknown type {joint.kind!r}{draft.meant(joint.kind, KIND_NAMES)}; "
            f"known are {', '.join(KIND_NAMES)}"
        )
        return replace(joint, kind="fixed", mimic=None)
    kind, limit = KIND_NAMES[joint.kind], _uncrossed(draft, joint)
    if joint.dynamics:
        joint = replace(joint, dynamics=checked_dynamics(draft, joint, joint.dynamics, kind))
    check_formula(draft, joint, kind)
    if kind == "fixed" and joint.apart:
        joint = _at_its_link(joint)
    axis: Vec3 = (1.0, 0.0, 0.0) if kind in NO_AXIS else _unit(draft, joint, "axis", joint.axis)
    if kind == "universal":
        return _with_second_axis(draft, replace(joint, kind=kind, limit=limit, axis=axis))
    if (kind, limit, axis, None) == (joint.kind, joint.limit, joint.axis, joint.axis2):
        return joint  # a copy costs more than all of these checks
    return replace(joint, kind=kind, limit=limit, axis=axis, axis2=None)


def _at_its_link(joint: Joint) -> Joint:
    """A weld has its child's frame."""
    place = add_vectors(joint.origin, apply(joint.rotation, joint.child_origin))
    turn = matmul(joint.rotation, joint.child_rotation)
    return replace(joint, origin=place, rotation=turn, child_origin=ORIGIN, child_rotation=IDENTITY)


def _unit(draft: Draft, joint: Joint, axis_name: str, axis: Vec3) -> Vec3:
    if math.hypot(*axis) >= SMALLEST_AXIS:
        return unit(axis)
    shown = " ".join(f"{x:g}" for x in axis)
    draft.problems.append(
        f"{draft.at(joint)} has the zero {axis_name} ({shown}); give it a direction, such as 0 0 1"
    )
    return (0.0, 0.0, 1.0)


def _with_second_axis(draft: Draft, joint: Joint) -> Joint:
    if joint.axis2 is None:
        draft.problems.append(f"{draft.at(joint)} is universal and has no axis2; give its second axis")
        return joint
    a, b = joint.axis, _unit(draft, joint, "axis2", joint.axis2)
    if math.hypot(*np.cross(a, b).tolist()) < SMALLEST_AXIS:
        draft.problems.append(
            f"{draft.at(joint)} is universal and has parallel axes; they must differ in direction"
        )
    return replace(joint, axis2=b)


def _uncrossed(draft: Draft, joint: Joint) -> Limit | None:
    limit = joint.limit
    if limit is None or KIND_NAMES[joint.kind] not in LIMITED_KINDS:
        return limit and replace(limit, lower=None, upper=None)
    if limit.lower is not None and limit.upper is not None and limit.lower > limit.upper:
        draft.doubts.append(
            f"{draft.at(joint)}: the limits are crossed (lower {limit.lower:g} > upper {limit.upper:g}) "
            "and left out; exchange them"
        )
        return replace(limit, lower=None, upper=None)
    return limit


# --- the tree --------------------------------------------------------------


def _check_tree(draft: Draft) -> None:
    """Every link but one is the child of exactly one joint, and all hang from that one."""
    links = {link.name: link for link in draft.links}
    unknown = {name for joint in draft.joints for name in (joint.parent, joint.child) if name not in links}
    carrier: dict[str, Joint] = {}
    others: defaultdict[str, list[Joint]] = defaultdict(list)
    for joint in draft.joints:
        _check_ends(draft, joint, links, unknown)
        if joint.parent != joint.child and carrier.setdefault(joint.child, joint) is not joint:
            others[joint.child].append(joint)
    for name, more in others.items():
        if name in links:
            joints = [carrier[name], *more]
            several = shorten([f"{j.parent!r} (by {draft.at(j)})" for j in joints], 4, " and ")
            draft.problems.append(
                f"{draft.at(links[name])} has {len(joints)} parents, {several}; keep one of these joints, "
                "and close a loop with a constraint"
            )
    _check_cycles(draft, carrier)
    roots = [link for name, link in links.items() if name not in carrier]
    if len(roots) > 1 and not unknown:  # a misspelt child leaves a second root: said once is enough
        draft.problems.append(
            f"the links {listed(link.name for link in roots)} have no parent, and a robot has one root; "
            "connect the others with joints, or remove them"
        )
    if draft.ordered and not draft.problems:
        _check_order(draft, roots)


def _check_ends(draft: Draft, joint: Joint, links: dict[str, Link], unknown: set[str]) -> None:
    for role, name in (("parent", joint.parent), ("child", joint.child)) if unknown else ():
        if name in unknown:
            draft.problems.append(
                f"{draft.at(joint)} names the {role} link {name!r}, which does not "
                f"exist{draft.meant(name, links)}; define the link or correct the name"
            )
    if joint.parent == joint.child:
        draft.problems.append(
            f"{draft.at(joint)} connects link {joint.child!r} to itself; correct its parent or child"
        )


def _check_cycles(draft: Draft, carrier: dict[str, Joint]) -> None:
    """Climb from every link, over each link once; a climb that meets itself has found a cycle."""
    seen: dict[str, str] = {}
    for start in carrier:
        name = start
        while name in carrier and name not in seen:
            seen[name] = start
            name = carrier[name].parent
        if seen.get(name) == start:
            draft.problems.append(_cycle_sentence(draft, carrier, name))


def _cycle_sentence(draft: Draft, carrier: dict[str, Joint], start: str) -> str:
    path, name = [start], carrier[start].parent
    while name != start:
        path.append(name)
        name = carrier[name].parent
    path = [start, *reversed(path)]
    shown = " -> ".join(map(repr, path if len(path) <= 8 else [*path[:4], "...", *path[-3:]]))
    return f"the links form a cycle, {shown} (closed by {draft.at(carrier[start])}); remove one of its joints"


def _check_order(draft: Draft, roots: list[Link]) -> None:
    placed = {root.name for root in roots}
    for joint in draft.joints:
        if joint.parent not in placed:
            draft.problems.append(
                f"{draft.at(joint)} comes before the joint of its parent {joint.parent!r}; reorder"
            )
        placed.add(joint.child)


def joints_depth_first(draft: Draft) -> list[Joint]:
    """The joints depth first, children in file order."""
    below: defaultdict[str, list[Joint]] = defaultdict(list)
    for joint in draft.joints:
        below[joint.parent].append(joint)
    carried = {joint.child for joint in draft.joints}
    stack = [joint for link in draft.links if link.name not in carried for joint in reversed(below[link.name])]
    order = []
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(below[order[-1].child]))
    return order


# --- mimic -----------------------------------------------------------------


def _resolve_mimics(draft: Draft) -> list[Joint]:
    """Every mimic joint refers straight to the joint that drives it; chains are multiplied through."""
    if not any(joint.mimic for joint in draft.joints):
        return draft.joints
    joints = {joint.name: _able_to_mimic(draft, joint) for joint in draft.joints}
    done: dict[str, Mimic | None] = {name: None for name, joint in joints.items() if joint.mimic is None}
    for name in joints:
        chain: dict[str, Mimic] = {}
        while name not in done and name not in chain and name in joints:
            chain[name] = mimic = _mimic_of(joints[name])
            name = mimic.joint
        if name in chain:
            _report_circle(draft, list(chain)[list(chain).index(name) :])
        for link, mimic in reversed(chain.items()):
            done[link] = _through(mimic, done.get(mimic.joint))
    resolved = [replace(joint, mimic=done[name]) for name, joint in joints.items()]
    for joint in resolved:
        if joint.mimic:
            _check_driver(draft, joint, joint.mimic, joints)
    return resolved


def _mimic_of(joint: Joint) -> Mimic:
    assert joint.mimic
    return joint.mimic


def _able_to_mimic(draft: Draft, joint: Joint) -> Joint:
    if joint.mimic is None or joint.sizes[0] == 1:
        return joint
    if joint.kind == "fixed":
        draft.notes.append(f"{draft.at(joint)} is fixed; its mimic has no effect")
    else:
        draft.problems.append(
            f"{draft.at(joint)} of type {joint.kind} cannot mimic {joint.mimic.joint!r}: only joints with "
            "one coordinate can; remove the mimic"
        )
    return replace(joint, mimic=None)


def _through(mimic: Mimic, driver: Mimic | None) -> Mimic:
    """Makes a mimic depend on the joint that drives its driver."""
    if driver is None:
        return mimic
    k = mimic.multiplier
    return Mimic(driver.joint, k * driver.multiplier, k * driver.offset + mimic.offset)


def _report_circle(draft: Draft, names: list[str]) -> None:
    draft.problems.append(
        f"the joints {listed(names)} mimic one another in a circle; make one of them independent by "
        "removing its mimic"
        if len(names) > 1
        else f"joint {names[0]!r} mimics itself; remove its mimic"
    )


def _check_driver(draft: Draft, joint: Joint, mimic: Mimic, joints: dict[str, Joint]) -> None:
    driver = joints.get(mimic.joint)
    if driver is None:
        draft.problems.append(
            f"{draft.at(joint)} mimics joint {mimic.joint!r}, which does not "
            f"exist{draft.meant(mimic.joint, joints)}; correct the name or remove the mimic"
        )
    elif driver.sizes[0] != 1:
        draft.problems.append(
            f"{draft.at(joint)} mimics {draft.at(driver)}, which is of type {driver.kind} and does not "
            "have just one coordinate to follow; remove the mimic or correct the type"
        )
    if max(abs(mimic.multiplier), abs(mimic.offset)) > LARGEST_RATIO:
        draft.problems.append(
            f"{draft.at(joint)} follows {mimic.joint!r} beyond {LARGEST_RATIO:g}; reduce the ratio"
        )
