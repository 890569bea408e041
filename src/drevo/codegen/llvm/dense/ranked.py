"""The complete orthogonal decomposition of rows of any rank, in loops: W = P T Q.

Q (rank, n) are orthonormal rows, chosen one by one with the most that is left of W's rows; P (m, rank) has
orthonormal columns, T is upper triangular. Each is made by Gram and Schmidt's steps, twice, which is enough. What
was left of the last row chosen bounds the singular values from below; where that does not decide, the rows
of T Q are turned until they are orthogonal, and T is the singular values themselves:

  Kahan and Parlett, in Parlett 1980, "The symmetric eigenvalue problem", 6.9;
  Golub and Van Loan, "Matrix computations", 5.4.2 (column pivoting), 5.5 (complete orthogonal decompositions),
  8.6.3 (Jacobi's rotations from one side);
  Higham, "Accuracy and stability of numerical algorithms", theorem 8.14: 1/|T^-1| >= t_kk / 2^k.
"""

from __future__ import annotations

from ..ir import F64, I64, PTR, VOID, IRFunction, Module, Value
from ..math import Lanes
from .tile import DenseCode

CHOICE_THRESHOLD = (
    1e-3  # of the threshold: directions are chosen so far below it, and then their singular values decide
)
ORTHOGONAL, MAX_JACOBI_SWEEPS = (
    1e-14,
    30,
)  # a cosine that is rounding; rotations of all pairs, of which some six are used
RANKED_LANES = 8  # numbers side by side, on every machine, so that sums have one order


