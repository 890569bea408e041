"""<equality> of an MJCF file: what connect, weld and joint hold, as loops and couplings of the draft.

They are exact here and soft in MuJoCo. Where bodies stand in the file is where MuJoCo takes what is not said.

<tendon> of an MJCF file: lengths with what acts along them, and <equality><tendon> between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any, NamedTuple

from ....io import xml
from ....io.xml import Element, Reader
from ...contact import SOLREF, Solref
from ...description import (
    ORIGIN,
    JointCoupling,
    Loop,
    Mimic,
    Tendon,
    TendonCoupling,
    TendonJoint,
    TendonWrap,
    Vec3,
)
from ...rotations import apply, matmul, matrix_of_quaternion, transpose
from ...touching import Waypoint, segments_along
from ..schema import nonzero
from .file import IDENTITY_POSE, File, FramePose, in_section, limited, minus, placed_in, read_some, read_vector
from .posture import Posture
from .settings import limit_and_friction, read_solimp, read_solref

NO_POSE = (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # of relpose: the orientation is that of the file
LOOP_ELEMENTS = ("connect", "weld", "joint")
MIMIC = "mimic_"  # how the names of couplings begin that leave the first joint no freedom of its own


class Layout(NamedTuple):
    """The poses of the bodies of the file in the world; sites with their bodies, in these; q there by joint.

    sizes: of the sites, with their shapes. round: spheres and cylinders with names, around which tendons may lie.
    """

    bodies: dict[str, FramePose]
    sites: dict[str, tuple[str, FramePose]]
    at: dict[str, float]
    sizes: dict[str, tuple[Vec3, str]]
    round: dict[str, TendonWrap]


def read_equality(file: File, element: Element, label: str, layout: Layout) -> None:
    """One that is active."""
    reader = Reader(file.draft.problems.append, label)
    if element.tag == "joint":
        _read_joint(file, reader, element, layout.at)
        return
    ends = _ends(reader, element, layout.sites if "site1" in element.attributes else layout.bodies)
    if ends is None:
        return
    soft = softness_of_equality(reader, element)
    if "site1" in element.attributes:
        (a, (at_a, R_a)), (b, (at_b, R_b)) = (layout.sites[x] for x in ends)
        turn = matmul(R_a, transpose(R_b)) if element.tag == "weld" else None
        file.draft.loops.append(Loop(_KIND[element.tag], a, at_a, b, at_b, turn, **soft))
        return
    between = _relative(layout.bodies[ends[0]], layout.bodies[ends[1]])  # b in a
    anchor = read_vector(reader, element, "anchor", ORIGIN)
    if element.tag == "connect":
        file.draft.loops.append(Loop("point", ends[0], anchor, ends[1], _seen_from(between, anchor), **soft))
        return
    held, turn = placed_in(between, (anchor, between[1]))[0], between[1]
    x = reader.vector(element, "relpose", NO_POSE)
    if any(x[3:]):  # its place is that of the anchor itself
        held, turn = (x[0], x[1], x[2]), matrix_of_quaternion(x[4], x[5], x[6], x[3])
    file.draft.loops.append(Loop("weld", ends[0], held, ends[1], anchor, turn, **soft))


def softness_of_equality(reader: Reader, element: Element) -> dict[str, Any]:
    """The softness of an equality in MuJoCo; of a weld also what a radian counts for."""
    held = {"torquescale": reader.scalar(element, "torquescale", 1.0)} if element.tag == "weld" else {}
    return {"solref": read_solref(reader, element), "solimp": read_solimp(reader, element), **held}


_KIND = {"connect": "point", "weld": "weld"}


def _ends(reader: Reader, element: Element, known: Mapping[str, object]) -> tuple[str, str] | None:
    """The two bodies, or sites; the world where the second is not named."""
    kind = "site" if "site1" in element.attributes else "body"
    names = element.get(f"{kind}1"), element.get(f"{kind}2") or "world"
    for name in names:
        if name not in known:
            reader.report(f"{reader.owner}: the {kind} {name!r} does not exist; correct the name")
            return None
    return names


def _relative(a: FramePose, b: FramePose) -> FramePose:
    """b in the axes of a."""
    back = transpose(a[1])
    return apply(back, minus(b[0], a[0])), matmul(back, b[1])


def _seen_from(between: FramePose, point: Vec3) -> Vec3:
    """A point of a in the axes of b."""
    return apply(transpose(between[1]), minus(point, between[0]))


def _read_joint(file: File, reader: Reader, element: Element, at: Mapping[str, float]) -> None:
    """y - y0 = sum c_k (x - x0)^k as a polynomial in x itself."""
    polynomial = read_polynomial(
        reader, element, "joint", at, "is no hinge or slide of the file; correct the name"
    )
    if polynomial is None:
        return
    y, x, moved = polynomial
    if element.get("name").startswith(MIMIC) and x and not any(moved[2:]):
        joints = file.draft.joints
        k = next(k for k, joint in enumerate(joints) if joint.name == y)
        joints[k] = replace(joints[k], mimic=Mimic(x, moved[1], moved[0]))
    else:
        file.draft.couplings.append(JointCoupling(y, x, moved, **softness_of_equality(reader, element)))


def read_polynomial(
    reader: Reader, element: Element, kind: str, at: Mapping[str, float], unknown: str
) -> tuple[str, str, tuple[float, ...]] | None:
    """The follower, its driver or "", the coefficients; None, reported, where one of the names is not in `at`."""
    y, x = element.get(f"{kind}1"), element.get(f"{kind}2")
    for name in (y, x) if x else (y,):
        if name not in at:
            reader.report(f"{reader.owner}: {name!r} {unknown}")
            return None
    c = read_some(reader, element, "polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
    return y, x, shifted(c, at[y], at[x] if x else None)


def shifted(c: tuple[float, ...], y: float, x: float | None) -> tuple[float, ...]:
    """The coefficients of y + sum c_k (z - x)^k in powers of z; of y + c_0 where there is no x."""
    if x is None:
        return (y + c[0],)
    moved = [sum(c[n] * comb(n, k) * (-x) ** (n - k) for n in range(k, len(c))) for k in range(len(c))]
    return (y + moved[0], *moved[1:])


TENDONS = ("fixed", "spatial")
PASSIVE_FLAGS = {
    "stiffness": "spring",
    "damping": "damper",
    "frictionloss": "frictionloss",
}  # and the flags that are off
AUTOMATIC = -1.0  # the springlength that the file leaves open
FIRM = 0.95  # the impedance of a limit by default, by which its time constant is meant


def read_tendons(file: File, layout: Layout, stands: Posture) -> dict[str, float]:
    """Enter the tendons; their lengths as the file stands, by name."""
    lengths: dict[str, float] = {}
    acting = {joint.name: joint.dynamics for joint in file.draft.joints if joint.kind in ("revolute", "prismatic")}
    slack = Posture(file.draft, {name: d.reference for name, d in acting.items() if d}, layout.bodies)
    for source, element in in_section(file, "tendon"):
        if element.tag not in TENDONS:
            continue
        attributes = source.attributes(element, "", "tendon")
        name = element.get("name") or f"{element.tag} on line {element.line}"
        reader = Reader(file.draft.problems.append, f"{element.tag} {name!r} (line {element.line})")
        if not all(_wrap(x, layout) for x in element.all("geom")):
            _note_wrapping(source, reader, attributes, f"{element.tag} {name!r}")
            continue
        tendon = _route(reader, element, name, layout)
        if len(tendon.joints) + len(tendon.segments) == 0:
            if len(element.children) < 2:
                reader.report(f"{reader.owner} joins nothing; give it two sites, or a joint")
            continue
        lengths[name] = stands.length(tendon)
        tendon = _with_forces(source, reader, attributes, tendon, slack)
        file.draft.tendons.append(_with_limits(source, reader, attributes, tendon, stands))
    return lengths


def _note_wrapping(file: File, reader: Reader, tendon: Element, label: str) -> None:
    """The length of a tendon around other geoms than spheres and cylinders is not followed: told where something
    acts along it."""
    acts = any(nonzero(tendon.get(a, "0")) and flag not in file.flags.off for a, flag in PASSIVE_FLAGS.items())
    if acts or (limited(file, tendon) and "limit" not in file.flags.off):
        file.draft.ignore("the tendon around geoms", label)
    else:
        file.draft.notes.append(f"{reader.owner} runs around geoms, which is not read, and nothing acts along it")


def _wrap(step: Element, layout: Layout) -> TendonWrap | None:
    """The sphere or the cylinder that a tendon lies around; None for other geoms, and where the side site is of
    another body."""
    geom = layout.round.get(step.get("geom"))
    if geom is None or not step.get("sidesite"):
        return geom
    body, (place, _) = layout.sites.get(step.get("sidesite"), ("", IDENTITY_POSE))
    return replace(geom, side=place) if body == geom.link else None


def _route(reader: Reader, element: Element, name: str, layout: Layout) -> Tendon:
    """The route of the tendon, without what acts along it."""
    if element.tag == "fixed":
        ends = []
        for joint in element.all("joint"):
            if joint.get("joint") in layout.at:
                ends.append(TendonJoint(joint.get("joint"), reader.scalar(joint, "coef", 1.0)))
            else:
                reader.report(
                    f"{reader.owner}: {joint.get('joint')!r} on line {joint.line} is no hinge or slide of the "
                    "file; correct the name"
                )
        return Tendon(name, tuple(ends))
    path: list[Waypoint | TendonWrap | float] = []
    for step in element.children:
        if step.tag == "pulley":
            divisor = reader.scalar(step, "divisor", 1.0)
            if divisor <= 0.0:
                reader.report(f"{reader.owner}: divisor on line {step.line} is {divisor:g}; give a positive one")
            path.append(divisor if divisor > 0.0 else 1.0)
        elif step.tag == "geom" and (around := _wrap(step, layout)):
            path.append(around)
        elif step.tag == "site" and step.get("site") in layout.sites:
            body, (place, _) = layout.sites[step.get("site")]
            path.append((body, place))
        elif step.tag == "site":
            reader.report(
                f"{reader.owner}: the site {step.get('site')!r} on line {step.line} does not exist; correct the "
                "name"
            )
    return Tendon(name, segments=segments_along(path))


def _with_forces(file: File, reader: Reader, element: Element, tendon: Tendon, slack: Posture) -> Tendon:
    """Spring, damper and dry friction; springlength -1 is the length where all springs of joints are slack."""
    on = {a: element.get(a, "0") if flag not in file.flags.off else "0" for a, flag in PASSIVE_FLAGS.items()}
    acts = Element(element.tag, on, element.line)
    stiffness, *more = read_some(reader, acts, "stiffness", (0.0,) * 3, xml.MAX_INERTIA)
    damping, quadratic, cubic = read_some(reader, acts, "damping", (0.0,) * 3, xml.MAX_INERTIA)
    if any((*more, cubic)):
        file.draft.ignore("powers of stiffness and damping", f"{element.tag} {tendon.name!r}")
    low, high = read_some(reader, element, "springlength", (-1.0, math.nan))
    if low == AUTOMATIC:
        low = high = slack.length(tendon)
    elif math.isnan(high):
        high = low
    return replace(
        tendon, stiffness=stiffness, rest=(low, high), damping=damping, quadratic=quadratic,
        friction=reader.scalar(acts, "frictionloss", 0.0, xml.MAX_INERTIA), **limit_and_friction(reader, element),
    )  # fmt: skip


def _with_limits(file: File, reader: Reader, element: Element, tendon: Tendon, stands: Posture) -> Tendon:
    """A range as a spring and a damper that bring the tendon's effective mass back as solreflimit says."""
    if not limited(file, element) or "limit" in file.flags.off:
        return tendon
    lower, upper = reader.vector(element, "range", (0.0, 0.0), xml.ANY)
    stiffness, damping = spring_of_limit(tendon.limit_solref or SOLREF)
    weight = stands.of_tendon(tendon)
    if not weight > 0.0:
        file.draft.ignore("range", f"{element.tag} {tendon.name!r}")
        return tendon
    file.draft.doubts.append(
        f"{reader.owner}: its range is held by a spring and a damper; MuJoCo holds it by a soft constraint, "
        "and so does a step under law='soft'"
    )
    return replace(
        tendon, lower=lower, upper=upper, limit_stiffness=stiffness / weight, limit_damping=damping / weight
    )


def spring_of_limit(solref: Solref) -> tuple[float, float]:
    """Stiffness and damping on a unit mass."""
    time, ratio = solref
    if time > 0.0 and ratio > 0.0:
        return 1.0 / (FIRM * time * ratio) ** 2, 2.0 / (FIRM * time)
    return abs(time), abs(ratio)  # told as they are


def read_tendon_equality(file: File, reader: Reader, element: Element, lengths: Mapping[str, float]) -> None:
    """L - L0 = sum c_k (x - x0)^k as a polynomial in the other length x itself."""
    unknown = "is no tendon of the file, or runs around geoms; correct the name"
    polynomial = read_polynomial(reader, element, "tendon", lengths, unknown)
    if polynomial is not None:
        file.draft.tendon_couplings.append(TendonCoupling(*polynomial, **softness_of_equality(reader, element)))
