"""A walk simulated: soles that push, slip and lift under a law of contact, drives that follow the plan.

Plots of a walk: reactions, zero-moment point, drives, and the ground from above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..control.drives import Drive, DrivenRobot
from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel, plot
from ..errors import InputError, NumericsError, one_of, shown
from ..ground import FunctionGround, GridGround, function
from ..io.given import Array, callable_given, finite, number
from ..io.reprs import result
from ..mechanics.scalar import Scalar, where
from ..model.description import ContactPoint
from ..robot.compiling import compile
from ..robot.face import Robot
from .control import Follower
from .feet import Corners, Leg, hull, refuse_limits
from .gait import DYNAMIC, Gait
from .ground import total_wrench, zero_moment_point
from .phase import GaitPlan, strongest
from .plan import plan
from .sensing import OrientationObserver, OrientationSensor
from .touch import TouchFollower


class Walked(Protocol):
    """The part of a walk that is drawn."""

    @property
    def plan(self) -> GaitPlan:
        """The plan of the walk."""

    def series(self, name: str) -> Array:
        """A field over time."""


def walk_figure(walk: Walked, title: str) -> Figure:
    """Normal forces, the zero-moment point over the planned soles, drives of each leg, footprints."""
    t, N, tau, aside = (walk.series(name) for name in ("t", "reactions", "tau", "aside"))
    legs, joints = walk.plan.legs, {sv.start: j.name for j, _, sv in walk.plan.robot.model.slices()}
    names = [leg.link for leg in legs]
    along = [Curve(f"{n}, {axis}", t, N[:, i, k]) for i, n in enumerate(names) for k, axis in enumerate("xy")]
    panels = [
        Panel("normal force on the soles, N", [Curve(n, t, N[:, i, 2]) for i, n in enumerate(names)], unit="N"),
        Panel("forces along the ground, N", along, unit="N"),
        _zmp(walk, 0, "zero-moment point forward, m (shaded: the soles that stand in the plan)"),
        _zmp(walk, 1, "zero-moment point to the left, m"),
        Panel("centre of mass less the planned, m", [Curve(x, t, a) for x, a in zip("xyz", aside.T)], unit="m"),
    ]
    for leg in legs:
        curves = [Curve(joints[int(k)], t, tau[:, k]) for k in leg.joints]
        panels.append(Panel(f"drives of the leg of {leg.link}, N m, over time, s", curves, unit="N m"))
    zmp, q = walk.series("zmp"), walk.series("q")
    paths = [Curve("zero-moment point", *zmp.T), Curve("pelvis", q[:, 0], q[:, 1])]
    panels.append(
        Panel("from above: footprints of the plan, m", paths, _footprints(walk.plan), equal=True, unit="m")
    )
    return Figure(title, panels)


def _zmp(walk: Walked, axis: int, title: str) -> Panel:
    """One coordinate over time, before the extent of the planned polygon."""
    areas = []
    for phase, support, _ in walk.plan.grounded:
        low, high = support.polygon[:, axis].min(), support.polygon[:, axis].max()
        ends = phase.start, phase.start + phase.duration
        start, end = np.interp(ends, walk.series("clock"), walk.series("t"))
        areas.append([(start, low), (end, low), (end, high), (start, high)])
    curve = Curve("zero-moment point", walk.series("t"), walk.series("zmp")[:, axis])
    return Panel(title, [curve], areas, unit="m")


def _footprints(plan: GaitPlan) -> list[Array]:
    """Every place where a sole is to stand, once."""
    prints: dict[tuple[int, float, float], Array] = {}
    for phase, support, _ in plan.grounded:
        for i, middle, leg in zip(phase.stands, support.middles, support.legs):
            sole = leg.sole(plan.robot.pose(phase.q[0], leg.link))[:, :2]
            prints[i, round(middle[0], 3), round(middle[1], 3)] = hull(sole)
    return list(prints.values())


GAIN, STIFFEST = 20.0, 1e6  # 1/s
SOLE_FRICTION = 0.7
HOLD, SUBSTEPS = 0.005, 5  # s: about how long drives are held, half a tick at most; steps of the law meanwhile
REST = 1.0  # s, of standing after the plan's end
PUSHED = 0.1  # s: how long a push takes
LOW, LEANING = (
    0.75,
    0.7,
)  # of the pelvis' planned height, and the cosine of its tilt: below them the robot has fallen
WHIRL = 100.0  # rad/s, m/s: above it drives have lost the ground, and so has the robot
PATCH_FACTOR = 1.2  # of half the diagonal of a sole: the radius of a slippery patch
LOADED = 1.0  # N: a corner with less does not stand
SERIES = ("t", "q", "v", "tau", "reactions", "zmp", "aside", "residual", "clock")


@result
class Walk(Pictured):
    """A walk by the times (n,) at which its drives are set anew: q (n, nq), v and tau (n, nv), what the drives
    give; forces (n, corners, 3) N at the corners of the soles, leg by leg, world axes; aside (n, 3), the centre
    of mass less that of the plan, m; residual (n,) of the law (docs/contact.md).

    fell: when the robot fell, s; None of one that stands in the end. clock (n,): the plan's
    time, s. On a slope x points up along the ground and z
    along its normal.
    """

    plan: GaitPlan
    t: Array
    q: Array
    v: Array
    tau: Array
    forces: Array
    aside: Array
    residual: Array
    fell: float | None
    clock: Array

    @property
    def robot(self) -> Robot:
        """The robot that walked; on a slope its gravity has a part along the ground."""
        return self.plan.robot

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The legs, in the order of the feet in `series`."""
        return self.plan.legs

    def figure(self) -> Figure:
        """Normal forces, the zero-moment point over the planned soles, drives of each leg, footprints."""
        return walk_figure(self, f"{self.robot.name}: {self.plan.name}")

    def series(self, name: str) -> Array:
        """One of t, q, v, tau, aside, residual, clock; reactions (n, legs, 6) about the middles of the soles; zmp
        (n, 2), NaN where no foot stands."""
        if one_of("a walk's series", name, SERIES, InputError) == "reactions":
            return self._reactions
        return self._zmp if name == "zmp" else np.asarray(getattr(self, name))

    @cached_property
    def soles(self) -> list[tuple[Array, Array]]:
        """Corners of the sole of every leg (n, k, 3), m, and the forces there (n, k, 3), N."""
        ends = np.cumsum([len(leg.corners) for leg in self.legs])
        forces = np.split(self.forces, ends[:-1], axis=1)
        return [(leg.sole(self.robot.pose(self.q, leg.link)), x) for leg, x in zip(self.legs, forces)]

    @cached_property
    def _reactions(self) -> Array:
        turned = [np.cross(at - at.mean(axis=1, keepdims=True), force) for at, force in self.soles]
        feet = [np.concatenate([f, m], -1).sum(axis=1) for (_, f), m in zip(self.soles, turned)]
        return np.stack(feet, axis=1)

    @property
    def _zmp(self) -> Array:
        """In the height of the sole that carries most."""
        middles = np.stack([at.mean(axis=1) for at, _ in self.soles], axis=1)
        wrench = total_wrench(self._reactions, middles)
        wrench[wrench[:, 2] <= LOADED, 2] = np.nan
        most = self._reactions[..., 2].argmax(axis=1)
        return zero_moment_point(wrench, middles[np.arange(len(self.t)), most, 2])

    @property
    def slip(self) -> float:
        """The longest way that a corner went along the ground while it pressed on it, m."""
        worst = 0.0
        for at, force in self.soles:
            presses = (force[1:, :, 2] > LOADED) & (force[:-1, :, 2] > LOADED)
            way = np.zeros(at.shape[1])
            for moved, on in zip(np.linalg.norm(np.diff(at[..., :2], axis=0), axis=-1), presses):
                way = np.where(on, way + moved, 0.0)
                worst = max(worst, float(way.max()))
        return worst

    @property
    def away(self) -> float:
        """The farthest that the centre of mass was from where the plan has it, m."""
        return float(np.linalg.norm(self.aside, axis=-1).max())

    @property
    def strongest(self) -> tuple[str, float]:
        """The joint whose drive does most, and how much, N m."""
        return strongest(self.robot, self.tau)

    def refuse(self) -> None:
        """NumericsError where the robot fell or a joint left its limits: which, when, how much."""
        if self.fell is not None:
            raise NumericsError(
                f"the walk: the robot falls at t = {self.fell:.4g} s, its centre of mass up to {self.away:.3g} m "
                "beside the plan; move slower, take shorter steps, or see that friction is enough"
            )
        refuse_limits(self.robot, self.t, "the walk", self.q, self.v, self.tau)


