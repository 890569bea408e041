"""Tasks of Fetch: episodes against MuJoCo on the same files, goals, beginnings, gymnasium's rules."""

import numpy as np
import pytest
from goal_laws import state_comes_back_and_pickles

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

from drevo.envs import GOALS, make, rotations  # noqa: E402
from drevo.envs.ours import robotics_file  # noqa: E402

pytestmark = pytest.mark.needs("gymnasium_robotics")
FINGERS = [f"robot0:{side}_gripper_finger_joint" for side in "rl"]


class Fetch:
    """The task by MuJoCo itself: what gymnasium-robotics does with a file of Fetch's."""

    def __init__(self, file: str, start: float, lift: float) -> None:
        self.model = mujoco.MjModel.from_xml_path(robotics_file(f"fetch/{file}.xml"))
        self.data = mujoco.MjData(self.model)
        self.moves = file == "pick_and_place"
        for joint, x in (("robot0:slide0", start), ("robot0:slide1", 0.48)):
            self.data.joint(joint).qpos[0] = x
        if file != "reach":
            self.data.joint("object0:joint").qpos[:] = 1.25, 0.53, 0.4, 1.0, 0.0, 0.0, 0.0
        self.model.eq_data[:, :7] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
        mujoco.mj_forward(self.model, self.data)
        self.data.mocap_pos[0] = self.data.site("robot0:grip").xpos + np.array([-0.498, 0.005, -0.431 + lift])
        self.data.mocap_quat[0] = 1.0, 0.0, 1.0, 0.0
        mujoco.mj_step(self.model, self.data, nstep=200)

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts the robot where an episode begins."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = q, v
        mujoco.mj_forward(self.model, self.data)

    def step(self, action: np.ndarray) -> None:
        """One action."""
        gripper = self.data.body("robot0:gripper_link")
        self.data.mocap_pos[0] = gripper.xpos + action[:3] * np.float32(0.05)
        self.data.mocap_quat[0] = gripper.xquat + np.array([1.0, 0.0, 1.0, 0.0])
        for k in range(self.model.nu):
            self.data.ctrl[k] = self._at(k) + action[3]
        mujoco.mj_step(self.model, self.data, nstep=20)
        if not self.moves:
            for name in FINGERS:
                self.data.joint(name).qpos[0] = 0.0
            mujoco.mj_forward(self.model, self.data)

    def _at(self, k: int) -> float:
        return float(self.data.qpos[self.model.jnt_qposadr[self.model.actuator_trnid[k, 0]]])

    def seen(self) -> np.ndarray:
        """The observation of a task with an object, by MuJoCo's Jacobians."""
        m, d, dt = self.model, self.data, 20 * self.model.opt.timestep
        rates, places = {}, {}
        for name in ("robot0:grip", "object0"):
            J = np.zeros((2, 3, m.nv))
            mujoco.mj_jacSite(m, d, J[0], J[1], mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_SITE, name))
            rates[name], places[name] = J @ d.qvel * dt, d.site(name).xpos
        R = d.site("object0").xmat.reshape(3, 3)
        angles = (
            np.arctan2(-R[1, 2], R[2, 2]),
            np.arcsin(np.clip(R[0, 2], -1.0, 1.0)),
            np.arctan2(-R[0, 1], R[0, 0]),
        )
        (grip, _), (way, turn) = rates["robot0:grip"], rates["object0"]
        fingers, opening = (np.array([getattr(d.joint(x), part)[0] for x in FINGERS]) for part in ("qpos", "qvel"))
        place, hand = places["object0"], places["robot0:grip"]
        return np.concatenate([hand, place, place - hand, fingers, angles, way - grip, turn, grip, opening * dt])


@pytest.fixture(scope="module")
def push():
    return make("FetchPush-v4", num_envs=3)


