"""Tasks of dm_control's suite, from its own files: starts, observations, rewards and ends over scalars.

Tassa et al. 2020, "dm_control: software and tasks for continuous control".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import pi
from pathlib import Path
from xml.etree import ElementTree

from ..contact.laws.soft.problem import soft_problem
from ..contact.signals import reading_slices
from ..mechanics.algorithms.actuators import activated, actuation
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.algorithms.kinematics import Pose, placed_bodies
from ..mechanics.algorithms.sensors import ray_of, ray_to_solids
from ..mechanics.scalar import Scalar, Vector, cos, dot, sin, sqrt, where
from ..mechanics.spatial import Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..mechanics.tree_indices import ancestors
from ..model.description import Model
from ..robot.face import Robot
from .features import Sight
from .ours import installed_file, quiet_model
from .randomise import Randomise
from .simulation import mujoco_state
from .tasks import Chance, Moment, Outcome, Rangefinders, Task, TaskNumbers

Xml = ElementTree.Element
LATE_SENSORS = ("touch", "force", "torque", "accelerometer")  # of the last evaluation, not of the state after


class SuiteState(Sight):
    """The state after a step as the tasks see it: frames of bodies, velocities of points, the drawn numbers."""

    def __init__(self, body: SuiteBody, m: Moment) -> None:
        state = {"Q": m.q, "V": m.v}
        super().__init__(body.model, body.tree, (body.model.links[1].name,), state.__getitem__)
        self.body, self.moment, self.control = body, m, m.action
        self.q, self.v = mujoco_state(body.model, m.q, m.v)

    @property
    def drawn(self) -> Vector:
        """The numbers that the episode drew beside the state."""
        return self.moment.seen.commands

    def turn(self, link: str) -> Mat:
        """World from link."""
        return self.at[link].R

    def place(self, link: str, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Vec:
        """A point of a link, in the world."""
        R, p = self.at[link]
        return p + R @ Vec(x, y, z)

    def spin(self, link: str) -> Vec:
        """The angular velocity of a link, in its body's axes, which are the link's own here."""
        return self.moving[self.tree.frames[link].body].w

    def speed(self, link: str, point: Vec) -> Vec:
        """The velocity of a point of a link, in the world."""
        frame = self.tree.frames[link]
        motion = self.moving[frame.body]
        return self.poses[frame.body].R @ (motion.v + motion.w.cross(frame.p + frame.R @ point))

    def drift(self, link: str) -> Vec:
        """The velocity of the centre of mass of a link and all that hangs on it."""
        root, rate = self.tree.frames[link].body, Vec(0.0, 0.0, 0.0)
        held = {name: x for name, x in self.weighs.items() if root in self.carriers(name)}
        total = sum(x.mass for x in held.values())
        for name, x in held.items():
            rate = rate + self.speed(name, Vec(*x.com)) * (x.mass / total)
        return rate

    def carriers(self, link: str) -> set[int]:
        """The body of a link, and those that carry it."""
        return set(ancestors(self.tree.parents, self.tree.frames[link].body))

    def reading(self, name: str) -> Vector:
        """The reading of a sensor at the last evaluation."""
        readings: Vector = self.moment.seen.sensordata[self.body.readings[name]]
        return readings

    def touch(self, name: str) -> Scalar:
        """The reading of a sensor of touch, N."""
        return self.reading(name)[0]


class SuiteBody:
    """The robot of a task, out of its file."""

    def __init__(
        self, file: str, edit: Callable[[Xml], None] | None, moved: str, shape: Callable[[Model], Model] | None
    ) -> None:
        path = Path(installed_file("dm_control", f"suite/{file}.xml"))
        root = ElementTree.parse(path).getroot()
        for include in root.findall("include"):  # looks alone
            root.remove(include)
        if edit:
            edit(root)
        folders = [path.parent, *(path.parent / x.attrib.pop("meshdir", "") for x in root.iter("compiler"))]
        model = quiet_model(ElementTree.tostring(root, encoding="unicode"), roots=folders[-1:])
        model = shape(model) if shape else model
        self.model: Model = replace(model, links=tuple(replace(x, mocap=x.name == moved) for x in model.links))
        self.robot = Robot(self.model)
        self.tree: Tree = build_tree(self.model)
        problem = soft_problem(self.model, None, self.model.stepping.dt, "euler")
        self.slots = problem.slots
        self.sensors = tuple(x.name for x in self.model.sensors if x.kind in LATE_SENSORS)
        self.readings = reading_slices(self.model, self.sensors)
        self.at = {joint.name: (q, v) for joint, q, v in self.model.slices()}

    def ranges(self) -> Rangefinders | None:
        """Rays of rangefinders, which are on the trunk, at what hangs on it and at planes."""
        field = next((x for x in self.model.geoms if x.kind == "hfield"), None)
        if field is None:
            return None
        eyes = [x for x in self.model.sensors if x.kind == "rangefinder"]
        solids = [x for x in self.model.geoms if x.link != eyes[0].link and x is not field]

        def at(q: Vector) -> Kinematics:
            return Kinematics(self.tree, q, [0.0] * self.model.nv)

        return Rangefinders(
            field, lambda q: [ray_of(at(q), x) for x in eyes], lambda q, *ray: ray_to_solids(at(q), solids, *ray)
        )

    def drive(self, action: Vector, q: Vector, v: Vector, drawn: Vector = ()) -> list[Scalar]:
        """The efforts of the actuators."""
        return actuation(self.model, q, v, action).efforts

    def apart(self, q: Vector, moved: Mapping[int | str, Pose] | None = None) -> Scalar:
        """1.0 where nothing touches, of pairs whose distance has a closed form, else 0.0; of others `rise` sees to
        it. moved: their poses."""
        poses, clear = {**placed_bodies(self.tree, q), **(moved or {})}, 1.0
        for x in self.slots:
            kinds = [solid.geom.kind for solid in x.held or ()]
            second = x.place and kinds == ["capsule", "capsule"]  # it is no nearer than the first
            if not (second or x.solids):
                clear = where(x.touch(poses).dist < x.soft.margin, 0.0, clear)
        return clear

    def scatter(self, chance: Chance, q: list[Scalar]) -> None:
        """Draws limited joints within their limits, hinges without any all around, and quaternions."""
        for joint, at, _ in self.model.slices():
            limit = joint.limit
            if joint.turns:
                q[at.stop - 4 : at.stop] = of_length_one([chance.uniform(0.0, 1.0) for _ in range(4)])
            elif limit and limit.lower is not None and limit.upper is not None:
                q[at.start] = chance.uniform(limit.lower, limit.upper)
            elif joint.kind == "revolute":
                q[at.start] = chance.uniform(-pi, pi)


SuiteStart = Callable[[SuiteBody, Chance, list[Scalar], list[Scalar]], Scalar | None]


@dataclass(frozen=True)
class SuiteTask:
    """A task of the suite. file: its domain. seconds: of an action. start: changes a first state, and says whether
    it is taken. drawn: least and greatest numbers of what an episode draws beside the state."""

    file: str
    seconds: float
    observe: Callable[[SuiteState], Sequence[Scalar]]
    reward: Callable[[SuiteState], Scalar]
    start: SuiteStart
    drawn: tuple[tuple[float, float], ...] = ()
    edit: Callable[[Xml], None] | None = None
    drive: Callable[..., Sequence[Scalar]] | None = None  # efforts of action, q, v and what is drawn
    ended: Callable[[SuiteState], Scalar] = lambda state: 0.0
    shape: Callable[[Model], Model] | None = None  # changes the model of the file
    rise: float | None = None  # m, steps by which a start is raised until nothing presses; 0: it is drawn again
    settling: int = 0  # steps without action after a start
    limit: int = 1000  # actions of an episode
    engaged: float = 0.0  # greatest activation where an episode begins, to either side
    moved: str = ""  # a link that stands at x, z and a turn about y, which are drawn first

    def plain(self) -> Task:
        """The task over the robot of its file."""
        body = suite_body(self.file, self.edit, self.moved, self.shape)

        def judge(m: Moment, _: TaskNumbers) -> Outcome:
            state = SuiteState(body, m)
            return Outcome(self.reward(state), self.ended(state), {})

        def aim(chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
            taken = self.start(body, chance, q, v)
            return 1.0 if taken is None else taken

        return Task(
            lambda: body.robot, round(self.seconds / body.model.stepping.dt), self.limit,
            lambda m: self.observe(SuiteState(body, m)), judge, {}, aim=aim, mujoco=False,
            drive=self.drive or (None if activated(body.model) else body.drive), settling=self.settling,
            engaged=(-self.engaged, self.engaged),
            placed=_standing if self.moved else None,
            sensors=body.sensors, ranges=body.ranges(), rise=self.rise,
            random=Randomise(
                ((f"{self.moved}.pose", (0.0, 0.0), False),) if self.moved else (),
                tuple((str(k), x) for k, x in enumerate(self.drawn)),
            ),
        )  # fmt: skip


@cache
def suite_body(
    file: str, edit: Callable[[Xml], None] | None, moved: str, shape: Callable[[Model], Model] | None
) -> SuiteBody:
    """The robot of a file, as a task changes it."""
    return SuiteBody(file, edit, moved, shape)


def _standing(drawn: Vector) -> list[Scalar]:
    """Place and quaternion w x y z."""
    x, z, turn = drawn[:3]
    return [x, 0.0, z, cos(0.5 * turn), 0.0, sin(0.5 * turn), 0.0]


def norm_of(x: Vector) -> Scalar:
    """The Euclidean norm of a vector."""
    return sqrt(dot(x, x))


def of_length_one(x: Vector) -> list[Scalar]:
    """A vector of length one."""
    over = 1.0 / norm_of(x)
    return [over * y for y in x]


def normals(chance: Chance, count: int, deviation: float = 1.0) -> list[Scalar]:
    """Numbers of the normal distribution."""
    return [deviation * x for _ in range(0, count, 2) for x in chance.normal()][:count]


def hang(body: Xml | None, name: str, joint: dict[str, str], geoms: Sequence[dict[str, str]], **more: str) -> Xml:
    """A body of a file that hangs on another one by a joint; more: its attributes."""
    assert body is not None
    child = ElementTree.SubElement(body, "body", {"name": name} | more)
    ElementTree.SubElement(child, "joint", joint)
    for geom in geoms:
        ElementTree.SubElement(child, "geom", geom)
    return child
