"""The order of the steps: as the algorithm wrote them, unless another finds more of its operands in registers.

The steps of a kernel: operations of a machine without registers, in the order of execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Literal

from ...errors import EmitError, one_of
from ..graph.ops import BINARY, OPS

FMA, SINCOS, GUARD, TURN, CHOOSE = range(len(OPS), len(OPS) + 5)  # beside the operations of the graph

# (op, to, a, b, c): operands are edges (2 * value + sign); FMA is a * b + c.
# CHOOSE is b where a > 0, else c.
# SINCOS: sin goes to `to`, cos to the *value* b; a is the argument. GUARD: pivot a and its scale b; makes nothing.
# TURN: the angle a * b, an input and a constant, less whole turns where it is large.
Step = tuple[int, int, int, int, int]
# angles reach up to 2 to this power: then rounding leaves r within 2^-10 of its bounds, and n * part is exact
ANGLE_BITS = {("double", True): 40, ("float", True): 20, ("double", False): 20, ("float", False): 11}
_THREE, _TWO = (FMA, CHOOSE), (*BINARY, GUARD, TURN)
_END = [5 if op in _THREE else 4 if op in _TWO else 3 for op in range(CHOOSE + 1)]  # of the operands in a step


def operands(step: Step) -> tuple[int, ...]:
    """The operand edges of a step."""
    return step[2 : _END[step[0]]]


def step_results(step: Step) -> tuple[int, ...]:
    """The values that a step makes."""
    op = step[0]
    if op <= FMA:
        return (step[1],)
    return () if op == GUARD else (step[1], step[3]) if op == SINCOS else (step[1],)


def makers(steps: Sequence[Step]) -> dict[int, int]:
    """Value -> position of the step that makes it."""
    return {v: k for k, step in enumerate(steps) for v in step_results(step)}


def largest_angle(scalar: str, fma: bool) -> float:
    """The largest angle whose sine is still right; above it the result is NaN, never garbage."""
    return 2.0 ** ANGLE_BITS[scalar, fma] * (1.0 - 2.0 ** (-53 if scalar == "double" else -24))


Order = Literal["auto", "create", "column", "greedy"]
SCHEDULE_ORDERS = ("auto", "create", "column", "greedy")
SOON = 20_000  # steps; beyond, to look for a better order takes longer than it saves
REGISTERS = 28
WORTH = 0.95
LONG_PROGRAM_STEPS = 5_000  # steps; beyond, a processor waits for its instructions rather than for results


def scheduled(
    steps: list[Step],
    roots: Sequence[int],
    columns: Sequence[int],
    order: Order,
) -> list[Step]:
    """roots: edges of the outputs in their own order; columns: the same by column, none without matrices."""
    one_of("order", order, SCHEDULE_ORDERS, EmitError)
    steps = _trig_first(steps)
    trig = [s[1] for s in steps if s[0] == SINCOS]

    def greedy() -> list[Step]:
        return _trig_first(_Greedy(steps, [e >> 1 for e in roots]).run())

    def by_column() -> list[Step]:
        return _depth_first(steps, trig + [e >> 1 for e in columns or roots])

    if order == "greedy":
        return greedy()
    if order == "column":
        return by_column()
    if order == "create" or len(steps) > SOON:
        return steps
    if columns:
        best = min([by_column(), greedy()], key=reloads)
        return best if reloads(best) < WORTH * reloads(steps) else steps
    if len(steps) > LONG_PROGRAM_STEPS:
        return min([steps, greedy()], key=reloads)
    return steps


def reloads(steps: Sequence[Step]) -> int:
    """Operands that are not among the last values used: about what a register allocator must load again."""
    near, missed = dict[int, bool](), 0  # the last used last
    for step in steps:
        for e in operands(step):
            missed += near.pop(e >> 1, True)
            near[e >> 1] = False
        for v in step_results(step):
            missed += near.pop(v, True)
            near[v] = False
        while len(near) > REGISTERS:
            del near[next(iter(near))]
    return missed - len(steps)


def _sources(step: Step, maker: dict[int, int]) -> list[int]:
    """Positions of the steps that make the operands of a step."""
    return [maker[e >> 1] for e in operands(step) if e >> 1 in maker]


def _readers(reads: Sequence[Sequence[int]]) -> list[list[int]]:
    """Lists for each step the positions of the steps that read it."""
    users: list[list[int]] = [[] for _ in reads]
    for k, read in enumerate(reads):
        for r in read:
            users[r].append(k)
    return users


def _trig_first(steps: list[Step]) -> list[Step]:
    """Calls spill every live register: they go in front, with what their arguments need."""
    maker = makers(steps)
    front: set[int] = set()
    stack = [k for k, step in enumerate(steps) if step[0] == SINCOS]
    while stack:
        k = stack.pop()
        if k not in front:
            front.add(k)
            stack += _sources(steps[k], maker)
    return [s for k, s in enumerate(steps) if k in front] + [s for k, s in enumerate(steps) if k not in front]


def _depth_first(steps: list[Step], roots: Sequence[int]) -> list[Step]:
    maker, done, out = makers(steps), bytearray(len(steps)), []
    for root in roots:
        stack = [(maker[root], False)] if root in maker else []
        while stack:
            k, leave = stack.pop()
            if leave:
                out.append(steps[k])
            elif not done[k]:
                done[k] = 1
                stack.append((k, True))
                stack += [(source, False) for source in _sources(steps[k], maker)]
    return out


class _Greedy:
    """List scheduling that prefers steps which end the life of their operands."""

    def __init__(self, steps: list[Step], roots: Sequence[int]) -> None:
        self.steps, maker = steps, makers(steps)
        self.reads = [sorted({*_sources(s, maker)}) for s in steps]
        self.users = _readers(self.reads)
        out = {maker.get(v) for v in roots}
        self.gain = [int(k not in out or bool(users)) for k, users in enumerate(self.users)]
        self.left = [*map(len, self.users)]
        self.missing = [*map(len, self.reads)]
        self.done = bytearray(len(steps))
        self.heap = [(-self.score(k), k) for k, m in enumerate(self.missing) if m == 0]
        heapify(self.heap)

    def score(self, k: int) -> int:
        return sum(self.left[r] == 1 for r in self.reads[k]) - self.gain[k]

    def push(self, k: int) -> None:
        heappush(self.heap, (-self.score(k), k))

    def take(self, k: int) -> None:
        self.done[k] = 1
        for r in self.reads[k]:
            self.left[r] -= 1
            if self.left[r] == 1:
                for u in self.users[r]:
                    if not self.done[u] and self.missing[u] == 0:
                        self.push(u)
        for u in self.users[k]:
            self.missing[u] -= 1
            if self.missing[u] == 0:
                self.push(u)

    def run(self) -> list[Step]:
        out = []
        while self.heap:
            score, k = heappop(self.heap)
            if self.done[k]:
                continue
            if -score != self.score(k):  # stale: scores change when operands lose users
                self.push(k)
                continue
            self.take(k)
            out.append(self.steps[k])
        return out
