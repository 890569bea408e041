"""Which geoms may touch, by which parameters, and the inverse weights, against MuJoCo's compiled models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.contact.pairs import contact_candidates, inverse_weights, left_out_of_contact, with_ground
from drevo.ground import ground_of
from drevo.mechanics.algorithms.kinematics import placed_bodies
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model

mujoco = pytest.importorskip("mujoco")

TEXT = """
<mujoco><option timestep="0.005"/>
 <default><joint armature=".02" damping=".5"/><geom friction=".8 .02 .01" margin=".01" density="300"/></default>
 <worldbody><geom name="floor" type="plane" size="9 9 1" pos="0 0 0.05" condim="1"/>
  <geom name="post" type="capsule" size=".05 .3" pos="1 0 0.3"/>
  <body name="trunk" pos="0 0 .35" euler="10 20 30"><freejoint/><geom type="sphere" size=".2" priority="1"/>
   <geom name="lid" type="box" size=".1 .1 .05" pos="0 0 .2"/>
   <body name="left" pos=".2 .1 0"><joint name="l0" axis="1 0 0"/><joint name="l1" axis="0 0 1" ref="20"/>
    <geom type="capsule" fromto="0 0 0 .2 .2 0" size=".06" solref="0.03 0.8" solmix="3"/>
    <body name="pad" pos=".1 .1 .1"><geom type="cylinder" size=".05 .02" condim="6"/></body>
    <body name="shin" pos=".2 .2 0"><joint name="l2" axis="-1 1 0"/>
     <geom name="toe" type="capsule" fromto="0 0 0 .3 .3 0" size=".05" solimp=".5 .6 .01 .4 1.5" solref="-90 -9"/>
    </body></body>
   <body name="right" pos="-.2 -.1 0"><joint name="r1" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 -.2 -.2 0" size=".06" gap=".002"/>
    <body name="claw" pos="-.2 -.2 0"><joint name="r2" type="ball"/>
     <geom name="ball" type="sphere" pos="-.2 -.2 0" size=".1" contype="2" conaffinity="2"/></body></body></body>
  <body name="stone" pos=".4 .4 .6"><freejoint/><geom type="sphere" size=".15" friction="0 0 0" solmix="0"/></body>
 </worldbody>
 <contact><exclude body1="stone" body2="shin"/>
  <pair geom1="post" geom2="toe"/>
  <pair geom1="ball" geom2="floor" condim="4" friction="1 2 .3" margin=".02" solref=".04 1" gap=".001"/></contact>
