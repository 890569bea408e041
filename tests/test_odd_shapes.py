"""Geoms and meshes that have hardly a shape, or begin in each other: one sentence, or steps that stay finite."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.contact.convex.search import rotation_in, separation
from drevo.contact.convex.simplex import BOX, CYLINDER, ELLIPSOID, HULL, NO_DISTANCE, POINT, SEGMENT
from drevo.mechanics.spatial import Vec

CUBE = np.array(list(itertools.product((-0.1, 0.1), (-0.08, 0.08), (-0.06, 0.06))))
FLOOR = '<geom type="plane" size="3 3 1"/>'
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}


def mesh(points: Any) -> str:
    numbers = " ".join(f"{x:.9g}" for x in np.ravel(points))
    return f'<asset><mesh name="m" vertex="{numbers}"/></asset>'


def scene(geom: str, asset: str = "", mass: str = "") -> str:
    return f"""<mujoco>{asset}<worldbody>{FLOOR}<body pos="0 0 .05"><freejoint/>{geom}{mass}</body>
      </worldbody></mujoco>"""


def stays_finite(robot: drevo.Robot, law: str, count: int = 100) -> None:
    step = drevo.compile(robot, "step", dt=0.002, ground=None, law=law, repeat=5)
    q, v = np.array(robot.model.initial), np.zeros(robot.nv)
    for _ in range(count // 5):
        q, v = step(q, v, np.zeros(robot.nv))[:2]
    assert np.isfinite(q).all() and np.isfinite(v).all()


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("last", ["0", "-0.1", "nan"])
def test_sizes_that_are_none_are_refused(kind: str, last: str) -> None:
    size = " ".join([*["0.1"] * (SIZES[kind] - 1), last])
    with pytest.raises(drevo.ModelError, match=r"line 1.*(not positive|nan)"):
        drevo.load(scene(f'<geom type="{kind}" size="{size}" mass="1"/>'))


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_solids_without_thickness_step(kind: str, law: str) -> None:
    size = " ".join([*["0.1"] * (SIZES[kind] - 1), "1e-9"])
    inertia = '<inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>'
    stays_finite(drevo.load(scene(f'<geom type="{kind}" size="{size}"/>', mass=inertia)), law)


@pytest.mark.parametrize(
    "points, shape",
    [
        (CUBE[:1], "1 points, 1 of them different, at one place"),
        ([CUBE[0]] * 6, "6 points, 1 of them different, at one place"),
        (np.outer(np.arange(5.0), [1, 2, 3]), "5 points, 5 of them different, in a line"),
        (CUBE[[0, 2, 4]], "3 points, 3 of them different, in a plane"),
        (CUBE[::2], "4 points, 4 of them different, in a plane"),
        (np.c_[np.random.default_rng(0).uniform(-1, 1, (20, 2)), np.ones(20)], "20 of them different, in a plane"),
    ],
)
def test_meshes_without_volume_are_told(points: Any, shape: str) -> None:
    """As a body's mass a fault; where something else gives the mass, a note, and the geom does not touch."""
    geom = '<geom name="it" type="mesh" mesh="m"/>'
    inertia = '<inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>'
    with pytest.raises(drevo.ModelError, match=rf"the mesh 'm' \(line 1\).*{shape}; give it a thickness"):
        drevo.load(scene(geom, mesh(points)))
    robot = drevo.load(scene(geom, mesh(points), inertia), hulls=16)
    assert any("it: its points have no convex hull" in note and shape in note for note in robot.notes)
    with pytest.warns(drevo.DrevoWarning, match="mesh geoms"):
        drevo.compile(robot, "step", dt=0.002, ground=None)


@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_meshes_that_are_not_finite_are_told(bad: str) -> None:
    asset = f'<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 {bad}"/></asset>'
    with pytest.raises(drevo.ModelError, match=r"the mesh 'm' .*not finite"):
        drevo.load(scene('<geom type="mesh" mesh="m"/>', asset))


