"""The wrench inside every joint: what each parent exerts on its link."""

from __future__ import annotations

from ..scalar import Matrix, Vector
from ..tree import Tree
from . import inverse_dynamics as idyn
from .kinematics import body_poses, moving_links


def joint_wrenches(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    frame: str = "local_world_aligned",
    external: idyn.External | None = None,
) -> Matrix:
    """Force and moment of the parent on every moving link, (moving links, 6); gravity is in.

    About the origin of the link's own frame, after the joint's motion; frame "local" (its axes) or
    "local_world_aligned" (world axes); "world" is about the world's origin. A joint of several steps passes
    through massless bodies, so the wrench on its last body is that of the parent.
    """
    wrenches, _ = idyn.body_wrenches(tree, q, v, a, external)
    poses = body_poses(tree, q) if frame != "local" else []
    rows: Matrix = []
    for link in moving_links(tree):
        at = tree.frames[link]
        f = wrenches[at.body]
        R = poses[at.body].R if poses else at.R.T
        force, moment = R @ f.f, R @ (f.n - at.p.cross(f.f))
        if frame == "world":
            moment = moment + poses[at.body].compose(at.R, at.p).p.cross(force)
        rows.append([*force, *moment])
    return rows
