"""A walk simulated: phases are changes of structure, landings are impacts, reactions come of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...codegen.emit.picture import Figure, Pictured
from ...codegen.emit.plot import plot
from ...constrained import acting_in
from ...errors import InputError, NumericsError, one_of, shown
from ...io.given import Array, callable_given, number
from ...io.reprs import result
from ...robot.face import Robot
from .control import computed_torque, leaning
from .feet import BASE, Corners, Leg, margin
from .friction import most_friction
from .gait import DYNAMIC, Gait
from .ground import Support, total_wrench, zero_moment_point
from .limits import refuse_limits
from .phase import GaitPlan, Phase
from .plan import plan
from .plots import walk_figure
from .stepper import Stepper

GAIN, STIFFEST = 20.0, 1e6  # 1/s
SERIES = ("t", "q", "v", "tau", "reactions", "zmp", "margin", "slip")
TOUCHED, SECANTS = 1e-13, 12  # m: how far from the ground a sole that touches it may be
TOGETHER = 1e-5  # m: feet that are this near to the ground when one touches it land with it
LOADED = 1.0  # N: a foot that is just lifted or put down presses less
LATE = 0.1  # s after its time: a foot that has not landed by then does not

Record = tuple[float, Array, Array]  # t since the phase began, q, v


@result
class Landing:
    """A foot struck the ground: when, with what speed, m/s, and the impulses (feet, 6) N s, N m s of all feet."""

    t: float
    foot: int
    speed: float
    impulses: Array


@result
class Stage:
    """A phase as it went: (n,) t, (n, nq) q, (n, nv) v, tau; reactions (n, feet, 6) about the middles.

    zmp (n, 2) and margin (n,), its distance to the edge of the polygon of support, m, positive inside; slip (n,):
    how far a corner of a standing sole is from where it was put, m.
    """

    stands: tuple[int, ...]
    support: Support
    t: Array
    q: Array
    v: Array
    tau: Array
    reactions: Array
    zmp: Array
    margin: Array
    slip: Array


@result
class Walk(Pictured):
    """What a walk gave: stages one after the other, landings between them."""

    robot: Robot
    plan: GaitPlan
    stages: tuple[Stage, ...]
    landings: tuple[Landing, ...]

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The legs, in the order of the feet in `series`."""
        return self.plan.legs

    def figure(self) -> Figure:
        """Normal forces, the zero-moment point in its polygon of support, drives of each leg, footprints."""
        return walk_figure(self, f"{self.robot.name}: {len(self.landings)} landings")

    def series(self, name: str) -> Array:
        """A field of all stages, one after the other; reactions are (n, legs, 6), zero of a foot in the air."""
        if one_of("a walk's series", name, SERIES, InputError) != "reactions":
            return np.concatenate([getattr(s, name) for s in self.stages])
        out = []
        for s in self.stages:
            all_feet = np.zeros((len(s.t), len(self.legs), 6))
            all_feet[:, list(s.stands)] = s.reactions
            out.append(all_feet)
        return np.concatenate(out)

    @property
    def margin(self) -> float:
        """The least distance of the zero-moment point from the edge of the polygon of support, m."""
        return float(min(s.margin.min() for s in self.stages if s.stands))

    @property
    def balance(self) -> float:
        """The same for the ground below the centre of mass: positive of a static walk only."""
        stages = [s for s in self.stages if s.stands]
        return float(min(margin(s.support.polygon, self.robot.center_of_mass(s.q)[:, :2]).min() for s in stages))

    @property
    def slip(self) -> float:
        """The farthest that a corner of a standing sole was from where it was put, m."""
        return float(max(s.slip.max(initial=0.0) for s in self.stages))

    @property
    def least_push(self) -> float:
        """The least normal force of a standing foot, N."""
        return float(min(s.reactions[..., 2].min() for s in self.stages if s.stands))

    @cached_property
    def friction(self) -> float:
        """The least coefficient of friction with which forces at the corners of the soles make the reactions."""
        return max(
            most_friction(
                s.reactions[loaded, i], leg.sole(self.robot.pose(s.q[loaded], leg.link))[..., :2] - at[:2]
            )
            for s in self.stages
            for i, (leg, at) in enumerate(zip(s.support.legs, s.support.middles))
            if (loaded := s.reactions[:, i, 2] > LOADED).any()
        )

    @property
    def strongest(self) -> tuple[str, float]:
        """The joint whose drive does most, and how much, N m."""
        most = np.abs(self.series("tau")).max(axis=0)
        k = int(np.argmax(most))
        return next(j.name for j, _, sv in self.robot.model.slices() if sv.start <= k < sv.stop), float(most[k])

    def refuse(self) -> None:
        """NumericsError where a foot pulled, the zero-moment point left the soles or a joint its limits: which,
        when, how much."""
        for s in self.stages:
            s.support.refuse(s.t, s.reactions, "the walk")
            refuse_limits(self.robot, s.t, "the walk", s.q, s.v, s.tau)


