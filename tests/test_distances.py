"""Distances of geoms: against MuJoCo, against the supports of the solids, and Jacobians by differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import drevo
from drevo.codegen.llvm.ir import PTR, VOID, Module
from drevo.codegen.llvm.plain import add_plain
from drevo.codegen.lower.plain_values import Floats
from drevo.codegen.store.native import compile_text
from drevo.contact.convex.search import between_solids
from drevo.errors import EmitError, InputError

ROUND = ("sphere", "capsule")
KINDS = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
ROUNDING = 1e-12  # m: of a distance between corners, edges and faces of bodies of half a metre
NEARLY_PARALLEL = 1e-10  # m: of points of two lines, the rounding of which grows with one over the angle
MUJOCOS = 1e-8  # m: of what MuJoCo's search ends with
SMOOTH = 5e-7  # m: of an ellipsoid deep in another solid, where the polytope ends with 120 corners
STATES = 3000


def pair_of(a: str, b: str, seed: int) -> str:
    rng = np.random.default_rng(seed)
    first, second = (" ".join(f"{x:.3f}" for x in rng.uniform(0.05, 0.3, KINDS[kind])) for kind in (a, b))
    return f"""<mujoco><option ccd_tolerance="1e-13" ccd_iterations="500"/><worldbody>
      <geom name="floor" type="plane" size="5 5 1" contype="0" conaffinity="0"/>
      <body name="a"><freejoint/><geom name="a" type="{a}" size="{first}"/></body>
      <body name="b"><freejoint/><geom name="b" type="{b}" size="{second}"/></body></worldbody></mujoco>"""


def scattered(robot: drevo.Robot, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q = np.array([robot.random(rng) for _ in range(count)])
    q[:, :3], q[:, 7:10] = 0.0, rng.normal(scale=0.35, size=(count, 3))
    return q


def half_width(kind: str, size: np.ndarray, R: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How far a solid reaches along n from its centre, by its formula."""
    d = np.einsum("bji,bj->bi", R, n)
    if kind == "box":
        return np.abs(d) @ size
    if kind == "ellipsoid":
        return np.linalg.norm(d * size, axis=1)
    if kind == "sphere":
        return np.full(len(n), size[0])
    flat = 1.0 if kind == "capsule" else np.hypot(d[:, 0], d[:, 1])
    return size[0] * flat + size[1] * np.abs(d[:, 2])


@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(KINDS, 2)))
def test_distances_are_those_of_the_supports(a: str, b: str) -> None:
    """The nearest points are a distance apart along a normal which parts the solids, or holds their overlap."""
    robot = drevo.load(pair_of(a, b, 3))
    q = scattered(robot, STATES)
    (pair,), distance, points, normal = robot.distance(q, pairs=[("a", "b")])
    d, (first, second), n = distance[:, 0], points[:, 0].swapaxes(0, 1), normal[:, 0]
    first_geom, second_geom = (next(x for x in robot.model.geoms if x.name == name) for name in pair)
    poses = [robot.pose(q, x.link) for x in (first_geom, second_geom)]
    tolerance = ROUNDING
    assert np.abs(first + n * d[:, None] - second).max() < ROUNDING
    assert np.abs((n**2).sum(1) - 1.0).max() < ROUNDING
    ends = []
    for geom, pose, way in zip((first_geom, second_geom), poses, (n, -n)):
        centre = (pose[:, :3, 3] * way).sum(1)
        ends.append(centre + half_width(geom.kind, np.array(geom.size), pose[:, :3, :3], way))
    # the slab between both supports along n is as wide as the distance says
    clear = np.abs(d + sum(x.size[0] for x in (first_geom, second_geom) if x.kind in ROUND)) > 1e-3
    assert np.abs(-ends[1] - ends[0] - d)[clear].max() < tolerance
    assert (d > 0.0).any() and (d < 0.0).any()
    for way in np.random.default_rng(1).normal(size=(200, 3)):  # none is a shorter way out, or wider outside
        way = np.tile(way / np.linalg.norm(way), (STATES, 1))
        reach = [
            half_width(x.kind, np.array(x.size), pose[:, :3, :3], sign * way)
            for x, pose, sign in zip((first_geom, second_geom), poses, (1, -1))
        ]
        gap = ((poses[1][:, :3, 3] - poses[0][:, :3, 3]) * way).sum(1) - reach[0] - reach[1]
        assert (gap < d + tolerance).all()


