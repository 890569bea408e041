"""A task whose functions have been called once: their graphs are what an episode computes and is keyed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..compiler.tracer import TracedFunction, Tracer
from ..contact.signals import sensors_named
from ..mechanics.algorithms.actuators import activated, actuation, next_activations
from ..mechanics.algorithms.sensors import reading_size
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.contact import Geom
from ..model.description import Model
from .features import Sight
from .randomise import Randomise
from .simulation import TaskRobot
from .tasks import Chance, Look, Moment, Outcome, Rangefinders, Start, Task, TaskNumbers

MOMENT_NAMES = ("q", "v", "before", "action")  # what every moment has
RAY_NUMBERS = 7  # of a ray: start, way, how far it goes
COMMANDS = "commands"  # input of a beginning that looks at them
SEEN_PREFIX, EARLIER, EVEN_PREFIX, LOG_PREFIX = (
    "seen ",
    "seen_before ",
    "even ",
    "log ",
)  # inputs that are made as they are asked for


@dataclass(frozen=True)
class TracedTask:
    """Parts of a task that an episode needs, each function as its trace. draws: even and normal random numbers."""

    limit: int
    skip: int
    looks: tuple[str, ...]
    observation: TracedFunction
    outcome: TracedFunction
    infos: tuple[str, ...]
    beginning: TracedFunction
    draws: tuple[int, int]
    drive: TracedFunction | None = None
    random: Randomise = field(default_factory=Randomise)
    engaged: tuple[float, float] = (0.0, 0.0)
    placed: TracedFunction | None = None
    sensors: tuple[str, ...] = ()
    ranges: tuple[Geom, TracedFunction, TracedFunction] | None = None
    rise: float | None = None

    def driven(
        self, model: Model, action: Vector, act: Vector, q: Vector, v: Vector, *commands: Vector
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Efforts of the task, or of the actuators of the model, and the activations of these after a step."""
        if self.drive:
            return list(self.drive(action, q, v, *commands)[0]), []
        found = actuation(model, q, v, action, act, model.stepping.dt)
        return found.efforts, next_activations(model, act, found.rates_over_step, model.stepping.dt)

    def begin(self, chance: Chance) -> tuple[Start, Scalar]:
        """The state where an episode begins, and whether the task takes it, 1.0 or 0.0."""
        given = []
        for name in (port.name for port in self.beginning.program.inputs):
            kind, _, k = name.partition(" ")
            draw = chance.even if kind == EVEN_PREFIX.strip() else chance.log
            given.append(chance.commands() if name == COMMANDS else [draw(int(k))])
        q, v, (taken,) = self.beginning(*given)
        return (list(q), list(v)), taken

    def observe(self, m: Moment) -> Sequence[Scalar]:
        """The observation of a moment."""
        return _at(self.observation, m)[0]

    def judge(self, m: Moment) -> Outcome:
        """The reward, whether the episode has ended, and the infos."""
        reward, terminated, infos = _at(self.outcome, m)
        return Outcome(reward[0], terminated[0], dict(zip(self.infos, infos)))


def _at(trace: TracedFunction, m: Moment) -> list[Sequence[Scalar]]:
    given: list[Vector] = [m.q, m.v, m.before, m.action]
    for port in trace.program.inputs[len(MOMENT_NAMES) :]:
        seen, part = port.name.split()
        given.append(getattr(m.seen if seen == SEEN_PREFIX.strip() else m.seen_before, part))
    return trace(*given)


