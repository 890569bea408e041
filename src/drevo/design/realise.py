"""Robots that meet conditions: counterweights, or redistributed bodies, by a linear programme.

Counterweights of a given density are boxes, plates or rods about the places that the programme loads: their own
moments depend on their sizes, which are found with the masses.

A body made of non-negative point masses is physically consistent whatever the masses are, and every parameter is
linear in them: the least added mass that meets the conditions is a linear programme (HiGHS, through SciPy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..errors import InputError, NumericsError, shown
from ..io.given import Array, finite, flag, number
from ..io.packages import package
from ..mechanics.spatial import ZERO_INERTIA, Mat, RigidInertia, Sym, Vec
from ..mechanics.tree_indices import ancestors
from ..model.description import Inertial, Model, Shape
from ..model.loaders.solids import combined_inertia
from ..robot.face import Robot
from .free_lengths import texts
from .parameters import Parameters
from .polynomial import NUMBER, Space

MASS_PLACES = (-1.0, -0.5, 0.0, 0.5, 1.0)  # places of masses in a cube of the half-width `reach` about each pole
BOX_PLACES, MAX_BOX = (
    0.8,
    0.4,
)  # of reach: where the outermost boxes have their middles, how long their sides may be
SIZINGS = 100  # rounds in which masses and sizes of boxes settle
THICKNESS = 1e-3  # share of a redistributed body's mass that is spread over all places, so that it is no sheet
TOLERANCE = 1e-11


def realise(
    model: Model,
    known: Parameters,
    space: Space,
    bodies: Sequence[str] | None = None,
    counterweights: bool = True,
    reach: float = 0.5,
    density: float | None = None,
    proportions: Sequence[float] = (1.0, 1.0, 1.0),
) -> Robot:
    """The robot with the least added mass that meets the conditions, whose coefficients are the space.

    counterweights: point masses are added to the bodies (all, or those of the links named); otherwise these
    bodies are made anew, each at least as heavy as it was. Masses stand within `reach` metres of the pole along
    each axis. density: kg/m^3; counterweights are then boxes of it that do not meet and are drawn as shapes of
    their links, proportions: of their sides along the axes of the body, (1, 1, 0.1) plates, (1, 0.1, 0.1) rods.
    """
    reach = number("realise: reach", reach, "a positive number of metres", lambda x: 0.0 < x <= 1e6)
    counterweights = flag("realise: counterweights", counterweights)
    chosen = _bodies(known, bodies)
    if density is not None:
        density = number("realise: density", density, "a positive number of kg/m^3", lambda x: 0.0 < x <= 1e6)
        if not counterweights:
            raise InputError("realise: density is that of counterweights; leave counterweights=False out")
    sides = np.array(finite("realise: proportions", proportions, (3,), InputError))
    if sides.min() <= 0.0:
        raise InputError(f"realise: proportions {shown(proportions)} must be above 0")
    kept = known.tree
    if not counterweights:
        kept = kept.replace(
            bodies=tuple(b._replace(inertia=ZERO_INERTIA) if i in chosen else b for i, b in enumerate(kept.bodies))
        )
    out = reach if density is None else BOX_PLACES * reach
    places = [(i, Vec(*(out * s for s in r))) for i in chosen for r in product(MASS_PLACES, repeat=3)]
    rows = _matrix(known, space)
    A = rows @ np.stack([_effect(known, i, r) for i, r in places], axis=1)
    b = -rows @ np.asarray(known.values(kept))
    floor = [] if counterweights else [(i, known.tree.bodies[i].inertia.m) for i in chosen]
    masses, sizes = _least(A, b, places, floor, reach), np.zeros((len(places), 3))
    if density is not None:
        masses, sizes = _sized(rows, b, known, places, masses, sides, density)
        if np.max(sizes, initial=0.0) > MAX_BOX * reach:
            raise NumericsError(
                f"a counterweight of {density:g} kg/m^3 has a side of {np.max(sizes):.3g} m, and a reach of "
                f"{reach:g} m leaves room for {MAX_BOX * reach:.3g} m: allow more density or reach"
            )
    clouds: dict[int, list[tuple[float, Vec, Array]]] = {}
    for (i, r), m, size in zip(places, masses, sizes):
        if m > 0.0:
            clouds.setdefault(i, []).append((float(m), r, size))
    return Robot(_with_clouds(model, known, clouds, counterweights))


def _bodies(known: Parameters, names: Sequence[str] | None) -> list[int]:
    """Bodies by the names of their links or by their numbers."""
    if names is None:
        return list(range(len(known.tree)))
    out = []
    for name in texts("realise: bodies", names):
        found = [i for i, b in enumerate(known.tree.bodies) if str(name) in (b.link, b.number)]
        if not found:
            there = ", ".join(b.link for b in known.tree.bodies)
            raise InputError(f"realise: {shown(name)} is no moving link; there are {there}")
        out += found
    if not out:
        raise InputError("realise: bodies names none; leave it out for all of them")
    return out


def _matrix(known: Parameters, space: Space) -> Array:
    """The conditions as rows over all parameters, each scaled to 1."""
    rows = np.zeros((len(space), len(known.all)))
    for r, row in enumerate(space.rows.values()):
        for k, x in row.items():
            if k != NUMBER:
                rows[r, k] = float(x)
    return rows


def _sized(
    rows: Array, b: Array, known: Parameters, places: Sequence[tuple[int, Vec]], masses: Array, sides: Array,
    density: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Masses, and sizes (n, 3) m of boxes of these masses, that meet the conditions with their own moments."""
    m, used = masses.copy(), masses > 0.0
    for _ in range(SIZINGS):
        sizes = np.cbrt(m / (density * np.prod(sides)))[:, None] * sides
        A = rows @ np.stack(
            [_effect(known, places[k][0], places[k][1], sizes[k]) for k in np.flatnonzero(used).tolist()], axis=1
        )
        left = b - A @ m[used]
        if np.max(np.abs(left) / (np.abs(A) @ m[used] + np.abs(b) + 1.0), initial=0.0) <= TOLERANCE:
            return m, sizes
        m[used] = np.maximum(m[used] + np.linalg.lstsq(A, left, rcond=None)[0], 0.0)
    raise NumericsError("masses and sizes of the counterweights do not settle: allow more density or reach")


