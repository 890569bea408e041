"""M beside the U-form recursion: composite bodies over the pseudo-inertia.

Walker and Orin 1982, method 3, with the eight-product rotation of a symmetric matrix; started from a gauged
tree the composite bodies of hinges have no mass, so no p p^T terms.

Absolute rates along runs of parallel hinges, for the inertia matrix.

Where hinge c goes on in the direction of its parent's j, the direction D_j = C_j - sum of C_c over all such c (C:
columns of the relative rates, their signs in them) turns body j and what hangs on it outside the run; the bodies
behind each c do not turn, they shift by v_c = e x p_c, which is constant in axes of j. So the diagonal is constant
in the gauge, and an entry of a body behind c takes v_c . f, two products, instead of n_k + (p x f)_k. The rates W
along these directions are the sums of the relative ones: q'_c = W_c - W_j, tau'_j = tau_j - sum of tau_c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..algorithms.inertia_matrix import SparseRows, add_entry, dense, factorised, with_rotor_rows
from ..joints import Force, Motion, Placement
from ..reduce import linear_coordinates, linear_rates, scaled
from ..reframe import renames
from ..scalar import Matrix, Scalar, Vector, accumulate, cos, is_zero, sin
from ..spatial import EYE, UNIT_VECS, ZERO, RigidInertia, Sym, Vec, congruence, rotate, rotated
from ..tree import Tree
from .khalil import joined_numbers


class ParallelRuns(NamedTuple):
    """after: body -> the bodies that go on in its direction; slip: v_c of each of these, in the body's axes."""

    tree: Tree
    after: Mapping[int, Sequence[int]]
    slip: Mapping[int, Vec]

    def shift(self, x: Placement, P: RigidInertia, c: int) -> tuple[Force, Scalar]:
        """The wrench about its parent's pole that shifts all that body c carries by v_c; and m v_c . v_c."""
        v = self.slip[c]
        force = v * P.m
        return Force(x.to_parent(P.h).cross(v) + x.p.cross(force), force), v.dot(force)

    def pairs(self) -> list[tuple[int, int, float]]:
        """(rate of j, rate of c, the sign that their senses have to each other), last bodies first."""
        bodies = self.tree.bodies
        found = [(bodies[j], bodies[c]) for j, after in reversed(list(self.after.items())) for c in after]
        return [(up.v, b.v, up.factor * b.factor) for up, b in found]

    def relative(self, M: SparseRows) -> SparseRows:
        """M over the relative rates: C_j = D_j + sum of C_c, rows and columns, from the last to the first."""
        for j, c, sign in self.pairs():
            coupling: Scalar = M[max(c, j)].get(min(c, j), 0.0)
            entries = {x: M[max(x, c)].get(min(x, c)) for x in range(len(M)) if x != j}
            for x, value in entries.items():
                if value is not None:
                    accumulate(M[max(x, j)], min(x, j), sign * value)
            accumulate(M[j], j, sign * coupling + sign * M[max(c, j)].get(min(c, j), 0.0))
        return M

    def with_rotors(self, M: SparseRows) -> SparseRows:
        """M over the absolute rates with the rotors: one turns with the difference of two of these rates."""
        behind = {c: (j, sign) for j, c, sign in self.pairs()}
        for k, x in self.tree.armature.items():
            accumulate(M[k], k, x)
            if k in behind:
                j, sign = behind[k]
                accumulate(M[j], j, x)
                add_entry(M, k, j, False, -sign * x)
        return M

    def efforts(self, tau: Vector) -> list[Scalar]:
        """The efforts along the directions D_j: tau_j less the sum of tau_c."""
        out = list(tau)
        for j, c, sign in self.pairs():
            out[j] = out[j] - sign * tau[c]
        return out

    def rates(self, W: Vector) -> list[Scalar]:
        """Relative rates, or accelerations, from those of the directions."""
        out = list(W)
        for j, c, sign in self.pairs():
            out[c] = W[c] - sign * W[j]
        return out


