"""The configuration manifold: integrate and difference are each other's inverse, at every size of step."""

from __future__ import annotations

import numpy as np
import pytest

from drevo.mechanics.configuration import difference, integrate, neutral, random
from drevo.model.description import Inertial, Joint, Limit, Link, Model

BODY = Inertial(1.0, (0.1, 0.2, 0.3), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
KINDS = ("free", "spherical", "planar", "universal", "cylindrical", "prismatic", "revolute")


def model(kinds: tuple[str, ...] = KINDS) -> Model:
    """One joint of every kind in a chain."""
    links = [Link("world"), *(Link(k, BODY) for k in kinds)]
    joints = [
        Joint(f"{k}_joint", k, links[i].name, k, axis2=(0.0, 1.0, 0.0) if k == "universal" else None)
        for i, k in enumerate(kinds)
    ]
    return Model("kinds", tuple(links), tuple(joints))


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.05, 0.11, 0.5, 1.5])
def test_difference_undoes_integrate(size: float) -> None:
    """difference(q, integrate(q, dv)) = dv for rotations below pi."""
    rng = np.random.default_rng(1)
    m = model()
    q = random(m, rng, (50,))
    dv = rng.uniform(-1.0, 1.0, (50, m.nv)) * size
    back = difference(m, q, integrate(m, q, dv))
    assert np.max(np.abs(back - dv)) <= 1e-14 * (1.0 + size) * 10


def test_quaternions_stay_unit() -> None:
    """10,000 steps do not drift off the sphere."""
    rng = np.random.default_rng(2)
    m = model(KINDS[:2])
    q = neutral(m)
    for _ in range(10_000):
        q = integrate(m, q, rng.normal(size=m.nv))
    assert abs(np.linalg.norm(q[3:7]) - 1.0) <= 4e-16 and abs(np.linalg.norm(q[7:11]) - 1.0) <= 4e-16


def test_random_respects_limits_and_shapes() -> None:
    """Finite limits bound the samples; leading shape is kept; quaternions are unit."""
    bounded = Joint("j", "revolute", "world", "a", limit=Limit(-0.1, 0.2))
    m = Model("m", (Link("world"), Link("a", BODY)), (bounded,))
    q = random(m, np.random.default_rng(0), (1000,))
    assert q.shape == (1000, 1) and q.min() >= -0.1 and q.max() <= 0.2
    q = random(model(), np.random.default_rng(0), (3, 4))
    assert q.shape == (3, 4, model().nq)
    assert np.allclose(np.linalg.norm(q[..., 3:7], axis=-1), 1.0, atol=1e-15)
