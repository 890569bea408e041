"""The soft law against MuJoCo's own C, its solver exact: contacts, accelerations, forces, steps, motions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contact_cases import CRAWLER, HOPPER, as_ours, case, states
from stages_on_arrays import Reference

import drevo
from drevo import Robot
from drevo.contact.laws.soft import kernel
from drevo.contact.laws.soft.kernel import evaluation
from drevo.contact.laws.soft.law import (
    Answer,
    DryFriction,
    EllipticCone,
    Equality,
    OneSided,
    Pyramid,
    RowGroup,
    Softness,
)
from drevo.contact.laws.soft.problem import soft_problem
from drevo.contact.step import add_law
from drevo.errors import InputError

pytestmark = pytest.mark.needs("mujoco")
DIGITS = 2e-11  # of a step: what a few hundred roundings leave of rates up to 100
BOX = '<geom type="box" size=".3 .3 .15" pos=".1 .05 0" euler="4 9 20"/><body name="torso"'
COUPLED = """<equality><joint joint1="ankle" joint2="knee" polycoef=".1 .4 .2 -.1 0" solref=".05 .8"/>
 <joint joint1="hip" polycoef="-.2 0 0 0 0" solimp=".8 .9 .01"/></equality></mujoco>"""
BENT = """<equality><joint joint1="l2" joint2="r1" polycoef="0 1 .5 0 0" solref=".05 .8"/>
 <joint joint1="l1" polycoef=".2 0 0 0 0" solimp=".8 .9 .01"/></equality></mujoco>"""
CLOSED = """<equality><connect body1="shin" body2="ball" anchor=".3 .3 .1" solref=".03 .9"/>
 <weld body1="claw" body2="trunk" relpose=".2 .1 .05 .9 .2 .1 .3" torquescale=".6" solimp=".8 .9 .5 .4 2"/>
 </equality></mujoco>"""
SITES = {'fromto="0 0 0 .3 .3 0" size=".05"/>': "<site name='a' pos='.3 .3 0'/>",
         '<geom type="sphere" pos="-.2 -.2 0" size=".1"/>': "<site name='b' pos='-.2 -.2 .1'/>"}  # fmt: skip
ROPES = """<tendon>
 <spatial name="rope" limited="true" range=".5 1" solreflimit=".03 .9" margin=".01" frictionloss=".3">
  <site site="a"/><site site="b"/></spatial>
 <fixed name="belt" frictionloss=".2" solreffriction=".04 .8" range="-.3 .2" solimplimit=".8 .9 .1">
  <joint joint="l1" coef="1"/><joint joint="r1" coef="-.5"/></fixed>
 <fixed name="band" stiffness="3"><joint joint="l2" coef="2"/></fixed></tendon>
