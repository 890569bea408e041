"""Bodies symmetric about their hinge: wheels, rotors, propellers, flanges. Their angle is a cyclic coordinate.

Such a body looks the same from axes that do not turn with it (the frame of Resal), in which its pseudo-inertia is
constant. So it hands to its parent all but J = S_xx + S_yy about the axis: it becomes a body of kind "wheel" with
the tensor J e e^T and nothing else, whose place on its parent does not matter, only the direction of e does.
The condition is exact for a last body: h_x = h_y = 0, S_xx = S_yy, no products. Further in, all children must be
wheels on parallel axes, and the body symmetric with what they have handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..model.description import Model
from .reframe import own_zero
from .scalar import Scalar, is_zero
from .spatial import IDENTITY, UNIT, ZERO, ZERO_INERTIA, Mat, RigidInertia, Sym, Vec
from .tree import Tree, TreeBody
from .tree_indices import children_of

EXACT = 1e-12  # of the size of a body: what rounding makes of a symmetric one
AXES = "xyz"


def across(axis: int) -> tuple[int, int]:
    """The two axes normal to a joint's."""
    return (axis + 1) % 3, (axis + 2) % 3


def asymmetry(P: RigidInertia, axis: int) -> float:
    """How far a body is from symmetry about an axis, as a part of its size; of symbols 0 or infinite."""
    (x, y), S, h, size = across(axis), P.S.mat, P.h, P.S.trace
    parts = [(S[x][x] - S[y][y], size), (2.0 * S[x][y], size), (2.0 * S[x][axis], size), (2.0 * S[y][axis], size)]
    arm = abs(size * P.m) ** 0.5 if is_number(size) and is_number(P.m) else P.m
    return max(_part(z, of) for z, of in (*parts, (h[x], arm), (h[y], arm)))


def is_number(x: Scalar) -> bool:
    """A plain number, not a node."""
    return isinstance(x, (int, float))


def _part(x: Scalar, of: Scalar) -> float:
    if is_zero(x):
        return 0.0
    return abs(float(x / of)) if is_number(x) and is_number(of) and of else float("inf")


def about_axis(axis: int, J: Scalar) -> RigidInertia:
    """J e e^T: an inertia that is felt about the axis only."""
    diagonal = [0.5 * J, 0.5 * J, 0.5 * J]
    diagonal[axis] = -diagonal[axis]
    return RigidInertia(0.0, ZERO, Sym(diagonal[0], 0.0, 0.0, diagonal[1], 0.0, diagonal[2]))


def along_axis(axis: int, P: RigidInertia, second: Scalar) -> RigidInertia:
    """Mass and first moment of a body, and second moments, along the axis alone."""
    S = Mat(*(Vec(*(second if a == b == axis else 0.0 for b in range(3))) for a in range(3)))
    return RigidInertia(P.m, UNIT[axis] * P.h[axis], Sym.of(S))


def axial_inertia(b: TreeBody) -> Scalar:
    """J of a wheel, or of a body that could be one."""
    S, (x, y) = b.inertia.S.mat, across(b.axis)
    return S[x][x] + S[y][y]


def with_wheels(tree: Tree, loaded: Collection[str] = ()) -> Tree:
    """The tree with every symmetric body as a wheel, on a screw as a slider beside a wheel of the same rate.

    loaded: links whose bodies turn for what acts on them. Wheels have no frames of links: these would not turn.
    """
    bodies, below = list(tree.bodies), children_of(tree.parents)
    held = {f.body for link, f in tree.frames.items() if link in loaded}
    sliders: dict[int, TreeBody] = {}
    for i in range(len(bodies) - 1, -1, -1):
        b = bodies[i]
        if i in held or not _turns_unseen(b, [bodies[j] for j in below[i]]):
            continue
        k = b.axis
        given = along_axis(k, b.inertia, b.inertia.S.mat[k][k] + 0.5 * axial_inertia(b))
        if b.kind == "helical":
            sliders[i] = b._replace(
                kind="prismatic",
                factor=b.factor * b.pitch,
                pitch=0.0,
                phase=0.0,
                inertia=along_axis(k, given, 0.0),
            )
            given = along_axis(k, ZERO_INERTIA, given.S.mat[k][k])
        wheel = b._replace(kind="wheel", p=ZERO, pitch=0.0, phase=0.0, inertia=about_axis(k, axial_inertia(b)))
        bodies[i] = own_zero(wheel)
        if b.parent >= 0:
            up = bodies[b.parent]
            bodies[b.parent] = up._replace(inertia=up.inertia + given.moved(b.R, b.p))
    if bodies == list(tree.bodies):
        return tree
    return _with_sliders(tree.replace(bodies=tuple(bodies)), sliders)


def _with_sliders(tree: Tree, sliders: Mapping[int, TreeBody]) -> Tree:
    """Sliders come in before the bodies of their numbers; the frames of wheels go."""
    place = [i + sum(j <= i for j in sliders) for i in range(len(tree))]
    bodies = []
    for i, b in enumerate(tree.bodies):
        for each in (sliders[i], b) if i in sliders else (b,):
            bodies.append(each._replace(parent=place[b.parent] if b.parent >= 0 else -1))
    frames = {
        name: f._replace(body=place[f.body] if f.body >= 0 else -1)
        for name, f in tree.frames.items()
        if f.body < 0 or tree.bodies[f.body].kind != "wheel"
    }
    return tree.replace(bodies=tuple(bodies), frames=frames)


