"""Absolute rates along runs of parallel hinges, for the inertia matrix.

Where hinge c goes on in the direction of its parent's j, the direction D_j = C_j - sum of C_c over all such c (C:
columns of the relative rates, their signs in them) turns body j and what hangs on it outside the run; the bodies
behind each c do not turn, they shift by v_c = e x p_c, which is constant in axes of j. So the diagonal is constant
in the gauge, and an entry of a body behind c takes v_c . f, two products, instead of n_k + (p x f)_k. The rates W
along these directions are the sums of the relative ones: q'_c = W_c - W_j, tau'_j = tau_j - sum of tau_c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..algorithms.inertia_matrix import SparseRows, add_entry
from ..joints import Force, Placement
from ..scalar import Scalar, Vector, accumulate
from ..spatial import EYE, UNIT_VECS, RigidInertia, Vec
from ..tree import Tree


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
