"""Places of contact of boxes, cylinders and hulls that are searched for, against MuJoCo, and steps with them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours, case

import drevo
from drevo.contact.convex.hulls import hull_tables
from drevo.contact.convex.places import places_between
from drevo.contact.convex.search import MAX_CORNERS, MAX_FACES, grown
from drevo.contact.convex.simplex import BOX, CYLINDER, HULL
from drevo.model.description import Model

pytestmark = pytest.mark.needs("mujoco")
Array = np.ndarray[Any, Any]
STEP_DIGITS = 2e-12  # of a step: some hundred roundings
DEPTH_TOLERANCE = 2e-6  # m: MuJoCo's ccd_tolerance, twice
SIZES = {"box": (0.15, 0.12, 0.2), "cylinder": (0.1, 0.2), "slab": (0.1, 0.2, 0.3)}
SCENE = """<mujoco><option timestep="0.002" {{option}}/><worldbody>
 <geom name="floor" type="plane" size="9 9 1" {{floor}}/>{bodies}</worldbody></mujoco>"""
GEOMS = {
    "box": '<geom type="box" size=".1 .08 .06" condim="{condim}" friction=".8 .02 .01"/>',
    "cylinder": '<geom type="cylinder" size=".07 .08" condim="{condim}"/>',
    "egg": '<geom type="ellipsoid" size=".09 .06 .07"/>',
    "ball": '<geom type="sphere" size=".07"/>',
    "pill": '<geom type="capsule" size=".05 .06"/>',
}
CUBE = tuple(itertools.product((-0.1, 0.1), repeat=3))


def scene(*kinds: str) -> str:
    """Bodies that fall onto each other."""
    places = [f"{0.03 * k} {0.02 * k} {0.1 + 0.15 * k}" for k in range(len(kinds))]
    bodies = [f'<body pos="{at}"><freejoint/>{GEOMS[kind]}</body>' for kind, at in zip(kinds, places)]
    return SCENE.format(bodies="".join(bodies))


def falls(m: Any, count: int) -> Any:
    """Yields states of bodies that fall onto each other slowly and lie there."""
    import mujoco

    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    for k in range(count):
        if k % 40 == 0:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(0.0, 0.2, m.nv)
        for _ in range(6):
            mujoco.mj_step(m, d)
        yield d.qpos.copy(), d.qvel.copy(), np.zeros(m.nv)


def turned(rng: Any, k: int) -> tuple[Array, Array]:
    """Two rotations: any, nearly face to face, or nearly so and turned about one axis."""
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R *= np.sign(np.linalg.det(R))
    S, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    S *= np.sign(np.linalg.det(S))
    if k % 3:
        w = rng.normal(size=3) * (1e-3, 0.1)[k % 2]
        tilt, _ = np.linalg.qr(np.eye(3) + np.cross(np.eye(3), w))
        tilt = tilt * np.sign(np.diag(tilt))
        angle = rng.uniform(0.0, 6.0) if k % 5 else 0.0
        c, s = np.cos(angle), np.sin(angle)
        S = R @ tilt @ np.roll(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), k % 2, (0, 1))
    return R, S


def found(first: str, second: str, count: int, margin: float = 0.0) -> Any:
    """Yields the places of random poses as rows (distance, point, normal): ours, and MuJoCo's."""
    import mujoco

    kinds = ["box" if x == "slab" else x for x in (first, second)]
    sizes = [" ".join(map(str, SIZES[x])) for x in (first, second)]
    geom = f'<body><freejoint/><geom type="%s" size="%s" margin="{margin / 2}"/></body>'
    geoms = [geom % x for x in zip(kinds, sizes)]
    m: Any = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{''.join(geoms)}</worldbody></mujoco>")
    d, rng = mujoco.MjData(m), np.random.default_rng(1)
    which = [{"box": BOX, "cylinder": CYLINDER}[k] for k in kinds]
    size = [
        *SIZES[first],
        *[0.0] * (4 - len(SIZES[first])),
        *SIZES[second],
        *[0.0] * (4 - len(SIZES[second])),
        1.0,
        margin,
    ]
    for k in range(count):
        for i, R in enumerate(turned(rng, k)):
            mujoco.mju_mat2Quat(d.qpos[7 * i + 3 : 7 * i + 7], R.ravel())
            d.qpos[7 * i : 7 * i + 3] = rng.uniform(-0.22, 0.22, 3)
        mujoco.mj_fwdPosition(m, d)
        at = [[*d.geom_xmat[i].tolist(), *d.geom_xpos[i].tolist()] for i in range(2)]
        out = [0.0] * 57
        places_between([which[0], 0, which[1], 0, 5, 4, 0, 0, 8, 0], size, [0.0], [0.0], *at, out)  # type: ignore[arg-type]
        ours = sorted(out[1 + 7 * j : 8 + 7 * j] for j in range(int(out[0])))
        yield np.array(ours), np.array(sorted([x.dist, *x.pos, *x.frame[:3]] for x in d.contact))


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_places_of_boxes_are_those_of_mujoco(margin: float) -> None:
    """Number, distances, points and normals, in any pose and nearly face to face; apart, edges may be nearest at
    their ends."""
    counts = set()
    for ours, theirs in found("slab", "box", 450, margin):
        assert len(ours) == len(theirs)
        counts.add(len(ours))
        for row in theirs:
            assert np.abs(ours - row).max(axis=1).min() < 1e-12
    assert counts >= {0, 1, 2, 3, 4, 5, 6}


