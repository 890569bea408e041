"""Robots that touch, as MuJoCo and as Drevo have them."""

from __future__ import annotations

from typing import Any

import numpy as np

import drevo
from drevo import Robot

Array = np.ndarray[Any, Any]

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
    <body name="claw" pos="-.2 -.2 0"><joint name="r2" type="ball" range="0 25" margin=".05" solreflimit=".03 .9"/>
     <geom type="sphere" pos="-.2 -.2 0" size=".1"/></body></body></body>
  <body name="ball" pos=".4 .4 .6"><freejoint/><geom type="sphere" size=".15"/></body>
 </worldbody></mujoco>"""


def case(text: str, option: str = "", condim: int = 3, floor: str = "") -> tuple[Any, Robot, dict[str, Any]]:
    """MuJoCo's model, its solver exact, the robot, and how it steps; condim and floor go into the text."""
    import mujoco

    xml = text.format(option=option, condim=condim, floor=floor)
    m: Any = mujoco.MjModel.from_xml_string(xml)
    m.opt.solver, m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations = 2, 0.0, 100, 100
    method = {0: "euler", 1: "rk4", 3: "implicitfast"}[int(m.opt.integrator)]
    return m, drevo.load(xml), {"dt": m.opt.timestep, "method": method}


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
