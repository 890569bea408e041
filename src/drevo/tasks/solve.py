"""Differential inverse kinematics as users call it: a stack compiled for a robot, or solved at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..compiler.trace import requested
from ..constraint.collection import collect
from ..constraint.kinds import Constraint
from ..errors import InputError, shown
from ..io.given import Array, asked, flag, number, seconds
from ..model.draft import did_you_mean, expect_robot, listed, names_in
from ..model.dynamics import Dynamics
from .kinds import KinematicTask
from .limits import AccelerationLimit, CollisionLimit, ConfigurationLimit, RateLimits, StackLimit, VelocityLimit
from .stack import StackProblem, StackProgram

LIMITS = (ConfigurationLimit, VelocityLimit, AccelerationLimit, CollisionLimit)
ALL_NUMBERS = ("*",)
ONLY_ARRAYS = {np.ndarray}  # types of targets that are in their order


class IkStep(NamedTuple):
    """The result of a step of differential inverse kinematics.

    v (..., nv), rad/s or m/s. kkt (..., levels): the largest of what each level lacks of the conditions of Karush,
    Kuhn and Tucker: slopes of the objective over dq, and what equalities and distances are missed by. active
    (..., nv + places): -1 or 1 for rates at their lower or upper bound, 1 for places of a CollisionLimit that
    hold, else 0; it warm-starts the next step. overrun (..., nv), with an AccelerationLimit: rad/s or m/s by which
    a rate is more than its limit of the configuration allows, for it cannot brake harder; 0 where all limits hold.
    """

    v: Array
    kkt: Array
    active: Array
    overrun: Array | None = None


class CompiledStack:
    """A stack compiled for a robot: `f(q, targets)` or `f(q, *targets)`; see `compile_ik`.

    function: the Function behind it, whose inputs are q, a target for each task that has one, `before` where
    there is an AccelerationLimit, `active` with warm=True, and `parameters` where there are any.
    """

    def __init__(self, problem: StackProblem, function: Function) -> None:
        self.problem, self.function = problem, function
        self.expected = {
            name: task
            for task, name in zip((*problem.tasks, *problem.equal), (*problem.names, *problem.equal_names))
            if task.target_shape(problem.model) is not None
        }  # fmt: skip
        self._entry = function.fast or function

    def __repr__(self) -> str:
        return f"<CompiledStack of {self.problem.model.name!r}: {', '.join(self.problem.names)}>"

    def __call__(
        self, q: ArrayLike, *targets: Any, before: ArrayLike | None = None, active: ArrayLike | None = None,
        parameters: Any = None,
    ) -> IkStep:  # fmt: skip
        """One step, or a batch; targets in the order of their tasks, or one list or mapping of them by name.

        before: the rates of the last step, where there is an AccelerationLimit. active: with warm=True.
        """
        named = (("before", before), ("active", active), ("parameters", parameters))
        more = {name: x for name, x in named if x is not None}
        if more or len(targets) != len(self.expected) or {*map(type, targets)} != ONLY_ARRAYS:
            targets = (*self.arranged(targets[0] if len(targets) == 1 else targets), *self._rest(more))
        return IkStep(*self._entry(q, *targets))

    def arranged(self, given: Any) -> list[Any]:
        """The targets in the order of their tasks."""
        names = list(self.expected)
        if isinstance(given, Mapping):
            return self._named(given)
        listed = [given]
        if isinstance(given, (list, tuple)) and self._one_for_each(given):
            listed = list(given)
        if len(listed) > len(names):
            raise InputError(f"targets: {len(listed)} are given for the tasks {', '.join(names) or 'of none'}")
        return [self._usual(name, x) for name, x in zip(names, listed + [None] * (len(names) - len(listed)))]

    def _one_for_each(self, given: Sequence[Any]) -> bool:
        """True for a list of targets, False for the numbers of one."""
        shapes = [task.target_shape(self.problem.model) or () for task in self.expected.values()]
        return not shapes or not given or np.shape(given[0])[-len(shapes[0]) :] == shapes[0]

    def _rest(self, more: dict[str, Any]) -> list[Any]:
        """Arguments behind the targets."""
        names = [name for name, _ in self.function.inputs][1 + len(self.expected) :]
        for name in names:
            if name == "active" and name not in more:
                more[name] = np.zeros(dict(self.function.inputs)[name])
            if name not in more:
                raise InputError(f"compile_ik: this stack also takes {', '.join(names)}; {name} is missing")
        unknown = more.keys() - set(names)
        if unknown:
            raise InputError(f"compile_ik: this stack takes no {min(unknown)!r}")
        return [more[name] for name in names]

    def _named(self, given: Mapping[Any, Any]) -> list[Any]:
        by_task = {id(task): name for name, task in self.expected.items()}
        out: dict[str, Any] = {}
        for key, x in given.items():
            name = by_task.get(id(key), "") if isinstance(key, KinematicTask) else str(key)
            if name not in self.expected:
                raise InputError(
                    f"targets: no task with a target is {shown(key)}{did_you_mean(name, self.expected)}; "
                    f"there are {listed(self.expected)}"
                )
            out[name] = x
        return [self._usual(name, out.get(name)) for name in self.expected]

    def _usual(self, name: str, x: Any) -> Any:
        task = self.expected[name]
        usual = task.default_target(self.problem.model) if x is None else x
        if usual is None:
            shape = task.target_shape(self.problem.model)
            raise InputError(f"targets: task {name!r} has none; give one of shape {shape}")
        return usual


@asked
def compile_ik(
    robot: Dynamics, tasks: Sequence[KinematicTask], dt: float, limits: Sequence[StackLimit] = (),
    equalities: Sequence[KinematicTask | Constraint] = (), damping: float = 1e-12,
    parameters: str | Sequence[str] = (),
    warm: bool = False, spec: Spec | None = None,
) -> CompiledStack:  # fmt: skip
    """A stack of tasks as one compiled function f(q, targets) -> IkStep, of one state or a batch.

    dq minimises, level by level, the sum of |W (J dq + gain e)|^2 and of damping |dq|^2; v = dq / dt, dt in s.
    limits: ConfigurationLimit, VelocityLimit, AccelerationLimit, CollisionLimit, at most one of each of the first
    three. equalities: tasks, and constraints of drevo.constraint, that hold before all else; a robot's own loops
    and couplings always do. Rates stay within their limits exactly; from outside them a robot comes back as fast
    as it may. parameters: names or patterns "TASK.position_cost", "TASK.gain", .. or "*" of numbers that become
    an input; costs that are zero stay zero. warm: the active set of the last step is an input. Raises InputError.
    """
    problem = checked_stack(robot, tasks, dt, limits, equalities, damping, parameters, warm)
    asked_for = ("inverse_kinematics_step", *problem.key())
    chosen = replace(spec or Spec(), parameters=bool(problem.parameters))
    function = requested(robot, asked_for, lambda: StackProgram(problem).program(), spec=chosen)
    return CompiledStack(problem, function)


@asked
def solve_ik(
    robot: Dynamics, q: ArrayLike, tasks: Sequence[KinematicTask], dt: float, limits: Sequence[StackLimit] = (),
    equalities: Sequence[KinematicTask | Constraint] = (), targets: Any = (), damping: float = 1e-12,
    before: ArrayLike | None = None, active: ArrayLike | None = None,
) -> IkStep:  # fmt: skip
    """The rates v (..., nv) that a stack of tasks asks for at q (..., nq), with kkt and active: one state or a
    batch.

    targets: by name, in the order of the tasks that have one, or the only one. Costs and gains are inputs of code
    that is compiled once for the kinds of tasks. before: the rates of the last step, for an AccelerationLimit; by
    default zero. active: of the last IkStep, where the solution begins. The rest is as of `compile_ik`. Raises
    InputError.
    """
    f = compile_ik(
        robot, tasks, dt, limits, equalities, damping, parameters=ALL_NUMBERS, warm=active is not None
    )  # fmt: skip
    more: dict[str, Any] = {}
    if f.problem.accelerates:
        more["before"] = np.zeros(robot.nv) if before is None else before
    if active is not None:
        more["active"] = active
    if f.function.parameters:
        more["parameters"] = _numbers(f)
    return f(q, targets, **more)


def checked_stack(
    robot: Dynamics, tasks: Sequence[KinematicTask], dt: float, limits: Sequence[StackLimit], equalities:
    Sequence[KinematicTask | Constraint], damping: float, parameters: str | Sequence[str], warm: bool,
) -> StackProblem:  # fmt: skip
    """The stack that is asked for, checked."""
    expect_robot(robot, "compile_ik")
    model = robot.model
    tasks = tuple(_each("tasks", tasks, KinematicTask))
    if not tasks:
        raise InputError("compile_ik: tasks is empty; give at least one, such as drevo.tasks.FrameTask(link)")
    held = _each("equalities", equalities, (KinematicTask, Constraint))
    equal = [x for x in held if isinstance(x, KinematicTask)]
    constraints = [x for x in held if isinstance(x, Constraint)]
    limits = _each("limits", limits, LIMITS)
    for kind in LIMITS[:3]:
        if sum(isinstance(x, kind) for x in limits) > 1:
            raise InputError(f"limits: there are several {kind.__name__}; give one")
    limits = [x.chosen(robot) if isinstance(x, CollisionLimit) else x for x in limits]
    links = {link.name for link in model.links}
    for task in (*tasks, *equal):
        for link in task.links():
            if not isinstance(link, str) or link not in links:
                raise InputError(f"{type(task).__name__}: no link {shown(link)}{did_you_mean(str(link), links)}")
    names = _distinct([*tasks, *equal])
    return StackProblem(
        model, tasks, names[: len(tasks)], seconds("compile_ik: dt", dt), RateLimits.of(robot, limits),
        tuple(x for x in limits if isinstance(x, CollisionLimit)), tuple(equal), names[len(tasks) :],
        collect(model, None, constraints),
        number("compile_ik: damping", damping, "a number from 0 on", lambda x: 0.0 <= x < np.inf),
        names_in(parameters, "compile_ik: parameters"), flag("compile_ik: warm", warm),
    )  # fmt: skip


def _each(what: str, given: Any, kinds: Any) -> list[Any]:
    """A list of things of some kinds; one alone is a list of it."""
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, kinds) else [given]
    for x in listed:
        if not isinstance(x, kinds):
            raise InputError(f"{what}: {shown(x)} is none of drevo.tasks")
    return listed


def _distinct(tasks: Sequence[KinematicTask]) -> tuple[str, ...]:
    """A name for every task."""
    out: list[str] = []
    for task in tasks:
        name = task.name or task.default_name
        same = sum(x == name or x.startswith(f"{name}#") for x in out)
        out.append(f"{name}#{same + 1}" if same else name)
    return tuple(out)


def _numbers(f: CompiledStack) -> Array:
    """The numbers of the tasks in the order of the parameters."""
    p, out = f.problem, dict[str, float]()
    for task, name in zip(p.tasks, p.names):
        out |= {f"{name}.gain": task.gain, f"{name}.lm_damping": task.lm_damping}
        out |= {f"{name}.{label}": x for label, x in task.costs(p.model)}
    return np.array([out[name] for name, _ in f.function.parameters])
