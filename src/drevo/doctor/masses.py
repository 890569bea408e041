"""Rules about masses, centres of mass and tensors: against the link's geometry, its size, its mirrored twin.

Consistent inertias near given ones: the nearest tensor of a real body, and one inertia for two mirrored links.

A body is consistent where its pseudo-inertia [[S, m c], [m c', m]], S the second moments of its mass about the
link's origin, is positive (Wensing, Kim, Slotine, 2018). Consistent ones are exactly those that have log-Cholesky
coordinates (Rucker, Wensing, 2022), a triangle with logarithms on its diagonal; an inconsistent one has none. What
is nearest to it is therefore taken among the points that have them, by the second moments themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..model.description import Inertial, Link, Mat3, Vec3
from .findings import Change, Finding, Subject, of_element
from .geometry import Extent

Array = np.ndarray[Any, Any]
LEAST_MOMENT = 1e-6  # of the largest second moment: thin as a rod, and still with logarithms
MIRRORED_ALIKE = 0.5  # of their size that twins may differ by, where one is made of both


def second_moments(tensor: Array) -> Array:
    """S = tr(I)/2 - I, of which every principal value is positive where there is a body."""
    moments: Array = np.trace(tensor) / 2 * np.eye(3) - tensor
    return moments


def _tensor(moments: Array) -> Mat3:
    t = np.trace(moments) * np.eye(3) - moments
    a, b, c = ((t + t.T) / 2).tolist()
    return (tuple(a), tuple(b), tuple(c))


def consistent(body: Inertial) -> Inertial:
    """The body's mass and centre with the nearest tensor that a body can have, in the Frobenius norm of S.

    Principal second moments below 1e-6 of the largest are raised to that.
    """
    values, axes = np.linalg.eigh(second_moments(np.array(body.tensor)))
    values = np.maximum(values, LEAST_MOMENT * np.abs(values).max())
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
    if not min(gaps) <= MIRRORED_ALIKE * size and not keep:
        return None
    d = mirrors[gaps.index(min(gaps))]
    one = pa if keep == "a" else d @ pb @ d if keep == "b" else (pa + d @ pb @ d) / 2
    return (a if keep == "a" else _body(one)), (b if keep == "b" else _body(d @ one @ d))


LIGHTEST_DENSITY, HEAVIEST_DENSITY = (
    200.0,
    20_000.0,
)  # kg/m^3: robots are lighter than osmium and heavier than balsa
GRAMS = 10.0  # as far beyond the bounds, a density is one of grams
TENSOR_UNITS = (3, 4, 6, 7, 9)  # kg cm^2, g m^2, kg mm^2, g cm^2, g mm^2 as powers of ten
LENGTHS = (1e-3, 1e-2, 1e-1)  # mm, cm, dm
TENSOR_ALLOWANCE = 1.5  # of the most that a tensor within the box can be: what is not drawn
HUGE_TENSOR, TINY_TENSOR = 100.0, 1e-3  # of a tensor to the uniform box's
FAR_CENTRE = 5.0  # diagonals of the box away: a centre of mass in another unit
BOX_MARGIN = 0.05  # of the diagonal, about the box
MAX_OFFSETS = 10.0  # longest offsets of joints that a radius of gyration may have without a geometry
TWIN_SIZE_SHARE = 0.01  # of their size that twins may differ by
TWIN_MASS_SHARE = 0.2  # of a thousandth of its mass that its twin may differ by, where that is in grams
HEAVY = (30.0, 3.0)  # times all others together: no link that is carried; one denser than any metal
_OTHER_SIDE = {"left": "right", "l": "r"}
_OTHER_SIDE |= {b: a for a, b in _OTHER_SIDE.items()}
_WORD = re.compile(r"(?i:left|right)|(?<![A-Za-z])[lrLR](?![a-z])|(?<=[a-z])[LR](?![a-z])")
# front and back, left and right of a walker
_LEG = re.compile(r"(?<=(?<![A-Za-z])[FBRHfbrh])[LRlr](?![a-z])")


def check_masses(s: Subject) -> Iterator[Finding]:
    """Everything about the inertias of one link or of two."""
    longest = max((math.hypot(*joint.origin) for joint in s.draft.joints), default=0.0)
    faulty = set()
    for k, link in enumerate(s.draft.links):
        body = link.inertial
        if body is None or body.mass <= 0.0:
            continue
        extent = s.extents[k]
        findings = list(_beside_others(s, k, link, body, extent))
        if not findings:
            findings += _against(s, k, link, body, extent) if extent else _against_size(s, k, link, body, longest)
        faulty |= {k} if findings else set()
        yield from findings
    yield from _twins(s, faulty)


# --- against the other links -----------------------------------------------------------------------------


def _beside_others(s: Subject, k: int, link: Link, body: Inertial, extent: Extent | None) -> Iterator[Finding]:
    """A mass that only grams explain: a thousand times its twin's, or many times that of all others together."""
    others = [x.inertial for x in s.draft.links if x.inertial and x.inertial.mass > 0.0 and x is not link]
    name = mirrored(link.name, {x.name for x in s.draft.links})
    twin = next((x.inertial for x in s.draft.links if x.name == name and x is not link), None)
    total, carried = sum(x.mass for x in others), any(joint.child == link.name for joint in s.draft.joints)
    dense = extent is not None and body.mass > HEAVIEST_DENSITY * extent.most
    if twin and abs(1e-3 * body.mass - twin.mass) < TWIN_MASS_SHARE * twin.mass:
        against = f"its twin has {twin.mass:g} kg"
    elif carried and len(others) > 1 and body.mass > HEAVY[dense] * total:
        against = f"all other links together have {total:.4g} kg"
    else:
        return
    lighter, usual = replace(body, mass=1e-3 * body.mass), float(np.median([_gyration(x) for x in others]))
    mended = min((lighter, _scaled(lighter, 1e-3)), key=lambda x: abs(_gyration(x) - usual))
    remedy = "it looks like grams: multiply it by 0.001" + ", and the tensor" * (mended is not lighter)
    message = f"the mass is {body.mass:g} kg, and {against}"
    yield of_element("warning", "unit", s.draft.at(link), link, message, remedy, Change("inertial", k, mended))


