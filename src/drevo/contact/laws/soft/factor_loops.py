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

    Blocks: "H", the matrix; "F", a lower triangle by rows; "x", of a number for each row.
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], entry: Sequence[Mapping[int, int]], order: Sequence[int]
    ) -> None:
        self.n, self.order = len(rows), list(order)
        self.begins = [k * (k + 1) // 2 for k in range(self.n)]  # of the rows of "F"
        pairs = [(k, j) for k, row in enumerate(rows) for j in row]
        self.used, self.places = [entry[k][j] for k, j in pairs], [self.begins[k] + j for k, j in pairs]
        self.starts, self.columns = [0], list[int]()
        for k, row in enumerate(rows):
            self.columns += [j for j in row if j < k]
            self.starts.append(len(self.columns))

    def write(self, c: StageCalls, right: str, out: str, where: str = "") -> None:
        """out = -H^-1 right, over rates; where: the block that is positive in lanes that take it."""
        self.factorise(c)
        self.solve(c, c.at(right), c.at(out), where, minus=True)

    def factorise(self, c: StageCalls) -> None:
        """From the last row on: 1 / D to the diagonal of "F", D L stays beside it."""
        self.c, self.f, self.F, self.x = c, c.f, c.at("F"), c.at("x")
        f, F = c.f, self.F
        columns = f.alloca(I64, self.n)  # of a row, without those that are zero in all lanes
        with f.loop(len(self.used), some=True) as i:
            self._put(F, self._item(self.places, i.i), self._load(c.at("H"), self._item(self.used, i.i)))
        with f.loop(self.n, some=True) as i:
            k = f.value(self.n - 1) - i.i
            start, count, row = self._row(k)
            inverse = f.const(c.l.type, 1.0) / self._load(F, row + k)
            self._put(F, row + k, inverse)
            with f.loop(count, carry={"many": f.const(I64, 0)}) as a:
                j = self._item(self.columns, start + a.i)
                columns.at(a.many, I64).store(j)
                a.many = a.many + c.any(self._load(F, row + j).differs(0.0)).cast("zext", I64)
            with f.loop(a.many) as a:
                j = columns.at(a.i, I64).load(I64)
                share, other = self._load(F, row + j) * inverse, self._item(self.begins, j)
                with f.loop(a.i + 1, some=True) as b:
                    j = columns.at(b.i, I64).load(I64)
                    less = minus_product(c, self._load(F, other + j), share, self._load(F, row + j))
                    self._put(F, other + j, less)

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
            start, count, row = self._row(k)
            y = self._load(x, k) * self._load(F, row + k)
            self._put(x, k, y)
            with f.loop(count) as a:
                j = self._item(self.columns, start + a.i)
                self._put(x, j, minus_product(c, self._load(x, j), self._load(F, row + j), y))

    def _solved(self, k: Value) -> Value:
        """x of row k by those before it."""
        start, count, row = self._row(k)
        with self.f.loop(count, carry={"sum": self.f.zero(self.c.l.type)}) as a:
            j = self._item(self.columns, start + a.i)
            a.sum = plus_product(self.c, a.sum, self._load(self.F, row + j), self._load(self.x, j))
        y = minus_product(self.c, self._load(self.x, k), self._load(self.F, row + k), a.sum)
        self._put(self.x, k, y)
        return y

    def _row(self, k: Value) -> tuple[Value, Value, Value]:
        """Beginning and number of the columns of a row beside the diagonal, and its beginning in "F"."""
        start = self._item(self.starts, k)
        return start, self._item(self.starts, k + 1) - start, self._item(self.begins, k)

    def _load(self, base: Value, k: Value) -> Value:
        return base.at(k * self.c.l.bytes, I8).load(self.c.l.type, self.c.l.bytes)

    def _put(self, base: Value, k: Value, y: Value) -> None:
        base.at(k * self.c.l.bytes, I8).store(y, self.c.l.bytes)

    def _item(self, values: Sequence[int], k: Value) -> Value:
        return self.c.table(I64, list(values) or [0]).at(k, I64).load(I64)