<equality><tendon tendon1="band" tendon2="rope" polycoef=".1 .5 .2" solref=".04 1"/></equality></mujoco>"""
TIED = CRAWLER.replace("</mujoco>", ROPES)
for beside, site in SITES.items():
    TIED = TIED.replace(beside, beside + site)
CLOSED_CRAWLER = CRAWLER.replace("</mujoco>", CLOSED)
BELTS = CRAWLER.replace('size=".1"/>', 'size=".1" surfacevel=".3 .2 .1 1 -2 3"/>')
BESIDE = '<body name="ball" pos=".4 .4 .6"><freejoint/><geom type="sphere" size=".15"/></body>'
ALONE = BELTS.replace(BESIDE, "").replace('<joint name="l2"', '<joint name="l2" damping="0"')
STIFF_FLOOR = 'solref=".008 1" priority="1" margin=".02"'
OVERRIDE = 'o_margin=".03" o_solref=".03 .8" o_solimp=".5 .7 .01 .4 3" o_friction=".2 .3 .01 .02 .03"'

FOLDING = """<mujoco><option {option}/>
 <default><geom type="box" condim="{condim}" friction=".4 .02 .01"/></default>
 <worldbody><geom type="plane" size="9 9 1" {floor}/><body pos="0 0 .2"><freejoint/><geom size=".3 .1 .05"/>
  <body pos=".3 0 0"><joint axis="0 1 0" pos=".05 0 0" range="-90 20" frictionloss=".1"/>
   <geom size=".2 .1 .05" pos=".25 0 0"/></body></body></worldbody></mujoco>"""

PILED = """<mujoco><option {option}/><default><geom type="box" condim="{condim}" friction=".3 .02 .01"/></default>
 <worldbody><geom type="plane" size="9 9 1"/><geom size=".3 .25 .05" {floor}/>
  <body pos="0 0 .12"><freejoint/><geom size=".15 .2 .07"/></body>
  <body pos=".05 0 .24"><freejoint/><geom size=".1 .05 .05"/></body></worldbody></mujoco>"""
RAILS = """<mujoco><option noslip_iterations="3"/><default><geom type="capsule" size=".05"/></default><worldbody>
  <geom name="0" type="plane" size="9 9 1"/><geom name="1" fromto="-1 0 .2 1 0 .2"/>
  <geom name="2" fromto="-1 .3 .2 1 .3 .2"/><body pos="0 0 .3"><freejoint/>
   <geom name="3" type="sphere" pos=".15 0 0"/><geom name="4" fromto="-.1 -.05 0 -.1 .35 0"/>
   <geom name="5" type="sphere" pos=".15 .3 0"/></body></worldbody></mujoco>"""


def flags(text: str) -> str:
    """Flags among the attributes of an <option>."""
    return f"><flag {text}/></option><option "


CASES = {
    "hopper": (HOPPER, 'integrator="Euler"', 3, ""),
    "hopper rk4": (HOPPER, 'integrator="RK4"', 3, ""),
    "hopper elliptic": (HOPPER, 'cone="elliptic" impratio="3"', 3, ""),
    "hopper on a box": (HOPPER.replace('<body name="torso"', BOX), "", 4, ""),
    "crawler": (CRAWLER, "", 3, ""),
    "crawler rk4": (CRAWLER, 'integrator="RK4"', 3, 'euler="3 5 0"'),
    "crawler frictionless": (CRAWLER, "", 1, 'euler="0 8 0"'),
    "crawler torsion": (CRAWLER, 'impratio="2"', 4, 'solref="-3000 -40"'),
    "crawler rolling": (CRAWLER, "", 6, 'solimp=".7 .9 .02 .3 3"'),
    "hopper coupled": (HOPPER.replace("</mujoco>", COUPLED), "", 3, ""),
    "crawler coupled": (CRAWLER.replace("</mujoco>", BENT), 'integrator="RK4"', 3, ""),
    "crawler closed": (CLOSED_CRAWLER, 'integrator="RK4"', 3, ""),
    "crawler tied": (TIED, "", 3, ""),
    "crawler tied rk4": (TIED, 'integrator="RK4"', 3, ""),
    "crawler implicitfast": (CRAWLER, 'integrator="implicitfast"', 3, ""),
    "crawler elliptic": (CRAWLER, 'cone="elliptic" impratio="4"', 3, 'euler="3 5 0"'),
    "crawler elliptic rolling": (CRAWLER, 'cone="elliptic" integrator="RK4"', 6, ""),
    "crawler undamped": (CRAWLER, flags("eulerdamp='disable' refsafe='disable'"), 3, STIFF_FLOOR),
    "crawler overridden": (CRAWLER, OVERRIDE + flags("override='enable'"), 6, STIFF_FLOOR),
    "crawler not overridden": (CRAWLER, OVERRIDE, 3, ""),
    "crawler overridden elliptic": (CRAWLER, 'cone="elliptic"' + flags("override='enable'"), 4, ""),
    "crawler exact": (TIED, flags("diagexact='enable'"), 3, ""),
    "crawler exact elliptic": (CLOSED_CRAWLER, 'cone="elliptic"' + flags("diagexact='enable'"), 6, ""),
    "crawler without slip": (ALONE, 'noslip_iterations="6"', 3, 'euler="3 5 0"'),
    "crawler without slip rolling": (ALONE, 'noslip_iterations="9" cone="elliptic"', 6, 'euler="3 5 0"'),
    "crawler without slip rk4": (ALONE, 'noslip_iterations="3" integrator="RK4"', 4, ""),
    "hopper without slip": (HOPPER, 'noslip_iterations="20" noslip_tolerance="0"', 3, ""),
    "hopper without slip elliptic": (HOPPER, 'noslip_iterations="20" cone="elliptic"', 3, ""),
    "boxes without slip": (FOLDING, 'noslip_iterations="3"', 3, 'euler="3 5 0"'),
    "boxes without slip elliptic": (FOLDING, 'noslip_iterations="3" cone="elliptic"', 4, ""),
    "pile without slip": (PILED, 'noslip_iterations="3" noslip_tolerance="0"', 3, 'euler="2 3 0"'),
    "crawler on belts": (BELTS, "", 6, 'surfacevel="1 -2 .5 .3 .2 2"'),
    "crawler on belts elliptic": (BELTS, 'cone="elliptic" integrator="RK4"', 4, 'surfacevel="1 -2 .5 .3 .2 2"'),
}


# each has a smaller or a fuller one beside it
NIGHTLY = (
    "crawler rk4", "crawler coupled", "crawler tied rk4", "crawler without slip rolling",
    "crawler without slip rk4",
)  # fmt: skip


def daily(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.nightly) if name in NIGHTLY else name


def batch(m: Any, count: int) -> tuple[list[np.ndarray[Any, Any]], list[Any]]:
    """q, v, tau of our own, and of each state MuJoCo's data after one step of it."""
    import mujoco

    given, ends = [], []
    for q, v, effort in states(m, count):
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, effort
        mujoco.mj_step(m, d)
        given.append(as_ours(m, q, v, effort))
        ends.append(d)
    return [np.array(x) for x in zip(*given)], ends