def traced_task(task: Task, body: TaskRobot, numbers: TaskNumbers) -> TracedTask:
    """A task as its functions are now."""
    model = body.model
    sizes = {"efforts": model.nv, "constraint": model.nv, "earlier": model.nv, "positions": model.nq}
    sizes |= {"elapsed": 1, "act": len(activated(model)), "velocities": model.nv, "accelerations": model.nv}
    sizes |= {"previous": body.controls.shape[1], "commands": len(task.random.commands)}
    places = 0 if task.mujoco else sum(slot.most for slot in body.problem.slots)
    sizes |= {"forces": 3 * places, "touches": 6 * places}
    sizes |= {"sensordata": sum(map(reading_size, sensors_named(model, task.sensors)))}
    sizes |= Sight(model, build_tree(model), task.looks, lambda _: []).sizes if task.looks else {}
    ranges = _traced_ranges(task.ranges, model.nq) if task.ranges else None
    sizes |= {"ranges": len(ranges[1].program.outputs[0].edges) // RAY_NUMBERS} if ranges else {}
    t, m = _moment("observe", body, sizes)
    t.output("observation", list(task.observe(m)))
    observation = TracedFunction(t.program())
    t, m = _moment("judge", body, sizes)
    found = task.judge(m, numbers)
    for name, values in (("reward", [found.reward]), ("terminated", [found.terminated])):
        t.output(name, values)
    t.output("infos", list(found.infos.values()))
    outcome, begun = TracedFunction(t.program()), Tracer("begin")
    chance = Chance(
        lambda k: begun.input(f"{EVEN_PREFIX}{k}", 1)[0], lambda k: begun.input(f"{LOG_PREFIX}{k}", 1)[0],
        lambda: begun.input(COMMANDS, len(task.random.commands)),
    )  # fmt: skip
    (q, v), taken = task.begin(chance, body.initial.tolist(), model.nv, numbers)
    for name, values in (("q", q), ("v", v), ("taken", [taken])):
        begun.output(name, values)
    return TracedTask(
        task.limit, task.skip, task.looks, observation, outcome, tuple(found.infos),
        TracedFunction(begun.program()), (chance.evens, chance.normals), _traced_drive(task, body), task.random,
        task.engaged, _traced_places(task), task.sensors, ranges, task.rise,
    )  # fmt: skip


def _traced_drive(task: Task, body: TaskRobot) -> TracedFunction | None:
    if task.drive is None:
        return None
    t, model = Tracer("drive"), body.model
    sizes = {"action": body.controls.shape[1], "q": model.nq, "v": model.nv, "commands": len(task.random.commands)}
    t.output("efforts", list(task.drive(*(t.input(name, n) for name, n in sizes.items() if n))))
    return TracedFunction(t.program())


def _traced_places(task: Task) -> TracedFunction | None:
    if task.placed is None:
        return None
    t = Tracer("placed")
    t.output("numbers", list(task.placed(t.input(COMMANDS, len(task.random.commands)))))
    return TracedFunction(t.program())


def _traced_ranges(ranges: Rangefinders, nq: int) -> tuple[Geom, TracedFunction, TracedFunction]:
    """The field, rays of q as RAY_NUMBERS each: start, way and 0, and how far one goes to solids."""
    t, near = Tracer("rays"), Tracer("near")
    t.output("rays", [x for start, way in ranges.rays(t.input("q", nq)) for x in (*start, *way, 0.0)])
    q, ray = near.input("q", nq), near.input("ray", RAY_NUMBERS)
    near.output("near", [ranges.near(q, Vec(*ray[:3]), Vec(*ray[3:6]))])
    return ranges.field, TracedFunction(t.program()), TracedFunction(near.program())


def _moment(name: str, body: TaskRobot, sizes: Mapping[str, int]) -> tuple[Tracer, Moment]:
    """A moment of symbols; parts of what is seen are inputs from when they are asked for."""
    t, model = Tracer(name), body.model
    sized = zip(MOMENT_NAMES, (model.nq, model.nv, model.nq, body.controls.shape[1]))
    q, v, before, action = (t.input(*x) for x in sized)

    def look(mark: str) -> Look:
        return Look(lambda part: t.input(mark + part, sizes[part]))

    return t, Moment(q, v, before, action, body.seconds, look(SEEN_PREFIX), look(EARLIER))
