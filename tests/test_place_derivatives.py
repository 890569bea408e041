"""Derivatives of steps with places of contact that are searched for: against central differences, and one against
the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import drevo

Array = np.ndarray[Any, Any]
H, COUNT, E = 1e-3, 24, 1e-6
KINDS = {
    "box": 'type="box" size=".1 .15 .12"',
    "capsule": 'type="capsule" size=".08 .1"',
    "cylinder": 'type="cylinder" size=".12 .1"',
    "ellipsoid": 'type="ellipsoid" size=".1 .15 .12"',
    "mesh": 'type="mesh" mesh="m"',
}
CORNERS = "0 0 .15 .14 0 -.05 -.07 .12 -.05 -.07 -.12 -.05 .05 .05 .12 -.1 .03 .1"
FREE = '<body name="{0}"><freejoint/><geom name="{0}" mass="1" pos=".02 0 0" {1}/></body>'
SCENE = f"""<mujoco><asset><mesh name="m" vertex="{CORNERS}"/>
 <hfield name="h" nrow="4" ncol="4" size="1 1 .2 .1" elevation="0 .3 .1 .6 .5 .2 .8 .1 .4 .7 .2 .3 .9 .1 .5 .2"/>
 </asset><worldbody>{{}}</worldbody></mujoco>"""


def pair(a: str, b: str) -> drevo.Robot:
    return drevo.load(SCENE.format(FREE.format("a", KINDS[a]) + FREE.format("b", KINDS[b])), hulls=64)


def quaternions(rng: np.random.Generator, count: int) -> Array:
    q = rng.normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def touching(robot: drevo.Robot, aligned: bool = False) -> tuple[Array, Array, Array]:
    """q, v, tau with the second solid 3 mm in the first, found by halving; aligned: turned as this one, nearly."""
    rng = np.random.default_rng(5)
    q = np.zeros((COUNT, 14))
    q[:, 3:7], q[:, 10:] = quaternions(rng, COUNT), quaternions(rng, COUNT)
    if aligned:
        beside = Rotation.from_quat(q[:, 3:7]) * Rotation.from_rotvec(rng.normal(0.0, 0.01, (COUNT, 3)))
        q[:, 10:] = beside.as_quat()
    way = rng.normal(size=(COUNT, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    low, high = np.zeros((COUNT, 1)), np.ones((COUNT, 1))
    for _ in range(40):
        middle = 0.5 * (low + high)
        q[:, 7:10] = way * middle
        gaps = np.asarray(robot.distance(q, [("a", "b")]).distance).reshape(COUNT, 1)
        low, high = np.where(gaps < -0.003, middle, low), np.where(gaps < -0.003, high, middle)
    return q, *rng.normal(0.0, 0.3, (2, COUNT, 12))


def compare(robot: drevo.Robot, at: tuple[Array, ...], **how: Any) -> Array:
    """Asserts that w J x = x J' w; gives by how much J x of v1 differs from central differences, sorted."""
    jvp, vjp = (
        drevo.compile(robot, "step", dt=H, ground=None, product=x, **how) for x in ("value_and_jvp", "vjp")
    )
    rng = np.random.default_rng(1)
    ways = [rng.normal(size=z.shape) for z in (at[1], *at[1:])]
    weights = rng.normal(size=(2, *at[1].shape))
    y, x = [np.asarray(z) for z in jvp(*at, *ways)][4:6], [np.asarray(z) for z in vjp(*at, *weights)]
    left = sum((w * z).sum(1) for w, z in zip(weights, y))
    right = sum((d * z).sum(1) for d, z in zip(ways, x))
    assert np.isfinite(left).all() and np.abs(left - right).max() < 1e-10 * (1.0 + np.abs(left).max())
    ends = [
        jvp(robot.integrate(at[0], s * ways[0]), *(z + s * d for z, d in zip(at[1:], ways[1:])), *ways)
        for s in (E, -E)
    ]
    apart = np.abs((ends[0].v1 - ends[1].v1) / (2.0 * E) - y[1]).max(1)
    return np.sort(apart / (1.0 + np.abs(y[1]).max(1)))


