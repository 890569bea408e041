"""The solution of H x = b by H = L^T D L in loops over the rows of H, which pass over what is zero in all lanes.

So bodies that do not touch cost one another nothing, whatever might touch.

  Featherstone 2005, Efficient factorization of the joint-space inertia matrix for branched kinematic trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....codegen.llvm.ir import I8, I64, Value
from ....codegen.llvm.stages import StageCalls


def plus_product(c: StageCalls, z: Value, x: Value, y: Value) -> Value:
    """z + x y, by one instruction where the machine has it."""
    return c.f.call(c.l.type, f"llvm.fma.{c.l.suffix}", x, y, z) if c.fma else z + x * y


def minus_product(c: StageCalls, z: Value, x: Value, y: Value) -> Value:
    """z - x y."""
    return plus_product(c, z, c.f.let(x.type, f"fneg {x.type} {x.text}"), y)


class FactorLoops:
    """The loops for one pattern. rows: its columns by row, in the order of elimination; entry: where each stands.

    Blocks: "H", the matrix; "F", of its size; "x", of a number for each row.
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], entry: Sequence[Mapping[int, int]], order: Sequence[int]
    ) -> None:
        self.n, self.order = len(rows), list(order)
        self.diagonal = [entry[k][k] for k in range(self.n)]
        self.starts, self.columns, self.entries = [0], list[int](), list[int]()
        for k, row in enumerate(rows):
            self.columns += [j for j in row if j < k]
            self.entries += [entry[k][j] for j in row if j < k]
            self.starts.append(len(self.columns))
        self.all = [entry[i].get(j, 0) for i in range(self.n) for j in range(self.n)]

    def write(self, c: StageCalls, right: str, out: str, where: str = "") -> None:
        """out = -H^-1 right, over rates; where: the block that is positive in lanes that take it."""
        self.factorise(c)
        self.solve(c, c.at(right), c.at(out), where, minus=True)

    def factorise(self, c: StageCalls) -> None:
        """From the last row on: 1 / D to the diagonal of "F", D L stays beside it."""
        self.c, self.f, self.F, self.x = c, c.f, c.at("F"), c.at("x")
        used, f, F = [*self.diagonal, *self.entries], c.f, self.F
        with f.loop(len(used), some=True) as i:
            entry = self._item(used, i.i)
            self._put(F, entry, self._load(c.at("H"), entry))
        with f.loop(self.n, some=True) as i:
            k = f.value(self.n - 1) - i.i
            start, at = self._item(self.starts, k), self._item(self.diagonal, k)
            inverse = f.const(c.l.type, 1.0) / self._load(F, at)
            self._put(F, at, inverse)
            with f.loop(self._item(self.starts, k + 1) - start) as a:
                h, j = self._load(F, self._item(self.entries, start + a.i)), self._item(self.columns, start + a.i)
                with f.when(c.any(h.differs(0.0))):
                    self._less(start, a.i, j, h * inverse)

    def solve(self, c: StageCalls, right: Value, out: Value, where: str = "", minus: bool = False) -> None:
        """out = H^-1 right, or less it, at addresses of vectors over rates."""
        f = c.f
        with f.loop(self.n, some=True) as i:
            self._put(self.x, i.i, self._load(right, self._item(self.order, i.i)))
        self._inwards()
        with f.loop(self.n, some=True) as i:
            p, rate = self._solved(i.i), self._item(self.order, i.i)
            p = -p if minus else p
            if where:
                p = f.select(c.load(where) > 0.0, p, self._load(out, rate))
            self._put(out, rate, p)

    def _inwards(self) -> None:
        """x becomes D^-1 L^-T x, from the last row on."""
        c, f, F, x = self.c, self.f, self.F, self.x
        with f.loop(self.n, some=True) as i:
            k = f.value(self.n - 1) - i.i
            start = self._item(self.starts, k)
            y = self._load(x, k) * self._load(F, self._item(self.diagonal, k))
            self._put(x, k, y)
            with f.loop(self._item(self.starts, k + 1) - start) as a:
                h, j = self._load(F, self._item(self.entries, start + a.i)), self._item(self.columns, start + a.i)
                self._put(x, j, minus_product(c, self._load(x, j), h, y))

    def _less(self, start: Value, last: Value, i: Value, share: Value) -> None:
        """Takes a share of a row, up to its entry `last`, from row i."""
        with self.f.loop(last + 1, some=True) as b:
            other = self._load(self.F, self._item(self.entries, start + b.i))
            to = self._item(self.all, i * self.n + self._item(self.columns, start + b.i))
            self._put(self.F, to, minus_product(self.c, self._load(self.F, to), share, other))

    def _solved(self, k: Value) -> Value:
        """x of row k by those before it."""
        start, F, x = self._item(self.starts, k), self.F, self.x
        with self.f.loop(self._item(self.starts, k + 1) - start, carry={"sum": self.f.zero(self.c.l.type)}) as a:
            h, j = self._load(F, self._item(self.entries, start + a.i)), self._item(self.columns, start + a.i)
            a.sum = plus_product(self.c, a.sum, h, self._load(x, j))
        y = minus_product(self.c, self._load(x, k), self._load(F, self._item(self.diagonal, k)), a.sum)
        self._put(x, k, y)
        return y

    def _load(self, base: Value, k: Value) -> Value:
        return base.at(k * self.c.l.bytes, I8).load(self.c.l.type, self.c.l.bytes)

    def _put(self, base: Value, k: Value, y: Value) -> None:
        base.at(k * self.c.l.bytes, I8).store(y, self.c.l.bytes)

    def _item(self, values: Sequence[int], k: Value) -> Value:
        return self.c.table(I64, list(values) or [0]).at(k, I64).load(I64)
