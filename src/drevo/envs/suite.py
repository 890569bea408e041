"""Tasks of dm_control's suite, from its own files: starts, observations, rewards and ends over scalars.

Tassa et al. 2020, "dm_control: software and tasks for continuous control".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import pi
from xml.etree import ElementTree

from ..contact.pairs import ContactCandidate, contact_candidates
from ..mechanics.algorithms.kinematics import placed_bodies
from ..mechanics.scalar import Scalar, Vector, dot, sqrt, where
from ..mechanics.spatial import Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..mechanics.tree_indices import ancestors
from ..model.description import Model
from ..robots.loading import load
from .features import Sight
from .ours import installed_file
from .randomise import Randomise
from .simulation import actuator_efforts, mujoco_state
from .tasks import Chance, Moment, Outcome, Task, TaskNumbers

Xml = ElementTree.Element


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
        held = {name: x for name, x in self.weighs.items() if root in self._carriers(name)}
        total = sum(x.mass for x in held.values())
        for name, x in held.items():
            rate = rate + self.speed(name, Vec(*x.com)) * (x.mass / total)
        return rate

    def _carriers(self, link: str) -> set[int]:
        return set(ancestors(self.tree.parents, self.tree.frames[link].body))

    def touch(self, link: str, centre: Vec, radii: Vec) -> Scalar:
        """The sum of normal forces, N, on an ellipsoidal zone of a link: those whose way out of the link meets it.

        Of the last evaluation, as MuJoCo's sensors are.
        """
        poses, forces = placed_bodies(self.tree, self.moment.seen.positions), self.moment.seen.forces
        total: Scalar = 0.0
        frame = self.tree.frames[link]
        R, p = poses[frame.body].compose(frame.R, frame.p)
        for k, x in enumerate(self.body.places):
            if link not in (ends := [geom.link for geom in x.geoms]):
                continue
            place = x.touch(poses)
            normal, force = place.frame[0], Vec(*forces[3 * k : 3 * k + 3])
            out = normal if ends[0] == link else -normal
            start, way = R.T @ (place.point - p) - centre, R.T @ out
            a, b = (Vec(*(s / r for s, r in zip(side, radii))) for side in (start, way))
            along, outside, across = a.dot(b), a.dot(a) - 1.0, b.dot(b)
            ahead = where(along * along - across * outside < 0.0, 0.0, where(along > 0.0, 0.0, 1.0))
            total = total + where(outside > 0.0, ahead, 1.0) * force.dot(normal)
        return total


class SuiteBody:
    """The robot of a task: its file, with what actuators of fixed tendons pull at."""

    def __init__(self, file: str, edit: Callable[[Xml], None] | None) -> None:
        root = ElementTree.parse(installed_file("dm_control", f"suite/{file}.xml")).getroot()
        for include in root.findall("include"):  # looks alone
            root.remove(include)
        if edit:
            edit(root)
        fixed = {x.get("name"): x for x in root.iterfind("tendon/fixed")}
        self.pulls: dict[str, dict[str, float]] = {}
        for actuator in root.iterfind("actuator/*"):
            if tendon := actuator.attrib.pop("tendon", None):
                shares = {x.attrib["joint"]: float(x.attrib["coef"]) for x in fixed[tendon].iterfind("joint")}
                actuator.set("joint", next(iter(shares)))
                self.pulls[actuator.attrib["name"]] = shares
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what other quantities than a step leave out
            self.robot = load(ElementTree.tostring(root, encoding="unicode"))
        self.model: Model = self.robot.model
        self.tree: Tree = build_tree(self.model)
        self.places: tuple[ContactCandidate, ...] = contact_candidates(self.model, searched=True)
        self.at = {joint.name: (q, v) for joint, q, v in self.model.slices()}

    def drive(self, action: Vector, q: Vector, v: Vector, drawn: Vector = ()) -> list[Scalar]:
        """The efforts of the actuators."""
        return actuator_efforts(self.model, action, q, v, self.pulls)

    def apart(self, q: Vector) -> Scalar:
        """1.0 where nothing touches, of pairs whose distance has a closed form, else 0.0."""
        poses, clear = placed_bodies(self.tree, q), 1.0
        for x in self.places:
            first = x.place == 0 or x.geoms[0].kind == "plane"  # the second place of two capsules is no nearer
            if first and not x.searched:
                clear = where(x.touch(poses).dist < x.interaction.margin, 0.0, clear)
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
    drive: Callable[[Vector, Vector], Sequence[Scalar]] | None = None  # efforts of action and what is drawn
    ended: Callable[[SuiteState], Scalar] = lambda state: 0.0
    settling: int = 0  # steps without action after a start
    limit: int = 1000  # actions of an episode

    def plain(self) -> Task:
        """The task over the robot of its file."""
        body = suite_body(self.file, self.edit)

        def judge(m: Moment, _: TaskNumbers) -> Outcome:
            state = SuiteState(body, m)
            return Outcome(self.reward(state), self.ended(state), {})

        def aim(chance: Chance, q: list[Scalar], v: list[Scalar]) -> Scalar:
            taken = self.start(body, chance, q, v)
            return 1.0 if taken is None else taken

        pull = self.drive
        drive = (lambda action, q, v, drawn: pull(action, drawn)) if pull else body.drive
        return Task(
            lambda: body.robot, round(self.seconds / body.model.stepping.dt), self.limit,
            lambda m: self.observe(SuiteState(body, m)), judge, {}, aim=aim, mujoco=False, drive=drive,
            random=Randomise(commands=tuple((str(k), x) for k, x in enumerate(self.drawn))),
            settling=self.settling,
        )  # fmt: skip


@cache
def suite_body(file: str, edit: Callable[[Xml], None] | None) -> SuiteBody:
    """The robot of a file, as a task changes it."""
    return SuiteBody(file, edit)


def of_length_one(x: Vector) -> list[Scalar]:
    """A vector of length one."""
    over = 1.0 / sqrt(dot(x, x))
    return [over * y for y in x]
