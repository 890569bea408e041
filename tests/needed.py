"""Programs and packages that some tests need: a test without them is skipped, but fails where CI is set.

What cannot be had there is named, with the reason, in DREVO_ABSENT (names with commas between; see .ci/run).
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest


def require(*tools: str) -> None:
    """Skips or fails a test whose tools are not there."""
    named = os.environ.get("DREVO_ABSENT", "").split(",")
    for tool in tools:
        if shutil.which(tool) is None and find_spec(tool) is None:
            if os.environ.get("CI") and tool not in named:
                pytest.fail(f"{tool} is not installed, and where CI is set nothing may be skipped for that")
            pytest.skip(f"{tool} is not installed")
