"""Inverse dynamics as a linear function of the inertial parameters, tau = Y(q, v, a) pi.

Atkeson, An, Hollerbach 1986: the ten parameters of a link are its mass m, its first moment m c and its rotational
inertia J about the origin of its frame, J_xx, J_xy, J_yy, J_xz, J_yz, J_zz, all in the axes of the link.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..joints import NO_MOTION, Force, Motion, Placement
from ..scalar import Matrix, Vector
from ..spatial import UNIT_VECS, ZERO, Sym
from ..tree import LinkFrame, Tree
from ..tree_indices import ancestors
from .inverse_dynamics import rate_matrix
from .kinematics import moving_links, step_acceleration, step_velocity

INERTIA_ENTRIES = ("xx", "xy", "yy", "xz", "yz", "zz")
PARAMETERS_PER_LINK = 4 + len(INERTIA_ENTRIES)


def regressor(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Matrix]:
    """Y with Y pi = tau, (nv, moving links, 10); gravity is in, rotors and passive forces are not."""
    X, rates, rates2 = tree.placements(q), tree.rates(v), tree.rates(a)
    ground = NO_MOTION, Motion(ZERO, -tree.gravity)
    moving: list[tuple[Motion, Motion]] = []
    for i, b in enumerate(tree.bodies):
        m, acc = moving[b.parent] if b.parent >= 0 else ground
        moving.append((step_velocity(X[i], m, rates[i]), step_acceleration(X[i], m, acc, rates[i], rates2[i])))
    links = moving_links(tree)
    Y: list[Matrix] = [[[0.0] * PARAMETERS_PER_LINK for _ in links] for _ in range(tree.nv)]
    for row, link in enumerate(links):
        at = tree.frames[link]
        forces = unit_forces(at, *moving[at.body])
        for k, subspace in _subspaces(tree, X, at):
            Y[k][row] = [y + subspace.dot(f) for y, f in zip(Y[k][row], forces)]
    return Y


def inertial_parameters(tree: Tree) -> Matrix:
    """The pi of every moving link with what is welded to it, (moving links, 10), kg, kg m and kg m^2."""
    rows: Matrix = []
    for link in moving_links(tree):
        at = tree.frames[link]
        P = tree.bodies[at.body].inertia.moved(at.R.T, -(at.R.T @ at.p))
        rows.append([P.m, *P.h, *(getattr(P.J, entry) for entry in INERTIA_ENTRIES)])
    return rows


def unit_forces(at: LinkFrame, m: Motion, acc: Motion) -> list[Force]:
    """The wrench that each inertial parameter of a link needs where it is 1 and the others 0, in the link's frame.

    m, acc: velocity and classical acceleration of the body that holds the link. F = m a + U (m c), N = J w' +
    w x J w + m c x a.
    """
    w, dw = at.R.T @ m.w, at.R.T @ acc.w
    a = at.R.T @ (acc.v + rate_matrix(m.w, acc.w) @ at.p)
    U = rate_matrix(w, dw).T
    of_moments = [Force(e.cross(a), column) for e, column in zip(UNIT_VECS, U)]
    tensors = [Sym(**{x: float(x == entry) for x in INERTIA_ENTRIES}) for entry in INERTIA_ENTRIES]
    return [Force(ZERO, a), *of_moments, *(Force(J @ dw + w.cross(J @ w), ZERO) for J in tensors)]


def _subspaces(tree: Tree, X: list[Placement], at: LinkFrame) -> Iterator[tuple[int, Motion]]:
    """Numbers of the rates that move a link, and the velocity in its own frame that each gives."""
    path = sorted(ancestors(tree.parents, at.body))
    columns: list[tuple[int, Motion]] = []
    for i in path:
        b = tree.bodies[i]
        columns = [(k, X[i].motion_to_child(column)) for k, column in columns]
        columns += [(b.v + k, column * b.factor) for k, column in enumerate(tree.motion_subspace(b))]
    for k, column in columns:
        yield k, Motion(at.R.T @ column.w, at.R.T @ (column.v + column.w.cross(at.p)))
