"""The backward sweep of differential dynamic programming in machine code, and the rollout in lanes.

A knot goes from x = (q, v) to v1 = v + dt a(q, v, u), q1 = q (+) dt v1. With W the second derivatives of the value
by (q (+) dt v1, v1), and A = da/dx, B = da/du, the matrices of

    Q_xx = l_xx + Z + dt A^T Z_v,   Z = W + dt W_v A,   Q_ux = l_ux + dt B^T Z_v,   Q_uu = l_uu + dt^2 B^T W_vv B

take 12 n^3 products for as many inputs as freedoms, where those of a general transition of 2 n states take 56. The
gradient is one more column of each. Tassa, Mansard and Todorov 2014 (box), Mastalli et al. 2020 (gaps).

The data of a trajectory's machine code: the record of a knot, the fields of the whole, 8 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ...codegen.graph.program import Program
from ...codegen.llvm.dense.box import Box
from ...codegen.llvm.dense.tile import DenseCode, MatrixTile
from ...codegen.llvm.fields import Fields
from ...codegen.llvm.ir import F64, I64, PTR, VOID, Module, Value
from ...codegen.llvm.math import Lanes
from ...codegen.llvm.ports import Target
from ...codegen.lower.loops import FieldLayout
from ...codegen.lower.lower import Lowered
from ...codegen.store import native
from ...codegen.store.build import Spec, machine_code
from ...compiler.tracer import Tracer

SPARE_NUMBERS = 8  # numbers behind the gains, which whole vectors may write over
_KNOT_NAMES = (
    "knots", "first", "lanes", "dt", "ureg", "xreg", "open", "gain", "bend", "work",
    "A", "A_step", "B", "B_step", "H", "H_step", "R", "R_step", "U", "U_step", "T_q", "T_v", "T_step", "final",
    "record", "record_step", "path", "q", "v", "u", "cost", "alpha", "arena", "pointers", "strides",
)  # fmt: skip
_KNOT_DOUBLES = ("dt", "ureg", "xreg", "gain", "bend")
_KNOT_INTEGERS = (
    "knots", "first", "lanes", "open", "A_step", "B_step", "H_step", "R_step", "U_step", "T_step", "record_step",
)  # fmt: skip
KNOT_STATE = FieldLayout(_KNOT_NAMES, _KNOT_DOUBLES, _KNOT_INTEGERS)


class KnotRecord(NamedTuple):
    """The layout of the numbers of a knot: the gains K (m, 2 n), the step k of the inputs, the gap to the next
    knot, the point of the reference, bounds of the inputs, time and step."""

    nq: int
    n: int
    m: int

    @property
    def parts(self) -> dict[str, slice]:
        n, m = self.n, self.m
        sizes = {
            "K": 2 * n * m, "spare": SPARE_NUMBERS, "k": m, "gap": 2 * n, "q": self.nq, "v": n, "u": m,
            "low": m, "high": m, "time": 1, "dt": 1,
        }  # fmt: skip
        out, at = {}, 0
        for name, size in sizes.items():
            out[name] = slice(at, at := at + size)
        return out

    @property
    def size(self) -> int:
        return int(self.parts["dt"].stop)


LEAST_SWEEP_PIVOT = 1e-14  # of a pivot: below it there is no step


class KnotSizes(NamedTuple):
    """Freedoms, inputs, where a sweep turns: (first freedom, how many) of every joint with a quaternion; whether
    inputs are bounded."""

    n: int
    m: int
    turning: tuple[tuple[int, int], ...]
    boxed: bool

    @property
    def turns(self) -> int:
        """The total number of entries in the Jacobians of all turning joints."""
        return sum(b * b for _, b in self.turning)

    @property
    def blocks(self) -> list[tuple[int, int, int]]:
        """(first freedom, how many, where its Jacobian begins) of every turning joint."""
        ends = accumulate((b * b for _, b in self.turning), initial=0)
        return [(s, b, at) for (s, b), at in zip(self.turning, ends)]


class Areas:
    """The layout of the working memory: offsets of its parts, in numbers, and the widths of their rows."""

    def __init__(self, s: KnotSizes, lanes: int) -> None:
        n, m = s.n, s.m

        def padded(k: int) -> int:
            return -(-k // lanes) * lanes

        self.x, self.u, self.half = padded(2 * n + 1), padded(m), padded(n)
        sizes = {
            "V": 2 * n * self.x, "S": 2 * n * self.half, "Y": n * self.x, "BW": n * self.u, "Quu": m * self.u,
            "Qux": m * self.x, "K": m * self.x, "M": m * self.u, "X": n * self.x, "grad": 2 * n,
            "dx": self.x, "du": self.u, "dn": self.x, "Qu": self.u, "low": self.u, "high": self.u, "step": self.u,
            "free": self.u, "s": self.u, "rhs": m * lanes,
        }  # fmt: skip
        self.at, total = dict[str, int](), 0
        for name, size in sizes.items():
            self.at[name], total = total, total + padded(size)
        self.total = total + lanes


class Sweep:
    """i64 @backward(state): from the last knot to the first; the number of the knot without a step, or -1."""

    def __init__(self, m: Module, l: Lanes, s: KnotSizes, record: KnotRecord) -> None:
        self.s, self.d, self.record = s, DenseCode(m, l), record.parts
        self.areas = Areas(s, l.lanes)
        if s.boxed:
            Box(self.d, s.m, self.areas.u)
        self.f = f = m.function("backward", I64, public=True, attributes=' "stackrealign"', state=PTR)
        self.given = given = Fields(f, KNOT_STATE)
        self.work = {name: given.work.at(at) for name, at in self.areas.at.items()}
        for name in ("gain", "bend"):
            given.at(name).store(f.zero(F64))
        with f.when(given.final.cast("ptrtoint", I64).differs(0)):
            self.d.copy(f, self.work["V"], given.final, 2 * s.n * self.areas.x)
        with f.loop(given.first - 1, start=given.knots - 1, step=-1) as k:
            self.knot(k.i)
        f.ret(-1)
        Prediction(self, m)

    def knot(self, k: Value) -> None:
        """One knot: V becomes the value before it."""
        f, given, d, w = self.f, self.given, self.d, self.work
        n, m, wide = self.s.n, self.s.m, self.areas.x
        A, B = given.A.at(k * given.A_step), given.B.at(k * given.B_step)
        H, R, U = (getattr(given, x).at(k * getattr(given, f"{x}_step")) for x in "HRU")
        record = given.record.at(k * given.record_step)
        with f.when(given.open.differs(0)):
            self.close(record.at(self.record["gap"].start))
        self.shift(w["V"], wide, 2 * n, given.xreg)
        self.through(k)
        self.expand(A, B, R, U)
        self.add(w["V"], H, 2 * n * wide)
        V, Y = MatrixTile(w["V"], 2 * n, 2 * n + 1, wide), MatrixTile(w["Y"], n, 2 * n + 1, wide)
        d.gemm(f, V, MatrixTile(A, n, 2 * n, 2 * n).T, Y)
        self.policy(k, record)
        d.gemm(f, V, MatrixTile(w["Qux"], m, 2 * n, wide).T, MatrixTile(w["K"], m, 2 * n + 1, wide), -1.0)
        d.transpose(f, V, mean=True)
        self.keep(record)

    def expand(self, A: Value, B: Value, R: Value, U: Value) -> None:
        """V becomes Z, Y dt Z_v; Q_ux and Q_uu."""
        f, d, w, n, m, a = self.f, self.d, self.work, self.s.n, self.s.m, self.areas
        wide, half = a.x, a.half
        self.scaled(w["S"], half, w["V"].at(n), wide, 2 * n, half)
        V, S = MatrixTile(w["V"], 2 * n, 2 * n, wide), MatrixTile(w["S"], 2 * n, n, half)
        d.gemm(f, V, S, MatrixTile(A, n, 2 * n, 2 * n))
        self.move_column(w["grad"], 1, w["V"].at(2 * n), wide, 2 * n)  # which the product wrote over
        self.scaled(w["Y"], wide, w["V"].at(n * wide), wide, n, wide)
        d.copy(f, w["Qux"], R, m * wide)
        inputs, BW = MatrixTile(B, n, m, m), MatrixTile(w["BW"], n, m, a.u)
        d.gemm(f, MatrixTile(w["Qux"], m, 2 * n + 1, wide), inputs.T, MatrixTile(w["Y"], n, 2 * n + 1, wide))
        d.gemm(f, BW, MatrixTile(w["S"].at(n * half), n, n, half), inputs, fresh=True)
        self.scaled(w["BW"], a.u, w["BW"], a.u, n, a.u)
        d.copy(f, w["Quu"], U, m * a.u)
        d.gemm(f, MatrixTile(w["Quu"], m, m, a.u), inputs.T, BW)
        self.shift(w["Quu"], a.u, m, self.given.ureg)

    # -- the value where the knot ends ------------------------------------------------------------------------

    def close(self, gap: Value) -> None:
        """V_x + V_xx gap: the gradient where the step ends, not where the next knot stands."""
        f, V, wide, n = self.f, self.work["V"], self.areas.x, self.s.n
        with f.loop(2 * n, some=True) as r:
            row = V.at(r.i * wide)
            place = row.at(2 * n)
            place.store(place.load() + self.d.dot(row, gap, 2 * n))

    def through(self, k: Value) -> None:
        """V by (q (+) dt v1, v1): T^T V T."""
        f, V, wide, n, d = self.f, self.work["V"], self.areas.x, self.s.n, self.d
        self.rows(V, k)
        self.move_column(V.at(2 * n), wide, self.work["grad"], 1, 2 * n)
        if self.s.turning:
            d.transpose(f, MatrixTile(V, 2 * n, 2 * n, wide))
            self.rows(V, k)
        else:
            dt = self.given.dt.splat(d.l.lanes)
            with f.loop(2 * n, some=True) as r:
                row = V.at(r.i * wide)
                for c in reversed(d.vectors(n)):  # to the right what stands left of it, which must still be there
                    x = d.load(row, c) * dt * d.first(f, n - c)
                    d.store(d.load(row, n + c) + x, row, n + c)
        self.move_column(self.work["grad"], 1, V.at(2 * n), wide, 2 * n)

    def rows(self, V: Value, k: Value) -> None:
        """T^T V: rows of q, by q; rows of v, by dt v too."""
        n, wide, turned = self.s.n, self.areas.x, {i for s, b in self.s.turning for i in range(s, s + b)}
        plain = [i for i in range(n) if i not in turned]
        for first, last in _runs(plain):
            self.added_rows(V.at((n + first) * wide), V.at(first * wide), (last - first) * wide)
        for block in self.s.blocks:
            self.turn(V, k, *block)

    def turn(self, V: Value, k: Value, s: int, b: int, at: int) -> None:
        """The rows of one joint with a quaternion."""
        f, d, n, wide, X = self.f, self.d, self.s.n, self.areas.x, self.work["X"]
        Jq, Jv = (getattr(self.given, x).at(k * self.given.T_step + at) for x in ("T_q", "T_v"))
        rows = V.at(s * wide)
        d.copy(f, X, rows, b * wide)
        turned = MatrixTile(X, b, wide, wide)
        d.gemm(f, MatrixTile(rows, b, wide, wide), MatrixTile(Jq, b, b, b).T, turned, fresh=True)
        self.scaled(X, wide, X, wide, b, wide)
        d.gemm(f, MatrixTile(V.at((n + s) * wide), b, wide, wide), MatrixTile(Jv, b, b, b).T, turned)

    # -- the step of the inputs -----------------------------------------------------------------------------

    def policy(self, k: Value, record: Value) -> None:
        """K = [Q_uu^-1 Q_ux, -step], of bounded inputs the step of the box's least and the gains of free ones."""
        f, d, w, a, m, n, given = self.f, self.d, self.work, self.areas, self.s.m, self.s.n, self.given
        d.copy(f, w["K"], w["Qux"], m * a.x)
        least = self.boxed(record) if self.s.boxed else self.gains(w["Quu"])
        with f.when(~(least > LEAST_SWEEP_PIVOT)):
            f.ret(k)
        if self.s.boxed:
            with f.loop(m, some=True) as s:
                w["K"].at(s.i * a.x + 2 * n).store(-w["step"].at(s.i).load())
        with f.loop(m, some=True, sum=given.at("gain").load()) as s:
            s.sum = s.sum - w["Qux"].at(s.i * a.x + 2 * n).load() * w["K"].at(s.i * a.x + 2 * n).load()
        given.at("gain").store(s.sum)

    def boxed(self, record: Value) -> Value:
        """The step within the bounds, from that of the last sweep; the gains. The least pivot."""
        f, d, w, a, m, bend = self.f, self.d, self.work, self.areas, self.s.m, self.given.at("bend")
        self.move_column(w["Qux"].at(2 * self.s.n), a.x, w["Qu"], 1, m)
        self.move_column(record.at(self.record["k"].start), 1, w["step"], 1, m)
        u = record.at(self.record["u"].start)
        for name in ("low", "high"):
            bound = record.at(self.record[name].start)
            with f.loop(m, some=True) as s:
                w[name].at(s.i).store(bound.at(s.i).load() - u.at(s.i).load())
        parts = ("Quu", "Qu", "low", "high", "step", "free", "s", "M", "rhs", "du")
        lost = f.call(F64, "box", *(w[x] for x in parts))
        with f.loop(m, some=True) as s:  # bound inputs have no gains
            row, free = w["K"].at(s.i * a.x), d.splat(w["free"], s.i)
            for c in d.vectors(a.x):
                d.store(d.load(row, c) * free, row, c)
        bend.store(bend.load() + d.dot(w["step"], w["du"], m))
        return f.select(lost < 0.0, lost, self.gains(w["M"]))

    def gains(self, M: Value) -> Value:
        """K becomes M^-1 K; the least pivot."""
        m, a = self.s.m, self.areas
        return self.d.eliminate(self.f, MatrixTile(M, m, m, a.u), MatrixTile(self.work["K"], m, a.x, a.x))

    def keep(self, record: Value) -> None:
        """The gains and the step, in the record of the knot."""
        f, d, K, m, n, wide = self.f, self.d, self.work["K"], self.s.m, self.s.n, self.areas.x
        with f.loop(m, some=True) as s:
            for c in d.vectors(2 * n):
                d.store(d.load(K.at(s.i * wide), c), record.at(s.i * (2 * n)), c)
        with f.loop(m, some=True) as s:
            record.at(s.i + self.record["k"].start).store(-K.at(s.i * wide + 2 * n).load())

    # -- small pieces ---------------------------------------------------------------------------------------

    def move_column(self, source: Value, step: int, to: Value, step_to: int, count: int) -> None:
        with self.f.loop(count, some=True) as s:
            to.at(s.i * step_to).store(source.at(s.i * step).load())

    def scaled(self, to: Value, wide_to: int, source: Value, wide: int, rows: int, cols: int) -> None:
        """dt times a part of a matrix."""
        d, dt = self.d, self.given.dt.splat(self.d.l.lanes)
        with self.f.loop(rows, some=True) as s:
            for c in d.vectors(cols):
                d.store(d.load(source.at(s.i * wide), c) * dt, to.at(s.i * wide_to), c)

    def added_rows(self, to: Value, source: Value, count: int) -> None:
        """to += dt source."""
        self.d.axpy(to, self.given.dt, source, count)

    def add(self, to: Value, source: Value, count: int) -> None:
        d = self.d
        with self.f.loop(d.padded(count), step=d.l.lanes, some=True) as s:
            d.store(d.load(source, s.i) + d.load(to, s.i), to, s.i)

    def shift(self, A: Value, wide: int, n: int, by: Value) -> None:
        """A + by 1."""
        with self.f.loop(n, some=True) as s:
            place = A.at(s.i * (wide + 1))
            place.store(place.load() + by)


