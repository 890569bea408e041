"""A step of an environment as one compiled function: efforts, the steps of the robot, what is observed, the
reward, the end, and where an episode is over the beginning of the next, drawn by counter in the compiled loop.

An environment's state is q and v (Drevo's), `elapsed` steps, `over` (1.0 where the episode has ended), `stream`
(the seed of its random numbers, how many it has drawn), and what its task saw at the last step and looks at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen.call.function import Function
from ..codegen.graph.program import Program
from ..codegen.llvm.draws import draw
from ..codegen.llvm.stages import StageCalls, Stages
from ..codegen.store.build import Ahead
from ..compiler.request import requested
from ..compiler.tracer import Tracer
from ..contact.laws.soft.kernel import Loops, evaluation
from ..contact.laws.soft.problem import soft_problem
from ..contact.laws.soft.stages import SoftProblem, StageTracer
from ..contact.step import soft_step_cost
from ..ground import ground_of
from ..mechanics.scalar import Scalar, Vector, maximum, where
from .features import Sight
from .simulation import TaskRobot, actuator_efforts, drevo_state, mujoco_state
from .tasks import Chance, Look, Moment, Task, TaskNumbers
from .traced import TracedTask, traced_task

Array = np.ndarray[Any, Any]
METHODS = {"Euler": "euler", "RK4": "rk4", "implicitfast": "implicitfast"}
LEFT = {"efforts": "tau", "constraint": "r"}  # what is seen and stands in blocks of a step
STATE = ("q", "v", "elapsed", "over", "stream")
AFTER = ("q1", "v1", "elapsed1", "over1", "stream1")  # the same after a step
JUDGED = ("observation", "reward", "terminated", "truncated")
TRIES = 100  # of a beginning; of those that a task refuses, most often 4 in 10
BEFORE, SEEN, FINAL, INFO = "before_", "seen_", "final_obs", "info_"


def episode(body: TaskRobot, task: Task, numbers: TaskNumbers, same: bool) -> Function:
    """f(q, v, elapsed, over, stream, action, before_..) -> (q1, v1, elapsed1, over1, stream1, observation, reward,
    terminated, truncated, [final_obs], seen_.., info_..) of a task as it is now.

    Where `over` is 1 the next episode begins; same: where one ends, too, and final_obs is what was seen there.
    """
    ground = ground_of(task.ground() if task.ground else None)
    traced = traced_task(task, body, numbers)
    asked = ("episode", traced, same, ground)
    ahead = Ahead(f"step of {body.model.name!r}", lambda: soft_step_cost(_problem(body, ground, task.skip)))
    return requested(body.robot, asked, lambda: EpisodeStages(body, traced, same, ground).program(), ahead=ahead)


def _problem(body: TaskRobot, ground: Any, skip: int) -> SoftProblem:
    stepping = body.model.stepping
    return soft_problem(body.model, ground, stepping.dt, METHODS[stepping.integrator], skip)


def sight(body: TaskRobot, task: Task, parts: Sequence[str]) -> Function:
    """f(q, v) -> parts of what is seen of a state where nothing drives and nothing is known to touch."""
    model = body.model

    def program() -> Program:
        t = Tracer("seen", model)
        state = dict(zip("QV", t.state("q", "v")))
        seen = Sight(model, t.tree, task.looks, lambda block: state.get(block, _Zeros()))
        for part in parts:
            t.output(part, [0.0] * model.nv if part in LEFT else seen.part(part))
        return t.program()

    return requested(body.robot, ("seen", task.looks, tuple(parts)), program)


class _Zeros(list[float]):
    """As many as are asked for."""

    def __getitem__(self, at: Any) -> Any:
        return [0.0] * (at.stop - at.start)


class EpisodeStages:
    """The stages of a task beside those of the robot's steps."""

    def __init__(self, body: TaskRobot, task: TracedTask, same: bool, ground: Any) -> None:
        self.body, self.task, self.same = body, task, same
        model = body.model
        e = self.e = evaluation(_problem(body, ground, task.skip))
        self.n_even, self.n_log = task.draws
        sizes = Sight(model, e.tree, task.looks, lambda _: []).sizes if task.looks else {}
        e.sizes |= {f"look_{part}": n for part, n in sizes.items()}
        self.parts = {part: f"look_{part}" for part in sizes} | LEFT  # blocks of what is seen
        e.sizes |= {f"{mark}{part}": e.sizes[x] for part, x in self.parts.items() for mark in (BEFORE, SEEN)}
        e.sizes |= {x: n for k in ("", "1") for x, n in ((f"elapsed{k}", 1), (f"over{k}", 1), (f"stream{k}", 2))}
        e.sizes |= {"action": len(model.actuators), "fresh": 1, "seeking": 1, "draws": self.n_log + self.n_even}
        e.sizes |= {"q0": model.nq, "v0": model.nv}
        self._add("drive", self._drive)
        self._add("judged", self._judge)
        e.opening = ["drive"]
        self._add("begun", self._begin)
        if self.seen:
            self._add("look", self._look)
            self._add("placed", self._place)
        self._add("restarted", self._restart)

    def _add(self, name: str, write: Any) -> None:
        s = StageTracer(name, self.e.sizes)
        write(s)
        self.e.parts[name] = s.t.program()

    # -- stages ----------------------------------------------------------------------------------------------

    def _drive(self, s: StageTracer) -> None:
        s.write(tau=actuator_efforts(self.body.model, s.read("action"), s.read("Q"), s.read("V")))

    def _judge(self, s: StageTracer) -> None:
        """Judges the state after the steps; the flags say nothing where the episode was over before."""
        q, v = mujoco_state(self.body.model, s.read("q1"), s.read("v1"))
        look = Look(lambda part: s.read(self.parts[part]))
        earlier = Look(lambda part: s.read(BEFORE + part))
        m = Moment(q, v, s.read("q"), s.read("action"), self.body.seconds, look, earlier)
        observed, outcome = self.task.observe(m), self.task.judge(m)
        self.carried, self.told = tuple(earlier.asked), tuple(outcome.infos)
        s.write(**{SEEN + part: s.read(self.parts[part]) for part in self.carried})
        self.seen = tuple(x for x in dict.fromkeys((*look.asked, *self.carried)) if x not in LEFT)
        over, count = s.number("over"), s.number("elapsed") + 1.0
        lasts = 1.0 - over
        terminated = lasts * outcome.terminated
        truncated = lasts * where(count > self.task.limit - 0.5, 1.0, 0.0)
        ended = maximum(terminated, truncated)
        fresh = maximum(over, ended) if self.same else over
        self.e.sizes |= {"observation": len(observed), FINAL: len(observed), **dict.fromkeys(JUDGED[1:], 1)}
        self.e.sizes |= {INFO + x: 1 for x in self.told}
        s.write(observation=observed, reward=lasts * outcome.reward, terminated=terminated, truncated=truncated)
        s.write(**{INFO + x: y for x, y in outcome.infos.items()}, **({FINAL: observed} if self.same else {}))
        s.write(elapsed1=count, over1=ended, stream1=s.read("stream"), fresh=fresh, seeking=fresh)

    def _begin(self, s: StageTracer) -> None:
        """A beginning where one is sought, in MuJoCo's order."""
        draws, seeking = s.read("draws"), s.number("seeking")
        chance = Chance(lambda k: draws[self.n_log + k], lambda k: draws[k])
        (q, v), taken = self.task.begin(chance)
        old = s.read("q0"), s.read("v0")
        q, v = (_chosen(seeking, x, y) for x, y in zip((q, v), old))
        seed, drawn = s.read("stream1")
        more = drawn + where(seeking > 0.5, float(len(draws)), 0.0)
        s.write(q0=q, v0=v, stream1=[seed, more], seeking=seeking * (1.0 - taken))

    def _place(self, s: StageTracer) -> None:
        """Writes the state that a look at a beginning reads: no control yet, and no contact counted."""
        q, v = drevo_state(self.body.model, s.read("q0"), s.read("v0"))
        none = {x: [0.0] * self.e.sizes[x] for x in ("forces", "tau", "r") if self.e.sizes[x]}
        fresh = s.number("fresh")
        s.write(Q=_chosen(fresh, q, s.read("Q")), V=_chosen(fresh, v, s.read("V")), **none)

    def _look(self, s: StageTracer) -> None:
        found = Sight(self.body.model, self.e.tree, self.task.looks, s.read)
        s.write(**{self.parts[part]: found.part(part) for part in self.seen})

    def _restart(self, s: StageTracer) -> None:
        """The state and the observation of a beginning in place of those of the step."""
        fresh, model = s.number("fresh"), self.body.model
        q0, v0 = s.read("q0"), s.read("v0")
        look = Look(lambda part: s.read(self.parts[part]))
        first = Moment(q0, v0, q0, [0.0] * len(model.actuators), self.body.seconds, look, look)
        q, v = drevo_state(model, q0, v0)
        found = {"q1": q, "v1": v, "observation": self.task.observe(first), "elapsed1": [0.0], "over1": [0.0]}
        found |= {SEEN + part: s.read(self.parts[part]) for part in self.carried}
        s.write(**{block: _chosen(fresh, x, s.read(block)) for block, x in found.items()})

    # -- the function ----------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The stages and their calls."""
        e, model = self.e, self.body.model
        t = Tracer("episode", model)
        t.state("q", "v")
        given = (*STATE, "action", *(BEFORE + part for part in self.carried))
        for name in given[2:]:
            t.input(name, e.sizes[name])
        results = (*AFTER, *JUDGED, *((FINAL,) if self.same else ()), *(SEEN + part for part in self.carried),
                   *(INFO + x for x in self.told))  # fmt: skip
        for name in results:
            alone = name in JUDGED[1:] or name.startswith(INFO)
            t.output(name, [0.0] * e.sizes[name], () if alone else None)
        blocks = {name: size for name, size in e.sizes.items() if name not in (*given, *results)}
        return replace(t.program(), stages=Stages(blocks, e.parts, self._write))

    def _write(self, c: StageCalls) -> None:
        Loops(self.e).write(c)
        if self.seen:
            c.call("look")
        c.call("judged")
        with c.f.when(c.some_above("fresh")):
            with c.f.loop(TRIES, some=True) as loop:
                draw(c, "draws", "stream1", self.n_log + self.n_even, self.n_log)
                c.call("begun")
                loop.leave(~c.some_above("seeking"))
            if self.seen:
                c.call("placed")
                c.call("look")
            c.call("restarted")


def _chosen(flag: Scalar, x: Vector, y: Vector) -> list[Scalar]:
    return [where(flag > 0.5, a, b) for a, b in zip(x, y)]
