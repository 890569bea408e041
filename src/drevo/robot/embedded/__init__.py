"""The embedded robots: worked examples of the literature that Drevo grew from, four classical arms,
and three with closed loops.

Each function makes a Robot; `EMBEDDED` maps the names that `drevo.load` knows to functions that make Models.
Every robot stands on the ground; `model(name, base)` and `drevo.load(name, base=...)` put it on another base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import ModelError, one_of
from ...model import values
from ...model.base import with_base
from ...model.description import Model
from .arms import puma560_model, rx90_model, scara_model, stanford_model
from .closed import four_bar_model, stewart_model, two_arm_model
from .examples import (
    biped_model,
    rod_chain_model,
    screw_arm_model,
    three_link_model,
    two_arm_planar_model,
    two_arm_spatial_model,
)

if TYPE_CHECKING:
    from ..face import Robot


# --- worked examples --------------------------------------------------------------------------------------


def three_link() -> Robot:
    """Telegin 2025, example 1: three links in the vertical plane x, y; gravity along -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _robot(three_link_model())


def two_arm_planar() -> Robot:
    """Telegin 2025, example 2: a column with two planar arms of two links, in a horizontal plane; gravity -z.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with.
    """
    return _robot(two_arm_planar_model())


def two_arm_spatial() -> Robot:
    """Telegin 2025, example 3: a column with two spatial arms of three links, seven joints; y up, gravity -y.

    The paper leaves its symbols open; the numbers are of the first case that this project verified it with
    ("general": no condition for a constant inertia matrix holds).
    """
    return _robot(two_arm_spatial_model())


def rod_chain(n: int = 10) -> Robot:
    """Yudintsev's slides on Vereshchagin's method: a hanging chain of n uniform thin rods in the plane x, y.

    1 m and 10 kg in all, gravity along -y, the first hinge at the origin, rods along x at q = 0, relative
    angles.
    """
    return _robot(rod_chain_model(n))


def screw_arm() -> Robot:
    """Alyushin 2022: a column (about z), an arm (about y) and a screw (about and along x, 0.1 m a turn).

    Axes of the bodies are those of the observer at q = 0; the load is clamped to link 3.
    """
    return _robot(screw_arm_model())


def biped() -> Robot:
    """Kovalchuk, Kulakov, Semenov: a pelvis, two legs of six joints and a torso; z up, x forward, gravity -z.

    Lengths and masses are those of the first biped that this project verified the paper with. The pelvis is
    the root: `drevo.load("biped", base="trunk")` gives the paper's nineteen coordinates. At q = 0 it stands
    upright. The corners of the soles (0.22 x 0.10 m, level at q = 0, centred below the ankles) are the
    contact points.
    """
    return _robot(biped_model())


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
    return _robot(puma560_model(inertia))


def stanford(inertia: str = "published") -> Robot:
    """The Stanford (Scheinman) arm, RRPRRR, modified DH rows of its literature (d2 0.1524 m).

    published: Paul 1981, "Robot manipulators", tables 6.4 and 6.6, by way of the copies in circulation.
    These put the centres of mass of links 2 to 6 ten times too far out (6.447 m for link 3); here they are
    0.1054, 0.6447, 0.0092 and 0.0054, 0.0566, 0.1554 m, as the size of the arm demands. Motors are left out.
    symmetric, general: as for `puma560`, from Random(1969).
    """
    return _robot(stanford_model(inertia))


def rx90(inertia: str = "published") -> Robot:
    """Staubli RX-90, modified DH rows of Khalil and Dombre (D3 = RL4 = 0.45 m).

    published: Khalil and Dombre, "Modeling, identification and control of robots", print the symmetric
    pattern of its links; no measured numbers were found. So the pattern is published, and the numbers are
    drawn from Random(1990). symmetric: the same; general: as for `puma560`.
    """
    return _robot(rx90_model(inertia))


def scara() -> Robot:
    """A four-joint SCARA with the DH table of the AdeptOne in Schilling 1990, "Fundamentals of robotics".

    d1 0.877, a1 0.425, a2 0.375, d4 0.2 m, the second axis down. The table has no inertias: the links are
    uniform slender rods (the book's own model) with round masses chosen here, 15, 10, 3 and 1 kg.
    """
    return _robot(scara_model())


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


def model(name: str, base: str = "fixed", gravity: Sequence[float] | None = None) -> Model:
    """The Model of an embedded robot by its name ("puma560"), on a base; with its own gravity or another."""
    one_of("embedded robot", name, EMBEDDED, ModelError)
    made = EMBEDDED[name]()
    return with_base(made if gravity is None else replace(made, gravity=values.gravity_vector(gravity)), base)


def _robot(model: Model) -> Robot:
    from ..face import Robot

    return Robot(model)


EMBEDDED: dict[str, Callable[[], Model]] = {
    "three-link": three_link_model,
    "two-arm-planar": two_arm_planar_model,
    "two-arm-spatial": two_arm_spatial_model,
    "rod-chain": rod_chain_model,
    "screw-arm": screw_arm_model,
    "biped": biped_model,
    "puma560": puma560_model,
    "stanford": stanford_model,
    "rx90": rx90_model,
    "scara": scara_model,
    "four-bar": four_bar_model,
    "stewart": stewart_model,
    "two-arm": two_arm_model,
}
