"""Distances, points and frames of every pair of solids, against MuJoCo on random placements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import Expr, Graph
from drevo.mechanics.algorithms.boxes import NO_PLACE, PlacedGeom, Proximity
from drevo.mechanics.algorithms.colliders import PAIR_RULES, between, on_ground, places
from drevo.mechanics.spatial import Mat, Vec
from drevo.model.pairing import TOUCHING_PAIRS

mujoco = pytest.importorskip("mujoco")

SIZES = {"plane": (1.0, 1.0, 1.0), "sphere": (0.2,), "capsule": (0.1, 0.3), "cylinder": (0.25, 0.15)}
SIZES |= {"box": (0.1, 0.2, 0.3), "ellipsoid": (0.1, 0.2, 0.3)}
SIZE_COUNTS = {"plane": 0, "sphere": 1, "box": 3, "ellipsoid": 3}  # of the others two
TOUCHING = [pair for pair in PAIR_RULES if "hull" not in pair]
BY_SEARCH = ("capsule", "cylinder")  # MuJoCo searches for these to 1e-6, and we to rounding
MARGIN = 0.3


def test_every_rule_is_written() -> None:
    assert set(PAIR_RULES) == set(TOUCHING_PAIRS)


def scene(a: str, b: str) -> Any:
    def body(kind: str) -> str:
        size = " ".join(map(str, SIZES[kind]))
        geom = f'<geom type="{kind}" size="{size}" margin="{MARGIN / 2}" mass="1"/>'
        return geom if kind == "plane" else f'<body mocap="true">{geom}</body>'

    text = f"<mujoco><worldbody>{body(a)}{body(b)}</worldbody></mujoco>"
    # two bodies of mocap never touch: the second is a free one
    head, _, tail = text.rpartition('<body mocap="true">')
    return mujoco.MjModel.from_xml_string(f"{head}<body><freejoint/>{tail}")


def solid(model: Any, data: Any, g: int, kind: str) -> PlacedGeom:
    return solids([(data.geom_xmat[g].copy(), data.geom_xpos[g].copy())], kind)


def solids(poses: Sequence[tuple[Any, Any]], kind: str) -> PlacedGeom:
    """Of one pose numbers, of several arrays."""
    count = SIZE_COUNTS.get(kind, 2)
    R, p = (np.array([x[k] for x in poses]).T for k in (0, 1))
    R, p = (x[:, 0].tolist() if len(poses) == 1 else list(x) for x in (R, p))
    return PlacedGeom(kind, SIZES[kind][:count], Mat.of([R[k : k + 3] for k in (0, 3, 6)]), Vec(*p))


def compared(pair: tuple[str, str], count: int, placed: Any = None) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Rows found here and by MuJoCo in random placements, or placed ones, and both solids."""
    model, rng = scene(*pair), np.random.default_rng(3)
    data, there, poses = mujoco.MjData(model), [], []
    for _ in range(count):
        (placed or place)(rng, model, data)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        there.append(found_there(data))
        poses.append([(data.geom_xmat[g].copy(), data.geom_xpos[g].copy()) for g in (0, 1)])
    both = [solids([x[g] for x in poses], kind) for g, kind in enumerate(pair)]
    every = [[x.dist, *x.point, *(y for row in x.frame for y in row)] for x in between(*both)]
    rows = np.array([[np.broadcast_to(y, (count,)) for y in x] for x in every]).transpose(2, 0, 1)
    for k, found in enumerate(rows):
        single = [solids([x], kind) for x, kind in zip(poses[k], pair)]
        yield in_order(row for row in found.tolist() if row[0] < MARGIN), there[k], single


def place(rng: np.random.Generator, model: Any, data: Any) -> None:
    for k in range(model.nmocap):
        data.mocap_pos[k] = rng.uniform(-0.3, 0.3, 3)
        data.mocap_quat[k] = rng.standard_normal(4)
    data.mocap_quat /= np.linalg.norm(data.mocap_quat, axis=1, keepdims=True)
    data.qpos[:3] = rng.uniform(-0.4, 0.4, 3)
    data.qpos[3:7] = rng.standard_normal(4)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])


