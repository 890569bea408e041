"""Telegin's robots for the tests: the cases of tests/data/telegin.json and random hinged trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from drevo.model.description import Model
from drevo.robot.builder import Builder

VECTORS = json.loads((Path(__file__).parent / "data" / "telegin.json").read_text())
EXAMPLES = [c for cases in VECTORS["examples"].values() for c in cases]
CASES = EXAMPLES + VECTORS["trees"]


def case(name: str) -> dict[str, Any]:
    """A case by its id."""
    return next(c for c in CASES if c["id"] == name)


def model_of(bodies: list[dict[str, Any]], gravity: tuple[float, float, float] = (0.0, -9.81, 0.0)) -> Model:
    """A model of bodies in the form of the vectors, named link1, link2, ..."""
    b = Builder("case", gravity=gravity)
    for k, x in enumerate(bodies, 1):
        b.body(
            f"link{k}",
            parent=f"link{x['parent']}" if x["parent"] else "world",
            axis=np.asarray(x["axis"]) / np.linalg.norm(x["axis"]),
            origin=x["offset"],
            mass=x["mass"],
            com=x["com"],
            inertia=x["inertia_pole"],
            inertia_at="joint",
        )
    return b.model()


def hinged(rng: np.random.Generator, n: int, planar: bool = False) -> Model:
    """A random hinged tree: half of the axes and turns along coordinate axes, offsets with zeros."""
    b = Builder("hinged")
    quarter = np.pi / 2
    for k in range(n):
        up = int(rng.integers(-1, k)) if k else -1
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
        rpy = rng.choice([0.0, quarter, -quarter, np.pi], 3) if rng.random() < 0.5 else rng.normal(size=3)
        if planar:
            axis = np.array([0.0, 0.0, rng.choice([-1.0, 1.0])])
            rpy = np.array([rng.choice([0.0, np.pi]), 0.0, rng.choice([0.0, quarter, 0.3])])
        elif rng.random() < 0.3:
            axis = rng.normal(size=3)
        b.body(
            f"link{k + 1}",
            parent="world" if up < 0 else f"link{up + 1}",
            axis=axis / np.linalg.norm(axis),
            rpy=rpy,
            origin=rng.normal(size=3) * (rng.random(3) < 0.6),
            mass=float(rng.uniform(0.5, 3.0)),
            com=rng.normal(size=3) * (rng.random(3) < 0.7),
            inertia=_tensor(rng),
        )
    return b.model()


def _tensor(rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=(3, 3))
    second = a @ a.T
    return np.trace(second) * np.eye(3) - second