# --- against the geometry --------------------------------------------------------------------------------


def _against(s: Subject, k: int, link: Link, body: Inertial, extent: Extent) -> Iterator[Finding]:
    """The rules of a link whose geometry is known, the mass first: all others build on it."""
    at = s.draft.at(link)
    mass = _density(k, at, link, body, extent)
    yield from mass
    if not mass:  # else the geometry is not that of the mass
        yield from _centre(k, at, link, body, extent)
        yield from _spread(k, at, link, body, extent)


def _density(k: int, at: str, link: Link, body: Inertial, extent: Extent) -> list[Finding]:
    low = body.mass / extent.most
    high = body.mass / extent.least if extent.least else math.inf
    if low <= HEAVIEST_DENSITY and high >= LIGHTEST_DENSITY:
        return []
    density = low if low > HEAVIEST_DENSITY else high
    for factor in (1e-3, 1e-6):
        scale = (
            factor if _ratio(body, extent) > TINY_TENSOR * 10 else 1.0
        )  # the tensor came along in the same unit
        mended = _scaled(replace(body, mass=factor * body.mass), scale)
        plausible = TINY_TENSOR * 10 < _ratio(mended, extent) <= TENSOR_ALLOWANCE * _most(body, extent)
        if (
            low > GRAMS * HEAVIEST_DENSITY
            and factor * low <= HEAVIEST_DENSITY
            and factor * high >= LIGHTEST_DENSITY
            and plausible
        ):
            message = f"the mass {body.mass:g} kg in the volume of its geometry is {density:.3g} kg/m^3"
            remedy = f"it looks like {'grams' if factor == 1e-3 else 'milligrams'}: multiply it by {factor:g}"
            return [of_element("warning", "unit", at, link, message, remedy, Change("inertial", k, mended))]
    bound = f"more than {HEAVIEST_DENSITY:g}" if low > HEAVIEST_DENSITY else f"less than {LIGHTEST_DENSITY:g}"
    message = f"mass {body.mass:g} kg over the volume of its geometry is {density:.3g} kg/m^3, {bound}"
    return [of_element("warning", "density", at, link, message, "weigh it, or correct the geometry")]


