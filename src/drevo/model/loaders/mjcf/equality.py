"""<equality> of an MJCF file: what connect, weld and joint hold, as loops and couplings of the draft.

They are exact here and soft in MuJoCo. Where bodies stand in the file is where MuJoCo takes what is not said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import comb
from typing import Any, NamedTuple

from ....io.xml import Element, Reader
from ...description import ORIGIN, JointCoupling, Loop, Mimic, Vec3
from ...rotations import apply, matmul, matrix_of_quaternion, transpose
from .file import File, FramePose, minus, placed_in, read_some, read_vector
from .softness import read_solimp, read_solref

NO_POSE = (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # of relpose: the orientation is that of the file
LOOPS = ("connect", "weld", "joint")
MIMIC = "mimic_"  # how the names of couplings begin that leave the first joint no freedom of its own


class Layout(NamedTuple):
    """The poses of the bodies of the file in the world; sites with their bodies, in these; q there by joint.

    sizes: of the sites.
    """

    bodies: dict[str, FramePose]
    sites: dict[str, tuple[str, FramePose]]
    at: dict[str, float]
    sizes: dict[str, Vec3]


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
    what = "site" if "site1" in element.attributes else "body"
    names = element.get(f"{what}1"), element.get(f"{what}2") or "world"
    for name in names:
        if name not in known:
            reader.report(f"{reader.owner}: the {what} {name!r} does not exist; correct the name")
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
    found = read_polynomial(reader, element, "joint", at, "is no hinge or slide of the file; correct the name")
    if found is None:
        return
    y, x, moved = found
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
