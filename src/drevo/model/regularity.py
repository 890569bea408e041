"""Tests if the mass matrix can be regular at all: a test of structure, made when a model is built.

M is singular for every q when a joint moves nothing that resists it, or when the joints on the two sides of a
massless link move what lies beyond in fewer ways than they have coordinates. Both are found here in linear
time; what depends on numbers further out shows itself later as a vanishing pivot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi
from typing import Any

import numpy as np

from ..errors import ModelError
from .description import Inertial, Joint, Link, Model, Vec3
from .draft import at, listed, refuse
from .rotations import from_axis_angle

Array = np.ndarray[Any, Any]

NULL_SHARE = 1e-9  # of the largest: a column or a singular value below this counts as zero
MOST_RUNS = 3000  # that are looked at; beyond them a vanishing pivot tells
NEEDS_MASS = ("prismatic", "cylindrical", "planar", "free")  # kinds that rotational inertia alone does not resist


_NO_TENSOR = Inertial().tensor


@dataclass(slots=True)
class _Group:
    """Links welded together: the part of the robot that one moving joint carries directly."""

    into: Joint | None  # the moving joint that carries it
    up: int  # the group that carries it
    links: list[Link] = field(default_factory=list)
    below: list[int] = field(default_factory=list)  # the groups that hang from it
    mass: float = 0.0
    turns: bool = False  # some link has a tensor
    all_mass: float = 0.0  # the same with everything outboard
    all_turns: bool = False
    loaded: int = 0  # how many of the groups that hang from it bear anything

    @property
    def bare(self) -> bool:
        return self.mass == 0.0 and not self.turns

    @property
    def all_bare(self) -> bool:
        return self.all_mass == 0.0 and not self.all_turns


def require_regular_structure(model: Model) -> None:
    """Refuse a model whose M is singular for every q, naming the joints and links."""
    refuse(model.source or f"robot {model.name!r}", singular(model))


def require_masses(model: Model, quantity: str) -> None:
    """Refuse what takes inertias of a robot that was described without any, for its kinematics."""
    bodies = (link.inertial for link in model.links)
    if model.nv and not any(body and (body.mass or body.tensor != _NO_TENSOR) for body in bodies):
        raise ModelError(
            f"{model.source or f'robot {model.name!r}'}: no link has a mass, which {quantity} needs; give the "
            "links <inertial> (poses, velocities, accelerations and Jacobians need none)"
        )


def singular(model: Model) -> list[str]:
    """One sentence for every cause, found by structure, that makes M singular for every q."""
    groups = _weld(model)
    unresisted = _unresisted(model, groups)
    return unresisted or _redundant(model, groups)


def _weld(model: Model) -> list[_Group]:
    """The groups, parents first."""
    links = {link.name: link for link in model.links}
    groups = [_Group(None, -1, [model.links[0]])]
    of = {model.root: 0}
    for joint in model.joints:
        parent_group = of[joint.parent]
        if joint.kind != "fixed":
            groups[parent_group].below.append(len(groups))
            groups.append(_Group(joint, parent_group))
            parent_group = len(groups) - 1
        of[joint.child] = parent_group
        groups[parent_group].links.append(links[joint.child])
    for group in reversed(groups):
        bodies = [link.inertial for link in group.links if link.inertial]
        group.mass = sum(body.mass for body in bodies)
        group.turns = any(body.tensor != _NO_TENSOR for body in bodies)
        group.all_mass += group.mass
        group.all_turns = group.all_turns or group.turns
        if group.up >= 0:  # what hangs on it is complete: groups come parents first
            carrier = groups[group.up]
            carrier.all_mass += group.all_mass
            carrier.all_turns = carrier.all_turns or group.all_turns
            carrier.loaded += not group.all_bare
    return groups


def _solid(group: _Group) -> bool:
    """Some link resists every motion."""
    return any(_resisting(link.inertial) for link in group.links if link.inertial)


def _resisting(body: Inertial) -> bool:
    """Mass, and inertia about every axis: all leading minors are positive, with room for rounding."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.tensor
    size = (xx + yy + zz) / 3
    whole = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return (
        body.mass > 0.0
        and xx > NULL_SHARE * size
        and xx * yy - xy * xy > NULL_SHARE * size**2
        and whole > NULL_SHARE * size**3
    )


def _rotor(joint: Joint) -> bool:
    """The rotor of the joint resists, whatever the joint moves."""
    return joint.dynamics is not None and joint.dynamics.reflected > 0.0


def _resists(group: _Group) -> bool:
    assert group.into
    return group.all_mass > 0.0 or (group.all_turns and group.into.kind not in NEEDS_MASS)