@pytest.mark.filterwarnings("ignore:.*its range is held by a spring")
@pytest.mark.parametrize("name", [daily(x) for x in CASES])
def test_steps_are_those_of_mujoco(name: str) -> None:
    """The minimiser is unique, so any two solvers that have converged agree."""
    m, robot, how = case(*CASES[name])
    given, ends = batch(m, 80)
    assert sum(d.ncon > 0 for d in ends) > 20
    q1, v1, _, residual = drevo.compile(robot, "step", **how)(*given)
    told = [as_ours(m, d.qpos, d.qvel) for d in ends]
    assert np.abs(q1 - [q for q, _ in told]).max() < DIGITS
    assert np.abs(v1 - [v for _, v in told]).max() < DIGITS * (1.0 + np.abs(v1).max())
    assert residual.max() < 1e-10


def test_sweeps_against_slip_go_over_contacts_in_mujocos_order() -> None:
    """By bodies, then by geoms, of which the one of the simpler kind is the first."""
    m, robot, _ = case(RAILS)
    sweeps = evaluation(soft_problem(robot.model, None, m.opt.timestep, "euler"))
    held = [sweeps.problem.slots[k].held for k in sweeps.noslip.order]
    pairs = [tuple(int(x.geom.name) for x in ends) for ends in held if ends]
    seen = set[tuple[tuple[int, int], ...]]()
    for end in batch(m, 80)[1]:
        seen.add(tuple(dict.fromkeys((int(c.geom1), int(c.geom2)) for c in end.contact)))
    for contacts in seen:
        assert (places := [pairs.index(x) for x in contacts]) == sorted(places)
    assert any({(1, 4), (3, 1)} <= set(x) for x in seen)


