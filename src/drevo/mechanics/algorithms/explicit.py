"""Joints by formula: the steps of their chains follow, gamma(q), on the tree in which these own coordinates.

There (index x) q_x = (q, gamma), v_x = F v, a_x = F a + g with F = (1, G), G = dgamma/dq, g = (dG/dt) v, and so
tau = F^T tau_x, M = F^T M_x F: explicit constraints, Featherstone 2008, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..jet import Jet, jet
from ..scalar import Matrix, Scalar, Vector, accumulate, dot
from ..tree import Tree
from .inertia_matrix import Factors, factorised, lower_rows
from .inverse_dynamics import External, LinkPowers
from .task_space import chosen_rows, inverted, require_mobile, task_dynamics, volume, weighed

Compute = Callable[..., Any]
Parts = Mapping[str, Compute]  # the algorithms on the expanded tree
Gamma = Callable[[Vector], list[Scalar]]
StepRows = list[dict[int, Scalar]]  # of every step, by the rates of its owner


def slope(gamma: Gamma, k: int) -> Gamma:
    """x -> the derivative of gamma by coordinate k."""

    def of(x: Vector) -> list[Scalar]:
        return [jet(y).d for y in gamma([Jet(z, 1.0 if i == k else 0.0) for i, z in enumerate(x)])]

    return of


class Explicit:
    """A tree at q: the expanded tree there, and G by steps."""

    def __init__(self, tree: Tree, q: Vector) -> None:
        self.formulas, self.q = tree.formulas, q
        self.tree, self.expanded_q, self.nv = tree.expanded, tree.expanded_coordinates(q), tree.nv
        self.G = self._rows(lambda gamma, x, k: slope(gamma, k)(x))
        for x, g, (i, b) in zip(self.expanded_q[len(q) :], self.G, self._steps()):
            tree.section(i, "formula of link")
            tree.named(x, f"gamma_{b}")
            for k, y in enumerate(g.values(), 1):
                tree.named(y, f"G_{b}" if len(g) == 1 else f"G_{b}_{k}")

    def _steps(self) -> Iterator[tuple[int, str]]:
        for f in self.formulas:
            yield from ((i, self.tree.bodies[i].number) for i in range(f.body, f.body + f.steps))

    def _rows(self, of: Callable[[Gamma, Vector, int], list[Scalar]]) -> StepRows:
        """of(gamma, x, k), the values of the steps, for every coordinate k of every formula."""
        out: StepRows = []
        for f in self.formulas:
            columns = [of(f.gamma, f.of(self.q), k) for k in range(f.owner.nv)]
            rows: StepRows = [{} for _ in range(f.steps)]
            for k, column in enumerate(columns):
                for row, y in zip(rows, column):
                    accumulate(row, f.owner.v + k, y)
            out += rows
        return out

    def hessians(self) -> list[StepRows]:
        """d2 gamma by two rates: of every step and rate k the row by l."""
        first: list[StepRows] = []
        for f in self.formulas:
            x, n, v = f.of(self.q), range(f.owner.nv), f.owner.v
            seconds = {(k, l): slope(slope(f.gamma, k), l)(x) for k in n for l in n if l <= k}
            for i in range(f.steps):
                rows: StepRows = [{} for _ in n]
                for k in n:
                    for l in n:
                        accumulate(rows[k], v + l, seconds[max(k, l), min(k, l)][i])
                first.append(rows)
        return first

    def turning(self, x: Vector) -> StepRows:
        """d(G x)/dq at fixed x, which for x = v is dG/dt."""
        out: StepRows = []
        starts = [f.owner.v for f in self.formulas for _ in range(f.steps)]
        for v, rows in zip(starts, self.hessians()):
            out.append({})
            for k, row in enumerate(rows):
                for l, y in row.items():
                    accumulate(out[-1], v + k, y * x[l])
        return out

    def turning_rates(self, v: Vector) -> StepRows:
        """dg/dq."""

        def of(gamma: Gamma, x: Vector, k: int) -> list[Scalar]:
            rates = range(len(x))
            third = {(l, m): slope(slope(slope(gamma, k), l), m)(x) for l in rates for m in rates if m <= l}
            return [self._quadratic([[third[max(l, m), min(l, m)][i] for m in rates] for l in rates], own[gamma])
                    for i in range(len(third[0, 0]))]  # fmt: skip

        own = {f.gamma: v[f.owner.v : f.owner.v + f.owner.nv] for f in self.formulas}
        return self._rows(of)

    @staticmethod
    def _quadratic(A: Matrix, x: Vector) -> Scalar:
        total: Scalar = 0.0
        for l, row in enumerate(A):
            for m, y in enumerate(row):
                total = total + y * x[l] * x[m]
        return total

    def rates(self, v: Vector) -> list[Scalar]:
        """F v."""
        return [*v, *self._times(self.G, v)]

    def accelerations(self, v: Vector, a: Vector) -> list[Scalar]:
        """F a + g."""
        return [*a, *(x + y for x, y in zip(self._times(self.G, a), self._times(self.turning(v), v)))]

    @staticmethod
    def _times(rows: StepRows, x: Vector) -> list[Scalar]:
        out: list[Scalar] = []
        for row in rows:
            total: Scalar = 0.0
            for k, y in row.items():
                total = total + y * x[k]
            out.append(total)
        return out

    def fold(self, x: Vector) -> list[Scalar]:
        """F^T x."""
        out = list(x[: self.nv])
        for row, y in zip(self.G, x[self.nv :]):
            for k, g in row.items():
                out[k] = out[k] + g * y
        return out

    def fold_rows(self, A: Matrix) -> Matrix:
        """F^T A."""
        columns = [self.fold(column) for column in zip(*A)]
        return [list(row) for row in zip(*columns)]

    def fold_matrix(self, M: Matrix) -> Matrix:
        """F^T M F, symmetric."""
        found = self.fold_rows([self.fold(row) for row in M])
        return [[found[max(r, c)][min(r, c)] for c in range(self.nv)] for r in range(self.nv)]


# -- quantities ---------------------------------------------------------------------------------------------


def _inverse_dynamics(
    parts: Parts, tree: Tree, q: Vector, v: Vector, a: Vector, external: External | None = None
) -> list[Scalar]:
    e = Explicit(tree, q)
    at, loads = (e.expanded_q, e.rates(v), e.accelerations(v, a)), {"external": external} if external else {}
    return e.fold(parts["inverse_dynamics"](e.tree, *at, **loads))


def _bias(parts: Parts, tree: Tree, q: Vector, v: Vector, external: External | None = None) -> list[Scalar]:
    return _inverse_dynamics(parts, tree, q, v, [0.0] * tree.nv, external)


def _gravity(parts: Parts, tree: Tree, q: Vector) -> list[Scalar]:
    """g of a tree with joints by formula: that of its steps, folded by their rates."""
    e = Explicit(tree, q)
    return e.fold(parts["gravity"](e.tree, e.expanded_q))


def _inertia_product(parts: Parts, tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    e = Explicit(tree, q)
    return e.fold(parts["inertia_product"](e.tree, e.expanded_q, e.rates(x)))


def _mass_matrix(parts: Parts, tree: Tree, q: Vector) -> Matrix:
    e = Explicit(tree, q)
    return e.fold_matrix(parts["mass_matrix"](e.tree, e.expanded_q))


def _factors(parts: Parts, tree: Tree, q: Vector) -> Factors:
    """The factors of M; guarded too is where a formula moves its body no more."""
    e = Explicit(tree, q)
    steps = parts["mass_matrix"](e.tree, e.expanded_q)
    M = e.fold_matrix(steps)
    for row, k in zip(e.G, range(e.nv, len(steps))):
        for v in row:
            tree.guard(M[v][v], steps[k][k], v)
    return factorised(tree, lower_rows(M))


def _inverse_mass_matrix(parts: Parts, tree: Tree, q: Vector) -> Matrix:
    return _factors(parts, tree, q).dense_inverse()


def _forward_dynamics(
    parts: Parts, tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None
) -> list[Scalar]:
    h = _bias(parts, tree, q, v, external)
    return _factors(parts, tree, q).solve([t - x for t, x in zip(tau, h)])


def _coriolis_matrix(parts: Parts, tree: Tree, q: Vector, v: Vector) -> Matrix:
    """F^T (C_x F + M_x dF/dt)."""
    e = Explicit(tree, q)
    C = parts["coriolis_matrix"](e.tree, e.expanded_q, e.rates(v))
    M, turning = parts["mass_matrix"](e.tree, e.expanded_q), e.turning(v)
    return e.fold_rows([_chained(e, c, (m, turning)) for c, m in zip(C, M)])


def _chained(e: Explicit, row: Vector, *more: tuple[Vector, StepRows]) -> list[Scalar]:
    """row F and, of every (x, D), what the steps' part of x makes of D."""
    out = e.fold(row)
    for x, D in more:
        for y, d in zip(x[e.nv :], D):
            for k, z in d.items():
                out[k] = out[k] + y * z
    return out


