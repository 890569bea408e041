"""Programs and packages that some tests need: a test without them is skipped, but fails where CI is set.

What cannot be had there is named, with the reason, in DREVO_ABSENT (names with commas between; see .ci/run).
"""

from __future__ import annotations

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


def without(module: str) -> list[str]:
    """The test files that import a module at their head, by way of others beside them too."""
    folder, needing = Path(__file__).parent, {module}
    texts = {p.stem: p.read_text(encoding="utf-8") for p in folder.glob("*.py")}
    while True:
        found = re.compile(rf"^(?:import|from) (?:{'|'.join(sorted(needing))})\b", re.MULTILINE)
        more = {name for name, text in texts.items() if name not in needing and found.search(text)}
        if not more:
            return sorted(f"{name}.py" for name in needing & texts.keys() if name.startswith("test_"))
        needing |= more


def require(*tools: str) -> None:
    """Skips or fails a test whose tools are not there."""
    named = os.environ.get("DREVO_ABSENT", "").split(",")
    for tool in tools:
        if shutil.which(tool) is None and find_spec(tool) is None:
            if os.environ.get("CI") and tool not in named:
                pytest.fail(f"{tool} is not installed, and where CI is set nothing may be skipped for that")
            pytest.skip(f"{tool} is not installed")