def padded(n: int) -> int:
    """Numbers of a row, whole vectors."""
    return -(-n // RANKED_LANES) * RANKED_LANES


def ranked_room(m: int, n: int) -> int:
    """Scalars that a decomposition works on: W, Q, P and T."""
    r = min(m, n)
    return m * padded(n) + r * (padded(n) + padded(m) + padded(r))


class Ranked:
    """Calls of the functions from another one, for W (m, n) at the start of the room, its rows `padded` long.

    What a row has beyond n must be zero, and stays so.
    """

    def __init__(self, f: IRFunction, m: int, n: int, room: Value) -> None:
        add_ranked(f.module)
        self.f, self.m, self.n = f, m, n
        r = min(m, n)
        self.W = room
        self.Q = self.W.at(m * padded(n))
        self.P = self.Q.at(r * padded(n))
        self.T = self.P.at(r * padded(m))
        self.sizes = (m, padded(n), padded(m), padded(r))

    def decompose(self, least: float, scale: Value | None = None) -> Value:
        """The rank: how many singular values are above `least` of the largest, or of a scale beyond it."""
        f = self.f
        most, given = min(self.m, self.n), (f.const(F64, least), scale or f.const(F64, 0.0))
        return f.call(I64, "decompose", self.W, self.Q, self.P, self.T, *self.sizes, most, *given)

    def solve(self, rank: Value, b: Value, x: Value, N: Value) -> None:
        """x = W^+ b (padded n) and N = (W W^T)^+ b (padded m); b stays."""
        self.f.call(VOID, "solve_ranked", self.Q, self.P, self.T, *self.sizes, rank, b, x, N)

    def lost(self, rank: Value, b: Value, rest: Value) -> Value:
        """The largest magnitude in what W x leaves of b, whatever x is, which goes to `rest` (padded m)."""
        return self.f.call(F64, "lost_of", self.P, self.sizes[2], rank, b, rest)


def add_ranked(m: Module) -> None:
    """@decompose, @solve_ranked, @lost_of and what they call, once."""
    if "decompose" in m.functions:
        return
    for add in (_add_span, _add_rotate, _add_pair, _add_turned, _add_decompose, _add_solve, _add_lost):
        add(DenseCode(m, Lanes(F64, RANKED_LANES)))


def _add_span(d: DenseCode) -> None:
    """double @without(y, q, n): takes q, of length one, out of y, twice; how much that was."""
    f = d.m.function("without", F64, y=PTR, q=PTR, n=I64)
    first = d.inner(f.y, f.q, f.n)
    d.call_axpy(f.y, -first, f.q, f.n)
    second = d.inner(f.y, f.q, f.n)
    d.call_axpy(f.y, -second, f.q, f.n)
    f.ret(first + second)


def _add_rotate(d: DenseCode) -> None:
    """@rotate(x, y, c, s, n): c x - s y and s x + c y."""
    f = d.m.function("rotate", VOID, x=PTR, y=PTR, c=F64, s=F64, n=I64)
    c, s = f.c.splat(RANKED_LANES), f.s.splat(RANKED_LANES)
    with f.loop(f.n, step=RANKED_LANES, some=True) as k:
        x, y = d.load(f.x, k.i), d.load(f.y, k.i)
        d.store(c * x - s * y, f.x, k.i)
        d.store(s * x + c * y, f.y, k.i)
    f.ret()


def _add_pair(d: DenseCode) -> None:
    """i64 @pair(W, P, i, j, n, m_padded): makes rows i and j of W orthogonal, P W stays; 0 where they are."""
    f = d.m.function("pair", I64, W=PTR, P=PTR, i=I64, j=I64, n=I64, rows=I64)
    x, y = (f.W.at(k * f.n) for k in (f.i, f.j))
    xx, yy, xy = (d.inner(*pair, f.n) for pair in ((x, x), (y, y), (x, y)))
    apart = xy * xy > xx * yy * ORTHOGONAL**2
    with f.when(apart):
        one, zeta = f.const(F64, 1.0), (yy - xx) / (xy + xy)
        steep = f.call(F64, "llvm.fabs.f64", zeta) + f.call(F64, "llvm.sqrt.f64", zeta * zeta + 1.0)
        t = f.call(F64, "llvm.copysign.f64", one / steep, zeta)
        c = one / f.call(F64, "llvm.sqrt.f64", t * t + 1.0)
        f.call(VOID, "rotate", x, y, c, c * t, f.n)
        f.call(VOID, "rotate", f.P.at(f.i * f.rows), f.P.at(f.j * f.rows), c, c * t, f.rows)
    f.ret(apart.cast("zext", I64))


def _add_turned(d: DenseCode) -> None:
    """i64 @turned(W, Q, P, T, n, m_padded, r, count, least, scale): the rank; T holds singular values."""
    f = d.m.function(
        "turned", I64, W=PTR, Q=PTR, P=PTR, T=PTR, n=I64, rows=I64, r=I64, count=I64, least=F64, scale=F64
    )
    with f.loop(f.count, some=True) as k:
        w = f.W.at(k.i * f.n)
        d.clear(w, f.n)
        with f.loop(f.count, start=k.i) as l:
            d.call_axpy(w, f.T.at(k.i * f.r + l.i).load(), f.Q.at(l.i * f.n), f.n)
    with f.loop(MAX_JACOBI_SWEEPS, some=True) as sweep:
        with f.loop(f.count, some=True, turns=0) as i:
            with f.loop(i.i, turns=i.turns) as j:
                j.turns = j.turns + f.call(I64, "pair", f.W, f.P, i.i, j.i, f.n, f.rows)
            i.turns = j.turns
        sweep.leave(i.turns.equals(0))
    with f.loop(f.count, some=True, top=f.scale) as k:
        w = f.W.at(k.i * f.n)
        size = f.call(F64, "llvm.sqrt.f64", d.inner(w, w, f.n))
        f.T.at(k.i * f.r).store(size)  # its first column
        k.top = f.select(size > k.top, size, k.top)
    with f.loop(f.count, some=True, rank=0) as j:
        size = f.T.at(j.i * f.r).load()
        with f.when(size > k.top * f.least):
            _keep(d, f, j.i, j.rank, size)
        j.rank = j.rank + (size > k.top * f.least).cast("zext", I64)
    f.ret(j.rank)


def _keep(d: DenseCode, f: IRFunction, k: Value, rank: Value, size: Value) -> None:
    """Row k of W and column k of P become the next ones of Q and P, with their singular value in T."""
    for source, target, count, scale in (
        (f.W.at(k * f.n), f.Q.at(rank * f.n), f.n, f.const(F64, 1.0) / size),
        (f.P.at(k * f.rows), f.P.at(rank * f.rows), f.rows, f.const(F64, 1.0)),
    ):
        d.scale(target, scale, source, count)
    with f.loop(rank) as l:
        f.T.at(l.i * f.r + rank).store(f.zero(F64))
    f.T.at(rank * f.r + rank).store(size)


def _add_decompose(d: DenseCode) -> None:
    """i64 @decompose(W, Q, P, T, m, n, m_padded, r, most, least, scale): the rank."""
    f = d.m.function(
        "decompose", I64, W=PTR, Q=PTR, P=PTR, T=PTR, m=I64, n=I64, rows=I64, r=I64, most=I64, least=F64, scale=F64
    )
    d.clear(f.P, f.most * f.rows)
    with f.loop(
        rank=0, floor=f.zero(F64), certain=f.least * f.least * f.m.cast("sitofp", F64), last=f.zero(F64)
    ) as k:
        with f.loop(f.m, some=True, best=0, size=f.const(F64, -1.0)) as j:
            row = f.W.at(j.i * f.n)
            left = d.inner(row, row, f.n)
            j.best, j.size = f.select(left > j.size, j.i, j.best), f.select(left > j.size, left, j.size)
        left = j.size
        top = f.scale * f.scale
        top = f.select(top > left, top, left)
        k.floor = f.select(k.rank.equals(0), top * f.least * f.least * CHOICE_THRESHOLD**2, k.floor)
        k.certain = k.certain * f.select(k.rank.equals(0), top, f.const(F64, 1.0))  # |W|^2, at most
        k.leave(~(left > k.floor))
        q, c = f.Q.at(k.rank * f.n), f.P.at(k.rank * f.rows)
        source, scale = f.W.at(j.best * f.n), f.const(F64, 1.0) / f.call(F64, "llvm.sqrt.f64", left)
        d.scale(q, scale, source, f.n)
        with f.loop(f.m, some=True) as j:
            c.at(j.i).store(f.call(F64, "without", f.W.at(j.i * f.n), q, f.n))
        k.rank, k.last, k.certain = k.rank + 1, left, k.certain * 4.0
        k.leave(k.rank >= f.most)
    with f.loop(k.rank) as column:
        p = f.P.at(column.i * f.rows)
        with f.loop(column.i) as l:
            f.T.at(l.i * f.r + column.i).store(f.call(F64, "without", p, f.P.at(l.i * f.rows), f.rows))
        size = f.call(F64, "llvm.sqrt.f64", d.inner(p, p, f.rows))
        f.T.at(column.i * f.r + column.i).store(size)
        d.scale(p, f.const(F64, 1.0) / size, p, f.rows)
    with f.when(~(k.last > k.certain) & (k.rank > 0)):
        f.ret(f.call(I64, "turned", f.W, f.Q, f.P, f.T, f.n, f.rows, f.r, k.rank, f.least, f.scale))
    f.ret(k.rank)


def _add_solve(d: DenseCode) -> None:
    """@solve_ranked(Q, P, T, m, n, m_padded, r, rank, b, x, N): z = T^-1 P^T b, x = Q^T z, N = P T^-T z."""
    f = d.m.function(
        "solve_ranked", VOID, Q=PTR, P=PTR, T=PTR, m=I64, n=I64, rows=I64, r=I64, rank=I64, b=PTR, x=PTR, N=PTR
    )
    for y, size in ((f.x, f.n), (f.N, f.rows)):
        d.clear(y, size)
    z = f.let(PTR, f"alloca {F64}, i64 {f.r.text}")
    with f.loop(f.rank) as k:
        z.at(k.i).store(d.inner(f.P.at(k.i * f.rows), f.b, f.rows))

    def entry(i: Value, j: Value) -> Value:
        return f.T.at(i * f.r + j).load()

    with f.loop(-1, start=f.rank - 1, step=-1) as k:
        with f.loop(f.rank, start=k.i + 1, left=z.at(k.i).load()) as l:
            l.left = l.left - entry(k.i, l.i) * z.at(l.i).load()
        z.at(k.i).store(l.left / entry(k.i, k.i))
        d.call_axpy(f.x, z.at(k.i).load(), f.Q.at(k.i * f.n), f.n)
    with f.loop(f.rank) as k:
        with f.loop(k.i, left=z.at(k.i).load()) as l:
            l.left = l.left - entry(l.i, k.i) * z.at(l.i).load()
        z.at(k.i).store(l.left / entry(k.i, k.i))
        d.call_axpy(f.N, z.at(k.i).load(), f.P.at(k.i * f.rows), f.rows)
    f.ret()


def _add_lost(d: DenseCode) -> None:
    """double @lost_of(P, m_padded, rank, b, rest)."""
    f = d.m.function("lost_of", F64, P=PTR, rows=I64, rank=I64, b=PTR, rest=PTR)
    d.scale(f.rest, f.const(F64, 1.0), f.b, f.rows)
    with f.loop(f.rank) as k:
        f.call(F64, "without", f.rest, f.P.at(k.i * f.rows), f.rows)
    with f.loop(f.rows, some=True, top=f.zero(F64)) as s:
        size = f.call(F64, "llvm.fabs.f64", f.rest.at(s.i).load())
        s.top = f.select(size > s.top, size, s.top)
    f.ret(s.top)
