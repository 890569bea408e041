"""Derivatives of one state of a robot with limbs that are alike: one limb is traced, and all run side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen.emit.llvm_limbs import LimbValues
from ..codegen.emit.split import ONE_FUNCTION
from ..codegen.graph.node import Expr
from ..codegen.graph.ops import CONST, OPS
from ..codegen.graph.program import Input, Program
from ..mechanics.algorithms.inertia_matrix import Factors, elimination_order
from ..mechanics.formalisms import khalil_derivatives
from ..mechanics.limbs import LimbNumbers, Limbs, alike_limbs, joined_limbs
from ..mechanics.scalar import Matrix, Scalar
from ..mechanics.tree import Tree
from ..model.description import Model
from .formalisms import derived_tree
from .solved import InverseTail
from .tracer import Tracer

FEWEST = 3  # limbs: of two, half of each vector is what is saved
Array = np.ndarray[Any, Any]


def limbs_program(model: Model, quantity: str) -> Program | None:
    """dtau/dq, dtau/dv and M; or for forward dynamics what `solved.solved_program` gives. None where no three
    limbs are alike, or these are too long for one function."""
    t = Tracer(quantity, model)
    whole = derived_tree(t.tree)
    limbs = () if whole is None or whole.loose else alike_limbs(whole)
    if whole is None or len(limbs) < FEWEST:
        return None
    state = LimbState(t, whole, limbs)
    forward = quantity == "forward_dynamics_derivatives"
    given = state.arguments("q", "v", "tau" if forward else "a")
    if forward:
        _, dq, dv, f = khalil_derivatives.before_solving(state.tree, *given)
        one = [[-float(r == c) for c in range(state.tree.nv)] for r in range(state.tree.nv)]
        results = {"dq": dq, "dv": dv, "one": one}
    else:
        results = dict(zip(("dq", "dv", "M"), khalil_derivatives.inverse_dynamics_derivatives(state.tree, *given)))
    for name, A in results.items():
        state.matrix(name, A)
    program = state.program(state.factors(f) if forward else None)
    return program if len(program.order()) <= ONE_FUNCTION else None


class LimbState:
    """What is declared of the whole tree while an algorithm runs over one limb."""

    def __init__(self, t: Tracer, whole: Tree, limbs: Limbs) -> None:
        self.t, self.whole, self.count = t, whole, len(limbs)
        self.symbols: dict[LimbNumbers, Expr] = {}
        self.values: dict[int, Array] = {}  # by node, of what depends on the robot alone
        self.spread: dict[int, tuple[int, ...]] = {}
        self.lanes: list[dict[int, int]] = []
        self.totals: dict[int, int] = {}
        self.tree, self.q, self.v = joined_limbs(whole, limbs, self.number, self.total)

    # -- numbers of the robot -------------------------------------------------------------------------------

    def number(self, same: LimbNumbers) -> Scalar:
        """A number of each limb; those that differ in sign are one symbol."""
        sign = next(x for x in same if x) < 0.0
        same = tuple(-x for x in same) if sign else same
        if same not in self.symbols:
            self.symbols[same] = x = self.t.graph.parameter(f"limb[{len(self.symbols)}]")
            self.values[x.edge >> 1] = np.array(same)
        return -self.symbols[same] if sign else self.symbols[same]

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
        if not isinstance(x, Expr):
            return self.count * x
        if x.level < 2:
            return float(self.known(x.edge).sum())
        found = self.t.graph.input(f"total[{len(self.totals)}]")
        self.totals[found.edge >> 1] = x.edge
        return found

    # -- arguments and results ------------------------------------------------------------------------------

    def arguments(self, *names: str) -> list[list[Expr]]:
        """Arguments of the whole tree, as the joined one has them: a number for those of all limbs."""
        found = []
        for name in names:
            places = self.q if name == "q" else self.v
            own = [self.t.graph.input(f"{name}[{p[0]}]") for p in places]
            node = {k: x.edge >> 1 for p, x in zip(places, own) for k in p}
            self.t.inputs.append(Input(name, (len(node),), tuple(node[k] for k in range(len(node)))))
            self.spread |= {x.edge >> 1: p for p, x in zip(places, own) if len(p) > 1}
            found.append(own)
        for b in self.tree.owners():
            if b.nq != b.nv:
                self.t.require_unit(found[0][b.q + b.nq - 4 : b.q + b.nq])
        return found

    def matrix(self, name: str, A: Matrix) -> None:
        """A matrix of the whole tree; entries of two limbs are zero."""
        n = self.whole.nv
        entries: dict[int, tuple[Scalar, int]] = {}
        for r, row in zip(self.v, A):
            for c, x in zip(self.v, row):
                for lane in range(max(len(r), len(c))):
                    entries[r[lane % len(r)] * n + c[lane % len(c)]] = x, lane
        self.output(name, [entries.get(k, (0.0, 0)) for k in range(n * n)], (n, n))

    def output(
        self, name: str, entries: Iterable[tuple[Scalar, int]], shape: tuple[int, ...] | None = None
    ) -> None:
        """A result: values, and of which limb each is."""
        values, lanes = zip(*entries)
        self.t.output(name, values, shape)
        self.lanes.append(dict(enumerate(lanes)))

    def factors(self, f: Factors) -> InverseTail:
        """The factors of M as hidden results, and the solve that reads them."""
        order = elimination_order(self.whole)
        at = {rate: i for i, rate in enumerate(order)}
        L: list[dict[int, tuple[Scalar, int]]] = [{} for _ in order]
        E: list[tuple[Scalar, int]] = [(0.0, 0) for _ in order]
        for x, row, rate in zip(f.inverse, f.L, f.order):
            for lane, r in enumerate(self.v[rate]):
                E[at[r]] = -x, lane
                for j, y in row.items():
                    above = self.v[f.order[j]]
                    L[at[r]][at[above[lane % len(above)]]] = y, lane
        lower = tuple(tuple(sorted(row)) for row in L)
        self.output("L", [row[j] for row, above in zip(L, lower) for j in above])
        self.output("E", E)
        return InverseTail(tuple(order), lower)

    def program(self, tail: InverseTail | None) -> Program:
        """The program, which machine code alone can run."""
        found, g = self.t.program(named=True, tail=tail), self.t.graph
        values = LimbValues(self.count, {}, self.spread, tuple(self.lanes), self.totals)
        live = replace(found, limbs=values).ends
        table = {n: tuple(map(float, self.known(2 * n))) for n in g.live(live) if g.level[n] == 1}
        return replace(found, limbs=replace(values, table=table))