@pytest.mark.parametrize("name", ["Push", pytest.param("PickAndPlace", marks=pytest.mark.slow)])
def test_episodes_are_mujocos(name: str, push) -> None:
    envs = push if name == "Push" else make(f"Fetch{name}-v4", num_envs=3)
    oracle = Fetch(*{"Push": ("push", 0.405, 0.0), "PickAndPlace": ("pick_and_place", 0.405, 0.2)}[name])
    q, v, _ = envs.settled
    q, v = envs.body.told(q[None], v[None])
    assert np.abs(q[0] - oracle.data.qpos).max() < 1e-6 and np.abs(v[0] - oracle.data.qvel).max() < 1e-5
    rng, off = np.random.default_rng(0), []
    envs.reset(seed=3)
    actions = rng.uniform(-1.0, 1.0, (25, 3, 4)).astype(np.float32)
    starts, episodes = envs.state, []
    for action in actions:
        episodes.append(envs.step(action)[0])
    for k in range(3):
        q, v = envs.body.told(starts["q"][k : k + 1], starts["v"][k : k + 1])
        oracle.place(q[0], v[0])
        for action, seen in zip(actions[:, k], episodes):
            oracle.step(action)
            off.append(np.abs(seen["observation"][k] - oracle.seen()).max())
            assert np.array_equal(seen["achieved_goal"][k], seen["observation"][k, 3:6])
    # the corners of meshes have other digits in MuJoCo; where a finger just touches, that is felt
    assert np.median(off) < 1e-9 and np.quantile(off, 0.7) < 1e-7 and max(off) < 1e-3


def test_beginnings_goals_and_ends(push) -> None:
    first, infos = push.reset(seed=5)
    grip = push.settled[2]
    assert infos == {} and np.allclose(first["observation"][:, :3], grip[:3], atol=1e-3)
    away = np.abs(first["achieved_goal"][:, :2] - grip[:2])
    assert (away <= 0.15).all() and (np.linalg.norm(away, axis=1) >= 0.1).all()
    assert (np.abs(first["desired_goal"][:, :2] - grip[:2]) <= 0.15).all()
    assert np.allclose(first["desired_goal"][:, 2], grip[3])
    again, _ = push.reset(seed=5)
    assert all(np.array_equal(first[k], again[k]) for k in first)
    still = np.zeros((3, 4), np.float32)
    for k in range(50):
        seen, reward, ended, cut, infos = push.step(still)
        assert not ended.any() and cut.all() == (k == 49) and (reward == infos["is_success"] - 1.0).all()
    fresh, reward, _, cut, _ = push.step(still)
    assert not cut.any() and (reward == 0.0).all()
    assert not np.array_equal(fresh["desired_goal"], seen["desired_goal"])


def test_the_first_episode_is_drawn_as_gymnasiums() -> None:
    """Reach draws its goal alone: three numbers about the grip."""
    one = make("FetchReachDense-v4")
    seen, _ = one.reset(seed=7)
    rng, _ = gymnasium.utils.seeding.np_random(7)
    assert np.allclose(seen["desired_goal"][0], one.settled[2][:3] + rng.uniform(-0.15, 0.15, size=3), atol=1e-15)
    reward = one.step(np.zeros((1, 4), np.float32))[1]
    away = np.linalg.norm(one.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
    assert seen["observation"].shape == (1, 10) and abs(-reward[0] - away) < 0.02


def test_state_comes_back_and_pickles(push) -> None:
    state_comes_back_and_pickles(push, 0.3)


def test_threads_change_nothing(push) -> None:
    push.reset(seed=4)
    kept, action = push.state, np.full((3, 4), -0.4, np.float32)
    alone = push.step(action)[0]["observation"]
    push.set_state(kept)
    push.threads = 2
    assert np.array_equal(push.step(action)[0]["observation"], alone)
    push.threads = 1


def test_angles_and_quaternions_of_rotations() -> None:
    spatial = pytest.importorskip("scipy.spatial.transform")
    turns = spatial.Rotation.random(50, random_state=0)
    assert np.allclose(rotations.cardan_angles(turns.as_matrix()), turns.as_euler("XYZ"), atol=1e-12)
    w_first = turns.as_quat()[:, [3, 0, 1, 2]]
    assert np.allclose(np.abs((rotations.rotation_quaternions(turns.as_matrix()) * w_first).sum(1)), 1.0)


def test_one_environment_keeps_gymnasiums_rules() -> None:
    from gymnasium.utils.env_checker import check_env

    one = gymnasium.make("drevo/FetchPush-v4")
    check_env(one.unwrapped, skip_render_check=True)
    seen, _ = one.reset(seed=1)
    reward = one.step(one.action_space.sample())[1]
    assert seen["observation"].shape == (25,) and reward in (-1.0, 0.0)
    assert one.unwrapped.compute_reward(seen["achieved_goal"], seen["achieved_goal"], {}) == 0.0
    assert len([name for name in GOALS if name.startswith("Fetch")]) == 8
