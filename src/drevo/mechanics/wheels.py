"""Bodies symmetric about their hinge: wheels, rotors, propellers, flanges. Their angle is a cyclic coordinate.

Such a body looks the same from axes that do not turn with it (the frame of Resal), in which its pseudo-inertia is
constant. So it hands to its parent all but J = S_xx + S_yy about the axis: it becomes a body of kind "wheel" with
the tensor J e e^T and nothing else, whose place on its parent does not matter, only the direction of e does.
The condition is exact for a last body: h_x = h_y = 0, S_xx = S_yy, no products. Further in, all children must be
wheels on parallel axes, and the body symmetric with what they have handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..model.description import Model
from .reframe import own_zero
from .scalar import Scalar, is_zero
from .spatial import EYE, UNIT_VECS, ZERO, ZERO_INERTIA, Mat, RigidInertia, Sym, Vec
from .tree import Tree, TreeBody
from .tree_indices import children_of

ASYMMETRY_TOLERANCE = 1e-12  # the asymmetry that rounding makes of a symmetric body
AXIS_LETTERS = "xyz"


def across(axis: int) -> tuple[int, int]:
    """The two axes normal to a joint's."""
    return (axis + 1) % 3, (axis + 2) % 3


def asymmetry(b: TreeBody, outside: bool = False) -> float:
    """The asymmetry of a body about its axis: the worst of its moments; of symbols 0 or infinite.

    As a part of its second moments about its own pole; outside: about its parent's, of what that feels.
    """
    (x, y), P, k = across(b.axis), b.inertia, b.axis
    size, S = P.S.trace + (b.p.dot(b.p) * P.m if outside else 0.0), P.S.mat
    parts = [(S[x][x] - S[y][y], size), (S[x][y], size), (S[x][k], size), (S[y][k], size)]
    arm = abs(size * P.m) ** 0.5 if is_number(size) and is_number(P.m) else P.m
    return max(_part(z, of) for z, of in (*parts, (P.h[x], arm), (P.h[y], arm)))


def is_number(x: Scalar) -> bool:
    """A plain number, not a node."""
    return isinstance(x, (int, float))


def _part(x: Scalar, of: Scalar) -> float:
    """The share |x / of|: 0 of zero, inf where it is not known."""
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
    return RigidInertia(P.m, UNIT_VECS[axis] * P.h[axis], Sym.of(S))


def axial_inertia(b: TreeBody) -> Scalar:
    """J of a wheel, or of a body that could be one."""
    S, (x, y) = b.inertia.S.mat, across(b.axis)
    return S[x][x] + S[y][y]


Chosen = Callable[[int, TreeBody], bool]  # whether a body, by number, is taken as symmetric


def with_wheels(tree: Tree, loaded: Collection[str] = ()) -> Tree:
    """The tree with every symmetric body as a wheel, on a screw as a slider beside a wheel of the same rate.

    loaded: links whose bodies turn for what acts on them. Wheels have no frames of links: these would not turn.
    """
    held = {f.body for link, f in tree.frames.items() if link in loaded}
    bodies, found = _turned_into_wheels(tree, lambda i, b: i not in held and asymmetry(b) <= ASYMMETRY_TOLERANCE)
    if not found:
        return tree
    sliders = {i: _slider(tree.bodies[i], P) for i, P in found.items() if tree.bodies[i].kind == "helical"}
    return _with_sliders(tree.replace(bodies=tuple(bodies)), sliders)


def missing_symmetry(tree: Tree, chosen: Chosen) -> dict[int, RigidInertia]:
    """By body, what its inertia is short of that of a symmetric one: transverse moments become their mean."""
    out = {}
    for i, P in _turned_into_wheels(tree, chosen)[1].items():
        k, J = tree.bodies[i].axis, axial_inertia(tree.bodies[i]._replace(inertia=P))
        whole = along_axis(k, P, P.S.mat[k][k] + 0.5 * J) + about_axis(k, J)
        out[i] = RigidInertia(whole.m - P.m, whole.h - P.h, whole.S - P.S)
    return out


def _turned_into_wheels(tree: Tree, chosen: Chosen) -> tuple[list[TreeBody], dict[int, RigidInertia]]:
    """The bodies, and by those that became wheels what they were, with what wheels on them have handed over.

    The angle of these enters nothing by a sine: they have inertia about their axis, carry nothing but wheels on
    parallel axes (on a screw nothing), and are symmetric as far as they are chosen.
    """
    bodies, below, found = list(tree.bodies), children_of(tree.parents), dict[int, RigidInertia]()
    for i in range(len(bodies) - 1, -1, -1):
        b, k = bodies[i], bodies[i].axis
        carried = [(bodies[c].kind, bodies[c].R @ UNIT_VECS[bodies[c].axis]) for c in below[i]]
        screw = b.kind == "helical" and is_number(b.pitch) and not carried
        parallel = all(kind == "wheel" and all(is_zero(e[a]) for a in across(k)) for kind, e in carried)
        turning = (b.kind == "revolute" or screw) and parallel and not is_zero(axial_inertia(b))
        if not turning or not chosen(i, b):
            continue
        found[i], J = b.inertia, axial_inertia(b)
        given = along_axis(k, ZERO_INERTIA if screw else b.inertia, b.inertia.S.mat[k][k] + 0.5 * J)
        bodies[i] = own_zero(b._replace(kind="wheel", p=ZERO, pitch=0.0, phase=0.0, inertia=about_axis(k, J)))
        if b.parent >= 0:
            up = bodies[b.parent]
            bodies[b.parent] = up._replace(inertia=up.inertia + given.moved(b.R, b.p))
    return bodies, found


def _slider(b: TreeBody, P: RigidInertia) -> TreeBody:
    """The prismatic body of a screw: the inertia that shifts along its axis."""
    along = along_axis(b.axis, P, 0.0)
    return b._replace(kind="prismatic", factor=b.factor * b.pitch, pitch=0.0, phase=0.0, inertia=along)


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


def equal_moments(tree: Tree, model: Model) -> dict[str, str]:
    """Equal moments of links symmetric about their joints, two for each: "w.inertia.yy" is "w.inertia.xx"."""
    wheels, out = {b.number for b in with_wheels(tree).bodies if b.kind == "wheel"}, {}
    for link in model.links:
        f = tree.frames[link.name]
        b = tree.bodies[f.body] if f.body >= 0 else None
        if b is not None and b.number in wheels and f.R == EYE and link.inertial is not None:
            x, y = sorted(across(b.axis))
            one, other = link.inertial.tensor[x][x], link.inertial.tensor[y][y]
            if abs(one - other) <= ASYMMETRY_TOLERANCE * abs(one):
                out[f"{link.name}.inertia.{AXIS_LETTERS[y] * 2}"] = f"{link.name}.inertia.{AXIS_LETTERS[x] * 2}"
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
            e = b.R @ UNIT_VECS[b.axis]
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
