"""Environments of one's own: any robot, with functions over scalars for reward, observation, action and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ..compiler.tracer import scalars_in
from ..constraint.functions import call_traced
from ..contact.pairs import warn_of_untouched
from ..errors import InputError, UnknownNameError, one_of, shown
from ..ground import ground_of
from ..io.given import asked_methods, finite, seconds, whole
from ..mechanics.algorithms.actuators import actuation, control_ranges
from ..mechanics.algorithms.kinematics import pose, velocity
from ..mechanics.scalar import Scalar, Vector, clip, maximum, where
from ..mechanics.spatial import Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..model.description import Model
from ..model.draft import expect_robot
from ..model.regularity import require_masses
from .randomise import randomised
from .tasks import Chance, Moment, Outcome, Task, TaskNumbers
from .vector import StepEnv


class State:
    """The data that the functions of an environment see after a step, as scalars; links are named.

    q (nq,), v (nv,) of the robot, action and previous_action (n,), time in the episode and dt of an action, s.
    """

    def __init__(self, tree: Tree, q: Vector, v: Vector, action: Vector, dt: float) -> None:
        self._tree = tree
        self.q, self.v, self.action, self.dt = q, v, action, dt

    def pose(self, link: str) -> list[list[Scalar]]:
        """World from link, 4 x 4."""
        self._known(link)
        return [list(row) for row in pose(self._tree, self.q, link)] + [[0.0, 0.0, 0.0, 1.0]]

    def position(self, link: str) -> list[Scalar]:
        """Origin of a link in the world, (3,), m."""
        return [row[3] for row in self.pose(link)[:3]]

    def velocity(self, link: str) -> list[Scalar]:
        """(6,): velocity of a link's origin, m/s, and its angular velocity, rad/s, in world axes."""
        self._known(link)
        return velocity(self._tree, self.q, self.v, link, "local_world_aligned")

    def _known(self, link: str) -> None:
        one_of("link", link, self._tree.frames, UnknownNameError)

    def in_link(self, link: str, x: Vector) -> list[Scalar]:
        """A vector (3,) of world axes in those of a link; of (0, 0, -1) what an inertial sensor feels."""
        R = Mat(*(Vec(*row[:3]) for row in self.pose(link)[:3]))
        return [*(R.T @ Vec(*x))]


class StepState(State):
    """A `State` that knows the step behind it."""

    def __init__(self, tree: Tree, m: Moment, commands: Sequence[str], places: Sequence[tuple[str, ...]]) -> None:
        super().__init__(tree, m.q, m.v, m.action, m.seconds)
        self._moment, self._commands, self._places = m, commands, places

    @property
    def previous_action(self) -> Vector:
        """The action of the step before, zeros at the beginning."""
        return self._moment.seen.previous

    @property
    def time(self) -> Scalar:
        """Seconds since the episode began."""
        return self._moment.seen.elapsed[0] * self.dt

    @property
    def command(self) -> dict[str, Scalar]:
        """The commands of this episode, by name."""
        return dict(zip(self._commands, self._moment.seen.commands)) if self._commands else {}

    @cached_property
    def before(self) -> State:
        """The state as the step began."""
        return State(self._tree, self._moment.before, self._moment.seen.earlier, self.previous_action, self.dt)

    def force(self, link: str) -> list[Scalar]:
        """The contact force on a link, (3,), N, in world axes, of the last substep."""
        total, forces = Vec(0.0, 0.0, 0.0), self._moment.seen.forces
        self._known(link)
        for k, (first, second) in enumerate(self._places):
            sign = float(second == link) - float(first == link)
            if sign:
                total = total + Vec(*forces[3 * k : 3 * k + 3]) * sign
        return [*total]


class Servo:
    """Actions that are goals of position servos: action 1 moves a joint by `reach` from its `rest`.

    tau = kp (rest + reach action - q) - kd v at every substep, cut to the effort limits of the joints.
    rest: (n,) of the driven joints; kp in N m/rad, kd in N m s/rad, reach in rad: numbers, or (n,).
    """

    def __init__(self, rest: Any, kp: Any, kd: Any, reach: Any = 0.5) -> None:
        self.rest = finite("Servo: rest", rest, (...,)).ravel()
        shape = self.rest.shape
        self.kp, self.kd, self.reach = (
            np.broadcast_to(finite(f"Servo: {name}", x, (...,)), shape)
            for name, x in (("kp", kp), ("kd", kd), ("reach", reach))
        )

    def __call__(self, state: State) -> list[Scalar]:
        n = len(self.rest)
        if len(state.action) != n or len(state.v) < n:
            raise InputError(f"Servo: rest has {n} joints, the robot drives {len(state.action)}")
        rows = zip(self.rest.tolist(), self.kp.tolist(), self.kd.tolist(), self.reach.tolist(),
                   state.action, state.q[-n:], state.v[-n:])  # fmt: skip
        return [kp * (rest + reach * clip(u, -1.0, 1.0) - q) - kd * v for rest, kp, kd, reach, u, q, v in rows]


