"""Steps split into functions: runs of some hundred steps, and outlined runs, which are called several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .lower import CHUNK, ONE_FUNCTION, SHORT, SOON, Lowered, Step, operands, step_results
from .outline import Outlined


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
    n = len(low.steps)
    size = chunk or (max(1, n) if n <= ONE_FUNCTION else CHUNK if n <= SOON else SHORT)
    spans = _pieces(len(low.steps), size, [run for r in outlined for run in r.runs])
    of = {k: n for n, span in enumerate(spans) for k in span}
    first = {span.start: n for n, span in enumerate(spans)}
    copies = {first[run.start]: (r, k) for r in outlined for k, run in enumerate(r.runs)}
    born = {v: of[k] for k, s in enumerate(low.steps) for v in step_results(s)}
    own = {n: {e >> 1 for e in r.edges[k]} for n, (r, k) in copies.items()}  # read from a frame
    last: dict[int, int] = {}
    for k, step in enumerate(low.steps):
        apart = own.get(of[k], ())
        last.update((e >> 1, of[k]) for e in operands(step) if e >> 1 in born and e >> 1 not in apart)
    slot, count = _slots(low, spans, last)
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
    assert all(born[v] < last[v] for v in slot)
    return SplitSteps(tuple(runs), slot, count, framed)


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
