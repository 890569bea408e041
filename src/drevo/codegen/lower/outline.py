"""Sections of a program that do the same work on other values: emitted once, called for each.

Column after column of a solve reads one factorised matrix and differs in its right-hand side alone. What differs
lies in a frame, one per call; a sign that differs goes into the frame with the value.

Steps split into functions: runs of some hundred steps, and outlined runs, which are called several times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..graph.ops import ADD, MUL
from .lower import Lowered
from .schedule import FMA, SOON, Step, operands, step_results

SMALLEST = 100  # steps: below it a call costs more than code
FRAME = 4  # steps for each value that differs, at least
Sinks = dict[int, list[tuple[int, int, int]]]  # value -> (port, column, sign)


class Outlined(NamedTuple):
    """Runs like the first, whose function serves them all.

    frame: its values that differ; edges, shifts: by run, what stands for these, and how far the columns move.
    """

    runs: tuple[range, ...]
    frame: tuple[int, ...]
    edges: tuple[tuple[int, ...], ...]
    shifts: tuple[int, ...]


def sinks_of(low: Lowered) -> Sinks:
    """Maps each stored value to its places: port, column and sign."""
    out: Sinks = {}
    for port, edges in enumerate(low.stores):
        for column, e in enumerate(edges):
            out.setdefault(e >> 1, []).append((port, column, e & 1))
    return out


def outline(low: Lowered) -> list[Outlined]:
    """All groups of at least two sections that do the same."""
    sinks = sinks_of(low)
    alike: dict[tuple[int, ...], list[range]] = {}
    for run in sections(low):
        if len(run) >= SMALLEST:
            alike.setdefault(tuple(low.steps[k][0] for k in run), []).append(run)
    groups = [runs for runs in alike.values() if len(runs) > 1]
    kept = closed_runs(low, [run for runs in groups for run in runs])
    found: list[Outlined] = []
    for runs in groups:
        found += _outlined_groups(low, sinks, [run for run in runs if run.start in kept])
    return found


def _outlined_groups(low: Lowered, sinks: Sinks, runs: list[range]) -> Iterator[Outlined]:
    """Groups runs with the same operations: those that do the same as the first run, then groups of the rest."""
    while len(runs) > 1:
        images = {run: _image(low, sinks, runs[0], run) for run in runs}
        same = {run: image for run, image in images.items() if image is not None}
        group = _outlined(low, sinks, list(same), list(same.values())) if len(same) > 1 else None
        if group is not None:
            yield group
        runs = [run for run in runs[1:] if run not in same]


def sections(low: Lowered) -> list[range]:
    """Runs of steps whose nodes were made in one section."""
    of = [bisect_right(low.sections, step[1]) for step in low.steps]
    starts = [k for k in range(len(of)) if not k or of[k] != of[k - 1]]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(of)])]


def closed_runs(low: Lowered, runs: Iterable[range]) -> set[int]:
    """Starts of the runs whose values no other step reads."""
    home = {v: run.start for run in runs for k in run for v in step_results(low.steps[k])}
    at = {k: run.start for run in runs for k in run}
    open_ = {
        home[e >> 1]
        for k, step in enumerate(low.steps)
        for e in operands(step)
        if e >> 1 in home and at.get(k) != home[e >> 1]
    }
    return set(home.values()) - open_


# -- likeness -----------------------------------------------------------------------------------------------

ValueMap = dict[int, int]  # value of the first run -> edge of another
FIXED = -1  # stands for every value that both runs read, sign and all


class Signs:
    """Relative signs of the values of two runs, equal or opposite: equations between two signs at a time."""

    def __init__(self) -> None:
        self.up: dict[int, tuple[int, int]] = {}
        self.right = True

    def root(self, v: int) -> tuple[int, int]:
        """The value that stands for all that are tied to v, and the sign of v against it."""
        sign, path = 0, [v]
        while path[-1] in self.up:
            path.append(self.up[path[-1]][0])
        for x in reversed(path[:-1]):
            sign ^= self.up[x][1]
            self.up[x] = (path[-1], sign)
        return path[-1], sign

    def tie(self, a: int, b: int, differ: int) -> None:
        """The signs of a and b differ or do not; `right` tells whether all that was tied can hold."""
        (x, s), (y, t) = self.root(a), self.root(b)
        if x != y:
            x, y = (y, x) if y == FIXED else (x, y)
            self.up[y] = (x, s ^ t ^ differ)
        elif s ^ t != differ:
            self.right = False


def _image(low: Lowered, sinks: Sinks, first: range, other: range) -> ValueMap | None:
    """Maps the values of the first run to those of the other, or None if it does something else."""
    signs = Signs()
    value = _paired(low, signs, first, other)
    if value is None:
        return None
    for k in first:
        v = low.steps[k][1]
        for (_, _, mine), (_, _, its) in zip(sorted(sinks.get(v, ())), sorted(sinks.get(value[v], ()))):
            signs.tie(FIXED, v, mine ^ its)
    image = {v: 2 * other + signs.root(v)[1] for v, other in value.items()}
    return image if signs.right and _shift(low, sinks, first, image) is not None else None


def _paired(low: Lowered, signs: Signs, first: range, other: range) -> dict[int, int] | None:
    """Value of the first run -> value of the other, their signs tied; None where the steps do not pair."""
    value: dict[int, int] = {}
    for k, l in zip(first, other):
        s, t = low.steps[k], low.steps[l]
        for a, b in zip(operands(s), operands(t)):
            own = a >> 1 not in low.constants and b >> 1 not in low.constants and b >> 1 not in low.where
            if value.setdefault(a >> 1, b >> 1) != b >> 1 or not (a >> 1 == b >> 1 or own):
                return None
            if a >> 1 == b >> 1:
                signs.tie(FIXED, a >> 1, 0)
        if s[0] not in (ADD, MUL, FMA) or not _turned(signs, s, t):
            return None
        value[s[1]] = t[1]
    return value


def _turned(signs: Signs, s: Step, t: Step) -> bool:
    """Ties the signs of a step; a product must have a factor that both runs share."""
    at = [e >> 1 for e in operands(s)]
    differ = [(a ^ b) & 1 for a, b in zip(operands(s), operands(t))]
    if s[0] == ADD:
        signs.tie(at[0], at[1], differ[0] ^ differ[1])
        signs.tie(at[0], s[1], differ[0])
        return True
    x, y = at[:2]
    shared = [v for v, a, b in zip((x, y), operands(s), operands(t)) if a >> 1 == b >> 1]
    if not shared:
        return False
    signs.tie(y if x == shared[0] else x, s[1], differ[0] ^ differ[1])
    if s[0] == FMA:
        signs.tie(at[2], s[1], differ[2])
    return True


def _shift(low: Lowered, sinks: Sinks, first: range, image: ValueMap) -> int | None:
    """By how many columns all outputs of the other run are apart from those of the first."""
    shifts = set()
    for k in first:
        v = low.steps[k][1]
        mine, its = sorted(sinks.get(v, ())), sorted(sinks.get(image[v] >> 1, ()))
        if [p for p, _, _ in mine] != [p for p, _, _ in its]:
            return None
        shifts |= {y - x for (_, x, _), (_, y, _) in zip(mine, its)}
    return shifts.pop() if len(shifts) == 1 else None


def _outlined(low: Lowered, sinks: Sinks, runs: list[range], images: list[ValueMap]) -> Outlined | None:
    made = {v for k in runs[0] for v in step_results(low.steps[k])}
    frame = tuple(v for v in images[0] if v not in made and any(image[v] != 2 * v for image in images))
    if len(frame) * FRAME > len(runs[0]):
        return None
    shifts = tuple(_shift(low, sinks, runs[0], image) or 0 for image in images)
    return Outlined(tuple(runs), frame, tuple(tuple(image[v] for v in frame) for image in images), shifts)


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