def found_there(data: Any) -> list[tuple[float, ...]]:
    return in_order((c.dist, *c.pos, *c.frame) for c in data.contact[: data.ncon])


def found_here(found: list[Proximity]) -> list[tuple[float, ...]]:
    near = [x for x in found if x.dist < MARGIN]
    return in_order((x.dist, *x.point, *(part for row in x.frame for part in row)) for x in near)


def in_order(rows: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Those of one distance, but for rounding, by their points."""
    return sorted(rows, key=lambda row: [round(float(x), 8) for x in row])


@pytest.mark.parametrize("pair", [x for x in TOUCHING if x != BY_SEARCH], ids="-".join)
def test_pairs_are_those_of_mujoco(pair: tuple[str, str]) -> None:
    seen, counts = 0, set()
    for here, there, _ in compared(pair, 400):
        assert len(here) == len(there) <= places(pair)
        seen += len(there)
        counts.add(len(there))
        if there:
            assert np.abs(np.array(here) - there).max() < 1e-11
    assert seen > 100 and (pair != ("capsule", "box") or counts == {0, 1, 2})


def test_a_capsule_over_an_edge_of_a_box_lies_on_its_ends() -> None:
    """Exactly over it and along it, where rounding says on which side it is: two places, not one twice."""
    along = Mat.of([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1e-17]])
    box = PlacedGeom("box", SIZES["box"], Mat.of(np.eye(3).tolist()), Vec(0.0, 0.0, 0.0))
    for y in (-0.2, 0.0, 0.2):
        capsule = PlacedGeom("capsule", SIZES["capsule"], along, Vec(0.02, y, 0.39))
        found = between(capsule, box)
        assert sorted(round(x.point.x, 12) for x in found) == [-0.1, 0.1]
        assert all(abs(x.dist + 0.01) < 1e-12 and abs(x.point.y - y) < 1e-12 for x in found)


def test_capsules_on_cylinders_are_those_of_mujoco() -> None:
    """Where the capsule's axis is outside, and not so flat on an end that MuJoCo has two places."""
    seen = flat = 0
    for here, there, both in compared(BY_SEARCH, 600):
        assert bool(here) == bool(there)
        if len(there) == 2:
            flat += 1
            assert abs(both[0].axis.dot(both[1].axis)) < 0.09
        elif here and here[0][0] > -SIZES["capsule"][0]:
            seen += 1
            off = np.abs(np.array(here[0]) - there[0])
            assert off[0] < 1e-8 and off.max() < 1e-4
    assert seen > 300 and flat < 60


def test_capsules_lie_on_ends_of_cylinders_at_two_places() -> None:
    """Flat within 5 degrees, as in MuJoCo, whose ends are polygons: its places are up to 2 % of the radius inward,
    and as it tilts leave the axis."""

    def flat(rng: np.random.Generator, model: Any, data: Any) -> None:
        steep, turn = rng.uniform(-0.11, 0.11), rng.uniform(-np.pi, np.pi)
        about, spun = np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(about, np.array([0.0, 1.0, 0.0]), np.pi / 2 + steep)
        mujoco.mju_axisAngle2Quat(spun, np.array([0.0, 0.0, 1.0]), turn)
        mujoco.mju_mulQuat(data.mocap_quat[0], spun, about)
        data.mocap_pos[0] = rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1), rng.choice([-0.25, 0.25])
        data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0

    counts = [0, 0, 0]
    for here, there, both in compared(BY_SEARCH, 200, flat):
        steep = abs(both[0].axis.dot(both[1].axis))
        if abs(steep - 0.08749) < 1e-5:
            continue
        assert len(here) == len(there) == (2 if steep < 0.08749 else 1)
        counts[len(here)] += 1
        for mine, theirs in zip(here, there):
            assert abs(mine[0] - theirs[0]) < 0.03 * steep + 1e-8
            assert np.abs(np.array(mine[1:4]) - theirs[1:4]).max() < 0.02 * 0.25 + 0.3 * steep + 1e-6
            assert np.dot(mine[4:7], theirs[4:7]) > 1.0 - steep**2
    assert counts[1] > 20 and counts[2] > 100