def parallel_runs(tree: Tree, absolute: Sequence[int] | None = None) -> ParallelRuns:
    """The runs in which the rates `absolute` have others behind them; None: all that there are."""
    alone, bodies = Counter(b.v for b in tree.bodies), tree.bodies
    after: dict[int, list[int]] = {}
    slip: dict[int, Vec] = {}
    for c, b in enumerate(bodies):
        up = bodies[b.parent] if b.parent >= 0 else b
        parallel = up.kind == b.kind == "revolute" and up is not b and b.R == EYE and up.axis == b.axis
        plain = alone[b.v] == alone[up.v] == 1 and abs(b.factor) == abs(up.factor) == 1.0
        if parallel and plain and (absolute is None or up.v in absolute):
            after.setdefault(b.parent, []).append(c)
            slip[c] = UNIT_VECS[b.axis].cross(b.p)
    return ParallelRuns(tree, dict(sorted(after.items())), slip)


Meeting = int | Sequence[int]  # a depth, or for every body the ancestor at which its wrench stops
Traces = Vec  # S_bb + S_cc by axis a: the diagonal of the rotational inertia


def traces(S: Sym) -> Traces:
    """S_bb + S_cc by axis a."""
    return Vec(S.yy + S.zz, S.xx + S.zz, S.xx + S.yy)


def composite_to_parent(x: Placement, P: RigidInertia, t: Traces) -> tuple[RigidInertia, Traces]:
    """A composite body and its traces in the axes of the parent; t_k does not feel a turn about e_k."""
    S, h = P.S, P.h
    if x.k >= 0:
        S, h = rotated(x.k, x.s, x.c, S), rotate(x.k, x.s, x.c, h)
        t = Vec(*(old if a == x.k else new for a, (old, new) in enumerate(zip(t, traces(S)))))
    elif x.k == -1:
        S, h = congruence(x.Q, S), x.Q @ h
        t = traces(S)
    S, h = congruence(x.R, S), x.R @ h
    t = Vec(*(Vec(*map(abs, row)).dot(t) for row in x.R)) if renames(x.R) else traces(S)
    g = h + x.p * (0.5 * P.m)
    d = Vec(*(2.0 * (a * b) for a, b in zip(x.p, g)))
    return RigidInertia(P.m, h, S).shifted(x.p), t + Vec(d.y + d.z, d.x + d.z, d.x + d.y)


def wrench(P: RigidInertia, t: Traces, s: Motion) -> Force:
    """Wrench that gives a composite body at rest the acceleration s; its rotational inertia has the diagonal t."""
    J = Sym(t.x, -P.S.xy, -P.S.xz, t.y, -P.S.yz, t.z)
    return Force(J @ s.w + P.h.cross(s.v), s.v * P.m + s.w.cross(P.h))


def mass_matrix_rows(tree: Tree, q: Vector, absolute: Sequence[int] = (), **how: Any) -> SparseRows:
    """Lower triangle of M over q's own order. how: carried, meeting and sums of `direction_rows`.

    absolute: rates whose runs of parallel axes are taken by absolute rates on the way, see `ParallelRuns`.
    """
    runs = parallel_runs(tree, absolute)
    return with_rotor_rows(tree, runs.relative(direction_rows(runs, q, **how)))


