"""Consistent inertias near given ones: the nearest tensor of a real body, and one inertia for two mirrored links.

A body is consistent where its pseudo-inertia [[S, m c], [m c', m]], S the second moments of its mass about the
link's origin, is positive (Wensing, Kim, Slotine, 2018). Consistent ones are exactly those that have log-Cholesky
coordinates (Rucker, Wensing, 2022), a triangle with logarithms on its diagonal; an inconsistent one has none. What
is nearest to it is therefore taken among the points that have them, by the second moments themselves.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..model.description import Inertial, Mat3

Array = np.ndarray[Any, Any]
FLOOR = 1e-6  # of the largest second moment: thin as a rod, and still with logarithms
ALIKE = 0.5  # of their size that twins may differ by, where one is made of both


def second_moments(tensor: Array) -> Array:
    """S = tr(I)/2 - I, of which every principal value is positive where there is a body."""
    found: Array = np.trace(tensor) / 2 * np.eye(3) - tensor
    return found


def _tensor(moments: Array) -> Mat3:
    t = np.trace(moments) * np.eye(3) - moments
    a, b, c = ((t + t.T) / 2).tolist()
    return (tuple(a), tuple(b), tuple(c))


def consistent(body: Inertial) -> Inertial:
    """The body's mass and centre with the nearest tensor that a body can have, in the Frobenius norm of S.

    Principal second moments below 1e-6 of the largest are raised to that.
    """
    values, axes = np.linalg.eigh(second_moments(np.array(body.tensor)))
    values = np.maximum(values, FLOOR * np.abs(values).max())
    return Inertial(body.mass, body.com, _tensor((axes * values) @ axes.T))


def _pseudo(body: Inertial) -> Array:
    c = np.array(body.com)
    p = np.zeros((4, 4))
    p[:3, :3] = second_moments(np.array(body.tensor)) + body.mass * np.outer(c, c)
    p[:3, 3] = p[3, :3] = body.mass * c
    p[3, 3] = body.mass
    return p


def _body(pseudo: Array) -> Inertial:
    mass = float(pseudo[3, 3])
    c = pseudo[:3, 3] / mass
    x, y, z = c.tolist()
    return Inertial(mass, (x, y, z), _tensor(pseudo[:3, :3] - mass * np.outer(c, c)))


def twins_of(a: Inertial, b: Inertial, keep: str = "") -> tuple[Inertial, Inertial] | None:
    """Both as mirror images of one another; None where no mirror of the axes makes them alike.

    keep: "a" or "b" stays as it is and the other follows; otherwise both become the mean. A mirror turns the signs
    of some axes: the one that brings b nearest to a is taken.
    """
    pa, pb = _pseudo(a), _pseudo(b)
    mirrors = [np.diag([*signs, 1.0]) for signs in product((1.0, -1.0), repeat=3)]
    size = np.sqrt(np.linalg.norm(pa) * np.linalg.norm(pb))
    gaps = [float(np.linalg.norm(pa - d @ pb @ d)) for d in mirrors]
    if not min(gaps) <= ALIKE * size and not keep:
        return None
    d = mirrors[gaps.index(min(gaps))]
    one = pa if keep == "a" else d @ pb @ d if keep == "b" else (pa + d @ pb @ d) / 2
    return (a if keep == "a" else _body(one)), (b if keep == "b" else _body(d @ one @ d))
