"""What every test runs under: NumPy's floating point complaints are errors, and random numbers have fixed seeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _strict_floating_point() -> Iterator[None]:
    """Overflow, division by zero and invalid operations fail the test; underflow is silent."""
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        yield