def test_places_of_cylinders_and_boxes_are_as_deep_as_those_of_mujoco() -> None:
    """Where MuJoCo's depth is the least; it ends its search at 1e-6 m, and takes a way that is not the least now
    and then."""
    same, apart, touching = 0, 0, 0
    for ours, theirs in found("cylinder", "box", 240):
        touching += len(theirs) > 0
        if len(ours) != len(theirs):
            apart += 1
        elif len(ours) and abs(ours[0, 0] - theirs[0, 0]) < DEPTH_TOLERANCE:
            same += 1
    assert touching > 100 and same > 0.9 * touching and apart < 0.08 * touching


@pytest.mark.parametrize("option", ["", 'cone="elliptic" impratio="2"'])
def test_steps_of_stacked_boxes_are_those_of_mujoco(option: str) -> None:
    import mujoco

    m, robot, how = case(scene("box", "box"), option)
    step, d, stacked = drevo.compile(robot, "step", ground=None, **how), mujoco.MjData(m), 0
    given = [*falls(m, 120)]
    ours = [np.array(x) for x in zip(*(as_ours(m, *x) for x in given))]
    many = step(*ours)
    for k, (q, v, tau) in enumerate(given):
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, tau
        mujoco.mj_step(m, d)
        stacked += any(m.geom_type[x.geom1] == m.geom_type[x.geom2] for x in d.contact)
        one = step(*(x[k] for x in ours))
        theirs = as_ours(m, d.qpos, d.qvel)[1]
        assert np.abs(one[1] - theirs).max() < STEP_DIGITS * max(1.0, np.abs(theirs).max())
        assert all(np.array_equal(x, y[k]) for x, y in zip(one, many))
    assert stacked > 20


