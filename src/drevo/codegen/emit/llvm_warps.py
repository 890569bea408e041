"""Limbs of one robot side by side on a GPU: a warp each, a sample a lane; for batches that leave most of it idle.

What depends on one limb alone is computed by its warp, and what depends on none by each warp that needs it. What
depends on several is computed by one of them, the main one, unless only one limb's results need it: then that
limb's warp computes it. So there are three stages, with barriers between, over which numbers go through the memory
that a block shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from .ir import I8, I32, I64, PTR, VOID, Module
from .llvm_kernel import Kernel
from .llvm_ports import ALONE, column_ports
from .llvm_target import Target
from .lower import Lowered, Port
from .outline import sinks_of
from .split import SplitSteps, StepRun
from .steps import GUARD, Step, operands, step_results

LANES = 32  # of a warp
SHARED = 48 * 1024  # bytes of memory that a block may share without asking
WARPS = 8  # of a block
THREAD = "llvm.nvvm.read.ptx.sreg"
BARRIER = "llvm.nvvm.barrier0"
WarpSteps = tuple[list[Step], list[Step], list[Step]]


class LimbCut(NamedTuple):
    """A way to cut a robot: which limb each coordinate and each rate belongs to; -1: none."""

    q: tuple[int, ...]
    v: tuple[int, ...]
    number: int

    def of(self, ports: Iterable[Port]) -> list[Sequence[int]]:
        """Which limb each scalar of some ports belongs to; of none, where not one a coordinate or rate."""
        known: dict[tuple[int, ...], Sequence[int]] = {(len(self.q),): self.q, (len(self.v),): self.v}
        return [known.get(p.shape, (-1,) * p.size) for p in ports]


class Shares(NamedTuple):
    """warps: the steps of each, by stage. home: value -> the warp that has it, but for those that several have.
    slot: values that cross -> places in shared memory."""

    warps: tuple[WarpSteps, ...]
    main: int
    home: Mapping[int, int]
    slot: Mapping[int, int]

    @property
    def longest(self) -> int:
        """Steps, one after the other."""
        return sum(max(len(stages[k]) for stages in self.warps) for k in range(3))


def shares_of(low: Lowered, limbs: LimbCut) -> Shares:
    """The steps shared out among the limbs."""
    steps = [s for s in low.steps if s[0] != GUARD]
    on, by = _depends(low, steps, limbs), _needed(low, steps, limbs)
    place: dict[int, tuple[int, int]] = {}  # (warp, stage); the main warp is -1
    for step in steps:
        mask, needs = on[step[1]], reduce(or_, (by.get(v, 0) for v in step_results(step)))
        if mask:
            alone = _only(mask)
            where = (
                (alone, 0) if alone >= 0 else (_only(needs), 2) if 0 <= _only(needs) < limbs.number else (-1, 1)
            )
            place.update(dict.fromkeys(step_results(step), where))
    own = [sum(place.get(s[1]) == (k, 0) for s in steps) for k in range(limbs.number)]
    main = own.index(min(own))
    place = {v: (main if k < 0 else k, stage) for v, (k, stage) in place.items()}
    wanted = {e >> 1 for port in low.stores for e in port} - place.keys()
    found = [_of_warp(steps, place, k, wanted if k == main else set()) for k in range(limbs.number)]
    crossing = {
        e >> 1
        for k, stages in enumerate(found)
        for step in (s for stage in stages for s in stage)
        for e in operands(step)
        if place.get(e >> 1, (k,))[0] != k
    }
    home = {v: k for v, (k, _) in place.items()}
    return Shares(tuple(found), main, home, {v: k for k, v in enumerate(sorted(crossing))})


def _depends(low: Lowered, steps: Sequence[Step], limbs: LimbCut) -> dict[int, int]:
    """Value -> the limbs it depends on, a bit each."""
    ports = limbs.of(low.inputs)
    owners = {v: ports[port][k] for v, (port, k) in low.where.items()}
    found = {v: 1 << k if k >= 0 else 0 for v, k in owners.items()}
    for step in steps:
        mask = reduce(or_, (found.get(e >> 1, 0) for e in operands(step)), 0)
        found.update(dict.fromkeys(step_results(step), mask))
    return found


def _needed(low: Lowered, steps: Sequence[Step], limbs: LimbCut) -> dict[int, int]:
    """Value -> the limbs whose results need it; one bit more for those of no limb."""
    found: dict[int, int] = {}
    for port, owners in zip(low.stores, limbs.of(low.outputs)):
        for e, k in zip(port, owners):
            found[e >> 1] = found.get(e >> 1, 0) | 1 << (k if k >= 0 else limbs.number)
    for step in reversed(steps):
        mask = reduce(or_, (found.get(v, 0) for v in step_results(step)))
        for e in operands(step):
            found[e >> 1] = found.get(e >> 1, 0) | mask
    return found


def _only(mask: int) -> int:
    """The one bit of a mask; -1 if there are several."""
    return mask.bit_length() - 1 if mask & (mask - 1) == 0 else -1


def _of_warp(
    steps: Sequence[Step], place: Mapping[int, tuple[int, int]], warp: int, wanted: set[int]
) -> WarpSteps:
    """A warp's own steps, and those of no limb that it needs, all in their order."""
    found: WarpSteps = ([], [], [])
    for step in reversed(steps):
        made = step_results(step)
        k, stage = place.get(step[1], (warp, 0))
        if k == warp and (step[1] in place or not wanted.isdisjoint(made)):
            found[stage].append(step)
            wanted.update(e >> 1 for e in operands(step))
    for stage_ in found:
        stage_.reverse()
    return found


