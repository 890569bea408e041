"""A Model as a pinocchio.Model: joints depth first, as its algorithms want them, and a frame for every link."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from ...errors import ModelError
from ...io.packages import package
from ..carriers import with_chains
from ..description import JOINT_SIZES, Inertial, Joint, JointDynamics, Limit, Model
from ..draft import listed
from ..rotations import IDENTITY_POSE, FramePose, compose
from .writing import Written, begin, read_order

PINOCCHIO_WRITTEN_KINDS = ("fixed", "revolute", "continuous", "prismatic", "helical", "spherical", "free")


def to_model(robot: Model) -> tuple[Written, Any]:
    """Returns what Pinocchio cannot hold, and its model; joints of 2 or 3 coordinates are chains of plain ones."""
    pin = package("pinocchio", "robot.to_pinocchio", "pin")
    model = with_chains(robot, PINOCCHIO_WRITTEN_KINDS)
    written = begin(robot, model, PINOCCHIO_WRITTEN_KINDS)
    if sprung := [j.name for j in model.joints if j.dynamics and j.dynamics.stiffness]:
        written.lost.append(f"the springs of {listed(sprung)}")
    out = pin.Model()
    out.name = model.name
    out.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    held: dict[str, tuple[int, FramePose]] = {model.root: (0, IDENTITY_POSE)}
    links = {link.name: link for link in model.links}
    joints = _leaders_first(model)
    first = _first(joints)
    for joint in joints:
        if joint.mimic and first[joint.mimic.joint] > first[joint.name]:
            raise ModelError(
                f"joint {joint.name!r} follows {joint.mimic.joint!r}, which comes after it in every order, and "
                "Pinocchio has only joints that follow earlier ones; exchange the two"
            )
    for joint in joints:
        at, pose = held[joint.parent]
        pose = compose(pose, (joint.origin, joint.rotation))
        if joint.kind != "fixed":
            at = out.addJoint(at, _joint(pin, joint, first), _se3(pin, pose), joint.name)
            out.addJointFrame(at)
            _equip(out, at, joint)
            pose = IDENTITY_POSE
        pose = compose(pose, (joint.child_origin, joint.child_rotation))
        held[joint.child] = at, pose
        body = links[joint.child].inertial
        if body is not None and at:
            out.appendBodyToJoint(at, _inertia(pin, body, joint.child), _se3(pin, pose))
    for name, (at, pose) in held.items():
        out.addFrame(pin.Frame(name, at, 0, _se3(pin, pose), pin.FrameType.BODY))
    return written, out


def _leaders_first(model: Model) -> list[Joint]:
    """The joints depth first, of two branches the one first whose joints the other's follow, where that can be."""
    carrier = {joint.child: joint for joint in model.joints}
    of = {joint.name: joint for joint in model.joints}

    def path(joint: Joint) -> list[Joint]:
        chain = [joint]
        while chain[-1].parent in carrier:
            chain.append(carrier[chain[-1].parent])
        return chain[::-1]

    branches: dict[str, TopologicalSorter[str]] = defaultdict(TopologicalSorter)
    for joint in model.joints:
        branches[joint.parent].add(joint.name)
        if joint.mimic:
            fork = next(((a, b) for a, b in zip(path(joint), path(of[joint.mimic.joint])) if a is not b), None)
            if fork:
                branches[fork[0].parent].add(fork[0].name, fork[1].name)
    try:
        names = [name for branch in branches.values() for name in branch.static_order()]
    except CycleError:  # two branches follow each other
        return read_order(model)
    return read_order(replace(model, joints=tuple(of[name] for name in names)))


def _first(joints: list[Joint]) -> dict[str, tuple[int, int, int]]:
    """Number, first coordinate and first rate of every joint that moves."""
    starts, q, v = {}, 0, 0
    for k, joint in enumerate((joint for joint in joints if joint.kind != "fixed"), 1):
        starts[joint.name] = (k, q, v)
        q, v = q + joint.nq, v + joint.nv
    return starts


def _joint(pin: Any, joint: Joint, first: dict[str, tuple[int, int, int]]) -> Any:
    """The joint itself; one that follows another has the indices of that one."""
    axis = np.array(joint.axis)
    if joint.kind == "helical":
        pin_joint = pin.JointModelHelicalUnaligned(axis, joint.lead / (2.0 * math.pi))
    elif joint.kind in ("spherical", "free"):
        pin_joint = pin.JointModelSpherical() if joint.kind == "spherical" else pin.JointModelFreeFlyer()
    else:
        plain = pin.JointModelPrismaticUnaligned if joint.kind == "prismatic" else pin.JointModelRevoluteUnaligned
        pin_joint = plain(axis)
    if joint.mimic is None:
        return pin_joint
    pin_joint.setIndexes(*first[joint.mimic.joint])
    return pin.JointModelMimic(pin.JointModel(pin_joint), joint.mimic.multiplier, joint.mimic.offset)


def _equip(out: Any, at: int, joint: Joint) -> None:
    """Sets what acts in a joint and its limits; in a joint that follows another what acts is felt by that one."""
    model, d, limit = out.joints[at], joint.dynamics or JointDynamics(), joint.limit or Limit()
    q, v = slice(model.idx_q, model.idx_q + joint.nq), slice(model.idx_v, model.idx_v + JOINT_SIZES[joint.kind][1])
    if joint.mimic:
        v = slice(model.idx_v, model.idx_v + 1)
    square = joint.mimic.multiplier**2 if joint.mimic else 1.0
    size = abs(joint.mimic.multiplier) if joint.mimic else 1.0
    _add(out, "armature", v, square * d.armature)
    _add(out, "damping", v, square * d.damping)
    if hasattr(out, "upperDryFrictionLimit"):  # since Pinocchio 3.5
        _add(out, "upperDryFrictionLimit", v, size * d.friction)
        _add(out, "lowerDryFrictionLimit", v, -size * d.friction)
    else:
        _add(out, "friction", v, size * d.friction)
    if joint.mimic:
        return
    _put(out, "lowerPositionLimit", q, limit.lower)
    _put(out, "upperPositionLimit", q, limit.upper)
    for name, bound in (("Velocity", limit.velocity), ("Effort", limit.effort)):
        if hasattr(out, f"upper{name}Limit"):
            _put(out, f"upper{name}Limit", v, bound)
            _put(out, f"lower{name}Limit", v, None if bound is None else -bound)
        else:
            _put(out, f"{name.lower()}Limit", v, bound)


def _add(out: Any, name: str, at: slice, value: float) -> None:
    if value:
        array = np.array(getattr(out, name))
        array[at] += value
        setattr(out, name, array)


def _put(out: Any, name: str, at: slice, value: float | None) -> None:
    if value is not None:
        array = np.array(getattr(out, name))
        array[at] = value
        setattr(out, name, array)


def _se3(pin: Any, pose: FramePose) -> Any:
    return pin.SE3(np.array(pose[1]), np.array(pose[0]))


def _inertia(pin: Any, body: Inertial, link: str) -> Any:
    """Pinocchio's inertia of a link; ModelError where it refuses the numbers."""
    try:
        return pin.Inertia(body.mass, np.array(body.com), np.array(body.tensor))
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"Pinocchio refuses the inertia of link {link!r} ({error}); correct the tensor") from None
