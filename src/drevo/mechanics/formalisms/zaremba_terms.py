"""The terms that Zaremba's theorems differentiate: columns, wrenches, composite bodies, poses.

Zaremba 1990, (1.14)-(1.16), (1.23), (2.10)-(2.13), corrected, for trees. Every product of frames is
.. fixed_t exp(<f^t> q_t) fixed_u exp(<f^u> q_u) ..; a derivative by q_t puts one ad(f^t) beside exp(<f^t> q_t),
and there f^t is a unit vector along a coordinate axis, so the ad renames and negates components: it costs nothing.
Going up it is +ad (Theorem 2, and Theorem 3 for bodies), going down -ad (Theorem 1). Several columns of one body
(ball and free joints) are averaged over their order: the derivative of exp(d) in one d, symmetric in repeated q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeVar

from ..algorithms.inertia_matrix import apply_inertia
from ..joints import NO_FORCE, NO_MOTION, Force, Motion, Placement
from ..reduce import linear_coordinates, linear_rates, scaled
from ..scalar import Scalar, Vector
from ..spatial import (
    EYE,
    ZERO,
    ZERO_INERTIA,
    Mat,
    RigidInertia,
    Sym,
    Vec,
    congruence,
    outer_sum,
    rotate,
    rotated,
    skew,
)
from ..tree import Tree
from ..tree_indices import children_of

BASE_COLUMN = -1  # as a column: -g, the base's fictitious acceleration
NO_PLACEMENT = Placement(EYE, -2, 0.0, 1.0, EYE, ZERO)
Indices = tuple[int, ...]
T = TypeVar("T")


class PoseSight(NamedTuple):
    """A frame seen from another: its axes as rows, its origin; one: 1 for a point, 0 for a point's rate."""

    axes: Mat
    p: Vec
    one: float


def carried_body(f: Motion, P: RigidInertia) -> RigidInertia:
    """Theorem 3 in one frame, <f> Theta + Theta <f>^T: the rate of a body that f moves; it has no mass."""
    turn = skew(f.w).mul(P.S.mat)
    return RigidInertia(0.0, f.w.cross(P.h) + f.v * P.m, Sym.of(turn + turn.T) + outer_sum(f.v, P.h))


def carried_sight(f: Motion, x: PoseSight) -> PoseSight:
    """The rate of a frame that f moves."""
    return PoseSight(Mat(*(f.w.cross(e) for e in x.axes)), f.w.cross(x.p) + f.v * x.one, 0.0)


def lifted_body(x: Placement, P: RigidInertia) -> RigidInertia:
    """A body in the axes of the parent; a turn about an axis by eight products."""
    if x.k >= 0:
        P = RigidInertia(P.m, rotate(x.k, x.s, x.c, P.h), rotated(x.k, x.s, x.c, P.S))
    elif x.k == -1:
        P = RigidInertia(P.m, x.Q @ P.h, congruence(x.Q, P.S))
    return P.moved(x.R, x.p)


def lifted_sight(x: Placement, s: PoseSight) -> PoseSight:
    """A frame seen from the parent."""
    return PoseSight(Mat(*map(x.to_parent, s.axes)), x.to_parent(s.p) + x.p * s.one, s.one)


def lifted_motion(x: Placement, m: Motion) -> Motion:
    """A motion of the child about the parent's origin."""
    w = x.to_parent(m.w)
    return Motion(w, x.to_parent(m.v) + x.p.cross(w))


class Rules(NamedTuple):
    """The rules of a kind of thing: its passage from a body to its parent, and its rate when a column moves it."""

    lift: Callable[[Placement, Any], Any]
    ad: Callable[[Motion, Any], Any]


BODY_RULES = Rules(lifted_body, carried_body)
FORCE_RULES = Rules(Placement.force_to_parent, Motion.cross_force)
MOTION_RULES = Rules(lifted_motion, Motion.cross)
SIGHT = Rules(lifted_sight, carried_sight)


