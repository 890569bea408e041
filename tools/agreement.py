"""How far a robot's dynamics are from those of the library that its format is made for, file by file.

M, the bias and the poses of all links at STATES random states, relative to the largest: MJCF beside MuJoCo, URDF
beside Pinocchio, SDF beside Drake. Peers are imported when a file needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drevo.mechanics.algorithms import inverse_dynamics, kinematics
from drevo.mechanics.algorithms.inertia_matrix import mass_matrix
from drevo.mechanics.algorithms.passive import passive, passive_tree
from drevo.mechanics.configuration import random
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Joint, Mimic, Model
from drevo.model.rotations import matrix_of_quaternion

STATES = 20
Array = np.ndarray[Any, Any]


class NotForUs(Exception):
    """The peer does not read the file, or nothing moves in it."""


def relative(found: Array, wanted: Array, size: float = 0.0) -> float:
    size = max(size, float(np.abs(wanted).max(initial=0.0)))
    return float(np.abs(found - wanted).max(initial=0.0)) / (size or 1.0)


# --- MJCF beside MuJoCo ------------------------------------------------------------------------------------------


def mujoco_models(path: str) -> Iterator[tuple[str, Any]]:
    """The one model of an MJCF file."""
    import mujoco

    try:
        theirs = mujoco.MjModel.from_xml_path(path)
    except ValueError as error:
        raise NotForUs("not read by the peer") from error
    if not theirs.njnt:
        raise NotForUs("without joints")
    yield "", theirs


def compared(ours: Model, theirs: Any, whole: bool = True) -> float:
    """The worst relative difference to MuJoCo; infinite where the joints are others.

    whole: passive forces too, without what are constraints there: dry friction and the limits of tendons.
    """
    import mujoco

    if (ours.nq, ours.nv) != (theirs.nq, theirs.nv):
        return float("inf")
    joints = (replace(j, dynamics=j.dynamics and replace(j.dynamics, friction=0.0)) for j in ours.joints)
    held = {"friction": 0.0, "limit_stiffness": 0.0, "limit_damping": 0.0}
    smooth = replace(ours, joints=tuple(joints), tendons=tuple(replace(tendon, **held) for tendon in ours.tendons))
    tree, data, rng = passive_tree(smooth), mujoco.MjData(theirs), np.random.default_rng(0)
    return max(_difference(tree, theirs, data, rng, whole) for _ in range(STATES))


def _difference(tree: Tree, theirs: Any, data: Any, rng: Any, whole: bool) -> float:
    import mujoco

    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M)
    q, turns, shift = states(theirs, data)
    v = turns.T @ data.qvel
    own = np.array(mass_matrix(tree, list(q)))
    bias = np.array(inverse_dynamics.bias(tree, list(q), list(v)))
    bias = turns @ (bias + (own - np.diag(theirs.dof_armature)) @ shift)  # a rotor's inertia does not turn with it
    own = turns @ own @ turns.T
    poses = dict(zip(kinematics.moving_links(tree), kinematics.poses(tree, list(q))))
    apart = [
        np.abs(np.array(poses[name])[:3, 3] - data.xpos[i]).max()
        + np.abs(np.array(poses[name])[:3, :3] - data.xmat[i].reshape(3, 3)).max()
        for i in range(1, theirs.nbody)
        if (name := theirs.body(i).name) in poses
    ]
    size = max(1.0, np.abs(data.xpos).max())
    worst = max(apart, default=0.0) / size
    if whole:
        acts = turns @ np.array(passive(tree, list(q), list(v)))
        worst = max(worst, relative(acts, data.qfrc_passive, np.abs(data.qfrc_bias).max()))
    return float(max(worst, relative(own, M), relative(bias, data.qfrc_bias, np.abs(M).max())))


def states(theirs: Any, data: Any) -> tuple[Array, Array, Array]:
    """q with quaternions xyzw; v_theirs = turns v_ours; what the turning axes of a free joint add to a_ours."""
    import mujoco

    q, turns, shift = data.qpos.copy(), np.eye(theirs.nv), np.zeros(theirs.nv)
    for kind, at, dof in zip(theirs.jnt_type, theirs.jnt_qposadr, theirs.jnt_dofadr):
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            q[at : at + 4] = np.roll(q[at : at + 4], -1)
        elif kind == mujoco.mjtJoint.mjJNT_FREE:
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, q[at + 3 : at + 7])
            R = R.reshape(3, 3)
            q[at + 3 : at + 7] = np.roll(q[at + 3 : at + 7], -1)
            turns[dof : dof + 3, dof : dof + 3] = R
            shift[dof : dof + 3] = -np.cross(data.qvel[dof + 3 : dof + 6], R.T @ data.qvel[dof : dof + 3])
    return q, turns, shift


# --- URDF beside Pinocchio ---------------------------------------------------------------------------------------


def pinocchio_models(path: str) -> Iterator[tuple[str, Any]]:
    """The one model of a URDF file."""
    import pinocchio

    try:
        theirs = pinocchio.buildModelFromUrdf(path)
    except (ValueError, RuntimeError, IndexError) as error:
        raise NotForUs("not read by the peer") from error
    if theirs.njoints < 2:
        raise NotForUs("without joints")
    yield "", theirs


def beside_pinocchio(ours: Model, theirs: Any) -> float:
    """The worst relative difference to Pinocchio."""
    import pinocchio as pin

    data = theirs.createData()
    theirs.gravity.linear = np.array(ours.gravity)
    if {joint.name for joint in ours.joints if joint.kind != "fixed"} != set(theirs.names[1:]):
        return float("inf")

    def place(joint: Joint, value: Array, rate: Array) -> Place:
        one = theirs.joints[theirs.getJointId(joint.name)]
        block, shift = np.eye(one.nv), np.zeros(one.nv)
        if joint.kind == "planar":  # its rates are in the axes of the moved frame
            c, s = np.cos(value[2]), np.sin(value[2])
            block = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
            shift = rate[2] * np.array([[-s, c, 0.0], [-c, -s, 0.0], [0.0, 0.0, 0.0]]) @ rate
            value = np.array([value[0], value[1], c, s])
        elif one.nq == 2:
            value = np.array([np.cos(value[0]), np.sin(value[0])])
        return Place(
            slice(one.idx_q, one.idx_q + one.nq), value, slice(one.idx_v, one.idx_v + one.nv), block, shift
        )

    def theirs_at(x: Array, v: Array, a: Array) -> tuple[Array, Array, dict[str, Array]]:
        M = np.triu(pin.crba(theirs, data, x))
        bias = pin.rnea(theirs, data, x, v, a)
        pin.framesForwardKinematics(theirs, data, x)
        frames = (frame for frame in theirs.frames if frame.type == pin.FrameType.BODY)
        poses = {frame.name: data.oMf[theirs.getFrameId(frame.name, frame.type)].homogeneous for frame in frames}
        return M + np.triu(M, 1).T, bias, poses

    return _worst(ours, theirs.nq, theirs.nv, place, theirs_at)


class Place(NamedTuple):
    """A joint's coordinates in the peer's: where they stand, v = block v_ours, a = block a_ours + shift."""

    q: slice
    value: Array
    v: slice
    block: Array
    shift: Array


def _worst(
    ours: Model,
    nq: int,
    nv: int,
    place: Callable[[Joint, Array, Array], Place],
    theirs_at: Callable[[Array, Array, Array], tuple[Array, Array, dict[str, Array]]],
) -> float:
    """The worst relative difference to a peer to which every mimic joint is one of its own."""
    rng, tree, worst = np.random.default_rng(0), build_tree(ours), 0.0
    slices = {joint.name: (sq, sv) for joint, sq, sv in ours.slices()}
    names = kinematics.moving_links(tree)
    for _ in range(STATES):
        q, v = random(ours, rng), rng.normal(size=ours.nv)
        x, a, G = np.zeros(nq), np.zeros(nv), np.zeros((nv, ours.nv))
        for joint in (joint for joint in ours.joints if joint.kind != "fixed"):
            mimic = joint.mimic or Mimic(joint.name)
            sq, sv = slices[mimic.joint]
            at = place(joint, mimic.multiplier * q[sq] + mimic.offset, mimic.multiplier * v[sv])
            x[at.q], a[at.v], G[at.v, sv] = at.value, at.shift, mimic.multiplier * at.block
        M, bias, poses = theirs_at(x, G @ v, a)
        M, bias = G.T @ M @ G, G.T @ bias
        here = dict(zip(names, kinematics.poses(tree, list(q)), strict=True))
        apart = [relative(np.array(here[name])[:3], pose[:3], 1.0) for name, pose in poses.items() if name in here]
        found = np.array(inverse_dynamics.bias(tree, list(q), list(v)))
        own = np.array(mass_matrix(tree, list(q)))
        worst = max(worst, *apart, relative(own, M), relative(found, bias, np.abs(M).max()))
    return float(worst)


# --- SDF beside Drake --------------------------------------------------------------------------------------------


def drake_models(path: str) -> Iterator[tuple[str, Any]]:
    """The models of an SDF file that have moving joints, each by its name."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    parser = Parser(plant)
    try:
        for folder in Path(path).parents[:3]:
            parser.package_map().PopulateFromFolder(str(folder))
        if path.endswith(".sdf"):
            parser.AddModels(path)
        else:  # Drake goes by the ending
            parser.AddModelsFromString(Path(path).read_text(encoding="utf-8"), "sdf")
        plant.Finalize()
    except (RuntimeError, ValueError) as error:
        raise NotForUs("not read by the peer") from error
    found = [_drake_name(plant, joint.child_body())[0] for joint in _drake_joints(plant)]
    if not found:
        raise NotForUs("without joints")
    yield from ((name, (name, plant)) for name in dict.fromkeys(found))