@pytest.mark.parametrize("other", ["egg", "ball", "pill", "box", "cylinder"])
def test_steps_of_ellipsoids_are_those_of_mujoco(other: str) -> None:
    """On the plane to rounding; on others the searches of both end where the depth is known to rounding, which
    leaves the root of that to the normal of what is curved."""
    import mujoco

    m, robot, how = case(scene("egg", other), 'ccd_tolerance="1e-12" ccd_iterations="200"')
    step, d, apart = drevo.compile(robot, "step", ground=None, **how), mujoco.MjData(m), list[float]()
    for q, v, tau in falls(m, 120):
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, tau
        mujoco.mj_step(m, d)
        theirs = as_ours(m, d.qpos, d.qvel)[1]
        error = np.abs(step(*as_ours(m, q, v, tau))[1] - theirs).max() / max(1.0, np.abs(theirs).max())
        if any(0 not in (x.geom1, x.geom2) for x in d.contact):
            apart.append(float(error))
        else:
            assert error < STEP_DIGITS
    assert len(apart) > 10 and np.median(apart) < 1e-6 and max(apart) < 1e-4


MIXED = SCENE.format(
    bodies="""
 <body name="arm" pos="0 0 .5"><joint name="a" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/>
  <body pos=".4 0 0"><joint axis="0 1 0" range="-40 40"/>
   <geom type="capsule" fromto="0 0 0 .3 0 -.3" size=".04" condim="4"/>
   <body pos=".3 0 -.3"><joint type="slide" axis="0 0 1"/>
    <geom type="sphere" size=".06" condim="6"/></body></body></body>
 <body pos=".6 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
 <body pos=".62 .03 .4"><freejoint/><geom type="cylinder" size=".08 .07" margin=".01"/></body>
 <body pos=".1 0 .15"><freejoint/><geom type="capsule" size=".07 .1" condim="1"/></body>"""
)


def in_loops(patch: pytest.MonkeyPatch, robot: drevo.Robot, **how: Any) -> Any:
    """A step that loops over its pairs, however few they are."""
    from drevo.contact.laws.soft import newton, program

    patch.setattr(program, "MAX_STRAIGHT_PAIRS", 0)
    patch.setattr(newton, "MAX_STRAIGHT_FACTOR_PRODUCTS", 0)
    step = drevo.compile(drevo.Robot(robot.model), "step", ground=None, **how)
    patch.undo()
    return step


