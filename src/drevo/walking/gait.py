"""A gait as a value: footholds, times, how the swinging foot and the zero-moment point travel."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from ..errors import InputError, shown
from ..io.given import Array, number, positive, short_text, whole

MAX_PLANNED_STEPS = 10_000  # steps
MAX_TICKS = 100_000  # ticks of one duration
REACH = {"turn": 0.5, "slope": 0.35, "rise": 0.2}  # rad, rad, m
BEFORE = 0.3  # of a swing up the step: the sole rises before it goes forward


@dataclass(frozen=True)
class Gait:
    """length: from foot to foot, m; lift: of the swinging sole, m; landing: its speed when it touches down, m/s.

    single, double: duration of single and of double support, s; settle: of standing before and after, s.
    height: of the hips above the ankles, in lengths of the straight leg. dt: a tick of the plan, s.
    turn: to the left with each step, rad. slope: of the ground, up along x, rad; the walk is told in axes along
    and normal to it. rise: of a step in the ground, up between the first foothold and the second, m.
    """

    name: str
    length: float
    lift: float
    single: float
    double: float
    settle: float
    height: float = 0.9
    landing: float = 0.01
    dt: float = 0.01
    turn: float = 0.0
    slope: float = 0.0
    rise: float = 0.0

    def __post_init__(self) -> None:
        short_text("gait: name", self.name)
        for f in fields(self):
            x, title = getattr(self, f.name), f"gait {shown(self.name)}: {f.name}"
            if f.name in REACH:
                least = 0.0 if f.name == "rise" else -REACH[f.name]
                rule = f"a number from {least:g} to {REACH[f.name]:g}"
                fit = partial(_between, least, REACH[f.name])
                object.__setattr__(self, f.name, number(title, x, rule, fit))
            elif f.name != "name":
                object.__setattr__(self, f.name, positive(title, x))
        for name in ("single", "double", "settle"):
            ticks = getattr(self, name) / self.dt
            if not 4 <= ticks <= MAX_TICKS or abs(ticks - round(ticks)) > 1e-6:
                raise InputError(
                    f"gait {self.name!r}: {name} is {getattr(self, name):g} s; it must be a whole number of ticks "
                    f"of {self.dt:g} s, from 4 to {MAX_TICKS}"
                )

    def ticks(self, name: str) -> int:
        """The number of ticks in the duration of this name."""
        whole: int = round(getattr(self, name) / self.dt)
        return whole


def _between(low: float, high: float, x: float) -> bool:
    return low <= x <= high


STATIC = Gait("static", length=0.2, lift=0.04, single=1.4, double=1.2, settle=2.0, dt=0.02)
DYNAMIC = Gait("dynamic", length=0.25, lift=0.04, single=0.5, double=0.12, settle=1.6)
GAITS = {g.name: g for g in (STATIC, DYNAMIC)}


def gait_of(gait: object) -> Gait:
    """A gait, or that of a name."""
    known = GAITS.get(gait) if isinstance(gait, str) else gait
    if not isinstance(known, Gait):
        raise InputError(f"gait {shown(gait)} is not known; there are {', '.join(GAITS)}, or give a Gait")
    return known


def quintic(start: tuple[float, float, float], end: tuple[float, float, float], T: float, t: Array) -> Array:
    """(3, n): x, x' and x'' of the polynomial of the fifth degree from (x, x', x'') at 0 to those at T."""
    x0, v0, a0 = start
    s = np.array([[1.0, 1.0, 1.0], [3.0, 4.0, 5.0], [6.0, 12.0, 20.0]])
    left = (end[0] - x0 - v0 * T - 0.5 * a0 * T**2, (end[1] - v0 - a0 * T) * T, (end[2] - a0) * T**2)
    c = np.polynomial.Polynomial([x0, v0, 0.5 * a0, *(np.linalg.solve(s, left) / T ** np.arange(3, 6))])
    return np.array([c(t), c.deriv()(t), c.deriv(2)(t)])


def swing(gait: Gait, start: Array, end: Array, n: int) -> Array:
    """(3, n + 1, 4): the way of a sole through the air, x, y, z and heading, at rest at its start, down with the
    speed of landing. Up a step it rises first."""
    T = n * gait.dt
    t, middle = np.arange(n + 1) * gait.dt, 0.5 * T
    wait = BEFORE * T if end[2] > start[2] else 0.0
    along = [
        quintic((a, 0.0, 0.0), (b, 0.0, 0.0), T - wait, np.maximum(t - wait, 0.0)) for a, b in zip(start, end)
    ]
    low, high = float(start[2]), float(end[2])
    top = (max(low, high) + gait.lift, 0.0, 0.0)
    up = quintic((low, 0.0, 0.0), top, middle, np.minimum(t, middle))
    down = quintic(top, (high, -gait.landing, 0.0), middle, np.maximum(t - middle, 0.0))
    out = np.stack(along, -1)
    out[..., 2] = np.where(t < middle, up, down)
    return out


def footholds(start: Array, steps: int, gait: Gait) -> list[tuple[int, Array]]:
    """(foot, place and heading) of every step: the feet in turn, each a length ahead of the other, the last one
    beside it; on an arc where the gait turns."""
    out: list[tuple[int, Array]] = []
    place, heading = np.zeros(2), 0.0
    if gait.rise and steps in (1, 2):
        raise InputError(
            f"gait {gait.name!r}: rise is {gait.rise:g} m, and {steps} steps do not go up; take three"
        )
    for k in range(whole("steps", steps, 1, MAX_PLANNED_STEPS, ": a walk has one step or more")):
        if k == 0 or k < steps - 1:
            heading += gait.turn
            way = heading - gait.turn / 2
            place = place + gait.length * np.array([np.cos(way), np.sin(way)])
        foot = k % 2
        side = yawed(np.array(heading))[:2, :2] @ start[foot, :2]
        out.append((foot, np.array([*(place + side), gait.rise if k > 0 else 0.0, heading])))
    return out


def yawed(heading: Array) -> Array:
    """World from what is yawed about z, (..., 3, 3)."""
    out = np.zeros((*np.shape(heading), 3, 3))
    out[..., 0, 0] = out[..., 1, 1] = np.cos(heading)
    out[..., 1, 0] = np.sin(heading)
    out[..., 0, 1], out[..., 2, 2] = -out[..., 1, 0], 1.0
    return out