def _drake_joints(plant: Any) -> list[Any]:
    """The joints that move; those with seven coordinates are bodies that nothing holds."""
    joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
    return [joint for joint in joints if joint.num_velocities() in (1, 2, 3)]


def _drake_name(plant: Any, body: Any) -> tuple[str, str]:
    """The model at the top that a body is in, and its name there."""
    top, _, inner = plant.GetModelInstanceName(body.model_instance()).partition("::")
    return top, f"{inner}::{body.name()}" if inner else body.name()


def beside_drake(ours: Model, theirs: tuple[str, Any]) -> float:
    """The worst relative difference to Drake; what stands on a free base stands still there."""
    from pydrake.math import RollPitchYaw, RotationMatrix
    from pydrake.multibody.tree import BodyIndex

    name, plant = theirs
    joints = {}  # by the links that they join: Drake calls a joint by the model that its child is in
    for joint in _drake_joints(plant):
        if _drake_name(plant, joint.child_body())[0] == name:
            ends = (_drake_name(plant, body)[1] for body in (joint.parent_body(), joint.child_body()))
            joints[frozenset(ends)] = joint
    fixed = {joint.name: frozenset((joint.parent, joint.child)) for joint in ours.joints if joint.kind != "fixed"}
    if set(fixed.values()) != set(joints):
        return float("inf")
    context = plant.CreateDefaultContext()
    plant.mutable_gravity_field().set_gravity_vector(np.array(ours.gravity))
    start = plant.GetPositions(context)
    everything = map(plant.get_body, map(BodyIndex, range(plant.num_bodies())))
    named = ((_drake_name(plant, body), body) for body in everything)
    bodies = {inner: body for (top, inner), body in named if top == name}

    def place(joint: Joint, value: Array, rate: Array) -> Place:
        one = joints[fixed[joint.name]]
        block = np.eye(one.num_velocities())
        if joint.kind == "spherical":  # its rates are in the axes of the parent
            R = matrix_of_quaternion(*value)
            value, block = RollPitchYaw(RotationMatrix(np.array(R))).vector(), np.array(R)
        q, v = one.position_start(), one.velocity_start()
        return Place(
            slice(q, q + one.num_positions()),
            value,
            slice(v, v + one.num_velocities()),
            block,
            np.zeros(len(block)),
        )

    def theirs_at(x: Array, v: Array, a: Array) -> tuple[Array, Array, dict[str, Array]]:
        at = start.copy()
        for joint in joints.values():
            part = slice(joint.position_start(), joint.position_start() + joint.num_positions())
            at[part] = x[part]
        plant.SetPositions(context, at)
        plant.SetVelocities(context, v)
        M = plant.CalcMassMatrix(context)
        bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context) + M @ a
        poses = {key: plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4() for key, body in bodies.items()}
        return M, bias, poses

    return _worst(ours, plant.num_positions(), plant.num_velocities(), place, theirs_at)


PEERS = {
    "mujoco": ("MJCF", "MuJoCo", mujoco_models, compared),
    "robot": ("URDF", "Pinocchio", pinocchio_models, beside_pinocchio),
    "sdf": ("SDF", "Drake", drake_models, beside_drake),
}
