"""Tasks with goals: the Shadow hand that turns a block, an egg or a pen, as in gymnasium-robotics.

Plappert et al. 2018, "Multi-goal reinforcement learning: challenging robotics environments and request for
research". Observations are dictionaries; episodes begin and goals are drawn in NumPy, the hand is stepped by the
compiled function of its task.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from math import inf, pi
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import InputError, NumericsError, one_of, shown
from ..io.given import finite, whole
from ..robot.face import Robot
from ..robots.loading import load
from .episode import episode
from .ours import GoalTask
from .rotations import apart, octahedral, of_axis, product, without_turn
from .simulation import RENDER_MODES, Picture, TaskRobot
from .tasks import Outcome, Task
from .traced import traced_task
from .vector import MOST_THREADS, reset_mask

Array = np.ndarray[Any, Any]
HAND, OBJECT = 24, 7  # coordinates of the hand, and of what it holds
SETTLING_STEPS, SETTLING_TRIES = 10, 100
PALM_HEIGHT = 0.04  # m, below which the object has fallen off the hand
TARGET_RANGE = np.array([(-0.04, 0.04), (-0.06, 0.02), (0.0, 0.06)])  # m, of goals about the object
START_NOISE = 0.005  # m
DENSE_WEIGHT = 10.0  # of the distance, 1/m, beside the angle


@cache
def _hand(file: str) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # ranges of tendons are held as MuJoCo holds them; a forearm touches nothing
        return load(file)


class HandEnv(VectorEnv):  # type: ignore[misc]
    """Environments of a task of the hand, side by side; observations as in gymnasium-robotics.

    A dictionary of arrays: observation (num_envs, 61): q and v of the hand, v and q of the object; achieved_goal
    and desired_goal (num_envs, 7): place and quaternion w x y z. infos["is_success"]: 1.0 where it is reached.
    """

    def __init__(
        self, name: str, task: GoalTask, num_envs: int, threads: int, autoreset: str,
        render_mode: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if options:
            raise InputError(f"{name} has no option {min(options)!r}")
        known = [mode.value for mode in AutoresetMode]
        self.autoreset = AutoresetMode(one_of("autoreset", autoreset, known, InputError))
        self.render_mode = render_mode and one_of("render_mode", render_mode, RENDER_MODES, InputError)
        self.name, self.task, self.num_envs = name, task, whole("make: num_envs", num_envs, 1)
        self.threads = whole("make: threads", threads, 1, MOST_THREADS)
        self._compile()
        self.metadata = {"autoreset_mode": self.autoreset, "render_modes": [*RENDER_MODES]}
        self.metadata["render_fps"] = round(1.0 / self.body.seconds)
        sizes = {"observation": 2 * HAND + 2 * OBJECT - 1, "achieved_goal": OBJECT, "desired_goal": OBJECT}
        self.single_observation_space = gymnasium.spaces.Dict(
            {k: gymnasium.spaces.Box(-inf, inf, (n,), np.float64) for k, n in sizes.items()}
        )
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.body.controls.shape[1],), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        none = np.zeros(num_envs, bool)
        self._state = {
            "q": np.repeat(self.body.beginning, num_envs, 0), "v": np.zeros((num_envs, self.body.model.nv)),
            "goal": np.zeros((num_envs, OBJECT)), "elapsed": np.zeros(num_envs, int), "over": none,
        }  # fmt: skip
        self._restart(~none)

    def _compile(self) -> None:
        robot = _hand(self.task.source)
        plain = Task(
            lambda: robot, self.task.skip, 1, lambda m: [*m.q[:HAND], *m.v[:HAND], *m.v[HAND : HAND + 6],
            *m.q[HAND : HAND + OBJECT]], lambda m, n: Outcome(0.0, 0.0, {}), {},
        )  # fmt: skip
        self.body = TaskRobot(plain)
        self.f = episode(self.body, traced_task(plain, self.body, {}), False)
        self.picture: Picture | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if k not in ("body", "f", "picture")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compile()

    # -- what gymnasium calls ----------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Array], dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        mask = reset_mask(options, self.num_envs)
        super().reset(seed=None if seed is None else whole("reset: seed", seed, 0))
        self._restart(mask)
        return self._observed(), {}

    def step(self, actions: Any) -> tuple[dict[str, Array], Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, 20), from -1 to 1 over the range of each servo, in every environment."""
        action = finite("step: actions", actions, self.action_space.shape)
        state, mode = self._state, self.autoreset
        fresh = state["over"].copy() if mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, bool)
        at = np.flatnonzero(~fresh)
        state["q"][at], state["v"][at] = self._stepped(state["q"][at], state["v"][at], action[at])
        state["elapsed"][at] += 1
        if fresh.any():
            self._restart(fresh)
        observed = self._observed()
        reward = np.where(fresh, 0.0, self.compute_reward(observed["achieved_goal"], state["goal"], {}))
        truncated = (state["elapsed"] >= self.task.limit) & ~fresh
        infos: dict[str, Any] = {"is_success": self._reached(observed["achieved_goal"], state["goal"])}
        infos["_is_success"] = ~fresh
        state["over"] = truncated.copy()
        if mode is AutoresetMode.SAME_STEP and truncated.any():
            infos |= {"final_obs": observed, "_final_obs": truncated}
            self._restart(truncated)
            observed = self._observed()
        return observed, reward, np.zeros(self.num_envs, bool), truncated, infos

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        """The reward (...,) of goals (..., 7): 0 where reached, else -1; dense: minus what is left."""
        if not self.task.dense:
            return np.asarray(self._reached(achieved_goal, desired_goal) - 1.0)
        distance, angle = self._away(achieved_goal, desired_goal)
        return -(DENSE_WEIGHT * distance + angle)

    @property
    def state(self) -> dict[str, Array]:
        """All that the next step depends on but the random numbers, by name, copied."""
        return {name: x.copy() for name, x in self._state.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Bring back what `state` gave. Raises InputError where names or shapes are others."""
        if not isinstance(state, Mapping) or set(state) != set(self._state):
            raise InputError(f"set_state takes what env.state gave, {', '.join(self._state)}; not {shown(state)}")
        new = {k: finite(f"set_state: {k}", state[k], x.shape).astype(x.dtype) for k, x in self._state.items()}
        self._state = new

    def render(self, index: int = 0) -> Array | None:
        """A picture of one environment with its goal beside it, (height, width, 3) of uint8; or a window."""
        index = whole("render: index", index, 0, self.num_envs - 1)
        if self.picture is None:
            self.picture = Picture(self.body.robot, None)
        q, v = (x[index : index + 1] for x in self.body.told(self._state["q"], self._state["v"]))
        q = q.copy()
        q[0, HAND + OBJECT :] = self._state["goal"][index] + [0.0 if self.task.place else 0.15, *[0.0] * 6]
        return self.picture.shown(self.body.given(q, v)[0][0], window=self.render_mode == "human")

    def close_extras(self, **_: Any) -> None:
        """Ends the window, if there is one."""
        if self.picture:
            self.picture.close()

    # -- inside ------------------------------------------------------------------------------------------------

    def _stepped(self, q: Array, v: Array, action: Array) -> tuple[Array, Array]:
        """The states after one action each."""
        count, (low, high) = len(q), self.body.controls
        controls = 0.5 * (low + high) + np.clip(action, -1.0, 1.0) * (0.5 * (high - low))
        none = np.zeros((count, 1))
        found = self.f(q, v, none, none, np.zeros((count, 2)), controls, threads=self.threads)
        return found[0], found[1]

    def _observed(self) -> dict[str, Array]:
        q, v = self.body.told(self._state["q"], self._state["v"])
        held = q[:, HAND : HAND + OBJECT].copy()
        parts = (q[:, :HAND], v[:, :HAND], v[:, HAND : HAND + 6], held)
        goal = self._state["goal"].copy()
        return {"observation": np.concatenate(parts, 1), "achieved_goal": held, "desired_goal": goal}

    def _away(self, achieved: Array, goal: Array) -> tuple[Array, Array]:
        """Distances, m, and angles, rad, between goals; the place is no matter where the goal has none."""
        distance = np.linalg.norm(achieved[..., :3] - goal[..., :3], axis=-1) * self.task.place
        turned = achieved[..., 3:]
        if self.task.held == "pen":
            turned = without_turn(turned, goal[..., 3:])
        return distance, apart(turned, goal[..., 3:])

    def _reached(self, achieved: Array, goal: Array) -> Array:
        near = [x < most for x, most in zip(self._away(achieved, goal), self.task.tolerance)]
        return np.asarray(near[0] & near[1], float)

    def _restart(self, mask: Array) -> None:
        """New episodes where a mask says so: the object settles in the hand, and is drawn again if it falls."""
        at, state = np.flatnonzero(mask), self._state
        seeking = at
        for _ in range(SETTLING_TRIES):
            q, v = self._settled(len(seeking))
            stays = self.body.told(q, v)[0][:, HAND + 2] > PALM_HEIGHT
            state["q"][seeking[stays]], state["v"][seeking[stays]] = q[stays], v[stays]
            seeking = seeking[~stays]
            if not len(seeking):
                break
        else:
            raise NumericsError(f"{self.name}: the {self.task.held} fell off the hand in {SETTLING_TRIES} tries")
        state["elapsed"][at], state["over"][at] = 0, False
        held = self.body.told(state["q"], state["v"])[0][at, HAND : HAND + 3]
        if self.task.place:
            held = held + self.np_random.uniform(*TARGET_RANGE.T, (len(at), 3))
        state["goal"][at] = np.concatenate([held, self._turns(len(at))], 1)

    def _settled(self, count: int) -> tuple[Array, Array]:
        q = np.repeat(self.body.initial[None], count, 0)
        held = q[:, HAND : HAND + OBJECT]
        if self.task.held != "pen":
            held[:, 3:] = product(held[:, 3:], self._turns(count))
        held[:, :3] += self.np_random.normal(0.0, START_NOISE, (count, 3))
        q, v = self.body.given(q, np.zeros((count, self.body.model.nv)))
        for _ in range(SETTLING_STEPS):
            q, v = self._stepped(q, v, np.zeros((count, self.single_action_space.shape[0])))
        return q, v

    def _turns(self, count: int) -> Array:
        """Quaternions (count, 4) as goals of the task are drawn."""
        draw, kind = self.np_random, self.task.turns
        axis = draw.uniform(-1.0, 1.0, (count, 3)) if kind == "xyz" else np.array([[0.0, 0.0, 1.0]] * count)
        turned = of_axis(draw.uniform(-pi, pi, count), axis)
        return product(turned, octahedral(draw.integers(24, size=count))) if kind == "parallel" else turned
