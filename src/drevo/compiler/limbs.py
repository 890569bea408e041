"""Derivatives of one state of a robot with limbs that are alike: one limb is traced, and all run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..codegen.emit.llvm_limbs import LimbValues
from ..codegen.emit.llvm_warps import LimbCut
from ..codegen.emit.split import ONE_FUNCTION
from ..codegen.graph.node import Expr
from ..codegen.graph.ops import CONST, OPS
from ..codegen.graph.program import Input, Program
from ..mechanics.algorithms.inertia_matrix import Factors, elimination_order
from ..mechanics.formalisms import khalil_derivatives
from ..mechanics.limbs import LimbNumbers, Limbs, alike_limbs, joined, joined_limbs, limbs_apart
from ..mechanics.scalar import Matrix, Scalar, Vector, is_zero
from ..mechanics.tree import LinkFrame, Tree, build_tree
from ..model.description import Model
from .formalisms import derived_tree
from .solved import InverseTail
from .tracer import Tracer, scalars_in, unknown

FEWEST = 3  # limbs: of two, half of each vector is what is saved
Array = np.ndarray[Any, Any]


def limbs_program(model: Model, quantity: str) -> Program | None:
    """dtau/dq, dtau/dv and M; or for forward dynamics what `solved.solved_program` gives. None where no three
    limbs are alike, or these are too long for one function."""
    state = LimbState.of(Tracer(quantity, model))
    if state is None:
        return None
    forward = quantity == "forward_dynamics_derivatives"
    given = state.arguments("q", "v", "tau" if forward else "a")
    if forward:
        _, dq, dv, f = khalil_derivatives.before_solving(state.tree, *given)
        one = [[-float(r == c) for c in range(state.tree.nv)] for r in range(state.tree.nv)]
        results = {"dq": dq, "dv": dv, "one": one}
    else:
        results = dict(zip(("dq", "dv", "M"), khalil_derivatives.inverse_dynamics_derivatives(state.tree, *given)))
    for name, A in results.items():
        state.output(name, state.matrix(A), (model.nv, model.nv))
    return state.program(InverseTail.of(state, state.factors(f)) if forward else None)


def warps_of(model: Model) -> list[LimbCut]:
    """Ways to cut a robot into limbs, alike or not, for kernels of a GPU; none where joints are formulas."""
    tree = build_tree(model)
    found = []
    for cut in () if tree.formulas else limbs_apart(tree):
        q, v = [-1] * tree.nq, [-1] * tree.nv
        for k, b in ((k, tree.bodies[i]) for k, run in enumerate(cut) for i in run):
            q[b.q : b.q + b.nq] = [k] * b.nq
            v[b.v : b.v + b.nv] = [k] * b.nv
        found.append(LimbCut(tuple(q), tuple(v), len(cut)))
    return found


@dataclass(frozen=True, slots=True)
class OfLimb:
    """A value of one limb; lane: of which."""

    x: Scalar
    lane: int

    def __neg__(self) -> OfLimb:
        return OfLimb(-self.x, self.lane)


class LimbState:
    """What is declared of the whole tree while an algorithm runs over one limb."""

    def __init__(self, t: Tracer, whole: Tree, groups: Sequence[Limbs]) -> None:
        self.t, self.whole, self.limbs, self.count = t, whole, groups[0], len(groups[0])
        self.symbols: dict[LimbNumbers, Expr] = {}
        self.values: dict[int, Array] = {}  # by node, of what depends on the robot alone
        self.spread: dict[int, tuple[int, ...]] = {}
        self.lanes: list[dict[int, int]] = []
        self.totals: dict[int, int] = {}
        self.of_each = list[bool]()  # by node, whether every limb has its own
        self.tree, self.q, self.v = joined_limbs(whole, groups, self.number, self.total)

    @staticmethod
    def of(t: Tracer, links: Sequence[str] = (), fewest: int = FEWEST) -> LimbState | None:
        """links: whose frames are wanted. None where no `fewest` limbs are alike."""
        whole = derived_tree(t.tree, links)
        groups = () if whole is None or whole.loose else alike_limbs(whole)
        return None if whole is None or not groups or len(groups[0]) < fewest else LimbState(t, whole, groups)

    # -- numbers of the robot -------------------------------------------------------------------------------

    def number(self, same: LimbNumbers) -> Scalar:
        """A number of each limb; those that differ in sign are one symbol."""
        sign = next(x for x in same if x) < 0.0
        same = tuple(-x for x in same) if sign else same
        if same not in self.symbols:
            self.symbols[same] = x = self.t.graph.parameter(f"limb[{len(self.symbols)}]")
            self.values[x.edge >> 1] = np.array(same)
        return -self.symbols[same] if sign else self.symbols[same]

    def frame(self, links: Sequence[str]) -> LinkFrame:
        """Where links of the limbs stand, of each the same body."""
        found = [self.whole.frames[x] for x in links]
        return LinkFrame(found[0].body, *self.numbers([(f.R, f.p) for f in found]))

    def numbers(self, same: Sequence[Any]) -> Any:
        """Numbers of the limbs, or structures of numbers, as one."""
        return joined(same, self.number)

    def known(self, edge: int) -> Array:
        """By limb, what depends on numbers of the robot alone."""
        g, n = self.t.graph, edge >> 1
        if n not in self.values:
            if g.op[n] == CONST:
                self.values[n] = np.full(self.count, g.constants[g.a[n]])
            else:
                self.values[n] = OPS[g.op[n]].apply(*map(self.known, g.operands(n)))  # type: ignore[misc]
        return -self.values[n] if edge & 1 else self.values[n]

    def total(self, x: Scalar) -> Scalar:
        """The sum over the limbs."""
        if not isinstance(x, Expr) or not self.wide(x.edge):
            return self.count * x
        if x.level < 2:
            return float(self.known(x.edge).sum())
        found = unknown(self.t.graph, f"total[{len(self.totals)}]")
        self.totals[found.edge >> 1] = x.edge
        return found

    def wide(self, edge: int) -> bool:
        """Every limb has its own."""
        g, known = self.t.graph, self.of_each
        for n in range(len(known), (edge >> 1) + 1):
            known.append(n in self.spread or g.level[n] == 1 or any(known[e >> 1] for e in g.operands(n)))
        return known[edge >> 1]

    # -- arguments and results ------------------------------------------------------------------------------

    def arguments(self, *names: str) -> list[list[Expr]]:
        """Arguments of the whole tree's sizes, as the joined one has them: a number for those of all limbs."""
        found = [self.argument(name, self.q if name == "q" else self.v) for name in names]
        for b in self.tree.owners():
            if b.nq != b.nv:
                self.t.require_unit(found[0][b.q + b.nq - 4 : b.q + b.nq])
        return found

    def argument(self, name: str, places: Sequence[Sequence[int]]) -> list[Expr]:
        """An argument. places: where its numbers stand, those of all limbs together."""
        own = [unknown(self.t.graph, f"{name}[{p[0]}]") for p in places]
        node = {k: x.edge >> 1 for p, x in zip(places, own) for k in p}
        self.t.inputs.append(Input(name, (len(node),), tuple(node[k] for k in range(len(node)))))
        self.spread |= {x.edge >> 1: tuple(p) for p, x in zip(places, own) if len(p) > 1}
        return own

    def vector(self, values: Vector, places: Sequence[Sequence[int]]) -> list[Any]:
        """The numbers of the whole tree of those of the joined one."""
        found = {r: OfLimb(x, lane) for p, x in zip(places, values) for lane, r in enumerate(p)}
        return [found[k] for k in range(len(found))]

    def matrix(self, A: Matrix, rows: Sequence[Sequence[int]] | None = None) -> list[list[Any]]:
        """The same by rows, over the rates or others, and by rates; entries of two limbs are zero."""
        rows = self.v if rows is None else rows
        out: list[list[Any]] = [[0.0] * self.whole.nv for _ in range(sum(map(len, rows)))]
        for r, row in zip(rows, A):
            for c, x in zip(self.v, row):
                for lane in range(0 if is_zero(x) else max(len(r), len(c))):
                    out[r[lane % len(r)]][c[lane % len(c)]] = OfLimb(x, lane)
        return out

    def factors(self, f: Factors) -> Factors:
        """Of M of the whole tree."""
        order = elimination_order(self.whole)
        at = {rate: i for i, rate in enumerate(order)}
        L: list[dict[int, Any]] = [{} for _ in order]
        inverse: list[Any] = [0.0] * len(order)
        for x, row, rate in zip(f.inverse, f.L, f.order):
            for lane, r in enumerate(self.v[rate]):
                inverse[at[r]] = OfLimb(x, lane)
                for j, y in row.items():
                    above = self.v[f.order[j]]
                    L[at[r]][at[above[lane % len(above)]]] = OfLimb(y, lane)
        return Factors.known(L, inverse, order)

    def output(self, name: str, values: Any, shape: tuple[int, ...] | None = None) -> None:
        """A result, of values of limbs among others."""
        flat = list(scalars_in(values))
        self.t.output(name, [x.x if isinstance(x, OfLimb) else x for x in flat], shape)
        self.lanes.append({k: x.lane for k, x in enumerate(flat) if isinstance(x, OfLimb)})

    def program(self, tail: Any = None, **about: object) -> Program | None:
        """The program, which machine code alone can run; None where it is too long for one function."""
        found, g = self.t.program(named=True, tail=tail, **about), self.t.graph
        values = LimbValues(self.count, {}, self.spread, tuple(self.lanes), self.totals)
        live = replace(found, limbs=values).ends
        table = {n: tuple(map(float, self.known(2 * n))) for n in g.live(live) if g.level[n] == 1}
        made = replace(found, limbs=replace(values, table=table))
        return made if len(made.order()) <= ONE_FUNCTION else None
