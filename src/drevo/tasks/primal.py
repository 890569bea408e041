"""A level after the first: a primal active-set method that begins at what the levels before it have found.

    min 1/2 x^T H x + c^T x,   low <= x <= high,   E x = E x0,   G x <= max(h, G x0)

Nocedal and Wright 2006, "Numerical optimization", algorithm 16.3: x0 is within all of it, and so is every later x.
A round goes towards the least with what holds now, as far as nothing stops it: what does is held; where nothing
does, what pulls hardest is let go. What has a multiplier at an earlier level holds in every solution of that level
and is never let go (Escande, Mansard, Wieber 2014, "Hierarchical quadratic programming"); else E would be short of
rank on what is free, and multipliers without limit. After many rounds the first entry is taken, not the one that
pulls hardest (Bland 1977, "New finite pivoting rules"), so that it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..mechanics.scalar import Scalar, maximum, minimum, where
from .level import LevelReader, along, largest_of
from .quadratic import LevelSolver

CAREFUL_ROUNDS = 100  # before Bland's rule


class PrimalLevelSolver(LevelSolver):
    """The stages of a level that begins at "origin" (n,), a point within all that the levels before it keep."""

    first = False
    proximal = 1e-12  # rows are met: the pivot is for those that depend on others
    refinements = 3
    trials = CAREFUL_ROUNDS

    def _start(self) -> list[Scalar]:
        return list(self.read("origin"))

    def _judge(self, level: LevelReader, x: list[Scalar], lam: list[Scalar], inequalities: Sequence[int]) -> None:
        """Goes towards x as far as it may, and holds what stops it; or lets go what pulls hardest there."""
        if not self.pivots:
            self._measure(level, x, lam)
            return
        beyond, freed, after = self._contradictions(level, x, lam, inequalities)
        origin, left = self.read("origin"), self.read("tries")[0]
        force = level.pushed([a + b for a, b in zip(level.times(x), self._slope(level))], lam)
        limited = [k for k, bounded in enumerate(self.bounds) if any(bounded)]
        way = [b - a for a, b in zip(origin, x)]
        ways = [abs(way[k]) for k in limited] + [along(level.rows[r], way) for r in inequalities]
        pulls = [abs(y) * f for y, f in zip([force[k] for k in limited] + [lam[r] for r in inequalities], freed)]
        shares = [_share(b, w) for b, w in zip(beyond, ways)]  # of the way, which may be gone
        least: Scalar = 1.0
        for share in shares:
            least = minimum(least, share)
        stopped, hardest = least < 1.0, where(left > 0.5, largest_of(pulls), 0.0)
        taken: Scalar = 0.0  # 1 once one is chosen
        takes: list[Scalar] = []
        for share, pull in zip(shares, pulls):
            pulling = where(pull < hardest, 0.0, where(pull > 0.0, 1.0, 0.0))
            chosen = where(stopped, where(share > least, 0.0, 1.0), pulling)
            takes.append(where(taken > 0.5, 0.0, chosen))
            taken = maximum(taken, chosen)
        moved = [a + least * w for a, w in zip(origin, way)]
        states, holds = list(self.read("state")), list(self.read("holds"))
        for k, take, new in zip(limited, takes, after):
            states[k] = where(take > 0.5, new, states[k])
            moved[k] = self._within(k, moved[k], states[k])
        for r, take, new in zip(inequalities, takes[len(limited) :], after[len(limited) :]):
            holds[r] = where(take > 0.5, new, holds[r])
        self._write(x=moved, origin=moved, lam=lam, state=states, holds=holds, going=[taken], tries=[left - 1.0])

    def _within(self, k: int, x: Scalar, state: Scalar) -> Scalar:
        """An entry within its bounds, at one where it is held."""
        for has, block, sign in zip(self.bounds[k], ("low", "high"), (-1.0, 1.0)):
            if has:
                end = self.read(block)[k]
                x = where(sign * state > 0.5, end, where(sign * (x - end) > 0.0, end, x))
        return x


def _share(beyond: Scalar, way: Scalar) -> Scalar:
    """The share of a way that leads to a bound which it passes by so much."""
    passes = beyond > 0.0
    return where(passes, maximum(0.0, 1.0 - beyond / where(passes, way, 1.0)), 1.0)
