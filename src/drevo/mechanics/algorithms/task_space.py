"""Quantities of the task space: the centre of mass, the centroidal momentum, and Khatib's equations of a link.

Orin, Goswami, Lee 2013, Centroidal dynamics of a humanoid robot: A of h = A v. Khatib 1987, A unified approach for
motion and force control of robot manipulators: Lambda x'' + mu + p = F. Yoshikawa 1985, Manipulability of robotic
mechanisms.

Operational-space inertia of a link: what resists a force on it. Khatib 1987, A unified approach for motion and
force control of robot manipulators: the operational space formulation, (18).
"""

from __future__ import annotations

from typing import Any

from ...errors import TraceError
from ...model.quantities import TASK_AXES, TASK_TERMS
from ..joints import NO_FORCE, Force
from ..scalar import Matrix, Scalar, Vector, dot, is_zero, sqrt
from ..spatial import ZERO_INERTIA, Vec
from ..tree import Tree
from .energy import about_center, first_moment
from .inertia_matrix import Factors, SparseRows, apply_inertia, factorised, inertia_to_parent, mass_matrix_rows
from .inverse_dynamics import bias, body_wrenches, gravity
from .kinematics import acceleration, body_poses, jacobian, pose

MIN_LINK_PIVOT = (
    1e-10  # of a diagonal entry of J M^-1 J^T: a pivot below it means a direction in which the link cannot move
)


def inverse_operational_inertia(
    tree: Tree, q: Vector, link: str, frame: str, M: SparseRows | None = None
) -> Matrix:
    """J M^-1 J^T, (6, 6), linear first: the acceleration that a wrench on the link at rest adds to its own.

    M = L^T D L, so it is Y D^-1 Y^T with Y = J L^-1. M: rows that are there already.
    """
    f = factorised(tree, mass_matrix_rows(tree, q) if M is None else M)
    return weighed(f, jacobian(tree, q, link, frame))


def weighed(f: Factors, J: Matrix) -> Matrix:
    """J M^-1 J^T by the factors of M."""
    Y = [f.solve_transposed(row) for row in J]
    moved = [[y * x for y, x in zip(row, f.inverse)] for row in Y]
    n = len(J)
    lower = [[dot(moved[i], Y[j]) for j in range(i + 1)] for i in range(n)]
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def operational_inertia(tree: Tree, q: Vector, link: str, frame: str, M: SparseRows | None = None) -> Matrix:
    """(J M^-1 J^T)^-1, (6, 6), linear first; not a number where the link cannot move in all six directions."""
    require_mobile(jacobian(tree, q, link, frame), link)
    return inverted(inverse_operational_inertia(tree, q, link, frame, M), link)


def require_mobile(J: Matrix, link: str) -> None:
    """TraceError where fewer than six rates move a link."""
    if sum(not all(map(is_zero, column)) for column in zip(*J)) < 6:
        raise immobile(link)


def inverted(A: Matrix, link: str) -> Matrix:
    """A^-1, symmetric; not a number where a pivot is lost."""
    n = len(A)
    L, inverse = _factors(A, link)
    W: Matrix = [[0.0] * n for _ in range(n)]  # L^-1
    for k in range(n):
        W[k][k] = 1.0
        for i in range(k + 1, n):
            W[i][k] = -dot(L[i][k:i], [W[j][k] for j in range(k, i)])
    moved = [[w * inverse[k] for w in W[k]] for k in range(n)]
    lower = [[dot([moved[k][i] for k in range(i, n)], [W[k][j] for k in range(i, n)]) for j in range(i + 1)]
             for i in range(n)]  # fmt: skip
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def solved(A: Matrix, b: Vector, link: str) -> list[Scalar]:
    """A^-1 b of a symmetric A; not a number where a pivot is lost."""
    n = len(A)
    L, inverse = _factors(A, link)
    x = list(b)
    for i in range(n):
        x[i] = x[i] - dot(L[i][:i], x[:i])
    x = [y * d for y, d in zip(x, inverse)]
    for i in reversed(range(n)):
        x[i] = x[i] - dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :])
    return x


