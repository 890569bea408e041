"""Linear models of a robot about a state, with its constraints: Zaremba (4.1), (4.2), corrected.

    M da + (dID/dv) dv + (dID/dq - d(Gamma^T N)/dq) dq = dtau + Gamma^T dN                       (4.1)
    Gamma da + (dgamma/dv) dv + d(Gamma a + gamma)/dq dq = 0                                      linearised (2.18)

ID is inverse dynamics at the state's own a; d(Gamma^T N)/dq at fixed N is the Hessian term sum N_k d2f_k/dq2 that
the printed (4.1) leaves out. dq is on the tangent space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.derivative import partial
from ..codegen.graph.program import Program
from ..codegen.runtime.memo import memoised
from ..compiler.compile import compile
from ..compiler.compile_cost import require_linearisable
from ..compiler.differentiate import at_zero
from ..compiler.request import requested
from ..compiler.rolled import is_large
from ..compiler.tracer import Tracer, unknowns
from ..constrained.checks import CONSISTENT, driven_rates, feedback, square
from ..constrained.collection import all_rows, collect, is_lasting, labels
from ..constrained.constraint import Constraint
from ..constrained.dynamics import ConstrainedMotion, Contacts, constrained_dynamics
from ..constrained.solve import RANK
from ..errors import DrevoError, InputError, NumericsError
from ..io.given import Array, finite, flag, leading
from ..io.reprs import result
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.algorithms.displacements import displaced, variables
from ..mechanics.algorithms.passive import passive as passive_forces
from ..mechanics.algorithms.passive import passive_slopes, passive_tree
from ..mechanics.scalar import dot
from ..mechanics.spatial import Vec, skew
from ..model.description import Model
from ..model.dynamics import Dynamics
from ..model.messages import expect_robot
from .model import LinearModel, real_matrix
from .outputs import Outputs, external_wrenches

_Given = tuple[Array, Array, Array]  # q, v, tau
CONDITION = 1e6  # of independent rows: A goes with its square, and keeps three digits there


@result
class Reduced(LinearModel):
    """The model on the motions that the constraints leave: dx = basis z, which is also its output. About rest it
    is exact; in motion the basis itself turns, and its rate is not in A."""

    basis: Array = field(kw_only=True)


@result
class Linearisation(LinearModel):
    """A (2 nv, 2 nv) and B (2 nv, driven rates) of the state (dq, dv); about q, v, tau, with accelerations a and
    reactions N there. A batch of states has leading dimensions in all of them.

    rank, condition: of the constraints, how many motions they take, and how well. reactions_state,
    reactions_input: dN = reactions_state dx + reactions_input dtau. driven: which rates the columns of B belong
    to, (nv,) of bool. basis: see `reduced`. off: why the state is none of the constraints' own, or "".
    """

    robot: Dynamics = field(kw_only=True, repr=False)
    q: Array = field(kw_only=True)
    v: Array = field(kw_only=True)
    tau: Array = field(kw_only=True)
    a: Array = field(kw_only=True)
    reactions: Array = field(kw_only=True)
    reactions_state: Array = field(kw_only=True)
    reactions_input: Array = field(kw_only=True)
    driven: Array = field(kw_only=True)
    rank: Any = field(kw_only=True)
    condition: Any = field(kw_only=True)
    basis: Array = field(kw_only=True)
    off: str = field(default="", kw_only=True, repr=False)

    shared: ClassVar[tuple[str, ...]] = ("driven",)

    @cached_property
    def reduced(self) -> Reduced:
        """The same on the motions that the constraints leave; without constraints its basis is the identity.

        Raises NumericsError where the state does not keep the constraints.
        """
        if self.off:
            raise NumericsError(f"reduced: {self.off}")
        T, back = self.basis, np.linalg.pinv(self.basis)
        names = _named([(f"motion{i + 1}", "") for i in range(T.shape[-1] // 2)], "qv")
        return Reduced(
            back @ self.A @ T,
            back @ self.B,
            self.C @ T,
            self.D,
            self.dt,
            names,
            self.inputs,
            self.outputs,
            self.units,
            basis=T,
        )


def linearise(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    constraints: Sequence[Constraint] | None = None,
    contacts: Contacts = None,
    actuated: Sequence[str] | None = None,
    t: ArrayLike = 0.0,
    passive: bool = True,
    f_ext: Mapping[str, ArrayLike] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    outputs: Sequence[str] = ("q", "v"),
) -> Linearisation:
    """The dynamics about a state, to first order: (dq, dv)' = A (dq, dv) + B dtau, y = C (dq, dv) + D dtau.

    q (..., nq), v, tau (..., nv): leading dimensions are a batch, the model too. actuated: names of the driven
    joints, by default all but a floating base or trunk; B has a column for each of their rates. Of ball and free
    joints dq is in body axes, carried along with the motion: dq' = dv - v x dq. States are named joint.q and
    joint.v, inputs joint.tau, with [i] of joints of more freedoms. Dependent constraints are allowed.
    passive: with the damping, dry friction and springs of the joints. f_ext: {link: (6,)}, force and moment at the
    link's origin, which stay as they are in world axes. stabilise (gamma1, gamma0): the constraints are held by
    feedback (see constrained_dynamics), whose motions are then in A.
    outputs: parts of y, of "q", "v" (dq, dv), "a" (accelerations), "reactions", "pose:LINK" and "velocity:LINK"
    (of a link's origin, linear first, world axes). Raises InputError; NumericsError at a dead point, where the
    constraints lose rank.
    """
    expect_robot(robot, "linearise")
    sizes = (("q", q, (..., robot.nq)), ("v", v, (..., robot.nv)), ("tau", tau, (..., robot.nv)))
    x, u, force = (real_matrix(f"linearise: {name}", given, shape) for name, given, shape in sizes)
    time = finite("linearise: t", t)
    lead = leading("linearise", q=x, v=u, tau=force, t=time[..., None])
    found = collect(robot.model, contacts, constraints)
    pushed, wrenches = external_wrenches(robot.model, "linearise", f_ext)
    require_linearisable(robot.model, [link for c in (*found, *pushed) for link in c.links])
    problem = Problem(
        robot,
        found,
        pushed,
        wrenches,
        driven_rates(robot.model, actuated),
        flag("linearise: passive", passive),
        _feedback(stabilise, sum(c.size for c in found)),
        Outputs.of(robot.model, outputs, labels(found)),
    )
    if not lead:
        return problem.at(x, u, force, time)
    rows = [np.broadcast_to(y, (*lead, y.shape[-1])).reshape(-1, y.shape[-1]) for y in (x, u, force)]
    return problem.batch(lead, *rows, np.broadcast_to(time, lead).ravel())


@dataclass(frozen=True, eq=False)
class Problem:
    """What is linearised beside the state. pushed, wrenches: where f_ext acts, as contacts whose reactions it is;
    feedback: the gains (gamma1, gamma0) of the constraints as matrices."""

    robot: Dynamics
    found: tuple[Constraint, ...]
    pushed: tuple[Constraint, ...]
    wrenches: dict[str, Array]
    driven: Array
    passive: bool
    feedback: tuple[Array, Array] | None
    outputs: Outputs

    def at(self, x: Array, u: Array, force: Array, time: Array) -> Linearisation:
        """The linear model about one state."""
        robot, n, names = self.robot, self.robot.nv, self.robot.model.freedoms()
        push, push_q, push_v = _passive(robot, x, u, self.passive)
        now = self.motion(x, u, force + push, time)

        def terms(found: tuple[Constraint, ...], N: Array) -> tuple[Array, ...]:
            return _constraint_derivatives(robot, found, x, u, now.a, N, time)

        hessian, second_q, second_v, rate_q = terms(self.found, now.reactions)
        if self.pushed:
            hessian = hessian + terms(self.pushed, np.concatenate([*self.wrenches.values()]))[0]
        Z, condition = motions_left(now, terms(self.found, np.eye(len(now.rows)))[0])
        if self.feedback is not None:
            G, (g1, g0) = now.jacobian, self.feedback
            second_q, second_v = second_q + g1 @ rate_q + g0 @ G, second_v + g1 @ G
        forces, motions = (hessian + push_q, push_v), np.hstack([second_q, second_v])
        da, dN = _responses(robot, (x, u, force + push), now, self.driven, forces, motions)
        states = _named(names, "qv")
        inputs = _named([name for name, driven in zip(names, self.driven) if driven], ["tau"])
        C, D = self.outputs.rows(robot, (x, u), da, dN)
        return Linearisation(
            np.block([[carried(robot.model, u), np.eye(n)], [da[:, :n], da[:, n : 2 * n]]]),
            np.vstack([np.zeros_like(da[:, 2 * n :]), da[:, 2 * n :]]),
            C,
            D,
            states=states,
            inputs=inputs,
            outputs=self.outputs.names,
            units=self.outputs.units_with(robot.model),
            robot=robot,
            q=x,
            v=u,
            tau=force,
            a=now.a,
            reactions=now.reactions,
            reactions_state=dN[:, : 2 * n],
            reactions_input=dN[:, 2 * n :],
            driven=self.driven,
            rank=now.rank,
            condition=condition,
            basis=_basis(Z, now.jacobian, rate_q),
            off=_off(now, u),
        )  # fmt: skip

    def batch(self, lead: tuple[int, ...], *states: Array) -> Linearisation:
        """The models about many states, as one with leading dimensions."""
        found = []
        for k, state in enumerate(zip(*states)):
            try:
                found.append(self.at(*state))
            except DrevoError as error:
                raise type(error)(f"in row {k} of the batch: {error}") from None
        if not found:
            raise InputError(f"linearise: the batch {lead} is empty; give one state or more")
        if len({x.basis.shape for x in found}) > 1:
            ranks = ", ".join(map(str, sorted({x.rank for x in found})))
            raise NumericsError(
                f"linearise: the constraints have the ranks {ranks} in this batch; linearise the states of each "
                "rank by themselves"
            )
        arrays = {f.name for f in fields(found[0]) if isinstance(getattr(found[0], f.name), (np.ndarray, int))}
        arrays = (arrays | {"condition"}) - {"driven", "dt"}
        whole: dict[str, Any] = {x: np.stack([getattr(one, x) for one in found]) for x in arrays}
        off = next((f"in row {k} of the batch {x.off}" for k, x in enumerate(found) if x.off), "")
        return replace(found[0], **{n: x.reshape(*lead, *x.shape[1:]) for n, x in whole.items()}, off=off)

    def motion(self, x: Array, u: Array, force: Array, time: Array) -> ConstrainedMotion:
        """What moves and holds at the state."""
        return constrained_dynamics(
            self.robot, x, u, force, constraints=self.found[: self.own], t=time, f_ext=self.wrenches or None,
            stabilise=self.feedback,
        )  # fmt: skip

    @property
    def own(self) -> int:
        """How many constraints were given: those of the model come after them, and by themselves."""
        return len(self.found) - self.robot.model.closures


def _feedback(stabilise: Any, rows: int) -> tuple[Array, Array] | None:
    """(gamma1, gamma0) as matrices."""
    if stabilise is None:
        return None
    g1, g0 = (square(g, rows) for g in feedback(stabilise, rows))
    return g1, g0


def _passive(robot: Dynamics, q: Array, v: Array, wanted: bool) -> tuple[Array, Array, Array]:
    """The passive forces with their derivatives by q and by v."""
    n = robot.nv
    by_q, by_v = np.zeros((n, n)), np.zeros((n, n))
    if not wanted or not has_passive(robot.model):
        return np.zeros(n), by_q, by_v
    tree = passive_tree(robot.model)
    for i, k, slope_q, slope_v in passive_slopes(tree, q.tolist(), v.tolist()):
        by_q[i, k] += slope_q
        by_v[i, k] += slope_v
    return np.array(passive_forces(tree, q.tolist(), v.tolist()), float), by_q, by_v


def _named(freedoms: Sequence[tuple[str, str]], parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{joint}.{part}{index}" for part in parts for joint, index in freedoms)


def motions_left(now: ConstrainedMotion, hessians: Array) -> tuple[Array, float]:
    """Z (nv, freedoms) with Gamma Z = 0, at a state where the rank lasts, and the condition of the rows that
    count; hessians: d2f/dq2 (rows, nv, nv).

    Rows u with u^T Gamma = 0 that follow from the others have u^T d2f/dq2 = 0 on Z; where it is not, they hold a
    motion nearby that they do not hold here: a dead point.
    """
    G, r = now.jacobian, now.rank
    if not G.size:
        return np.eye(G.shape[1]), 1.0
    size = np.maximum(np.abs(G).max(axis=1), np.abs(hessians).max(axis=(1, 2)))  # a row's own unit
    size = np.where(size > 0.0, size, 1.0)
    U, s, Vt = np.linalg.svd(G / size[:, None])
    Z = Vt[r:].T
    forms = np.einsum("mk,m...->k...", U[:, r:] / size[:, None], hessians)
    unheld = np.abs(Z.T @ forms @ Z).max(axis=(1, 2), initial=0.0)
    lost, condition = float(unheld.max(initial=0.0)), s[0] / s[r - 1] if r else 1.0
    if lost > CONSISTENT or condition > CONDITION:
        at = r + int(unheld.argmax()) if lost > CONSISTENT else r - 1
        raise NumericsError(
            f"linearise: a dead point of the constraints, or close to one: {r} of {len(G)} rows are independent "
            f"here, their condition is {condition:.1e}, and {now.rows[int(np.abs(U[:, at]).argmax())]} loses its "
            "hold; no linear model has digits there, take a state further away"
        )
    return np.asarray(Z), float(condition)


def _off(now: ConstrainedMotion, v: Array) -> str:
    """A sentence on a state that is not one of the constraints'."""
    for what, x, size in (("is off by", now.value, 1.0), ("moves at", now.rate, np.abs(v).max(initial=1.0))):
        if np.abs(x).max(initial=0.0) > CONSISTENT * size:
            i = int(np.argmax(np.abs(x)))
            return (
                f"the state does not keep the constraints, {now.rows[i]} {what} {abs(x[i]):.3g} (SI); linearise "
                "at one that does: drevo.constrained.hold(robot, q, v, ...) gives the nearest"
            )
    return ""


def _solved(M: Array, G: Array, force: Array, gamma: Array) -> tuple[Array, Array]:
    """The KKT system [[M, -G^T], [G, 0]] (a, N) = (force, -gamma), N least; y = L^T a, M = L L^T."""
    L = np.linalg.cholesky(M)
    W, y = np.linalg.solve(L, G.T).T, np.linalg.solve(L, force)
    back = pseudo_inverse(W)
    share = -back @ (gamma + W @ y)
    return np.linalg.solve(L.T, y + share), back.T @ share


def _responses(
    robot: Dynamics, state: _Given, now: ConstrainedMotion, driven: Array, forces: Sequence[Array], motions: Array
) -> tuple[Array, Array]:
    """da and dN by dq, dv and dtau.

    forces, motions: what acts at the joints beside ID, and Gamma a + gamma, by dq and by dv.
    """
    if not len(now.rows) and is_large(robot.model):
        da = _free_responses(robot, state, driven, forces)
        return da, np.zeros((0, da.shape[1]))
    dID_dq, dID_dv, M = robot.inverse_dynamics_derivatives(*state[:2], now.a)
    S = np.eye(robot.nv)[:, driven]
    force_side = np.hstack([forces[0] - dID_dq, forces[1] - dID_dv, S])  # (4.1)
    return _solved(M, now.jacobian, force_side, np.hstack([motions, np.zeros((len(motions), S.shape[1]))]))


def _free_responses(robot: Dynamics, state: _Given, driven: Array, forces: Sequence[Array]) -> Array:
    """da without constraints, of a large tree: no matrix is factored."""
    quantity = "forward_dynamics_derivatives"
    f = memoised(robot, (quantity,), lambda: compile(robot.model, quantity))
    *found, inverse = f(*state)
    found = [x + inverse @ p if p.any() else x for x, p in zip(found, forces)]
    return np.hstack([*found, inverse[:, driven]])


def pseudo_inverse(A: Array) -> Array:
    """Moore-Penrose; directions below RANK of the largest count as lost."""
    if not A.size:
        return np.zeros(A.shape[::-1])
    return np.asarray(np.linalg.pinv(A, rcond=RANK))


def _basis(Z: Array, G: Array, rate_q: Array) -> Array:
    """Of the motions left: dq = Z x, dv = Z y + W x with Gamma W + (df'/dq) Z = 0."""
    if not len(G):
        return np.eye(2 * len(Z))
    W = -pseudo_inverse(G) @ rate_q @ Z
    return np.block([[Z, np.zeros_like(Z)], [W, Z]])


def carried(model: Model, v: Array) -> Array:
    """d(dq')/dq at fixed dv: -v x on ball and free joints, else 0."""
    out = np.zeros((model.nv, model.nv))
    for j, _, sv in model.slices():
        if j.turns:
            w: Array = np.array(skew(Vec(*v[sv][-3:])))
            out[sv, sv][-3:, -3:] = -w
            if j.nq == 7:
                out[sv, sv][:3, :3], out[sv, sv][:3, 3:] = -w, -np.array(skew(Vec(*v[sv][:3])))
    return out


# -- derivatives of the constraints, compiled --------------------------------------------------------------


def _constraint_derivatives(
    robot: Dynamics, found: tuple[Constraint, ...], q: Array, v: Array, a: Array, N: Array, t: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """d(Gamma^T N)/dq, d(Gamma a + gamma)/dq, dgamma/dv and df'/dq."""
    n = robot.nv
    if not found:
        return np.zeros((n, n)), np.zeros((0, n)), np.zeros((0, n)), np.zeros((0, n))
    asked, lasting = ("constraint derivatives", found), all(map(is_lasting, found))
    f = requested(robot, asked, lambda: curvature_program(robot.model, found), lasting=lasting)
    result: Mapping[int, Array] = f(q, v, a, N, np.reshape(t, 1))
    return result[0], result[1], result[2], result[3]


def curvature_program(model: Model, found: tuple[Constraint, ...]) -> Program:
    """The derivatives that (4.1) and the linearised (2.18) need, with inputs q, v, a, N, t."""
    t, n, m = Tracer("constraint_derivatives", model), model.nv, sum(c.size for c in found)
    q, v, a = t.state("q", "v", "a")
    N, (time,) = t.input("N", m), t.input("t", 1)
    d = unknowns(t.graph, "d", n)
    rows = all_rows(found, Kinematics(t.tree, displaced(t.tree, q, d, 1), v), time)
    by = variables(t.tree, q, d)
    load = [dot(column, N) for column in zip(*rows.jacobian)]
    second = [dot(row, a) + b for row, b in zip(rows.jacobian, rows.bias)]
    parts = (
        ("hessian", n, partial(load, by)),
        ("second_q", m, partial(second, by)),
        ("second_v", m, partial(rows.bias, v)),
        ("rate_q", m, partial(rows.rate, by)),
    )
    for name, k, block in parts:
        t.output(name, at_zero([x for row in block for x in row], d), (k, n))
    return t.program(quantity="constraint derivatives", formalism="graph")