@pytest.mark.parametrize("law", ["soft", "coulomb"])
@pytest.mark.parametrize("which", ["twice", "thin", "large", "5000 points"])
def test_odd_hulls_step(which: str, law: str) -> None:
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(5000, 3))
    points = {
        "twice": np.r_[CUBE, CUBE],
        "thin": np.c_[rng.uniform(-0.1, 0.1, (20, 2)), rng.uniform(-1e-6, 1e-6, 20)],
        "large": 1e5 * CUBE,
        "5000 points": 0.1 * ball / np.linalg.norm(ball, axis=1)[:, None],
    }[which]
    stays_finite(drevo.load(scene('<geom type="mesh" mesh="m" mass="1"/>', mesh(points)), hulls=5), law)


SOLIDS = {
    "sphere": (POINT, [0.0, 0.0, 0.0, 0.1], []),
    "capsule": (SEGMENT, [0.0, 0.1, 0.0, 0.05], []),
    "cylinder": (CYLINDER, [0.08, 0.1, 0.0, 0.0], []),
    "box": (BOX, [0.1, 0.08, 0.06, 0.0], []),
    "ellipsoid": (ELLIPSOID, [0.1, 0.08, 0.06, 0.0], []),
    "hull": (HULL, [0.0] * 4, CUBE.ravel().tolist()),
    "point": (HULL, [0.0] * 4, [0.0, 0.0, 0.0]),
    "rod": (HULL, [0.0] * 4, [-0.1, 0.0, 0.0, 0.1, 0.0, 0.0]),
    "plate": (HULL, [0.0] * 4, CUBE[CUBE[:, 2] > 0.0].ravel().tolist()),
}
GRAPHS = [6, 6, 0]  # both begin behind them, of hulls without faces
FEATURE = [0] * 6, [0.0] * 18
TURNS = [np.eye(3), np.roll(np.eye(3), 1, 0)]
WAYS = ([0.0, 0.0, 0.0], [0.05, 0.0, 0.0], [0.1, 0.08, 0.06], [0.0, 0.0, 0.16], [0.0, 0.0, 0.2], [0.1, 0.0, 0.0])


@pytest.mark.parametrize("first, second", [*itertools.combinations_with_replacement(SOLIDS, 2)])
def test_solids_that_begin_in_each_other_have_a_way_out(first: str, second: str) -> None:
    """One centre, faces and corners in one place, crossing axes: moved by the depth they touch."""
    kinds, sizes, points = zip(SOLIDS[first], SOLIDS[second])
    for R, p in itertools.product(TURNS, WAYS):
        which = [kinds[0], len(points[0]) // 3, kinds[1], len(points[1]) // 3, *GRAPHS]
        at = [*R.ravel().tolist(), *p]
        for out in _apart(which, [*sizes[0], *sizes[1], 0.6], points, at):
            assert np.isfinite(out).all() and abs(np.linalg.norm(out[4:7]) - 1.0) < 1e-9
        assert abs(out[0]) < (1e-6 if first == second == "ellipsoid" else 4e-8)  # round: where the search ends


def _apart(which: Any, sizes: Any, points: Any, at: Any) -> Any:
    """Yields what the search tells of two solids, and of the same two moved as it says."""
    p = np.array(at[9:])
    for _ in range(2):
        out = [0.0] * 7
        separation(which, sizes, *points, rotation_in(at), Vec(*p), NO_DISTANCE, out, *FEATURE)  # type: ignore[arg-type]
        yield out
        p = p - out[0] * np.array(out[4:7])


@pytest.mark.parametrize("first, second", [*itertools.combinations_with_replacement(SOLIDS, 2)])
def test_a_search_that_is_asked_for_less_ends_early(first: str, second: str) -> None:
    """Beyond the distance that matters it says that they are farther; within it all is the same."""
    kinds, sizes, points = zip(SOLIDS[first], SOLIDS[second])
    which = [kinds[0], len(points[0]) // 3, kinds[1], len(points[1]) // 3, *GRAPHS]
    size = [*sizes[0], *sizes[1], 0.6]
    rng = np.random.default_rng(4)
    for _ in range(5):
        p, R = rng.uniform(-0.6, 0.6, 3), rotation_in([*np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel().tolist()])

        def found(most: float, R: Any = R, p: Any = p) -> list[float]:
            out = [0.0] * 7
            separation(which, size, *points, R, Vec(*p), most, out, *FEATURE)  # type: ignore[arg-type]
            return out

        whole = found(NO_DISTANCE)
        assert found(2.0 * abs(whole[0]) + 0.01) == whole
        assert whole[0] <= 0.0 or found(0.5 * whole[0])[0] > 0.5 * whole[0]
