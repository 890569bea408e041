"""Stresses that the loads in sections make in links of standard profiles, by the beam theory of every textbook.

Normal stress by Navier, torsion by de Saint-Venant (rectangles by his series, closed boxes by Bredt, open profiles
as strips), shear by Zhuravsky, each at its worst place: Roark's Formulas for Stress and Strain, 8 and 10.

Displacements in full, not to first order: poses of twists, rotation vectors of turns.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cosh, pi, tanh
from typing import Any

import numpy as np

from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, one_of
from ..io.given import Array, number
from ..io.reprs import result
from .solids import NOT_NEGATIVE

TORSION_TERMS = range(1, 60, 2)  # of a series that falls with n^5, or faster


@result
class Profile:
    """A section about its centroid, axes y and z of the span. area m^2; Iy, Iz m^4: integrals of z^2 and y^2.
    J m^4: G J is the torsional stiffness. torsion m^3: the moment by the shear it makes. shear (2,) 1/m^2: the
    largest shear stress by the force along y and along z. fibres (n, 2) m: where bending is worst, on a radius if
    round.
    """

    name: str
    area: float
    Iy: float
    Iz: float
    J: float
    torsion: float
    shear: tuple[float, float]
    fibres: Array
    is_round: bool = False

    @staticmethod
    def round(diameter: float) -> Profile:
        """A full circle."""
        return Profile.tube(diameter, 0.0)

    @staticmethod
    def tube(outer: float, inner: float) -> Profile:
        """A ring between two diameters, m."""
        D, d = _length("tube: outer", outer), number("tube: inner", inner, *NOT_NEGATIVE)
        _less("tube: inner", d, D)
        one = pi * (D**4 - d**4) / 64
        k = (D**3 - d**3) / 12 / (one * (D - d))
        name = f"tube {D:g} x {d:g} m" if d else f"round {D:g} m"
        area = pi * (D**2 - d**2) / 4
        return Profile(name, area, one, one, 2 * one, 4 * one / D, (k, k), np.array([[D / 2, 0.0]]), True)

    @staticmethod
    def rectangle(width: float, height: float) -> Profile:
        """A full rectangle, width along y and height along z, m."""
        b, h = _length("rectangle: width", width), _length("rectangle: height", height)
        short, long = min(b, h), max(b, h)
        part = sum(tanh(n * pi * long / (2 * short)) / n**5 for n in TORSION_TERMS)
        J = long * short**3 / 3 * (1 - 192 / pi**5 * short / long * part)
        edge = 1 - 8 / pi**2 * sum(
            1 / (n**2 * cosh(min(700.0, n * pi * long / (2 * short)))) for n in TORSION_TERMS
        )
        k = 1.5 / (b * h)
        return Profile(f"rectangle {b:g} x {h:g} m", b * h, b * h**3 / 12, h * b**3 / 12, J, J / (short * edge),
                       (k, k), _corners(b, h))  # fmt: skip

    @staticmethod
    def box(width: float, height: float, wall: float) -> Profile:
        """A rectangular tube with walls of one thickness, m."""
        b, h, t = (_length(f"box: {k}", x) for k, x in (("width", width), ("height", height), ("wall", wall)))
        _less("box: twice the wall", 2 * t, min(b, h))
        p, r = b - 2 * t, h - 2 * t
        Iy, Iz = (b * h**3 - p * r**3) / 12, (h * b**3 - r * p**3) / 12
        J = 2 * t * ((b - t) * (h - t)) ** 2 / (b + h - 2 * t)
        shear = (h * b**2 - r * p**2) / (16 * t * Iz), (b * h**2 - p * r**2) / (16 * t * Iy)
        name = f"box {b:g} x {h:g} m, wall {t:g} m"
        return Profile(name, b * h - p * r, Iy, Iz, J, 2 * (b - t) * (h - t) * t, shear, _corners(b, h))

    @staticmethod
    def i_beam(width: float, height: float, flange: float, web: float) -> Profile:
        """Two flanges of a width along y and a thickness, joined by a web along z, m."""
        given = (("width", width), ("height", height), ("flange", flange), ("web", web))
        b, h, f, w = (_length(f"i_beam: {k}", x) for k, x in given)
        _less("i_beam: twice the flange", 2 * f, h)
        _less("i_beam: web", w, b)
        r = h - 2 * f
        Iy, Iz = (b * h**3 - (b - w) * r**3) / 12, (2 * f * b**3 + r * w**3) / 12
        J = (2 * b * f**3 + r * w**3) / 3
        shear = 1.5 / (2 * b * f), (b * h**2 - (b - w) * r**2) / (8 * w * Iy)
        name = f"I {b:g} x {h:g} m, flange {f:g} m, web {w:g} m"
        return Profile(name, 2 * b * f + r * w, Iy, Iz, J, J / max(f, w), shear, _corners(b, h))

    @staticmethod
    def named(text: str) -> Profile:
        """Profile from a text such as `tube:0.08,0.07`: the name of one of these functions and its lengths, m."""
        kind, _, rest = str(text).partition(":")
        make, count = PROFILE_KINDS[one_of("profile", kind.strip(), PROFILE_KINDS, InputError)]
        try:
            lengths = [float(x) for x in rest.split(",")]
        except ValueError:
            lengths = []
        if len(lengths) != count:
            raise InputError(f"profile {text!r} has not {count} lengths; write {kind}:{','.join(['0.1'] * count)}")
        return make(*lengths)


PROFILE_KINDS: dict[str, tuple[Callable[..., Profile], int]] = {
    "round": (Profile.round, 1), "tube": (Profile.tube, 2), "rectangle": (Profile.rectangle, 2),
    "box": (Profile.box, 3), "i_beam": (Profile.i_beam, 4),
}  # fmt: skip


@result
class Stresses(Pictured):
    """In sections at s (k,) m of a link, (..., k) Pa: the largest and the least normal stress over the section
    (tension is positive), the largest shear stress, torsion and force together, and the equivalent stress of Mises
    as if the worst of both stood at one place: never less than it is."""

    link: str
    profile: Profile
    s: Array
    tension: Array
    compression: Array
    shear: Array
    mises: Array

    def figure(self) -> Figure:
        """Normal, shear and equivalent stress over the link; of a batch the band of all."""
        n = len(self.s)
        low, high, shear, mises = (
            x.reshape(-1, n) / 1e6 for x in (self.compression, self.tension, self.shear, self.mises)
        )
        panels = [
            Panel("normal stress, MPa", [Curve(self.link, self.s, low.min(0), high.max(0))], unit="MPa"),
            Panel("shear stress, MPa", [Curve(self.link, self.s, 0 * shear[0], shear.max(0))], unit="MPa"),
            Panel("equivalent (Mises), MPa", [Curve(self.link, self.s, 0 * mises[0], mises.max(0))], unit="MPa"),
        ]
        return Figure(f"{self.link}: stresses, {self.profile.name}", panels, across=3, abscissa="s, m")


def stresses_of(link: str, s: Array, loads: Array, profile: Any) -> Stresses:
    """Stresses under loads (..., k, 6) of `SectionLoads`: what the inboard piece exerts on the outboard one."""
    if not isinstance(profile, Profile):
        profile = Profile.named(profile)
    F, Vy, Vz, T, My, Mz = np.moveaxis(loads, -1, 0)
    if profile.is_round:
        bent = (profile.fibres[0, 0] / profile.Iy * np.hypot(My, Mz))[..., None] * [1.0, -1.0]
    else:
        y, z = profile.fibres.T
        bent = Mz[..., None] * y / profile.Iz - My[..., None] * z / profile.Iy
    normal = -F[..., None] / profile.area + bent
    force = np.hypot(profile.shear[0] * Vy, profile.shear[1] * Vz)
    shear = np.abs(T) / profile.torsion + force
    worst = np.abs(normal).max(axis=-1)
    return Stresses(link, profile, s, normal.max(axis=-1), normal.min(axis=-1), shear,
                    np.sqrt(worst**2 + 3.0 * shear**2))  # fmt: skip


def _corners(b: float, h: float) -> Array:
    return np.array([[y, z] for y in (-b / 2, b / 2) for z in (-h / 2, h / 2)])


def _length(title: str, x: Any) -> float:
    return number(title, x, "a positive length in m", lambda y: 1e-6 <= y <= 1e3)


def _less(title: str, x: float, limit: float) -> None:
    if not x < limit:
        raise InputError(f"{title} is {x:g} m and must be less than {limit:g} m")


def cross_matrix(x: Array) -> Array:
    """[x]x, (..., 3, 3), of vectors (..., 3)."""
    out = np.zeros((*x.shape[:-1], 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., k, j], out[..., j, k] = x[..., i], -x[..., i]
    return out


def pose_of_twist(twist: Array) -> Array:
    """Poses (n, 4, 4) of a move by twist[:3] after a turn by the rotation vector twist[3:] (Rodrigues)."""
    w = twist[:, 3:]
    angle = np.linalg.norm(w, axis=-1)[:, None, None]
    K = cross_matrix(w)
    T = np.zeros((len(w), 4, 4))
    T[:, :3, :3] = np.eye(3) + np.sinc(angle / np.pi) * K + 0.5 * np.sinc(angle / (2 * np.pi)) ** 2 * (K @ K)
    T[:, :3, 3], T[:, 3, 3] = twist[:, :3], 1.0
    return T


def rotation_vector(R: Array) -> Array:
    """Rotation vectors (n, 3) of turns far from half a revolution."""
    skew = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=-1) / 2
    sine = np.linalg.norm(skew, axis=-1, keepdims=True)
    angle = np.arctan2(sine, (np.trace(R, axis1=1, axis2=2)[:, None] - 1.0) / 2)
    return np.asarray(skew * np.divide(angle, sine, out=np.ones_like(sine), where=sine > 1e-12))