def walk(
    robot: Robot,
    steps: int = 6,
    gait: Gait | str = DYNAMIC,
    feet: Mapping[str, Corners] | None = None,
    gain: float = GAIN,
    progress: Callable[[float], None] | None = None,
) -> Walk:
    """A robot with a free base walks forward so many steps, from standing to standing, and is checked.

    gait: a Gait, or the name of one, "dynamic" or "static". gain: 1/s. The plan is `plan.plan`'s, the drives
    follow it by `control.computed_torque`. Contacts of six rows come and go: a foot in the air lands where its
    sole meets z = 0. Raises InputError, and NumericsError where the plan cannot be, where a foot does not land or
    pulls, where the robot would tip or a joint leave its limits.
    """
    _require(gain, progress)
    made = plan(robot, steps, gait, feet)
    done = follow(made, gain, progress)
    done.refuse()
    return done


def follow(made: GaitPlan, gain: float = GAIN, progress: Callable[[float], None] | None = None) -> Walk:
    """The phases of a plan, simulated from rest; unchecked: `Walk.refuse` checks. gain: 1/s."""
    _require(gain, progress)
    if not isinstance(made, GaitPlan):
        raise InputError(f"follow takes a plan, as drevo.walking.plan and hop make them, not {shown(made)}")
    march = _WalkSimulation(made, made.phases[0].q[0], np.zeros(made.robot.nv))
    for k, phase in enumerate(made.phases):
        after = made.phases[k + 1].stands if k + 1 < len(made.phases) else phase.stands
        march.phase(phase, gain, [i for i in after if i not in phase.stands])
        if progress:
            progress((k + 1) / len(made.phases))
    return Walk(made.robot, made, tuple(march.stages), tuple(march.landings))


def _require(gain: float, progress: Callable[[float], None] | None) -> None:
    number("gain", gain, f"a positive number up to {STIFFEST:g} 1/s", lambda x: 0.0 < x <= STIFFEST)
    if progress is not None:
        callable_given("progress", progress, "(done), done from 0 to 1")


