"""The public face under right, odd and wrong arguments: a right value or one clear sentence, nothing else."""

from __future__ import annotations

import inspect
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_calls import ROOMS, SCALAR, Call, robot, written
from public_values import Twins, numbers, spoilt, twins
from public_wing import MORE

import drevo
from drevo import control, loads
from drevo.compiler import differentiate
from drevo.constraint.program import constrained_derivative
from drevo.errors import DrevoError, DrevoWarning

Room = Callable[[np.random.Generator], Iterator[Call]]
SCALARS = "drevo.mechanics.scalar"
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
        lines = "\n" in text and not error.problems
        unclear = lines or " at 0x" in text or not text or len(text) > LONGEST
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


def calls(rng: np.random.Generator, rooms: tuple[Room, ...]) -> Iterator[Call]:
    """Right calls of every room, over and over."""
    while True:
        for room in rng.permutation(np.array(rooms, object)):
            yield from room(rng)


def run(seed: int, count: int, rooms: tuple[Room, ...] = ROOMS) -> str:
    """A line for every kind of complaint, with the first call that caused it."""
    rng = np.random.default_rng(seed)
    seen: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for right in islice(calls(rng, rooms), count):
        c, wrong = judged(right, rng)
        if wrong:
            seen[c.name, wrong] += 1
            first.setdefault((c.name, wrong), told(c))
    return "\n".join(f"{n} x {what}: {first[name, what]}" for (name, what), n in seen.most_common())


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that take "x" for a folder write there."""
    monkeypatch.chdir(tmp_path)


PUBLIC = "constraint control dh doctor envs ground loads simulate streaming sweep walking"


def asked_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What is called by name, and that name: functions and classes of public modules, methods."""
    yield from ((n, x) for n, x in ((n, getattr(drevo, n)) for n in drevo._LAZY) if inspect.isfunction(x))
    for room in (getattr(drevo, n) for n in PUBLIC.split()):
        own = [x for x in (getattr(room, n) for n in room.__all__) if getattr(x, "__module__", "") != SCALARS]
        yield from ((x.__name__, x) for x in own if inspect.isfunction(x))
        yield from ((x.__name__, x) for x in own if inspect.isclass(x) and inspect.isfunction(x.__init__))
    yield from (("three_link", drevo.robots.three_link), ("puma560", drevo.robots.puma560))
    made = robot("three-link"), drevo.Builder("b"), written(), control.LinearModel(np.eye(2), np.ones((2, 1)))
    for owner in (*made, loads.rod(1.0, (0, 0, 0), (0.5, 0, 0)), loads.Span):
        kinds = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
        yield from ((n, getattr(owner, n)) for k in kinds for n, x in vars(k).items() if is_method(n, x))
    yield from ((x.__name__, x) for x in (differentiate.derivative, constrained_derivative))


def is_method(name: str, x: object) -> bool:
    return inspect.isfunction(x) and not name.startswith("_") and name != "random"


def test_arguments_that_do_not_fit_are_one_sentence() -> None:
    """Too many by place, unknown by name, none at all."""
    for name, f in asked_functions():
        if name in ("cite", "sin", "cos", "sqrt", "where", "minimum", "maximum", "clip"):
            continue  # takes any number; are as NumPy's
        parameters = inspect.signature(f).parameters.values()
        wrong = [((object(),) * 60, {})]
        wrong += [] if any(p.kind is p.VAR_KEYWORD for p in parameters) else [((), {"zweck": 1})]
        needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        for args, given in [*wrong, ((), {})] if needed else wrong:
            with pytest.raises(drevo.InputError, match=rf"^{name}\(.* (takes|is missing) "):
                f(*args, **given)


DERIVATIVES: tuple[tuple[tuple[Any, ...], dict[str, Any], str], ...] = (
    (
        ("bias", "q"),
        {},
        r"compile\(robot, quantity, wrt=, .* takes 2 arguments by position, 3 are given; .* by name",
    ),
    ((), {"wrt": "q"}, "is missing 'quantity'"),
    (("bias",), {"wrt": 2}, "wrt must be a name or a list of names, not 2"),
    (("bias",), {"wrt": ("q", 2)}, "wrt must be a name or a list of names"),
    (("q",), {"wrt": "bias"}, "quantity 'q' is not known"),
    ((["bias", "gravity"],), {"wrt": "q"}, r"quantity \['bias', 'gravity'\] is not known"),
    (("bias",), {"wrt": "q", "order": 2}, "a derivative takes no option 'order'"),
    (("constrained_dynamics",), {"wrt": "q", "contact": []}, "no option 'contact' .did you mean 'contacts'"),
)


@pytest.mark.parametrize(("args", "given", "sentence"), DERIVATIVES)
def test_derivatives_that_nobody_can_mean(args: tuple[Any, ...], given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(drevo.DrevoError, match=sentence):
        drevo.compile(robot("three-link"), *args, **given)


SLOW = ("platforms",)  # rooms whose robots take seconds to compile


@pytest.mark.parametrize(
    "room",
    [pytest.param(x, id=x.__name__, marks=[pytest.mark.nightly] * (x.__name__ in SLOW)) for x in ROOMS + MORE],
)
def test_right_calls_give_finite_values(room: Room) -> None:
    rng = np.random.default_rng(0)
    assert [x for c in room(rng) if (x := (told(c), complaint(c, right=True)))[1]] == []


@pytest.mark.parametrize("seed", range(DAILY))
def test_some_calls_give_a_right_value_or_one_sentence(seed: int) -> None:
    assert run(seed, 250) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(DAILY, DAILY + NIGHTLY))
def test_any_call_gives_a_right_value_or_one_sentence(seed: int) -> None:
    assert run(seed, 500, ROOMS + MORE) == ""
