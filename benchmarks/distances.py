"""Distances of two solids in random placements beside MuJoCo's and coal's, and the gap along the normal.

python benchmarks/distances.py [COUNT]: for each pair of kinds COUNT placements (100,000), of which peers that are
installed do a fifth. Outside all are one number; inside any way out is one, and the shortest is right.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import drevo

SIZES = {"sphere": (0.12,), "capsule": (0.08, 0.17), "cylinder": (0.2, 0.06), "box": (0.09, 0.21, 0.13)}
SPREAD = 0.35  # m: of the second solid about the first
PEER_SHARE = 5  # one placement in so many goes to a peer
Array = np.ndarray[Any, Any]


def scene(a: str, b: str) -> str:
    bodies = (
        f'<body name="{name}"><freejoint/><geom name="{name}" type="{kind}" size="{sizes}"/></body>'
        for name, kind, sizes in ((x, y, " ".join(map(str, SIZES[y]))) for x, y in (("first", a), ("second", b)))
    )
    options = '<option ccd_tolerance="1e-13" ccd_iterations="500"/>'
    return f"<mujoco>{options}<worldbody>{''.join(bodies)}</worldbody></mujoco>"


def reach(kind: str, R: Array, n: Array) -> Array:
    """How far a solid reaches along n from its centre."""
    d, size = np.einsum("bji,bj->bi", R, n), SIZES[kind]
    if kind == "box":
        return np.abs(d) @ np.array(size)  # type: ignore[no-any-return]
    flat = np.hypot(d[:, 0], d[:, 1]) if kind == "cylinder" else 1.0
    return size[0] * flat + (size[1] * np.abs(d[:, 2]) if len(size) > 1 else 0.0)  # type: ignore[no-any-return]


def by_mujoco(mujoco: Any, kinds: tuple[str, str], q: Array, poses: list[Array]) -> Array:
    model = mujoco.MjModel.from_xml_string(scene(*kinds))
    data, out = mujoco.MjData(model), []
    for row in q:
        data.qpos[:] = row[[0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 13, 10, 11, 12]]
        mujoco.mj_kinematics(model, data)
        out.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, np.zeros(6)))
    return np.array(out)


def by_coal(coal: Any, kinds: tuple[str, str], q: Array, poses: list[Array]) -> Array:
    make: dict[str, Callable[..., Any]] = {
        "sphere": coal.Sphere,
        "capsule": lambda r, half: coal.Capsule(r, 2 * half),
        "cylinder": lambda r, half: coal.Cylinder(r, 2 * half),
        "box": lambda *halves: coal.Box(*(2 * x for x in halves)),
    }
    first, second = (make[kind](*SIZES[kind]) for kind in kinds)
    request, out = coal.DistanceRequest(), []
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 500
    for A, B in zip(*poses):
        at = (coal.Transform3s(P[:3, :3], P[:3, 3]) for P in (A, B))
        a, b = at
        out.append(coal.distance(first, a, second, b, request, coal.DistanceResult()))
    return np.array(out)


def measure(kinds: tuple[str, str], count: int) -> str:
    robot, rng = drevo.load(scene(*kinds)), np.random.default_rng(1)
    q = robot.random(rng, count)
    q[:, :3], q[:, 7:10] = 0.0, rng.normal(scale=SPREAD, size=(count, 3))
    pairs = [("first", "second")]
    robot.distance(q[:8], pairs)
    begin = time.perf_counter()
    (names,), distances, _, normals = robot.distance(q, pairs)
    spent = time.perf_counter() - begin
    d, n = distances[:, 0], normals[:, 0] * (1.0 if names[0] == "first" else -1.0)
    poses = [robot.pose(q, link) for link in ("first", "second")]
    way = ((poses[1][:, :3, 3] - poses[0][:, :3, 3]) * n).sum(1)
    gap = way - sum(reach(kind, P[:, :3, :3], n) for kind, P in zip(kinds, poses))
    line = f"{'-'.join(kinds):18} {1e6 * spent / count:6.1f} us, gap along the normal {np.abs(gap - d).max():.0e}"
    few = count // PEER_SHARE
    for name, peer in (("mujoco", by_mujoco), ("coal", by_coal)):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        begin = time.perf_counter()
        theirs = peer(module, kinds, q[:few], [P[:few] for P in poses])
        each = 1e6 * (time.perf_counter() - begin) / few
        error, out = d[:few] - theirs, d[:few] > 0.0
        outside, deeper = np.abs(error[out]).max(), -error[~out].min()
        line += f"; {name} {each:.0f} us, outside {outside:.0e}, ours deeper by {deeper:.0e}"
    return line


if __name__ == "__main__":
    placements = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for chosen in combinations_with_replacement(SIZES, 2):
        print(measure(chosen, placements), flush=True)