def _turns_unseen(b: TreeBody, children: Sequence[TreeBody]) -> bool:
    """Whether the angle of a joint enters nothing by a sine: it carries a symmetric body with inertia about it."""
    screw = b.kind == "helical" and is_number(b.pitch) and not children
    if not (b.kind == "revolute" or screw) or is_zero(axial_inertia(b)) or asymmetry(b.inertia, b.axis) > EXACT:
        return False
    axes = [(c.kind, c.R @ UNIT[c.axis]) for c in children]
    return all(kind == "wheel" and all(is_zero(e[a]) for a in across(b.axis)) for kind, e in axes)


def equal_moments(tree: Tree, model: Model) -> dict[str, str]:
    """Of links that are symmetric about their joints two parameters each: "w.inertia.yy" is "w.inertia.xx"."""
    wheels, out = {b.number for b in with_wheels(tree).bodies if b.kind == "wheel"}, {}
    for link in model.links:
        f = tree.frames[link.name]
        b = tree.bodies[f.body] if f.body >= 0 else None
        if b is not None and b.number in wheels and f.R == IDENTITY and link.inertial is not None:
            x, y = sorted(across(b.axis))
            one, other = link.inertial.tensor[x][x], link.inertial.tensor[y][y]
            if abs(one - other) <= EXACT * abs(one):
                out[f"{link.name}.inertia.{AXES[y] * 2}"] = f"{link.name}.inertia.{AXES[x] * 2}"
    return out


class CarriedWheel(NamedTuple):
    """A wheel, its axis in the axes of the first body under it that is none, and J with the wheels on it."""

    body: int
    e: Vec
    J: Scalar


def carried_wheels(tree: Tree) -> dict[int, list[CarriedWheel]]:
    """By the body that carries them, wheels and the wheels on these."""
    J: list[Scalar] = [axial_inertia(b) if b.kind == "wheel" else 0.0 for b in tree.bodies]
    for i in range(len(tree) - 1, -1, -1):
        p = tree.bodies[i].parent
        if p >= 0 and tree.bodies[p].kind == "wheel" and not tree.locked:
            J[p] = J[p] + J[i]
    out: dict[int, list[CarriedWheel]] = {}
    found: dict[int, tuple[int, Vec]] = {}
    for i, b in enumerate(tree.bodies):
        if b.kind == "wheel":
            e = b.R @ UNIT[b.axis]
            carrier, axis = found.get(b.parent, (b.parent, e))
            along = axis * e[tree.bodies[b.parent].axis] if b.parent in found else e
            found[i] = carrier, along
            out.setdefault(carrier, []).append(CarriedWheel(i, along, J[i]))
    return out


def locked(tree: Tree) -> Tree:
    """For the recursion: every body has all of its wheels' inertia, and feels what their own rates add to it."""
    bodies = list(tree.bodies)
    for b in reversed(bodies):
        if b.kind == "wheel" and b.parent >= 0:
            up = bodies[b.parent]
            bodies[b.parent] = up._replace(inertia=up.inertia + b.inertia.turned(b.R))
    return tree.replace(bodies=tuple(bodies), locked=True)


# -- elimination beforehand -------------------------------------------------------------------------------------


class LastWheel(NamedTuple):
    """A wheel whose acceleration follows from what its parent does: rho J (a . w' + rho q'') + I q'' = tau.

    resistance: rho^2 J + I, with I the inertia of the rotor.
    """

    body: int
    J: Scalar
    rotor: Scalar
    resistance: Scalar


def last_wheels(tree: Tree) -> list[LastWheel]:
    """The wheels that carry nothing and have a rate of their own."""
    rates, carriers = [b.v for b in tree.bodies], set(tree.parents)
    out = []
    for i, b in enumerate(tree.bodies):
        if b.kind == "wheel" and i not in carriers and rates.count(b.v) == 1:
            J, rotor = axial_inertia(b), tree.armature.get(b.v, 0.0)
            out.append(LastWheel(i, J, rotor, J * (b.factor * b.factor) + rotor))
    return out


def without_last_wheels(tree: Tree) -> Tree:
    """The tree for the other joints' accelerations: rates of last wheels have no body, and M no rows for them.

    Of a wheel with a rotor I the parent keeps J I / (rho^2 J + I) about the axis.
    """
    gone, bodies, armature = last_wheels(tree), list(tree.bodies), dict(tree.armature)
    for w in gone:
        b = bodies[w.body]
        rotor = armature.pop(b.v, 0.0)
        if b.parent >= 0 and not is_zero(rotor):
            up = bodies[b.parent]
            left = about_axis(b.axis, w.J * rotor / w.resistance)
            bodies[b.parent] = up._replace(inertia=up.inertia + left.turned(b.R))
    kept = [i for i in range(len(bodies)) if i not in {w.body for w in gone}]
    return restricted(tree.replace(bodies=tuple(bodies), armature=armature), kept) if gone else tree


def restricted(tree: Tree, kept: Sequence[int]) -> Tree:
    """The bodies `kept`, closed under parents and ascending; coordinates as they were, no frames."""
    place = {i: n for n, i in enumerate(kept)}
    bodies = tuple(tree.bodies[i]._replace(parent=place.get(tree.bodies[i].parent, -1)) for i in kept)
    return tree.replace(bodies=bodies, frames={})