@pytest.mark.filterwarnings("ignore:.*its range is held by a spring")
@pytest.mark.parametrize("name", ["crawler coupled", "crawler closed", "crawler tied"])
def test_how_softly_it_holds_is_read_from_a_compiled_model_too(name: str) -> None:
    m, robot, _ = case(*CASES[name])
    again = drevo.load(m).model
    for part in ("loops", "couplings", "tendons", "tendon_couplings"):
        wanted = getattr(robot.model, part)
        assert len(wanted) == len(getattr(again, part))
        for x, y in zip(wanted, getattr(again, part)):
            soft = [k for k in x.__dataclass_fields__ if k.endswith(("solref", "solimp", "margin", "torquescale"))]
            assert soft and [getattr(x, k) for k in soft] == [getattr(y, k) for k in soft]


@pytest.mark.parametrize("name", ["hopper", "crawler", "crawler elliptic"])
def test_contacts_and_forces_are_those_of_mujoco(name: str) -> None:
    """As many contacts in every state, and the same force in each."""
    import mujoco

    m, robot, how = case(*CASES[name])
    given, ends = batch(m, 40)
    forces = drevo.compile(robot, "step", **how)(*given)[2]
    e = evaluation(soft_problem(robot.model, None, how["dt"], "euler"))
    seen = Reference(e, dict(zip(("q", "v", "tau"), given)))
    seen.step()
    gaps = np.array([seen.blocks[f"slot_{k}"][at.gap] for k, at in enumerate(e.records)])
    for k, d in enumerate(ends):
        assert (gaps[:, k] < 0.0).sum() == d.ncon
        total, one = np.zeros(3), np.zeros(6)
        ours = sum((forces[k, i] for i, s in enumerate(e.problem.slots) if s.bodies[0] == -1), np.zeros(3))
        for i, contact in enumerate(d.contact):
            mujoco.mj_contactForce(m, d, i, one)
            if m.geom_bodyid[contact.geom[0]] == 0:
                total += contact.frame.reshape(3, 3).T @ one[:3]
        assert np.abs(ours - total).max() < 1e-9 * max(1.0, np.abs(total).max())


