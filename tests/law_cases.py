"""Robots at states, on which laws are tested; a failure shows the robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import oracles
import strategies
from reference import Reference, on_each

from drevo.model.description import Inertial, Link, Model

Array = np.ndarray
FRAMES = ("local", "world", "local_world_aligned")


@dataclass
class Case:
    """A robot at a state; terms: the largest sum of |terms| in a joint force there."""

    model: Model
    drevo: Reference
    q: Array
    v: Array
    a: Array
    terms: float
    rng: np.random.Generator

    @property
    def link(self) -> str:
        return self.model.links[-1].name


_CASES: dict[tuple[int, int], Case] = {}  # by the identity of a model, which a case keeps


def case(model: Model, seed: int = 0) -> Case:
    """A state of a robot, found once for all laws; its random numbers begin anew."""
    if (id(model), seed) not in _CASES:
        q, v, a = strategies.state(model, seed)
        terms = oracles.pinocchio_of(model).terms(q, v, a)
        _CASES[id(model), seed] = Case(model, Reference(model), q, v, a, terms, np.random.default_rng(seed))
    c = _CASES[id(model), seed]
    return replace(c, q=c.q.copy(), v=c.v.copy(), a=c.a.copy(), rng=np.random.default_rng(seed))


def on_trees(trees: list[Model]) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Makes a test of a law, run on every tree; all robots that fail are shown."""

    def decorate(law: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            on_each(trees, lambda model, seed: law(case(model, seed)))

        test.__name__, test.__doc__, test.__module__ = law.__name__, law.__doc__, law.__module__
        return test

    return decorate


def moving(models: list[Model]) -> list[Model]:
    return [m for m in models if m.nv]


def mimicking(m: Model) -> bool:
    return any(j.mimic for j in m.joints)


KINDS = [strategies.all_kinds(base, seed) for base in ("fixed", "floating") for seed in range(2)]
TREES = KINDS + moving([strategies.robot(seed) for seed in range(2000, 2100)])
PLAIN = KINDS + moving([strategies.robot(seed, mimics=0.0) for seed in range(2100, 2160)])
FLOATING = moving(
    [strategies.robot(s, kinds=strategies.HINGED, base="floating", mimics=0.0) for s in range(2200, 2260)]
)
MIMIC = [
    m for m in (strategies.robot(s, strategies.SIMPLE, mimics=0.6) for s in range(2300, 2360)) if mimicking(m)
]


def with_bodies(model: Model, keep: Callable[[Link], Inertial | None]) -> Model:
    """With other inertias."""
    return replace(model, links=tuple(replace(l, inertial=keep(l)) for l in model.links))
