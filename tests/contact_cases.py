"""Robots that touch, and what the soft law is made for out of MuJoCo's compiled models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import drevo
from drevo.contact.soft import RowGroup, Softness
from drevo.contact.stages import JointRow, Slot, SoftProblem, Touch
from drevo.mechanics.scalar import clip, sqrt, where
from drevo.mechanics.spatial import Mat, Vec
from drevo.mechanics.tree import build_tree

Array = np.ndarray[Any, Any]
PLANE, SPHERE, CAPSULE = 0, 2, 3

HOPPER = """<mujoco><option timestep="0.002" {option}/><default>
 <joint armature="1" damping="1" limited="true"/>
 <geom condim="{condim}" friction="2.0 0.1 0.1" solimp=".8 .8 .01" solref=".02 1"/></default>
 <worldbody><geom name="floor" type="plane" size="9 9 1" {floor}/>
  <body name="torso" pos="0 0 1.25">
   <joint name="x" axis="1 0 0" type="slide" armature="0" damping="0" limited="false"/>
   <joint name="z" axis="0 0 1" type="slide" armature="0" damping="0" limited="false"/>
   <joint name="turn" axis="0 1 0" type="hinge" armature="0" damping="0" limited="false"/>
   <geom type="capsule" fromto="0 0 .2 0 0 -.2" size=".05"/>
   <body name="thigh" pos="0 0 -.2"><joint name="hip" axis="0 -1 0" range="-150 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.45" size=".05"/>
    <body name="leg" pos="0 0 -.7"><joint name="knee" pos="0 0 .25" axis="0 -1 0" range="-150 0"/>
     <geom type="capsule" fromto="0 0 .25 0 0 -.25" size=".04"/>
     <body name="foot" pos=".065 0 -.25"><joint name="ankle" pos="-.065 0 0" axis="0 -1 0" range="-45 45"/>
      <geom type="capsule" fromto="-.195 0 0 .195 0 0" size=".06"/>
     </body></body></body></body></worldbody></mujoco>"""

CRAWLER = """<mujoco><option timestep="0.005" {option}/><default>
 <joint armature=".02" damping=".5" limited="true"/>
 <geom condim="{condim}" friction=".8 .02 .01" margin=".01" density="300"/></default>
 <worldbody><geom name="floor" type="plane" size="9 9 1" {floor}/>
  <body name="trunk" pos="0 0 .5"><freejoint/><geom type="sphere" size=".2"/>
   <body name="left" pos=".2 .1 0"><joint name="l1" axis="0 0 1" range="-40 40"/>
    <geom type="capsule" fromto="0 0 0 .2 .2 0" size=".06"/>
    <body name="shin" pos=".2 .2 0"><joint name="l2" axis="-1 1 0" range="10 70" frictionloss=".5"/>
     <geom type="capsule" fromto="0 0 0 .3 .3 0" size=".05"/></body></body>
   <body name="right" pos="-.2 -.1 0"><joint name="r1" axis="0 0 1" range="-40 40"/>
    <geom type="capsule" fromto="0 0 0 -.2 -.2 0" size=".06"/>
    <body name="claw" pos="-.2 -.2 0"><joint name="r2" type="ball" limited="false"/>
     <geom type="sphere" pos="-.2 -.2 0" size=".1"/></body></body></body>
  <body name="ball" pos=".4 .4 .6"><freejoint/><geom type="sphere" size=".15"/></body>
 </worldbody></mujoco>"""


def case(text: str, option: str = "", condim: int = 3, floor: str = "") -> tuple[Any, SoftProblem]:
    """MuJoCo's model, its solver exact, and the problem of its steps; condim and floor go into the text."""
    import mujoco

    xml = text.format(option=option, condim=condim, floor=floor)
    m: Any = mujoco.MjModel.from_xml_string(xml)
    m.opt.solver, m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations = 2, 0.0, 100, 100
    model = drevo.load(xml).model
    method = {0: "euler", 1: "rk4"}[int(m.opt.integrator)]
    slots = [s for a in range(m.ngeom) for b in range(a + 1, m.ngeom) for s in _slots(m, build_tree(model), a, b)]
    rows = [row for j in range(m.njnt) for row in _rows(m, j)]
    return m, SoftProblem(model, m.opt.timestep, tuple(slots), tuple(rows), m.opt.impratio, method)