def _unresisted(model: Model, groups: list[_Group]) -> list[str]:
    """Coordinates that move nothing with mass; of joints in a row, the one nearest the base speaks."""
    felt = set()  # the joints whose coordinate moves something
    for group in groups[1:]:
        assert group.into
        if _resists(group) or _rotor(group.into):
            mimic = group.into.mimic
            felt.add(mimic.joint if mimic and mimic.multiplier else group.into.name)
    problems, spoken = [], [False] * len(groups)
    for k, group in enumerate(groups[1:], 1):
        assert group.into
        bad = group.into.mimic is None and group.into.name not in felt
        spoken[k] = spoken[group.up] or bad
        if bad and not spoken[group.up]:
            names = listed(_outboard(groups, k))
            lacking = "with inertia but without mass" if group.all_turns else "without mass"
            problems.append(
                f"{at(group.into)} of type {group.into.kind} moves only links {lacking} ({names}), so the "
                "mass matrix is singular for every q; give a mass and an inertia to what it moves, or make "
                "the joint fixed"
            )
    return problems


def _outboard(groups: list[_Group], k: int) -> list[str]:
    """The links of a group and of all that hang from it, walking over these alone."""
    reached = [k]
    for i in reached:
        reached += groups[i].below
    return [link.name for i in sorted(reached) for link in groups[i].links]


def _redundant(model: Model, groups: list[_Group]) -> list[str]:
    """Runs of joints through massless links that have more coordinates than ways to move their end."""
    coupled = {j.name for j in model.joints if j.mimic} | {j.mimic.joint for j in model.joints if j.mimic}
    into = {joint.child: joint for joint in model.joints}
    problems: list[str] = []
    doubted = 0
    for group in groups[1:]:
        if group.bare and group.loaded < 2:
            continue
        run = _run(groups, group, coupled)
        run = [joint for joint in run if not _rotor(joint)]
        if not run or (len(run) == 1 and (group.loaded or _solid(group))):  # one joint with something to move
            continue
        doubted += 1
        if doubted > MOST_RUNS:
            break
        if not _independent(run, group, into):
            problems.append(_redundant_sentence(run, group))
    return problems


def _run(groups: list[_Group], group: _Group, coupled: set[str]) -> list[Joint]:
    """The moving joints from a group inward, as long as nothing but massless links lies between them."""
    run: list[Joint] = []
    while group.into and sum(joint.nv for joint in run) <= 6:
        if group.into.name in coupled or group.into.formula:  # what also moves other parts, or as it likes
            return []
        run.append(group.into)
        group = groups[group.up]
        if not group.bare or group.loaded > 1:
            break
    return run


def _redundant_sentence(run: list[Joint], group: _Group) -> str:
    """The sentence that says which turn of a run of joints has no inertia."""
    end = f"{at(run[0])} of type {run[0].kind}"
    if len(run) == 1:
        return (
            f"{end} turns {listed(link.name for link in group.links)} about an axis about which it has no "
            "inertia, so the mass matrix is singular for every q; give it moments of inertia, or move its "
            "mass off the axis"
        )
    others = listed(joint.name for joint in run[1:])
    return (
        f"{end} and {others} move {listed(link.name for link in group.links)} in fewer ways than they have "
        "coordinates, and the links between them have no mass, so the mass matrix is singular for every q; "
        "give those links mass and inertia, or leave out a joint"
    )


def _independent(run: list[Joint], group: _Group, into: dict[str, Joint]) -> bool:
    """True if every motion of the run's coordinates costs energy, at a configuration that is not special."""
    if sum(joint.nv for joint in run) > 6:
        return False
    mass, com, tensor = _composite(group, into)
    weight = np.eye(6)
    if not group.loaded:  # the end of a limb: its own inertia must resist
        values, vectors = np.linalg.eigh(tensor)
        values = np.where(values > 1e-14 * max(values.sum(), 0.0), values, 0.0)
        weight[:3, :3] *= np.sqrt(mass)
        weight[3:, 3:] = np.sqrt(values)[:, None] * vectors.T
    columns = weight @ _motions(run, com, into)
    sizes = np.linalg.norm(columns, axis=0)
    scale = 1.0 if group.loaded else float(np.sqrt(mass + mass * com @ com + np.trace(tensor)))
    if not np.all(sizes > NULL_SHARE * scale):
        return False
    return bool(np.linalg.svd(columns / sizes, compute_uv=False)[-1] > NULL_SHARE)


