"""Assumptions of symbolic equations about a robot: what is zero in it, its axes and turns, what was merged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..model.description import IDENTITY, Model
from ..model.rotations import to_rpy
from .tracer import ParameterSymbols

TENSOR_ENTRIES = (("xx", 0, 0), ("xy", 0, 1), ("xz", 0, 2), ("yy", 1, 1), ("yz", 1, 2), ("zz", 2, 2))
NO_AXIS = ("fixed", "spherical", "free", "custom")


def assumptions(model: Model, symbols: ParameterSymbols) -> list[str]:
    """The sentences of a page whose parameters are symbols."""
    zeros: dict[str, list[str]] = {}
    for name, x in _scalars(model):
        if not x and symbols.wanted(name):
            owner, entry = name.rsplit(".", 1)
            zeros.setdefault(owner, []).append(entry)
    listed = "; ".join(f"{owner} {' '.join(entries)}" for owner, entries in zeros.items())
    said = [f"Zero in this robot, and left out: {listed}."] if zeros else []
    turned = "; ".join(_turned(model))
    said += [f"Directions are numbers (turns: roll, pitch, yaw): {turned}."] if turned else []
    return said + [f"{name} = {of}: equal in this robot, one symbol." for name, of in symbols.merged.items()]


def _scalars(model: Model) -> Iterator[tuple[str, float]]:
    """Lengths, moments and gravity by their names."""
    for link in model.links:
        if link.inertial is not None:
            yield from ((f"{link.name}.com.{a}", x) for a, x in zip("xyz", link.inertial.com))
            tensor = link.inertial.tensor
            yield from ((f"{link.name}.inertia.{a}", tensor[i][j]) for a, i, j in TENSOR_ENTRIES)
    for joint in model.joints:
        yield from ((f"{joint.name}.origin.{a}", x) for a, x in zip("xyz", joint.origin))
    yield from ((f"gravity.{a}", x) for a, x in zip("xyz", model.gravity))


def _turned(model: Model) -> Iterator[str]:
    """Axes of joints and turns of frames, in degrees."""
    for joint in model.joints:
        parts = [f"axis {_listed(x)}" for x in (joint.axis, joint.axis2) if x and joint.kind not in NO_AXIS]
        turns = ((joint.rotation, "turned by"), (joint.child_rotation, "link turned by"))
        parts += [f"{word} {_listed(map(math.degrees, to_rpy(R)), '°')}" for R, word in turns if R != IDENTITY]
        if parts:
            yield f"{joint.name} {', '.join(parts)}"


def _listed(numbers: Iterable[float], unit: str = "") -> str:
    return f"({', '.join(f'{x + 0.0:.6g}{unit}' for x in numbers)})"
