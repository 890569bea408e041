"""Steps with dampers that are not linear, or that tie branches, against MuJoCo's own C."""

from __future__ import annotations

import numpy as np
import pytest
from contact_cases import as_ours

import drevo

pytestmark = pytest.mark.needs("mujoco")
GEOM = '<geom type="box" size=".1 .2 .3" pos=".05 0 .2"/>'
TREE = f"""<mujoco><option timestep=".01" integrator="%s"/><worldbody>
<body name="a" pos="0 0 9" euler="20 30 40"><joint type="free" damping=".5 .6 .7"/>{GEOM}
 <body name="b" pos=".3 0 0"><joint name="j" axis="0 1 0" damping=".1 .4 .3"/>{GEOM}</body>
 <body name="c" pos="-.3 0 0"><joint name="k" axis="1 1 0" damping=".1"/>{GEOM}
  <body name="d" pos="0 0 .5"><joint type="ball" damping="0 .2 .1"/>{GEOM}</body></body></body></worldbody>
%s</mujoco>"""
TENDON = """<tendon><fixed name="t" damping=".6 .2" ><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed>
</tendon>"""
CROSSED = """<mujoco><option timestep=".01" integrator="%s"/><worldbody>
<body pos="0 0 9"><joint name="j" type="slide" axis="1 0 0"/><geom size=".1" pos="0 .1 0"/>
<body><joint name="k" type="slide" axis="0 1 0"/><geom size=".1"/><body><joint/>
<geom size=".1" pos="1 0 0"/></body>
</body></body></worldbody>%s</mujoco>"""


@pytest.mark.parametrize("text, tendon", [(TREE, ""), (TREE, TENDON), (CROSSED, TENDON)])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_steps_with_dampers_of_any_power_and_across_branches_are_those_of_mujoco(
    text: str, tendon: str, integrator: str
) -> None:
    """Under Euler too the slope of a joint's damper is implicit; what a tendon damps across branches is not."""
    import mujoco

    text = text % (integrator, tendon)
    m, robot = mujoco.MjModel.from_xml_string(text), drevo.load(text)
    data, rng = mujoco.MjData(m), np.random.default_rng(1)
    if m.nv == 3:
        data.qpos[2] = 0.4
    data.qvel[:] = rng.normal(0.0, 2.0, m.nv)
    q, v = as_ours(m, data.qpos, data.qvel)
    mujoco.mj_step(m, data)
    stepped = drevo.compile(robot, "step", dt=0.01, method=integrator.lower())(q, v, np.zeros(robot.nv))
    want = as_ours(m, data.qpos, data.qvel)
    for mine, theirs in zip(stepped, want):
        assert np.abs(mine - theirs).max() < 1e-12


def test_derivatives_of_a_step_know_that_a_damper_changes_with_the_rate() -> None:
    """By differences: the slope of a cubic damper, which the step divides by, is a function of the rate."""
    text = CROSSED % ("Euler", "")
    robot = drevo.load(text.replace("<joint/>", '<joint damping=".2 .3 .4"/>'))
    f = drevo.compile(robot, "step", dt=0.05)
    jvp = drevo.compile(robot, "step", dt=0.05, product="jvp")
    q, v, tau, d = np.array([0.1, 0.2, 0.3]), np.array([1.0, -2.0, 3.0]), np.zeros(3), np.eye(3)[2]
    v1 = jvp(q, v, tau, 0 * d, d, 0 * d)[1]
    apart = [f(q, v + s * d, tau)[1] for s in (1e-5, -1e-5)]
    assert np.allclose(v1, (apart[0] - apart[1]) / 2e-5, rtol=1e-7, atol=1e-9)