def _factors(A: Matrix, link: str) -> tuple[Matrix, list[Scalar]]:
    """L and D^-1 of A = L D L^T."""
    n, inverse = len(A), []
    S, L = [list(row) for row in A], [[0.0] * len(A) for _ in A]
    for k in range(n):
        if is_zero(S[k][k]):
            raise immobile(link)
        inverse.append(1.0 / (_kept(S[k][k], A[k][k]) if k else S[k][k]))
        for i in range(k + 1, n):
            L[i][k] = S[i][k] * inverse[k]
            for j in range(k + 1, i + 1):
                S[i][j] = S[i][j] - L[i][k] * S[j][k]
    return L, inverse


def immobile(link: str) -> TraceError:
    return TraceError(
        f"operational_inertia: link {link!r} cannot move in all six directions in any configuration; take "
        "inverse_operational_inertia, and of it the directions in which it moves"
    )


def _kept(pivot: Scalar, diagonal: Scalar) -> Scalar:
    """The pivot; not a number where it is lost in the rounding of the diagonal that it is what is left of."""
    root = sqrt(pivot - MIN_LINK_PIVOT * diagonal)
    return root * root + MIN_LINK_PIVOT * diagonal


# -- the centre of mass and the momentum ----------------------------------------------------------------------


def center_of_mass_jacobian(tree: Tree, q: Vector) -> Matrix:
    """J with J v = velocity of the centre of mass, (3, nv), world axes."""
    mass, _ = _mass_and_center(tree, q)
    columns = _momentum_columns(tree, q)
    return [[column.f[k] * (1.0 / mass) for column in columns] for k in range(3)]


def centroidal_momentum_matrix(tree: Tree, q: Vector) -> Matrix:
    """A with A v = linear momentum, then angular momentum about the centre of mass, (6, nv), world axes."""
    _, center = _mass_and_center(tree, q)
    rows = [[*column.f, *about_center(column, center)] for column in _momentum_columns(tree, q)]
    return [list(row) for row in zip(*rows)]


def centroidal_momentum_bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """(dA/dt) v, (6,): the rate of the centroidal momentum where accelerations are zero."""
    wrenches, _ = body_wrenches(tree, q, v, [0.0] * tree.nv, gravity=False)
    X, total = tree.placements(q), NO_FORCE
    for i, b in enumerate(tree.bodies):
        if b.parent < 0:
            total = total + X[i].force_to_parent(wrenches[i])
    _, center = _mass_and_center(tree, q)
    return [*total.f, *about_center(total, center)]


def _mass_and_center(tree: Tree, q: Vector) -> tuple[Scalar, Vec]:
    mass, moment = first_moment(tree, q)
    if is_zero(mass):
        raise TraceError("the moving bodies have no mass, so they have no centre of mass; give one of them a mass")
    return mass, moment * (1.0 / mass)


def _momentum_columns(tree: Tree, q: Vector) -> list[Force]:
    """The momentum about the world's origin that each rate alone gives, of composite bodies."""
    X, poses = tree.placements(q), body_poses(tree, q)
    total, columns = [ZERO_INERTIA] * len(tree), [NO_FORCE] * tree.nv
    for i in range(len(tree) - 1, -1, -1):
        b = tree.bodies[i]
        tree.section(i)
        total[i] = b.inertia + total[i]
        for k, column in enumerate(tree.motion_subspace(b)):
            l = apply_inertia(total[i], column) * b.factor
            f = poses[i].R @ l.f
            columns[b.v + k] = columns[b.v + k] + Force(poses[i].R @ l.n + poses[i].p.cross(f), f)
        if b.parent >= 0:
            total[b.parent] = total[b.parent] + inertia_to_parent(X[i], total[i])
    return columns


# -- one link ---------------------------------------------------------------------------------------------------


def jacobian_bias(tree: Tree, q: Vector, v: Vector, link: str, frame: str) -> list[Scalar]:
    """(dJ/dt) v of `jacobian` in the same frame, (6,): what the acceleration of the link is where a = 0."""
    kind = "classical" if frame == "local_world_aligned" else "spatial"
    return acceleration(tree, q, v, [0.0] * tree.nv, link, frame, kind)


def manipulability(tree: Tree, q: Vector, link: str, frame: str, axes: str) -> Scalar:
    """sqrt(det(J J^T)) of the chosen rows of J; of J^T J where the joints are fewer. Yoshikawa's (6), (8)."""
    return volume(jacobian(tree, q, link, frame), axes)


