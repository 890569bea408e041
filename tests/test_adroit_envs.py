"""Tasks of Adroit's hand: beginnings, steps and rewards against gymnasium-robotics' own, gymnasium's rules."""

from typing import Any

import numpy as np
import pytest
from goal_laws import state_comes_back_and_pickles

gymnasium = pytest.importorskip("gymnasium")

from drevo.envs import GOALS, make  # noqa: E402

pytestmark = pytest.mark.needs("gymnasium_robotics")
FINE = 1e-12  # m, where MuJoCo's search for places of contact ends
FIRM = {"Door": 1e-12, "Hammer": 1e-6, "Pen": 1e-5, "Relocate": 1e-9}  # of the median step


def theirs(name: str) -> Any:
    """The environment of gymnasium-robotics."""
    gymnasium.register_envs(pytest.importorskip("gymnasium_robotics"))
    env = gymnasium.make(name).unwrapped
    env.model.opt.ccd_tolerance, env.model.opt.ccd_iterations = FINE, 200
    return env


def compared(ours: Any, oracle: Any, rng: Any, steps: int, start: Any = None) -> tuple[list[float], list[float]]:
    """How far observations and rewards of steps are apart, each step from the state of ours."""
    first = ours.state["q"][0].copy()
    if start is not None:
        ours.set_state(ours.state | start)
    off, paid = [], []
    for k in range(steps):
        if k % 5 == 0:
            action = rng.uniform(-1.0, 1.0, ours.action_space.shape).astype(np.float32)
        oracle.set_state(ours.state["q"][0] - first, ours.state["v"][0])  # its ball begins at zero
        seen, reward, _, _, infos = ours.step(action)
        same, pay, _, _, told = oracle.step(action[0])
        off.append(float(np.abs(seen[0] - same).max()))
        paid.append(abs(float(reward[0]) - pay))
        assert bool(infos["success"][0]) == bool(told["success"])
    return off, paid


SCENES = ["Hammer", *(pytest.param(x, marks=pytest.mark.slow) for x in ("Door", "Pen", "Relocate"))]


@pytest.mark.parametrize("scene", SCENES)
def test_episodes_are_gymnasium_robotics(scene: str) -> None:
    name, rng, off, paid = f"AdroitHand{scene}-v1", np.random.default_rng(0), list[float](), list[float]()
    ours, oracle = make(name), theirs(name)
    for seed in range(4):
        (seen, _), (same, _) = ours.reset(seed=seed), oracle.reset(seed=seed)
        assert np.abs(seen[0] - same).max() < 1e-14  # what is drawn, too
        more = compared(ours, oracle, rng, 20)
        off, paid = off + more[0], paid + more[1]
    # fingers that are drawn to a corner of the pen are elsewhere by what MuJoCo's search leaves
    assert np.median(off) < FIRM[scene] and np.median(paid) < FIRM[scene]
    if scene == "Hammer":
        assert max(off) < 1e-4 and max(paid) < 1e-6
        _blows_are_felt(ours, oracle, rng)
    if scene == "Relocate":  # rewards on the way and at the end
        for env in (ours, oracle):
            env.reset(seed=9)
        ball = ours.state["q"]
        ball[0, -6:-3] += ours.state["goal"][0] - oracle.data.body("Object").xpos
        assert compared(ours, oracle, rng, 3, {"q": ball})[1][0] < 1e-9


def _blows_are_felt(ours: Any, oracle: Any, rng: Any) -> None:
    """The hammer lies at the nail and flies against it, at its middle and at its rim."""
    felt = []
    for k in range(40):
        for env in (oracle, ours):
            env.reset(seed=k)
        q, v, data, still = ours.state["q"], ours.state["v"], oracle.data, np.zeros((1, 26), np.float32)
        normal, turn = data.site("S_target").xmat.reshape(3, 3)[:, 2], data.body("Object").xmat.reshape(3, 3)
        away = rng.uniform(0.04, 0.06) * normal + rng.uniform(-0.03, 0.03, 3)
        q[0, -6:-3] = turn.T @ (data.site("S_target").xpos + away - data.geom("head").xpos)
        v[0, -6:-3] = turn.T @ (-rng.choice([0.0, 2.0]) * normal)
        ours.set_state(ours.state | {"q": q, "v": v})
        oracle.set_state(q[0], v[0])
        blows = float(ours.step(still)[0][0, -1]), float(oracle.step(still[0])[0][-1])
        felt.append(blows[1])
        assert abs(blows[0] - blows[1]) < 1e-4, k  # N, of some 100 that are cut to 1
    assert set(felt) >= {0.0, 1.0}


def test_rules_of_gymnasium() -> None:
    envs = make("AdroitHandHammerSparse-v1", num_envs=2)
    state_comes_back_and_pickles(envs, 0.3)
    envs.reset(seed=1)
    still = np.zeros(envs.action_space.shape, np.float32)
    for k in range(200):
        _, reward, ended, cut, infos = envs.step(still)
        assert not ended.any() and cut.all() == (k == 199) and (reward == -0.1).all()
    assert not infos["success"].any() and len([x for x in GOALS if x.startswith("Adroit")]) == 8
