"""The public face under right, odd and wrong arguments: a right value or one clear sentence, nothing else."""

from __future__ import annotations

import os
import warnings
from collections import Counter

import numpy as np
import pytest
from public_calls import ROOMS, Call, numbers, spoilt

from drevo.errors import DrevoError, DrevoWarning

LONGEST = 900  # characters of a sentence
NIGHTLY = 200
CALLS = 500  # of a seed


def complaint(c: Call) -> str | None:
    """What is wrong with how a call ended; None if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DrevoWarning)
            result = c()
    except DrevoError as error:
        text = str(error)
        unclear = "\n" in text or " at 0x" in text or not text or len(text) > LONGEST
        return f"says {text[:120]!r}" if unclear else None
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    bad = any(not np.isfinite(x).all() for x in numbers(result))
    return f"gives {type(result).__name__} that is not finite" if bad else None


def told(c: Call) -> str:
    """The arguments, in short."""
    parts = [repr(x)[:60] for x in c.args] + [f"{k}={x!r}"[:60] for k, x in c.given.items()]
    return f"{c.name}({', '.join(parts)})".replace("\n", " ")


def run(seed: int, count: int) -> str:
    """A line for every kind of complaint, with the first call that caused it."""
    rng = np.random.default_rng(seed)
    seen: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    made = 0
    while made < count:
        for right in (c for room in rng.permutation(np.array(ROOMS, object)) for c in room(rng)):
            made += 1
            c = spoilt(right, rng) if rng.random() < 0.9 else right
            if os.environ.get("DREVO_FACE"):  # to see which call does not come back
                print(told(c), flush=True)
            wrong = complaint(c)
            if wrong:
                seen[c.name, wrong] += 1
                first.setdefault((c.name, wrong), told(c))
    return "\n".join(f"{n} x {what}: {first[name, what]}" for (name, what), n in seen.most_common())


def test_right_calls_give_finite_values() -> None:
    rng = np.random.default_rng(0)
    complaints = [(told(c), complaint(c)) for room in ROOMS for c in room(rng)]
    assert [x for x in complaints if x[1] and not x[0].startswith("drives")] == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(NIGHTLY))
def test_any_call_gives_a_right_value_or_one_sentence(seed: int) -> None:
    assert run(seed, CALLS) == ""