@pytest.mark.parametrize("solimp", [".1 .1 .01", ".8 .8 .01", ".9999 .9999 .01"])
def test_residuals_are_what_velocities_are_off(
    solimp: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After one Newton step in place of all: of soft, medium and firm rows, to a part of ten at the median."""
    m, robot, how = case(HOPPER.replace(".8 .8 .01", solimp))
    given, _ = batch(m, 80)
    whole = drevo.compile(robot, "step", **how)(*given)
    monkeypatch.setattr(kernel, "MAX_NEWTON_STEPS", 1)
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    some = drevo.compile(Robot(robot.model), "step", **how)(*given)
    off = np.abs(some.v1 - whole.v1).max(1)
    told = some.residual[off > 1e-8] / off[off > 1e-8]
    assert len(told) > 20 and abs(np.median(told) - 1.0) < 0.1 and told.min() > 0.1
    assert whole.residual.max() < 1e-11 and some.residual[off <= 1e-8].max(initial=0.0) < 1e-7


def test_the_residual_of_forces_that_are_stiff() -> None:
    """What turns about its centre of mass has no inverse weight there: two ends push each other with 1e16 N, whose
    sum rounds to 1 N m, and velocities are right to rounding."""
    import mujoco

    text = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 .049">
     <joint axis="0 1 0"/><geom type="capsule" fromto="-.3 0 0 .3 0 0" size=".05"/></body></worldbody></mujoco>"""
    m: Any = mujoco.MjModel.from_xml_string(text)
    m.opt.tolerance, d = 0.0, mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = 1e-3, 0.3
    mujoco.mj_step(m, d)
    found = drevo.compile(drevo.load(text), "step", dt=0.002, method="euler", ground=None)([1e-3], [0.3], [0.0])
    assert np.abs(found.forces).max() > 1e15 and abs(found.v1 - d.qvel).max() < 1e-14 and found.residual < 1e-14


@pytest.mark.parametrize("name", ["hopper rk4", "crawler elliptic"])
def test_stages_on_arrays_are_the_compiled_ones(name: str) -> None:
    m, robot, how = case(*CASES[name])
    given, _ = batch(m, 24)
    e = evaluation(soft_problem(robot.model, None, how["dt"], how["method"]))
    found = Reference(e, dict(zip(("q", "v", "tau"), given)))
    found.step()
    for x, y in zip(("q1", "v1", "forces", "residual"), drevo.compile(robot, "step", **how)(*given)):
        assert np.allclose(found.told(x).reshape(y.shape), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [
    "hopper", "hopper rk4", "crawler", daily("crawler rk4"), "crawler closed", "crawler implicitfast",
])  # fmt: skip
def test_motions_are_those_of_mujoco(name: str) -> None:
    """150 steps, falls and impacts among them."""
    import mujoco

    m, robot, how = case(*CASES[name])
    step, d = drevo.compile(robot, "step", **how), mujoco.MjData(m)
    d.qpos[:], d.qvel[:], _ = states(m, 2)[1]  # not where a limit or a contact just begins
    q, v, still = as_ours(m, d.qpos, d.qvel, np.zeros(m.nv))
    touched = 0
    for _ in range(150):
        mujoco.mj_step(m, d)
        touched += d.ncon > 0
        q, v, *_ = step(q, v, still)
    assert touched > 20
    assert np.abs(q - as_ours(m, d.qpos)[0]).max() < 1e-8


def test_lanes_do_not_touch_each_other() -> None:
    """States of a batch are as they are alone, whoever stands beside them."""
    m, robot, how = case(*CASES["crawler"])
    (q, v, tau), _ = batch(m, 19)
    step = drevo.compile(robot, "step", **how)
    together = step(q, v, tau)
    for k in (0, 7, 18):
        for x, y in zip(together, step(q[k], v[k], tau[k])):
            assert np.abs(x[k] - y).max() <= 1e-11 * max(1.0, np.abs(y).max())


def test_what_is_not_finite_is_refused() -> None:
    """One state that is no state: the row is named, and nothing else is returned."""
    m, robot, how = case(*CASES["hopper"])
    (q, v, tau), _ = batch(m, 10)
    v[3, 2] = math.inf
    with pytest.raises(drevo.DrevoError, match="3"):
        drevo.compile(robot, "step", **how)(q, v, tau)


@pytest.mark.parametrize("group", [
    OneSided(), DryFriction(bound=2.0), Equality(), Pyramid(4, (0.7, 0.7, 0.1), 0.7),
    EllipticCone(3, (0.9, 0.9), 0.6), EllipticCone(6, (0.9, 0.9, 0.1, 0.2, 0.2), 0.9),
], ids=lambda g: f"{type(g).__name__} {g.size}")  # fmt: skip
def test_forces_are_minus_the_slope_of_a_convex_function(group: RowGroup) -> None:
    """The Hessian is the derivative of the forces, symmetric and not negative."""
    rng = np.random.default_rng(3)
    D = [float(x) for x in group.stiffness(0.9, group.diagonal(2.0), 1.7)]
    for y in rng.normal(0.0, 0.3, (60, group.size)):
        answer = group.answer([float(x) for x in y], D)
        n = group.size
        S = np.array([[answer.hessian[max(r, c)][min(r, c)] for c in range(n)] for r in range(n)])
        assert np.linalg.eigvalsh(S).min() >= -1e-9 * np.abs(S).max()
        for k in range(n):
            ends = [group.answer([float(x) for x in y + s * 1e-7 * np.eye(n)[k]], D).force for s in (1, -1)]
            rate = -(np.array(ends[0]) - ends[1]) / 2e-7
            assert np.abs(rate - S[:, k]).max() < 1e-5 * max(1.0, np.abs(S).max())


def test_impedance_is_mujocos_curve() -> None:
    """Ends, middle and width of solimp; one power and another."""
    soft = Softness((0.02, 1.0), (0.5, 0.9, 0.01, 0.4, 3.0))
    assert soft.impedance(0.0) == pytest.approx(0.5)
    assert soft.impedance(-0.02) == 0.9
    assert soft.impedance(-0.004) == pytest.approx(0.5 + 0.4 * 0.4)
    assert Softness((0.02, 1.0), (0.5, 0.9, 0.01, 0.5, 1.0)).impedance(0.0025) == pytest.approx(0.6)
    assert Softness((0.02, 1.0), (0.5, 0.9, 0.01, 0.4, 1.3)).impedance(-0.002) == pytest.approx(
        0.5 + 0.4 * 0.2**1.3 / 0.4**0.3, rel=1e-14
    )
    assert soft.gains(0.05)[1] == pytest.approx(2.0 / (0.9 * 0.1))  # two steps at least


def test_implicit_steps_do_not_round_by_the_forces_of_rigid_rows() -> None:
    """A beam that turns about its centre weighs nothing there: rows at the least regulariser that press on each
    other hold with 1e16 N, and the step is still that of M a."""
    beam = drevo.load("""<mujoco><default><geom condim="1" size=".05" solref=".02 1" solimp=".9 .9 .01"/></default>
     <worldbody><geom pos=".2 0 -.09"/><geom pos="-.17 0 -.093"/><body><joint axis="0 1 0" damping=".1"/>
      <geom pos=".2 0 0" mass=".17"/><geom pos="-.17 0 0" mass=".2"/>
      <body pos=".4 0 0"><joint axis="0 1 0" damping=".02"/><geom pos=".1 0 0" mass=".1"/></body></body>
    </worldbody></mujoco>""")
    found = drevo.compile(beam, "step", dt=0.002, ground=None)(*np.zeros((3, 2)))
    J, depth = np.array([-0.2, 0.17]), np.array([0.01, 0.007])
    pushed = J @ (0.9 * depth / (0.9 * 0.02) ** 2) / (J @ J)  # K d depth, which such rows meet by least squares
    M, bias = beam.mass_matrix(np.zeros(2)), beam.inverse_dynamics(*np.zeros((3, 2)))
    a = np.array([pushed, -(bias[1] + M[1, 0] * pushed) / M[1, 1]])
    v1 = 0.002 * np.linalg.solve(M + 0.002 * np.diag([0.1, 0.02]), M @ a)
    assert np.abs(found.forces).max() > 1e16 and np.abs(found.v1 - v1).max() < 1e-13  # J' f rounds by 1 N m


class NoTangents(RowGroup):
    def answer(self, y: Any, D: Any) -> Answer:
        return Answer([-(D[0] * y[0])], [[D[0]]], 1.0)


class Pulling(RowGroup):
    def answer(self, y: Any, D: Any) -> Answer:
        return Answer([d * x for d, x in zip(D, y)], [[*[0.0] * k, d] for k, d in enumerate(D)], 1.0)


@pytest.mark.parametrize("group, words", [
    (RowGroup, "a law has answer"), (NoTangents, "gives 3 rows 1 forces"),
    (Pulling, "its Hessian says 4.5; give minus the slope"),
])  # fmt: skip
def test_added_laws_are_tried(group: type[RowGroup], words: str) -> None:
    with pytest.raises(InputError, match=words):
        add_law("wrong", group)


def test_names_of_the_packages_laws_are_not_given_again() -> None:
    with pytest.raises(InputError, match="there is a law 'soft'"):
        add_law("soft", OneSided)


@pytest.mark.parametrize("margin", [0.05, 0.3])
def test_limits_that_are_near_each_other_both_hold(margin: float) -> None:
    """Of a wide margin both limits count at once, of a narrow one the nearer."""
    import mujoco

    text = f"""<mujoco><option timestep="0.002"/><worldbody><body>
      <joint axis="0 1 0" range="-10 10" margin="{margin}"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></worldbody></mujoco>"""
    m, r = mujoco.MjModel.from_xml_string(text), drevo.load(text)
    d, step, rng = mujoco.MjData(m), drevo.compile(r, "step", dt=0.002, ground=None), np.random.default_rng(0)
    for q, v in zip(rng.uniform(-0.4, 0.4, 40), rng.normal(size=40)):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_step(m, d)
        assert abs(step([q], [v], [0.0]).v1 - d.qvel).max() < 1e-12
