"""The same call gives the same bits whatever was called before: random sequences of the calls of public_calls.py.

Each sequence has a fresh process. A call's digest is compared over all of them, the ones that it opens included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = ("quantities", "descriptions", "constraints", "motions", "controllers", "documents", "wing")
DAILY, NIGHTLY = 20, 1000  # sequences


def digests(first: int, last: int, length: int, *rooms: str) -> dict[str, dict[str, list[int]]]:
    """Call -> digest -> the seeds of the sequences that gave it."""
    script = Path(__file__).with_name("sequences.py")
    arguments = [sys.executable, str(script), *map(str, (first, last, length)), *rooms]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(arguments, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, dict[str, list[int]]] = {}
    for seed, line in enumerate(run.stdout.splitlines(), first):
        for name, digest in json.loads(line):
            found.setdefault(name, {}).setdefault(digest, []).append(seed)
    assert seed == last - 1
    return found


def different(found: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, int]]:
    """Calls that gave more than one result, with a seed for each."""
    return {name: {d: seeds[0] for d, seeds in by.items()} for name, by in found.items() if len(by) > 1}


def test_a_call_gives_the_same_bits_whatever_was_called_before() -> None:
    found = digests(0, DAILY, 12, "constraints", "motions")
    assert different(found) == {}
    assert sum(len(seeds) for by in found.values() for seeds in by.values()) > 3 * len(found)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_every_call_gives_the_same_bits_whatever_was_called_before(part: int) -> None:
    """Sequences over all rooms; the first of them are in every part, so that parts compare too."""
    each = NIGHTLY // 10
    found = digests(part * each, (part + 1) * each, 20, *ROOMS)
    assert different(found) == {}
