"""Random calls with constraints, arguments right, odd or wrong: a right value or one DrevoError, in silence."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import public_values
import pytest

import drevo
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.robot.face import Robot

Array = Any
ROBOTS = {"four-bar": "fixed", "puma560": "fixed", "biped": "floating", "two-arm": "fixed"}
WRONG: list[Any] = [
    None, 5, 1.5, -1, 0, True, "x", "", b"x", 1j, np.nan, np.inf, -np.inf, 1e200, 1e308, 2**70, [], (), {}, set(),
    object(), lambda *_: 0.0, [None], ["a"], [[1.0], [1.0, 2.0]], np.zeros((0, 3)), np.zeros((2, 0)),
    np.array(1.0), np.array([1j, 2.0]), np.array(["a"]), np.array([None]), np.ma.masked, slice(0, 1), range(3),
    Ellipsis, type, [np.nan] * 3, {"link": "world"}, {"link": "world", "point": None},
    [{"link": "world", "point": (0, 0, 0)}], [constraint.gear("a", "b", 1.0)],
    [constraint.contact("nowhere", (0, 0, 0))],
]  # fmt: skip


@cache
def loaded(name: str) -> Robot:
    return drevo.load(name, base=ROBOTS[name])


@cache
def sets(name: str) -> list[Any]:
    """A few sets, so that little is compiled: none, one of most kinds, redundant, moving, contradictory ones."""
    r = loaded(name)
    link, other = r.link_names[-1], r.link_names[-3]
    floor = constraint.point_on_plane(link, (0.1, 0, 0), (0, 0, 1), offset=0.2, offset_rate=0.1)
    a, b = [j.name for j in r.model.moving_joints if j.nv == 1][:2]
    return [
        None,
        [],
        [floor, floor],
        [constraint.weld(link, (0, 0, 0), other, (0.1, 0, 0))],
        [constraint.gear(a, b, 2.0), constraint.distance(link, (0, 0, 0), "world", (0, 0, 3.0), 1.0)],
        [constraint.function(lambda pose, q, t: [pose(link)[0][3] - 0.1 * drevo.sin(t)], 1)],
        [floor, constraint.point_on_plane(link, (0.1, 0, 0), (0, 0, 1), offset=0.7)],
    ]  # fmt: skip


@cache
def feet(name: str) -> list[Any]:
    link = loaded(name).link_names[-1]
    corners = [{"link": link, "point": (x, y, 0.0), "rows": 3} for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    return [
        None,
        [],
        [constraint.contact(link, (0, 0, 0), 6)],
        corners,
        [corners[0], {**corners[0], "anchor": (0, 0, 0)}],
    ]


def numbers(dice: random.Random, r: Robot, size: int, q: bool = False) -> Any:
    """An array of the right size, seldom of another kind, dimension or size of number."""
    rng = np.random.default_rng(dice.randrange(1 << 30))
    lead = dice.choice([(), (), (), (1,), (2,), (2,), (0,), (3, 2)])
    x = r.random(rng, lead) if q else dice.choice([0.0, 1.0, 1.0, 1e3]) * rng.normal(size=(*lead, size))
    odd = dice.randrange(24)
    if odd == 0:
        return dice.choice(WRONG)
    if odd == 1:
        return x[..., :-1]
    if odd == 2:
        with np.errstate(all="ignore"):
            return x * dice.choice([np.nan, np.inf, 1e200, 0.0, 1j, 2.0])
    if odd == 3:
        return dice.choice(
            [x.tolist, lambda: x.astype(np.float32), lambda: x.astype(object), lambda: x.astype(str)]
        )()
    if odd == 4:
        return dice.choice(
            [lambda: np.asfortranarray(x), lambda: x.astype(">f8"), lambda: x[..., ::-1][..., ::-1]]
        )()
    return x


def one_of(dice: random.Random, right: list[Any], wrong: int = 12) -> Any:
    return dice.choice(WRONG) if dice.randrange(wrong) == 0 else dice.choice(right)


def asked(
    dice: random.Random, robots: Sequence[str] = (*ROBOTS,)
) -> tuple[str, Callable[..., Any], Robot, list[Any], dict[str, Any]]:
    """A function, its positional and its named arguments."""
    name = dice.choice(robots)
    r = loaded(name)
    q, rates = lambda: numbers(dice, r, r.nq, True), lambda: numbers(dice, r, r.nv)
    held = {"contacts": lambda: one_of(dice, feet(name)), "constraints": lambda: one_of(dice, sets(name))}
    moment = {"t": lambda: one_of(dice, [0.0, 1.0, 2, np.float32(0.5), np.zeros(2)])}
    driven = {
        "actuated": lambda: one_of(dice, [None, r.joint_names, list(r.joint_names[:1]), [], r.joint_names[0]])
    }
    until = {"tolerance": lambda: one_of(dice, [1e-12, 1e-6]), "steps": lambda: one_of(dice, [30, 3])}
    pushed = {"f_ext": lambda: one_of(dice, [None, {}, {r.link_names[-1]: np.ones(6)}, {r.link_names[-1]: [1.0]}])}
    gains = {
        "stabilise": lambda: one_of(dice, [None, (20.0, 100.0), (0.0, 1.0), ([1.0] * 3, 1.0), (-1.0, 1.0)], 6)
    }
    bounce = {"restitution": lambda: one_of(dice, [0.0, 1.0, 0.5], 4)}
    keep = {"keep": lambda: one_of(dice, [(), [r.joint_names[0]], r.joint_names[0]])}
    kinds: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
        "dynamics": (r.constrained_dynamics, [q, rates, rates], {**held, **moment, **pushed, **gains}),
        "inverse": (r.constrained_inverse_dynamics, [q, rates, rates], {**held, **moment, **driven, **pushed}),
        "impact": (r.impact, [q, rates], {**held, **moment, **bounce}),
        "hold": (lambda *a, **k: hold(r, *a, **k), [q, rates], {**held, **moment, **until}),
        "assemble": (r.assemble, [q], {**held, **moment, **until, **keep}),
        "integrate": (r.integrate, [q, rates], {}),
        "difference": (r.difference, [q, q], {}),
        "linearise": (r.linearise, [q, rates, rates], {**held, **driven}),
    }
    kind = dice.choice([*kinds] * 3 + ["dynamics"] * 9)
    call, positional, named = kinds[kind]
    chosen = {k: give() for k, give in named.items() if dice.randrange(2)}
    return kind, call, r, [give() for give in positional], chosen


def checked(kind: str, r: Robot, args: list[Any], given: dict[str, Any], got: Any) -> None:
    """What came back is finite and solves the equations that it is said to solve."""
    if kind == "dynamics":
        q, v, tau = (np.asarray(x, float) for x in args)
        h = r.bias(q, v, f_ext=given["f_ext"]) if given.get("f_ext") else r.bias(q, v)
        left = np.squeeze(r.mass_matrix(q) @ got.a[..., None], -1) + h - tau
        right = np.squeeze(np.swapaxes(got.jacobian, -1, -2) @ got.reactions[..., None], -1)
        size = 1.0 + np.abs(left).max(initial=0.0) + np.abs(h).max(initial=0.0) + np.abs(tau).max(initial=0.0)
        assert np.abs(left - right).max(initial=0.0) <= 1e-7 * size
        assert len(set(got.rows)) == len(got.rows) == got.reactions.shape[-1]
        if given.get("stabilise") is None:
            met = np.squeeze(got.jacobian @ got.a[..., None], -1) + got.gamma
            assert np.abs(met).max(initial=0.0) <= 1e-5 * (
                1.0 + np.abs(got.gamma).max(initial=0.0) + np.abs(got.a).max(initial=0.0)
            )
    elif kind == "impact":
        q, v = (np.asarray(x, float) for x in args)
        gain = np.squeeze(r.mass_matrix(q) @ (got.v - v)[..., None], -1)
        push = np.squeeze(np.swapaxes(got.jacobian, -1, -2) @ got.impulses[..., None], -1)
        assert np.abs(gain - push).max(initial=0.0) <= 1e-7 * (1.0 + np.abs(gain).max(initial=0.0))
    elif kind == "integrate":
        back = r.difference(args[0], got)
        assert np.isfinite(back).all()
    for x in public_values.numbers(got):
        assert np.isfinite(x).all()


@pytest.mark.parametrize(
    ("robots", "seeds"),
    [(("four-bar",), range(200)), pytest.param((*ROBOTS,), range(1000, 7000), marks=pytest.mark.nightly)],
    ids=["few", "many"],
)
def test_calls_give_a_right_value_or_one_sentence(robots: Sequence[str], seeds: range) -> None:
    faults, answered = [], 0
    for seed in seeds:
        kind, call, r, args, given = asked(random.Random(seed), robots)
        try:
            with warnings.catch_warnings(), np.errstate(all="warn"):
                warnings.simplefilter("error")
                got = call(*args, **given)
            checked(kind, r, args, given, got)
            answered += 1
        except drevo.DrevoError as error:
            if "\n" in str(error) or len(str(error)) > 600:
                faults.append(f"seed {seed}: {kind}: sentence of {len(str(error))} characters: {error}")
        except Exception as error:
            faults.append(f"seed {seed}: {kind} of {r.name}: {type(error).__name__}: {str(error)[:200]}")
    assert not faults, f"{len(faults)} of {len(seeds)}: " + "\n".join(faults[:30])
    assert answered > len(seeds) // 5