def _effect(known: Parameters, i: int, r: Vec, size: Sequence[float] | Array = (0.0, 0.0, 0.0)) -> Array:
    """The change of the parameters by a unit mass at r on body i, a box of a size (3,)."""
    out = np.zeros(len(known.all))
    xx, yy, zz = (e * e + s * s / 12.0 for e, s in zip(r, size))
    body = RigidInertia(1.0, r, Sym(xx, r.x * r.y, r.x * r.z, yy, r.y * r.z, zz))
    for kind in ("x", "y", "z"):
        out[known.at[i, kind]] = getattr(body.J, 2 * kind)
        out[known.at[i, f"d{kind}"]] = getattr(r, kind)
    for kind in ("xy", "xz", "yz"):
        out[known.at[i, kind]] = getattr(body.S, kind)
    below = -1
    for a in ancestors(known.tree.parents, i):
        out[known.at[a, "m"]] += 1.0
        if below >= 0:  # the mass of the subtree stands in the child's pole, (1)
            for kind, x in zip("xyz", known.tree.bodies[below].p):
                out[known.at[a, f"d{kind}"]] += x
        below = a
    return out


def _least(
    A: Array, b: Array, places: Sequence[tuple[int, Vec]], floor: Sequence[tuple[int, float]], reach: float
) -> Array:
    """Non-negative masses with A m = b, least in sum; each body of `floor` at least that heavy."""
    linprog = package("scipy.optimize", "realise").linprog
    owner = np.asarray([i for i, _ in places])
    low = np.zeros(len(places))
    G, h = np.zeros((len(floor), len(places))), np.zeros(len(floor))
    for k, (i, m) in enumerate(floor):
        low[owner == i] = THICKNESS * m / np.sum(owner == i)
        G[k, owner == i], h[k] = -1.0, -m
    scale = np.maximum(np.max(np.abs(A), axis=1, initial=0.0), 1e-12)[:, None]
    bounds = [(x, None) for x in low]
    rest = {"A_ub": G, "b_ub": h} if floor else {}
    found = linprog(
        np.ones(len(places)), A_eq=A / scale, b_eq=b / scale[:, 0], bounds=bounds, method="highs", **rest
    )
    if found.x is None:
        raise NumericsError(
            f"no non-negative masses within {reach} m of the poles of the bodies allowed meet the conditions: "
            "allow more reach or more bodies, or counterweights=False"
        )
    return _polished(A, b, np.asarray(found.x), low)


def _polished(A: Array, b: Array, m: Array, low: Array) -> Array:
    """The solver's answer, made exact to rounding on the masses that it uses."""
    m = np.where(m > low + 1e-9, m, low)
    used = m > low
    for _ in range(3):
        m[used] += np.linalg.lstsq(A[:, used], b - A @ m, rcond=None)[0]
    worst = np.max(np.abs(b - A @ m) / (np.abs(A) @ np.abs(m) + np.abs(b) + 1.0), initial=0.0)
    if worst > TOLERANCE or np.any(m < -TOLERANCE):
        raise NumericsError(
            f"the linear programme left a residual of {worst:.1e} in the conditions: allow more reach"
        )
    return np.asarray(np.maximum(m, 0.0))


def _with_clouds(
    model: Model, known: Parameters, clouds: dict[int, list[tuple[float, Vec, Array]]], added: bool
) -> Model:
    """The model with point masses or boxes on links, or with links made of them."""
    first = {known.tree.bodies[i].link: i for i in clouds}
    links = []
    for link in model.links:
        frame = known.tree.frames[link.name]
        if link.name in first:
            body = (added and link.inertial) or Inertial()
            turn = frame.R.T
            cloud = [(m, turn @ (r - frame.p), size) for m, r, size in clouds[first[link.name]]]
            points = [(m, at, _box_tensor(m, size, turn)) for m, at, size in cloud]
            boxes = [Shape("box", tuple(size.tolist()), tuple(at), _rotation(turn))
                     for _, at, size in cloud if size.any()]  # fmt: skip
            inertial = combined_inertia([(body.mass, body.com, body.tensor), *points])
            links.append(replace(link, inertial=inertial, shapes=(*link.shapes, *boxes)))
        elif not added and frame.body in clouds:
            links.append(replace(link, inertial=None))  # welded to a link that carries the whole body now
        else:
            links.append(link)
    return replace(model, name=f"{model.name}_realised", links=tuple(links))


def _rotation(R: Mat) -> Any:
    return tuple(map(tuple, R))


def _box_tensor(m: float, size: Array, turn: Mat) -> Any:
    """The inertia of a box about its middle, in link axes."""
    R, (x, y, z) = np.array(turn, float), size**2 / 12.0
    return tuple(map(tuple, (m * R @ np.diag([y + z, x + z, x + y]) @ R.T).tolist()))