@pytest.mark.parametrize(
    ("a", "b"),
    [("box", "box"), ("capsule", "cylinder"), ("ellipsoid", "mesh")],
)
def test_derivatives_of_steps_are_those_of_differences(a: str, b: str) -> None:
    """To E^2 times third derivatives, which near edges are large."""
    robot = pair(a, b)
    apart = compare(robot, touching(robot))
    assert apart[int(0.9 * COUNT)] < 1e-7 and apart[-1] < 1e-4


def test_derivatives_where_faces_meet() -> None:
    """Several places of two boxes, whose faces are cut with each other; J too."""
    robot = pair("box", "box")
    at = touching(robot, aligned=True)
    step = drevo.compile(robot, "step", dt=H, ground=None)
    assert (np.abs(step(*at).forces).sum(2) > 0.0).sum(1).max() >= 3
    apart = compare(robot, at)
    assert apart[COUNT // 2] < 1e-7 and apart[int(0.8 * COUNT)] < 1e-5
    f, jacobian = (
        drevo.compile(robot, "step", dt=H, ground=None, product=x) for x in ("value_and_jvp", "jacobian")
    )
    ways = np.random.default_rng(4).normal(size=(3, COUNT, 12))
    whole = sum(np.einsum("ijk,ik->ij", J, way) for J, way in zip(jacobian(*at), ways))
    each = np.concatenate(f(*at, *ways)[4:6], 1)
    assert (np.abs(whole - each).max(1) / (1.0 + np.abs(each).max(1))).max() < 1e-10


def test_derivatives_under_the_exact_law() -> None:
    robot = pair("box", "ellipsoid")
    apart = compare(robot, touching(robot), law="coulomb")
    assert apart[int(0.9 * COUNT)] < 1e-6


def test_derivatives_on_a_height_field() -> None:
    field = '<geom type="hfield" hfield="h"/>'
    robot = drevo.load(SCENE.format(field + FREE.format("a", KINDS["capsule"])))
    rng = np.random.default_rng(2)
    q = np.zeros((COUNT, 7))
    q[:, :2], q[:, 2], q[:, 3:] = rng.uniform(-0.5, 0.5, (COUNT, 2)), 0.18, quaternions(rng, COUNT)
    at = q, *rng.normal(0.0, 0.3, (2, COUNT, 6))
    step = drevo.compile(robot, "step", dt=H, ground=None)
    assert ((np.abs(step(*at).forces).sum(2) > 0.0).sum(1) > 0).sum() > COUNT // 2
    apart = compare(robot, at)
    assert apart[int(0.8 * COUNT)] < 1e-6


def test_derivatives_beside_a_plane_and_by_masses() -> None:
    """A hull on a plane, whose places are its corners, and a cylinder on the hull; by a mass too."""
    cube = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    text = SCENE.replace(CORNERS, cube).format('<geom type="plane" size="1 1 1"/>' + "".join(
        f'<body name="{name}" pos="{x} 0 {z}"><freejoint/><geom type="{kind}" mass="1"/></body>'
        for name, kind, x, z in (("a", 'mesh" mesh="m', 0.0, 0.0995),
                                 ("b", 'cylinder" size=".1 .1', 0.05, 0.2985))))  # fmt: skip
    robot, rng = drevo.load(text, hulls=64), np.random.default_rng(3)
    start = np.tile(np.array(robot.model.initial), (COUNT, 1))
    q = robot.integrate(start, rng.normal(0.0, 1e-3, (COUNT, robot.nv)))
    at = q, *rng.normal(0.0, 0.3, (2, COUNT, robot.nv)), np.ones((COUNT, 1))
    apart = compare(robot, at, parameters=["b.mass"])
    assert apart[COUNT // 2] < 1e-7 and apart[int(0.9 * COUNT)] < 1e-5


def test_sizes_of_searched_pairs_have_no_derivatives() -> None:
    robot = pair("ellipsoid", "cylinder")
    with pytest.raises(
        drevo.InputError, match="no derivatives by the sizes of a, for the places where they touch"
    ):
        drevo.compile(robot, "step", dt=H, ground=None, parameters=["size.a"], product="vjp")
