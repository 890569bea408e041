"""A task as a gymnasium.vector.VectorEnv: all episodes side by side in arrays, one compiled call a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import InputError, one_of, shown
from ..io.given import finite, flag, number, whole
from .episode import AFTER, BEFORE_PREFIX, EPISODE_STATE, INFO, JUDGED, SEEN, episode, sight
from .simulation import RENDER_MODES, Picture, TaskRobot
from .tasks import Task
from .traced import traced_task

Array = np.ndarray[Any, Any]
MOST_THREADS = 1024
OWN_TASK_BLOCKS = ("past", "commands", "numbers", "act")  # what tasks of one's own keep beside what they look at
SEEDS = 2**53  # of random numbers, whole and exact


class TaskEnv(VectorEnv):  # type: ignore[misc]
    """Environments side by side: how many there are, how they begin anew, their spaces and pictures."""

    body: TaskRobot

    def __init__(self, name: str, num_envs: int, threads: int, autoreset: Any, render_mode: str | None) -> None:
        if not isinstance(autoreset, AutoresetMode):
            names = [mode.value for mode in AutoresetMode]
            autoreset = AutoresetMode(one_of("make: autoreset", autoreset, names, InputError))
        if render_mode is not None:
            one_of("make: render_mode", render_mode, RENDER_MODES, InputError)
        self.render_mode, self.autoreset = render_mode, autoreset
        self.picture: Picture | None = None
        self.name, self.num_envs = name, whole("make: num_envs", num_envs)
        self.threads = whole("make: threads", threads, 1, MOST_THREADS)

    def _announce(self, observation: gymnasium.Space[Any], action: gymnasium.Space[Any]) -> None:
        """Metadata, and the spaces of one environment and of all."""
        self.metadata = {"autoreset_mode": self.autoreset, "render_modes": [*RENDER_MODES]}
        self.metadata["render_fps"] = round(1.0 / self.body.seconds)
        self.single_observation_space, self.single_action_space = observation, action
        self.observation_space, self.action_space = (batch_space(x, self.num_envs) for x in (observation, action))

    def render(self, index: int = 0) -> Array | None:
        """A picture of one environment, (height, width, 3) of uint8; with render_mode "human" in a window.

        index: which environment. No display is needed for a picture. Needs pillow, a window viser (extra `view`).
        """
        index = whole("render: index", index, 0, self.num_envs - 1)
        if self.picture is None:
            self.picture = Picture(self.body.robot, self.body.ground)
        return self.picture.shown(self._shown(index), window=self.render_mode == "human")

    def _shown(self, index: int) -> Array:
        """q of a picture."""
        raise NotImplementedError

    def close_extras(self, **_: Any) -> None:
        """Ends the window, if there is one."""
        if self.picture:
            self.picture.close()


class StepEnv(TaskEnv):
    """Spaces, rewards, ends and beginnings are those of the task of that name in gymnasium.

    Observations are float64 (num_envs, size); the arrays of a step are its own, so that none is copied. Each
    environment draws its beginnings from a stream of its own: they do not depend on threads or on the others.
    """

    def __init__(
        self, name: str, task: Task, num_envs: int, threads: int, autoreset: str, options: Mapping[str, Any],
        dtype: str = "float64", render_mode: str | None = None,
    ) -> None:  # fmt: skip
        self.task, self.numbers = task, _numbers(name, task, options)
        self.dtype = np.dtype(one_of("dtype", dtype, ("float64", "float32"), InputError))
        super().__init__(name, num_envs, threads, autoreset, render_mode)
        self.same, self.settling = self.autoreset is AutoresetMode.SAME_STEP, task.settling
        self._compile()
        names = [x for x, _ in self.results]
        self.told = [x.removeprefix(INFO) for x in names if x.startswith(INFO)]
        self.known = [f"_{x}" for x in self.told]
        self.seen = [x.removeprefix(SEEN) for x in names if x.startswith(SEEN)]
        self.kept = [*AFTER, *(SEEN + x for x in self.seen)]  # results that are the next state
        low, high = (x.astype(np.float32) for x in self.body.controls)
        seen = gymnasium.spaces.Box(-np.inf, np.inf, dict(self.results)[JUDGED[0]], self.dtype.type)
        self._announce(seen, gymnasium.spaces.Box(low, high, dtype=np.float32))
        self._state, self._spare = self._states(self.num_envs), self._states(self.num_envs)
        self._seed()
        self._restart(np.ones(self.num_envs, bool))

    def _compile(self) -> None:
        self.body = TaskRobot(self.task)
        self.traced = traced_task(self.task, self.body, self.numbers)
        self._call_compiled()

    def _call_compiled(self) -> None:
        function = episode(self.body, self.traced, self.same)
        self.f: Callable[..., Any] = function
        self.inputs, self.results = dict(function.inputs), function.outputs
        self.usual = {"numbers": [x for _, x in function.parameters]}  # of what is drawn

    def __getstate__(self) -> dict[str, Any]:
        """All but compiled code and the functions of the task, whose traces say the same."""
        left = ("task", "f", "picture")
        return {k: x for k, x in vars(self).items() if k not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, task=None, picture=None)
        self._call_compiled()

    def __dir__(self) -> list[str]:
        """Names for users: methods, properties, and attributes that gymnasium asks for."""
        own = {"autoreset", "dtype", "name", "render_mode", "threads"}
        return sorted({*dir(type(self)), *gymnasium.vector.VectorEnv.__annotations__, *own})

    def __deepcopy__(self, memo: dict[int, Any]) -> StepEnv:
        made = memo[id(self)] = object.__new__(type(self))
        shared = ("task", "traced", "body", "f", "picture")  # which nothing changes
        made.__dict__.update({k: x if k in shared else deepcopy(x, memo) for k, x in vars(self).items()})
        return made

    @property
    def q(self) -> Array:
        """(num_envs, nq); of tasks by name in MuJoCo's order, of one's own in that of the robot."""
        return self.body.told(*self._state[:2])[0]

    @property
    def v(self) -> Array:
        """(num_envs, nv), linear rates of free joints along the world's axes."""
        return self.body.told(*self._state[:2])[1]

    @property
    def elapsed(self) -> Array:
        """(num_envs,) steps of every episode."""
        found: Array = self._state[EPISODE_STATE.index("elapsed")][:, 0].astype(int)
        return found

    def _states(self, count: int) -> list[Array]:
        """State arrays of `count` episodes with the robot at rest, in the order of `kept`."""
        names = [*EPISODE_STATE, *(BEFORE_PREFIX + x for x in self.seen)]
        found = [np.repeat(self.body.beginning, count, 0)]
        for x in names[1:]:
            usual = self.usual.get(x.removeprefix(BEFORE_PREFIX), 0.0)
            found.append(np.broadcast_to(np.array(usual, float), (count, *self.inputs[x])).copy())
        return found

    # -- what gymnasium calls --------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        mask = reset_mask(options, self.num_envs)
        super().reset(seed=None if seed is None else whole("reset: seed", seed, 0))
        if seed is not None:
            self._seed()
        return self._restart(mask).astype(self.dtype, copy=False), {}

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, nu) in every environment."""
        action = finite("step: actions", actions, self.action_space.shape)
        known = self._state[3][:, 0] < 0.5
        if self.autoreset is AutoresetMode.DISABLED:
            self._state[3][:] = 0.0
        observed, reward, ended, cut, *final, told = self._advance(action)
        terminated, truncated = ended > 0.5, cut > 0.5
        infos = dict(zip(self.told, told)) | dict.fromkeys(self.known, known)
        if final and (over := terminated | truncated).any():
            infos |= {"final_obs": final[0].astype(self.dtype, copy=False), "_final_obs": over}
        return observed.astype(self.dtype, copy=False), reward, terminated, truncated, infos

    def put(self, q: Array, v: Array, seen: bool = True) -> None:
        """Put the environments into states, (num_envs, nq) and (num_envs, nv), in the order of `q` and `v`.

        seen: what is seen is of these states; else it stays what the last step left.
        """
        sizes = [(self.num_envs, x.shape[1]) for x in self._state[:2]]
        self._state[:2] = self.body.given(finite("put: q", q, sizes[0]), finite("put: v", v, sizes[1]))
        self._state[3][:] = 0.0
        if seen and (parts := [x for x in self.seen if x not in OWN_TASK_BLOCKS]):
            found = sight(self.body, self.traced.looks, parts)(*self._state[:2])
            for part, x in zip(parts, [found] if len(parts) == 1 else found):
                self._state[len(EPISODE_STATE) + self.seen.index(part)] = x

    @property
    def state(self) -> dict[str, Array]:
        """All that the next step depends on, by name, copied: `set_state` brings it back."""
        names = (*EPISODE_STATE, *self.seen, "observed")
        return {name: x.copy() for name, x in zip(names, (*self._state, self.observed))}

    def set_state(self, state: Any, v: Any = None) -> None:
        """Bring back what `state` gave; or q and v alone, as `put` does, with the rest as it is.

        Raises InputError where names or shapes are others.
        """
        if v is not None:
            return self.put(state, v)
        wanted = self.state
        if not isinstance(state, Mapping) or set(state) != set(wanted):
            raise InputError(f"set_state takes what env.state gave, {', '.join(wanted)}; or q and v")
        *found, observed = (finite(f"set_state: {k}", state[k], x.shape) for k, x in wanted.items())
        self._state, self.observed = [x.copy() for x in found], observed.copy()
        return None

    # -- inside ----------------------------------------------------------------------------------------------

    def _shown(self, index: int) -> Array:
        q: Array = self._state[0][index]
        return q

    def _seed(self) -> None:
        """New streams of random numbers."""
        self._state[4][:, 0] = self.np_random.integers(0, SEEDS, self.num_envs)
        self._state[4][:, 1] = 0.0

    def _restart(self, mask: Array) -> Array:
        """New episodes where a mask says so; what is observed of them, and elsewhere was at last."""
        at = np.flatnonzero(mask)
        rows, spare = self._states(len(at)), self._states(len(at))
        rows[3][:], rows[4] = 1.0, self._state[4][at]
        if len(at):
            action = np.zeros((len(at), *self.single_action_space.shape))
            first, *_ = self._called(rows, action, spare)
            self._settle(spare, first)
            if len(at) == self.num_envs:
                self.observed = first
            else:
                self.observed = self.observed.copy()
                self.observed[at] = first
            for own, new in zip(self._state, spare):
                own[at] = new
        found: Array = self.observed
        return found

    def _advance(self, action: Array) -> Any:
        """Results of a step but for the state, which is put by."""
        found = self._called(self._state, action, self._spare)
        self._state, self._spare = self._spare, self._state
        self._settle(self._state, found[0])
        self.observed = found[0]
        return found

    def _settle(self, state: list[Array], observed: Array) -> None:
        """Steps without action where an episode has just begun, if the task has any."""
        at = np.flatnonzero(state[2][:, 0] < 0.5) if self.settling else np.array([])
        if not len(at):
            return
        rows, spare = [x[at] for x in state], self._states(len(at))
        for _ in range(self.settling):
            seen, *_ = self._called(rows, np.zeros((len(at), *self.single_action_space.shape)), spare)
            rows, spare = spare, rows
        rows[2][:] = 0.0
        observed[at] = seen
        for own, new in zip(state, rows):
            own[at] = new

    def _called(self, state: list[Array], action: Array, after: list[Array]) -> Any:
        """Runs a step, with the state after it put into given memory: new memory costs as much as a small step."""
        count, kept = len(action), dict(zip(self.kept, after))
        out = tuple(kept[x] if x in kept else np.empty((count, *shape)) for x, shape in self.results)
        n = len(EPISODE_STATE)
        given = (*state[:n], action, *state[n:])
        if "parameters" in self.inputs:
            given = (*given, state[n + self.seen.index("numbers")])
        if self.threads > 1:
            self.f(*given, out=out, threads=self.threads)
        else:
            self.f(*given, out)
        told = len(out) - len(self.told)
        return *out[len(AFTER) : told - len(self.seen)], out[told:]


def _numbers(name: str, task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a task, with those that were given."""
    if unknown := set(options) - set(task.numbers):
        has = f"it has {', '.join(task.numbers) or 'none'}; others, such as randomise, are of drevo.envs.Env"
        raise InputError(f"{name} has no option {min(unknown)!r}; {has}")
    return {k: _of_kind(f"{name}: {k}", options.get(k, x), x) for k, x in task.numbers.items()}


def _of_kind(what: str, given: Any, usual: Any) -> Any:
    """An option of the kind that its default has: True or False, a number, or least and greatest."""
    if isinstance(usual, bool):
        return flag(what, given)
    if not isinstance(usual, tuple):
        return number(what, given)
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 2:
        raise InputError(f"{what} is {shown(given)}; it must be the least and the greatest value")
    low, high = (number(what, x, "the least and the greatest value", lambda x: x == x) for x in given)
    if low > high:
        raise InputError(f"{what} is {shown(given)}; the least value must not be above the greatest")
    return low, high


def reset_mask(options: Any, count: int) -> Array:
    """The mask of the environments to reset: all, or those of options["reset_mask"]."""
    if options is None or (isinstance(options, Mapping) and not options):
        return np.ones(count, bool)
    if not isinstance(options, Mapping) or set(options) != {"reset_mask"}:
        raise InputError(f"reset: options is {shown(options)}; it may hold 'reset_mask' alone")
    mask = np.asarray(options["reset_mask"])
    if mask.shape != (count,) or mask.dtype != bool:
        raise InputError(
            f"reset: reset_mask holds {mask.dtype} in the shape {mask.shape}; it must be True or False for each "
            f"of the {count} environments, ({count},)"
        )
    return mask