</mujoco>"""


@pytest.fixture(scope="module")
def model() -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        return drevo.load(TEXT).model


def theirs_in(text: str) -> Any:
    return mujoco.MjModel.from_xml_string(text)


def random_state(rng: np.random.Generator, theirs: Any, data: Any) -> list[float]:
    """qpos near that of the file, and the same as q here."""
    data.qpos[:] = theirs.qpos0 + rng.uniform(-0.6, 0.6, theirs.nq)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    q = data.qpos.copy()
    for j in range(theirs.njnt):
        if theirs.jnt_type[j] < 2:
            end = theirs.jnt_qposadr[j] + (7, 4)[theirs.jnt_type[j]]
            q[end - 4 : end] = np.roll(q[end - 4 : end], -1)
    return [float(x) for x in q]


def row(dist: float, point: Any, frame: Any, condim: int, friction: Any, solref: Any, solimp: Any) -> list[float]:
    return [float(x) for x in (dist, *point, *np.ravel(frame), condim, *friction, *solref, *solimp)]


def test_candidates_are_the_contacts_of_mujoco(model: Model) -> None:
    """In random states, the same contacts with the same numbers; pairs that have no rule are told."""
    theirs, rng = theirs_in(TEXT), np.random.default_rng(1)
    data, tree, found = mujoco.MjData(theirs), build_tree(model), contact_candidates(model)
    cylinders = {g for g in range(theirs.ngeom) if theirs.geom_type[g] == mujoco.mjtGeom.mjGEOM_CYLINDER}
    planes_or_spheres = (0, 2)  # of mujoco.mjtGeom
    counts = 0
    for _ in range(150):
        q = random_state(rng, theirs, data)
        mujoco.mj_forward(theirs, data)
        there = []
        for c in data.contact[: data.ncon]:
            kinds = theirs.geom_type[c.geom]
            if set(c.geom) & cylinders and kinds[0] not in planes_or_spheres:
                continue
            if c.dist < c.includemargin:
                there.append(row(c.dist, c.pos, c.frame, c.dim, c.friction, c.solref, c.solimp))
        poses = placed_bodies(tree, q)
        here = []
        for x in found:
            touch = x.touch(poses)
            near = x.near(poses)
            assert near is None or near <= touch.dist + 1e-12
            i = x.interaction
            kinds = [geom.kind for geom in x.geoms]
            if touch.dist < i.margin and kinds != ["capsule", "cylinder"]:  # see test_colliders
                here.append(row(*touch[:3], i.condim, i.friction, i.solref, i.solimp))
        order = [sorted(rows, key=lambda r: [round(v, 8) for v in r]) for rows in (here, there)]
        assert len(here) == len(there)
        counts += len(here)
        if here:
            assert np.abs(np.array(order[0]) - order[1]).max() < 1e-10
    assert counts > 300
    assert left_out_of_contact(model) == []
    boxes = drevo.load(
        TEXT.replace('<geom type="sphere" size=".15"', '<geom type="box" size=".1 .1 .1"'), strict=False
    )
    assert left_out_of_contact(boxes.model, searched=True) == []
    (told,) = left_out_of_contact(boxes.model)
    assert told.startswith("pairs of the kinds box-box ('") and "), cylinder-box ('" in told


def test_inverse_weights_are_those_of_mujoco(model: Model) -> None:
    theirs, found = theirs_in(TEXT), inverse_weights(model)
    assert np.abs(np.array(found.rates) - theirs.dof_invweight0).max() < 1e-12 * theirs.dof_invweight0.max()
    for b in range(1, theirs.nbody):
        assert found.bodies[theirs.body(b).name] == pytest.approx(tuple(theirs.body_invweight0[b]), rel=1e-11)


@pytest.mark.parametrize("joints", [
    '<joint type="slide" axis="0 1 0" armature=".04"/><joint type="slide" axis="1 0 0" armature=".04"/>',
    '<joint type="slide" axis="0 0 -2"/>',
    '<joint type="slide" axis="0 1 1" armature=".04"/><joint type="slide" axis="1 0 0"/>',
    '<joint type="slide" axis="1 0 0" armature=".04"/><joint axis="0 0 1"/>',
])  # fmt: skip
def test_weights_of_what_only_slides(joints: str) -> None:
    """MuJoCo leaves armature out where a body alone slides along its own axes."""
    text = f"""<mujoco><worldbody><body euler="0 20 0">{joints}<geom type="box" size=".1 .1 .2" mass=".5"/></body>
      <body pos="1 0 0">{joints.replace("armature", "damping")}<geom size=".1"/>
       <body><geom size=".2"/></body></body></worldbody></mujoco>"""
    theirs, model = theirs_in(text), drevo.load(text).model
    found = inverse_weights(model)
    assert found.rates == pytest.approx(theirs.dof_invweight0, rel=1e-11)
    for b in (1, 2):
        assert found.bodies[model.geoms[b - 1].link] == pytest.approx(
            theirs.body_invweight0[b], rel=1e-11, abs=1e-12
        )


def test_weights_of_bodies_without_mass() -> None:
    """Their centre stands, for MuJoCo, as far from their origin as this from their parent's."""
    text = """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" mass="2"/>
      <body name="flange" pos=".1 .2 .3" euler="0 30 0"><body name="pad" pos="0 0 .2"/></body>
      <body name="turning" pos="0 .2 .1"><joint axis="1 0 0" pos=".1 .1 .3"/>
       <body pos="0 0 .4"><geom size=".1"/></body></body></body>
      <body name="free" pos="1 .2 .1"><freejoint/><body pos="0 0 .4"><geom size=".1"/></body></body>
     </worldbody></mujoco>"""
    theirs, found = theirs_in(text), inverse_weights(drevo.load(text).model)
    for name in ("flange", "pad", "turning", "free"):
        assert found.bodies[name] == pytest.approx(tuple(theirs.body(name).invweight0), rel=1e-11)


def test_bodies_of_motion_capture_are_bodies_of_their_own() -> None:
    """What hangs on one does not touch it, and none touches what stands."""
    text = """<mujoco><default><geom size=".1"/></default><worldbody><geom name="w"/>
      <body mocap="true"><geom name="a"/><body><geom name="a2"/><body><joint/><geom name="b"/></body></body></body>
      <body mocap="true"><geom name="c"/></body>
      <body><geom name="s"/><body><joint/><geom name="t"/></body></body></worldbody></mujoco>"""
    theirs = theirs_in(text)
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    wanted = {frozenset((theirs.geom(c.geom1).name, theirs.geom(c.geom2).name)) for c in data.contact}
    assert {frozenset(y.name for y in x.geoms) for x in contact_candidates(drevo.load(text).model)} == wanted


def test_ground_takes_the_place_of_planes(model: Model) -> None:
    slope = ground_of(drevo.ground.function(lambda x, y: 0.1 * x))
    assert {x.geoms[0].name for x in contact_candidates(model) if x.geoms[0].kind == "plane"} == {"floor"}
    assert contact_candidates(model, "plane") == contact_candidates(model)
    there = [x for x in contact_candidates(model, slope) if x.geoms[0].kind == "plane"]
    assert {x.geoms[0].name for x in there} == {"ground"} and all(x.ground is slope for x in there)
    assert there[0].geoms[0].condim == 1  # as the plane has it


