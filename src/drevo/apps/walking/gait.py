"""A gait as a value: footholds, times, how the swinging foot and the zero-moment point travel."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ...errors import InputError, shown
from ...io.given import Array, positive, short_text, whole

MOST = 10_000  # steps
LONGEST = 100_000  # ticks of one duration


@dataclass(frozen=True)
class Gait:
    """length: from foot to foot, m; lift: of the swinging sole, m; landing: its speed when it touches down, m/s.

    single, double: duration of single and of double support, s; settle: of standing before and after, s.
    height: of the hips above the ankles, in lengths of the straight leg. tick: of the plan, s.
    """

    name: str
    length: float
    lift: float
    single: float
    double: float
    settle: float
    height: float = 0.9
    landing: float = 0.01
    tick: float = 0.01

    def __post_init__(self) -> None:
        short_text("gait: name", self.name)
        for f in fields(self):
            x = getattr(self, f.name)
            if f.name != "name":
                object.__setattr__(self, f.name, positive(f"gait {shown(self.name)}: {f.name}", x))
        for name in ("single", "double", "settle"):
            ticks = getattr(self, name) / self.tick
            if not 4 <= ticks <= LONGEST or abs(ticks - round(ticks)) > 1e-6:
                raise InputError(
                    f"gait {self.name!r}: {name} is {getattr(self, name):g} s; it must be a whole number of ticks "
                    f"of {self.tick:g} s, from 4 to {LONGEST}"
                )

    def ticks(self, name: str) -> int:
        """Of a duration."""
        whole: int = round(getattr(self, name) / self.tick)
        return whole


STATIC = Gait("static", length=0.2, lift=0.04, single=1.4, double=1.2, settle=2.0, tick=0.02)
DYNAMIC = Gait("dynamic", length=0.25, lift=0.04, single=0.5, double=0.12, settle=1.6)
GAITS = {g.name: g for g in (STATIC, DYNAMIC)}


def gait_of(gait: object) -> Gait:
    """A gait, or that of a name."""
    found = GAITS.get(gait) if isinstance(gait, str) else gait
    if not isinstance(found, Gait):
        raise InputError(f"gait {shown(gait)} is not known; there are {', '.join(GAITS)}, or give a Gait")
    return found


def quintic(start: tuple[float, float, float], end: tuple[float, float, float], T: float, t: Array) -> Array:
    """(3, n): x, x' and x'' of the polynomial of the fifth degree from (x, x', x'') at 0 to those at T."""
    x0, v0, a0 = start
    s = np.array([[1.0, 1.0, 1.0], [3.0, 4.0, 5.0], [6.0, 12.0, 20.0]])
    left = (end[0] - x0 - v0 * T - 0.5 * a0 * T**2, (end[1] - v0 - a0 * T) * T, (end[2] - a0) * T**2)
    c = np.polynomial.Polynomial([x0, v0, 0.5 * a0, *(np.linalg.solve(s, left) / T ** np.arange(3, 6))])
    return np.array([c(t), c.deriv()(t), c.deriv(2)(t)])


def swing(gait: Gait, start: Array, end: Array, n: int) -> Array:
    """(3, n + 1, 3): the way of a sole through the air, at rest at its start, down with the speed of landing."""
    T = n * gait.tick
    t, middle = np.arange(n + 1) * gait.tick, 0.5 * T
    out = np.stack([quintic((a, 0.0, 0.0), (b, 0.0, 0.0), T, t) for a, b in zip(start, end)], -1)
    top = (gait.lift, 0.0, 0.0)
    up = quintic((0.0, 0.0, 0.0), top, middle, np.minimum(t, middle))
    down = quintic(top, (0.0, -gait.landing, 0.0), middle, np.maximum(t - middle, 0.0))
    out[..., 2] += np.where(t < middle, up, down)
    return out


def footholds(start: Array, steps: int, length: float) -> list[tuple[int, Array]]:
    """(foot, place) of every step: the feet in turn, each `length` ahead of the other, the last one beside it."""
    out = []
    for k in range(whole("steps", steps, 1, MOST, ": a walk has one step or more")):
        ahead = length * (k if 0 < k == steps - 1 else k + 1)
        out.append((k % 2, start[k % 2] + np.array([ahead, 0.0, 0.0])))
    return out
