"""Steps split into functions, of some hundred steps each: registers of one of thousands take long to allocate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .lower import Lowered
from .steps import Step, operands, step_results

ONE_FUNCTION = 6_000  # steps; register allocation grows faster than linearly beyond
MAX_FUNCTION_STEPS, SHORT_FUNCTION_STEPS = 1_200, 400  # steps of a function; short ones of LONG_PROGRAM_STEPS
LONG_PROGRAM_STEPS = 20_000  # steps; compiling more takes seconds


class SplitSteps(NamedTuple):
    """Runs of consecutive steps, a function each; `slot`: values that cross from one run to a later one."""

    runs: tuple[Sequence[Step], ...]
    slot: dict[int, int]
    slots: int


def split_functions(low: Lowered, chunk: int | None) -> SplitSteps:
    """Runs of `chunk` steps; a slot is never reused inside the run that last reads it."""
    size = chunk or _size(len(low.steps))
    runs = tuple(low.steps[k : k + size] for k in range(0, len(low.steps), size)) or ((),)
    return SplitSteps(runs, *_slots(runs))


def _size(steps: int) -> int:
    """Chooses the number of steps in a run, from the number of all steps."""
    if steps <= ONE_FUNCTION:
        return max(1, steps)
    return MAX_FUNCTION_STEPS if steps <= LONG_PROGRAM_STEPS else SHORT_FUNCTION_STEPS


def _slots(runs: Sequence[Sequence[Step]]) -> tuple[dict[int, int], int]:
    """Slots of the values that are read in a later run than they are made in."""
    last = {e >> 1: k for k, run in enumerate(runs) for step in run for e in operands(step)}
    slot: dict[int, int] = {}
    release: list[list[int]] = [[] for _ in runs]
    free: list[int] = []
    count = 0
    for k, run in enumerate(runs):
        for v in (v for step in run for v in step_results(step) if last.get(v, k) > k):
            if not free:
                free.append(count)
                count += 1
            slot[v] = free.pop()
            release[last[v]].append(slot[v])
        free += release[k]
    return slot, count