def warps_text(low: Lowered, target: Target, name: str, shares: Shares, rows: bool = False) -> str:
    """A kernel for blocks of as many warps as there are limbs: block i computes LANES samples, the last ones of a
    batch that is no multiple of them again and again."""
    m, one, count = Module("alwaysinline"), target.of(1), len(shares.slot)
    size = count * LANES * one.size
    m.data["shared"] = f"@shared = internal addrspace(3) global [{max(1, size)} x i8] undef, align 16"
    for k in range(len(shares.warps)):
        _add_warp(m, low, target, shares, k)
    names = [f"in{i}" for i in range(len(low.inputs))] + [f"out{i}" for i in range(len(low.outputs))]
    f = m.function(name, "ptx_kernel void", dict.fromkeys(names, ALONE) | {"n": I64}, public=True)
    block, thread = (f.call(I32, f"{THREAD}.{x}.x").cast("zext", I64) for x in ("ctaid", "tid"))
    lane, warp = thread & (LANES - 1), thread >> (LANES.bit_length() - 1)
    i = f.smaller(block * LANES + lane, f.n - 1)
    step = f.const(I64, one.size) if rows else f.n * one.size
    sizes = [p.size if rows else 1 for p in (*low.inputs, *low.outputs)]
    pairs = [y for x, n in zip(names, sizes) for y in (f.arguments[x].at(i * n, one.type), step)]
    memory = f.let(PTR, "addrspacecast ptr addrspace(3) @shared to ptr").at(lane * one.size, I8)
    for k in range(len(shares.warps)):
        with f.when(warp.equals(k)):
            f.call(VOID, f"warp{k}", *pairs, memory)
    f.put("ret void")
    return m.text()


def _add_warp(m: Module, low: Lowered, target: Target, shares: Shares, k: int) -> None:
    """@warp<k>: its steps by stages; a barrier before each but the first, if any warp has something left there."""
    slot = {v: at * LANES for v, at in shares.slot.items()}
    split = SplitSteps((StepRun((), 0),), slot, len(slot), {})
    ports = column_ports(low, target.of(1))._replace(fixed=True)
    kernel = Kernel(low, target._replace(lanes=1), split, ports)
    kernel.sinks = {v: x for v, x in sinks_of(low).items() if shares.home.get(v, shares.main) == k}
    f = m.function(f"warp{k}", VOID, ports.arguments | {"scratch": PTR})
    body = kernel.body(f)
    if k == shares.main:
        body.first()
    for n, steps in enumerate(shares.warps[k]):
        if n and any(any(stages[n:]) for stages in shares.warps):
            f.call(VOID, BARRIER)
        body.go_on(steps)
    f.ret()


def best_shares(low: Lowered, ways: Iterable[LimbCut], size: int, most: float) -> Shares | None:
    """Of ways to cut a robot that with the fewest steps one after the other. None where these are more than `most`
    of all, or take more memory than a block shares. size: of a number, bytes."""
    found = [shares_of(low, limbs) for limbs in ways if 1 < limbs.number <= WARPS]
    fit = [s for s in found if len(s.slot) * LANES * size <= SHARED and s.longest <= most * len(low.steps)]
    return min(fit, key=lambda s: s.longest, default=None)