def nearest_to(kind: str, size: np.ndarray, pose: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The point of a solid nearest to one outside of it, by its formula."""
    y = np.einsum("bji,bj->bi", pose[:, :3, :3], x - pose[:, :3, 3])
    if kind == "box":
        near = np.clip(y, -size, size)
    elif kind == "cylinder":
        flat = np.minimum(1.0, size[0] / np.hypot(y[:, 0], y[:, 1]))
        near = np.c_[y[:, :2] * flat[:, None], np.clip(y[:, 2], -size[1], size[1])]
    else:
        axis = np.clip(y[:, 2], -size[1], size[1]) if kind == "capsule" else np.zeros(len(y))
        core = np.c_[np.zeros((len(y), 2)), axis]
        near = core + size[0] * (y - core) / np.linalg.norm(y - core, axis=1, keepdims=True)
    return pose[:, :3, 3] + np.einsum("bij,bj->bi", pose[:, :3, :3], near)


@pytest.mark.parametrize("b", ["sphere", "capsule", "cylinder", "box"])
def test_each_nearest_point_is_nearest_to_the_other(b: str) -> None:
    """Two points of solids that do not touch are the nearest ones if and only if each is nearest to the other."""
    robot = drevo.load(pair_of("cylinder", b, 6))
    q = scattered(robot, 10 * STATES)
    (pair,), distance, points, _ = robot.distance(q, pairs=[("a", "b")])
    apart = distance[:, 0] > 0.01
    for k, name in enumerate(pair):
        geom = next(x for x in robot.model.geoms if x.name == name)
        pose, x = robot.pose(q, geom.link)[apart], points[apart, 0]
        found = nearest_to(geom.kind, np.array(geom.size), pose, x[:, 1 - k])
        assert np.abs(found - x[:, k]).max() < NEARLY_PARALLEL


def test_a_hull_is_the_box_of_its_corners() -> None:
    robot = drevo.load(pair_of("box", "cylinder", 4))
    box, other = robot.model.geoms
    corners = tuple(tuple(np.multiply(box.size, signs)) for signs in product((-1.0, 1.0), repeat=3))
    hull = drevo.Robot(replace(robot.model, geoms=(replace(box, kind="hull", size=(), points=corners), other)))
    q = scattered(robot, STATES)
    (d, e) = (x.distance(q, pairs=[("a", "b")]).distance for x in (robot, hull))
    assert np.abs(d - e).max() < ROUNDING


@pytest.mark.parametrize(
    ("a", "b"),
    [
        *(("box", "box"), ("cylinder", "box"), ("cylinder", "cylinder"), ("sphere", "box")),
        *(("ellipsoid", kind) for kind in KINDS),
    ],
)
def test_distances_are_mujocos(a: str, b: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    text = pair_of(a, b, 5)
    robot, m = drevo.load(text), mujoco.MjModel.from_xml_string(text)
    data, q = mujoco.MjData(m), scattered(robot, STATES, 1)
    (pair,), distance, *_ = robot.distance(q, pairs=[("a", "b")])
    tolerance = SMOOTH if a == "ellipsoid" else MUJOCOS
    for row, d in zip(q, distance[:, 0]):
        data.qpos[:] = row[[0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 13, 10, 11, 12]]
        mujoco.mj_kinematics(m, data)
        theirs = mujoco.mj_geomDistance(m, data, *(m.geom(x).id for x in pair), 10.0, np.zeros(6))
        assert d > theirs - tolerance  # any way out is one; the least is how deep
        assert d < 0.0 or abs(d - theirs) < tolerance


def test_planes_jacobians_and_names() -> None:
    robot = drevo.load("""<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1" euler="5 0 0"/>
      <body name="trunk" pos="0 0 .5"><freejoint/><geom name="trunk" type="box" size=".1 .2 .15"/>
       <body name="leg" pos="0 0 .3"><joint axis="0 1 0"/><geom name="leg" type="capsule" size=".05 .1"/>
        <body name="foot" pos="0 0 .3"><joint axis="1 0 0"/><geom name="foot" type="cylinder" size=".05 .1"/>
       </body></body></body></worldbody></mujoco>""")
    rng = np.random.default_rng(2)
    q = np.array([robot.random(rng) for _ in range(20)])
    found = robot.distance(q)
    assert set(found.pairs) == {("floor", "trunk"), ("floor", "leg"), ("floor", "foot"), ("foot", "trunk")}
    J, h = robot.distance_jacobian(q), 1e-6
    steps = [
        [robot.distance(robot.integrate(q, sign * h * e)).distance for sign in (1, -1)] for e in np.eye(robot.nv)
    ]
    by_differences = np.stack([(x - y) / (2 * h) for x, y in steps], axis=-1)
    assert J.shape == (20, 4, robot.nv) and np.median(np.abs(J - by_differences)) < 1e-9
    assert np.abs(J - by_differences).max() < 1e-4  # a nearest point leaps where a face turns parallel
    assert robot.distance(q[0]).distance.tobytes() == found.distance[0].tobytes()
    assert robot.distance(q[0], pairs=[("world", "leg")]).pairs == (("floor", "leg"),)
    with pytest.raises(InputError, match=r"'heel'.*foot"):
        robot.distance(q[0], pairs=[("heel", "leg")])


def test_links_of_urdf_that_are_not_adjacent() -> None:
    parts = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial><collision><geometry><box size=".1 .1 .3"/></geometry></collision></link>'
        for k in range(4)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/><origin xyz="0 0 .4"/>'
        f'<axis xyz="0 1 0"/></joint>'
        for k in range(3)
    )
    robot = drevo.load(f'<robot name="chain">{parts}{joints}</robot>')
    pairs = {tuple(sorted(x.split("_")[0] for x in pair)) for pair in robot.distance(robot.neutral()).pairs}
    assert pairs == {("l0", "l2"), ("l0", "l3"), ("l1", "l3")}


def never(x: Floats, n: int) -> float:
    return sum(x[k] for k in range(n))


def test_python_that_machine_code_does_not_have_is_refused() -> None:
    with pytest.raises(EmitError, match="never, line 2: there is no GeneratorExp"):
        add_plain(Module(), never)


def shared(x: float, part: float = 0.5) -> float:
    return x * part


def halved(x: float) -> float:
    return shared(x)


def named(x: float) -> float:
    return shared(x, part=0.5)


@pytest.mark.parametrize("function", [halved, named])
def test_a_call_that_leaves_an_argument_to_its_default_is_refused(function: Callable[[float], float]) -> None:
    with pytest.raises(
        EmitError, match=rf"{function.__name__}, line \d: shared takes each of its arguments in its"
    ):
        add_plain(Module(), function)


def test_small_functions_stand_where_they_are_called() -> None:
    m = Module()
    f = m.function("whole", VOID, dict.fromkeys("abcdefg", PTR), public=True)
    f.call(VOID, add_plain(m, between_solids), *f.arguments.values())
    f.ret()
    made = compile_text(m.text())
    assert b"plain_approach" in made and b"plain_put_corner" not in made


def test_a_robot_without_geoms_is_told() -> None:
    robot = drevo.load("puma560")
    assert robot.distance(np.zeros(6)).distance.shape == (0,)
    with pytest.raises(drevo.InputError, match="robot 'puma560' has no geoms; give its links collision shapes"):
        robot.distance(np.zeros(6), [("a", "b")])


SIMPLE = """<mujoco><compiler angle="radian"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a"><freejoint/><geom name="s1" type="sphere" size=".1" pos=".1 .02 0"/>
<geom name="c1" type="capsule" size=".05 .2" pos="0 .1 0"/>
<geom name="box" type="box" size=".1 .1 .1" pos="3 3 3"/></body>
<body name="b"><freejoint/><geom name="s2" type="sphere" size=".07" pos=".1 .02 0"/>
<geom name="c2" type="capsule" size=".06 .15" pos="0 .1 0"/></body></worldbody></mujoco>"""
SIMPLE_PAIRS = [
    ("s1", "s2"),
    ("s1", "c2"),
    ("c1", "s2"),
    ("c1", "c2"),
    ("c2", "c1"),
    ("floor", "s2"),
    ("s1", "floor"),
]


def test_closed_forms_are_what_the_search_finds():
    """Spheres and capsules in one straight line; a box among the pairs has all of them searched for."""
    robot, rng = drevo.load(SIMPLE), np.random.default_rng(1)
    q = np.array([robot.random(rng) for _ in range(600)])
    q[:, :3], q[:, 7:10] = 0.4 * q[:, :3], 0.4 * q[:, 7:10]
    q[:100, 10:14] = q[:100, 3:7]  # parallel capsules
    q[100:200, 7:] = q[100:200, :7]  # one in the other: the same axes and centres
    q[150:200, 9] += 1.0  # one behind the other on one axis, where it is upright
    q[150:200, 3:7] = q[150:200, 10:14] = 0.0, 0.0, 0.0, 1.0
    closed, searched = robot.distance(q, SIMPLE_PAIRS), robot.distance(q, [*SIMPLE_PAIRS, ("box", "s2")])
    moves = robot.distance_jacobian(q, SIMPLE_PAIRS)
    assert np.abs(closed.distance - searched.distance[:, :-1]).max() <= 1e-14
    assert all(np.isfinite(x).all() for x in (*closed[1:], moves))
    assert np.allclose(np.linalg.norm(closed.normal, axis=-1), 1.0, atol=1e-14)
    between = closed.points[:, :, 1] - closed.points[:, :, 0] - closed.distance[..., None] * closed.normal
    assert np.abs(between).max() <= 1e-14
    rest = np.r_[200:600]
    for mine, theirs in ((closed.points, searched.points), (closed.normal, searched.normal)):
        assert np.abs((mine - theirs[:, :-1])[rest]).max() <= 1e-11
    assert (
        np.abs((moves - robot.distance_jacobian(q, [*SIMPLE_PAIRS, ("box", "s2")])[:, :-1])[rest]).max() <= 1e-11
    )
