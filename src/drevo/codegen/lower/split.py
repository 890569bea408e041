"""Steps split into functions: runs of some hundred steps, and outlined runs, which are called several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .lower import Lowered
from .outline import Outlined
from .schedule import SOON
from .steps import Step, operands, step_results

ONE_FUNCTION = 6_000  # steps; register allocation grows faster than linearly beyond
CHUNK, SHORT = 1_200, 400  # steps of a function; short ones where compiling takes seconds


class StepRun(NamedTuple):
    """Consecutive steps that make one function. frame: of an outlined run the first slot of its own values.

    code: the run whose function is called, with the outputs `shift` columns on.
    """

    steps: Sequence[Step]
    code: int
    frame: int = 0
    shift: int = 0
    values: tuple[int, ...] = ()  # that lie in the frame, in order


class SplitSteps(NamedTuple):
    """`slot`: values that cross from one run to a later one; `framed`: value -> (slot in a frame, sign)."""

    runs: tuple[StepRun, ...]
    slot: dict[int, int]
    slots: int
    framed: dict[int, list[tuple[int, int]]]


def split_functions(low: Lowered, chunk: int | None, outlined: Sequence[Outlined] = ()) -> SplitSteps:
    """Runs of `chunk` steps, and the outlined ones; a slot is never reused inside the run that last reads it."""
    spans = _pieces(len(low.steps), chunk or _size(len(low.steps)), [run for r in outlined for run in r.runs])
    first = {span.start: n for n, span in enumerate(spans)}
    copies = {first[run.start]: (r, k) for r in outlined for k, run in enumerate(r.runs)}
    slot, count = _slots(low, spans, _last_readers(low, spans, copies))
    runs: list[StepRun] = []
    framed: dict[int, list[tuple[int, int]]] = {}
    for n, span in enumerate(spans):
        steps = [low.steps[i] for i in span]
        if n not in copies:
            runs.append(StepRun(steps, n))
            continue
        r, k = copies[n]
        runs.append(StepRun(steps, first[r.runs[0].start], count, r.shifts[k], r.frame))
        for e in r.edges[k]:
            framed.setdefault(e >> 1, []).append((count, e & 1))
            count += 1
    return SplitSteps(tuple(runs), slot, count, framed)


def _size(steps: int) -> int:
    """Chooses the number of steps in a run, from the number of all steps."""
    if steps <= ONE_FUNCTION:
        return max(1, steps)
    return CHUNK if steps <= SOON else SHORT


def _last_readers(
    low: Lowered, spans: Sequence[range], copies: Mapping[int, tuple[Outlined, int]]
) -> dict[int, int]:
    """Value -> the last run that reads it, otherwise than from a frame."""
    of = {k: n for n, span in enumerate(spans) for k in span}
    born = {v for step in low.steps for v in step_results(step)}
    own = {n: {e >> 1 for e in r.edges[k]} for n, (r, k) in copies.items()}
    last: dict[int, int] = {}
    for k, step in enumerate(low.steps):
        apart = own.get(of[k], ())
        last.update((e >> 1, of[k]) for e in operands(step) if e >> 1 in born and e >> 1 not in apart)
    return last


def _pieces(total: int, size: int, apart: Sequence[range]) -> list[range]:
    """All steps in order: the runs that stand apart, and what is between them by `size`."""
    out: list[range] = []
    at = 0
    for run in [*sorted(apart, key=lambda r: r.start), range(total, total)]:
        out += [range(k, min(k + size, run.start)) for k in range(at, run.start, size)]
        out += [run] if run else []
        at = run.stop
    return out if out and out[0] not in apart else [range(0), *out]


def _slots(low: Lowered, spans: Sequence[range], last: dict[int, int]) -> tuple[dict[int, int], int]:
    """Slots of the values that are read in a later run than they are made in."""
    slot: dict[int, int] = {}
    release: list[list[int]] = [[] for _ in spans]
    free: list[int] = []
    count = 0
    for k, span in enumerate(spans):
        for v in (v for i in span for v in step_results(low.steps[i]) if last.get(v, k) > k):
            if not free:
                free.append(count)
                count += 1
            slot[v] = free.pop()
            release[last[v]].append(slot[v])
        free += release[k]
    return slot, count
