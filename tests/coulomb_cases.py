"""Robots that touch the plane z = 0 at points and spheres, under Coulomb's law; problems from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from drevo.contact.laws.exact.problem import TouchingRobot, joint_rows
from drevo.mechanics.algorithms.boxes import Proximity
from drevo.mechanics.algorithms.coulomb import ContactLaw, ImpulseProblem
from drevo.mechanics.algorithms.delassus import ContactSlot, MoreauStep
from drevo.mechanics.algorithms.kinematics import Pose
from drevo.mechanics.scalar import Scalar, Vector
from drevo.mechanics.spatial import UNIT_VECS, Mat, Vec
from drevo.mechanics.tree import Tree
from drevo.model.description import Model

Array = np.ndarray[Any, Any]
GROUND = Mat(UNIT_VECS[2], UNIT_VECS[1], -UNIT_VECS[0])  # normal and tangents of the plane


def touching_robot(
    model: Model, slots: Sequence[ContactSlot], stepping: MoreauStep, limits: bool = True
) -> TouchingRobot:
    """With the limits and the dry friction of its joints."""
    return TouchingRobot(model, tuple(slots), joint_rows(model, limits), stepping)


def on_plane(tree: Tree, link: str, point: Vector, mu: Scalar, radius: Scalar = 0.0) -> ContactSlot:
    """A sphere about a point of a link, which may touch the plane z = 0; a point where it has no radius."""
    frame = tree.frames[link]
    at = frame.p + frame.R @ Vec(*point)
    return ContactSlot((-1, frame.body), partial(_above, frame.body, at, radius), mu)


def _above(body: int, at: Vec, radius: Scalar, poses: Mapping[int, Pose]) -> Proximity:
    here = poses[body]
    centre = here.p + here.R @ at
    gap = centre.z - radius
    return Proximity(gap, Vec(centre.x, centre.y, 0.5 * gap), GROUND)


def problem_of(G: Array, b: Array, mu: Array) -> ImpulseProblem:
    """Of contacts alone, on arrays (B, n, n), (B, n), (B, n / 3)."""
    n = G.shape[-1]
    laws = [ContactLaw(3 * k, mu[:, k]) for k in range(n // 3)]
    return ImpulseProblem([[G[:, i, j] for j in range(n)] for i in range(n)], [b[:, i] for i in range(n)], laws)
