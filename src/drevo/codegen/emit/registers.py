"""Which values leave the registers while steps run.

Straight-line code is known to its end: of the values at hand the one that is read last goes (Belady, IBM Systems
Journal 5, 1966). LLVM's allocator comes to about as many moves, but takes half of all its time to find them; where
nothing is left to decide it takes a tenth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from .steps import SINCOS, Step, operands, step_results

SPARE = 8  # one register of so many is for what a step loads, and for the tests
StepGroup = tuple[Step, ...]


class Departures(NamedTuple):
    """after: the values that leave, by group of steps. slot: where they go, those that nothing else keeps; it
    serves another once they are read no more. slots: how many there are."""

    after: list[list[int]]
    slot: dict[int, int]
    slots: int


def grouped(run: Sequence[Step]) -> Iterator[StepGroup]:
    """Steps one by one, but for two sines and cosines that follow one another."""
    k = 0
    while k < len(run):
        pair = tuple(run[k : k + 2])
        whole = (
            len(pair) == 2 and all(s[0] == SINCOS for s in pair) and pair[1][2] >> 1 not in step_results(pair[0])
        )
        yield pair if whole else (run[k],)
        k += 1 + whole


def departures(groups: Sequence[StepGroup], registers: int, kept: Collection[int]) -> Departures:
    """With so many registers, of which a call of sines keeps none. kept: values that are in memory anyway."""
    keep = registers - registers // SPARE
    reads: dict[int, list[int]] = {}  # by value the groups that are still to read it, the next one last
    for k in range(len(groups) - 1, -1, -1):
        for step in groups[k]:
            for e in operands(step):
                reads.setdefault(e >> 1, []).append(k)
    here = dict[int, int]()  # values at hand, by the group that reads them next
    after, slot, taken, free = list[list[int]](), dict[int, int](), dict[int, int](), list[int]()
    for k, group in enumerate(groups):
        for v in [v for step in group for v in (*(e >> 1 for e in operands(step)), *step_results(step))]:
            left = reads.get(v, [])
            while left and left[-1] <= k:
                left.pop()
            if left:
                here[v] = left[-1]
                continue
            here.pop(v, None)
            if v in taken:
                free.append(taken.pop(v))
        room = 0 if k + 1 < len(groups) and groups[k + 1][0][0] == SINCOS else keep
        gone = sorted(here, key=here.__getitem__)[room:] if len(here) > room else []
        for v in gone:
            del here[v]
            if v not in kept and v not in slot:
                slot[v] = taken[v] = free.pop() if free else len(taken)
        after.append(gone)
    return Departures(after, slot, 1 + max(slot.values(), default=-1))