def _inverse_dynamics_derivatives(
    parts: Parts, tree: Tree, q: Vector, v: Vector, a: Vector
) -> tuple[Matrix, Matrix, Matrix]:
    """The chain rule on tau = F^T tau_x(q_x, F v, F a + g)."""
    e = Explicit(tree, q)
    at = e.expanded_q, e.rates(v), e.accelerations(v, a)
    dq, dv, M = parts["inverse_dynamics_derivatives"](e.tree, *at)
    tau = parts["inverse_dynamics"](e.tree, *at)[e.nv :]
    turning, moved, more = e.turning(v), e.turning(a), e.turning_rates(v)
    by_q = e.fold_rows([_chained(e, x, (y, turning), (m, moved), (m, more)) for x, y, m in zip(dq, dv, M)])
    by_v = e.fold_rows([_chained(e, y, (m, turning), (m, turning)) for y, m in zip(dv, M)])
    starts = [f.owner.v for f in e.formulas for _ in range(f.steps)]
    for start, rows, force in zip(starts, e.hessians(), tau):
        for k, row in enumerate(rows, start):
            for l, x in row.items():
                by_q[k][l] = by_q[k][l] + x * force
    return by_q, by_v, e.fold_matrix(M)


def _forward_dynamics_derivatives(
    parts: Parts, tree: Tree, q: Vector, v: Vector, tau: Vector
) -> tuple[Matrix, Matrix, Matrix]:
    """-M^-1 dID/dq, -M^-1 dID/dv and M^-1."""
    a = _forward_dynamics(parts, tree, q, v, tau)
    dq, dv, _ = _inverse_dynamics_derivatives(parts, tree, q, v, a)
    f = _factors(parts, tree, q)
    solved = [[f.solve([-x for x in column]) for column in zip(*A)] for A in (dq, dv)]
    return *([list(row) for row in zip(*A)] for A in solved), f.dense_inverse()  # type: ignore[return-value]