@pytest.mark.parametrize("option", ["", 'cone="elliptic" impratio="2"'])
def test_steps_that_loop_over_pairs_are_those_of_mujoco(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    import mujoco

    m, robot, how = case(scene("box", "box", "box"), option)
    step, d, touching = in_loops(monkeypatch, robot, **how), mujoco.MjData(m), 0
    for q, v, tau in falls(m, 80):
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, tau
        mujoco.mj_step(m, d)
        touching += any(m.geom_type[x.geom1] == m.geom_type[x.geom2] for x in d.contact)
        theirs = as_ours(m, d.qpos, d.qvel)[1]
        found = step(*as_ours(m, q, v, tau))
        assert np.abs(found[1] - theirs).max() < STEP_DIGITS * max(1.0, np.abs(theirs).max())
    assert touching > 20


SLIPLESS = 'noslip_iterations="6" cone="elliptic"'


@pytest.mark.parametrize(
    "option",
    ["", 'cone="elliptic" integrator="implicitfast"', 'integrator="RK4"', SLIPLESS, 'noslip_iterations="6"'],
)
def test_loops_over_pairs_step_as_straight_lines_do(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """All kinds of pairs and sizes of groups, joints that turn and slide, margins."""
    m, robot, how = case(MIXED, option)
    looped, straight = in_loops(monkeypatch, robot, **how), drevo.compile(robot, "step", ground=None, **how)
    given = [np.array(x) for x in zip(*(as_ours(m, *x) for x in falls(m, 120)))]
    ours, theirs = looped(*given), straight(*given)
    scale = np.maximum(1.0, np.abs(theirs[1]).max(axis=1, keepdims=True))
    assert (np.abs(ours[1] - theirs[1]) / scale).max() < STEP_DIGITS
    assert np.abs(ours[2]).max() > 1.0 and np.allclose(ours[2], theirs[2], rtol=1e-7, atol=1e-7)
    one = looped(*(x[7] for x in given))
    assert all(np.array_equal(x, y[7]) for x, y in zip(one, ours))


def test_a_cylinder_stands_on_a_box_and_the_box_on_the_floor() -> None:
    _, robot, how = case(scene("box", "cylinder"))
    q = np.array(robot.model.initial)
    q[[0, 1, 2, 7, 8, 9]] = 0.0, 0.0, 0.06, 0.0, 0.0, 0.2
    with np.errstate(all="raise"):
        table = robot.simulate(q, duration=1.0, ground=None, law="soft", dt=0.002)
    assert np.abs(table.q[-1, [2, 9]] - [0.06, 0.2]).max() < 2e-3 and np.abs(table.v[-1]).max() < 1e-3
    assert how["dt"] == 0.002


def test_a_cylinder_lies_on_a_box_by_its_ends_in_mujocos_order() -> None:
    """Sweeps against slip, which end before they have settled, show the order of places."""
    import mujoco

    bodies = '<geom type="box" size="1 1 .1"/><body><freejoint/><geom type="cylinder" size=".05 .1"/></body>'
    m, robot, how = case(SCENE.format(bodies=bodies), 'noslip_iterations="2" ccd_tolerance="1e-14"')
    step, d, rng = drevo.compile(robot, "step", ground=None, **how), mujoco.MjData(m), np.random.default_rng(0)
    for k in range(20):
        turn, roll, tip = rng.uniform(0.0, 6.0), rng.uniform(0.0, 6.0), rng.normal() * 2e-4
        mujoco.mju_euler2Quat(d.qpos[3:], [turn, 0.5 * np.pi * (-1) ** k + tip, roll], "zyz")
        d.qpos[:3], d.qvel[:], d.qacc_warmstart[:] = [0.0, 0.0, 0.1499], rng.normal(size=6) * 0.3, 0.0
        state = as_ours(m, d.qpos, d.qvel, np.zeros(6))
        mujoco.mj_step(m, d)
        assert d.ncon == 2
        assert np.abs(step(*state).v1 - as_ours(m, d.qpos, d.qvel)[1]).max() < 1e-9


def hull_robot(*hulls: tuple[tuple[float, float, float], ...]) -> drevo.Robot:
    """Free bodies with hulls of these points."""
    base = drevo.load(SCENE.format(bodies="".join(
        f'<body pos="0 0 {0.1 + 0.2 * k}"><freejoint/><geom name="g{k}" type="sphere" size=".1"/></body>'
        for k, _ in enumerate(hulls))).format(option="", floor="")).model  # fmt: skip
    from dataclasses import replace

    geoms = [
        g if g.kind == "plane" else replace(g, kind="hull", size=(), points=hulls[int(g.name[1:])])
        for g in base.geoms
    ]
    model: Model = replace(base, geoms=tuple(geoms))
    return drevo.Robot(model)


@pytest.mark.parametrize(
    "points",
    [((0.0, 0.0, 0.0),), ((-0.1, 0.0, 0.0), (0.1, 0.0, 0.0)), CUBE[:4], CUBE, ((0.0, 0.0, 0.0),) * 5],
    ids=["point", "line", "plane", "cube", "points that are one"],
)
def test_steps_of_degenerate_hulls_are_finite(points: tuple[tuple[float, float, float], ...]) -> None:
    robot = hull_robot(CUBE, points)
    step, rng = drevo.compile(robot, "step", dt=0.002, ground=None), np.random.default_rng(0)
    q = np.tile(np.array(robot.model.initial), (40, 1))
    q[:, [0, 1, 2, 7, 8, 9]] += rng.uniform(-0.15, 0.15, (40, 6))
    q[0, 7:] = q[0, :7]  # one in the middle of the other
    found = step(q, np.zeros((40, 12)), np.zeros((40, 12)))
    assert all(np.isfinite(np.asarray(x)).all() for x in found)


def test_faces_of_hulls() -> None:
    normals, table = hull_tables(CUBE)
    assert sorted(normals) == sorted(
        tuple(float(s * (i == k)) for i in range(3)) for k in range(3) for s in (-1, 1)
    )
    assert table[0] == 6 and table[7] - table[1] == 24
    edges, faces = (table[table[7] + k : table[7] + k + 9] for k in (0, 9))
    assert edges[-1] - edges[0] == 2 * 12 and [b - a for a, b in itertools.pairwise(faces)] == [3] * 8
    assert hull_tables(CUBE[:4])[1] == (0, 2) == hull_tables(CUBE[:1])[1]
    assert HULL == 5


@pytest.mark.parametrize("steepness", [0.9, 1.1])
def test_a_block_on_a_tilted_box_sticks_or_slides_under_the_exact_law(steepness: float) -> None:
    """Below the angle of friction it stays, above it slides by g (sin - mu cos) t."""
    mu, h, steps = 0.5, 0.002, 100
    angle = np.arctan(mu) * steepness
    text = f"""<mujoco><worldbody><geom type="box" size="1 1 .1" euler="0 {np.degrees(angle)} 0" friction="{mu}"/>
     <body euler="0 {np.degrees(angle)} 0" pos="{0.2 * np.sin(angle)} 0 {0.2 * np.cos(angle)}"><freejoint/>
     <geom type="box" size=".1 .1 .1" friction="{mu}"/></body></worldbody></mujoco>"""
    robot = drevo.load(text)
    step = drevo.compile(robot, "step", dt=h, ground=None, law="coulomb", repeat=steps)
    q = np.array(robot.model.initial)
    found = step(q, np.zeros(6), np.zeros(6))
    slides = max(0.0, 9.81 * (np.sin(angle) - mu * np.cos(angle))) * h * steps
    assert abs(np.linalg.norm(found.v1[:3]) - slides) < 1e-7 and found.residual < 1e-9
    assert abs(found.forces[:, 2].sum() - 9.81 * 8.0) < 9.81 * 8.0 * 0.5
    if not slides:
        assert np.abs(found.q1 - q).max() < 1e-9
    if slides:  # along it, as fast as it is pushed
        along = found.v1[:3] / np.linalg.norm(found.v1[:3])
        jvp = drevo.compile(robot, "step", dt=h, ground=None, law="coulomb", product="jvp")
        push = np.concatenate((along, np.zeros(3)))
        faster = jvp(found.q1, found.v1, np.zeros(6), np.zeros(6), np.zeros(6), push)[1]
        assert np.abs(faster - push * h / robot.total_mass).max() < 1e-9


def test_too_many_places_for_the_exact_law_are_told() -> None:
    """Where a step does not loop, pairs that are searched for pass through each other, with a warning."""
    robot = drevo.load(scene("box", "box", "box").format(option="", condim=3, floor=""))
    with pytest.warns(drevo.DrevoWarning, match="pairs of the kinds box-box"):
        drevo.compile(robot, "step", dt=0.002, ground=None, law="coulomb", product="jvp")


def test_a_polytope_stays_within_its_memory() -> None:
    """Rounding may leave faces that a corner sees one by one, whose border has more edges than there is room."""
    corners = np.random.default_rng(0).normal(size=(MAX_CORNERS + 1, 3))
    faces, planes = [0] * (3 * MAX_FACES), [0.0] * (4 * MAX_FACES)
    count = MAX_FACES - 9
    for k in range(count):
        faces[3 * k : 3 * k + 3] = k % 100, (k + 7) % 100, (k + 19) % 100
        planes[4 * k : 4 * k + 4] = 0.0, 0.0, 0.0, -1.0 if k % 2 else 1.0
    assert grown(corners.ravel().tolist(), faces, planes, count, MAX_CORNERS, 1, 1e-9) == MAX_FACES
    assert len(faces) == 3 * MAX_FACES and len(planes) == 4 * MAX_FACES
