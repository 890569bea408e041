"""Robots from another link: joints on the way to it are turned round, and states are carried over.

The child of a joint stands in its parent as O X(q) C: placement, motion, placement of the child. Seen from the
child the parent stands as C^-1 X(q)^-1 O^-1, where X^-1 of a hinge, slide or screw is the motion about -axis, of a
ball or free joint the inverse pose, and of a universal joint the two axes in the other order. Telegin takes the
standing foot for the base in single support, Kovalchuk the foot or the trunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, one_of
from ..io.given import Array
from ..mechanics.configuration import state
from ..model.base import TRUNK
from ..model.description import IDENTITY, ORIGIN, Joint, Model, Vec3
from ..model.draft import listed
from ..model.regularity import require_regular_structure
from ..model.rotations import inverse_pose, quaternion_of

HINGE_KINDS = ("revolute", "continuous")
PLANAR_TOLERANCE = 1e-9  # m, or of a rotation matrix: how far a link may leave what the joints of the base allow
REVERSIBLE = ("fixed", *HINGE_KINDS, "prismatic", "helical", "cylindrical", "universal", "spherical", "free")


class StateMaps:
    """The maps of states between a robot and the same robot with its base at another link."""

    def __init__(self, source: Any, target: Any, link: str) -> None:
        chain, path = base_and_path(source.model, link)
        self.forth = _Map(source, target, link, chain, path)
        self.back = _Map(target, source, path[0].parent if path else link, chain, path)


def rerooted_model(model: Model, link: str) -> Model:
    """The model with its base at another link, but for keyframes and the initial configuration."""
    chain, path = base_and_path(model, link)
    return _rerooted(model, link, chain, path)


def with_configurations(model: Model, q: Callable[[ArrayLike], Array]) -> Model:
    """The model with its keyframes and its initial configuration carried over."""
    keyframes = tuple(replace(key, q=tuple(q(key.q).tolist())) for key in model.keyframes)
    return replace(model, keyframes=keyframes, initial=model.initial and tuple(q(model.initial).tolist()))


# --- the description ---------------------------------------------------------------------------------------------


def base_and_path(model: Model, link: str) -> tuple[list[Joint], list[Joint]]:
    """The joints that carry the base in the world, none of a fixed one, and those from there down to the link."""
    links = {x.name: x for x in model.links}
    if not isinstance(link, str) or link not in links:
        one_of(f"rerooted: of robot {model.name!r} the link", link, links, InputError)
    carrier = {joint.child: joint for joint in model.joints}
    way: list[Joint] = []
    while link in carrier:
        way.append(carrier[link])
        link = way[-1].parent
    way.reverse()
    count = next((n for n in (1, 3, 6) if _carries_base(model, way[:n], n)), 0)
    return way[:count], way[count:]


def _carries_base(model: Model, chain: Sequence[Joint], count: int) -> bool:
    """The joints carry nothing but one body, free, in a plane (two slides, then a hinge across) or on a trunk."""
    bare = {link.name for link in model.links if not link.inertial}
    if len(chain) != count or any(joint.parent not in bare for joint in chain):
        return False
    if any(sum(j.parent == joint.parent for j in model.joints) > 1 for joint in chain[1:]):
        return False
    shape = tuple((joint.kind, joint.axis) for joint in chain)
    if count == 3:
        slides, hinge = np.array([axis for _, axis in shape[:2]]), shape[2][1]
        plane = np.abs(slides @ hinge).max() < PLANAR_TOLERANCE and np.linalg.matrix_rank(slides) == 2
        return plane and [kind for kind, _ in shape[:2]] == ["prismatic"] * 2 and shape[2][0] in HINGE_KINDS
    return shape[0][0] == "free" if count == 1 else shape == TRUNK


def _rerooted(model: Model, link: str, chain: list[Joint], path: list[Joint]) -> Model:
    _require_reversible(model, link, chain, path)
    turned = {joint.name: _reversed(joint) for joint in path}
    if chain and path:
        turned[chain[-1].name] = replace(chain[-1], child=link, child_origin=ORIGIN, child_rotation=IDENTITY)
    root = model.root if chain else link
    joints = _depth_first(root, [turned.get(joint.name, joint) for joint in model.joints], path)
    order = sorted(model.links, key=lambda x: x.name != root)
    other = replace(model, links=tuple(order), joints=tuple(joints))
    require_regular_structure(other)
    return other


def _require_reversible(model: Model, link: str, chain: list[Joint], path: list[Joint]) -> None:
    which = f"rerooted: robot {model.name!r} at {link!r}"
    moving = [joint for joint in path if joint.kind != "fixed"]
    root = next(x for x in model.links if x.name == (path[0].parent if path else link))
    if moving and not chain and not root.inertial:
        raise InputError(
            f"{which}: its base {root.name!r} would become a body that moves, and it has no mass; load the robot "
            "with base='floating' or give the base an inertia"
        )
    for joint in moving:
        d = joint.dynamics
        if joint.kind not in REVERSIBLE:
            raise InputError(f"{which}: joint {joint.name!r} on the way is {joint.kind}, whose motion seen from "
                             "its child has no joint; take a chain of slides and hinges for it")  # fmt: skip
        if d and d.rotor_axis is not None:
            raise InputError(f"{which}: joint {joint.name!r} on the way has a rotor that its parent carries; give "
                             "armature in place of rotor_axis")  # fmt: skip
        if d and joint.turns and (joint.kind == "free" or any((d.friction, d.quadratic, d.cubic, d.offset))):
            raise InputError(f"{which}: joint {joint.name!r} on the way is {joint.kind} and has forces along axes "
                             "that turn with its child; leave them out")  # fmt: skip
    turned = {joint.name for joint in moving if joint.turns or joint.kind == "universal"}
    if driven := [x.name for x in model.actuators if x.joint in turned]:
        raise InputError(f"{which}: {listed(driven)} drive joints with several axes on the way; leave them out")


def _reversed(joint: Joint) -> Joint:
    """The joint that carries the parent in the child: coordinates of one axis keep their numbers."""
    origin, rotation = inverse_pose((joint.child_origin, joint.child_rotation))
    child_origin, child_rotation = inverse_pose((joint.origin, joint.rotation))
    if joint.kind == "fixed":  # a weld has one placement alone
        (origin, rotation), child_origin, child_rotation = (
            inverse_pose((joint.origin, joint.rotation)),
            ORIGIN,
            IDENTITY,
        )
    axis, axis2, dynamics = _negative(joint.axis), joint.axis2, joint.dynamics
    if axis2 is not None:
        axis, axis2 = _negative(axis2), axis
    if dynamics and dynamics.rest:
        x, y, z, w = dynamics.rest
        dynamics = replace(dynamics, rest=(-x, -y, -z, w))
    return replace(
        joint, parent=joint.child, child=joint.parent, origin=origin, rotation=rotation, axis=axis, axis2=axis2,
        child_origin=child_origin, child_rotation=child_rotation, dynamics=dynamics,
    )  # fmt: skip


def _negative(axis: Vec3) -> Vec3:
    x, y, z = axis
    return (0.0 - x, 0.0 - y, 0.0 - z)


def _depth_first(root: str, joints: Sequence[Joint], path: Sequence[Joint]) -> list[Joint]:
    """The joints in the order of the new tree, depth first; those below a link keep their order."""
    below: dict[str, list[Joint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    stack, order = list(reversed(below.get(root, []))), []
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(below.get(order[-1].child, [])))
    return order


# --- states ----------------------------------------------------------------------------------------------------


class _Map:
    """Carries states of one robot to another that differs in the place of its base."""

    def __init__(self, source: Any, target: Any, link: str, chain: list[Joint], path: list[Joint]) -> None:
        self.source, self.target, self.link = source, target, link
        self.chain = [j for j in target.model.joints if j.name in {c.name for c in chain}] if path else []
        self.path = {joint.name for joint in path}
        places = {j.name: (sq, sv) for j, sq, sv in target.model.slices()}
        self.parts = [(j, sq, sv, *places[j.name]) for j, sq, sv in source.model.slices()]

    def __call__(self, q: ArrayLike, v: ArrayLike | None) -> tuple[Array, Array]:
        given = {"q": q} if v is None else {"q": q, "v": v}
        arrays = state(self.source.model, "map", **given)
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        old_q = np.broadcast_to(arrays[0], (*shape, self.source.nq))
        old_v = (
            np.zeros((*shape, self.source.nv))
            if v is None
            else np.broadcast_to(arrays[1], (*shape, self.source.nv))
        )
        new_q, new_v = np.empty((*shape, self.target.nq)), np.empty((*shape, self.target.nv))
        for joint, sq, sv, tq, tv in self.parts:
            turn = _turned if joint.name in self.path else _same
            new_q[..., tq], new_v[..., tv] = turn(joint, old_q[..., sq], old_v[..., sv])
        if self.chain:
            self._place(old_q, old_v, new_q, new_v)
        return new_q, new_v

    def _place(self, old_q: Array, old_v: Array, q: Array, v: Array) -> None:
        """Puts the base where its link is in the source, with its velocity."""
        last, n = self.chain[-1], len(self.chain)
        pose = np.asarray(self.source.pose(old_q, self.link))
        twist = np.asarray(self.source.velocity(old_q, old_v, self.link))
        R = pose[..., :3, :3] @ np.asarray(last.child_rotation).T  # of the joint's frame, which carries the link
        off = -_apply(R, np.asarray(last.child_origin))
        p = pose[..., :3, 3] + off
        if last.kind == "free":
            linear = twist[..., :3] + np.cross(twist[..., 3:], off)
            _place_free(last, R, p, linear, twist[..., 3:], q, v)
            return
        q[..., :n] = _coordinates(self.target.model.name, self.chain, R, p)
        J = np.asarray(self.target.jacobian(q, self.link))[..., :n]
        v[..., :n] = _apply(np.linalg.pinv(J), twist)
        miss = np.abs(_apply(J, v[..., :n]) - twist).max(initial=0.0)
        if miss > PLANAR_TOLERANCE * (1.0 + np.abs(twist).max(initial=0.0)):
            raise InputError(f"map: link {self.link!r} moves as the joints of the base cannot, by {miss:.3g} m/s")


def _same(joint: Joint, q: Array, v: Array) -> tuple[Array, Array]:
    return q, v


def _turned(joint: Joint, q: Array, v: Array) -> tuple[Array, Array]:
    """Coordinates and rates of a joint that is turned round."""
    if joint.kind == "universal":
        return q[..., ::-1], v[..., ::-1]
    if not joint.turns:
        return q, v
    R = _matrix(q[..., -4:])
    conjugate = q[..., -4:] * (-1.0, -1.0, -1.0, 1.0)
    w = -_apply(R, v[..., -3:])
    if joint.kind == "spherical":
        return conjugate, w
    p = q[..., :3]
    back = -_apply(np.swapaxes(R, -1, -2), p)
    return np.concatenate([back, conjugate], -1), np.concatenate([np.cross(p, w) - _apply(R, v[..., :3]), w], -1)


def _place_free(joint: Joint, R: Array, p: Array, linear: Array, angular: Array, q: Array, v: Array) -> None:
    """Coordinates of a free joint: the pose in its frame, and the velocity in the axes that it carries."""
    frame = np.asarray(joint.rotation)
    q[..., :3] = (p - joint.origin) @ frame
    q[..., 3:7] = _quaternions(frame.T @ R)
    back = np.swapaxes(R, -1, -2)
    v[..., :3], v[..., 3:6] = _apply(back, linear), _apply(back, angular)


def _coordinates(name: str, chain: Sequence[Joint], R: Array, p: Array) -> Array:
    """Coordinates of slides and a hinge, or of a trunk, that bring its frame to R and p."""
    if any(j.rotation != IDENTITY for j in chain[1:]) or any(any(j.origin) for j in chain[1:]):
        raise InputError(
            f"map: the joints of the base of robot {name!r} do not stand in one frame; put them there"
        )
    frame = np.asarray(chain[0].rotation)
    R, p = frame.T @ R, (p - np.asarray(chain[0].origin)) @ frame
    axes = np.array([j.axis for j in chain if j.kind == "prismatic"]).T
    slides = p @ np.linalg.pinv(axes).T
    if len(chain) == 3:
        axis = np.asarray(chain[2].axis)
        angles = [_angle(R, axis)]
        left = np.abs(_rotation(axis, angles[0]) - R).max(initial=0.0)
    else:
        angles = [
            np.arctan2(R[..., 1, 0], R[..., 0, 0]),
            np.arcsin(np.clip(-R[..., 2, 0], -1.0, 1.0)),
            np.arctan2(R[..., 2, 1], R[..., 2, 2]),
        ]
        left = 0.0
    left = max(left, np.abs(slides @ axes.T - p).max(initial=0.0))
    if left > PLANAR_TOLERANCE * (1.0 + np.abs(p).max(initial=0.0)):
        raise InputError(f"map: the link leaves the plane of the base of robot {name!r}, by {left:.3g} m or rad")
    return np.concatenate([slides, *(x[..., None] for x in angles)], -1)


def _angle(R: Array, axis: Array) -> Array:
    """The angle about an axis of a rotation about it, from R - R^T and the trace."""
    skew = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    angle: Array = np.arctan2(skew @ axis, np.trace(R, axis1=-2, axis2=-1) - 1.0)
    return angle


def _rotation(axis: Array, angle: Array) -> Array:
    half = 0.5 * angle[..., None]
    return _matrix(np.concatenate([np.sin(half) * axis, np.cos(half)], -1))


def _matrix(quaternion: Array) -> Array:
    x, y, z, w = np.moveaxis(quaternion, -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _quaternions(R: Array) -> Array:
    flat = [quaternion_of(tuple(map(tuple, x))) for x in R.reshape(-1, 3, 3).tolist()]  # type: ignore[arg-type]
    return np.asarray(flat).reshape(*R.shape[:-2], 4)


def _apply(R: Array, x: Array) -> Array:
    return (R @ x[..., None])[..., 0]
