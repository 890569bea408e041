"""Plots of a walk: reactions, zero-moment point, drives, and the ground from above."""

from __future__ import annotations

from typing import Protocol

from ..documents.pictures.picture import Figure
from ..documents.pictures.plot import Curve, Panel
from ..io.given import Array
from .feet import hull
from .phase import GaitPlan


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
        start, end = phase.start, phase.start + phase.duration
        areas.append([(start, low), (end, low), (end, high), (start, high)])
    curve = Curve("zero-moment point", walk.series("t"), walk.series("zmp")[:, axis])
    return Panel(title, [curve], areas, unit="m")


def _footprints(plan: GaitPlan) -> list[Array]:
    """Every place where a sole is to stand, once."""
    found: dict[tuple[int, float, float], Array] = {}
    for phase, support, _ in plan.grounded:
        for i, middle, leg in zip(phase.stands, support.middles, support.legs):
            sole = leg.sole(plan.robot.pose(phase.q[0], leg.link))[:, :2]
            found[i, round(middle[0], 3), round(middle[1], 3)] = hull(sole)
    return list(found.values())
