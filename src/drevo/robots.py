"""The embedded robots: worked examples of the literature that Drevo grew from, four classical arms,
and three with closed loops.

Each function makes a Robot; `EMBEDDED` maps the names that `drevo.load` knows to functions that make Models.
Every robot stands on the ground; `model(name, base)` and `drevo.load(name, base=...)` put it on another base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import pi
from random import Random
from typing import TYPE_CHECKING

from . import dh
from .builder import WORLD, Builder
from .embedded_data import BIPED, THREE_LINK, TWO_ARM_PLANAR, TWO_ARM_SPATIAL, Hinged, Six
from .errors import ModelError
from .model.base import with_base
from .model.description import ORIGIN, Contact, Inertial, Joint, Link, Mat, Model, Vec
from .model.rotations import add, apply, from_rpy, matmul, turn_tensor
from .model.validation import Draft, finish
from .robots_closed import four_bar_model, stewart_model, two_arm_model

if TYPE_CHECKING:
    from .robot import Robot

Row = tuple[float, float, float]  # modified DH: alpha [quarter turns], a [m], d [m]
DOWN: Vec = (0.0, 0.0, -9.81)
DOWN_Y: Vec = (0.0, -9.81, 0.0)
INERTIAS = ("general", "symmetric", "published")


# --- worked examples --------------------------------------------------------------------------------------


def three_link() -> Robot:
    """Telegin 2025, example 1: three links in the vertical plane x, y; gravity along -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _robot(_three_link_model())


