"""The plan of what leaves the registers, by a machine that has no more of them, and by the bits of kernels."""

from __future__ import annotations

import numpy as np
import pytest

import drevo
from drevo.codegen.emit import llvm_planned
from drevo.codegen.emit.registers import departures, grouped
from drevo.codegen.emit.steps import FMA, SINCOS, Step, operands, step_results
from drevo.codegen.graph.ops import ADD, MUL

INPUTS = range(20)


def random_steps(rng: np.random.Generator, count: int) -> list[Step]:
    """Each reads old and young values; now and then sines, alone and in pairs."""
    steps, values = list[Step](), [*INPUTS]
    for k in range(count):
        young = values[-40:] if rng.random() < 0.7 else values
        a, b, c = (2 * int(x) + int(rng.integers(2)) for x in rng.choice(young, 3))
        to = 100 + 2 * k
        op = SINCOS if rng.random() < 0.05 else int(rng.choice([ADD, MUL, FMA]))
        steps.append((op, to, a, to + 1 if op == SINCOS else b, c if op == FMA else 0))
        values += step_results(steps[-1])
    return steps


@pytest.mark.parametrize("registers", [16, 32])
def test_a_machine_with_so_many_registers_reads_the_right_values(registers: int) -> None:
    rng = np.random.default_rng(registers)
    for count in (1, 50, 700):
        groups = list(grouped(random_steps(rng, count)))
        plan = departures(groups, registers, set(INPUTS))
        here, memory, stored = set[int](), dict[int, int](), set[int]()
        for group, gone in zip(groups, plan.after, strict=True):
            for v in (e >> 1 for step in group for e in operands(step)):
                if v in stored:
                    assert memory[plan.slot[v]] == v
                else:
                    assert v in here or v in INPUTS
                here.add(v)
            here.update(v for step in group for v in step_results(step))
            for v in gone:
                here.remove(v)
                if v in plan.slot and v not in stored:
                    memory[plan.slot[v]] = v
                    stored.add(v)
        assert len(memory) == plan.slots


@pytest.mark.parametrize("registers", [16, 32])
def test_no_more_values_are_at_hand_than_there_are_registers(registers: int) -> None:
    groups = list(grouped(random_steps(np.random.default_rng(1), 900)))
    plan = departures(groups, registers, set(INPUTS))
    last = {e >> 1: k for k, group in enumerate(groups) for step in group for e in operands(step)}
    here = set[int]()
    for k, (group, gone) in enumerate(zip(groups, plan.after, strict=True)):
        for step in group:
            here.update((*(e >> 1 for e in operands(step)), *step_results(step)))
        here = {v for v in here if last.get(v, -1) > k}.difference(gone)
        assert len(here) < registers
        if k + 1 < len(groups) and groups[k + 1][0][0] == SINCOS:
            assert not here  # a call keeps none


def test_planned_kernels_give_the_bits_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = drevo.load("puma560")
    rng = np.random.default_rng(0)
    given = robot.random(rng, 37), *rng.normal(size=(2, 37, robot.nv))
    found = []
    for limit in (10, 1 << 30):
        monkeypatch.setattr(llvm_planned, "LONG", limit)
        f = drevo.compile(robot, "forward_dynamics", cache=False)
        columns = drevo.compile(robot, "forward_dynamics", layout="batch_last", cache=False)
        found.append((f(*given), columns(*(np.ascontiguousarray(x.T) for x in given)).T))
    np.testing.assert_array_equal(*(x for x, _ in found))
    np.testing.assert_array_equal(*(x for _, x in found))
