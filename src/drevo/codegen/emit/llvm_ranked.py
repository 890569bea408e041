"""The complete orthogonal decomposition of rows of any rank, in loops: W = P T Q.

Q (rank, n) are orthonormal rows, chosen one by one with the most that is left of W's rows; P (m, rank) has
orthonormal columns, T is upper triangular. Each is made by Gram and Schmidt's steps, twice, which is enough:

  Kahan and Parlett, in Parlett 1980, "The symmetric eigenvalue problem", 6.9;
  Golub and Van Loan, "Matrix computations", 5.4.2 (column pivoting), 5.5 (complete orthogonal decompositions).
"""

from __future__ import annotations

from .ir import F64, I64, PTR, VOID, IRFunction, Module, Value

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

    def decompose(self, least: float) -> Value:
        """The rank: of directions with more left than `least` of the first one's length."""
        f = self.f
        most = min(self.m, self.n)
        return f.call(I64, "decompose", self.W, self.Q, self.P, self.T, *self.sizes, most, f.const(F64, least))

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


def _add_decompose(m: Module) -> None:
    """i64 @decompose(W, Q, P, T, m, n, m_padded, r, most, least): the rank."""
    f = m.function(
        "decompose", I64, W=PTR, Q=PTR, P=PTR, T=PTR, m=I64, n=I64, rows=I64, r=I64, most=I64, least=F64
    )
    with f.loop(f.most * f.rows, step=SIDE) as s:
        f.P.at(s.i).store(f.zero(_MANY), 8)
    limit = f.least * f.least
    with f.loop(rank=0, floor=f.zero(F64)) as k:
        with f.loop(f.m, some=True, best=0, size=f.const(F64, -1.0)) as j:
            row = f.W.at(j.i * f.n)
            left = f.call(F64, "inner", row, row, f.n)
            j.best, j.size = f.select(left > j.size, j.i, j.best), f.select(left > j.size, left, j.size)
        k.floor = f.select(k.rank.equals(0), j.size * limit, k.floor)
        k.leave(~(j.size > k.floor))
        q, c = f.Q.at(k.rank * f.n), f.P.at(k.rank * f.rows)
        source, scale = f.W.at(j.best * f.n), f.const(F64, 1.0) / f.call(F64, "llvm.sqrt.f64", j.size)
        with f.loop(f.n, step=SIDE, some=True) as s:
            q.at(s.i).store(source.at(s.i).load(_MANY, 8) * scale.splat(SIDE), 8)
        with f.loop(f.m, some=True) as j:
            c.at(j.i).store(f.call(F64, "without", f.W.at(j.i * f.n), q, f.n))
        k.rank = k.rank + 1
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
