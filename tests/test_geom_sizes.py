"""Sizes of geoms as numbers of each sample, with the masses and inverse weights that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours

import drevo
from drevo.model.contact import GEOM_SIZES
from drevo.model.pairing import SEARCHED_PAIRS, TOUCHING_PAIRS

Array = np.ndarray[Any, Any]
SIZED = ("plane", "sphere", "capsule", "cylinder", "box", "ellipsoid")
PAIRS = [x for x in (*TOUCHING_PAIRS, *SEARCHED_PAIRS) if set(x) <= set(SIZED)]
SEARCHED = [x for x in PAIRS if x in SEARCHED_PAIRS]
ENDING = [*(x for x in SEARCHED if x != ("box", "box")), ("capsule", "cylinder")]  # where MuJoCo's search ends
INERTIA = "<inertial pos='0 0 0' mass='1' diaginertia='.01 .02 .025'/>"
PILE = ("box", "capsule", "ellipsoid") * 3


def scene(kinds: tuple[str, ...], sizes: Any, density: float = 0.0, gravity: float = 0.0, more: str = "") -> str:
    """Free solids, a plane for the first where it is one."""
    text = f"<mujoco><option timestep='.002' gravity='0 0 {-gravity}' ccd_tolerance='1e-12' {more}/><worldbody>"
    for k, (kind, size) in enumerate(zip(kinds, sizes)):
        geom = f"<geom name='{'abcdefghijkl'[k]}' type='{kind}' friction='.7' "
        if kind == "plane":
            text += f"{geom} size='5 5 1'/>"
        else:
            text += f"<body name='{'abcdefghijkl'[k]}'><freejoint/>{'' if density else INERTIA}{geom} "
            text += f"size='{' '.join(map(repr, map(float, size)))}' density='{density or 1.0}'/></body>"
    return text + "</worldbody></mujoco>"


def drawn(kinds: tuple[str, ...], rng: Any) -> list[Array]:
    return [rng.uniform(0.05, 0.15, GEOM_SIZES[k]) for k in kinds]


def beside(text: str) -> Any:
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.solver, m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations = 2, 0.0, 100, 100
    return mujoco, m, mujoco.MjData(m)


def touching(mujoco: Any, m: Any, data: Any, rng: Any) -> tuple[Array, Array]:
    """Bodies that come nearer along a way until they touch."""
    free = m.nv // 6
    way = [0.0, 0.0, 1.0] if free == 1 else rng.normal(size=3)
    turns = rng.normal(size=(free, 4))
    for far in np.arange(0.6, 0.0, -0.004):
        places = np.zeros((free, 3))
        places[-1] = far * np.array(way) / np.linalg.norm(way)
        data.qpos[:] = np.hstack([places, turns / np.linalg.norm(turns, axis=1)[:, None]]).ravel()
        mujoco.mj_forward(m, data)
        if data.ncon:
            break
    return data.qpos.copy(), rng.normal(0.0, 0.3, m.nv)


def stepped(mujoco: Any, m: Any, data: Any, q: Array, v: Array) -> tuple[Array, Array]:
    mujoco.mj_resetData(m, data)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_step(m, data)
    found: tuple[Array, Array] = as_ours(m, data.qpos, data.qvel)
    return found


@pytest.mark.parametrize("kinds", PAIRS)
def test_steps_are_mujocos_of_each_size(kinds: tuple[str, str]) -> None:
    """Twenty samples, each with its own sizes, beside a model compiled with these; a batch is its states alone."""
    rng = np.random.default_rng(1)
    robot = drevo.load(scene(kinds, [np.full(GEOM_SIZES[k], 0.1) for k in kinds]))
    f = drevo.compile(robot, "step", dt=0.002, ground=None, parameters="size")
    Q, V, P, found = [], [], [], []
    for _ in range(20):
        sizes = drawn(kinds, rng)
        mujoco, m, data = beside(scene(kinds, sizes))
        q, v = touching(mujoco, m, data, rng)
        found.append(stepped(mujoco, m, data, q, v)[1])
        for many, x in zip((Q, V, P), (*as_ours(m, q, v), np.concatenate(sizes))):
            many.append(x)
    tau = np.zeros(len(V[0]))
    ours = f(np.array(Q), np.array(V), tau, np.array(P))
    off = np.abs(ours.v1 - found).max(1)
    assert (np.abs(ours.forces).sum(axis=(1, 2)) > 0.0).sum() >= 12
    assert off.max() < (1e-5 if kinds in ENDING else 1e-12)
    for k in range(20):
        assert (f(Q[k], V[k], tau, P[k]).v1 == ours.v1[k]).all()


@pytest.mark.parametrize(("kinds", "law"), [*((x, "soft") for x in SEARCHED), (("box", "box"), "coulomb")])
def test_searches_take_the_sizes_of_each_sample(kinds: tuple[str, str], law: str) -> None:
    """The step is that of a robot which has these sizes for good."""
    rng = np.random.default_rng(2)
    usual, other = (drevo.load(scene(kinds, drawn(kinds, rng))) for _ in range(2))
    how: dict[str, Any] = {"dt": 0.002, "ground": None, "law": law}
    f, g = drevo.compile(usual, "step", **how, parameters="size.*"), drevo.compile(other, "step", **how)
    sizes = [x for geom in other.model.geoms for x in geom.size]
    mujoco, m, data = beside(scene(kinds, [geom.size for geom in other.model.geoms]))
    states = [as_ours(m, *touching(mujoco, m, data, rng)) for _ in range(10)]
    q, v = (np.array(x) for x in zip(*states))
    mixed = np.array([sizes, [x for _, x in f.parameters]] * 5)
    ours, theirs = f(q, v, np.zeros(12), mixed), g(q, v, np.zeros(12))
    assert np.abs(ours.v1 - theirs.v1)[::2].max() < 1e-12 and np.abs(ours.q1 - theirs.q1)[::2].max() < 1e-12


@pytest.mark.parametrize("parameters", ["size", ("size.*", "*.mass", "*.inertia.*")])
def test_piles_in_loops_take_sizes_and_weights_by_sample(parameters: Any) -> None:
    """More places than straight lines have: boxes and spheres about all, searches and rows by sample."""
    rng, robots = np.random.default_rng(3), []
    for _ in range(2):
        sizes = [*drawn(("plane",), rng), *drawn(PILE, rng)]
        robots.append(drevo.load(scene(("plane", *PILE), sizes, 1000.0 * (parameters != "size"), 9.81)))
    f = drevo.compile(robots[0], "step", dt=0.002, ground=None, parameters=parameters)
    g = drevo.compile(robots[1], "step", dt=0.002, ground=None)
    numbers = [drevo.compile(x, "step", dt=0.002, ground=None, parameters=parameters).parameters for x in robots]
    own = np.array([[x for _, x in told] for told in numbers])
    q, v = np.tile(np.eye(7)[6], (8, len(PILE), 1)), rng.normal(0.0, 0.3, (8, 6 * len(PILE)))
    q[..., :3] = rng.uniform(0.0, 0.35, (8, len(PILE), 3))
    q[..., 3:] += rng.normal(0.0, 0.5, (8, len(PILE), 4))
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=2)[..., None]
    q = q.reshape(8, -1)
    ours = f(q, v, np.zeros(6 * len(PILE)), own[[0, 1] * 4])
    theirs = g(q, v, np.zeros(6 * len(PILE)))
    assert (ours.forces != 0.0).any(axis=2).sum(axis=1).min() > 5
    assert np.abs(ours.v1 - theirs.v1)[1::2].max() < 1e-9


@pytest.mark.parametrize("medium", ["", "density='40' viscosity='.3' wind='1 2 0'"])
def test_weights_and_drag_follow_masses_and_inertias(medium: str) -> None:
    """With masses and moments of its density a sample is the model that is compiled with its size."""
    kinds = ("plane", "box", "ellipsoid", "box")
    rng, how = np.random.default_rng(4), ("size.b", "b.mass", "b.inertia", "size.d", "d.mass", "d.inertia")
    first = [(), np.full(3, 0.1), np.full(3, 0.08), np.array([0.1, 0.12, 0.14])]
    robot = drevo.load(scene(kinds, first, 900.0, 9.81, medium))
    f = drevo.compile(robot, "step", dt=0.002, ground=None, parameters=how)
    names = [x for x, _ in f.parameters]
    for _ in range(10):
        sizes = [(), rng.uniform(0.05, 0.15, 3), first[2], rng.uniform(0.05, 0.15, 3)]
        mujoco, m, data = beside(scene(kinds, sizes, 900.0, 9.81, medium))
        told = {f"size.{'abcd'[k]}.{i}": x for k in (1, 3) for i, x in enumerate(sizes[k])}
        for k in (1, 3):
            mass = 900.0 * 8.0 * np.prod(sizes[k])
            squares = np.square(sizes[k])
            told[f"{'abcd'[k]}.mass"] = mass
            for i, axes in enumerate(("xx", "yy", "zz")):
                told[f"{'abcd'[k]}.inertia.{axes}"] = mass / 3.0 * (squares.sum() - squares[i])
        q = np.zeros((3, 7))
        q[:, 2] = sizes[1][2] - 2e-3, 1.0, 2.0 * sizes[1][2] + sizes[3][2] - 4e-3
        q[1, :2], q[:, 3] = 1.0, 1.0
        v = rng.normal(0.0, 0.2, 18)
        wanted = stepped(mujoco, m, data, q.ravel(), v)
        assert data.ncon >= 8
        found = f(*as_ours(m, q.ravel(), v), np.zeros(18), [told[x] for x in names])
        assert np.abs(found.v1 - wanted[1]).max() < 1e-9 and np.abs(found.q1 - wanted[0]).max() < 1e-11


ARM = """<mujoco><option timestep='.002'/><default><geom density='0'/></default><worldbody>
 <geom name='floor' type='plane' size='5 5 1'/>
 <body name='up' pos='0 0 .5'><joint name='a' axis='0 1 0' frictionloss='.3' range='-10 10' limited='true'/>
  <inertial pos='.1 0 -.2' mass='{0}' diaginertia='.02 .02 .01'/>
  <body name='low' pos='0 0 -.4'><joint name='b' type='ball'/>
   <inertial pos='.05 0.02 -.05' mass='{1}' diaginertia='.02 .015 .01'/>
   <geom name='tip' type='sphere' size='.1' pos='0 0 -.02'/></body></body>