def direction_rows(
    runs: ParallelRuns, q: Vector, carried: bool = False, meeting: Meeting = 0, sums: bool = True
) -> SparseRows:
    """Lower triangle of M over the directions of runs, the rotors left out.

    carried: traces go along beside S instead of being summed anew. meeting: the depth at which the wrenches from
    below meet the screws of the joints above.
    """
    tree = runs.tree
    X, n = tree.placements(scaled(q, linear_coordinates(tree), tree.unit)), len(tree)
    total, trace = [b.inertia for b in tree.bodies], [traces(b.inertia.S) for b in tree.bodies]
    own, own_trace = list(total), list(trace)  # without the bodies that go on in a run
    screws, stops = Screws(tree, X, q, sums, runs), meeting_bodies(tree, meeting)
    M: SparseRows = [{} for _ in range(tree.nv)]
    for i in range(n - 1, -1, -1):
        b = tree.bodies[i]
        tree.section(i)
        tree.named_vec(total[i].h, "h", i)
        if not carried:
            trace[i], own_trace[i] = traces(total[i].S), traces(own[i].S)
        shifts = [runs.shift(X[c], total[c], c) for c in runs.after.get(i, ())]
        for k, column in enumerate(tree.motion_subspace(b)):
            row(screws, M, i, k, wrench(own[i], own_trace[i], column), shifts, stops[i])
        if b.parent >= 0:
            P, t = composite_to_parent(X[i], total[i], trace[i])
            total[b.parent], trace[b.parent] = total[b.parent] + P, trace[b.parent] + t
            if i not in runs.slip:
                own[b.parent], own_trace[b.parent] = own[b.parent] + P, own_trace[b.parent] + t
    return in_metres(M, linear_rates(tree), tree.unit)


def in_metres(M: SparseRows, slides: Sequence[int], unit: Scalar) -> SparseRows:
    """M of a tree in another unit of length, for coordinates in metres."""
    if isinstance(unit, float) and unit == 1.0:
        return M
    for r, entries in enumerate(M):
        for c in entries:
            for i in (r, c):
                if i in slides:
                    entries[c] = entries[c] * (1.0 / unit)
    return M


def meeting_bodies(tree: Tree, meeting: Meeting) -> list[int]:
    """The ancestor up to which the wrench of every body goes: that at the meeting depth, at most the root."""
    if not isinstance(meeting, int):
        return list(meeting)
    depth: list[int] = []
    out: list[int] = []
    for i, b in enumerate(tree.bodies):
        depth.append(depth[b.parent] + 1 if b.parent >= 0 else 0)
        out.append(i if depth[i] <= meeting else out[b.parent])
    return out


def row(
    screws: Screws, M: SparseRows, i: int, k: int, f: Force, shifts: Sequence[tuple[Force, Scalar]], stop: int
) -> None:
    """The entries of rate k of body i: every ancestor's up to `stop` as the wrench moves up, the rest there.

    f: of what turns with the body; shifts: wrenches of what only shifts, and what they add on the diagonal.
    """
    tree, b, j = screws.tree, screws.tree.bodies[i], i
    for l, column in enumerate(tree.motion_subspace(b)[: k + 1]):
        own = column.dot(f)
        for _, more in shifts:
            own = own + more
        add_entry(M, b.v + k, b.v + l, k == l, b.factor * b.factor * own)
    for shift, _ in shifts:
        f = f + shift
    while j != stop:
        f, a = screws.X[j].force_to_parent(f), tree.bodies[tree.bodies[j].parent]
        for l, column in enumerate(screws.columns(j)):
            add_entry(M, b.v + k, a.v + l, False, b.factor * a.factor * column.dot(f))
        j = tree.bodies[j].parent
    for (a_, l), screw in screws.at(stop).items():
        other = tree.bodies[a_]
        add_entry(M, b.v + k, other.v + l, False, b.factor * other.factor * Motion(screw.w, screw.v).dot(f))


class Screw(NamedTuple):
    """A column of an ancestor, about the pole and in the axes of a body; before: w ahead of the run's own turn."""

    w: Vec
    v: Vec
    before: Vec


class SharedAngle(NamedTuple):
    """The angle along a run of parallel axes."""

    angle: Scalar
    s: Scalar
    c: Scalar
    name: str