def _composite(group: _Group, into: dict[str, Joint]) -> tuple[float, Array, Array]:
    """Mass, centre of mass and tensor about it, in the frame of the group's first link."""
    poses = {group.links[0].name: (np.eye(3), np.zeros(3))}
    bodies = []
    for link in group.links:
        if link.name not in poses:
            joint = into[link.name]
            turn, place = poses[joint.parent]
            poses[link.name] = (turn @ np.array(joint.rotation), place + turn @ np.array(joint.origin))
        turn, place = poses[link.name]
        body = link.inertial or Inertial()
        bodies.append((body.mass, place + turn @ np.array(body.com), turn @ np.array(body.tensor) @ turn.T))
    mass = sum(m for m, _, _ in bodies)
    com = sum((m * c for m, c, _ in bodies), np.zeros(3)) / (mass or 1.0)
    tensor = np.zeros((3, 3))
    for m, c, t in bodies:
        r = c - com
        tensor += t + m * (r @ r * np.eye(3) - np.outer(r, r))
    return mass, com, tensor


def _motions(run: list[Joint], com: Array, into: dict[str, Joint]) -> Array:
    """6 x k: velocity of the point `com` at the run's end, and angular velocity, per coordinate."""
    columns, turn, place = [], np.eye(3), com  # the pose of the end, seen from the frame that we have climbed to
    joint, stop = run[0], run[-1]
    while True:
        apart = np.array(joint.child_rotation)
        turn, place = apart @ turn, np.array(joint.child_origin) + apart @ place
        for linear, angular in _freedoms(joint):
            columns.append(np.concatenate([turn.T @ (linear + np.cross(angular, place)), turn.T @ angular]))
        moved, shift = _displacement(joint)
        turn, place = moved @ turn, shift + moved @ place
        fixed, origin = np.array(joint.rotation), np.array(joint.origin)
        turn, place = fixed @ turn, origin + fixed @ place
        if joint is stop:
            return np.array(columns).T
        joint = into[joint.parent]


def _freedoms(joint: Joint) -> list[tuple[Array, Array]]:
    """(linear, angular) velocity of the moved frame, in its own axes, per coordinate."""
    zero, axis, kind = np.zeros(3), np.array(joint.axis), joint.kind
    slide, turn = (axis, zero), (zero, axis)
    if kind == "fixed":
        return []
    if kind == "universal":
        axis2 = np.array(joint.axis2)
        carried = np.array(from_axis_angle(joint.axis2 or joint.axis, _TEST_ANGLES[1])).T @ axis
        return [(zero, carried), (zero, axis2)]
    if kind in ("spherical", "free"):
        turns = [(zero, e) for e in np.eye(3)]
        return turns if kind == "spherical" else [(e, zero) for e in np.eye(3)] + turns
    if kind == "planar":
        u, w = np.linalg.svd(axis[None])[2][1:]
        return [(u, zero), (w, zero), turn]
    screw = (axis * joint.lead / (2 * pi), axis)
    return {"prismatic": [slide], "cylindrical": [slide, turn], "helical": [screw]}.get(kind, [turn])


_TEST_ANGLES = (0.7390851, 1.1345903, 0.4501836)  # a configuration that no published robot singles out
_TEST_OFFSET: Vec3 = (0.3183099, 0.2018461, 0.1374082)


def _displacement(joint: Joint) -> tuple[Array, Array]:
    """Rotation and shift of the moved frame at the configuration that is not special."""
    axis, kind = joint.axis, joint.kind
    still, none = np.eye(3), np.zeros(3)
    if kind == "fixed":
        return still, none
    if kind == "universal":
        turn = np.array(from_axis_angle(axis, _TEST_ANGLES[0])) @ np.array(
            from_axis_angle(joint.axis2 or axis, _TEST_ANGLES[1])
        )
        return turn, none
    if kind in ("spherical", "free"):
        return np.array(from_axis_angle(_TEST_ANGLES, 0.9)), np.array(_TEST_OFFSET) if kind == "free" else none
    spun = still if kind == "prismatic" else np.array(from_axis_angle(axis, _TEST_ANGLES[0]))
    if kind == "planar":
        u, w = np.linalg.svd(np.array(axis)[None])[2][1:]
        return spun, _TEST_OFFSET[0] * u + _TEST_OFFSET[1] * w
    along = {
        "prismatic": _TEST_OFFSET[0],
        "cylindrical": _TEST_OFFSET[1],
        "helical": joint.lead * _TEST_ANGLES[0] / (2 * pi),
    }
    return spun, along.get(kind, 0.0) * np.array(axis)