def sum_of_tuples(a: Any, b: Any) -> Any:
    """The sum of named tuples, entry by entry."""
    return type(a)(*map(sum_of_tuples, a, b)) if isinstance(a, tuple) else a + b


def leibniz_splits(ts: Indices, left: set[int], right: set[int]) -> Iterator[tuple[Indices, Indices]]:
    """Leibniz' rule: every way to deal the t's to two factors that depend on the rates left and right."""
    sides = [[s for s, rates in ((0, left), (1, right)) if t in rates] for t in ts]
    for hands in product(*sides):
        yield tuple(t for t, s in zip(ts, hands) if s == 0), tuple(t for t, s in zip(ts, hands) if s == 1)


def _above_letters(*rates: int) -> str:
    """The superscript of a letter: joints by their numbers."""
    return "^" + "".join(str(r + 1) for r in rates) if rates else ""


def mean(values: Sequence[Any]) -> Any:
    """The mean of named tuples, entry by entry."""
    if isinstance(values[0], tuple):
        return type(values[0])(*map(mean, zip(*values)))
    return sum(values[1:], values[0]) * (1.0 / len(values))


def distinct_orders(ts: Indices) -> Iterator[Indices]:
    """The orders of some indices that differ, rising, each once."""
    if not ts:
        yield ()
    for t in sorted(set(ts)):
        k = ts.index(t)
        for rest in distinct_orders((*ts[:k], *ts[k + 1 :])):
            yield (t, *rest)