def two_arm_planar() -> Robot:
    """Telegin 2025, example 2: a column with two planar arms of two links, in a horizontal plane; gravity -z.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _robot(_two_arm_planar_model())


def two_arm_spatial() -> Robot:
    """Telegin 2025, example 3: a column with two spatial arms of three links, seven joints; y up, gravity -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with
    ("general": no condition for a constant inertia matrix holds).
    """
    return _robot(_two_arm_spatial_model())


def rod_chain(n: int = 10) -> Robot:
    """Yudintsev's slides on Vereshchagin's method: a hanging chain of n uniform thin rods in the plane x, y.

    1 m and 10 kg in all, gravity along -y, the first hinge at the origin, rods along x at q = 0, relative
    angles.
    """
    return _robot(_rod_chain_model(n))


def screw_arm() -> Robot:
    """Alyushin 2022: a column (about z), an arm (about y) and a screw (about and along x, 0.1 m a turn).

    Axes of the bodies are those of the observer at q = 0; the load is clamped to link 3.
    """
    return _robot(_screw_arm_model())


def biped() -> Robot:
    """Kovalchuk, Kulakov, Semenov: a pelvis, two legs of six joints and a torso; z up, x forward, gravity -z.

    Lengths and masses are those of the first biped that this project verified the paper with. The pelvis is
    the root: `drevo.load("biped", base="trunk")` gives the paper's nineteen coordinates. At q = 0 it stands
    upright. The corners of the soles (0.22 x 0.10 m, level at q = 0, centred below the ankles) are the
    contact points.
    """
    return _robot(_biped_model())


# --- classical arms ---------------------------------------------------------------------------------------


def puma560(inertia: str = "published") -> Robot:
    """Unimation Puma 560, modified DH rows of its literature (a2 0.4318, a3 0.0203, d3 0.15005, d4 0.4331 m).

    published: Armstrong, Khatib, Burdick 1986, "The explicit dynamic model and inertial parameters of the
    Puma 560 arm": masses, centres of mass and central moments as its literature prints them, entered in these
    frames. The paper's own frames differ from these rows in signs (its fourth row has a twist of +90 degrees
    and a3 = -0.0203 m), so zeros and magnitudes are the paper's while this is no calibrated arm; motors are
    left out. The numbers were measured: link 1 has only what joint 1 feels, 0.35 kg m^2 about z and no mass,
    and the moments of link 3 just break the triangle inequality; `robot.notes` says so, without a warning.

    symmetric: the usual zero pattern of symmetric links with unrelated numbers. general: all ten parameters
    of every link nonzero and unrelated, physical. Both come from Random(560).
    """
    return _robot(_puma560_model(inertia))


def stanford(inertia: str = "published") -> Robot:
    """The Stanford (Scheinman) arm, RRPRRR, modified DH rows of its literature (d2 0.1524 m).

    published: Paul 1981, "Robot manipulators", tables 6.4 and 6.6, by way of the copies in circulation.
    These put the centres of mass of links 2 to 6 ten times too far out (6.447 m for link 3); here they are
    0.1054, 0.6447, 0.0092 and 0.0054, 0.0566, 0.1554 m, as the size of the arm demands. Motors are left out.
    symmetric, general: as for `puma560`, from Random(1969).
    """
    return _robot(_stanford_model(inertia))


def rx90(inertia: str = "published") -> Robot:
    """Staubli RX-90, modified DH rows of Khalil and Dombre (D3 = RL4 = 0.45 m).

    published: Khalil and Dombre, "Modeling, identification and control of robots", print the symmetric
    pattern of its links; no measured numbers were found. So the pattern is published, and the numbers are
    drawn from Random(1990). symmetric: the same; general: as for `puma560`.
    """
    return _robot(_rx90_model(inertia))


def scara() -> Robot:
    """A four-joint SCARA with the DH table of the AdeptOne in Schilling 1990, "Fundamentals of robotics".

    d1 0.877, a1 0.425, a2 0.375, d4 0.2 m, the second axis down. The table has no inertias: the links are
    uniform slender rods (the book's own model) with round masses chosen here, 15, 10, 3 and 1 kg.
    """
    return _robot(_scara_model())


# --- closed loops -----------------------------------------------------------------------------------------


def four_bar() -> Robot:
    """A four-bar linkage: crank 0.2 m, coupler 0.583 m, rocker 0.510 m, ground 0.6 m; the crank can turn round.

    In the plane x, z, uniform rods of 1, 2 and 2 kg, gravity -z. At q = 0 it is closed, with the crank up.
    """
    return _robot(four_bar_model())


def stewart() -> Robot:
    """A Stewart platform: a free disc of 12 kg on six legs, universal at the ground, prismatic, spherical at it.

    q: the platform's position and quaternion, then two angles and the extension of each leg. At
    `robot.neutral()` it is closed, level, 1 m high. Nothing drives the legs.
    """
    return _robot(stewart_model())


def two_arm() -> Robot:
    """Two arms of six joints whose hands are welded to one free box of 3 kg; elbows bent, z up, gravity -z.

    The two welds are loops, so their reactions are the wrenches of the grips. At `robot.neutral()` it is closed.
    """
    return _robot(two_arm_model())


def model(name: str, base: str = "fixed") -> Model:
    """The Model of an embedded robot by its name ("puma560"), on a base: "fixed", "floating" or "trunk"."""
    if name not in EMBEDDED:
        raise ModelError(f"there is no embedded robot {name!r}; there are {', '.join(EMBEDDED)}")
    return with_base(EMBEDDED[name](), base)


# --- models -----------------------------------------------------------------------------------------------


def _robot(model: Model) -> Robot:
    from .robot import Robot

    return Robot(model)


def _three_link_model() -> Model:
    return _hinged("three-link", THREE_LINK, DOWN_Y)


def _two_arm_planar_model() -> Model:
    return _hinged("two-arm-planar", TWO_ARM_PLANAR, DOWN)


def _two_arm_spatial_model() -> Model:
    return _hinged("two-arm-spatial", TWO_ARM_SPATIAL, DOWN_Y)


def _hinged(name: str, bodies: Sequence[Hinged], gravity: Vec) -> Model:
    b = Builder(name, gravity)
    for k, (parent, offset, axis, mass, com, six) in enumerate(bodies, 1):
        b.body(
            f"link{k}",
            f"link{parent}" if parent else WORLD,
            axis=axis,
            origin=offset,
            mass=mass,
            com=com,
            inertia=_tensor(six),
            inertia_at="joint",
            joint_name=f"joint{k}",
        )
    return b.model()


def _rod_chain_model(n: int = 10) -> Model:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ModelError(f"a rod chain has one rod or more, not {n!r}")
    b, length, mass = Builder("rod-chain", DOWN_Y), 1.0 / n, 10.0 / n
    moment = mass * length**2 / 12
    for k in range(1, n + 1):
        b.body(
            f"link{k}",
            f"link{k - 1}" if k > 1 else WORLD,
            origin=(length if k > 1 else 0.0, 0.0, 0.0),
            mass=mass,
            com=(length / 2, 0.0, 0.0),
            inertia=_tensor((0.0, moment, moment, 0.0, 0.0, 0.0)),
            joint_name=f"joint{k}",
        )
    return b.model()


def _screw_arm_model() -> Model:
    b = Builder("screw-arm", DOWN)
    height, arm = 0.6, 0.5
    for name, parent, joint, axis, origin, mass, com, six in (
        ("link1", WORLD, "revolute", (0, 0, 1), ORIGIN, 12.0, (0.0, 0.0, 0.3), (0.36, 0.36, 0.0375, 0, 0, 0)),
        ("link2", "link1", "revolute", (0, 1, 0), (0.0, 0.0, height), 6.0, (0.24, 0.01, 0.005),
         (0.012, 0.135, 0.14, 0.001, -0.002, 0.0005)),
        ("link3", "link2", "helical", (1, 0, 0), (arm, 0.0, 0.0), 3.0, (0.2, 0.008, -0.005),
         (0.006, 0.042, 0.043, -0.0004, 0.0003, 0.0002)),
        ("load", "link3", "fixed", (0, 0, 1), ORIGIN, 5.0, (0.45, 0.03, -0.03), (0.02, 0.03, 0.025, 0, 0, 0)),
    ):  # fmt: skip
        b.body(
            name,
            parent,
            joint,
            axis,
            origin,
            mass=mass,
            com=com,
            inertia=_tensor(six),
            lead=0.1 if joint == "helical" else None,
            joint_name=name.replace("link", "joint"),
        )
    return b.model()


def _biped_model() -> Model:
    """Rows of the paper's table; the DH frame of the pelvis is fixed in the frame that its trunk carries."""
    turn, at = dh.rz(-pi / 2), (0.0, -BIPED[0][3][2], 0.0)
    constants = {"pelvis": dh.Constants()}
    links: list[Link] = []
    joints: list[Joint] = []
    for name, joint, parent, (theta, d, a, alpha), (xyz, rpy), mass, com, six in BIPED:
        if not parent:
            pelvis = Inertial(mass, add(at, apply(turn, com)), turn_tensor(turn, _tensor(six)))
            links.append(Link(name, pelvis))
            continue
        row = constants[name] = dh.Constants(_quarter(theta), d, a, _quarter(alpha))
        frame: dh.Frame = (_clean(from_rpy(*map(_quarter, rpy))), xyz)
        if parent == "pelvis":
            frame = (matmul(turn, frame[0]), add(at, apply(turn, xyz)))
        rotation, origin = dh.place_standard(row, constants[parent], frame)
        links.append(Link(name, Inertial(mass, *dh.body_standard(row, com, _tensor(six)))))
        joints.append(Joint(joint, "revolute", parent, name, origin, rotation, (0.0, 0.0, 1.0)))
    sole = constants["right_foot"].a
    contacts = [
        Contact(f"{side}_foot", (sole, y, z)) for side in ("right", "left") for y, z in _rectangle(0.05, 0.11)
    ]
    return finish(Draft("biped", links, joints, DOWN, contacts=contacts, noun="body", ordered=True))


def _rectangle(y: float, z: float) -> tuple[tuple[float, float], ...]:
    return ((-y, -z), (-y, z), (y, z), (y, -z))


def _quarter(turns: float) -> float:
    return turns * (pi / 2)


def _clean(r: Mat) -> Mat:
    """A rotation by quarter turns without the rounding of cos(pi / 2)."""
    return tuple(tuple(float(round(x)) for x in row) for row in r)  # type: ignore[return-value]


def _tensor(six: Six) -> Mat:
    xx, yy, zz, xy, xz, yz = map(float, six)
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


# --- arms from modified DH rows ---------------------------------------------------------------------------

PUMA560: tuple[Row, ...] = (
    (0, 0, 0), (-1, 0, 0), (0, 0.4318, 0.15005), (-1, 0.0203, 0.4331), (1, 0, 0), (-1, 0, 0),
)  # fmt: skip
STANFORD: tuple[Row, ...] = ((0, 0, 0), (-1, 0, 0.1524), (1, 0, 0), (0, 0, 0), (-1, 0, 0), (1, 0, 0))
RX90: tuple[Row, ...] = ((0, 0, 0), (1, 0, 0), (0, 0.45, 0), (-1, 0, 0.45), (1, 0, 0), (-1, 0, 0))

# mass, centre of mass, central moments xx, yy, zz, in the frames of the rows
Body = tuple[float, Vec, Vec]
PUMA560_BODIES: tuple[Body, ...] = (
    (0.0, ORIGIN, (0.0, 0.0, 0.35)),
    (17.4, (0.068, 0.006, -0.016), (0.13, 0.524, 0.539)),
    (4.8, (0.0, -0.070, 0.014), (0.066, 0.0125, 0.086)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, ORIGIN, (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
PUMA560_NOTES = (
    "link1 has an inertia tensor but no mass: the paper measured what joint 1 feels",
    "link3: the measured principal moments 0.0125, 0.066, 0.086 kg m^2 break the triangle inequality",
)
# Paul's frames are past the joints (standard DH), with these twists; the numbers below are in his frames
STANFORD_TWISTS = (-1, 1, 0, -1, 1, 0)
STANFORD_BODIES: tuple[Body, ...] = (
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


def _puma560_model(inertia: str = "published") -> Model:
    if _known(inertia) != "published":
        return _arm("puma560", PUMA560, _drawn(inertia, PUMA560_SYMMETRY, 560))
    ball = Inertial(1.0, ORIGIN, _diagonal((1.0, 1.0, 1.0)))
    plain = _arm("puma560", PUMA560, [ball] * 6)
    # put in afterwards: what the measured numbers leave to doubt is noted, not warned about at every load
    bodies = [None, *(Inertial(m, c, _diagonal(moments)) for m, c, moments in PUMA560_BODIES)]
    links = tuple(replace(link, inertial=body) for link, body in zip(plain.links, bodies))
    return replace(plain, links=links, notes=PUMA560_NOTES)


def _stanford_model(inertia: str = "published") -> Model:
    if _known(inertia) != "published":
        bodies = _drawn(inertia, STANFORD_SYMMETRY, 1969)
    else:
        twists = [dh.Constants(alpha=_quarter(turns)) for turns in STANFORD_TWISTS]
        bodies = [
            Inertial(m, *dh.body_standard(twist, c, _diagonal(moments)))
            for twist, (m, c, moments) in zip(twists, STANFORD_BODIES)
        ]
    return _arm("stanford", STANFORD, bodies, sliding=(3,))


def _rx90_model(inertia: str = "published") -> Model:
    drawn = "symmetric" if _known(inertia) == "published" else inertia
    return _arm("rx90", RX90, _drawn(drawn, RX90_SYMMETRY, 1990))


def _scara_model() -> Model:
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


def _arm(name: str, rows: Sequence[Row], bodies: Sequence[Inertial], sliding: tuple[int, ...] = ()) -> Model:
    table = [
        {"joint": "prismatic" if k in sliding else "revolute", "alpha": _quarter(alpha), "a": a, "d": d,
         "mass": body.mass, "com": body.com, "inertia": body.tensor}
        for k, ((alpha, a, d), body) in enumerate(zip(rows, bodies), 1)
    ]  # fmt: skip
    return dh.builder(table, "modified", name=name).model()


def _known(inertia: str) -> str:
    if inertia not in INERTIAS:
        raise ModelError(f"inertia is one of {', '.join(INERTIAS)}, not {inertia!r}")
    return inertia


def _drawn(inertia: str, patterns: Sequence[str], seed: int) -> list[Inertial]:
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
    com: Vec = (_between(rng, 0.02, 0.2), _between(rng, -0.2, -0.02), _between(rng, 0.02, 0.2))
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


def _tensor_of(second: Sequence[Sequence[float]]) -> Mat:
    """The inertia tensor tr(S) 1 - S of the second moments S."""
    trace = second[0][0] + second[1][1] + second[2][2]
    xx, yy, zz = (trace - second[k][k] for k in range(3))
    return _tensor((xx, yy, zz, 0.0 - second[0][1], 0.0 - second[0][2], 0.0 - second[1][2]))


def _diagonal(moments: Vec) -> Mat:
    return _tensor((*moments, 0.0, 0.0, 0.0))


EMBEDDED: dict[str, Callable[[], Model]] = {
    "three-link": _three_link_model,
    "two-arm-planar": _two_arm_planar_model,
    "two-arm-spatial": _two_arm_spatial_model,
    "rod-chain": _rod_chain_model,
    "screw-arm": _screw_arm_model,
    "biped": _biped_model,
    "puma560": _puma560_model,
    "stanford": _stanford_model,
    "rx90": _rx90_model,
    "scara": _scara_model,
    "four-bar": four_bar_model,
    "stewart": stewart_model,
    "two-arm": two_arm_model,
}
