"""A task as a gymnasium.vector.VectorEnv: all episodes side by side in arrays, one compiled call a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..errors import InputError, shown
from ..io.given import finite, flag, number, whole
from .episode import AFTER, BEFORE, INFO, JUDGED, SEEN, STATE, episode, sight
from .ours import TASKS
from .simulation import TaskRobot
from .tasks import Task

Array = np.ndarray[Any, Any]
MOST_THREADS = 1024
SEEDS = 2**53  # of random numbers, whole and exact


class StepEnv(VectorEnv):  # type: ignore[misc]
    """Spaces, rewards, ends and beginnings are those of the task of that name in gymnasium.

    Observations are float64 (num_envs, size); the arrays of a step are its own, so that none is copied. Each
    environment draws its beginnings from a stream of its own: they do not depend on threads or on the others.
    """

    def __init__(
        self, name: str, task: Task, num_envs: int, threads: int, autoreset: str, options: Mapping[str, Any]
    ) -> None:
        self.task, self.numbers = task, _numbers(name, task, options)
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs is a whole number from 1 on, not {shown(num_envs)}")
        try:
            self.autoreset = AutoresetMode(autoreset)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise InputError(f"autoreset is one of {known}, not {shown(autoreset)}") from None
        self.name, self.num_envs, self.threads = name, num_envs, whole("make: threads", threads, 1, MOST_THREADS)
        self.same = self.autoreset is AutoresetMode.SAME_STEP
        self._compile()
        names = [x for x, _ in self.results]
        self.told = [x.removeprefix(INFO) for x in names if x.startswith(INFO)]
        self.known = [f"_{x}" for x in self.told]
        self.seen = [x.removeprefix(SEEN) for x in names if x.startswith(SEEN)]
        self.kept = [*AFTER, *(SEEN + x for x in self.seen)]  # results that are the next state
        self.metadata = {"autoreset_mode": self.autoreset, "render_modes": []}
        self.render_mode = None
        self._spaces()
        self.state, self.spare = self._states(num_envs), self._states(num_envs)
        self._seed()
        self._restart(np.ones(num_envs, bool))

    def _compile(self) -> None:
        self.body = TaskRobot(self.task)
        made = episode(self.body, self.task, self.numbers, self.same)
        self.f: Callable[..., Any] = made
        self.inputs, self.results = dict(made.inputs), made.outputs

    def __getstate__(self) -> dict[str, Any]:
        known = TASKS.get(self.name) is self.task  # whose functions pickle cannot take
        return {k: x for k, x in vars(self).items() if k not in ("body", "f") and not (known and k == "task")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"task": TASKS.get(state["name"]), **state})
        self._compile()

    def __deepcopy__(self, memo: dict[int, Any]) -> StepEnv:
        made = memo[id(self)] = object.__new__(type(self))
        shared = ("task", "body", "f")  # which nothing changes
        made.__dict__.update({k: x if k in shared else deepcopy(x, memo) for k, x in vars(self).items()})
        return made

    @property
    def q(self) -> Array:
        """(num_envs, nq) in MuJoCo's order."""
        return self.body.told(*self.state[:2])[0]

    @property
    def v(self) -> Array:
        """(num_envs, nv), linear rates of free joints along the world's axes."""
        return self.body.told(*self.state[:2])[1]

    @property
    def elapsed(self) -> Array:
        """(num_envs,) steps of every episode."""
        found: Array = self.state[STATE.index("elapsed")][:, 0].astype(int)
        return found

    def _states(self, count: int) -> list[Array]:
        """State arrays of `count` episodes with the robot at rest, in the order of `kept`."""
        names = [*STATE, *(BEFORE + x for x in self.seen)]
        return [np.repeat(self.body.beginning, count, 0), *(np.zeros((count, *self.inputs[x])) for x in names[1:])]

    def _spaces(self) -> None:
        low, high = (x.astype(np.float32) for x in self.body.controls)
        shape = dict(self.results)[JUDGED[0]]
        self.single_action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    # -- what gymnasium calls --------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere; options["reset_mask"] (num_envs,) says where alone."""
        mask = _mask(options, self.num_envs)
        super().reset(seed=None if seed is None else whole("reset: seed", seed, 0))
        if seed is not None:
            self._seed()
        return self._restart(mask), {}

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action (num_envs, nu) in every environment."""
        action = finite("step: actions", actions, self.action_space.shape)
        known = self.state[3][:, 0] < 0.5
        if self.autoreset is AutoresetMode.DISABLED:
            self.state[3][:] = 0.0
        observed, reward, ended, cut, *final, told = self._advance(action)
        terminated, truncated = ended > 0.5, cut > 0.5
        infos = dict(zip(self.told, told)) | dict.fromkeys(self.known, known)
        if final and (over := terminated | truncated).any():
            infos |= {"final_obs": final[0], "_final_obs": over}
        return observed, reward, terminated, truncated, infos

    def put(self, q: Array, v: Array, seen: bool = True) -> None:
        """Put the environments into states in MuJoCo's order, (num_envs, nq) and (num_envs, nv).

        seen: what is seen is of these states; else it stays what the last step left.
        """
        sizes = [(self.num_envs, x.shape[1]) for x in self.state[:2]]
        self.state[:2] = self.body.given(finite("put: q", q, sizes[0]), finite("put: v", v, sizes[1]))
        self.state[3][:] = 0.0
        if seen and self.seen:
            found = sight(self.body, self.task, self.seen)(*self.state[:2])
            self.state[len(STATE) :] = [found] if len(self.seen) == 1 else list(found)

    # -- inside ----------------------------------------------------------------------------------------------

    def _seed(self) -> None:
        """New streams of random numbers."""
        self.state[4][:, 0] = self.np_random.integers(0, SEEDS, self.num_envs)
        self.state[4][:, 1] = 0.0

    def _restart(self, mask: Array) -> Array:
        """New episodes where a mask says so; what is observed of them, and elsewhere was at last."""
        at = np.flatnonzero(mask)
        rows, spare = self._states(len(at)), self._states(len(at))
        rows[3][:], rows[4] = 1.0, self.state[4][at]
        if len(at):
            action = np.zeros((len(at), *self.single_action_space.shape))
            first, *_ = self._called(rows, action, spare)
            if len(at) == self.num_envs:
                self.observed = first
            else:
                self.observed = self.observed.copy()
                self.observed[at] = first
            for own, new in zip(self.state, spare):
                own[at] = new
        found: Array = self.observed
        return found

    def _advance(self, action: Array) -> Any:
        """Results of a step but for the state, which is put by."""
        found = self._called(self.state, action, self.spare)
        self.state, self.spare = self.spare, self.state
        self.observed = found[0]
        return found

    def _called(self, state: list[Array], action: Array, after: list[Array]) -> Any:
        """Runs a step, with the state after it put into given memory: new memory costs as much as a small step."""
        count, kept = len(action), dict(zip(self.kept, after))
        out = tuple(kept[x] if x in kept else np.empty((count, *shape)) for x, shape in self.results)
        n = len(STATE)
        given = (*state[:n], action, *state[n:])
        if self.threads > 1:
            self.f(*given, out=out, threads=self.threads)
        else:
            self.f(*given, out)
        told = len(out) - len(self.told)
        return *out[len(AFTER) : told - len(self.seen)], out[told:]


def _numbers(name: str, task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a task, with those that were given."""
    if unknown := set(options) - set(task.numbers):
        raise InputError(f"{name} has no option {min(unknown)!r}; it has {', '.join(task.numbers)}")
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


def _mask(options: Any, count: int) -> Array:
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
