"""Loads over a motion: envelopes along a link, and what the drives must give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, shown
from ..io.files import saving
from ..io.given import Array, flag, number
from ..io.packages import frame
from ..io.reprs import result
from ..model.draft import expect_robot
from ..robot.face import Robot
from .external import GivenForces, Surroundings
from .masses import GivenDistribution
from .sections import COMPONENTS, SectionLoads, Spanned, section_loads
from .trajectory import Trajectory, write_csv


@result
class Envelope(Pictured):
    """Loads (n, k, 6) at n times in k sections of a link, and their extremes."""

    trajectory: Trajectory
    loads: SectionLoads

    @property
    def s(self) -> Array:
        """Sections, m along the span (k,)."""
        return self.loads.s

    @property
    def low(self) -> Array:
        """The least of each component over the motion (k, 6)."""
        return np.asarray(self.loads.total.min(axis=0))

    @property
    def high(self) -> Array:
        """The largest of each component over the motion (k, 6)."""
        return np.asarray(self.loads.total.max(axis=0))

    def cases(self) -> list[dict[str, Any]]:
        """The load cases of a strength analysis: for each component its least and largest value, with the section,
        the time and all six components there and then."""
        out = []
        for i, name in enumerate(COMPONENTS):
            for word, find in (("least", np.argmin), ("largest", np.argmax)):
                n, k = np.unravel_index(int(find(self.loads.total[..., i])), self.loads.total.shape[:2])
                six = dict(zip(COMPONENTS, self.loads.total[n, k].tolist()))
                where = {"s": float(self.s[k]), "t": float(self.trajectory.t[n])}
                out.append({"component": name, "extreme": word, **where, **six})
        return out

    def to_pandas(self) -> Any:
        """`cases` as a pandas.DataFrame; needs pandas."""
        return frame(self.cases())

    def at(self, t: float) -> Array:
        """The diagram (k, 6) of the row nearest to the time t."""
        first, last = self.trajectory.t[[0, -1]]
        rule = f"a time of the trajectory, from {first:g} to {last:g} s"
        when = number("t", t, rule, lambda x: first <= x <= last)
        return np.asarray(self.loads.total[int(np.argmin(np.abs(self.trajectory.t - when)))])

    def save(self, path: str | Path) -> None:
        """.csv for FEA: a row for each section, its place in link axes, then least and largest of each component;
        .svg: the picture."""
        with saving("an envelope", path, (".csv", ".svg")) as file:
            if file.suffix.lower() == ".svg":
                file.write_text(self.svg(), encoding="utf-8")
                return
            both = np.stack([self.low, self.high], axis=-1).reshape(len(self.s), -1)
            heads = ["s", "x", "y", "z", *(f"{c}_{w}" for c in COMPONENTS for w in ("least", "largest"))]
            write_csv(file, heads, np.column_stack([self.s, self.loads.span.points(self.s), both]))

    def save_history(self, path: str | Path) -> None:
        """.csv with a row for each time and section: t, s and the six components."""
        n, k, _ = self.loads.total.shape
        rows = np.column_stack(
            [np.repeat(self.trajectory.t, k), np.tile(self.s, n), self.loads.total.reshape(-1, 6)]
        )
        with saving("a history of loads", path, (".csv",)) as file:
            write_csv(file, ["t", "s", *COMPONENTS], rows)

    def figure(self) -> Figure:
        """Six panels over the link: the band between least and largest, and the band of what is static."""
        x = self.trajectory
        title = f"{x.robot.name}, {self.loads.link}: loads in its sections, {x.t[-1] - x.t[0]:g} s"
        return replace(self.loads.figure(), title=title)


def envelope(
    robot: Robot,
    trajectory: Trajectory,
    link: str,
    sections: int | ArrayLike = 41,
    *,
    span: Spanned = None,
    distribution: GivenDistribution = "auto",
    f_ext: GivenForces = None,
    entry: ArrayLike | None = None,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
) -> Envelope:
    """The loads of `section_loads` along a link and over a trajectory; sections: how many (and both sides of
    every joint), or where, m.

    Raises InputError where the trajectory violates contacts, constraints or loops by more than 1e-6.
    """
    _require_same(robot, trajectory)
    where = int(sections) if isinstance(sections, (int, np.integer)) else sections
    x = trajectory
    Surroundings(f_ext, contacts, constraints, actuated).require_kept(robot, x.q, x.v, x.t)
    loads = section_loads(
        robot, x.q, x.v, x.a, link, where, span=span, distribution=distribution, f_ext=f_ext, entry=entry,
        contacts=contacts, constraints=constraints, actuated=actuated, t=x.t,
    )  # fmt: skip
    return Envelope(x, loads)


@result
class Drives(Pictured):
    """Drive efforts of each rate of the robot over a motion: effort (n, nv) N m or N, its static part, power W.

    names: of the rates. limit: the largest effort that the description allows, inf where it says nothing.
    """

    trajectory: Trajectory
    names: tuple[str, ...]
    effort: Array
    static: Array
    limit: Array

    @property
    def power(self) -> Array:
        """effort times rate, W (n, nv); negative where the drive brakes."""
        return np.asarray(self.effort * self.trajectory.v)

    @property
    def peak(self) -> Array:
        """The largest |effort| (nv,)."""
        return np.asarray(np.abs(self.effort).max(axis=0))

    @property
    def rms(self) -> Array:
        """Root of the mean square of the effort over the cycle (nv,): what heats the motor."""
        return np.asarray(np.sqrt(_mean(self.trajectory.t, self.effort**2)))

    @property
    def peak_power(self) -> Array:
        """The largest |power|, W (nv,)."""
        return np.asarray(np.abs(self.power).max(axis=0))

    @property
    def rms_power(self) -> Array:
        """Root of the mean square of the power, W (nv,)."""
        return np.asarray(np.sqrt(_mean(self.trajectory.t, self.power**2)))

    @property
    def energy(self) -> Array:
        """Work given and taken back over the cycle, J (nv, 2): the integrals of power above and below zero."""
        T = self.trajectory.t[-1] - self.trajectory.t[0]
        given = [_mean(self.trajectory.t, np.clip(self.power, *side)) * T for side in ((0.0, None), (None, 0.0))]
        return np.stack(given, axis=-1)

    def to_pandas(self) -> Any:
        """`rows` as a pandas.DataFrame; needs pandas."""
        return frame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """A row for each rate: peak, rms, power, energy, the largest speed and the effort's limit."""
        speed = np.abs(self.trajectory.v).max(axis=0)
        return [
            {
                "joint": name, "peak": float(self.peak[k]), "rms": float(self.rms[k]),
                "peak_power": float(self.peak_power[k]), "rms_power": float(self.rms_power[k]),
                "given": float(self.energy[k, 0]), "taken_back": float(self.energy[k, 1]),
                "speed": float(speed[k]), "limit": None if np.isinf(self.limit[k]) else float(self.limit[k]),
            }
            for k, name in enumerate(self.names)
        ]  # fmt: skip

    def save(self, path: str | Path) -> None:
        """.csv: t, then effort and power of each rate; .svg: the picture."""
        with saving("the table of drives", path, (".csv", ".svg")) as file:
            if file.suffix.lower() == ".svg":
                file.write_text(self.svg(), encoding="utf-8")
                return
            heads = ["t", *(f"{kind}:{name}" for kind in ("effort", "power") for name in self.names)]
            write_csv(file, heads, np.column_stack([self.trajectory.t, self.effort, self.power]))

    def figure(self) -> Figure:
        """A panel for each drive: effort and its static part over time."""
        x = self.trajectory
        units = x.robot.model.units_of("N m", "N")
        panels = [
            Panel(
                name,
                (Curve("effort", x.t, self.effort[:, k]), Curve("static", x.t, self.static[:, k])),
                unit=units[k],
            )
            for k, name in enumerate(self.names)
        ]
        return Figure(f"{x.robot.name}: efforts of the drives, N m or N", panels, across=3, abscissa="t, s")


