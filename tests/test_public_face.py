"""The public face under right, odd and wrong arguments: a right value or one clear sentence, nothing else."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from public_calls import ROOMS, SCALAR, Call
from public_values import Twins, numbers, spoilt, twins

from drevo.errors import DrevoError, DrevoWarning

LONGEST = 900  # characters of a sentence
DAILY, NIGHTLY = 8, 200  # seeds, of 250 and of 500 calls


def complaint(c: Call, right: bool = False) -> str | None:
    """What is wrong with how a call ended; None if nothing is. A right call is refused by no sentence."""
    try:
        with warnings.catch_warnings(), np.errstate(**({"all": "ignore"} if c.name == SCALAR else {})):  # as NumPy
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DrevoWarning)
            result = c()
            shown = repr(result)  # what a shell shows next
    except DrevoError as error:
        text = str(error)
        unclear = "\n" in text or " at 0x" in text or not text or len(text) > LONGEST
        return f"says {text[:120]!r}" if unclear or right else None
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    ours = type(result).__module__.startswith("drevo") and not isinstance(result, tuple)  # of arrays
    if ours and len(shown.splitlines()[0]) > LONGEST:
        return f"shows itself in {len(shown)} characters"
    bad = c.name != SCALAR and any(not np.isfinite(x).all() for x in numbers(result))
    return f"gives {type(result).__name__} that is not finite" if bad else None


def outcome(c: Call) -> list[np.ndarray] | str:
    """The numbers that a call gives, or how else it ends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DrevoWarning)
            return list(numbers(c()))
    except DrevoError:
        return "an error of ours"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"


def difference(both: Twins) -> str | None:
    """Where the same numbers in another object give something else."""
    plain, odd = outcome(both.plain), outcome(both.odd)
    if isinstance(plain, str) or isinstance(odd, str):
        ends = [x if isinstance(x, str) else "a value" for x in (plain, odd)]
        return None if ends == ["an error of ours"] * 2 else f"ends in {ends[0]}, and with the twin in {ends[1]}"
    alike = len(plain) == len(odd) and all(map(same, plain, odd))
    return None if alike else "gives another value for the same numbers"


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal but for the rounding of sums in another order, which BLAS and NumPy choose by how memory lies."""
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(x).max(initial=0.0)))


def told(c: Call) -> str:
    """The arguments, in short."""
    parts = [repr(x)[:60] for x in c.args] + [f"{k}={x!r}"[:60] for k, x in c.given.items()]
    return f"{c.name}({', '.join(parts)})".replace("\n", " ")


def judged(right: Call, rng: np.random.Generator) -> tuple[Call, str | None]:
    """One trial of a call: as it is, spoilt, or against its twin; the call that was made and what is wrong."""
    way = rng.random()
    both = twins(right, rng) if way > 0.8 and right.name != SCALAR else None
    c = both.odd if both else spoilt(right, rng) if way > 0.08 else right
    if os.environ.get("DREVO_FACE"):  # to see which call does not come back
        print(told(c), flush=True)
    return c, difference(both) if both else complaint(c)


def calls(rng: np.random.Generator) -> Iterator[Call]:
    """Right calls of every room, over and over."""
    while True:
        for room in rng.permutation(np.array(ROOMS, object)):
            yield from room(rng)


def run(seed: int, count: int) -> str:
    """A line for every kind of complaint, with the first call that caused it."""
    rng = np.random.default_rng(seed)
    seen: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for right in islice(calls(rng), count):
        c, wrong = judged(right, rng)
        if wrong:
            seen[c.name, wrong] += 1
            first.setdefault((c.name, wrong), told(c))
    return "\n".join(f"{n} x {what}: {first[name, what]}" for (name, what), n in seen.most_common())


def test_right_calls_give_finite_values() -> None:
    rng = np.random.default_rng(0)
    assert [x for room in ROOMS for c in room(rng) if (x := (told(c), complaint(c, right=True)))[1]] == []


@pytest.mark.parametrize("seed", range(DAILY))
def test_some_calls_give_a_right_value_or_one_sentence(seed: int) -> None:
    assert run(seed, 250) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(DAILY, DAILY + NIGHTLY))
def test_any_call_gives_a_right_value_or_one_sentence(seed: int) -> None:
    assert run(seed, 500) == ""
