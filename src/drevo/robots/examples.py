"""Worked examples of the papers: hinged bodies, a hanging chain, an arm with a screw, a biped."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from ..dh import building as dh
from ..errors import ModelError, shown
from ..model.description import ORIGIN, ContactPoint, Inertial, Joint, Link, Mat3, Model, Vec3
from ..model.draft import Draft
from ..model.rotations import add_vectors, apply, from_rpy, matmul, turn_tensor
from ..model.validation import finish
from ..robot.builder import WORLD, Builder
from .data import BIPED, DOWN, DOWN_Y, THREE_LINK, TWO_ARM_PLANAR, TWO_ARM_SPATIAL, Hinged, quarter, tensor_of

MOST = 100_000  # rods of a chain


def three_link() -> Model:
    """Telegin 2025, example 1: three links in the vertical plane x, y; gravity along -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _hinged("three-link", THREE_LINK, DOWN_Y)


def two_arm_planar() -> Model:
    """Telegin 2025, example 2: a column with two planar arms of two links, in a horizontal plane; gravity -z.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _hinged("two-arm-planar", TWO_ARM_PLANAR, DOWN)


def two_arm_spatial() -> Model:
    """Telegin 2025, example 3: a column with two spatial arms of three links, seven joints; y up, gravity -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with
    ("general": no condition for a constant inertia matrix holds).
    """
    return _hinged("two-arm-spatial", TWO_ARM_SPATIAL, DOWN_Y)


def _hinged(name: str, bodies: Sequence[Hinged], gravity: Vec3) -> Model:
    b = Builder(name, gravity)
    for k, (parent, offset, axis, mass, com, six) in enumerate(bodies, 1):
        b.body(
            f"link{k}",
            f"link{parent}" if parent else WORLD,
            axis=axis,
            origin=offset,
            mass=mass,
            com=com,
            inertia=tensor_of(six),
            inertia_at="joint",
            joint_name=f"joint{k}",
        )
    return b.model()


def rod_chain(n: int = 10) -> Model:
    """Yudintsev's slides on Vereshchagin's method: a hanging chain of n uniform thin rods in the plane x, y.

    1 m and 10 kg in all, gravity along -y, the first hinge at the origin, rods along x at q = 0, relative
    angles.
    """
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or not 1 <= n <= MOST:
        raise ModelError(f"a rod chain has one rod or more, and at most {MOST}, not {shown(n)}")
    b, length, mass = Builder("rod-chain", DOWN_Y), 1.0 / n, 10.0 / n
    moment = mass * length**2 / 12
    for k in range(1, n + 1):
        b.body(
            f"link{k}",
            f"link{k - 1}" if k > 1 else WORLD,
            origin=(length if k > 1 else 0.0, 0.0, 0.0),
            mass=mass,
            com=(length / 2, 0.0, 0.0),
            inertia=tensor_of((0.0, moment, moment, 0.0, 0.0, 0.0)),
            joint_name=f"joint{k}",
        )
    return b.model()


def screw_arm() -> Model:
    """Alyushin 2022: a column (about z), an arm (about y) and a screw (about and along x, 0.1 m a turn).

    Axes of the bodies are those of the observer at q = 0; the load is clamped to link 3.
    """
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
            inertia=tensor_of(six),
            lead=0.1 if joint == "helical" else None,
            joint_name=name.replace("link", "joint"),
        )
    return b.model()


def biped() -> Model:
    """Kovalchuk, Kulakov, Semenov: a pelvis, two legs of six joints and a torso; z up, x forward, gravity -z.

    Lengths and masses are those of the first biped that this project verified the paper with. The pelvis is
    the root: `drevo.load("biped", base="trunk")` gives the paper's nineteen coordinates. At q = 0 it stands
    upright. The corners of the soles (0.22 x 0.10 m, level at q = 0, centred below the ankles) are the
    contact points.
    Rows of the paper's table; the DH frame of the pelvis is fixed in the frame that its trunk carries.
    """
    turn, at = dh.rz(-pi / 2), (0.0, -BIPED[0][3][2], 0.0)
    constants = {"pelvis": dh.Constants()}
    links: list[Link] = []
    joints: list[Joint] = []
    for name, joint, parent, (theta, d, a, alpha), (xyz, rpy), mass, com, six in BIPED:
        if not parent:
            pelvis = Inertial(mass, add_vectors(at, apply(turn, com)), turn_tensor(turn, tensor_of(six)))
            links.append(Link(name, pelvis))
            continue
        row = constants[name] = dh.Constants(quarter(theta), d, a, quarter(alpha))
        frame: dh.Frame = (_clean(from_rpy(*map(quarter, rpy))), xyz)
        if parent == "pelvis":
            frame = (matmul(turn, frame[0]), add_vectors(at, apply(turn, xyz)))
        rotation, origin = dh.place_standard(row, constants[parent], frame)
        links.append(Link(name, Inertial(mass, *dh.body_standard(row, com, tensor_of(six)))))
        joints.append(Joint(joint, "revolute", parent, name, origin, rotation, (0.0, 0.0, 1.0)))
    sole = constants["right_foot"].a
    contacts = [
        ContactPoint(f"{side}_foot", (sole, y, z)) for side in ("right", "left") for y, z in _rectangle(0.05, 0.11)
    ]
    return finish(Draft("biped", links, joints, DOWN, contacts=contacts, noun="body", ordered=True))


def _rectangle(y: float, z: float) -> tuple[tuple[float, float], ...]:
    return ((-y, -z), (-y, z), (y, z), (y, -z))


def _clean(r: Mat3) -> Mat3:
    """A rotation by quarter turns without the rounding of cos(pi / 2)."""
    return tuple(tuple(float(round(x)) for x in row) for row in r)  # type: ignore[return-value]
