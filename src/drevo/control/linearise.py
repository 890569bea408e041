"""Linear models of a robot about a state, with its constraints: Zaremba (4.1), (4.2), corrected.

    M da + (dID/dv) dv + (dID/dq - d(Gamma^T N)/dq) dq = dtau + Gamma^T dN                       (4.1)
    Gamma da + (dgamma/dv) dv + d(Gamma a + gamma)/dq dq = 0                                      linearised (2.18)

ID is inverse dynamics at the state's own a; d(Gamma^T N)/dq at fixed N is the Hessian term sum N_k d2f_k/dq2 that
the printed (4.1) leaves out. dq is on the tangent space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constraints import Kinematics
from ..algorithms.higher import moved, variables
from ..constrained import RANK, Contacts, constrained_dynamics, driven_rates
from ..constraint import Constraint, all_rows, collect
from ..differentiate import at_zero
from ..errors import InputError
from ..graph.derivative import partial
from ..graph.node import Graph
from ..graph.program import Input, Output, Program
from ..io.brief import brief
from ..io.packages import package
from ..mechanics.configuration import slices
from ..mechanics.scalar import dot
from ..mechanics.tree import build_tree
from ..model.description import Model

if TYPE_CHECKING:
    from ..robot import Robot
    from ..runtime.function import Function

Array = np.ndarray[Any, Any]


@brief
@dataclass(frozen=True, eq=False)
class Modes:
    """Natural frequencies rad/s (rising), damping ratios, and shapes (states, modes) of a linear model."""

    frequencies: Array
    damping: Array
    shapes: Array


@brief
@dataclass(frozen=True, eq=False)
class LinearModel:
    """dx' = A dx + B du."""

    A: Array
    B: Array

    def discretised(self, dt: float) -> LinearModel:
        """Exact for inputs that are constant over dt: exp of [[A, B], [0, 0]] dt."""
        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        block[:n, :n], block[:n, n:] = self.A, self.B
        whole = package("scipy.linalg", "an exact discretisation").expm(block * dt)
        return LinearModel(whole[:n, :n], whole[:n, n:])

    def modes(self) -> Modes:
        """Eigenvalues -damping w +- i w sqrt(1 - damping^2), one of each pair; not of a discretised model."""
        values, vectors = np.linalg.eig(self.A)
        keep = values.imag >= 0.0
        values, vectors = values[keep], vectors[:, keep]
        order = np.argsort(np.abs(values), kind="stable")
        size = np.abs(values[order])
        damping = np.divide(-values.real[order], size, out=np.zeros_like(size), where=size > 0.0)
        return Modes(size, damping, vectors[:, order])


@brief
@dataclass(frozen=True, eq=False)
class Reduced(LinearModel):
    """The model on the motions that the constraints leave: dx = basis z. About rest it is exact; in motion the
    basis itself turns, and its rate is not in A."""

    basis: Array


@brief
@dataclass(frozen=True, eq=False)
class Linearisation(LinearModel):
    """A (2 nv, 2 nv) and B (2 nv, driven rates) of the state (dq, dv); about accelerations a, reactions N.

    reactions_state, reactions_input: dN = reactions_state dx + reactions_input dtau. reduced: the same model
    on the motions that the constraints leave; without constraints its basis is the identity. driven: which rates
    the columns of B belong to, (nv,) of bool.
    """

    a: Array
    reactions: Array
    reactions_state: Array
    reactions_input: Array
    reduced: Reduced
    driven: Array

    @property
    def C(self) -> Array:
        """The output is the state."""
        return np.eye(len(self.A))

    @property
    def D(self) -> Array:
        """No input passes straight to the output."""
        return np.zeros_like(self.B)


def linearise(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    constraints: Sequence[Constraint] | None = None,
    contacts: Contacts = None,
    actuated: Sequence[str] | None = None,
    t: float = 0.0,
) -> Linearisation:
    """The dynamics about a state, to first order: (dq, dv)' = A (dq, dv) + B dtau.

    actuated: names of the driven joints, by default all but a floating base or trunk; B has a column for each of
    their rates. Of ball and free joints dq is in body axes, carried along with the motion: dq' = dv - v x dq.
    Dependent constraints are allowed. Raises InputError, NumericsError.
    """
    x, u, force = _state(robot, q, v, tau)
    now = constrained_dynamics(robot, x, u, force, contacts=contacts, constraints=constraints, t=t)
    dID_dq, dID_dv, M = robot.inverse_dynamics_derivatives(x, u, now.a)
    found = collect(robot.model, contacts, constraints)
    hessian, second_q, second_v, rate_q = _constraint_derivatives(robot, found, x, u, now.a, now.reactions, t)
    moved_by = driven_rates(robot.model, actuated)
    S = np.eye(robot.nv)[:, moved_by]
    force_side = np.hstack([hessian - dID_dq, -dID_dv, S])  # (4.1): columns dq, dv, dtau
    motion_side = np.hstack([second_q, second_v, np.zeros((len(second_q), S.shape[1]))])
    da, dN = _solved(M, now.jacobian, force_side, motion_side)
    n = robot.nv
    A = np.block([[carried(robot.model, u), np.eye(n)], [da[:, :n], da[:, n : 2 * n]]])
    B = np.vstack([np.zeros_like(S), da[:, 2 * n :]])
    reduced = _reduced(A, B, now.jacobian, rate_q)
    return Linearisation(A, B, now.a, now.reactions, dN[:, : 2 * n], dN[:, 2 * n :], reduced, moved_by)


