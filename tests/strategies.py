"""Random robots, each made by its seed alone: every kind of joint, branches, welds, odd placements, mimics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from drevo.mechanics.configuration import random
from drevo.model.description import IDENTITY, ORIGIN, Inertial, Joint, Link, Mat3, Mimic, Model, Vec3

HINGED = ("revolute", "prismatic")
SIMPLE = ("revolute", "continuous", "prismatic", "helical")
EVERY = (*SIMPLE, "cylindrical", "universal", "planar", "spherical")


def vec(x: np.ndarray) -> Vec3:
    """Three plain floats."""
    return (float(x[0]), float(x[1]), float(x[2]))


def mat(x: np.ndarray) -> Mat3:
    """Three rows of plain floats."""
    return (vec(x[0]), vec(x[1]), vec(x[2]))


def about(k: int, angle: float) -> np.ndarray:
    """Rotation about a coordinate axis; quarter turns exact."""
    s, c = math.sin(angle), math.cos(angle)
    if abs(angle / (math.pi / 2) - round(angle / (math.pi / 2))) < 1e-12:
        s, c = float(round(s)), float(round(c))
    out = np.eye(3)
    i, j = (k + 1) % 3, (k + 2) % 3
    out[i, i], out[i, j], out[j, i], out[j, j] = c, -s, s, c
    return out


def rotation(rng: np.random.Generator) -> np.ndarray:
    """A rotation, uniform."""
    x, y, z, w = (q := rng.normal(size=4)) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def tilt(rng: np.random.Generator) -> np.ndarray:
    """A turn by 1e-12 to 1e-1 rad: what printed angles make of aligned axes."""
    x = rng.normal(size=3) * 10.0 ** rng.uniform(-12.0, -1.0)
    return about(0, x[0]) @ about(1, x[1]) @ about(2, x[2])


def placement(rng: np.random.Generator) -> tuple[Vec3, Mat3]:
    """Nothing, quarter turns, almost those, a turn about one axis or anything; offsets full, sparse or none."""
    pick = rng.random()
    R = IDENTITY
    if pick > 0.75:
        R = mat(rotation(rng))
    elif pick > 0.5:
        turned = about(int(rng.integers(3)), float(rng.integers(4)) * math.pi / 2) @ about(0, math.pi / 2)
        R = mat(turned @ tilt(rng) if rng.random() < 0.4 else turned)
    elif pick > 0.25:
        R = mat(about(int(rng.integers(3)), float(rng.uniform(-3.0, 3.0))))
    p = rng.normal(size=3) * 0.3
    if rng.random() < 0.5:
        p *= rng.choice([0.0, 1.0, 10.0 ** rng.uniform(-12.0, -1.0)], 3, p=[0.45, 0.45, 0.1])
    return vec(p), R


def axis(rng: np.random.Generator) -> Vec3:
    """A unit axis: a coordinate axis of either sense, almost one, or a skewed one."""
    pick = rng.random()
    if pick < 0.6:
        a = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
        return vec(tilt(rng) @ a if pick > 0.5 else a)
    a = rng.normal(size=3)
    return vec(a / np.linalg.norm(a))


def inertial(rng: np.random.Generator) -> Inertial:
    """A real body: three masses' worth of second moments, so that the triangle inequality holds."""
    A = rng.normal(size=(3, 3)) * 0.2
    if rng.random() < 0.3:
        A = np.diag(np.diag(A))
    S = A @ A.T + 0.002 * np.eye(3)
    tensor = np.trace(S) * np.eye(3) - S
    c = rng.normal(size=3) * 0.2
    if rng.random() < 0.3:
        c *= rng.random(3) < 0.5
    return Inertial(float(rng.uniform(0.3, 3.0)), vec(c), mat((tensor + tensor.T) / 2))


def joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> Joint:
    """A joint of a kind, placed at random."""
    p, R = placement(rng)
    a = axis(rng)
    second = None
    if kind == "universal":
        b = np.array(axis(rng))
        while np.linalg.norm(np.cross(a, b)) < 0.2:
            b = np.array(axis(rng))
        second = vec(b)
    lead = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.5)) if kind == "helical" else 0.0
    return Joint(name, kind, parent, child, p, R, a, second, lead)


def robot(
    seed: int,
    kinds: tuple[str, ...] = EVERY,
    n: int | None = None,
    base: str | None = None,
    welds: float = 0.25,
    mimics: float = 0.15,
) -> Model:
    """The random robot of a seed. base None: the ground or, one time in three, a free joint on it.

    Joints are in random order, a parent's before its children's, so subtrees need not be contiguous.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9)) if n is None else n
    free = rng.random() < 1 / 3 if base is None else base == "floating"
    links, joints = [Link("world")], []
    reach = int(rng.integers(1, 4))  # 1: a chain; more: the more branches
    for i in range(count):
        name = f"l{i + 1}"
        kind = "free" if free and i == 0 else str(rng.choice(kinds))
        if i and rng.random() < welds:
            kind = "fixed"
        first = 1 if free and i else 0
        parent = links[int(rng.integers(max(first, len(links) - reach), len(links)))].name
        body = inertial(rng) if kind != "fixed" or rng.random() < 0.7 else None
        links.append(Link(name, body))
        joints.append(joint(rng, f"j{i + 1}", kind, parent, name))
    gravity = vec(rng.normal(size=3) * 6.0) if rng.random() < 0.5 else (0.0, 0.0, -9.81)
    return Model(f"random-{seed}", tuple(links), tuple(_mimicked(rng, joints, mimics)), gravity)


def _mimicked(rng: np.random.Generator, joints: list[Joint], share: float) -> list[Joint]:
    """Some joints of one coordinate follow another, wherever in the tree that one is."""
    drivers = [j.name for j in joints if j.nq == 1]
    out = []
    for j in joints:
        others = [d for d in drivers if d != j.name]
        if j.nq == 1 and others and rng.random() < share:
            offset = float(rng.normal()) if rng.random() < 0.7 else 0.0
            j = replace(j, mimic=Mimic(str(rng.choice(others)), float(rng.uniform(-2.0, 2.0)), offset))
            drivers.remove(j.name)
        out.append(j)
    found = {j.mimic.joint for j in out if j.mimic}
    return [replace(j, mimic=None) if j.name in found else j for j in out]


def all_kinds(base: str = "fixed", seed: int = 0) -> Model:
    """One joint of every kind in two branches, on the ground or on a free joint."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("world")], []
    kinds = (*(("free",) if base == "floating" else ()), "revolute", *EVERY)
    for i, kind in enumerate(kinds):
        parent = links[max(0, i - (1 if i % 4 else 2))].name if i else "world"
        if base == "floating" and i and parent == "world":
            parent = links[1].name
        links.append(Link(f"l{i + 1}", inertial(rng)))
        joints.append(joint(rng, f"j{i + 1}", kind, parent, links[-1].name))
    return Model(f"all-kinds-{base}", tuple(links), tuple(joints))


def seeds(day: int, night: int) -> list[Any]:
    """For parametrize: the first few by day, all of them by night."""
    return [*range(day), *(pytest.param(k, marks=pytest.mark.nightly) for k in range(day, night))]


def state(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q inside the limits, v and a of order one."""
    rng = np.random.default_rng(seed + 1_000_003)
    return random(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


__all__ = ["EVERY", "HINGED", "ORIGIN", "SIMPLE", "all_kinds", "inertial", "robot", "rotation", "seeds", "state"]
