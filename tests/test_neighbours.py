"""A state has the same bits alone, in a batch of every size and beside any others: of steps, episodes and motions.

Kernels work on tiles of states, and iterate until the last of a tile, or of a batch, has what it wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contact_cases import CRAWLER, HOPPER

import drevo

Array = np.ndarray[Any, Any]
SIZES = range(1, 18)
ALL = 24
BALL = """<body pos="{} 0 {}"><freejoint/><geom type="sphere" size=".1" density="400"/></body>"""
HEAP = f"""<mujoco><option timestep="0.004" cone="elliptic"/>
 <default><geom condim="3" friction=".8 .02 .01" margin=".01"/></default><worldbody>
 <geom type="plane" size="9 9 1"/>{"".join(BALL.format(0.03 * k, 0.13 + 0.22 * k) for k in range(3))}
 <body pos="-.2 0 .4"><joint axis="0 1 0" frictionloss=".2" limited="true" range="-60 60"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/></body></worldbody></mujoco>"""


def require_same_bits(f: Callable[..., tuple[Array, ...]], *given: Array) -> None:
    """Of the rows of a batch, alone and among as many as there are sizes."""
    whole = f(*given)
    for size in SIZES:
        for first in (0, ALL - size):
            rows = slice(first, first + size)
            for part, all_ in zip(f(*(x[rows] for x in given)), whole):
                assert part.tobytes() == all_[rows].tobytes(), f"{size} rows from {first} on"
    for row in range(ALL):
        for one, all_ in zip(f(*(x[row] for x in given)), whole):
            assert np.asarray(one).tobytes() == all_[row].tobytes(), f"row {row} alone"


def touching(text: str, dt: float) -> tuple[drevo.Robot, Array, Array]:
    """A robot and states of all ages of a motion: some fly, some slide, some lie."""
    r, rng = (
        drevo.load(text.format(option="", condim=3, floor="") if "{" in text else text),
        np.random.default_rng(3),
    )
    step = drevo.compile(r, "step", dt=dt)
    q, v = np.tile(r.neutral(), (ALL, 1)), rng.normal(0.0, 0.4, (ALL, r.nv))
    ages, made = np.sort(rng.integers(0, 120, ALL)), []
    for age in range(ages[-1] + 1):
        made += [(q[k], v[k]) for k in np.flatnonzero(ages == age)]
        q, v = step(q, v, np.zeros_like(v))[:2]
    mixed = rng.permutation(ALL)
    return r, *(np.stack(x)[mixed] for x in zip(*made))


@pytest.mark.parametrize("text", [HOPPER, CRAWLER, HEAP], ids=["hopper", "crawler", "heap"])
def test_steps(text: str) -> None:
    r, q, v = touching(text, 0.004)
    tau = np.random.default_rng(0).normal(0.0, 0.5, v.shape)
    ways = [("soft", "euler"), ("soft", "implicitfast"), ("soft", "rk4"), ("coulomb", "moreau")]
    for law, method in ways[: 4 if text is HOPPER else 3]:
        f = drevo.compile(r, "step", dt=0.004, law=law, method=method)
        assert np.unique((np.abs(f(q, v, tau).forces).max(-1) > 0.0).sum(-1)).size > 1
        require_same_bits(f, q, v, tau)
    require_same_bits(drevo.compile(r, "step", dt=0.004, product="vjp"), q, v, tau, tau, v)


def test_episodes() -> None:
    """Of the same states under the same actions."""
    pytest.importorskip("gymnasium")
    first = drevo.envs.make("Hopper-v5", num_envs=ALL)
    first.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (30, ALL, 3))
    for action in actions[4:]:
        first.step(action)
    q, v = first.q, first.v

    def played(q: Array, v: Array, *actions: Array) -> tuple[Array, ...]:
        env = drevo.envs.make("Hopper-v5", num_envs=len(q), autoreset="Disabled")
        env.reset(seed=0)
        env.put(q, v)
        seen = [env.step(action)[:2] for action in actions]
        return (env.q, env.v, *(x for pair in seen for x in pair))

    whole = played(q, v, *actions[:4])
    for size in SIZES:
        for part, all_ in zip(played(q[:size], v[:size], *actions[:4, :size]), whole):
            assert part.tobytes() == all_[:size].tobytes(), size


@pytest.mark.parametrize("method", ["rk4", "gauss4", "gauss6"])
def test_motions(method: str) -> None:
    """A free one, and one that is put back on its constraint after every step."""
    r, rng = drevo.load("panda"), np.random.default_rng(1)
    hand = [{"link": "panda_hand", "point": (0.0, 0.0, 0.0)}]
    q, v = r.random(rng, ALL), rng.normal(size=(ALL, r.nv))
    for contacts in (None, hand):
        if contacts:
            q, v = drevo.constraint.hold(r, q, v, contacts=contacts)

        def moved(q: Array, v: Array, contacts: Any = contacts) -> tuple[Array, Array]:
            table = r.simulate(q, v, duration=0.004, dt=0.001, method=method, contacts=contacts)
            return np.moveaxis(table.q, 0, -2), np.moveaxis(table.v, 0, -2)

        require_same_bits(moved, q, v)


def test_motions_under_constraints_of_which_some_follow_from_others() -> None:
    """Straight legs hold other rows than bent ones: each state holds those that it would hold alone."""
    r, rng = drevo.load("biped"), np.random.default_rng(0)
    q = np.array([r.random(rng) for _ in range(6)] + [r.neutral(), r.neutral() + 0.3 * np.eye(r.nq)[3]])
    order, tau = rng.permutation(8), 0.1 * rng.normal(size=(8, r.nv))
    feet = [{"link": r.link_names[k], "point": (0.0, 0.0, 0.0), "rows": 6} for k in (-1, len(r.link_names) // 2)]

    def moved(rows: Any, efforts: Any) -> drevo.simulate.Table:
        return r.simulate(q[rows], None, efforts, duration=0.02, dt=1e-3, contacts=feet)

    alone = [moved(k, tau[k]) for k in range(8)]
    held = [x.under.rule.kept for x in alone if x.under is not None and x.under.rule is not None]
    assert len(held) == 8 and len(set(held)) == 2
    for rows in (slice(8), order, order[:5], slice(5, 8)):
        for efforts in (tau[rows], np.repeat(tau[None, rows], 20, 0)):
            found = moved(rows, efforts)
            for k, row in enumerate(np.arange(8)[rows]):
                assert found.q[:, k].tobytes() == alone[row].q.tobytes()
                assert found.at(0.0105)[1][k].tobytes() == alone[row].at(0.0105)[1].tobytes()
    q[3] = r.neutral()
    with pytest.raises(drevo.NumericsError, match="row 7 of the batch: simulate: the motion is not finite"):
        moved(slice(8), np.where(np.arange(8)[:, None] == 7, 1e300, tau))
