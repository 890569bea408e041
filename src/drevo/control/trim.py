"""Equilibria under constraints, contacts and drives: where g(q) = S tau + Gamma^T N + passive, and f(q) = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.checks import driven_rates
from ..constraint.closing import assemble, project_state
from ..constraint.collection import collect, labels
from ..constraint.dynamics import ConstrainedMotion, Contacts, constrained_dynamics
from ..constraint.kinds import Constraint
from ..constraint.terms import held_at, terms_at
from ..errors import InputError, NumericsError
from ..io.given import Array, flag, positive, whole
from ..io.reprs import result
from ..mechanics.configuration import state
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from ..model.regularity import require_masses
from .linearise import linearise
from .outputs import external_wrenches, rate_units

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
    *,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
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
    the weight alone gives or 1. Where the drives hold q0 already, it may be a dead point of the constraints.
    Raises InputError; NumericsError with the reason where there is none.
    """
    expect_robot(robot, "trim")
    (q,) = state(robot.model, "trim", q0=q0)
    if q.ndim != 1:
        raise InputError(f"trim: q0 has shape {q.shape}; it must be ({robot.nq},), one configuration")
    least, most = positive("trim: tolerance", tolerance), whole("trim: steps", steps)
    collected, free = collect(robot.model, contacts, constraints), ~driven_rates(robot.model, keep, "keep")
    require_masses(robot.model, "trim")
    pushed = external_wrenches(robot.model, "trim", f_ext)[1] or None
    under = {"contacts": contacts, "constraints": constraints, "f_ext": pushed,
             "passive": flag("trim: passive", passive)}  # fmt: skip
    search = _Search(
        robot, collected, held_at(robot, collected, q), free, driven_rates(robot.model, actuated), under
    )
    if collected:
        q = assemble(robot, q, contacts=contacts, constraints=constraints, keep=keep)
    done, count = search.run(q, least, most)
    if flag("trim: limits", limits):
        _refuse_limits(robot, done)
    return Trim(done.q, done.tau, done.reactions, labels(collected), float(np.abs(done.a).max(initial=0.0)), count)


@dataclass(frozen=True)
class _Held:
    """A configuration at rest under the efforts tau (nv,) that leave the least acceleration. carried (nv, k): what
    drives change of it, as an orthonormal basis of W a; left: W a without that. W^T W = M."""

    q: Array
    tau: Array
    a: Array
    reactions: Array
    W: Array
    carried: Array

    @property
    def left(self) -> Array:
        return self.beside(self.W @ self.a)

    def beside(self, x: Array) -> Array:
        """Without what drives carry."""
        return np.asarray(x - self.carried @ (self.carried.T @ x))

    @property
    def size(self) -> float:
        """The norm of the residual."""
        return float(np.linalg.norm(self.left))


@dataclass(frozen=True)
class _Search:
    """held: places and orientations that contacts and welds leave open, as q0 has them; free: what may move."""

    robot: Dynamics
    found: tuple[Constraint, ...]
    held: Array
    free: Array
    driven: Array
    under: dict[str, Any]

    def motion(self, q: Array, tau: Array) -> ConstrainedMotion:
        """From rest, also where the constraints lose rank."""
        return constrained_dynamics(self.robot, q, np.zeros(self.robot.nv), tau, **self.under)

    def at(self, q: Array) -> _Held:
        """The efforts in the measure of M."""
        n = self.robot.nv
        M = self.robot.mass_matrix(q)
        W, rest = np.linalg.cholesky(M).T, np.zeros(n)
        alone = self.motion(q, rest).a
        unit = float(np.abs(M @ alone).max(initial=0.0)) or 1.0  # so that differences keep their digits
        drives = self.motion(q, unit * np.eye(n)[self.driven]).a - alone if self.driven.any() else np.zeros((0, n))
        U, s, Vt = np.linalg.svd(W @ drives.T, full_matrices=False)
        some = s > WEAK * s.max(initial=0.0)
        tau = rest.copy()
        tau[self.driven] = -unit * (Vt[some].T @ ((U[:, some].T @ (W @ alone)) / s[some]))
        now = self.motion(q, tau)
        return _Held(q, tau, now.a, now.reactions, W, U[:, some])

    def run(self, q: Array, tolerance: float, steps: int) -> tuple[_Held, int]:
        """Gauss and Newton's steps, halved until they help."""
        alone = self.motion(q, np.zeros(self.robot.nv)).a
        close, now = tolerance * max(1.0, float(np.abs(alone).max(initial=0.0))), self.at(q)
        for count in range(steps):
            if np.abs(now.a).max(initial=0.0) <= close:
                return now, count
            dq, slope = self.step(now)
            if slope <= SLOPE:
                raise NumericsError(self.reason(now, "no motion nearby lessens that"))
            for part in 0.5 ** np.arange(20):
                then = self.at(self.moved(now.q, part * dq))
                if then.size < now.size:
                    break
            else:
                raise NumericsError(self.reason(now, "no motion nearby lessens that"))
            now = then
        raise NumericsError(self.reason(now, f"{steps} steps do not end it: begin elsewhere, or give steps="))

    def step(self, now: _Held) -> tuple[Array, float]:
        """The least step against the forces that no drive carries; how far they fall along it, of their size."""
        n = self.robot.nv
        L = linearise(self.robot, now.q, np.zeros(n), now.tau, **self.under)
        Z = L.basis[:n, : L.basis.shape[1] // 2]
        Z = Z @ _null(Z[~self.free])
        slopes = now.beside(now.W @ L.A[n:, :n] @ Z)
        x = -np.linalg.lstsq(slopes, now.left, rcond=WEAK)[0]
        fall = float(np.linalg.norm(slopes @ x)) / (now.size or 1.0)
        dq = Z @ x
        return dq * min(1.0, STRIDE / np.abs(dq).max(initial=STRIDE)), fall

    def moved(self, q: Array, dq: Array) -> Array:
        """Along dq, and back onto the constraints."""
        q = self.robot.integrate(q, dq)
        if not self.found:
            return q
        terms = terms_at(self.robot, self.found, held=self.held)
        return project_state(self.robot, q, np.zeros(self.robot.nv), terms, labels(self.found))[0]

    def reason(self, now: _Held, why: str) -> str:
        """The error message: the largest force left without balance, and its joint."""
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


def _refuse_limits(robot: Dynamics, at: _Held) -> None:
    """Efforts that the joints do not have. A limit of 0 is how files say that there is none."""
    for j, _, sv in robot.model.slices():
        most = None if j.limit is None else j.limit.effort
        needed = float(np.abs(at.tau[sv]).max(initial=0.0))
        if most and needed > most:
            raise NumericsError(
                f"trim: joint {j.name!r} would need {needed:.4g} to hold the equilibrium, and its effort is at "
                f"most {most:g} (N m or N); begin elsewhere, or give limits=False"
            )