def _rows(m: Any, j: int) -> list[JointRow]:
    v, out = int(m.jnt_dofadr[j]), []
    loss, weight = float(m.dof_frictionloss[v]), float(m.dof_invweight0[v])
    if loss:
        soft = Softness(_floats(m.dof_solref[v]), _floats(m.dof_solimp[v]))
        out.append(JointRow(v, 0, RowGroup("friction", bound=loss), soft, weight))
    if m.jnt_limited[j]:
        soft = Softness(_floats(m.jnt_solref[j]), _floats(m.jnt_solimp[j]), float(m.jnt_margin[j]))
        for sign, at in zip((1.0, -1.0), m.jnt_range[j]):
            out.append(JointRow(v, int(m.jnt_qposadr[j]), RowGroup("limit"), soft, weight, sign, float(at)))
    return out


def _floats(x: Any) -> Any:
    return tuple(map(float, x))


# -- geoms -------------------------------------------------------------------------------------------------


class Placed:
    """A geom in the body that has it."""

    def __init__(self, m: Any, tree: Any, g: int) -> None:
        import mujoco

        name, turn = m.body(m.geom_bodyid[g]).name, np.zeros(9)
        mujoco.mju_quat2Mat(turn, m.geom_quat[g])
        frame = tree.frames.get(name)
        R = (
            Mat.of(map(list, turn.reshape(3, 3).round(15)))
            if frame is None
            else frame.R.mul(Mat.of(turn.reshape(3, 3)))
        )
        at = Vec(*_floats(m.geom_pos[g]))
        self.body = -1 if m.geom_bodyid[g] == 0 else frame.body
        self.R, self.p = R, at if frame is None or self.body < 0 else frame.p + frame.R @ at
        self.kind, self.radius, self.half = int(m.geom_type[g]), *_floats(m.geom_size[g][:2])

    def at(self, poses: Any) -> tuple[Vec, Vec]:
        """Its centre and its axis."""
        pose = poses[self.body].compose(self.R, self.p)
        return pose.p, Vec(*(row.z for row in pose.R))


def _slots(m: Any, tree: Any, a: int, b: int) -> list[Slot]:
    first, second = (int(m.body_weldid[m.geom_bodyid[g]]) for g in (a, b))
    parents = [int(m.body_weldid[m.body_parentid[x]]) for x in (first, second)]
    if first == second or (first and second and (parents[0] == second or parents[1] == first)):
        return []
    a, b = (b, a) if m.geom_type[a] > m.geom_type[b] else (a, b)
    A, B = Placed(m, tree, a), Placed(m, tree, b)
    T, Q = m.body_invweight0[m.geom_bodyid[a]] + m.body_invweight0[m.geom_bodyid[b]]
    soft = Softness(*_softness(m, a, b), float(m.geom_margin[a] + m.geom_margin[b]))
    group = _group(m, a, b)
    if A.kind == PLANE:
        ends = (1.0, -1.0) if B.kind == CAPSULE else (0.0,)
        return [Slot((A.body, B.body), _on_plane(A, B, e), group, soft, (float(T), float(Q))) for e in ends]
    reach = A.radius + A.half + B.radius + B.half + soft.margin

    def near(poses: Any) -> Any:
        way = A.at(poses)[0] - B.at(poses)[0]
        return way.dot(way) - reach * reach

    return [Slot((A.body, B.body), _of_capsules(A, B), group, soft, (float(T), float(Q)), near)]


def _softness(m: Any, a: int, b: int) -> tuple[Any, Any]:
    mix = m.geom_solmix[a] / (m.geom_solmix[a] + m.geom_solmix[b])
    standard = min(m.geom_solref[a][0], m.geom_solref[b][0]) > 0
    mixed = mix * m.geom_solref[a] + (1 - mix) * m.geom_solref[b]
    least = np.minimum(m.geom_solref[a], m.geom_solref[b])
    return _floats(mixed if standard else least), _floats(mix * m.geom_solimp[a] + (1 - mix) * m.geom_solimp[b])