@dataclass(slots=True)
class ZarembaTerms:
    """Columns l, composite inertias Theta* and their derivatives at one q, each formed once, all by rates of v.

    A rate may drive several bodies (mimic joints): its column is the sum of theirs, its wrench too, so equal and
    opposite fingers cancel. meeting: the depth at which wrenches from below meet the columns from above.
    """

    tree: Tree
    X: list[Placement]
    own: list[dict[int, Motion]]  # by body: the columns f of its rates, in its own frame
    over: list[set[int]]  # by body: the rates of its ancestors, itself left out
    under: list[set[int]]  # by body: the rates of its descendants, itself left out
    children: list[list[int]]
    depth: list[int]
    meeting: int
    lengths: set[int]  # rates that the tree's unit of length is in
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @classmethod
    def at(cls, tree: Tree, q: Vector, meeting: int = 0) -> ZarembaTerms:
        """The terms at q, coordinates of the robot whatever the tree's unit of length."""
        own = [{b.v + k: f * b.factor for k, f in enumerate(tree.motion_subspace(b))} for b in tree.bodies]
        over: list[set[int]] = []
        under: list[set[int]] = [set() for _ in own]
        depth: list[int] = []
        for b in tree.bodies:
            over.append(over[b.parent] | set(own[b.parent]) if b.parent >= 0 else set())
            depth.append(depth[b.parent] + 1 if b.parent >= 0 else 0)
        for i in range(len(own) - 1, -1, -1):
            if (p := tree.bodies[i].parent) >= 0:
                under[p] |= under[i] | set(own[i])
        X = tree.placements(scaled(q, linear_coordinates(tree), tree.unit))
        lengths = set() if isinstance(tree.unit, float) and tree.unit == 1.0 else set(linear_rates(tree))
        return cls(tree, X, own, over, under, children_of(tree.parents), depth, meeting, lengths)

    def related(self) -> list[set[int]]:
        """By rate: the rates that move a body of its own, one above it or one below it."""
        out: list[set[int]] = [set() for _ in range(self.tree.nv)]
        for own, over, under in zip(self.own, self.over, self.under):
            for r in own:
                out[r] |= set(own) | over | under
        return out

    def lower(self, r: int) -> set[int]:
        """The rates below a body that r moves; below the ground (r < 0) all."""
        if r < 0:
            return set(range(self.tree.nv))
        return set().union(*(under for own, under in zip(self.own, self.under) if r in own))

    def sub(self, m: int) -> set[int]:
        """The rates of a body and its descendants."""
        return self.under[m] | set(self.own[m])

    # -- through one joint --------------------------------------------------------------------------------

    def _inserted(self, c: int, x: T, ts: Indices, ad: Callable[[Motion, T], T]) -> T:
        """ad(f^tp) .. ad(f^t1) x, the t's of body c; over all their orders if they differ."""
        out = []
        for order in distinct_orders(ts):
            y = x
            for t in order:
                y = ad(self.own[c][t], y)
            out.append(y)
        found: T = out[0] if len(out) == 1 else mean(out)
        return found

    def _steps(self, c: int) -> tuple[Placement, Placement]:
        """The placement of a body as (outer, inner); between them, of a ball inside both, its columns are unit."""
        x = self.X[c]
        if self.tree.bodies[c].nv > 1:
            return x, NO_PLACEMENT
        return x._replace(k=-2, Q=EYE), x._replace(R=EYE, p=ZERO)

    def _up(self, c: int, ts: Indices, below: Callable[[Indices], T | None], rules: Rules) -> T | None:
        """(L_c x)^{ts} in the parent's frame, x^{..} = below(..): Leibniz' rule over joint c and its load."""
        outer, inner = self._steps(c)
        out: T | None = None
        for own, rest in leibniz_splits(ts, set(self.own[c]), self.under[c]):
            x = below(rest)
            if x is not None:
                y: T = rules.lift(outer, self._inserted(c, rules.lift(inner, x), own, rules.ad))
                out = y if out is None else sum_of_tuples(out, y)
        return out

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found

    # -- the terms ----------------------------------------------------------------------------------------

    def above(self, r: int, m: int, ts: Indices) -> Motion:
        """(l_m^r)^{ts} by Theorem 1, (1.16): what r moves above body m, felt there. GROUND: the base at -g."""
        return self._once(("above", r, m, ts), lambda: self._named(self._above(r, m, ts), r, m, ts))

    def _above(self, r: int, m: int, ts: Indices) -> Motion:
        p, out = self.tree.bodies[m].parent, NO_MOTION
        if r >= 0 and r not in self.over[m]:
            return out
        outer, inner = self._steps(m)
        for own, rest in leibniz_splits(ts, set(self.own[m]), self.over[m]):
            x = outer.motion_to_child(self.column(r, p, rest))
            out = out + inner.motion_to_child(
                self._inserted(m, x, own, lambda f, y: y.cross(f))
            )  # <f>^T y = y x f
        return out

    def column(self, r: int, m: int, ts: Indices) -> Motion:
        """(l_m^r)^{ts}: what r moves above body m and at body m itself, felt there. GROUND: the base at -g."""
        if m < 0:
            return Motion(ZERO, -self.tree.gravity) if r < 0 and not ts else NO_MOTION
        out = self.above(r, m, ts)
        return out + self.own[m][r] if r in self.own[m] and not ts else out

    def inertia(self, m: int, ts: Indices) -> RigidInertia:
        """(Theta_m*)^{ts}, (2.10) and (2.13)."""
        return self._once(("inertia", m, ts), lambda: self._inertia(m, ts))

    def _inertia(self, m: int, ts: Indices) -> RigidInertia:
        out = ZERO_INERTIA if ts else self.tree.bodies[m].inertia
        for c in self.children[m]:
            x = self._up(c, ts, partial(self.inertia, c), BODY_RULES)
            out = out if x is None else out + x
        above = _above_letters(*ts)
        self.tree.named_vec(out.h, f"Theta{above}", m)
        self.tree.named_sym(out.S, f"Theta{above}", m)
        return out

    def _named(self, x: Motion, r: int, m: int, ts: Indices) -> Motion:
        """A column with its letters."""
        above = _above_letters(*((r,) if r >= 0 else ()), *ts)
        self.tree.named_vec(x.v if r >= 0 else -x.v, f"{'v' if r >= 0 else 'g'}{above}", m)
        self.tree.named_vec(x.w, f"omega{above}", m)
        return x

    def below(self, r: int, m: int, ts: Indices) -> Force:
        """(sum of L_j^m Theta_j* f^j)^{ts} over the bodies j below m that rate r moves."""
        return self._once(("below", r, m, ts), lambda: self._below(r, m, ts))

    def _below(self, r: int, m: int, ts: Indices) -> Force:
        out = NO_FORCE
        for c in self.children[m]:
            if r in self.sub(c):
                x = self._up(c, ts, partial(self.wrench, r, c), FORCE_RULES)
                out = out if x is None else out + x
        return out

    def wrench(self, r: int, m: int, ts: Indices) -> Force:
        """(sum of L_j^m Theta_j* f^j)^{ts} over body m and the bodies j below it that rate r moves."""
        return self._once(("wrench", r, m, ts), lambda: self._wrench(r, m, ts))

    def _wrench(self, r: int, m: int, ts: Indices) -> Force:
        out = self.below(r, m, ts)
        out = self.at_own(r, m, ts) + out if r in self.own[m] else out
        for x, letter in ((out.f, "f"), (out.n, "m")):
            self.tree.named_vec(x, letter + _above_letters(r, *ts), m)
        return out

    def at_own(self, r: int, m: int, ts: Indices) -> Force:
        """(Theta_m*)^{ts} f^r."""
        return self._once(("own", r, m, ts), lambda: apply_inertia(self.inertia(m, ts), self.own[m][r]))

    def entry(self, a: int, b: int, ts: Indices) -> Scalar:
        """a_ab^{t1..tp} of (2.9), a <= b; a = GROUND: the entry of gravity."""
        x = self._half(a, b, ts, True) + (self._half(b, a, ts, False) if a >= 0 else 0.0)
        for r in (b, *ts) if a < 0 else (a, b, *ts):
            x = x * (1.0 / self.tree.unit) if r in self.lengths else x
        return x

    def _half(self, a: int, b: int, ts: Indices, same: bool) -> Scalar:
        """The part of an entry where a is above b, or (same) at the same body; column and wrench meet at a's body.

        Bodies above the depth of meeting leave it to that depth, or to b's body if this is above it too.
        """
        out: Scalar = 0.0
        for m, depth in enumerate(self.depth):
            if depth >= self.meeting and a in self.own[m] and self.under[m].issuperset(ts):
                out = out + self.own[m][a].dot((self.wrench if same else self.below)(b, m, ts))
            if depth == self.meeting and b in self.sub(m):
                out = out + self._met(m, ts, partial(self.above, a, m), partial(self.wrench, b, m))
            elif depth < self.meeting and b in self.own[m]:
                column = partial(self.column if same else self.above, a, m)
                out = out + self._met(m, ts, column, partial(self.at_own, b, m))
        return out

    def _met(
        self, m: int, ts: Indices, column: Callable[[Indices], Motion], force: Callable[[Indices], Force]
    ) -> Scalar:
        """A column and a wrench at body m: Leibniz' rule between what is above and what is below."""
        out: Scalar = 0.0
        for high, low in leibniz_splits(ts, self.over[m] | set(self.own[m]), self.under[m]):
            out = out + column(high).dot(force(low))
        return out

    # -- what is fixed in a body, seen from below it ------------------------------------------------------------

    def carried(self, kind: object, k: int, m: int, x: T, ts: Indices, rules: Rules) -> T | None:
        """x, fixed in body k, as seen from body m or the ground (-1), derived by the t's; None where it has none.

        kind: a name for x, under which its terms are kept.
        """
        if m == k:
            return None if ts else x
        return self._once(("carried", kind, k, m, ts), lambda: self._carried(kind, k, m, x, ts, rules))

    def _carried(self, kind: object, k: int, m: int, x: T, ts: Indices, rules: Rules) -> T | None:
        c = k
        while self.tree.bodies[c].parent != m:
            c = self.tree.bodies[c].parent
        return self._up(c, ts, lambda rest: self.carried(kind, k, c, x, rest, rules), rules)