def _state(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> list[Array]:
    out = []
    for name, x, size in (("q", q, robot.nq), ("v", v, robot.nv), ("tau", tau, robot.nv)):
        array = np.asarray(x, float)
        if array.shape != (size,):
            raise InputError(
                f"linearise: {name} has shape {array.shape}; it must be ({size},), one state at a time"
            )
        out.append(array)
    return out


def _solved(M: Array, G: Array, force: Array, gamma: Array) -> tuple[Array, Array]:
    """The KKT system [[M, -G^T], [G, 0]] (a, N) = (force, -gamma), N least; y = L^T a, M = L L^T."""
    L = np.linalg.cholesky(M)
    W, y = np.linalg.solve(L, G.T).T, np.linalg.solve(L, force)
    back = pseudo_inverse(W)
    share = -back @ (gamma + W @ y)
    return np.linalg.solve(L.T, y + share), back.T @ share


def pseudo_inverse(A: Array) -> Array:
    """Moore-Penrose; directions below RANK of the largest count as lost."""
    if not A.size:
        return np.zeros(A.shape[::-1])
    return np.asarray(np.linalg.pinv(A, rcond=RANK))


def _reduced(A: Array, B: Array, G: Array, rate_q: Array) -> Reduced:
    """dq = Z x, dv = Z y + W x with Gamma Z = 0 and Gamma W + (df'/dq) Z = 0."""
    n = G.shape[1]
    _, s, Vt = np.linalg.svd(G) if G.size else (0, np.zeros(0), np.eye(n))
    Z = Vt[np.count_nonzero(s > RANK * max(s, default=0.0)) :].T
    W = -pseudo_inverse(G) @ rate_q @ Z
    T = np.block([[Z, np.zeros_like(Z)], [W, Z]])
    back = np.linalg.pinv(T)
    return Reduced(back @ A @ T, back @ B, T)


def carried(model: Model, v: Array) -> Array:
    """d(dq')/dq at fixed dv: -v x on ball and free joints, else 0."""
    out = np.zeros((model.nv, model.nv))
    for j, _, sv in slices(model):
        if j.nq >= 4:
            w = _cross(v[sv][-3:])
            out[sv, sv][-3:, -3:] = -w
            if j.nq == 7:
                out[sv, sv][:3, :3], out[sv, sv][:3, 3:] = -w, -_cross(v[sv][:3])
    return out


def _cross(w: Array) -> Array:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


# -- derivatives of the constraints, compiled --------------------------------------------------------------

_MADE: WeakKeyDictionary[Any, dict[tuple[Constraint, ...], Function]] = WeakKeyDictionary()


def _constraint_derivatives(
    robot: Robot, found: tuple[Constraint, ...], q: Array, v: Array, a: Array, N: Array, t: float
) -> tuple[Array, Array, Array, Array]:
    """d(Gamma^T N)/dq, d(Gamma a + gamma)/dq, dgamma/dv and df'/dq."""
    n = robot.nv
    if not found:
        return np.zeros((n, n)), np.zeros((0, n)), np.zeros((0, n)), np.zeros((0, n))
    made = _MADE.setdefault(robot, {})
    if found not in made:
        from ..runtime.function import Spec, obtain

        made[found] = obtain("", lambda: constraint_program(robot.model, found), Spec(), cache=False)
    result: Mapping[int, Array] = made[found](q, v, a, N, np.array([t]))
    return result[0], result[1], result[2], result[3]


def constraint_program(model: Model, found: tuple[Constraint, ...]) -> Program:
    """The derivatives that (4.1) and the linearised (2.18) need, with inputs q, v, a, N, t."""
    graph, tree, n = Graph(), build_tree(model), model.nv
    m = sum(c.size for c in found)
    sizes = {"q": model.nq, "v": n, "a": n, "N": m, "t": 1}
    state: dict[str, list[Any]] = {s: [graph.input(f"{s}[{i}]") for i in range(k)] for s, k in sizes.items()}
    inputs = tuple(Input(s, (k,), tuple(x.edge >> 1 for x in state[s])) for s, k in sizes.items())
    d = [graph.input(f"d[{i}]") for i in range(n)]
    rows = all_rows(found, Kinematics(tree, moved(tree, state["q"], d, 1), state["v"]), state["t"][0])
    by = variables(tree, state["q"], d)
    load = [dot(column, state["N"]) for column in zip(*rows.jacobian)]
    second = [dot(row, state["a"]) + b for row, b in zip(rows.jacobian, rows.bias)]
    parts = (
        ("hessian", n, partial(load, by)),
        ("second_q", m, partial(second, by)),
        ("second_v", m, partial(rows.bias, state["v"])),
        ("rate_q", m, partial(rows.rate, by)),
    )
    outputs = tuple(
        Output(name, (k, n), tuple(graph.edge(x) for x in at_zero([x for row in block for x in row], d)))
        for name, k, block in parts
    )
    starts = [b.q + b.nq - 4 for b in tree.bodies if b.nq >= 4]
    units = tuple(tuple(x.edge >> 1 for x in state["q"][k : k + 4]) for k in starts)
    about = {"robot": model.name, "quantity": "constraint derivatives", "formalism": "graph"}
    return Program("constraint_derivatives", graph, inputs, (), outputs, {}, (), units, about)


__all__ = ["LinearModel", "Linearisation", "Modes", "Reduced", "linearise"]