StateFunction = Callable[[Any], Any]


@asked_methods
class Env(StepEnv):
    """A gymnasium.vector.VectorEnv of any robot: the whole step of all environments is one compiled call.

    Functions take a `State` and are called once, on traced scalars, to be compiled with the step; choices are
    drevo.where(condition, a, b), functions drevo.sin and their like.
    reward: of the state after a step, a number, or numbers by name, whose sum it is and which stand in infos.
    observation: a list of numbers; q and v if not given. terminated: a condition, or a list of which any ends an
    episode. action: the efforts of an action, seen from q, v and action: nv of them, or one for every driven
    joint, cut to the limits of efforts; `Servo` is one; if not given the actuators of the file, else an action of
    1 is a joint's largest effort, and actions are cut to (low, high).
    actions: (low, high) of the action, arrays or numbers; -1 and 1. reset: q where episodes begin (nq,), or a
    function (random, q) -> (q, v), random.uniform(low, high) and random.normal() being drawn anew each time.
    ground: as `robot.simulate` takes it, None for what the model has. dt: s of a step of the soft law; repeat:
    steps of one action; limit: actions of an episode.
    randomise: {name or pattern of a number of the robot: (low, high) or Scaled(low, high)}, drawn per environment
    and episode; "friction", "ground"; "noise": standard deviation of observations, one or of each part; "delay":
    (low, high) in s of actions; "push": (seconds between, largest force in N). commands: {name: (low, high)} that
    functions see as state.command[name].
    dtype: of observations. render_mode: "rgb_array" or "human". Raises InputError.
    """

    def __init__(
        self, robot: Any, reward: StateFunction, observation: StateFunction | None = None,
        action: StateFunction | None = None, reset: Any = None,
        terminated: StateFunction | None = None, ground: Any = "plane",
        randomise: Mapping[str, Any] | None = None, num_envs: int = 1, *,
        commands: Mapping[str, Any] | None = None, actions: Any = (-1.0, 1.0), dt: float | None = None,
        repeat: int = 4, limit: int = 1000, threads: int = 1, autoreset: str = "NextStep", dtype: str = "float64",
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        expect_robot(robot, "Env")
        require_masses(robot.model, "Env")
        stepping = robot.model.stepping
        stepping = replace(stepping, dt=stepping.dt if dt is None else seconds("Env: dt", dt))
        robot = type(robot)(replace(robot.model, stepping=stepping))
        warn_of_untouched(robot.model, ground_of(ground))
        drawn = randomised(randomise, commands)
        functions = TaskFunctions(robot.model, reward, observation, action, reset, terminated, commands or {})
        task = Task(
            lambda: robot, whole("Env: repeat", repeat, 1), whole("Env: limit", limit, 1), functions.observe,
            functions.judge, {}, ground=lambda: ground, mujoco=False, drive=functions.drive,
            controls=functions.ranges(actions), random=drawn,
        )  # fmt: skip
        functions.places = lambda: [slot.links for slot in self.body.problem.slots for _ in range(slot.most)]
        if task.random.push and robot.model.slices()[0][0].kind != "free":
            raise InputError("Env: push needs a robot with a free base: load it with base='floating'")
        super().__init__(robot.name, functions.begun(task), num_envs, threads, autoreset, {}, dtype, render_mode)


class TaskFunctions:
    """The functions of a user in the form of a task."""

    places: Callable[[], Sequence[tuple[str, ...]]]

    def __init__(
        self, model: Model, reward: StateFunction, observation: StateFunction | None,
        action: StateFunction | None, reset: Any, terminated: StateFunction | None, commands: Mapping[str, Any],
    ) -> None:  # fmt: skip
        given = {"reward": reward, "observation": observation, "action": action, "terminated": terminated}
        for name, f in given.items():
            if not callable(f) and not (f is None and name != "reward"):
                raise InputError(f"Env: {name} is {shown(f)}; give a function of the state")
        self.model, self.tree, self.commands = model, build_tree(model), tuple(commands)
        self.reward, self.observation, self.action = reward, observation, action
        self.reset, self.terminated = reset, terminated
        self.driven = driven_velocities(model)
        self.limits = dict(zip(self.driven, _effort_limits(model, self.driven)))

    def ranges(self, actions: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The least and the greatest action."""
        if not isinstance(actions, (tuple, list)) or len(actions) != 2:
            raise InputError(
                f"Env: actions is {shown(actions)}; give the least and the greatest action, (low, high)"
            )
        given = [finite("Env: actions", x, (...,)) for x in actions]
        controls = control_ranges(self.model) if self.action is None else []
        count = len(controls or self.driven)
        try:
            low, high = (np.broadcast_to(x, x.shape or (count,)) for x in np.broadcast_arrays(*given))
        except ValueError:
            raise InputError("Env: the least and the greatest action differ in length") from None
        if low.ndim != 1 or not (low < high).all():
            raise InputError(f"Env: actions is {shown(actions)}; the least stands first, one number for each")
        self.space = tuple(low.tolist()), tuple(high.tolist())
        return self.space

    def observe(self, m: Moment) -> list[Scalar]:
        """Numbers of the observation."""
        if self.observation is None:
            return [*m.q, *m.v]
        return self._numbers("observation", self.observation, self._state(m))

    def judge(self, m: Moment, numbers: TaskNumbers) -> Outcome:
        """The reward, its parts, and whether an episode has ended."""
        state = self._state(m)
        reward = _called("reward", self.reward, state)
        parts = dict(reward) if isinstance(reward, Mapping) else {}
        total = sum(parts.values(), 0.0) if parts else reward
        ends = _called("terminated", self.terminated, state) if self.terminated else []
        ends = ends if isinstance(ends, (list, tuple)) else [ends]
        ended: Scalar = reduce(maximum, [where(x, 1.0, 0.0) for x in ends], 0.0)
        return Outcome(total, ended, parts)

    def drive(self, action: Vector, q: Vector, v: Vector, commands: Vector = ()) -> list[Scalar]:
        """nv efforts of an action."""
        nv = self.model.nv
        if self.action is None and control_ranges(self.model):
            return actuation(self.model, q, v, action).efforts
        if self.action is None:
            if lost := [k for k, x in self.limits.items() if not np.isfinite(x)]:
                joint = "".join(self.model.freedoms()[lost[0]])
                raise InputError(
                    f"Env: the robot has no effort limit of {joint!r}, so that it is not known what "
                    "an action of 1 is; give action=, such as drevo.envs.Servo(rest, kp, kd)"
                )
            rows = zip(action, self.limits.values(), *self.space)
            efforts: list[Scalar] = [clip(x, *ends) * most for x, most, *ends in rows]
        else:
            efforts = self._numbers("action", self.action, State(self.tree, q, v, action, 0.0))
        if len(efforts) not in (nv, len(self.driven)):
            raise InputError(
                f"Env: action gives {len(efforts)} efforts; it must give {nv}, one for each degree of freedom, or "
                f"{len(self.driven)}, one for each driven joint"
            )
        out: list[Scalar] = efforts if len(efforts) == nv else [0.0] * nv
        for k, x in zip(self.driven, [out[k] for k in self.driven] if out is efforts else efforts):
            out[k] = clip(x, -self.limits[k], self.limits[k]) if np.isfinite(self.limits[k]) else x
        return out

    def begun(self, task: Task) -> Task:
        """The task with its beginnings."""
        reset = self.reset
        if reset is None or not callable(reset):
            if reset is not None:
                start = finite("Env: reset", reset, (self.model.nq,))
                robot = task.source()  # type: ignore[operator]
                robot = type(robot)(replace(robot.model, initial=tuple(start.tolist())))
                return replace(task, source=lambda: robot)
            return task

        def aim(chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
            state = _called("reset", lambda _: reset(Draws(chance), list(q)), None)
            pair = isinstance(state, (tuple, list)) and all(isinstance(x, (Sequence, np.ndarray)) for x in state)
            if not pair or [len(x) for x in state] != [len(q), len(v)]:
                raise InputError(f"Env: reset gives q and v, {len(q)} and {len(v)} numbers, in a tuple")
            q[:], v[:] = (x.tolist() if isinstance(x, np.ndarray) else x for x in state)
            return 1.0

        return replace(task, aim=aim)

    def _numbers(self, name: str, f: StateFunction, state: State) -> list[Scalar]:
        found: list[Scalar] = _called(name, lambda seen: list(scalars_in(f(seen))), state)
        if not found:
            raise InputError(f"Env: {name} gives no number")
        return found

    def _state(self, m: Moment) -> StepState:
        return StepState(self.tree, m, self.commands, self.places())


class Draws:
    """Random numbers of a beginning, drawn anew in every episode."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def uniform(self, low: Scalar = 0.0, high: Scalar = 1.0) -> Scalar:
        """A number between low and high, all alike likely."""
        return self._chance.uniform(low, high)

    def normal(self, mean: Scalar = 0.0, deviation: Scalar = 1.0) -> Scalar:
        """A number of the normal distribution."""
        return mean + deviation * self._chance.normal()[0]


def driven_velocities(model: Model) -> list[int]:
    """Degrees of freedom of the joints that a drive may have: all but free ones."""
    return [k for joint, _, sv in model.slices() if joint.kind != "free" for k in range(sv.start, sv.stop)]


def _effort_limits(model: Model, rates: Sequence[int]) -> list[float]:
    limits: dict[int, float] = {}
    for joint, _, sv in model.slices():
        most = joint.limit.effort if joint.limit and joint.limit.effort else np.inf
        limits |= dict.fromkeys(range(sv.start, sv.stop), float(most))
    return [limits[k] for k in rates]


def _called(name: str, f: StateFunction, state: Any) -> Any:
    """Call a function of a user; an error in it is told in one sentence."""
    return call_traced(f"Env: {name}", lambda: f(state))
