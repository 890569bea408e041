"""The least of x^T Q x / 2 + g^T x in a box, in machine code: Newton's steps, projected (Bertsekas 1982)."""

from __future__ import annotations

from functools import reduce

from ..ir import F64, PTR, Value
from .tile import DenseCode, MatrixTile

MAX_BOX_STEPS, MAX_BOX_TRIALS = 40, 30
SETTLED = 1e-10  # of x, beside 1 % of a unit: below it a step changes nothing
GRADIENT_SHARE = 0.1  # of what the gradient promises
NAMES = ("Q", "g", "low", "high", "x", "free", "s", "M", "rhs", "slope")
LaneVector = dict[int, Value]  # a vector in the lanes of several values


class Box:
    """double @box(Q, g, low, high, x, free, s, M, rhs, slope): x where it is least, from x; free: 1 where no bound
    holds x, else 0; M: Q of what is free, else 1; slope: Q x + g. Negative where M has no root."""

    def __init__(self, d: DenseCode, m: int, wide: int) -> None:
        self.d, self.m, self.wide = d, m, wide
        self.f = f = d.m.function("box", F64, dict.fromkeys(NAMES, PTR))
        self.g, self.cells, self.zero = f.arguments, list(d.vectors(m)), f.zero(d.l.type)
        self.inside = {c: d.first(f, m - c) > 0.0 for c in self.cells}
        self.low, self.high = self.at("low"), self.at("high")
        self.put("x", {c: self.clipped(x, c) for c, x in self.at("x").items()})
        with f.loop(MAX_BOX_STEPS, some=True) as step:
            x, force = self.at("x"), self.at("g")
            slope = {c: y + force[c] for c, y in self.times("x").items()}
            self.hold(x, slope)
            s = self.newton()
            step.leave(self.largest(s) <= (self.largest(x) + 1e-2) * SETTLED)
            self.search(x, s, slope)
        self.masked()
        f.ret(1.0)

    # -- vectors --------------------------------------------------------------------------------------------

    def at(self, name: str) -> LaneVector:
        f, d = self.f, self.d
        return {c: f.select(self.inside[c], d.load(self.g[name], c), self.zero) for c in self.cells}

    def put(self, name: str, x: LaneVector) -> None:
        for c, y in x.items():
            self.d.store(y, self.g[name], c)

    def times(self, x: str) -> LaneVector:
        """Q x."""
        names = {c: f"y{c}_" for c in self.cells}
        with self.f.loop(self.m, some=True, carry=dict.fromkeys(names.values(), self.zero)) as s:
            by, row = self.d.splat(self.g[x], s.i), self.g["Q"].at(s.i * self.wide)
            for c, name in names.items():
                setattr(s, name, self.d.fused(by, self.d.load(row, c), getattr(s, name)))
        return {c: self.f.select(self.inside[c], getattr(s, name), self.zero) for c, name in names.items()}

    def clipped(self, x: Value, c: int) -> Value:
        x = self.f.select(x < self.low[c], self.low[c], x)
        return self.f.select(x > self.high[c], self.high[c], x)

    def product(self, a: LaneVector, b: LaneVector) -> Value:
        return self.d.total(reduce(lambda total, c: self.d.fused(a[c], b[c], total), self.cells, self.zero))

    def largest(self, a: LaneVector) -> Value:
        f, l, top = self.f, self.d.l, self.zero
        for c in self.cells:
            size = f.call(l.type, f"llvm.fabs.{l.suffix}", a[c])
            top = f.select(size > top, size, top)
        return f.call(F64, f"llvm.vector.reduce.fmax.{l.suffix}", top)

    # -- a step ---------------------------------------------------------------------------------------------

    def hold(self, x: LaneVector, slope: LaneVector) -> None:
        """Marks the free entries: those at no bound that the slope pushes against."""
        self.put("slope", slope)
        for c in self.cells:
            down, up = (x[c] <= self.low[c]) & (slope[c] > 0.0), (x[c] >= self.high[c]) & (slope[c] < 0.0)
            held = self.f.select(down | up, self.zero, self.f.const(self.d.l.type, 1.0))
            self.d.store(held, self.g["free"], c)

    def masked(self) -> None:
        """M."""
        d, g = self.d, self.g
        with self.f.loop(self.m, some=True) as r:
            row, to, mine = g["Q"].at(r.i * self.wide), g["M"].at(r.i * self.wide), d.splat(g["free"], r.i)
            for c in self.cells:
                d.store(d.load(row, c) * mine * d.load(g["free"], c), to, c)
            own = to.at(r.i)
            own.store(own.load() + (self.f.const(F64, 1.0) - g["free"].at(r.i).load()))

    def newton(self) -> LaneVector:
        """-M^-1 of the slope of what is free; the solve leaves no M behind."""
        f, d, g, lanes = self.f, self.d, self.g, self.d.l.lanes
        self.masked()
        with f.loop(self.m, some=True) as r:
            push = g["free"].at(r.i).load() * g["slope"].at(r.i).load()
            d.store(push.splat(lanes), g["rhs"], r.i * lanes)
        lost = d.eliminate(
            f, MatrixTile(g["M"], self.m, self.m, self.wide), MatrixTile(g["rhs"], self.m, lanes, lanes)
        )
        with f.when(~(lost > 0.0)):
            f.ret(-1.0)
        with f.loop(self.m, some=True) as r:
            g["s"].at(r.i).store(-g["rhs"].at(r.i * lanes).load())
        return self.at("s")

    def search(self, x: LaneVector, s: LaneVector, slope: LaneVector) -> None:
        """x moves along s, cut off by the box, as far as that pays."""
        f = self.f
        with f.loop(MAX_BOX_TRIALS, some=True, length=f.const(F64, 1.0)) as trial:
            by = trial.length.splat(self.d.l.lanes)
            moved = {c: self.clipped(x[c] + s[c] * by, c) for c in self.cells}
            change = {c: moved[c] - x[c] for c in self.cells}
            self.put("s", change)
            self.put("x", moved)
            promised = self.product(slope, change)
            found = promised + self.product(self.times("s"), change) * 0.5
            trial.leave(found <= promised * GRADIENT_SHARE)
            trial.length = trial.length * 0.5