def drives(
    robot: Robot,
    trajectory: Trajectory,
    *,
    f_ext: GivenForces = None,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    passive: bool = True,
) -> Drives:
    """Efforts and powers of the drives over a trajectory; under constraints those of constrained_inverse_dynamics.

    passive: the drives work against dampers, dry friction, springs and tendons too; False: with the links alone.
    Raises InputError where the trajectory violates contacts, constraints or loops by more than 1e-6.
    """
    _require_same(robot, trajectory)
    x = trajectory
    around = Surroundings(f_ext, contacts, constraints, actuated, flag("drives: passive", passive))
    around.require_kept(robot, x.q, x.v, x.t)
    still = np.zeros_like(x.v)
    names = tuple(joint + i for joint, i in robot.model.freedoms())
    bounds = [j.limit.effort if j.limit else None for j in robot.model.moving_joints for _ in range(j.nv)]
    effort, static = around.efforts(robot, x.q, x.v, x.a, x.t), around.efforts(robot, x.q, still, still, x.t)
    return Drives(x, names, effort, static, np.array([np.inf if b is None else b for b in bounds]))


def _require_same(robot: Robot, trajectory: Trajectory) -> None:
    """InputError where the trajectory is none, or of another robot."""
    expect_robot(robot, "a cycle of loads")
    if not isinstance(trajectory, Trajectory):
        raise InputError(f"the trajectory is {shown(trajectory)}; give a drevo.loads.Trajectory")
    if trajectory.robot.model is not robot.model and trajectory.robot.model != robot.model:
        raise InputError(f"the trajectory is one of robot {trajectory.robot.name!r}, not of {robot.name!r}")


def _mean(t: Array, x: Array) -> Array:
    """Time average (nv,) by trapezoids; of a single row itself."""
    if len(t) == 1:
        return np.asarray(x[0])
    return np.asarray((np.diff(t)[:, None] * (x[1:] + x[:-1]) / 2).sum(axis=0) / (t[-1] - t[0]))
