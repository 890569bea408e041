"""What a walk looks like: reactions, zero-moment point, drives, and the ground from above."""

from __future__ import annotations

from typing import Any, Protocol

from ...codegen.emit.picture import Figure
from ...codegen.emit.plot import Curve, Panel
from ...io.given import Array
from ...robot.face import Robot
from .feet import Leg, hull


class Walked(Protocol):
    """What is drawn of a walk."""

    @property
    def robot(self) -> Robot:
        """Who walked."""

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Its legs."""

    @property
    def stages(self) -> tuple[Any, ...]:
        """What happened between landings."""

    def series(self, name: str) -> Array:
        """A field over time."""


def walk_figure(walk: Walked, title: str) -> Figure:
    """Normal forces, the zero-moment point in its polygon of support, drives of each leg, footprints."""
    t, N, tau = (walk.series(name) for name in ("t", "reactions", "tau"))
    names = [leg.link for leg in walk.legs]
    panels = [
        Panel(
            "normal force on the soles, N", unit="N", curves=[Curve(n, t, N[:, i, 2]) for i, n in enumerate(names)]
        ),
        Panel(
            "forces along the ground, N",
            [Curve(f"{n}, {axis}", t, N[:, i, k]) for i, n in enumerate(names) for k, axis in enumerate("xy")],
            unit="N",
        ),
        _zmp(walk, 0, "zero-moment point forward, m (shaded: the soles that stand)"),
        _zmp(walk, 1, "zero-moment point to the left, m"),
    ]
    joints = {sv.start: j.name for j, _, sv in walk.robot.model.slices()}
    for leg in walk.legs:
        curves = [Curve(joints[int(k)], t, tau[:, k]) for k in leg.joints]
        panels.append(Panel(f"drives of the leg of {leg.link}, N m, over time, s", curves, unit="N m"))
    zmp, q = walk.series("zmp"), walk.series("q")
    paths = [Curve("zero-moment point", *zmp.T), Curve("pelvis", q[:, 0], q[:, 1])]
    panels.append(Panel("from above: footprints, m", paths, _footprints(walk), equal=True, unit="m"))
    return Figure(title, panels)


def _zmp(walk: Walked, axis: int, title: str) -> Panel:
    """One coordinate over time, before the extent of the polygon."""
    areas = []
    for s in walk.stages:
        if s.stands:
            low, high = s.support.polygon[:, axis].min(), s.support.polygon[:, axis].max()
            areas.append([(s.t[0], low), (s.t[-1], low), (s.t[-1], high), (s.t[0], high)])
    curve = Curve("zero-moment point", walk.series("t"), walk.series("zmp")[:, axis])
    return Panel(title, [curve], areas, unit="m")


def _footprints(walk: Walked) -> list[Array]:
    """Every place where a sole stood, once."""
    found: dict[tuple[int, float, float], Array] = {}
    for s in walk.stages:
        for i, middle, leg in zip(s.stands, s.support.middles, s.support.legs):
            edge = hull(leg.sole(walk.robot.pose(s.q[0], leg.link))[:, :2])
            found[i, round(middle[0], 3), round(middle[1], 3)] = edge
    return list(found.values())
