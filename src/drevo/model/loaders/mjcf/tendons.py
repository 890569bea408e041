"""<tendon> of an MJCF file: lengths with what acts along them, and <equality><tendon> between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ....io import xml
from ....io.xml import Element, Reader
from ...contact import SOLREF, Solref
from ...description import Tendon, TendonCoupling, TendonJoint
from ...tendons import Waypoint, segments_along
from ..schema import nonzero
from .equality import Layout, read_polynomial, softness_of_equality
from .file import File, limited, read_some
from .posture import Posture
from .softness import limit_and_friction

TENDONS = ("fixed", "spatial")
FORCES = {"stiffness": "spring", "damping": "damper", "frictionloss": "frictionloss"}  # and the flags that are off
AUTOMATIC = -1.0  # the springlength that the file leaves open
FIRM = 0.95  # the impedance of a limit by default, by which its time constant is meant


def read_tendons(file: File, layout: Layout, stands: Posture) -> dict[str, float]:
    """Enter the tendons; their lengths as the file stands, by name."""
    lengths: dict[str, float] = {}
    acting = {joint.name: joint.dynamics for joint in file.draft.joints if joint.kind in ("revolute", "prismatic")}
    slack = Posture(file.draft, {name: d.reference for name, d in acting.items() if d}, layout.bodies)
    for element in (child for section in file.root.all("tendon") for child in section.children):
        if element.tag not in TENDONS:
            continue
        found = file.attributes(element, "", "tendon")
        name = element.get("name") or f"{element.tag} on line {element.line}"
        reader = Reader(file.draft.problems.append, f"{element.tag} {name!r} (line {element.line})")
        if element.first("geom"):
            _note_wrapping(file, reader, found, f"{element.tag} {name!r}")
            continue
        tendon = _route(reader, element, name, layout)
        if len(tendon.joints) + len(tendon.segments) == 0:
            if len(element.children) < 2:
                reader.report(f"{reader.owner} joins nothing; give it two sites, or a joint")
            continue
        lengths[name] = stands.length(tendon)
        tendon = _with_forces(file, reader, found, tendon, slack)
        file.draft.tendons.append(_with_limits(file, reader, found, tendon, stands))
    return lengths


def _note_wrapping(file: File, reader: Reader, tendon: Element, label: str) -> None:
    """The length of a tendon around geoms is not followed: told where something acts along it."""
    acts = any(nonzero(tendon.get(a, "0")) and flag not in file.flags.off for a, flag in FORCES.items())
    if acts or (limited(file, tendon) and "limit" not in file.flags.off):
        file.draft.ignore("the tendon around geoms", label)
    else:
        file.draft.notes.append(f"{reader.owner} runs around geoms, which is not read, and nothing acts along it")


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
    path: list[Waypoint | float] = []
    for step in element.children:
        if step.tag == "pulley":
            divisor = reader.scalar(step, "divisor", 1.0)
            if divisor <= 0.0:
                reader.report(f"{reader.owner}: divisor on line {step.line} is {divisor:g}; give a positive one")
            path.append(divisor if divisor > 0.0 else 1.0)
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
    on = {a: element.get(a, "0") if flag not in file.flags.off else "0" for a, flag in FORCES.items()}
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
    found = read_polynomial(reader, element, "tendon", lengths, unknown)
    if found is not None:
        file.draft.tendon_couplings.append(TendonCoupling(*found, **softness_of_equality(reader, element)))
