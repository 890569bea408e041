"""A pinocchio.Model in memory as a Draft; Pinocchio itself is not imported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...io.files import Files
from ..description import IDENTITY, ORIGIN, Inertial, Joint, JointDynamics, Limit, Link, Mat3, Vec3
from ..draft import Draft

AXIS_BY_LETTER: dict[str, Vec3] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
PINOCCHIO_KINDS = {
    "RevoluteUnaligned": "revolute",
    "RevoluteUnboundedUnaligned": "continuous",
    "PrismaticUnaligned": "prismatic",
}
PINOCCHIO_KINDS |= {"Spherical": "spherical", "FreeFlyer": "free", "Planar": "planar"}
SEVERAL = {"Translation": ("prismatic", "XYZ"), "SphericalZYX": ("revolute", "ZYX")}
_ALIGNED_JOINT = re.compile(r"(R|RUB|P|H)([XYZ])$")
KIND_BY_LETTER = {"R": "revolute", "RUB": "continuous", "P": "prismatic", "H": "helical"}


def draft_of(model: Any, files: Files | None = None) -> Draft:
    """Draft of a Pinocchio model: joints, each with the body that it moves; other bodies, frames there, as links
    without mass."""
    root, *_ = bodies = _bodies(model)
    draft = Draft(model.name or "robot", links=[Link(root)], gravity=_vec(model.gravity.linear), ordered=True)
    for i in range(1, model.njoints):
        for joint in _joints(draft, model, i, bodies):
            draft.joints.append(joint)
            draft.links.append(
                Link(joint.child, _inertial(model.inertias[i]) if joint.child == bodies[i] else None)
            )
    taken = {joint.name for joint in draft.joints} | {link.name for link in draft.links}
    for frame in model.frames:
        if _is_body(frame) and frame.name not in taken:
            weld = Joint(
                f"{frame.name}_fixed", "fixed", bodies[frame.parentJoint], frame.name, *_pose(frame.placement)
            )
            draft.joints.append(weld)
            draft.links.append(Link(frame.name))
            taken.add(frame.name)
    return draft


def _bodies(model: Any) -> list[str]:
    """The name of the body of every joint: the first that stands where the joint does, or as the joint."""
    names = ["universe", *list(model.names)[1:]]
    for frame in reversed(list(model.frames)):
        if _is_body(frame) and np.abs(np.array(frame.placement.homogeneous) - np.eye(4)).max() < 1e-12:
            names[frame.parentJoint] = frame.name
    return names


def _is_body(frame: Any) -> bool:
    return str(frame.type).rpartition(".")[2] == "BODY"


def _joints(draft: Draft, model: Any, i: int, bodies: list[str]) -> list[Joint]:
    """One joint, or three one after the other; the first is placed in the parent."""
    name, kind = model.names[i], model.joints[i].shortname().removeprefix("JointModel")
    place, parent = _pose(model.jointPlacements[i]), bodies[model.parents[i]]
    if kind in SEVERAL:
        plain, letters = SEVERAL[kind]
        names = [f"{name}_{k}" for k in range(1, 4)]
        ends = [parent, *(f"{bodies[i]}_{k}" for k in (1, 2)), bodies[i]]
        places = (place, (ORIGIN, IDENTITY), (ORIGIN, IDENTITY))
        dynamics = _dynamics(draft, model, i)
        return [
            Joint(names[k], plain, ends[k], ends[k + 1], *places[k], AXIS_BY_LETTER[letters[k]], dynamics=dynamics)
            for k in range(3)
        ]
    aligned = _ALIGNED_JOINT.match(kind)
    joint_kind = KIND_BY_LETTER[aligned[1]] if aligned else PINOCCHIO_KINDS.get(kind, kind)
    if joint_kind == "helical" or joint_kind not in (*KIND_BY_LETTER.values(), *PINOCCHIO_KINDS.values()):
        draft.problems.append(
            f"joint {name!r} of Pinocchio's type {kind} is not read; build it with drevo.Builder"
        )
    axis = AXIS_BY_LETTER["Z"]
    if model.joints[i].nv == 1:  # the motion that it allows
        linear, angular = np.ravel(model.joints[i].createData().S).reshape(2, 3)
        axis = _vec(angular if angular.any() else linear)
    limit, dynamics = _limit(model, i, joint_kind), _dynamics(draft, model, i)
    return [Joint(name, joint_kind, parent, bodies[i], *place, axis, limit=limit, dynamics=dynamics)]


def _limit(model: Any, i: int, kind: str) -> Limit | None:
    if kind not in ("revolute", "prismatic"):
        return None
    q, v = model.joints[i].idx_q, model.joints[i].idx_v
    bounds = (
        model.lowerPositionLimit[q],
        model.upperPositionLimit[q],
        model.velocityLimit[v],
        model.effortLimit[v],
    )
    return Limit(*(float(x) if abs(x) < 1e16 else None for x in bounds))


def _dynamics(draft: Draft, model: Any, i: int) -> JointDynamics:
    """Rotor, damper and dry friction, where all rates of the joint have the same."""
    terms: dict[str, Any] = {}
    first = model.joints[i].idx_v
    for key in ("armature", "damping", "friction"):
        mine = np.ravel(getattr(model, key, ()))[first : first + model.joints[i].nv]
        if len(mine) and (mine != mine[0]).any():
            draft.ignore(key, f"joint {model.names[i]!r}")
        elif len(mine):
            terms[key] = float(mine[0])
    return JointDynamics(**terms)


def _inertial(inertia: Any) -> Inertial | None:
    if not inertia.mass and not np.any(inertia.inertia):
        return None
    return Inertial(float(inertia.mass), _vec(inertia.lever), _mat(inertia.inertia))


def _pose(placement: Any) -> tuple[Vec3, Mat3]:
    return _vec(placement.translation), _mat(placement.rotation)


def _vec(values: Any) -> Vec3:
    x, y, z = (float(x) for x in np.ravel(values))
    return (x, y, z) if (x, y, z) != ORIGIN else ORIGIN


def _mat(rows: Any) -> Mat3:
    a, b, c = (_vec(row) for row in np.asarray(rows))
    return (a, b, c)