def _centre(k: int, at: str, link: Link, body: Inertial, extent: Extent) -> Iterator[Finding]:
    c, edge = np.array(body.com), BOX_MARGIN * float(np.linalg.norm(extent.sizes))

    def inside(x: np.ndarray) -> bool:
        return bool(np.all((x >= extent.low - edge) & (x <= extent.high + edge)))

    if inside(c):
        return
    away = float(np.linalg.norm(c - np.clip(c, extent.low, extent.high)))
    message = f"the centre of mass {_point(body.com)} m lies {away:.3g} m outside of the box around its geometry"
    far = away > FAR_CENTRE * edge / BOX_MARGIN
    unit = next((x for x in LENGTHS if far and inside(x * c)), None)
    near = np.clip(c, extent.low, extent.high) if unit is None else unit * c
    remedy = f"move it there, at least to {_point(near)}"
    if unit:
        remedy = f"it looks like {dict(zip(LENGTHS, ('mm', 'cm', 'dm')))[unit]}: multiply it by {unit:g}"
    x, y, z = near.tolist()
    change = Change("inertial", k, replace(body, com=(x, y, z)))
    yield of_element("warning", "unit" if unit else "centre", at, link, message, remedy, change)


def _spread(k: int, at: str, link: Link, body: Inertial, extent: Extent) -> Iterator[Finding]:
    ratio = _ratio(body, extent)
    if 0.0 < ratio < TINY_TENSOR:
        message = f"the tensor is {ratio:.1g} of that of a box as large as its geometry"
        yield of_element("hint", "spread", at, link, message, "measure it, or compute it from the geometry")
    most = TENSOR_ALLOWANCE * _most(body, extent)
    if ratio <= most:
        return
    message = (
        f"the tensor is {ratio:.3g} times that of a box as large as its geometry; no mass inside of it has more "
        f"than {most / TENSOR_ALLOWANCE:.3g} times that"
    )
    if ratio <= HUGE_TENSOR:
        yield of_element("warning", "spread", at, link, message, "compute it about the centre of mass, in kg m^2")
        return
    yield _unit_of_tensor(k, at, link, body, message, ratio)


def _ratio(body: Inertial, extent: Extent) -> float:
    """The tensor's trace against that of a uniform box of the same mass around the geometry."""
    a = float(extent.sizes @ extent.sizes)
    return float(np.trace(np.array(body.tensor))) / (body.mass * a / 6.0)


def _most(body: Inertial, extent: Extent) -> float:
    """The largest ratio that a mass within the box with this centre can have: all of it in the corners."""
    c = np.clip(body.com, extent.low, extent.high)
    spread = float(((extent.high - c) * (c - extent.low)).sum())
    half = float((extent.sizes**2).sum()) / 4.0  # a centre near a wall is not known that well
    return 12.0 * max(spread, half) / float(extent.sizes @ extent.sizes)


def _unit_of_tensor(k: int, at: str, link: Link, body: Inertial, message: str, ratio: float) -> Finding:
    power = min(TENSOR_UNITS, key=lambda p: abs(math.log10(ratio) - p))
    change = Change("inertial", k, _scaled(body, 10.0**-power))
    remedy = f"it looks like another unit than kg m^2: multiply it by 1e-{power}"
    return of_element("warning", "unit", at, link, message, remedy, change)


def _gyration(body: Inertial) -> float:
    """The radius at which all of the mass would have the mean of the principal moments, m."""
    return math.sqrt(max(float(np.trace(np.array(body.tensor))), 0.0) / (2.0 * body.mass))


def _scaled(body: Inertial, factor: float) -> Inertial:
    a, b, c = ((factor * x, factor * y, factor * z) for x, y, z in body.tensor)
    return replace(body, tensor=(a, b, c))


def _point(x: Vec3 | np.ndarray) -> str:
    return "(" + ", ".join(f"{float(c):.4g}" for c in x) + ")"