def walk(
    robot: Robot,
    steps: int = 6,
    gait: Gait | str = DYNAMIC,
    feet: Mapping[str, Corners] | None = None,
    gain: float = GAIN,
    progress: Callable[[float], None] | None = None,
    law: str = "coulomb",
    friction: float = SOLE_FRICTION,
    push: Sequence[float] | None = None,
    patch: float | None = None,
) -> Walk:
    """A robot with a free base walks so many steps, from standing to standing, on soles that only push.

    gait: a Gait, or the name of one, "dynamic" or "static". The plan is `plan.plan`'s; gain, progress and what
    else is given are those of `follow`. Raises InputError, and NumericsError where the plan cannot be, and where
    an undisturbed robot falls or leaves its limits; `Walk.fell` tells of one that was disturbed.
    """
    done = follow(plan(robot, steps, gait, feet), gain, progress, law, friction, push, patch)
    if push is None and patch is None:
        done.refuse()
    return done


def _step(
    planned: GaitPlan, law: str, dt: float, mu: float, ground: Any, drives: Mapping[str, Drive] | None
) -> Callable[[Array, Array, Array], tuple[Array, ...]]:
    """SUBSTEPS steps of the robot on its soles over its ground, by efforts or by what drives make of them."""
    robot = touching(planned.robot, planned.legs)
    many = 1 if drives else SUBSTEPS
    step = compile(robot, "step", law=law, dt=dt, repeat=many, friction=mu, ground=ground)
    if not drives:
        return step
    driven = DrivenRobot(robot, drives)
    z = np.zeros(driven.nz)

    def by_drives(q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
        nonlocal z
        out: tuple[Array, ...] = (q, v)
        for _ in range(SUBSTEPS):
            z = driven.advanced(v, z, tau, dt)
            efforts = np.where(driven.driven, driven.efforts(z), tau)
            out = step(*out[:2], efforts)
            v = out[1]
        return out

    return by_drives


def follow(
    planned: GaitPlan,
    gain: float = GAIN,
    progress: Callable[[float], None] | None = None,
    law: str = "coulomb",
    friction: float = SOLE_FRICTION,
    push: Sequence[float] | None = None,
    patch: float | None = None,
    drives: Mapping[str, Drive] | None = None,
) -> Walk:
    """A plan carried out on ground that pushes and never pulls, from rest, until it is over or the robot has
    fallen.

    law: of contact, "coulomb" or "soft" (docs/contact.md), at the corners of the soles. gain: 1/s.
    push: N s along x and y, on the pelvis within 0.1 s, from the middle of the middle step on. patch: the
    coefficient of friction of a round place under the foothold of that step. drives: {joint: drive}, of
    `drevo.control`: their commands are those for the efforts that the law asks for, and they do what they can;
    `Walk.tau` is what was asked for.
    Raises InputError; a fall is told by `Walk.fell`.
    """
    number("gain", gain, f"a positive number up to {STIFFEST:g} 1/s", lambda x: 0.0 < x <= STIFFEST)
    if progress is not None:
        callable_given("progress", progress, "(done), done from 0 to 1")
    if not isinstance(planned, GaitPlan):
        raise InputError(f"follow takes a plan, as drevo.walking.plan and hop make them, not {shown(planned)}")
    mu = number("friction", friction, "a coefficient from 0", lambda x: 0.0 <= x < math.inf)
    force = np.zeros(3)
    if push is not None:
        force[:2] = np.array(finite("push: N s along x and y", push, (2,))) / PUSHED
    hold = planned.gait.dt / max(2, round(planned.gait.dt / HOLD))
    step = _step(planned, law, hold / SUBSTEPS, mu, terrain(planned, mu, patch), drives)
    start, follower = planned.middle.start + planned.middle.duration / 2, Follower(planned, gain, hold, REST)
    q, v = planned.phases[0].q[0], np.zeros(planned.robot.nv)
    records, fell = [], None
    for k, wish in enumerate(follower.wishes):
        tau = follower.efforts(k, q, v)
        R = planned.robot.pose(q, follower.base)[:3, :3]
        if wish.motion.R[2] @ R[2] < LEANING or q[2] < LOW * wish.motion.q[2] or np.abs(v).max() > WHIRL:
            fell = k * hold
            break
        pushed = tau.copy()
        if start <= k * hold < start + PUSHED:
            pushed[:3] = force @ R
        q1, v1, forces, residual = step(q, v, pushed)
        aside = planned.robot.center_of_mass(q) - wish.motion.com
        records.append((k * hold, q, v, tau, forces, aside, residual))
        q, v = q1, v1
        if progress and k % 50 == 0:
            progress(k / len(follower.wishes))
    t, x, u, tau, forces, aside, residual = (np.array(column) for column in zip(*records))
    return Walk(planned, t, x, u, tau, forces, aside, residual, fell, t)


def adapt(
    gait_plan: GaitPlan,
    ground: FunctionGround | GridGround,
    sensor: OrientationSensor | None = None,
    gain: float = GAIN,
    law: str = "coulomb",
    friction: float = SOLE_FRICTION,
    drives: Mapping[str, Drive] | None = None,
) -> Walk:
    """A plan for level ground carried out on other ground that the law does not know and the soles feel.

    ground: `drevo.ground.function` or `grid`. The law reads joints, normal forces at the corners of the soles, and
    the pelvis' orientation by a sensor with an observer; without a sensor it knows the state. The plan waits for
    soles that come down late, so gaits that balance at any moment, such as the static one, adapt best. drives: as
    of `follow`. Raises InputError; a fall is told by `Walk.fell`.
    """
    number("gain", gain, f"a positive number up to {STIFFEST:g} 1/s", lambda x: 0.0 < x <= STIFFEST)
    mu = number("friction", friction, "a coefficient from 0", lambda x: 0.0 <= x < math.inf)
    if not isinstance(gait_plan, GaitPlan) or not isinstance(ground, FunctionGround | GridGround):
        raise InputError(f"adapt takes a plan and a ground, not {shown(gait_plan)} and {shown(ground)}")
    hold = gait_plan.gait.dt / max(2, round(gait_plan.gait.dt / HOLD))
    step = _step(gait_plan, law, hold / SUBSTEPS, mu, ground, drives)
    follower, q, v = (
        TouchFollower(gait_plan, gain, hold, REST),
        gait_plan.phases[0].q[0],
        np.zeros(gait_plan.robot.nv),
    )
    observer = OrientationObserver(gait_plan.robot, gait_plan.legs, sensor, q, hold) if sensor else None
    surface = ground.traced() if isinstance(ground, FunctionGround) else ground
    records, fell = list[tuple[Any, ...]](), None
    loads = follower.felt.copy()
    while not follower.done and fell is None:
        seen = observer.estimate(q, v, loads) if observer else (q, v)
        clock = follower.k * hold
        tau, wished = follower.efforts_by_touch(seen[0], seen[1], loads)
        q1, v1, forces, residual = step(q, v, tau)
        aside = gait_plan.robot.center_of_mass(seen[0]) - wished
        records.append((len(records) * hold, q, v, tau, forces, aside, residual, clock))
        q, v, loads = q1, v1, forces[:, 2]
        up = q[2] - float(surface.slopes(float(q[0]), float(q[1]))[0])
        R = gait_plan.robot.pose(q, follower.base)[:3, :3]
        if not R[2, 2] > LEANING or up < LOW * gait_plan.phases[0].q[0, 2] or np.abs(v).max() > WHIRL:
            fell = len(records) * hold
    t, x, u, asked, pushes, away, left, clocks = (np.array(column) for column in zip(*records))
    return Walk(gait_plan, t, x, u, asked, pushes, away, left, fell, clocks)


def touching(robot: Robot, legs: Sequence[Leg]) -> Robot:
    """The robot that touches by the corners of its soles alone, leg by leg."""
    points = tuple(ContactPoint(leg.link, (x, y, z)) for leg in legs for x, y, z in leg.corners.tolist())
    return Robot(replace(robot.model, contacts=points, geoms=(), pairs=(), exclusions=()))


def terrain(planned: GaitPlan, mu: float, patch: float | None) -> FunctionGround | str:
    """The plane, or what a plan goes up, and slips on: a disc about the sole that the middle swing puts down."""
    gait, mid = planned.gait, planned.middle
    if patch is None and not gait.rise:
        return "plane"
    edge, friction = 1.5 * gait.length, None

    def height(x: Scalar, y: Scalar) -> Scalar:
        return where(x > edge, gait.rise, 0.0)

    if patch is not None:
        slippery = number("patch", patch, "a coefficient of friction from 0", lambda x: 0.0 <= x < math.inf)
        leg = next(leg for i, leg in enumerate(planned.legs) if i not in mid.stands)
        corners = leg.sole(planned.robot.pose(mid.q[-1], leg.link))
        x0, y0, _ = corners.mean(axis=0).tolist()
        wide = PATCH_FACTOR * float(np.linalg.norm(corners - corners.mean(axis=0), axis=-1).max())

        def friction(x: Scalar, y: Scalar) -> Scalar:
            return where((x - x0) ** 2 + (y - y0) ** 2 < wide**2, slippery, mu)

    return function(height, friction)


def draw(walk: Walk, title: str) -> str:
    """SVG of a walk under a title: `Walk.figure`. Raises InputError."""
    if not isinstance(walk, Walk) or not isinstance(title, str):
        raise InputError(f"draw takes a walk and a title, not {shown(walk)} and {shown(title)}")
    f = walk_figure(walk, title)
    return plot(f.title, f.panels)