@dataclass
class _WalkSimulation:
    """A walk on its way: the state, the time, where the feet were put (poses of their links)."""

    plan: GaitPlan
    q: Array
    v: Array
    t: float = 0.0
    put: dict[int, Array] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    landings: list[Landing] = field(default_factory=list)

    def phase(self, phase: Phase, gain: float, landing: Sequence[int]) -> None:
        """One phase to its end: its time is over, or a foot lands."""
        robot, legs = self.plan.robot, self.plan.legs
        self.put = {i: self.put.get(i, robot.pose(self.q, legs[i].link)) for i in phase.stands}
        standing = tuple(legs[i] for i in phase.stands)
        support = Support.of(robot, standing, self.q)
        law = computed_torque(robot, support, phase, gain)
        if phase.leans:
            law = leaning(robot, legs, support, phase, gain)
        stepper = Stepper(robot, standing, np.array([self.put[i] for i in phase.stands]).reshape(-1, 4, 4), law)
        records = [(0.0, self.q, self.v)]
        landed = self._steps(stepper, phase, landing, records)
        t, q, v = (np.array(x) for x in zip(*records))
        self.stages.append(_stage(phase.stands, support, stepper, t, q, v, self.t))
        self.t, self.q, self.v = self.t + float(t[-1]), q[-1], v[-1]
        if landed:
            self._land(phase.stands, landed)

    def _steps(self, stepper: Stepper, phase: Phase, landing: Sequence[int], records: list[Record]) -> list[int]:
        """Steps to the end of a phase; the feet that landed."""
        h = phase.tick
        for _ in range(len(phase.step) + (round(LATE / h) if landing else 0)):
            before = records[-1]
            records.append((before[0] + h, *stepper.step(*before, h)))
            if landing and self._height(landing, records[-1]) <= 0.0:
                records[-1] = self._touch(stepper, landing, before, records[-1])
                return [i for i in landing if self._height([i], records[-1]) <= TOGETHER]
        if landing:
            raise NumericsError(
                f"foot {self.plan.legs[landing[0]].link!r} has not touched the ground {LATE:g} s after its time, "
                f"t = {self.t + records[-1][0]:.4g} s: it follows its plan too badly; raise the gain or the "
                "speed of landing"
            )
        return []

    def _touch(self, stepper: Stepper, landing: Sequence[int], before: Record, after: Record) -> Record:
        """When the lowest corner of a sole meets the ground: secants, each with a step of its own."""
        ends = [(before[0], self._height(landing, before)), (after[0], self._height(landing, after))]
        for _ in range(SECANTS):
            (t0, z0), (t1, z1) = ends[-2:]
            if abs(z1) <= TOUCHED:
                break
            t = t1 - z1 * (t1 - t0) / (z1 - z0)
            after = (t, *stepper.step(*before, t - before[0]))
            ends.append((t, self._height(landing, after)))
        return after

    def _height(self, feet: Sequence[int], record: Record) -> float:
        """Of the lowest corner of their soles."""
        legs = [self.plan.legs[i] for i in feet]
        return float(min(leg.sole(self.plan.robot.pose(record[1], leg.link))[:, 2].min() for leg in legs))

    def _land(self, stands: tuple[int, ...], landed: Sequence[int]) -> None:
        """Feet strike the ground and stay: velocities are projected by M."""
        robot, legs = self.plan.robot, self.plan.legs
        now = sorted((*stands, *landed))
        struck = robot.impact(self.q, self.v, contacts=[legs[i].held for i in now])
        impulses = np.zeros((len(legs), 6))
        impulses[now] = struck.impulses.reshape(-1, 6)
        for i in landed:
            self.put[i] = robot.pose(self.q, legs[i].link)
            speed = -float(robot.velocity(self.q, self.v, legs[i].link)[2])
            self.landings.append(Landing(self.t, i, speed, impulses))
        self.v = struck.v


def _stage(
    stands: tuple[int, ...], support: Support, stepper: Stepper, t: Array, q: Array, v: Array, start: float
) -> Stage:
    """Drives and reactions at every record, by the equations that moved the robot."""
    robot = stepper.robot
    tau = stepper.law(t, q, v)
    reactions = stepper.motion(tau, q, v).reactions.reshape(len(q), -1, 6)
    tau = tau - acting_in(robot, q, v)  # what dampers and springs do the drives need not, or must undo
    tau[:, BASE] = 0.0
    zmp, inside, slip = np.full((len(q), 2), np.nan), np.full(len(q), np.nan), np.zeros(len(q))
    if stands:
        zmp, inside = zero_moment_point(total_wrench(reactions, support.middles)), support.margin(reactions)
        moved = [
            np.linalg.norm(leg.sole(robot.pose(q, leg.link)) - leg.sole(put), axis=-1).max(axis=-1)
            for leg, put in zip(stepper.legs, stepper.put)
        ]
        slip = np.max(moved, axis=0)
    return Stage(stands, support, start + t, q, v, tau, reactions, zmp, inside, slip)


def draw(walk: Walk, title: str) -> str:
    """SVG of a walk under a title: `Walk.figure`. Raises InputError."""
    if not isinstance(walk, Walk) or not isinstance(title, str):
        raise InputError(f"draw takes a walk and a title, not {shown(walk)} and {shown(title)}")
    f = walk_figure(walk, title)
    return plot(f.title, f.panels)
