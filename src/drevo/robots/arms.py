"""Classical arms from rows of Denavit-Hartenberg tables, with published, symmetric or general inertias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi
from random import Random

from ..dh import building as dh
from ..errors import ModelError, one_of
from ..model.description import ORIGIN, Inertial, Mat3, Model, Vec3
from .data import quarter, tensor_of

DhRow = tuple[float, float, float]  # modified DH: alpha [quarter turns], a [m], d [m]
INERTIAS = ("general", "symmetric", "published", "physical")

PUMA560: tuple[DhRow, ...] = (
    (0, 0, 0), (-1, 0, 0), (0, 0.4318, 0.15005), (-1, 0.0203, 0.4331), (1, 0, 0), (-1, 0, 0),
)  # fmt: skip
STANFORD: tuple[DhRow, ...] = ((0, 0, 0), (-1, 0, 0.1524), (1, 0, 0), (0, 0, 0), (-1, 0, 0), (1, 0, 0))
RX90: tuple[DhRow, ...] = ((0, 0, 0), (1, 0, 0), (0, 0.45, 0), (-1, 0, 0.45), (1, 0, 0), (-1, 0, 0))

# mass, centre of mass, central moments xx, yy, zz, in the frames of the rows
BodyRow = tuple[float, Vec3, Vec3]
PUMA560_BODIES: tuple[BodyRow, ...] = (
    (0.0, ORIGIN, (0.0, 0.0, 0.35)),
    (17.4, (0.068, 0.006, -0.016), (0.13, 0.524, 0.539)),
    (4.8, (0.0, -0.070, 0.014), (0.066, 0.0125, 0.086)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, ORIGIN, (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
PUMA560_PHYSICAL: tuple[BodyRow, ...] = (
    (13.0, ORIGIN, (0.35, 0.35, 0.35)),
    PUMA560_BODIES[1],
    (4.8, (0.0, -0.070, 0.014), (0.066, 0.0125, 0.0785)),
    *PUMA560_BODIES[3:],
)
PUMA560_NOTES = (
    "link1 has an inertia tensor but no mass: the paper measured what joint 1 feels",
    "link3: the measured principal moments 0.0125, 0.066, 0.086 kg m^2 break the triangle inequality; "
    'drevo.robots.puma560(inertia="physical") has numbers of bodies that can exist',
)
# Paul's frames are past the joints (standard DH), with these twists; the numbers below are in his frames
STANFORD_TWISTS = (-1, 1, 0, -1, 1, 0)
STANFORD_BODIES: tuple[BodyRow, ...] = (
    (9.29, (0.0, 0.0175, -0.1105), (0.276, 0.255, 0.071)),
    (5.01, (0.0, -0.1054, 0.0), (0.108, 0.018, 0.100)),
    (4.25, (0.0, 0.0, -0.6447), (2.51, 2.51, 0.006)),
    (1.08, (0.0, 0.0092, -0.0054), (0.002, 0.001, 0.001)),
    (0.63, (0.0, 0.0, 0.0566), (0.003, 0.003, 0.0004)),
    (0.51, (0.0, 0.0, 0.1554), (0.013, 0.013, 0.0003)),
)
# which first moments of the links 1..6 are not zero where links are symmetric
PUMA560_SYMMETRY = ("z", "xz", "yz", "z", "", "z")
STANFORD_SYMMETRY = ("z", "z", "z", "z", "y", "z")
RX90_SYMMETRY = ("z", "xz", "y", "z", "y", "z")


def puma560(inertia: str = "published") -> Model:
    """Unimation Puma 560, modified DH rows of its literature (a2 0.4318, a3 0.0203, d3 0.15005, d4 0.4331 m).

    published: Armstrong, Khatib, Burdick 1986, "The explicit dynamic model and inertial parameters of the
    Puma 560 arm": masses, centres of mass and central moments as its literature prints them, entered in these
    frames. The paper's own frames differ from these rows in signs (its fourth row has a twist of +90 degrees
    and a3 = -0.0203 m), so zeros and magnitudes are the paper's while this is no calibrated arm; motors are
    left out. The numbers were measured: link 1 has only what joint 1 feels, 0.35 kg m^2 about z and no mass,
    and the moments of link 3 just break the triangle inequality; `robot.notes` says so, without a warning.

    physical: the published numbers of bodies that can exist, so that every simulator takes them: link 1 has 13 kg
    on its axis, which joint 1 does not feel, and 0.35 kg m^2 about every axis; the moment of link 3 about z is
    0.0785 kg m^2, the sum of the other two.
    symmetric: the usual zero pattern of symmetric links with unrelated numbers. general: all ten parameters
    of every link nonzero and unrelated, physical. Both come from Random(560).
    """
    if _known(inertia) == "physical":
        bodies = [Inertial(m, c, _diagonal(moments)) for m, c, moments in PUMA560_PHYSICAL]
        return _arm("puma560", PUMA560, bodies)
    if inertia != "published":
        return _arm("puma560", PUMA560, drawn(inertia, PUMA560_SYMMETRY, 560))
    ball = Inertial(1.0, ORIGIN, _diagonal((1.0, 1.0, 1.0)))
    plain = _arm("puma560", PUMA560, [ball] * 6)
    # put in afterwards: what the measured numbers leave to doubt is noted, not warned about at every load
    measured = [None, *(Inertial(m, c, _diagonal(moments)) for m, c, moments in PUMA560_BODIES)]
    links = tuple(replace(link, inertial=body) for link, body in zip(plain.links, measured))
    return replace(plain, links=links, notes=PUMA560_NOTES)


def stanford(inertia: str = "published") -> Model:
    """The Stanford (Scheinman) arm, RRPRRR, modified DH rows of its literature (d2 0.1524 m).

    published: Paul 1981, "Robot manipulators", tables 6.4 and 6.6, by way of the copies in circulation.
    These put the centres of mass of links 2 to 6 ten times too far out (6.447 m for link 3); here they are
    0.1054, 0.6447, 0.0092 and 0.0054, 0.0566, 0.1554 m, as the size of the arm demands. Motors are left out.
    symmetric, general: as for `puma560`, from Random(1969).
    """
    if _known(inertia) != "published":
        bodies = drawn(inertia, STANFORD_SYMMETRY, 1969)
    else:
        twists = [dh.Constants(alpha=quarter(turns)) for turns in STANFORD_TWISTS]
        bodies = [
            Inertial(m, *dh.body_standard(twist, c, _diagonal(moments)))
            for twist, (m, c, moments) in zip(twists, STANFORD_BODIES)
        ]
    return _arm("stanford", STANFORD, bodies, sliding=(3,))


def rx90(inertia: str = "published") -> Model:
    """Staubli RX-90, modified DH rows of Khalil and Dombre (D3 = RL4 = 0.45 m).

    published: Khalil and Dombre, "Modeling, identification and control of robots", print the symmetric
    pattern of its links; no measured numbers were found. So the pattern is published, and the numbers are
    drawn from Random(1990). symmetric: the same; general: as for `puma560`.
    """
    kind = "symmetric" if _known(inertia) == "published" else inertia
    return _arm("rx90", RX90, drawn(kind, RX90_SYMMETRY, 1990))


def scara() -> Model:
    """A four-joint SCARA with the DH table of the AdeptOne in Schilling 1990, "Fundamentals of robotics".

    d1 0.877, a1 0.425, a2 0.375, d4 0.2 m, the second axis down. The table has no inertias: the links are
    uniform slender rods (the book's own model) with round masses chosen here, 15, 10, 3 and 1 kg.
    """
    # centres of mass and tensors in the frames past the joints: rods along x, then along z
    rows = (
        ("R", 0.0, 0.877, 0.425, pi, 15.0, (-0.2125, 0.0, 0.0), (0.0, 0.425, 0.425)),
        ("R", 0.0, 0.0, 0.375, 0.0, 10.0, (-0.1875, 0.0, 0.0), (0.0, 0.375, 0.375)),
        ("P", 0.0, 0.0, 0.0, 0.0, 3.0, (0.0, 0.0, -0.15), (0.3, 0.3, 0.0)),
        ("R", 0.0, 0.2, 0.0, 0.0, 1.0, (0.0, 0.0, -0.1), (0.2, 0.2, 0.1)),
    )
    table = [
        {"joint": joint, "theta": theta, "d": d, "a": a, "alpha": alpha, "mass": mass, "com": com,
         "inertia": _diagonal(tuple(mass * x * x / 12 for x in lengths))}  # type: ignore[arg-type]
        for joint, theta, d, a, alpha, mass, com, lengths in rows
    ]  # fmt: skip
    return dh.builder(table, "standard", name="scara").model()


def _arm(name: str, rows: Sequence[DhRow], bodies: Sequence[Inertial], sliding: tuple[int, ...] = ()) -> Model:
    table = [
        {"joint": "prismatic" if k in sliding else "revolute", "alpha": quarter(alpha), "a": a, "d": d,
         "mass": body.mass, "com": body.com, "inertia": body.tensor}
        for k, ((alpha, a, d), body) in enumerate(zip(rows, bodies), 1)
    ]  # fmt: skip
    return dh.builder(table, "modified", name=name).model()


def _known(inertia: str) -> str:
    one_of("inertia", inertia, INERTIAS, ModelError)
    return inertia


def drawn(inertia: str, patterns: Sequence[str], seed: int) -> list[Inertial]:
    """Bodies of a documented seed: Python keeps the numbers of Random(seed).random() the same for ever."""
    rng = Random(seed)
    if inertia == "general":
        return [_general(rng, 20.0 / k) for k in range(1, len(patterns) + 1)]
    return [_symmetric(rng, 20.0 / k, pattern) for k, pattern in enumerate(patterns, 1)]


def _between(rng: Random, low: float, high: float) -> float:
    return low + (high - low) * rng.random()


def _general(rng: Random, size: float) -> Inertial:
    """A body with second moments S = m G G^T, which are positive definite: any such body exists."""
    mass = _between(rng, 0.5, 1.5) * size
    com: Vec3 = (_between(rng, 0.02, 0.2), _between(rng, -0.2, -0.02), _between(rng, 0.02, 0.2))
    g = [
        [_between(rng, 0.03, 0.12) * (1 if i == j else rng.choice((-0.5, 0.5))) for j in range(3)]
        for i in range(3)
    ]
    second = [[mass * sum(x * y for x, y in zip(p, q)) for q in g] for p in g]
    return Inertial(mass, com, _tensor_of(second))


def _symmetric(rng: Random, size: float, pattern: str) -> Inertial:
    """Diagonal central moments; first moments only along the axes that the pattern names."""
    mass = _between(rng, 0.5, 1.5) * size
    x, y, z = (_between(rng, 0.02, 0.2) if axis in pattern else 0.0 for axis in "xyz")
    second = [[mass * _between(rng, 0.03, 0.12) ** 2 if i == j else 0.0 for j in range(3)] for i in range(3)]
    return Inertial(mass, (x, y, z), _tensor_of(second))


def _tensor_of(second: Sequence[Sequence[float]]) -> Mat3:
    """The inertia tensor tr(S) 1 - S of the second moments S."""
    trace = second[0][0] + second[1][1] + second[2][2]
    xx, yy, zz = (trace - second[k][k] for k in range(3))
    return tensor_of((xx, yy, zz, 0.0 - second[0][1], 0.0 - second[0][2], 0.0 - second[1][2]))


def _diagonal(moments: Vec3) -> Mat3:
    return tensor_of((*moments, 0.0, 0.0, 0.0))
