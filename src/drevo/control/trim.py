"""Equilibria under constraints, contacts and drives: where g(q) = S tau + Gamma^T N + passive, and f(q) = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constrained.checks import driven_rates
from ..constrained.collection import collect, labels
from ..constrained.constraint import Constraint
from ..constrained.dynamics import Contacts, assemble, project_state
from ..constrained.terms import constraint_terms, held_at
from ..errors import InputError, NumericsError
from ..io.given import Array, flag, positive, whole
from ..io.reprs import result
from ..mechanics.configuration import state
from ..model.dynamics import Dynamics
from ..model.messages import expect_robot
from .linearise import Linearisation, linearise
from .outputs import rate_units

STRIDE = 0.3  # rad or m: the longest step of the search
SLOPE = 1e-7  # of the force that is left: where no motion nearby lessens it by more, it cannot be lessened
WEAK = 1e-9  # of the largest: a direction in which forces change so little is none


@result
class Trim:
    """An equilibrium: q, tau (0 where nothing drives), reactions N of contacts and constraints, named by `rows`.

    residual: the largest acceleration that is left, rad/s^2 or m/s^2. steps: of the search.
    """

    q: Array
    tau: Array
    reactions: Array
    rows: tuple[str, ...]
    residual: float
    steps: int


def trim(
    robot: Dynamics,
    q0: ArrayLike,
    constraints: Sequence[Constraint] | None = None,
    contacts: Contacts = None,
    actuated: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    f_ext: Mapping[str, ArrayLike] | None = None,
    passive: bool = True,
    limits: bool = True,
    tolerance: float = 1e-9,
    steps: int = 100,
) -> Trim:
    """An equilibrium near q0 (nq,) that the drives can hold, by Gauss and Newton's steps along the constraints.

    actuated: names of the driven joints, by default all but a floating base or trunk; keep: of joints that stay
    where they are. Contacts keep their places at q0 and hold both ways: `reactions` says whether they would pull.
    Where efforts and reactions share the load in many ways, the efforts are the least. passive, f_ext: as in
    linearise. limits: efforts beyond those of the joints are refused. tolerance: of accelerations, of those that
    the weight alone gives or 1. Raises InputError; NumericsError with the reason where there is none.
    """
    expect_robot(robot, "trim")
    (q,) = state(robot.model, "trim", q0=q0)
    if q.ndim != 1:
        raise InputError(f"trim: q0 has shape {q.shape}; it must be ({robot.nq},), one configuration")
    least, most = positive("trim: tolerance", tolerance), whole("trim: steps", steps)
    found, free = collect(robot.model, contacts, constraints), ~driven_rates(robot.model, keep, "keep")
    given = {"contacts": contacts, "constraints": constraints, "actuated": actuated, "f_ext": f_ext,
             "passive": flag("trim: passive", passive)}  # fmt: skip
    search = _Search(robot, found, held_at(robot, found, q), free, given)
    if found:
        q = assemble(robot, q, contacts, constraints, keep)
    done, count = search.run(q, least, most)
    if flag("trim: limits", limits):
        _refuse_limits(robot, done)
    return Trim(done.q, done.tau, done.reactions, labels(found), float(np.abs(done.a).max(initial=0.0)), count)


@dataclass(frozen=True)
class _Search:
    """held: places and orientations that contacts and welds leave open, as q0 has them; free: what may move."""

    robot: Dynamics
    found: tuple[Constraint, ...]
    held: Array
    free: Array
    given: dict[str, Any]

    def at(self, q: Array) -> Linearisation:
        """The linear model at rest under the efforts that leave the least acceleration, in the measure of M."""
        rest = np.zeros(self.robot.nv)
        L = linearise(self.robot, q, rest, rest, **self.given)
        if not L.B.size:
            return L
        W = np.linalg.cholesky(self.robot.mass_matrix(q)).T
        tau = rest.copy()
        tau[L.driven] = -np.linalg.lstsq(W @ L.B[len(rest) :], W @ L.a, rcond=WEAK)[0]
        return linearise(self.robot, q, rest, tau, **self.given)

    def run(self, q: Array, tolerance: float, steps: int) -> tuple[Linearisation, int]:
        """Gauss and Newton's steps, halved until they help."""
        rest = np.zeros(self.robot.nv)
        alone = linearise(self.robot, q, rest, rest, **self.given).a
        close, now = tolerance * max(1.0, float(np.abs(alone).max(initial=0.0))), self.at(q)
        for count in range(steps):
            if np.abs(now.a).max(initial=0.0) <= close:
                return now, count
            dq, slope, size = self.step(now)
            if slope <= SLOPE:
                raise NumericsError(self.reason(now, "no motion nearby lessens that"))
            for part in 0.5 ** np.arange(20):
                then = self.at(self.moved(now.q, part * dq))
                if self.step(then)[2] < size:
                    break
            else:
                raise NumericsError(self.reason(now, "no motion nearby lessens that"))
            now = then
        raise NumericsError(self.reason(now, f"{steps} steps do not end it: begin elsewhere, or give steps="))

    def step(self, now: Linearisation) -> tuple[Array, float, float]:
        """The least step against the forces that no drive carries, how far they fall along it (of their size), and
        their size."""
        n = self.robot.nv
        W = np.linalg.cholesky(self.robot.mass_matrix(now.q)).T
        U, s, _ = np.linalg.svd(W @ now.B[n:], full_matrices=False)
        U = U[:, s > WEAK * s.max(initial=0.0)]
        Z = now.basis[:n, : now.basis.shape[1] // 2]
        Z = Z @ _null(Z[~self.free])
        left, slopes = W @ now.a, W @ now.A[n:, :n] @ Z
        left, slopes = left - U @ (U.T @ left), slopes - U @ (U.T @ slopes)
        size = float(np.linalg.norm(left))
        x = -np.linalg.lstsq(slopes, left, rcond=WEAK)[0]
        fall = float(np.linalg.norm(slopes @ x)) / (size or 1.0)
        dq = Z @ x
        return dq * min(1.0, STRIDE / np.abs(dq).max(initial=STRIDE)), fall, size

    def moved(self, q: Array, dq: Array) -> Array:
        """Along dq, and back onto the constraints."""
        q = self.robot.integrate(q, dq)
        if not self.found:
            return q
        terms = partial(constraint_terms, self.robot, self.found, t=np.zeros(()), held=self.held)
        return project_state(self.robot, q, np.zeros(self.robot.nv), terms, labels(self.found))[0]

    def reason(self, now: Linearisation, why: str) -> str:
        """What is left, where."""
        force = self.robot.mass_matrix(now.q) @ now.a
        k = int(np.abs(force).argmax())
        model = self.robot.model
        size = f"{abs(force[k]):.3g} {rate_units(model, ['tau'])[k]}"
        return (
            f"trim: no equilibrium of {self.robot.name!r} near q0: of weight, springs and f_ext {size} are left "
            f"at joint {model.freedoms()[k][0]!r}, which neither drives nor contacts nor constraints carry, and "
            f"{why}; drive it, hold it, or begin elsewhere"
        )


def _null(A: Array) -> Array:
    """An orthonormal basis of what A makes zero."""
    _, s, Vt = np.linalg.svd(A)
    rank = int(np.count_nonzero(s > WEAK * s.max(initial=0.0)))
    return np.asarray(Vt[rank:].T)


def _refuse_limits(robot: Dynamics, at: Linearisation) -> None:
    """Efforts that the joints do not have. A limit of 0 is how files say that there is none."""
    for j, _, sv in robot.model.slices():
        most = None if j.limit is None else j.limit.effort
        needed = float(np.abs(at.tau[sv]).max(initial=0.0))
        if most and needed > most:
            raise NumericsError(
                f"trim: joint {j.name!r} would need {needed:.4g} to hold the equilibrium, and its effort is at "
                f"most {most:g} (N m or N); begin elsewhere, or give limits=False"
            )