@dataclass(slots=True)
class Screws:
    """The columns of all ancestors of a body in its frame, made as they are asked for."""

    tree: Tree
    X: Sequence[Placement]
    q: Vector
    sums: bool
    runs: ParallelRuns
    made: dict[int, dict[tuple[int, int], Screw]] = field(default_factory=dict)
    turns: dict[int, SharedAngle] = field(default_factory=dict)

    def at(self, i: int) -> dict[tuple[int, int], Screw]:
        """By (ancestor, column)."""
        path = []
        while i not in self.made and self.tree.bodies[i].parent >= 0:
            path.append(i)
            i = self.tree.bodies[i].parent
        self.made.setdefault(i, {})
        for j in reversed(path):
            self.made[j] = self._next(j)
            i = j
        return self.made[i]

    def columns(self, i: int) -> Sequence[Motion]:
        """The motion columns that the joint of body i's parent gives to body i, in the parent's axes."""
        if i in self.runs.slip:
            return [Motion(ZERO, self.runs.slip[i])]
        return self.tree.motion_subspace(self.tree.bodies[self.tree.bodies[i].parent])

    def _next(self, i: int) -> dict[tuple[int, int], Screw]:
        """The screws of all bodies above body i, with its parent's own, in the axes of body i."""
        p = self.tree.bodies[i].parent
        above = dict(self.made[p])
        for l, column in enumerate(self.columns(i)):
            above[p, l] = Screw(column.w, column.v, column.w)
        turn = self._turn(i)
        return {key: self._down(i, s, turn) for key, s in above.items()}

    def _turn(self, i: int) -> bool:
        """Joins body i to the run of its parent where their axes are parallel; the run's angle goes on."""
        b, x = self.tree.bodies[i], self.X[i]
        if b.kind != "revolute":
            return False
        angle = b.factor * self.q[b.q] + b.phase
        turn = SharedAngle(angle, x.s, x.c, b.number)
        up = self.turns.get(b.parent)
        joined = self.sums and up is not None and b.R == EYE and b.axis == self.tree.bodies[b.parent].axis
        if joined and up is not None:
            angle, name = up.angle + angle, joined_numbers(up.name, b.number)
            s, c = self.tree.named(sin(angle), f"s_{name}"), self.tree.named(cos(angle), f"c_{name}")
            turn = SharedAngle(angle, s, c, name)
        self.turns[i] = turn
        return joined

    def _down(self, i: int, s: Screw, joined: bool) -> Screw:
        """Through joint i; in a run w turns by the sum of angles, and so does d (w x e_k), d along e_k."""
        b, x = self.tree.bodies[i], self.X[i]
        k = b.axis
        if not joined or not any(is_zero(z) for a, z in enumerate(s.before) if a != k):
            m = x.motion_to_child(Motion(s.w, s.v))
            return Screw(m.w, m.v, x.R.T @ s.w)
        turn = self.turns[i]
        w = rotate(k, -turn.s, turn.c, s.before)
        axis = UNIT_VECS[k]
        d, axial = axis * x.p[k], axis * s.w[k]
        flat = x.p - d
        v = rotate(k, -x.s, x.c, s.v + axial.cross(flat)) + (s.w - axial).cross(flat) + w.cross(d)
        return Screw(w, v, s.before)


def mass_matrix(tree: Tree, q: Vector, **how: Any) -> Matrix:
    """M(q), (nv, nv), kg m^2 and kg; symmetric, entries across branches exactly 0. how: of `mass_matrix_rows`."""
    return dense(mass_matrix_rows(tree, q, **how))


def inverse_mass_matrix(tree: Tree, q: Vector, absolute: Sequence[int] = (), **how: Any) -> Matrix:
    """M(q)^-1, (nv, nv), column by column. absolute and how: of `mass_matrix_rows`."""
    runs = parallel_runs(tree, absolute)
    f = factorised(tree, runs.with_rotors(direction_rows(runs, q, **how)))
    forces = ([1.0 if i == k else 0.0 for i in range(tree.nv)] for k in range(tree.nv))
    columns = [runs.rates(f.solve(runs.efforts(force))) for force in forces]
    return [[columns[max(i, j)][min(i, j)] for j in range(tree.nv)] for i in range(tree.nv)]
