"""A step of an environment as one compiled function: efforts, the steps of the robot, what is observed, the
reward, the end, and where an episode is over the beginning of the next, drawn by counter in the compiled loop.

An environment's state is q and v (Drevo's), `elapsed` steps, `over` (1.0 where the episode has ended), `stream`
(the seed of its random numbers, how many it has drawn), and what its task saw at the last step and looks at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..codegen.call.function import Function, Spec
from ..codegen.graph.program import Program
from ..codegen.llvm.ir import F64, I8, I64
from ..codegen.llvm.plain import add_plain
from ..codegen.llvm.stages import StageCalls, Stages
from ..codegen.llvm.stream import write_draws
from ..codegen.store.build import Ahead
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..contact.convex.fields import ray_to_field
from ..contact.laws.soft.program import step_loops
from ..contact.laws.soft.stages import StageTracer
from ..contact.signals import sensors_named
from ..contact.step import soft_step_cost
from ..mechanics.algorithms.actuators import activated
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, Vector, dot, maximum, where
from ..mechanics.spatial import Vec
from .features import Sight
from .randomise import delayed, pushed
from .simulation import TaskRobot
from .tasks import Chance, Look, Moment
from .traced import RAY_NUMBERS, SEEN_PREFIX, TracedTask

Array = np.ndarray[Any, Any]
LEFT_IN_STEP = {"efforts": "tau", "constraint": "r"}  # what is seen and stands in blocks of a step
OF_STEP = {
    "forces": "forces",
    "touches": "touches",
    "sensordata": "sensordata",
    "ranges": "ranges",
    "earlier": "v",
    "positions": "Q",
    "velocities": "V",
    "accelerations": "a",
}  # what is seen of a step alone
DRAWN = {"commands": "commands0", "numbers": "numbers0", "act": "act0"}  # what is drawn where an episode begins
EPISODE_STATE = ("q", "v", "elapsed", "over", "stream")
AFTER = ("q1", "v1", "elapsed1", "over1", "stream1")  # the same after a step
JUDGED = ("observation", "reward", "terminated", "truncated")
RISES = 200  # steps by which a beginning is raised at most
RISE_SLACK = 1e-12  # m, above what touches by rounding alone
TRIES = 100  # of a beginning; of those that a task refuses, most often 4 in 10
BEFORE_PREFIX, SEEN, FINAL, INFO = "before_", "seen_", "final_obs", "info_"


def episode(body: TaskRobot, traced: TracedTask, same: bool) -> Function:
    """f(q, v, elapsed, over, stream, action, before_.., [parameters]) -> (q1, v1, elapsed1, over1, stream1,
    observation, reward, terminated, truncated, [final_obs], seen_.., info_..) of a task.

    Where `over` is 1 the next episode begins; same: where one ends, too, and final_obs is what was seen there.
    """
    asked = ("episode", traced, same, body.ground, body.mujoco)
    ahead = Ahead(f"step of {body.model.name!r}", lambda: soft_step_cost(body.problem))
    spec = Spec(parameters=bool(traced.random.patterns))
    return requested(
        body.robot, asked, lambda: EpisodeStages(body, traced, same).program(), spec=spec, ahead=ahead
    )


def sight(body: TaskRobot, looks: tuple[str, ...], parts: Sequence[str]) -> Function:
    """f(q, v) -> parts of what is seen of a state where nothing drives and nothing is known to touch."""
    model = body.model

    def program() -> Program:
        t = Tracer("seen", model)
        state = dict(zip("QV", t.state("q", "v")))
        seen = Sight(model, t.tree, looks, lambda block: state.get(block, _Zeros()))
        for part in parts:
            t.output(part, [0.0] * model.nv if part in LEFT_IN_STEP else seen.part(part))
        return t.program()

    return requested(body.robot, ("seen", looks, tuple(parts)), program)


class _Zeros(list[float]):
    """As many as are asked for."""

    def __getitem__(self, at: Any) -> Any:
        return [0.0] * (at.stop - at.start)


class EpisodeStages:
    """The stages of a task beside those of the robot's steps."""

    def __init__(self, body: TaskRobot, task: TracedTask, same: bool) -> None:
        self.body, self.task, self.same, self.random = body, task, same, task.random
        model, n_action = body.model, body.controls.shape[1]
        asked = {x.name.removeprefix(SEEN_PREFIX) for x in task.observation.program.inputs}
        sensors = sensors_named(model, task.sensors) if "sensordata" in asked else ()
        touches = bool(sensors) or "touches" in asked
        self.loops = step_loops(replace(body.problem, touches=touches, sensors=sensors))
        e = self.e = self.loops.e
        self.weighed = bool(sensors) or "accelerations" in asked  # a beginning is evaluated
        self._add_ranges("ranges" in asked)
        self.kept = self._kept(n_action)
        self.n_even, self.n_log = task.draws
        self.n_even += sum(self.kept.get(x, 0) for x in DRAWN)
        pairs = (len(self.random.noise and task.observation.program.outputs[0].edges) + 1) // 2
        self.n_noise, self.n_luck = pairs, 2 * pairs + 3 * bool(self.random.push)
        sizes = Sight(model, e.tree, task.looks, lambda _: []).sizes if task.looks else {}
        e.sizes |= {f"look_{part}": n for part, n in sizes.items()}
        self.parts = {part: f"look_{part}" for part in sizes} | LEFT_IN_STEP  # blocks of what is seen
        e.sizes |= {
            f"{mark}{part}": e.sizes[x] for part, x in self.parts.items() for mark in (BEFORE_PREFIX, SEEN)
        }
        e.sizes |= {f"{mark}{part}": n for part, n in self.kept.items() for mark in (BEFORE_PREFIX, SEEN)}
        e.sizes |= {block: self.kept[part] for part, block in DRAWN.items() if part in self.kept}
        e.sizes |= {"tick": 1} if self.random.delay else {}
        e.sizes |= {"luck": self.n_luck} if self.n_luck else {}
        self.parts |= OF_STEP | {part: BEFORE_PREFIX + part for part in self.kept}
        e.sizes |= {x: n for k in ("", "1") for x, n in ((f"elapsed{k}", 1), (f"over{k}", 1), (f"stream{k}", 2))}
        e.sizes |= {"action": n_action, "fresh": 1, "seeking": 1, "draws": self.n_log + self.n_even}
        e.sizes |= {"q0": model.nq, "v0": model.nv}
        if "act" in self.kept:
            e.sizes["act"] = self.kept["act"]
            e.add({"engaged": lambda s: s.write(act=s.read(BEFORE_PREFIX + "act"))})
        e.add({"drive": self._drive, "judged": self._judge, "begun": self._begin})
        e.opening = ["drive"]
        if task.rise is not None:
            e.add({"clear": self._clear})
        if self.seen:
            e.add({"look": self._look})
        if self.seen or self.weighed or task.rise is not None:
            e.add({"placed": self._place})
        e.add({"restarted": self._restart})

    def _add_ranges(self, asked: bool) -> None:
        """Stages of rays, where a task looks at them."""
        e, sizes = self.e, self.e.sizes
        if self.task.ranges and asked:
            _, rays, near = self.task.ranges
            sizes["rays"] = len(rays.program.outputs[0].edges)
            sizes |= {"ranges": sizes["rays"] // RAY_NUMBERS, "eyes": self.body.model.nq}

            def look(s: StageTracer, q: str) -> None:
                s.write(rays=rays(s.read(q))[0], eyes=s.read(q))

            e.add({"rays": partial(look, q="q1"), "rays0": partial(look, q="Q")})
            e.add({"ray": lambda s: s.write_here({6: near(s.read("eyes"), s.here(0, RAY_NUMBERS))[0]})})
        sizes |= {"taken": 1} if self.task.rise is not None else {}
        sizes |= {"tries": 1} if self.task.rise else {}

    def _kept(self, n_action: int) -> dict[str, int]:
        """Sizes of what a task of one's own keeps from step to step: past actions, and what is drawn."""
        engaged = 0 if self.task.drive else len(activated(self.body.model))
        if not (self.task.drive or engaged):
            return {}
        sizes = {"past": n_action * self.random.past_actions(self.body.seconds)}
        sizes |= {"commands": len(self.random.commands) + bool(self.random.delay), "act": engaged}
        return {k: n for k, n in (sizes | {"numbers": len(self.e.symbols)}).items() if n}

    # -- stages ----------------------------------------------------------------------------------------------

    def _drive(self, s: StageTracer) -> None:
        """Efforts of the action in force, and of a push."""
        action, model = s.read("action"), self.body.model
        if self.random.delay:
            tick, seconds = s.number("tick"), self.body.seconds
            delay = s.read(BEFORE_PREFIX + "commands")[-1]
            since = tick * model.stepping.dt
            action = delayed(action, s.read(BEFORE_PREFIX + "past"), delay, since, seconds)
            s.write(tick=tick + 1.0)
        q, v, act = s.read("Q"), s.read("V"), s.read("act") if "act" in self.kept else []
        drawn = [s.read(BEFORE_PREFIX + "commands")[:n]] if (n := len(self.random.commands)) else []
        tau, act = self.task.driven(model, action, act, q, v, *drawn)
        if self.random.push:
            x, y = pushed(s.read("luck")[-3:], self.random.push, self.body.seconds)
            base = model.slices()[0]
            turned = from_quaternion(*q[base[1].start + 3 : base[1].stop]).T @ Vec(x, y, 0.0)
            tau[:3] = [a + b for a, b in zip(tau[:3], turned)]
        s.write(tau=tau, **({"act": act} if act else {}))

    def _noisy(self, s: StageTracer, observed: Sequence[Scalar]) -> list[Scalar]:
        """Adds the noise of observations."""
        if not self.n_noise:
            return list(observed)
        luck, widths = s.read("luck"), self.random.noise
        widths = widths * len(observed) if len(widths) == 1 else widths
        chance = Chance(lambda k: luck[self.n_noise + k], lambda k: luck[k])
        errors = [x for _ in range(self.n_noise) for x in chance.normal()]
        return [x + width * y for x, width, y in zip(observed, widths, errors)]

    def _judge(self, s: StageTracer) -> None:
        """Judges the state after the steps; the flags say nothing where the episode was over before."""
        q, v = self.body.outward(s.read("q1"), s.read("v1"))
        action = s.read("action")
        step: dict[str, Sequence[Scalar]] = {
            "previous": s.read(BEFORE_PREFIX + "past")[: len(action)] if self.kept else []
        }
        step["elapsed"] = [s.number("elapsed") + 1.0]
        if "act" in self.kept:
            step["act"] = s.read("act")
        if "commands" in self.kept:
            step["commands"] = s.read(BEFORE_PREFIX + "commands")[: len(self.random.commands)]
        look = Look(lambda part: step[part] if part in step else s.read(self.parts[part]))
        earlier = Look(lambda part: s.read(BEFORE_PREFIX + part))
        m = Moment(q, v, s.read("q"), action, self.body.seconds, look, earlier)
        observed, outcome = self._noisy(s, self.task.observe(m)), self.task.judge(m)
        self.carried, self.told = (*earlier.asked, *self.kept), tuple(outcome.infos)
        left = {part: s.read(self.parts[part]) for part in self.carried}
        if self.kept:
            left["past"] = [*action, *left["past"]][: self.kept["past"]]
            left |= {"act": list(step["act"])} if "act" in step else {}
        s.write(**{SEEN + part: x for part, x in left.items()})
        self.seen = tuple(x for x in dict.fromkeys((*look.asked, *self.carried)) if f"look_{x}" in self.e.sizes)
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
        seed, drawn = s.read("stream")
        s.write(
            elapsed1=count, over1=ended, stream1=[seed, drawn + float(self.n_luck)], fresh=fresh, seeking=fresh
        )

    def _begin(self, s: StageTracer) -> None:
        """A beginning where one is sought, in MuJoCo's order."""
        draws, seeking = s.read("draws"), s.number("seeking")
        extra, count = dict[str, list[Scalar]](), len(self.random.commands)
        chance = Chance(lambda k: draws[self.n_log + k], lambda k: draws[k], lambda: extra["commands"][:count])
        chance.evens, chance.normals = self.task.draws  # those of the beginning stand first
        extra |= self._drawn(chance)
        (q, v), taken = self.task.begin(chance)
        if self.task.rise:  # again from the same numbers
            tries = s.number("tries")
            q[2] = q[2] + self.task.rise * tries + RISE_SLACK
            s.write(tries=tries + 1.0)
        if self.task.rise is not None:
            s.write(taken=taken)
        new = {"q0": q, "v0": v} | {DRAWN[part]: x for part, x in extra.items() if x}
        new = {block: _chosen(seeking, x, s.read(block)) for block, x in new.items()}
        seed, drawn = s.read("stream1")
        more = drawn if self.task.rise else drawn + where(seeking > 0.5, float(len(draws)), 0.0)
        s.write(
            **new, stream1=[seed, more], seeking=seeking * (1.0 - taken) if self.task.rise is None else seeking
        )

    def _drawn(self, chance: Chance) -> dict[str, list[Scalar]]:
        """Commands, with the delay of actions last, and numbers of the model."""
        if not self.kept:
            return {}
        ranges = [bounds for _, bounds in self.random.commands]
        ranges += [self.random.delay] if self.random.delay else []
        drawn = {"commands": [chance.uniform(*x) for x in ranges]}
        drawn["act"] = [chance.uniform(*self.task.engaged) for _ in range(self.kept.get("act", 0))]
        if self.task.placed:
            return drawn | {"numbers": list(self.task.placed(drawn["commands"])[0])}
        numbers = [self.random.bounds(x) for x in self.e.symbols]
        return drawn | {"numbers": [chance.uniform(*x) for x in numbers]}

    def _clear(self, s: StageTracer) -> None:
        """Ends the search where nothing presses."""
        forces, seeking = s.read("forces"), s.number("seeking")
        s.write(seeking=where(dot(forces, forces) > 0.0, seeking, seeking * (1.0 - s.number("taken"))))

    def _place(self, s: StageTracer) -> None:
        """Writes the state that a look at a beginning reads: no control yet, and no contact counted."""
        q, v = self.body.inward(s.read("q0"), s.read("v0"))
        none = {x: [0.0] * self.e.sizes[x] for x in ("forces", "tau", "r") if self.e.sizes[x]}
        fresh = s.number("fresh")
        s.write(Q=_chosen(fresh, q, s.read("Q")), V=_chosen(fresh, v, s.read("V")), **none)

    def _look(self, s: StageTracer) -> None:
        found = Sight(self.body.model, self.e.tree, self.task.looks, s.read)
        s.write(**{self.parts[part]: found.part(part) for part in self.seen})

    def _restart(self, s: StageTracer) -> None:
        """The state and the observation of a beginning in place of those of the step."""
        fresh, still = s.number("fresh"), [0.0] * len(s.read("action"))
        q, v = self.body.inward(s.read("q0"), s.read("v0"))
        left: dict[str, Sequence[Scalar]] = {p: s.read(DRAWN[p]) for p in self.kept if p in DRAWN}
        if self.kept:
            left["past"] = [0.0] * self.kept["past"]
        first = left | {"earlier": v, "positions": q, "elapsed": [0.0], "previous": still}
        first["commands"] = first.get("commands", [])[: len(self.random.commands)]
        look = Look(lambda part: first[part] if part in first else s.read(self.parts[part]))
        seen_q, seen_v = (s.read("q0"), s.read("v0")) if self.body.mujoco else (q, v)
        moment = Moment(seen_q, seen_v, q, still, self.body.seconds, look, look)
        observed = self._noisy(s, self.task.observe(moment))
        found = {"q1": q, "v1": v, "observation": observed, "elapsed1": [0.0], "over1": [0.0]}
        found |= {SEEN + p: list(left[p] if p in left else s.read(self.parts[p])) for p in self.carried}
        if self.task.rise:
            seed, drawn = s.read("stream1")
            found["stream1"] = [seed, drawn + float(self.n_log + self.n_even)]
        s.write(**{block: _chosen(fresh, list(x), s.read(block)) for block, x in found.items()})

    # -- the function ----------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The stages and their calls."""
        e, model = self.e, self.body.model
        t = Tracer("episode", model)
        t.state("q", "v")
        given = (*EPISODE_STATE, "action", *(BEFORE_PREFIX + part for part in self.carried))
        for name in given[2:]:
            t.input(name, e.sizes[name])
        results = (*AFTER, *JUDGED, *((FINAL,) if self.same else ()), *(SEEN + part for part in self.carried),
                   *(INFO + x for x in self.told))  # fmt: skip
        for name in results:
            alone = name in JUDGED[1:] or name.startswith(INFO)
            t.output(name, [0.0] * e.sizes[name], () if alone else None)
        blocks = {name: size for name, size in e.sizes.items() if name not in (*given, *results)}
        symbols = tuple(x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in e.symbols)
        return replace(t.program(), parameters=symbols, stages=Stages(blocks, e.parts, self._write))

    def _write(self, c: StageCalls) -> None:
        """One step: draws, robot steps, what is judged; then up to TRIES beginnings where an episode is over."""
        if self.n_luck:
            write_draws(c, "luck", "stream", self.n_luck, self.n_noise)
        if self.random.delay:
            c.fill(0.0, "tick", 0, 1)
        if "act" in self.kept:
            c.call("engaged")
        self.loops.write(c)
        self._write_ranges(c, "rays")
        if self.seen:
            c.call("look")
        c.call("judged")
        with c.f.when(c.some_above("fresh")):
            if self.task.rise:
                c.fill(0.0, "tries", 0, 1)
            with c.f.loop(RISES if self.task.rise else TRIES, some=True) as loop:
                write_draws(c, "draws", "stream1", self.n_log + self.n_even, self.n_log)
                c.call("begun")
                if self.task.rise is not None:
                    c.call("placed")
                    c.fill(0.0, "warm", 0, 1)
                    c.run("forward")
                    c.call("clear")
                loop.leave(~c.some_above("seeking"))
            if self.seen or self.weighed:
                c.call("placed")
            if self.weighed:
                c.fill(0.0, "warm", 0, 1)
                c.run("forward")
                if self.e.sensing:
                    self.e.sensing.write(c)
                self._write_ranges(c, "rays0")
            if self.seen:
                c.call("look")
            c.call("restarted")

    def _write_ranges(self, c: StageCalls, rays: str) -> None:
        """Writes lengths of rays, to solids and to a field; rays: the stage of these."""
        if "rays" not in self.e.parts or not self.task.ranges:
            return
        f, l, field = c.f, c.l, self.task.ranges[0]
        name, grid = add_plain(f.module, ray_to_field), (field.columns, len(field.points) // field.columns)
        heights = [z + field.origin[2] for _, _, z in field.points]
        tables = c.table(F64, field.size), c.table(I64, grid), c.table(F64, heights)
        c.call(rays)
        with f.loop(self.e.sizes["ranges"], some=True) as loop:
            ray = c.at("rays").at(loop.i * (RAY_NUMBERS * l.bytes), I8)
            c.call("ray", ray)
            with f.loop(l.lanes, some=True) as lane:
                given = [ray.at(k * l.bytes, I8).at(lane.i, F64).load() for k in range(RAY_NUMBERS)]
                way = c.at("ranges").at(loop.i * l.bytes, I8).at(lane.i, F64)
                way.store(f.call(F64, name, *tables, *given))


def _chosen(flag: Scalar, x: Vector, y: Vector) -> list[Scalar]:
    return [where(flag > 0.5, a, b) for a, b in zip(x, y)]