# --- without a geometry: against the robot's offsets -------------------------------------------------------


def _against_size(s: Subject, k: int, link: Link, body: Inertial, longest: float) -> Iterator[Finding]:
    """Lengths that no unit but a smaller one explains, beside the longest offset of a joint."""
    if longest <= 0.0:
        return
    at, reach = s.draft.at(link), MAX_OFFSETS * longest
    away = math.hypot(*body.com)
    if away > reach:
        x, y, z = (1e-3 * c for c in body.com)
        message = f"the centre of mass lies {away:.3g} m from its joint, and no joint of the robot {longest:.3g} m"
        change = Change("inertial", k, replace(body, com=(x, y, z)))
        yield of_element("warning", "unit", at, link, message, "it looks like mm: multiply it by 0.001", change)
        return
    radius = _gyration(body)
    if radius > reach:
        message = f"the radius of gyration is {radius:.3g} m, and no offset of a joint is beyond {longest:.3g} m"
        size = max(away, longest / 3.0)
        yield _unit_of_tensor(k, at, link, body, message, (radius / (0.6 * size)) ** 2)


# --- twins -------------------------------------------------------------------------------------------------


def mirrored(name: str, names: Container[str]) -> str:
    """The one of the names on the other side: left and right, l and r exchanged; the same where there is none."""

    def other(match: re.Match[str]) -> str:
        word, swapped = match[0], _OTHER_SIDE[match[0].lower()]
        return swapped.upper() if word.isupper() else swapped.capitalize() if word[0].isupper() else swapped

    for pattern in (_LEG, _WORD):
        alone = [name[: x.start()] + other(x) + name[x.end() :] for x in pattern.finditer(name)]
        for swapped in (pattern.sub(other, name), *alone):  # alone: LINK begins with no side
            if swapped != name and swapped in names:
                return swapped
    return name


def _twins(s: Subject, faulty: set[int]) -> Iterator[Finding]:
    links = {link.name: k for k, link in enumerate(s.draft.links)}
    for name, k in links.items():
        other = links.get(mirrored(name, links), k)
        a, b = s.draft.links[k].inertial, s.draft.links[other].inertial
        if other <= k or a is None or b is None or min(a.mass, b.mass) <= 0.0 or not (gap := _gap(a, b)):
            continue
        keep = "" if (k in faulty) == (other in faulty) else "b" if k in faulty else "a"
        mended = twins_of(a, b, keep)
        change = None if mended is None else Change("twins", k, ((k, mended[0]), (other, mended[1])))
        how = {"": "the mean of both", "a": f"that of {name!r}", "b": f"that of {s.draft.links[other].name!r}"}[
            keep
        ]
        remedy = f"give both the same inertia, mirrored ({how})"
        label = f"{s.draft.at(s.draft.links[k])} and {s.draft.at(s.draft.links[other])}"
        message = f"the mirrored links differ, {gap}"
        yield of_element("warning", "twins", label, s.draft.links[k], message, remedy, change)


def _gap(a: Inertial, b: Inertial) -> str:
    """By what twins differ that no mirror or turn of axes changes; empty where they are alike."""
    size = np.linalg.norm(a.com) + np.linalg.norm(b.com) + math.sqrt(_trace(a) / a.mass)
    if abs(a.mass - b.mass) > TWIN_SIZE_SHARE * max(a.mass, b.mass):
        return f"mass {a.mass:g} and {b.mass:g} kg"
    if abs(np.linalg.norm(a.com) - np.linalg.norm(b.com)) > TWIN_SIZE_SHARE * size:
        return f"centre of mass {np.linalg.norm(a.com):.4g} and {np.linalg.norm(b.com):.4g} m from the joint"
    one, two = (np.linalg.eigvalsh(np.array(x.tensor)) for x in (a, b))
    if np.abs(one - two).max() > TWIN_SIZE_SHARE * max(_trace(a), _trace(b)):
        return f"principal moments {_point(one)} and {_point(two)} kg m^2"
    return ""


def _trace(body: Inertial) -> float:
    return abs(float(np.trace(np.array(body.tensor))))
