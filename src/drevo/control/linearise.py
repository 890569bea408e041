"""Linear models of a robot about a state, with its constraints: Zaremba (4.1), (4.2), corrected.

    M da + (dID/dv) dv + (dID/dq - d(Gamma^T N)/dq) dq = dtau + Gamma^T dN                       (4.1)
    Gamma da + (dgamma/dv) dv + d(Gamma a + gamma)/dq dq = 0                                      linearised (2.18)

ID is inverse dynamics at the state's own a; d(Gamma^T N)/dq at fixed N is the Hessian term sum N_k d2f_k/dq2 that
the printed (4.1) leaves out. dq is on the tangent space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.store.memo import memoised
from ..compiler.compile import compile_quantity
from ..compiler.compile_cost import require_linearisable
from ..compiler.ways.rolled import is_large
from ..constraint.checks import feedback, square
from ..constraint.dynamics import ConstrainedMotion, Contacts, asked_set, constrained_dynamics
from ..constraint.inverse import driven_of
from ..constraint.kinds import Constraint
from ..constraint.prepared import TIME_ZERO, PreparedSet
from ..constraint.solve import CONSISTENT_SHARE, pseudoinverse, require_finite
from ..errors import DrevoError, InputError, NumericsError
from ..io.given import Array, asked, finite, flag, leading
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.passive import passive as passive_forces
from ..mechanics.algorithms.passive import passive_slopes, passive_tree
from ..model.dynamics import START_TIME, Dynamics
from ..model.regularity import require_masses
from .columns import carried
from .linear_kernels import Linearisation, LinearKernels, constraint_derivatives, rate_names
from .model import real_matrix, units_named
from .outputs import Outputs, external_wrenches

_Given = tuple[Array, Array, Array]  # q, v, tau
LINEAR_STATE = ("q", "v")
CONDITION = 1e6  # of independent rows: A goes with its square, and keeps three digits there


@asked
def linearise(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    t: ArrayLike = START_TIME,
    passive: bool = True,
    f_ext: Mapping[str, ArrayLike] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    outputs: Sequence[str] = LINEAR_STATE,
) -> Linearisation:
    """The dynamics about a state, to first order: (dq, dv)' = A (dq, dv) + B dtau, y = C (dq, dv) + D dtau.

    q (..., nq), v, tau (..., nv): leading dimensions are a batch, the model too. actuated: names of the driven
    joints, by default all but a floating base or trunk; B has a column for each of their rates. Of ball and free
    joints dq is in body axes, carried along with the motion: dq' = dv - v x dq. States are named joint.q and
    joint.v, inputs joint.tau, with [i] of joints of more freedoms. Dependent constraints are allowed.
    passive: with the damping, dry friction and springs of the joints. f_ext: {link: (6,)}, force and moment at the
    link's origin, which stay as they are in world axes. stabilise (damping, stiffness): the constraints are held
    by feedback (see constrained_dynamics), whose motions are then in A.
    outputs: parts of y, of "q", "v" (dq, dv), "a" (accelerations), "reactions", "pose:LINK" and "velocity:LINK"
    (of a link's origin, linear first, world axes). Raises InputError; NumericsError at a dead point, where the
    constraints lose rank.
    """
    given = asked_set(robot, "linearise", contacts, constraints)
    gains = None if stabilise is None else feedback(stabilise, given.size)
    return model_under(given, driven_of(robot, actuated), gains, q, v, tau, t, passive, f_ext, outputs)


def model_under(
    given: PreparedSet,
    driven: Array,
    gains: tuple[Array, Array] | None,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    t: ArrayLike,
    passive: bool,
    f_ext: Mapping[str, ArrayLike] | None,
    outputs: Sequence[str],
) -> Linearisation:
    """`linearise` under a set that is checked."""
    robot, asked_so = given.robot, (driven, passive, outputs)
    plain = f_ext is None and gains is None and type(passive) is bool
    if plain and (
        outputs is LINEAR_STATE or (type(outputs) in (tuple, list) and all(type(x) is str for x in outputs))
    ):
        key = "linear", driven.tobytes(), passive, *outputs
        problem = memoised(given.form, key, lambda: _problem(given, *asked_so).found_out()).of(given)
    else:
        problem = _problem(given, *asked_so, f_ext, gains)
    kernels = problem.kernels
    if t is START_TIME and plain and kernels is not None and kernels.tried:
        with suppress(ValueError, DrevoError):  # said below
            return Linearisation.later(problem, kernels.found(given, q, v, tau, TIME_ZERO), TIME_ZERO)
    x, u, force, time = _state(robot, q, v, tau, t)
    lead = leading("linearise", q=x, v=u, tau=force, t=time[..., None])
    if kernels is not None and 0 not in lead:
        with suppress(NumericsError):  # which is said below
            if kernels.certain(given, x, u, force, time[..., None]):
                numbers = kernels.found(given, x, u, force, time[..., None])
                return Linearisation.later(problem, numbers, time)
    if not lead:
        return problem.at(x, u, force, time)
    rows = [np.broadcast_to(y, (*lead, y.shape[-1])).reshape(-1, y.shape[-1]) for y in (x, u, force)]
    return problem.batch(lead, *rows, np.broadcast_to(time, lead).ravel())


def _problem(
    given: PreparedSet,
    driven: Array,
    passive: bool,
    outputs: Any,
    f_ext: Any = None,
    gains: tuple[Array, Array] | None = None,
) -> Problem:
    """The Problem of a linearisation, out of its arguments, which are checked."""
    model = given.robot.model
    pushed, wrenches = external_wrenches(model, "linearise", f_ext)
    require_masses(model, "linearise")
    require_linearisable(model, [link for c in (*given.found, *pushed) for link in c.links])
    acts, seen = flag("linearise: passive", passive), Outputs.of(model, outputs, given.names)
    matrices = None if gains is None else (square(gains[0], given.size), square(gains[1], given.size))
    return Problem(given, pushed, wrenches, driven, acts, matrices, seen)


def _state(robot: Dynamics, q: ArrayLike, v: ArrayLike, tau: ArrayLike, t: ArrayLike) -> tuple[Array, ...]:
    sizes = (("q", q, (..., robot.nq)), ("v", v, (..., robot.nv)), ("tau", tau, (..., robot.nv)))
    return *(real_matrix(f"linearise: {name}", x, shape) for name, x, shape in sizes), finite("linearise: t", t)


@dataclass(frozen=True, eq=False)
class Problem:
    """The arguments of a linearisation beside the state. pushed, wrenches: where f_ext acts, as contacts whose
    reactions it is; feedback: the gains (damping, stiffness) of the constraints as matrices."""

    given: PreparedSet
    pushed: tuple[Constraint, ...]
    wrenches: dict[str, Array]
    driven: Array
    passive: bool
    feedback: tuple[Array, Array] | None
    outputs: Outputs

    def of(self, given: PreparedSet) -> Problem:
        """The problem of another set of the form: what is `found_out` of this one is of all."""
        if given is self.given:
            return self
        problem = object.__new__(Problem)
        problem.__dict__.update(self.__dict__, given=given)
        return problem

    def found_out(self) -> Problem:
        """This, when it has computed what does not depend on the numbers of its set."""
        for name in ("kernels", "layout", "names"):
            getattr(self, name)
        return self

    @property
    def robot(self) -> Dynamics:
        return self.given.robot

    @property
    def found(self) -> tuple[Constraint, ...]:
        return self.given.found

    @cached_property
    def kernels(self) -> LinearKernels | None:
        """The kernels that compute the models of all states, or None where there are none."""
        if self.pushed or self.feedback is not None or not self.given.form.plain:
            return None
        key = ("linear kernels", self.given.form, self.driven.tobytes(), self.passive)
        return memoised(self.robot, key, lambda: LinearKernels.of(self.given, self.driven, self.passive))

    @cached_property
    def layout(self) -> dict[str, tuple[int, int, tuple[int, ...], slice]]:
        """The places of arrays in the results of the kernels: from where to where, as arrays of which shape, in
        which columns of these."""
        n, m, k = self.robot.nv, self.given.size, int(self.driven.sum())
        shapes = [(2 * n, 2 * n + k), (m, 2 * n + k), (n,), (m,), (self.robot.nq,), (n,), (n,)]
        state, drives, every = slice(2 * n), slice(2 * n, None), slice(None)
        parts = [{"A": state, "B": drives}, {"reactions_state": state, "reactions_input": drives}]
        parts += [{name: every} for name in ("a", "reactions", "q", "v", "tau")]
        ends = list(accumulate(map(prod, shapes), initial=0))
        placed = zip(parts, shapes, ends, ends[1:])
        return {name: (at, end, x, where) for part, x, at, end in placed for name, where in part.items()}

    @cached_property
    def names(self) -> dict[str, Any]:
        """Names of the linear model's states, inputs and outputs, with their units."""
        model = self.robot.model
        names = model.freedoms()
        inputs = rate_names([name for name, driven in zip(names, self.driven) if driven], ["tau"])
        states, outputs = rate_names(names, "qv"), self.outputs.names
        units = units_named(self.outputs.units_with(model), {*states, *inputs, *outputs})
        return {"states": states, "inputs": inputs, "outputs": outputs, "units": units}

    def fields_with(self, name: str, numbers: Array, time: Array) -> dict[str, Any]:
        """A field of the linear model, and others that come with it, from what `LinearKernels` found."""
        return StateNumbers(self, numbers, time).fields_with(name)

    def at(self, x: Array, u: Array, force: Array, time: Array) -> Linearisation:
        """The linear model about one state."""
        robot, n = self.robot, self.robot.nv
        push, push_q, push_v = _passive(robot, x, u, self.passive)
        now = self.motion(x, u, force + push, time)

        def terms(constraints: tuple[Constraint, ...], N: Array) -> tuple[Array, ...]:
            return constraint_derivatives(robot, constraints, x, u, now.a, N, time)

        hessian, second_q, second_v, rate_q = terms(self.found, now.reactions)
        if self.pushed:
            hessian = hessian + terms(self.pushed, np.concatenate([*self.wrenches.values()]))[0]
        Z, condition = motions_left(now, terms(self.found, np.eye(len(now.rows)))[0])
        if self.feedback is not None:
            G, (g1, g0) = now.jacobian, self.feedback
            second_q, second_v = second_q + g1 @ rate_q + g0 @ G, second_v + g1 @ G
        forces, motions = (hessian + push_q, push_v), np.hstack([second_q, second_v])
        da, dN = _responses(robot, (x, u, force + push), now, self.driven, forces, motions)
        C, D = self.outputs.rows(robot, (x, u), da, dN)
        return Linearisation(
            np.block([[np.array(carried(robot.model, u.tolist())), np.eye(n)], [da[:, :n], da[:, n : 2 * n]]]),
            np.vstack([np.zeros_like(da[:, 2 * n :]), da[:, 2 * n :]]),
            C,
            D,
            **self.names,
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
        models = []
        for k, state in enumerate(zip(*states)):
            try:
                models.append(self.at(*state))
            except DrevoError as error:
                raise type(error)(f"in row {k} of the batch: {error}") from None
        if not models:
            raise InputError(f"linearise: the batch {lead} is empty; give one state or more")
        if len({x.basis.shape for x in models}) > 1:
            ranks = ", ".join(map(str, sorted({x.rank for x in models})))
            raise NumericsError(
                f"linearise: the constraints have the ranks {ranks} in this batch; linearise the states of each "
                "rank by themselves"
            )
        arrays = {f.name for f in fields(models[0]) if isinstance(getattr(models[0], f.name), (np.ndarray, int))}
        arrays = (arrays | {"condition"}) - {"driven", "dt"}
        whole: dict[str, Any] = {x: np.stack([getattr(one, x) for one in models]) for x in arrays}
        off = next((f"in row {k} of the batch {x.off}" for k, x in enumerate(models) if x.off), "")
        return replace(models[0], **{n: x.reshape(*lead, *x.shape[1:]) for n, x in whole.items()}, off=off)

    def motion(self, x: Array, u: Array, force: Array, time: Array) -> ConstrainedMotion:
        """The constrained motion at the state: accelerations and reactions."""
        return constrained_dynamics(
            self.robot, x, u, force, constraints=self.found[: self.own], t=time, f_ext=self.wrenches or None,
            stabilise=self.feedback,
        )  # fmt: skip

    @property
    def own(self) -> int:
        """The number of constraints given: those of the model come after them, and by themselves."""
        return len(self.found) - self.robot.model.closures


class StateNumbers(NamedTuple):
    """The numbers that `LinearKernels` found of some states, as the fields of their models."""

    problem: Problem
    numbers: Array
    time: Array

    def fields_with(self, name: str) -> dict[str, Any]:
        """One of them; basis, condition and off ask for more than the kernels give."""
        p, x, lead = self.problem, self.numbers, self.numbers.shape[:-1]
        if name in p.layout:
            x.setflags(write=False)
            at, end, shape, where = p.layout[name]
            return {name: x[..., at:end].reshape(lead + shape)[..., where]}
        if name in ("C", "D"):
            return self._outputs()
        if name == "rank":
            rank = p.given.size
            return {name: np.full(lead, rank) if lead else rank}
        fixed = {"robot": p.robot, "driven": p.driven, "dt": None, **p.names}
        return fixed if name in fixed else self._about_rows()

    def _arrays(self, *names: str) -> list[Array]:
        return [self.fields_with(name)[name] for name in names]

    def _outputs(self) -> dict[str, Any]:
        """C and D."""
        lead, (A, B) = self.numbers.shape[:-1], self._arrays("A", "B")
        n = A.shape[-1] // 2
        if self.problem.outputs.parts == LINEAR_STATE:
            plain = np.eye(2 * n), np.zeros((2 * n, B.shape[-1]))
            return {name: np.broadcast_to(y, (*lead, *y.shape)) for name, y in zip("CD", plain)}
        da = np.concatenate([A, B], -1)[..., n:, :]
        dN = np.concatenate(self._arrays("reactions_state", "reactions_input"), -1)
        parts = [x.reshape(prod(lead), *x.shape[len(lead) :]) for x in (*self._arrays("q", "v"), da, dN)]
        rows = [self.problem.outputs.rows(self.problem.robot, (q, v), x, y) for q, v, x, y in zip(*parts)]
        out = {name: np.stack(x).reshape(*lead, *x[0].shape) for name, x in zip("CD", zip(*rows))}
        for y in out.values():
            y.setflags(write=False)
        return out

    def _about_rows(self) -> dict[str, Any]:
        p, lead = self.problem, self.numbers.shape[:-1]
        if not p.given.size:
            basis, ones = np.eye(2 * p.robot.nv), np.ones(lead)
            return {"basis": np.broadcast_to(basis, (*lead, *basis.shape)), "condition": ones if lead else 1.0,
                    "off": ""}  # fmt: skip
        q, v, tau = (x.reshape(prod(lead), x.shape[-1]) for x in self._arrays("q", "v", "tau"))
        times = np.broadcast_to(self.time, lead or (1,)).ravel()
        whole = p.batch(lead, q, v, tau, times) if lead else p.at(q[0], v[0], tau[0], times[0])
        return {x: getattr(whole, x) for x in ("basis", "condition", "off")}


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
    if lost > CONSISTENT_SHARE or condition > CONDITION:
        at = r + int(unheld.argmax()) if lost > CONSISTENT_SHARE else r - 1
        raise NumericsError(
            f"linearise: a dead point of the constraints, or close to one: {r} of {len(G)} rows are independent "
            f"here, their condition is {condition:.1e}, and {now.rows[int(np.abs(U[:, at]).argmax())]} loses its "
            "hold; no linear model has digits there, take a state further away"
        )
    return np.asarray(Z), float(condition)


def _off(now: ConstrainedMotion, v: Array) -> str:
    """A sentence on a state that is not one of the constraints'."""
    for fault, x, size in (("is off by", now.value, 1.0), ("moves at", now.rate, np.abs(v).max(initial=1.0))):
        if np.abs(x).max(initial=0.0) > CONSISTENT_SHARE * size:
            i = int(np.argmax(np.abs(x)))
            return (
                f"the state does not keep the constraints, {now.rows[i]} {fault} {abs(x[i]):.3g} (SI); linearise "
                "at one that does: drevo.constraint.hold(robot, q, v, ...) gives the nearest"
            )
    return ""


def _solved(M: Array, G: Array, force: Array, gamma: Array) -> tuple[Array, Array]:
    """The KKT system [[M, -G^T], [G, 0]] (a, N) = (force, -gamma), N least; y = L^T a, M = L L^T."""
    L = np.linalg.cholesky(M)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        W, y = np.linalg.solve(L, G.T).T, np.linalg.solve(L, force)
        back = pseudoinverse(W)
        share = -back @ (gamma + W @ y)
        return require_finite(np.linalg.solve(L.T, y + share), back.T @ share)


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
    f = memoised(robot, (quantity,), lambda: compile_quantity(robot.model, quantity))
    *responses, inverse = f(*state)
    responses = [x + inverse @ p if p.any() else x for x, p in zip(responses, forces)]
    return np.hstack([*responses, inverse[:, driven]])


def _basis(Z: Array, G: Array, rate_q: Array) -> Array:
    """A basis of the motions left: dq = Z x, dv = Z y + W x with Gamma W + (df'/dq) Z = 0."""
    if not len(G):
        return np.eye(2 * len(Z))
    W = -pseudoinverse(G) @ rate_q @ Z
    return np.block([[Z, np.zeros_like(Z)], [W, Z]])
