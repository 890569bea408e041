"""The table of interned nodes: flat lists, in the order of their making. Knows no arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Any

from ...errors import TraceError
from .ops import BINARY, CONST, INPUT

CEILING = 4_000_000  # nodes; beyond it the rolled form is the right tool


class Nodes:
    """Owner of the nodes. They are numbered in the order of their making, operands first."""

    def __init__(self) -> None:
        self.op: list[int] = []
        self.a: list[int] = []  # first operand edge (of a sum: always positive); of a leaf: its number
        self.b: list[int] = []  # second operand edge
        self.level: list[int] = []
        self.constants: list[float] = []  # values of CONST nodes, by their `a`
        self.names: list[str] = []  # names of PARAMETER and INPUT nodes, by their `a`
        self._table: dict[tuple[int, int, int], int] = {}
        self._constant: dict[float, int] = {}
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self.op)

    def __repr__(self) -> str:
        return f"<Graph: {len(self)} nodes>"

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, which belongs to a process."""
        return {key: x for key, x in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()

    def constant(self, value: float) -> int:
        """The edge of a number, whose node is interned."""
        sign = value < 0.0
        value = abs(value)  # also turns -0.0 into 0.0
        with self._lock:
            node = self._constant.get(value)
            if node is None:
                self.constants.append(value)
                node = self._constant[value] = self._append(CONST, len(self.constants) - 1, 0, 0)
        return 2 * node + sign

    def known(self, value: float) -> int | None:
        """The edge of a positive constant that is in use."""
        node = self._constant.get(value)
        return None if node is None else 2 * node

    def _append(self, op: int, a: int, b: int, level: int) -> int:
        if len(self.op) >= CEILING:
            raise TraceError(
                f"the expression grew beyond {CEILING} operations; use the rolled form or fewer outputs"
            )
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.level.append(level)
        return len(self.op) - 1

    def node(self, op: int, a: int, b: int = 0) -> int:
        """The interned node of an operation, without any rule applied."""
        key = (op, a, b)
        node = self._table.get(key)
        if node is None:
            with self._lock:
                node = self._table.get(key)
                if node is None:
                    level, other = self.level[a >> 1], self.level[b >> 1] if op in BINARY else 0
                    node = self._table[key] = self._append(op, a, b, other if other > level else level)
        return node

    def _value(self, edge: int) -> float:
        value = self.constants[self.a[edge >> 1]]
        return -value if edge & 1 else value

    def _is_zero(self, edge: int) -> bool:
        n = edge >> 1
        return self.op[n] == CONST and self.constants[self.a[n]] == 0.0

    def operands(self, node: int) -> tuple[int, ...]:
        """The operand edges of a node."""
        op = self.op[node]
        if op <= INPUT:
            return ()
        return (self.a[node], self.b[node]) if op in BINARY else (self.a[node],)

    def uses(self, nodes: Iterable[int], edges: Iterable[int] = ()) -> list[int]:
        """Counts how often each node is an operand of some nodes, or one of the edges."""
        found, op, a, b = [0] * len(self.op), self.op, self.a, self.b
        for n in nodes:
            if op[n] > INPUT:
                found[a[n] >> 1] += 1
                if op[n] in BINARY:
                    found[b[n] >> 1] += 1
        for e in edges:
            found[e >> 1] += 1
        return found

    def live(self, edges: Iterable[int]) -> list[int]:
        """Nodes that the edges reach, in the order of their making."""
        op, a, b = self.op, self.a, self.b
        found, stack = set[int](), [e >> 1 for e in edges]
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                if op[n] > INPUT:
                    stack.append(a[n] >> 1)
                    if op[n] in BINARY:
                        stack.append(b[n] >> 1)
        return sorted(found)
