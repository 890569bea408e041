"""Machine code reads and writes its arrays and its working memory, and nothing beside them.

Each test is a process of its own, see guarded.py: what goes beyond an array ends it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drevo.codegen.store import image

pytestmark = pytest.mark.skipif(not image.supported(), reason="only for Linux on x86-64")
GUARDED = Path(__file__).with_name("guarded.py")


def run(*words: str, **env: str) -> None:
    done = subprocess.run(
        [sys.executable, str(GUARDED), *words], env=dict(os.environ, **env), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-300:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_every_layout(dtype: str) -> None:
    run("programs", dtype)


@pytest.mark.parametrize("place", [pytest.param("first", marks=pytest.mark.nightly), "last"])
def test_calls_motions_steps_and_streams(place: str) -> None:
    """All memory that NumPy and the entry ask for begins, or ends, at a page that nobody may touch."""
    run("calls", place)


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["", "avx2", "sse2"])
def test_every_quantity_in_every_form(level: str) -> None:
    run("robots", DREVO_PROCESSOR=level)
