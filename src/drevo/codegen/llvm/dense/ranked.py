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

BELOW = 1e-3  # of the threshold: directions are chosen so far below it, and then their singular values decide
ORTHOGONAL, SWEEPS = 1e-14, 30  # a cosine that is rounding; rotations of all pairs, of which some six are used
SIDE = 8  # numbers side by side, on every machine, so that sums have one order
_MANY = f"<{SIDE} x {F64}>"


def padded(n: int) -> int:
    """Numbers of a row, whole vectors."""
    return -(-n // SIDE) * SIDE


def ranked_room(m: int, n: int) -> int:
    """Scalars that a decomposition works on: W, Q, P and T."""
    r = min(m, n)
    return m * padded(n) + r * (padded(n) + padded(m) + padded(r))


class Ranked:
    """Calls of the functions from another one, for W (m, n) at the start of the room, its rows `padded` long.

    What a row has beyond n must be zero, and stays so.
    """

    def __init__(self, f: IRFunction, m: int, n: int, room: Value, fma: bool) -> None:
        add_ranked(f.module, fma)
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


def add_ranked(m: Module, fma: bool) -> None:
    """@decompose, @solve_ranked, @lost_of and what they call, once."""
    if "decompose" in m.functions:
        return
    _add_dot(m, fma)
    _add_more(m, fma)
    _add_span(m)
    _add_rotate(m)
    _add_pair(m)
    _add_turned(m)
    _add_decompose(m)
    _add_solve(m)
    _add_lost(m)


def _multiply_add(f: IRFunction, fma: bool, x: Value, y: Value, z: Value) -> Value:
    suffix = "f64" if x.type == F64 else f"v{SIDE}f64"
    return f.call(x.type, f"llvm.fma.{suffix}", x, y, z) if fma else x * y + z


def _add_dot(m: Module, fma: bool) -> None:
    """double @inner(x, y, n): n a multiple of SIDE."""
    f = m.function("inner", F64, x=PTR, y=PTR, n=I64)
    with f.loop(f.n, step=SIDE, some=True, total=f.zero(_MANY)) as s:
        x, y = (p.at(s.i).load(_MANY, 8) for p in (f.x, f.y))
        s.total = _multiply_add(f, fma, x, y, s.total)
    total, half = s.total, SIDE
    while half > 1:
        half //= 2
        total = total.shuffle(None, range(half)) + total.shuffle(None, range(half, 2 * half))
    f.ret(f.let(F64, f"extractelement <1 x {F64}> {total.text}, i32 0"))


def _add_more(m: Module, fma: bool) -> None:
    """@more(y, c, x, n): y += c x."""
    f = m.function("more", VOID, y=PTR, c=F64, x=PTR, n=I64)
    c = f.c.splat(SIDE)
    with f.loop(f.n, step=SIDE, some=True) as s:
        place = f.y.at(s.i)
        place.store(_multiply_add(f, fma, c, f.x.at(s.i).load(_MANY, 8), place.load(_MANY, 8)), 8)
    f.ret()


def _add_span(m: Module) -> None:
    """double @without(y, q, n): takes q, of length one, out of y, twice; how much that was."""
    f = m.function("without", F64, y=PTR, q=PTR, n=I64)
    first = f.call(F64, "inner", f.y, f.q, f.n)
    f.call(VOID, "more", f.y, -first, f.q, f.n)
    second = f.call(F64, "inner", f.y, f.q, f.n)
    f.call(VOID, "more", f.y, -second, f.q, f.n)
    f.ret(first + second)


def _add_rotate(m: Module) -> None:
    """@rotate(x, y, c, s, n): c x - s y and s x + c y."""
    f = m.function("rotate", VOID, x=PTR, y=PTR, c=F64, s=F64, n=I64)
    c, s = f.c.splat(SIDE), f.s.splat(SIDE)
    with f.loop(f.n, step=SIDE, some=True) as k:
        at = [p.at(k.i) for p in (f.x, f.y)]
        x, y = (p.load(_MANY, 8) for p in at)
        at[0].store(c * x - s * y, 8)
        at[1].store(s * x + c * y, 8)
    f.ret()


def _add_pair(m: Module) -> None:
    """i64 @pair(W, P, i, j, n, m_padded): makes rows i and j of W orthogonal, P W stays; 0 where they are."""
    f = m.function("pair", I64, W=PTR, P=PTR, i=I64, j=I64, n=I64, rows=I64)
    x, y = (f.W.at(k * f.n) for k in (f.i, f.j))
    xx, yy, xy = (f.call(F64, "inner", *pair, f.n) for pair in ((x, x), (y, y), (x, y)))
    apart = xy * xy > xx * yy * ORTHOGONAL**2
    with f.when(apart):
        one, zeta = f.const(F64, 1.0), (yy - xx) / (xy + xy)
        steep = f.call(F64, "llvm.fabs.f64", zeta) + f.call(F64, "llvm.sqrt.f64", zeta * zeta + 1.0)
        t = f.call(F64, "llvm.copysign.f64", one / steep, zeta)
        c = one / f.call(F64, "llvm.sqrt.f64", t * t + 1.0)
        f.call(VOID, "rotate", x, y, c, c * t, f.n)
        f.call(VOID, "rotate", f.P.at(f.i * f.rows), f.P.at(f.j * f.rows), c, c * t, f.rows)
    f.ret(apart.cast("zext", I64))


def _add_turned(m: Module) -> None:
    """i64 @turned(W, Q, P, T, n, m_padded, r, count, least, scale): the rank; T holds singular values."""
    f = m.function(
        "turned", I64, W=PTR, Q=PTR, P=PTR, T=PTR, n=I64, rows=I64, r=I64, count=I64, least=F64, scale=F64
    )
    with f.loop(f.count, some=True) as k:
        w = f.W.at(k.i * f.n)
        with f.loop(f.n, step=SIDE, some=True) as s:
            w.at(s.i).store(f.zero(_MANY), 8)
        with f.loop(f.count, start=k.i) as l:
            f.call(VOID, "more", w, f.T.at(k.i * f.r + l.i).load(), f.Q.at(l.i * f.n), f.n)
    with f.loop(SWEEPS, some=True) as sweep:
        with f.loop(f.count, some=True, turns=0) as i:
            with f.loop(i.i, turns=i.turns) as j:
                j.turns = j.turns + f.call(I64, "pair", f.W, f.P, i.i, j.i, f.n, f.rows)
            i.turns = j.turns
        sweep.leave(i.turns.equals(0))
    with f.loop(f.count, some=True, top=f.scale) as k:
        w = f.W.at(k.i * f.n)
        size = f.call(F64, "llvm.sqrt.f64", f.call(F64, "inner", w, w, f.n))
        f.T.at(k.i * f.r).store(size)  # its first column
        k.top = f.select(size > k.top, size, k.top)
    with f.loop(f.count, some=True, rank=0) as j:
        size = f.T.at(j.i * f.r).load()
        with f.when(size > k.top * f.least):
            _keep(f, j.i, j.rank, size)
        j.rank = j.rank + (size > k.top * f.least).cast("zext", I64)
    f.ret(j.rank)


def _keep(f: IRFunction, k: Value, rank: Value, size: Value) -> None:
    """Row k of W and column k of P become the next ones of Q and P, with their singular value in T."""
    for source, target, count, scale in (
        (f.W.at(k * f.n), f.Q.at(rank * f.n), f.n, f.const(F64, 1.0) / size),
        (f.P.at(k * f.rows), f.P.at(rank * f.rows), f.rows, f.const(F64, 1.0)),
    ):
        with f.loop(count, step=SIDE, some=True) as s:
            target.at(s.i).store(source.at(s.i).load(_MANY, 8) * scale.splat(SIDE), 8)
    with f.loop(rank) as l:
        f.T.at(l.i * f.r + rank).store(f.zero(F64))
    f.T.at(rank * f.r + rank).store(size)


def _add_decompose(m: Module) -> None:
    """i64 @decompose(W, Q, P, T, m, n, m_padded, r, most, least, scale): the rank."""
    f = m.function(
        "decompose", I64, W=PTR, Q=PTR, P=PTR, T=PTR, m=I64, n=I64, rows=I64, r=I64, most=I64, least=F64, scale=F64
    )
    with f.loop(f.most * f.rows, step=SIDE) as s:
        f.P.at(s.i).store(f.zero(_MANY), 8)
    with f.loop(
        rank=0, floor=f.zero(F64), certain=f.least * f.least * f.m.cast("sitofp", F64), last=f.zero(F64)
    ) as k:
        with f.loop(f.m, some=True, best=0, size=f.const(F64, -1.0)) as j:
            row = f.W.at(j.i * f.n)
            left = f.call(F64, "inner", row, row, f.n)
            j.best, j.size = f.select(left > j.size, j.i, j.best), f.select(left > j.size, left, j.size)
        left = j.size
        top = f.scale * f.scale
        top = f.select(top > left, top, left)
        k.floor = f.select(k.rank.equals(0), top * f.least * f.least * BELOW**2, k.floor)
        k.certain = k.certain * f.select(k.rank.equals(0), top, f.const(F64, 1.0))  # |W|^2, at most
        k.leave(~(left > k.floor))
        q, c = f.Q.at(k.rank * f.n), f.P.at(k.rank * f.rows)
        source, scale = f.W.at(j.best * f.n), f.const(F64, 1.0) / f.call(F64, "llvm.sqrt.f64", left)
        with f.loop(f.n, step=SIDE, some=True) as s:
            q.at(s.i).store(source.at(s.i).load(_MANY, 8) * scale.splat(SIDE), 8)
        with f.loop(f.m, some=True) as j:
            c.at(j.i).store(f.call(F64, "without", f.W.at(j.i * f.n), q, f.n))
        k.rank, k.last, k.certain = k.rank + 1, left, k.certain * 4.0
        k.leave(k.rank >= f.most)
    with f.loop(k.rank) as column:
        p = f.P.at(column.i * f.rows)
        with f.loop(column.i) as l:
            f.T.at(l.i * f.r + column.i).store(f.call(F64, "without", p, f.P.at(l.i * f.rows), f.rows))
        size = f.call(F64, "llvm.sqrt.f64", f.call(F64, "inner", p, p, f.rows))
        f.T.at(column.i * f.r + column.i).store(size)
        back = (f.const(F64, 1.0) / size).splat(SIDE)
        with f.loop(f.rows, step=SIDE, some=True) as s:
            p.at(s.i).store(p.at(s.i).load(_MANY, 8) * back, 8)
    with f.when(~(k.last > k.certain) & (k.rank > 0)):
        f.ret(f.call(I64, "turned", f.W, f.Q, f.P, f.T, f.n, f.rows, f.r, k.rank, f.least, f.scale))
    f.ret(k.rank)


def _add_solve(m: Module) -> None:
    """@solve_ranked(Q, P, T, m, n, m_padded, r, rank, b, x, N): z = T^-1 P^T b, x = Q^T z, N = P T^-T z."""
    f = m.function(
        "solve_ranked", VOID, Q=PTR, P=PTR, T=PTR, m=I64, n=I64, rows=I64, r=I64, rank=I64, b=PTR, x=PTR, N=PTR
    )
    for y, size in ((f.x, f.n), (f.N, f.rows)):
        with f.loop(size, step=SIDE, some=True) as s:
            y.at(s.i).store(f.zero(_MANY), 8)
    z = f.let(PTR, f"alloca {F64}, i64 {f.r.text}")
    with f.loop(f.rank) as k:
        z.at(k.i).store(f.call(F64, "inner", f.P.at(k.i * f.rows), f.b, f.rows))

    def entry(i: Value, j: Value) -> Value:
        return f.T.at(i * f.r + j).load()

    with f.loop(-1, start=f.rank - 1, step=-1) as k:
        with f.loop(f.rank, start=k.i + 1, left=z.at(k.i).load()) as l:
            l.left = l.left - entry(k.i, l.i) * z.at(l.i).load()
        z.at(k.i).store(l.left / entry(k.i, k.i))
        f.call(VOID, "more", f.x, z.at(k.i).load(), f.Q.at(k.i * f.n), f.n)
    with f.loop(f.rank) as k:
        with f.loop(k.i, left=z.at(k.i).load()) as l:
            l.left = l.left - entry(l.i, k.i) * z.at(l.i).load()
        z.at(k.i).store(l.left / entry(k.i, k.i))
        f.call(VOID, "more", f.N, z.at(k.i).load(), f.P.at(k.i * f.rows), f.rows)
    f.ret()


def _add_lost(m: Module) -> None:
    """double @lost_of(P, m_padded, rank, b, rest)."""
    f = m.function("lost_of", F64, P=PTR, rows=I64, rank=I64, b=PTR, rest=PTR)
    with f.loop(f.rows, step=SIDE, some=True) as s:
        f.rest.at(s.i).store(f.b.at(s.i).load(_MANY, 8), 8)
    with f.loop(f.rank) as k:
        f.call(F64, "without", f.rest, f.P.at(k.i * f.rows), f.rows)
    with f.loop(f.rows, some=True, top=f.zero(F64)) as s:
        size = f.call(F64, "llvm.fabs.f64", f.rest.at(s.i).load())
        s.top = f.select(size > s.top, size, s.top)
    f.ret(s.top)