def _group(m: Any, a: int, b: int) -> RowGroup:
    size = int(max(m.geom_condim[a], m.geom_condim[b]))
    f = np.maximum(np.maximum(m.geom_friction[a], m.geom_friction[b]), 1e-5)
    mu = _floats((f[0], f[0], f[1], f[2], f[2])[: size - 1])
    kind = "limit" if size == 1 else "elliptic" if m.opt.cone else "pyramid"
    return RowGroup(kind, size, mu, mu[0] / m.opt.impratio**0.5 if mu else 0.0)


def _on_plane(A: Placed, B: Placed, end: float) -> Callable[[Any], Touch]:
    def touch(poses: Any) -> Touch:
        (origin, n), (centre, axis) = A.at(poses), B.at(poses)
        c = centre + axis * (end * B.half)
        dist = (c - origin).dot(n) - B.radius
        return Touch(dist, c - n * (0.5 * dist + B.radius), _frame(n, axis if B.kind == CAPSULE else None))

    return touch


def _of_capsules(A: Placed, B: Placed) -> Callable[[Any], Touch]:
    """Nearest points of two segments that are not parallel; a sphere is a short one."""

    def touch(poses: Any) -> Touch:
        (p, u), (r, w) = A.at(poses), B.at(poses)
        b, x, y = -u.dot(w), u.dot(r - p), w.dot(p - r)
        s = clip((x - b * y) / (1.0 - b * b + 1e-300), -A.half, A.half)
        t = clip(y - b * s, -B.half, B.half)
        s = clip(x - b * t, -A.half, A.half)
        way = (r + w * t) - (p + u * s)
        size = sqrt(way.dot(way))
        n = way * (1.0 / size)
        dist = size - A.radius - B.radius
        return Touch(dist, p + u * s + n * (A.radius + 0.5 * dist), _frame(n, None))

    return touch


def _frame(n: Vec, y: Vec | None) -> tuple[Vec, Vec, Vec]:
    if y is None:
        up = where(n.y * n.y < 0.25, 1.0, 0.0)
        y = Vec(0.0, up, 1.0 - up)
    y = y - n * n.dot(y)
    y = y * (1.0 / sqrt(y.dot(y)))
    return n, y, n.cross(y)


# -- states ------------------------------------------------------------------------------------------------


def states(m: Any, count: int, seed: int = 0) -> list[tuple[Array, Array, Array]]:
    """Positions, velocities and efforts of MuJoCo's, out of random motions that fall and lie."""
    import mujoco

    rng, d, out = np.random.default_rng(seed), mujoco.MjData(m), []
    for k in range(count):
        if k % 40 == 0:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(0.0, 1.0, m.nv)
        effort = rng.normal(0.0, 2.0, m.nv)
        for v in m.jnt_dofadr[m.jnt_type == 0]:
            effort[v : v + 3] = 0.0  # MuJoCo holds it along the world's axes while a step turns them
        for _ in range(12):
            d.qfrc_applied[:] = effort
            mujoco.mj_step(m, d)
        out.append((d.qpos.copy(), d.qvel.copy(), effort))
    return out


def as_ours(m: Any, q: Array, *rates: Array) -> list[Array]:
    """Coordinates and rates as Drevo has them: quaternions end with w, free joints move along their own axes."""
    import mujoco

    q, out = q.copy(), [x.copy() for x in rates]
    for j in range(m.njnt):
        if m.jnt_type[j] > 1:
            continue
        k, v = int(m.jnt_qposadr[j]) + 3 * (m.jnt_type[j] == 0), int(m.jnt_dofadr[j])
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, q[k : k + 4])
        q[k : k + 4] = np.roll(q[k : k + 4], -1)
        if m.jnt_type[j] == 0:
            for x in out:
                x[v : v + 3] = R.reshape(3, 3).T @ x[v : v + 3]
    return [q, *out]