class Prediction:
    """void @predict(state): the whole step through the linear models, gaps and all; `gain` is the slope of the
    cost along it, but for the terminal one's, `path` the displacements. It goes on where the last phase ended."""

    def __init__(self, sweep: Sweep, m: Module) -> None:
        self.d, self.s, self.record, self.wide = sweep.d, sweep.s, sweep.record, sweep.areas.x
        self.f = f = m.function("predict", VOID, public=True, attributes=' "stackrealign"', state=PTR)
        self.given = g = Fields(f, KNOT_STATE)
        self.x, self.u, self.next = (g.work.at(sweep.areas.at[name]) for name in ("dx", "du", "dn"))
        with f.loop(g.knots, start=g.first, total=f.zero(F64)) as k:
            k.total = self.knot(k.i, k.total)
        g.at("gain").store(k.total)
        f.ret()

    def knot(self, k: Value, total: Value) -> Value:
        f, d, g, n, m, wide = self.f, self.d, self.given, self.s.n, self.s.m, self.wide
        record, A, B = g.record.at(k * g.record_step), g.A.at(k * g.A_step), g.B.at(k * g.B_step)
        with f.loop(2 * n, some=True) as i:
            g.path.at(k * (2 * n) + i.i).store(self.x.at(i.i).load())
        with f.loop(m, some=True, sum=total) as s:
            step = record.at(s.i + self.record["k"].start).load() - d.dot(record.at(s.i * (2 * n)), self.x, 2 * n)
            self.u.at(s.i).store(step)
            s.sum = s.sum + g.R.at(k * g.R_step + s.i * wide + 2 * n).load() * step
        with f.loop(2 * n, some=True, sum=s.sum) as r:
            r.sum = r.sum + g.H.at(k * g.H_step + r.i * wide + 2 * n).load() * self.x.at(r.i).load()
        with f.loop(n, some=True) as i:
            a = d.dot(A.at(i.i * (2 * n)), self.x, 2 * n) + d.dot(B.at(i.i * m), self.u, m)
            v = self.x.at(i.i + n).load() + g.dt * a
            self.next.at(i.i + n).store(v)
            self.next.at(i.i).store(self.x.at(i.i).load() + g.dt * v)
        for at, b, first in self.s.blocks:
            with f.loop(b, some=True) as i:
                row = k * g.T_step + i.i * b + first
                moved = d.dot(g.T_q.at(row), self.x.at(at), b)
                moved = moved + g.dt * d.dot(g.T_v.at(row), self.next.at(n + at), b)
                self.next.at(i.i + at).store(moved)
        gap = record.at(self.record["gap"].start)
        with f.loop(2 * n, some=True) as i:
            self.x.at(i.i).store(self.next.at(i.i).load() + gap.at(i.i).load())
        return r.sum


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as (first, one past the last) of what follows one another."""
    out: list[tuple[int, int]] = []
    for i in indices:
        if out and out[-1][1] == i:
            out[-1] = out[-1][0], i + 1
        else:
            out.append((i, i + 1))
    return out


def add_rollout(m: Module, low: Lowered, *_: Any) -> None:
    """void @rollout(state), with the kernel of a step: from knot `first` on, a step of all lanes after the other.

    An entry of `codegen.llvm.module.emit`.
    """
    ports = len(low.inputs) + len(low.outputs)
    f = m.function("rollout", VOID, public=True, attributes=' "stackrealign"', state=PTR)
    g = Fields(f, KNOT_STATE)
    starts = [g.pointers.at(k, PTR) for k in range(ports)]
    strides = [g.strides.at(k, I64).load(I64) for k in range(ports)]
    with f.loop(g.knots, start=g.first) as k:
        q, v, u, cost = (
            x.at(k.i * strides[i] * g.lanes, "i8") for x, i in ((g.q, 0), (g.v, 1), (g.u, 6), (g.cost, 7))
        )
        ahead = [x.at(strides[i] * g.lanes, "i8") for x, i in ((q, 0), (v, 1))]
        record = g.record.at(k.i * g.record_step)
        for at, p in zip(starts, (q, v, g.alpha, record, *ahead, u, cost)):
            at.store(p)
        f.call("i32", "drive", g.pointers, g.strides, g.lanes, g.arena, g.lanes)
    f.ret()


def sweep_code(shape: KnotSizes, record: KnotRecord) -> native.Code:
    """The sweep and the prediction, the same for all robots of these sizes."""

    def add(m: Module, low: Lowered, target: Target, *_: Any) -> None:
        Sweep(m, target.of(target.lanes), shape, record)

    def nothing() -> Program:
        t = Tracer("sweep")
        t.output("x", t.input("x", 1))
        return t.program()

    return machine_code(repr(("sweep", shape, record)), nothing, Spec(check=False, single=False), True, add)[1]
