"""Distances, points and frames of every pair of solids, against MuJoCo on random placements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.graph.node import Expr, Graph
from drevo.mechanics.algorithms.colliders import FAR, PAIRS, PlacedGeom, Proximity, between, on_ground, places
from drevo.mechanics.spatial import Mat, Vec
from drevo.model.pairing import RULES

mujoco = pytest.importorskip("mujoco")

SIZES = {"plane": (1.0, 1.0, 1.0), "sphere": (0.2,), "capsule": (0.1, 0.3), "cylinder": (0.25, 0.15)}
SIZES["box"] = (0.1, 0.2, 0.3)
TOUCHING = [pair for pair in PAIRS if "hull" not in pair]
BY_SEARCH = ("capsule", "cylinder")  # MuJoCo searches for these to 1e-6, and we to rounding
MARGIN = 0.3


def test_every_rule_is_written() -> None:
    assert set(PAIRS) == set(RULES)


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
    count = {"plane": 0, "sphere": 1, "box": 3}.get(kind, 2)
    R = Mat.of(data.geom_xmat[g].reshape(3, 3).tolist())
    return PlacedGeom(kind, SIZES[kind][:count], R, Vec(*data.geom_xpos[g].tolist()))


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
    model, rng = scene(*pair), np.random.default_rng(3)
    data = mujoco.MjData(model)
    seen = 0
    for _ in range(400):
        place(rng, model, data)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        here = found_here(between(*(solid(model, data, g, kind) for g, kind in enumerate(pair))))
        there = found_there(data)
        assert len(here) == len(there) <= places(pair)
        seen += len(there)
        if there:
            assert np.abs(np.array(here) - there).max() < 1e-11
    assert seen > 100


def test_capsules_on_cylinders_are_those_of_mujoco() -> None:
    """Where the capsule's axis is outside, and not so flat on an end that MuJoCo has two places."""
    model, rng = scene(*BY_SEARCH), np.random.default_rng(3)
    data, seen, flat = mujoco.MjData(model), 0, 0
    for _ in range(600):
        place(rng, model, data)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        solids = [solid(model, data, g, kind) for g, kind in enumerate(BY_SEARCH)]
        here, there = found_here(between(*solids)), found_there(data)
        assert bool(here) == bool(there)
        if len(there) == 2:
            flat += 1
            assert abs(solids[0].axis.dot(solids[1].axis)) < 0.09
        elif here and here[0][0] > -SIZES["capsule"][0]:
            seen += 1
            off = np.abs(np.array(here[0]) - there[0])
            assert off[0] < 1e-8 and off.max() < 1e-4
    assert seen > 300 and flat < 60


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
            (found,) = between(one, two)
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
        data.qpos[3:7] = (0.0, 1.0, 0.0, 0.0) if opposite else (1.0, 0.0, 0.0, 0.0)
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
            size = SIZES[kind][: {"plane": 0, "sphere": 1, "box": 3}.get(kind, 2)]
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
    assert np.abs(table - plain)[np.abs(plain) < FAR].max() < 1e-12


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