def test_the_way_out_of_a_cylinder_is_the_shortest() -> None:
    """Of a capsule whose axis is inside: no direction of many is shorter, and the best of them hardly longer."""
    rng, seen = np.random.default_rng(4), 0
    n = rng.standard_normal((40000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    for size in ((0.02, 0.05), (0.1, 0.3)):
        for _ in range(60):
            at, turn = rng.uniform(-0.05, 0.05, 3), np.linalg.qr(rng.standard_normal((3, 3)))[0]
            one = PlacedGeom("capsule", size, Mat.of(turn.tolist()), Vec(*at.tolist()))
            two = PlacedGeom("cylinder", (0.06, 0.05), Mat.of(np.eye(3).tolist()), Vec(0.0, 0.0, 0.0))
            found = between(one, two)[0]
            if found.dist < -size[0]:
                seen += 1
                ways = 0.06 * np.hypot(n[:, 0], n[:, 1]) + 0.05 * np.abs(n[:, 2]) - n @ at
                ways += size[1] * np.abs(n @ turn[:, 2]) + size[0]
                assert -1e-12 < ways.min() + found.dist < 5e-3
    assert seen > 80


@pytest.mark.parametrize("opposite", [False, True])
def test_parallel_capsules_touch_at_the_ends_of_their_overlap(opposite: bool) -> None:
    model, rng = scene("capsule", "capsule"), np.random.default_rng(4)
    data, counts = mujoco.MjData(model), set()
    for _ in range(300):
        place(rng, model, data)
        data.mocap_quat[0] = (1.0, 0.0, 0.0, 0.0)
        tilt = rng.choice([0.0, 1.0]) * rng.uniform(-3e-5, 3e-5, 2)  # rad, halved: taken for parallel
        data.qpos[3:7] = (tilt[0], 1.0, *tilt) if opposite else (1.0, *tilt, 0.0)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        data.qpos[2] *= 2.5
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        here = found_here(between(*(solid(model, data, g, "capsule") for g in (0, 1))))
        there = found_there(data)
        assert len(here) == len(there)
        counts.add(len(there))
        here, there = (sorted((row[3], *row[:3]) for row in rows) for rows in (here, there))
        if there:
            assert np.abs(np.array(here) - there).max() < 1e-9
    assert counts == {0, 2}


def in_a_plane(rng: np.random.Generator, model: Any, data: Any) -> None:
    """Two axes in one plane, of any turn, up to 3 m away: mostly they cross, some at an end or of one centre."""
    A = np.linalg.qr(rng.standard_normal((3, 3)))[0] if rng.random() < 0.7 else np.eye(3)[[0, 2, 1]]
    at, half = A @ [*rng.uniform(-3.0, 3.0, 2), 0.0], SIZES["capsule"][1]
    shares = rng.choice([0.0, half, rng.uniform(-1.6 * half, 1.6 * half)], 2) * (1.0, 0.999)
    angles, quat = np.cumsum(rng.uniform(0.01, 3.1, 2)), np.zeros(4)
    for angle, share, p, turn in zip(
        angles, shares, (data.mocap_pos[0], data.qpos[:3]), (data.mocap_quat[0], data.qpos[3:7])
    ):
        along = A @ [np.cos(angle), np.sin(angle), 0.0]
        mujoco.mju_quatZ2Vec(quat, along)
        p[:], turn[:] = at - share * along, quat


def test_capsules_that_cross_part_along_the_common_perpendicular() -> None:
    """As MuJoCo's, and finite in a trace; its rounding decides where an end touches an axis to 1e-15."""
    seen = 0
    for here, there, (a, b) in compared(("capsule", "capsule"), 600, in_a_plane):
        assert len(here) == len(there) <= 1
        if there and there[0][0] < -2.0 * SIZES["capsule"][0] + 1e-12:
            n = np.cross(list(a.axis), list(b.axis))
            assert np.abs(np.array(here[0][4:7]) - n / np.linalg.norm(n)).max() < 1e-9
            seen += 1
        if there:
            assert np.abs(np.array(here) - there).max() < 1e-9
    assert seen > 200


@pytest.mark.parametrize("pair", TOUCHING, ids="-".join)
def test_graphs_hold_the_same_rules(pair: tuple[str, str]) -> None:
    """Traced over nodes and evaluated on a batch, the same numbers as of floats; none that is not finite."""
    rng, count = np.random.default_rng(5), 60
    numbers: list[Any] = []
    for _ in pair:
        R = np.linalg.qr(rng.standard_normal((count, 3, 3)))[0]
        numbers += [*R.reshape(count, 9).T, *rng.uniform(-0.4, 0.4, (3, count))]
    graph = Graph()
    nodes = [graph.input(f"x{k}") for k in range(24)]

    def solids(x: list[Any]) -> list[PlacedGeom]:
        made = []
        for i, kind in enumerate(pair):
            size = SIZES[kind][: SIZE_COUNTS.get(kind, 2)]
            rows = [Vec(*x[12 * i + 3 * r : 12 * i + 3 * r + 3]) for r in range(3)]
            made.append(PlacedGeom(kind, size, Mat(*rows), Vec(*x[12 * i + 9 : 12 * i + 12])))
        return made

    def flat(found: list[Proximity]) -> list[Any]:
        return [part for x in found for part in (x.dist, *x.point, *(e for row in x.frame for e in row))]

    traced = flat(between(*solids(nodes)))
    edges = [x.edge for x in traced if isinstance(x, Expr)]
    values = iter(evaluate_edges(graph, edges, {x.edge >> 1: v for x, v in zip(nodes, numbers, strict=True)}))
    table = np.array([np.broadcast_to(next(values) if isinstance(x, Expr) else x, count) for x in traced])
    plain = np.array([flat(between(*solids([float(v[i]) for v in numbers]))) for i in range(count)]).T
    assert np.isfinite(table).all()
    assert np.abs(table - plain)[np.abs(plain) < NO_PLACE].max() < 1e-12


def test_uneven_ground_that_is_a_plane_is_one() -> None:
    """A tilted plane as a height function gives what the plane itself does, for every solid."""
    n = np.array([0.2, -0.3, 1.0])
    n /= np.linalg.norm(n)
    t = np.cross([0.0, 1.0, 0.0], n)
    t /= np.linalg.norm(t)
    R = Mat.of(np.column_stack([t, np.cross(n, t), n]).tolist())
    plane = PlacedGeom("plane", (), R, Vec(0.0, 0.0, 0.1))
    rng = np.random.default_rng(6)
    for kind in ("sphere", "capsule", "cylinder", "box"):
        turn = Mat.of(np.linalg.qr(rng.standard_normal((3, 3)))[0].tolist())
        count = {"sphere": 1, "box": 3}.get(kind, 2)
        one = PlacedGeom(kind, SIZES[kind][:count], turn, Vec(*rng.uniform(-0.3, 0.3, 3).tolist()))
        slope = on_ground(lambda x, y: (0.1 - (n[0] * x + n[1] * y) / n[2], Vec(*n.tolist())), one)
        flat = between(plane, one)
        assert np.allclose([x.dist for x in slope], [x.dist for x in flat], atol=1e-15, rtol=0)
        assert np.allclose([x.point for x in slope], [x.point for x in flat], atol=1e-15, rtol=0)
