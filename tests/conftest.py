"""What every test runs under: NumPy's floating point complaints are errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest


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