def test_contact_points_touch_where_there_is_nothing_else() -> None:
    biped = drevo.load("biped")
    found = contact_candidates(biped.model, "plane")
    assert len(found) == len(biped.model.contacts) == 8
    assert all(x.geoms[1].size == (0.0,) and x.interaction.condim == 3 for x in found)


def test_what_cannot_touch_is_refused() -> None:
    assert contact_candidates(drevo.load("three-link").model, "plane") == ()
    with pytest.raises(drevo.InputError, match="the ground is 'plane'"):
        ground_of("moon")
    with pytest.raises(drevo.InputError, match="node \\(1, 0\\) of the grid is nan"):
        drevo.ground.grid([[0.0, 1.0], [float("nan"), 0.0]], 0.1)
    with pytest.raises(drevo.InputError, match="at least 2 x 2"):
        drevo.ground.grid([1.0, 2.0], 0.1)
    flat = [[0.0, 1.0], [0.0, 0.0]]
    for spacing in (0.0, "x", 1j, {}, (1.0, 2.0, 3.0), 1e-320):
        with pytest.raises(drevo.InputError, match="spacing"):
            drevo.ground.grid(flat, spacing)
    for origin in ("x", 1, (1.0,), np.eye(3), (0.0, np.nan)):
        with pytest.raises(drevo.InputError, match="the origin of a height grid"):
            drevo.ground.grid(flat, 0.1, origin=origin)
    for heights in ("", np.eye(3) + 1j, [[0.0], [1.0, 2.0]]):
        with pytest.raises(drevo.InputError, match="the heights of a grid"):
            drevo.ground.grid(heights, 0.1)
    with pytest.raises(drevo.InputError, match="cannot be traced"):
        drevo.ground.function(lambda x, y: x["a"])
    with pytest.raises(drevo.InputError, match="not 3"):
        drevo.ground.function(3)
    assert with_ground(drevo.load(TEXT).model, None).geoms


def test_grids_are_bilinear_with_normals_without_edges() -> None:
    """At nodes the heights themselves; between them bilinear; graphs as floats; a plane is a plane."""
    from drevo.codegen.graph.evaluate import evaluate_edges
    from drevo.codegen.graph.node import Graph

    rng = np.random.default_rng(2)
    heights = rng.uniform(0.0, 0.2, (7, 5))
    ground = drevo.ground.grid(heights, (0.3, 0.2), origin=(-1.0, 0.5))
    for i, j in np.ndindex(7, 5):
        assert ground.slopes(-1.0 + 0.3 * i, 0.5 + 0.2 * j)[0] == pytest.approx(heights[i, j], abs=1e-14)
    assert ground.slopes(-0.85, 0.6)[0] == pytest.approx(heights[:2, :2].mean(), abs=1e-14)
    x, y = rng.uniform(-1.3, 1.2, 200), rng.uniform(0.3, 1.5, 200)
    graph = Graph()
    a, b = graph.input("x"), graph.input("y")
    found = ground.slopes(a, b)
    leaves = {a.edge >> 1: x, b.edge >> 1: y}
    traced = np.array(evaluate_edges(graph, [z.edge for z in found], leaves))
    plain = np.array([ground.slopes(float(u), float(w)) for u, w in zip(x, y)]).T
    assert np.abs(traced - plain).max() < 1e-13
    n = [ground.surface(-0.7 + shift, 0.7)[1] for shift in (-1e-9, 1e-9)]  # across the edge of a cell
    assert np.abs(np.array(n[0]) - n[1]).max() < 1e-7
    plane = drevo.ground.grid(np.add.outer(0.1 * np.arange(4), 0.3 * np.arange(3)), 1.0)
    assert plane.slopes(0.123, -0.4)[1:] == pytest.approx((0.1, 0.3), abs=1e-14)


def test_grounds_are_told_apart_by_their_keys() -> None:
    def keyed(x: object) -> str:
        return ground_of(x).digest

    keys = [
        keyed(drevo.ground.function(lambda x, y: 0.1 * x)),
        keyed(drevo.ground.function(lambda x, y: 0.2 * x)),
        keyed(drevo.ground.function(lambda x, y: 0.1 * drevo.sin(x))),
        keyed(drevo.ground.function(lambda x, y: 0.1 * x, friction=lambda x, y: 0.5)),
        keyed(drevo.ground.function(lambda x, y, k: k * x, parameters={"k": 0.1})),
        keyed(drevo.ground.function(lambda x, y, k: k * x, parameters={"k": 0.2})),
        keyed(drevo.ground.grid([[0.0, 1.0], [0.0, 0.0]], 1.0)),
        keyed(drevo.ground.grid([[0.0, 1.0], [0.0, 0.0]], 2.0)),
    ]
    assert len(set(keys)) == 8
    assert keyed(drevo.ground.function(lambda x, y: 0.1 * x)) == keys[0]