def volume(J: Matrix, axes: str) -> Scalar:
    """`manipulability` of a Jacobian."""
    rows = chosen_rows(J, axes)
    columns = [list(column) for column in zip(*rows) if not all(map(is_zero, column))]
    few = columns if len(columns) < len(rows) else rows
    gram = [[dot(x, y) for y in few[: k + 1]] for k, x in enumerate(few)]
    return sqrt(_determinant([[gram[max(i, j)][min(i, j)] for j in range(len(few))] for i in range(len(few))]))


def _determinant(A: Matrix) -> Scalar:
    """By minors of its first rows, which are shared; there is no division, so singular matrices have 0."""
    n = len(A)
    minors: dict[tuple[int, ...], Scalar] = {(): 1.0}
    for row in A:
        larger: dict[tuple[int, ...], Scalar] = {}
        for chosen, minor in minors.items():
            for k in (k for k in range(n) if k not in chosen):
                columns = tuple(sorted((*chosen, k)))
                sign = -1.0 if (len(chosen) - columns.index(k)) % 2 else 1.0
                larger[columns] = larger.get(columns, 0.0) + row[k] * minor * sign
        minors = larger
    return minors[tuple(range(n))]


def operational_space(
    tree: Tree,
    q: Vector,
    v: Vector,
    link: str,
    frame: str,
    axes: str,
    damping: str,
    terms: str,
    rows: SparseRows | None = None,
    forces: tuple[Vector, Vector] | None = None,
) -> Any:
    """Terms of: pose of a link, J, (dJ/dt) v, Lambda, mu, p, Jbar = M^-1 J^T Lambda, N = 1 - Jbar J; one is alone.

    The axes are chosen before Lambda = (J M^-1 J^T + damping^2)^-1 is formed. rows: lower triangle of M; forces:
    bias and gravity; where they are there already.
    """
    f = factorised(tree, mass_matrix_rows(tree, q) if rows is None else rows)
    h, g = forces or (bias(tree, q, v), gravity(tree, q))
    J = chosen_rows(jacobian(tree, q, link, frame), axes)
    rates = chosen_rows(jacobian_bias(tree, q, v, link, frame), axes)
    return task_dynamics(f, pose(tree, q, link), J, rates, h, g, link, damping, terms)


def task_dynamics(
    f: Factors, T: Matrix, J: Matrix, rates: Vector, h: Vector, g: Vector, link: str, damping: str, terms: str
) -> Any:
    """`operational_space` of factors of M, the chosen rows of J and of (dJ/dt) v, bias and gravity."""
    n = len(J)
    A, added = weighed(f, J), float(damping) ** 2
    if not added:
        _require_mobile(J, link)
    Lambda = inverted([[A[i][k] + added * (i == k) for k in range(n)] for i in range(n)], link)
    Y = [f.solve_transposed(row) for row in J]

    def moved(force: Vector) -> list[Scalar]:  # J M^-1 force = Y D^-1 L^-T force
        y = [x * d for x, d in zip(f.solve_transposed(force), f.inverse)]
        return [dot(row, y) for row in Y]

    p = _times(Lambda, moved(g))
    mu = _times(Lambda, [x - y for x, y in zip(moved([x - y for x, y in zip(h, g)]), rates)])
    Jbar = [_times(Lambda, column) for column in zip(*map(f.solve_lower, Y))]
    N = [[(1.0 if i == k else 0.0) - dot(row, column) for k, column in enumerate(zip(*J))]
         for i, row in enumerate(Jbar)]  # fmt: skip
    chosen = [x for name, x in zip(TASK_TERMS, (T, J, rates, Lambda, mu, p, Jbar, N)) if name in terms.split()]
    return chosen if len(chosen) > 1 else chosen[0]


def _require_mobile(J: Matrix, link: str) -> None:
    """TraceError where fewer rates move a link than there are axes."""
    moving = sum(not all(map(is_zero, column)) for column in zip(*J))
    if moving < len(J) or any(all(map(is_zero, row)) for row in J):
        raise TraceError(
            f"operational_space: link {link!r} cannot move along all {len(J)} axes: {moving} rates move it; "
            "choose axes along which it moves, or give damping"
        )


def _times(A: Matrix, x: Vector) -> list[Scalar]:
    """A matrix times a vector."""
    return [dot(row, x) for row in A]


def chosen_rows(rows: Any, axes: str) -> Any:
    """The rows of the axes, in the order of the axes."""
    return [rows[TASK_AXES.index(name)] for name in axes.split()]
