"""What every test runs under: NumPy's floating point complaints are errors."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import needed
import numpy as np
import pytest

if "pinocchio" in os.environ.get("DREVO_ABSENT", "").split(","):  # no wheels of pin for Windows
    collect_ignore = needed.without("pinocchio")


LONG = tuple(
    f"test_{name}"
    for name in (
        *("view", "docs", "soft_law", "coulomb_steps", "cli", "touching_solids", "schema", "constraint_kernels"),
        *("khalil", "papers_command", "step_products", "constraints", "example_robots", "paper_paths"),
        *("step", "legends", "differential", "task_space", "envs", "neighbours", "joint_dynamics", "drives"),
        *("public_face", "bridges", "parameters", "linear_kernels", "mocap", "scenes", "many_places", "rerooted"),
        *("uneven_ground", "threads", "relative", "tasks", "large", "rolled", "read_back", "cli_fuzz"),
        *("high_orders", "higher", "comfort", "singular", "levers", "sweep", "products", "processors"),
        *("loops_of_files", "distances", "large_inverses", "loops", "examples", "kovalchuk", "emit", "linearise"),
        *("beside_pink", "doctor", "moving_base", "wheels", "odd_shapes", "documents", "ros2_controllers"),
        *("custom_joints", "urdf", "zaremba", "export", "passive_users"),
    )
)  # files of eight seconds and more: the first, as a worker that begins one last works alone to the end


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first, and of each of their tests one case in `make test`: the others are slow, but pages
    of the docs.

    Without a lever, tests of what it saves are left out.
    """
    items.sort(key=lambda i: i.path.stem not in LONG)
    seen = set[str]()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.path.stem in LONG and item.path.stem != "test_docs" and test in seen:
            item.add_marker("slow")
        if not any(item.iter_markers("nightly")) and not any(item.iter_markers("slow")):
            seen.add(test)
    if os.environ.get("DREVO_WITHOUT"):
        kept = [i for i in items if i.get_closest_marker("counts") is None]
        config.hook.pytest_deselected(items=[i for i in items if i not in kept])
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.needs("gcc")`: see needed.py."""
    for mark in item.iter_markers("needs"):
        needed.require(*mark.args)


@pytest.fixture(autouse=True, scope="session")
def _a_text_is_compiled_once() -> Iterator[None]:
    """Of the same text LLVM makes the same object: caches that are empty and functions that are not kept make a
    worker compile what it had."""
    from drevo.codegen.store import native

    made: dict[bytes, bytes] = {}
    compiled = native.compile_text

    def compile_text(ir: str) -> bytes:
        name = hashlib.sha256(ir.encode()).digest()
        if name not in made:
            made[name] = compiled(ir)
        return made[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compile_text", compile_text)
        yield


@pytest.fixture(autouse=True, scope="session")
def _garbage_is_looked_for_less_often() -> None:
    """Hardly any node of the graphs is garbage, and the collector walks all of them again and again."""
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _strict_floating_point() -> Iterator[None]:
    """Overflow, division by zero and invalid operations fail the test; underflow is silent."""
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """With DREVO_RESIDUALS=1, the worst residual of every comparison against its tolerance (not with -n)."""
    if os.environ.get("DREVO_RESIDUALS"):
        from reference import WORST

        for what, (residual, tolerance) in sorted(WORST.items()):
            slack = tolerance / residual if residual else float("inf")
            terminalreporter.write_line(f"{what:48} {residual:8.1e} of {tolerance:8.1e}, slack {slack:.0f}")


# -- robots whose motions are known; imported when they are wanted


@pytest.fixture(scope="session")
def chain() -> Any:
    from drevo.robots import rod_chain

    return rod_chain(10)


@pytest.fixture(scope="session")
def pendulum() -> Any:
    from motions import double_pendulum

    return double_pendulum()


@pytest.fixture(scope="session")
def tumbling() -> Any:
    from motions import free_body

    return free_body("tumbling", gravity=(0.0, 0.0, 0.0))