def _jacobian(parts: Parts, tree: Tree, q: Vector, **options: str) -> Matrix:
    e = Explicit(tree, q)
    return [e.fold(row) for row in parts["jacobian"](e.tree, e.expanded_q, **options)]


def _operational(name: str, parts: Parts, tree: Tree, q: Vector, link: str, frame: str) -> Matrix:
    f, J = _factors(parts, tree, q), _jacobian(parts, tree, q, link=link, frame=frame)
    if name == "inverse_operational_inertia":
        return weighed(f, J)
    require_mobile(J, link)
    return inverted(weighed(f, J), link)


def _folded_rows(name: str, parts: Parts, tree: Tree, q: Vector) -> Matrix:
    e = Explicit(tree, q)
    return [e.fold(row) for row in parts[name](e.tree, e.expanded_q)]


def _centroidal_momentum_bias(parts: Parts, tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    e = Explicit(tree, q)
    still = e.accelerations(v, [0.0] * tree.nv)
    A = parts["centroidal_momentum_matrix"](e.tree, e.expanded_q)
    b = parts["centroidal_momentum_bias"](e.tree, e.expanded_q, e.rates(v))
    return [x + dot(row, still) for x, row in zip(b, A)]


def _jacobian_bias(parts: Parts, tree: Tree, q: Vector, v: Vector, link: str, frame: str) -> list[Scalar]:
    e = Explicit(tree, q)
    kind = "classical" if frame == "local_world_aligned" else "spatial"
    still = e.accelerations(v, [0.0] * tree.nv)
    found: list[Scalar] = parts["acceleration"](e.tree, e.expanded_q, e.rates(v), still, link, frame, kind)
    return found


def _manipulability(parts: Parts, tree: Tree, q: Vector, link: str, frame: str, axes: str) -> Scalar:
    return volume(_jacobian(parts, tree, q, link=link, frame=frame), axes)


def _operational_space(
    parts: Parts, tree: Tree, q: Vector, v: Vector, link: str, frame: str, axes: str, damping: str, terms: str
) -> Any:
    e, f = Explicit(tree, q), _factors(parts, tree, q)
    J = chosen_rows(_jacobian(parts, tree, q, link=link, frame=frame), axes)
    rates = chosen_rows(_jacobian_bias(parts, tree, q, v, link, frame), axes)
    T = parts["pose"](e.tree, e.expanded_q, link)
    return task_dynamics(f, T, J, rates, _bias(parts, tree, q, v), _gravity(parts, tree, q), link, damping, terms)


def _power_balance(parts: Parts, tree: Tree, q: Vector, v: Vector, a: Vector) -> LinkPowers:
    """Power of a tree with joints by formula, from that of its steps."""
    e = Explicit(tree, q)
    at = e.expanded_q, e.rates(v), e.accelerations(v, a)
    tau = e.fold(parts["inverse_dynamics"](e.tree.replace(armature={}), *at))
    _, kinetic, potential = parts["power_balance"](e.tree, *at)
    return [x * y for x, y in zip(tau, v)], kinetic, potential


def _regressor(parts: Parts, tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Matrix]:
    e = Explicit(tree, q)
    Y = parts["regressor"](e.tree, e.expanded_q, e.rates(v), e.accelerations(v, a))
    by_link = [e.fold_rows(list(rows)) for rows in zip(*Y)]
    return [list(rows) for rows in zip(*by_link)]


def _of_motion(name: str, parts: Parts, tree: Tree, q: Vector, *rates: Vector, **options: Any) -> Any:
    """A quantity that depends on the poses and the motion of the bodies."""
    e = Explicit(tree, q)
    at = [e.rates(rates[0]), *([e.accelerations(*rates)] if len(rates) > 1 else [])] if rates else []
    return parts[name](e.tree, e.expanded_q, *at, **options)


_EXPLICIT_QUANTITIES: dict[str, Compute] = {
    "inverse_dynamics": _inverse_dynamics,
    "bias": _bias,
    "gravity": _gravity,
    "inertia_product": _inertia_product,
    "mass_matrix": _mass_matrix,
    "inverse_mass_matrix": _inverse_mass_matrix,
    "forward_dynamics": _forward_dynamics,
    "coriolis_matrix": _coriolis_matrix,
    "inverse_dynamics_derivatives": _inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": _forward_dynamics_derivatives,
    "jacobian": _jacobian,
    "operational_inertia": partial(_operational, "operational_inertia"),
    "inverse_operational_inertia": partial(_operational, "inverse_operational_inertia"),
    "center_of_mass_jacobian": partial(_folded_rows, "center_of_mass_jacobian"),
    "centroidal_momentum_matrix": partial(_folded_rows, "centroidal_momentum_matrix"),
    "centroidal_momentum_bias": _centroidal_momentum_bias,
    "jacobian_bias": _jacobian_bias,
    "manipulability": _manipulability,
    "operational_space": _operational_space,
    "power_balance": _power_balance,
    "regressor": _regressor,
}
NEEDS: dict[str, tuple[str, ...]] = {  # of the expanded tree, where it is not the quantity itself
    "bias": ("inverse_dynamics",),
    "inverse_mass_matrix": ("mass_matrix",),
    "forward_dynamics": ("mass_matrix", "inverse_dynamics"),
    "coriolis_matrix": ("coriolis_matrix", "mass_matrix"),
    "inverse_dynamics_derivatives": ("inverse_dynamics_derivatives", "inverse_dynamics"),
    "forward_dynamics_derivatives": ("inverse_dynamics_derivatives", "inverse_dynamics", "mass_matrix"),
    "operational_inertia": ("jacobian", "mass_matrix"),
    "inverse_operational_inertia": ("jacobian", "mass_matrix"),
    "centroidal_momentum_bias": ("centroidal_momentum_bias", "centroidal_momentum_matrix"),
    "jacobian_bias": ("acceleration",),
    "manipulability": ("jacobian",),
    "operational_space": ("jacobian", "mass_matrix", "acceleration", "pose", "inverse_dynamics", "gravity"),
    "power_balance": ("power_balance", "inverse_dynamics"),
}


def explicit(name: str, parts: Parts) -> Compute:
    """The algorithm of a quantity on a tree with joints by formula, from those that it NEEDS."""
    return partial(_EXPLICIT_QUANTITIES.get(name) or partial(_of_motion, name), parts)