</worldbody></mujoco>"""


def test_weights_of_chains_limits_and_dry_friction_follow_masses() -> None:
    rng = np.random.default_rng(5)
    f = drevo.compile(drevo.load(ARM.format(2.0, 1.0)), "step", dt=0.002, ground=None, parameters="*.mass")
    assert [x for x, _ in f.parameters] == ["up.mass", "low.mass"]
    for _ in range(10):
        masses = rng.uniform(0.3, 4.0, 2)
        mujoco, m, data = beside(ARM.format(*masses))
        q = np.array([0.2 * rng.uniform(-1, 1), *rng.normal([1.0, 0, 0, 0], 0.1)])
        q[1:] /= np.linalg.norm(q[1:])
        v = rng.normal(size=4)
        wanted = stepped(mujoco, m, data, q, v)
        assert data.nefc >= 4
        assert np.abs(f(*as_ours(m, q, v), np.zeros(4), masses).v1 - wanted[1]).max() < 1e-9


@pytest.mark.parametrize("kinds", [x for x in TOUCHING_PAIRS if set(x) <= set(SIZED)])
def test_derivatives_by_sizes(kinds: tuple[str, str]) -> None:
    """The vjp beside central differences of steps."""
    rng = np.random.default_rng(6)
    sizes = drawn(kinds, rng)
    robot = drevo.load(scene(kinds, sizes))
    how: dict[str, Any] = {"dt": 0.002, "ground": None, "parameters": ("size", "*.mass")}
    f, back = drevo.compile(robot, "step", **how), drevo.compile(robot, "step", **how, product="vjp")
    mujoco, m, data = beside(scene(kinds, sizes))
    p, off = np.array([x for _, x in f.parameters]), []
    for _ in range(5):
        q, v = as_ours(m, *touching(mujoco, m, data, rng))
        w = rng.normal(size=(2, len(v)))
        w[0] = 0.0
        slope = back(q, v, np.zeros(len(v)), p, *w)[-1]
        for k in range(len(p)):
            h = 1e-7 * np.eye(len(p))[k]
            far, near = (f(q, v, np.zeros(len(v)), p + s * h).v1 for s in (1.0, -1.0))
            off.append(abs(slope[k] - w[1] @ (far - near) / 2e-7) / (1.0 + abs(slope[k])))
    assert np.median(off) < 1e-6 and np.sum(np.array(off) > 1e-5) <= len(p)  # a state may sit where rows change


@pytest.mark.parametrize("law", ["soft", "coulomb"])
@pytest.mark.parametrize("kinds", [("sphere", "box"), ("box", "cylinder")])
@pytest.mark.parametrize("wrong", [0.0, -0.1, np.nan, np.inf])
def test_what_is_no_size_is_refused_by_sample(kinds: tuple[str, str], law: str, wrong: float) -> None:
    robot = drevo.load(scene(kinds, [np.full(GEOM_SIZES[k], 0.1) for k in kinds]))
    f = drevo.compile(robot, "step", dt=0.002, ground=None, law=law, parameters="size.b")
    q, v = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (3, 2)), np.zeros((3, 12))
    q[:, 0] = 0.15
    sizes = np.tile([x for _, x in f.parameters], (3, 1))
    assert np.isfinite(f(q, v, np.zeros(12), sizes).v1).all()
    sizes[2, 1] = wrong
    told = r"size.b.1, parameters\[1\] in row 2, is .*: a size" if wrong <= 0.0 else "must be finite"
    with pytest.raises(drevo.NumericsError, match=told):
        f(q, v, np.zeros(12), sizes)


def test_names_that_are_no_sizes() -> None:
    robot = drevo.load(scene(("plane", "box"), [(), (0.1, 0.1, 0.1)]))
    for wrong in ("size.a", "size.c", "size.b.3"):
        with pytest.raises(drevo.InputError, match=r"names no size that could be a parameter.* size\.b\.0, size"):
            drevo.compile(robot, "step", dt=0.002, ground=None, parameters=wrong)
