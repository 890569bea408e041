"""Motions of least cost: multiple-shooting differential dynamic programming with limits and contacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.store.build import Spec, target_of
from ..compiler.compile_cost import require_regular
from ..constraint.checks import driven_rates
from ..constraint.kinds import Constraint
from ..constraint.values import list_given
from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, NumericsError, one_of
from ..io.given import Array, callable_given, flag, number, positive, seconds, whole
from ..io.reprs import result
from ..mechanics.configuration import state
from ..mechanics.scalar import Scalar
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from .shooting.cost import Cost, CostShape
from .shooting.given import (
    MAX_SHOOTING_KNOTS,
    WHO,
    Guess,
    MotionLimits,
    StateLimits,
    guess_given,
    limits_given,
    phases_given,
    refuse_redundant,
)
from .shooting.problem import Shooting, ShootingTask
from .shooting.solver import Progress, Solver
from .tracking import Tracker

HESSIANS = ("gauss-newton", "exact")
UNSAID_EXCESS = 1e-6  # rad, m and their rates: what limits of q and v may be passed by unsaid


class Planner:
    """A problem made ready: from any state, again and again."""

    def __init__(self, task: ShootingTask, dt: float, q0: Array, limits: MotionLimits, tolerance: float) -> None:
        self.task, self.dt, self.given, self.tolerance = task, dt, limits, tolerance
        self.shooting, self.lock = Shooting(task, dt, q0), Lock()  # which whoever solves in its memory holds
        x, driven = self.shooting.x, list(task.shape.driven)
        self.limits = StateLimits(x, limits) if limits.of_states else None
        self.solver = Solver(self.shooting, tolerance, self.limits)
        for name, side in zip(("low", "high"), limits.tau):
            x.part(name)[...] = np.clip(side[driven], -1e100, 1e100)

    def begin(self, q0: Array, v0: Array, guess: Guess) -> None:
        """A first guess: what is not given stays where it begins, held as far as the drives can."""
        x = self.shooting.x
        x.q[...] = q0 if guess.q is None else guess.q
        x.v[...] = (np.zeros_like(v0) if guess.q is None else 0.0) if guess.v is None else guess.v
        x.q[0], x.v[0] = q0, v0
        tau = self.held(q0) if guess.tau is None else guess.tau
        low, high = x.part("low"), x.part("high")
        x.u[...] = np.clip(np.broadcast_to(tau, x.tau.shape)[:, x.driven], low, high)
        for name in ("K", "k"):
            x.part(name)[...] = 0.0

    def held(self, q0: Array) -> Array:
        """Efforts (N, nv) that hold the robot still, by least squares where drives are missing."""
        robot, rest = self.task.robot, np.zeros(self.task.robot.nv)
        out, driven = np.zeros((self.task.knots, robot.nv)), list(self.task.shape.driven)
        at = 0
        for count, given in self.task.phases:
            load = np.asarray(robot.inverse_dynamics(q0, rest, rest))
            acts = np.eye(robot.nv)[:, driven]
            if given.found:
                acts = np.hstack([acts, given.terms(q0, rest, np.zeros(1)).jacobian.T])
            out[at : at + count, driven] = np.linalg.lstsq(acts, load, rcond=None)[0][: len(driven)]
            at += count
        return out

    def tried(
        self, q0: Array, v0: Array, guesses: Sequence[Guess], iterations: int, t0: float
    ) -> list[StartOutcome]:
        """The outcomes of the guesses, one after the other: a solution or an error each."""
        out = list[StartOutcome]()
        self.shooting.x.set_time(t0)
        for guess in guesses:
            self.begin(q0, v0, guess)
            try:
                out.append(_solution(self, self.solve(iterations), t0))
            except NumericsError as error:
                out.append(error)
        return out

    def solve(self, iterations: int, kept: Array | None = None) -> Progress:
        """At most so many steps from the trajectory as it stands."""
        self.solver.start(kept)
        p = self.solver.run(iterations)
        if self.limits and not p.converged:
            over, gaps = max(0.0, float(-self.limits.d.min())), self.solver.open
            if max(over, gaps) > UNSAID_EXCESS:
                p.reason += (
                    f"; limits of the state are passed by {over:.3g}, the gaps between knots are {gaps:.3g}"
                )
        return p


@result
class OptimalMotion(Pictured):
    """A motion of least cost, a local one: states at the knots, efforts between them.

    q (N + 1, nq), v (N + 1, nv), tau (N, nv), dt in seconds, t0 the time of the first knot. cost: the sum of
    dt cost + terminal. gains (N, inputs, 2 nv): of the regulator along it, tau = tau_k - K (dq, dv), from the last
    sweep. history, gaps: the cost and the sum of the gaps between the knots after every iteration. reason: why it
    ended; converged: whether because nothing was left to gain.
    """

    q: Array
    v: Array
    tau: Array
    cost: float
    iterations: int
    gains: Array
    history: Array
    gaps: Array
    lengths: Array
    converged: bool
    reason: str
    dt: float
    t0: float
    driven: Array
    planner: Planner = field(repr=False)
    multipliers: Array | None = field(default=None, repr=False)
    others: tuple[OptimalMotion, ...] = field(default=(), repr=False)

    def again(self, q0: ArrayLike, v0: ArrayLike, iterations: int = 1) -> OptimalMotion:
        """The problem from another state, begun with this solution: q0 (nq,), v0 (nv,); few iterations serve
        model-predictive control. Raises InputError, NumericsError."""
        x, u = _start(self.planner.task.robot, q0, v0)
        most = whole(f"{WHO}: iterations", iterations)
        with self.planner.lock:
            self.resume(x, u)
            return _solution(self.planner, self.planner.solve(most, self.multipliers), self.t0)

    def resume(self, q0: Array, v0: Array) -> None:
        """The planner stands where this solution does, at another first state."""
        p = self.planner
        x = p.shooting.x
        x.q[...], x.v[...] = self.q, self.v
        x.q[0], x.v[0] = q0, v0
        x.u[...] = self.tau[:, x.driven]
        x.set_time(self.t0)

    def shifted(self, knots: int = 1) -> OptimalMotion:
        """This motion some knots later, its last knot repeated: what `again` begins with at a next sample."""
        k = whole(f"{WHO}: shifted: knots", knots, 0, len(self.tau))
        late, held = np.arange(len(self.q)) + k, np.arange(len(self.tau)) + k
        late, held = np.minimum(late, len(self.q) - 1), np.minimum(held, len(self.tau) - 1)
        kept = None if self.multipliers is None else self.multipliers[late]
        return replace(
            self, q=self.q[late], v=self.v[late], tau=self.tau[held], gains=self.gains[held], multipliers=kept,
            t0=self.t0 + k * self.dt, others=(),
        )  # fmt: skip

    def law(self) -> Tracker:
        """The time-varying regulator along the motion as a law tau(t, q, v), t from t0 = 0 on, for `simulate`."""
        last = self.tau[-1:]
        robot = self.planner.task.robot
        return Tracker(robot, self.dt, self.q, self.v, np.concatenate([self.tau, last]), self.gains, self.driven)

    @property
    def t(self) -> Array:
        """Times of the knots, (N + 1,) s."""
        return self.t0 + self.dt * np.arange(len(self.q))

    def figure(self) -> Figure:
        """Coordinates, rates, efforts over time, and the cost by iteration."""
        model = self.planner.task.robot.model
        q = [Curve(f"{x}{more}", self.t, y) for (x, more), y in zip(model.freedoms("q"), self.q.T)]
        names = [f"{x}{more}" for x, more in model.freedoms()]
        v = [Curve(x, self.t, y) for x, y in zip(names, self.v.T)]
        tau = [Curve(names[i], self.t[:-1], self.tau[:, i]) for i in np.flatnonzero(self.driven)]
        steps = np.arange(len(self.history))
        panels = [Panel("q", q), Panel("v", v), Panel("tau", tau), Panel("cost", [Curve("", steps, self.history)])]
        return Figure(f"least cost: {self.cost:.6g}, {self.reason}", panels, 2, "t, s; iterations")


StartOutcome = OptimalMotion | NumericsError


def _best(outcomes: Sequence[StartOutcome]) -> OptimalMotion:
    """The best with the others; what converged comes before what did not."""
    motions = [x for x in outcomes if isinstance(x, OptimalMotion)]
    if not motions:
        raise next(x for x in outcomes if isinstance(x, NumericsError))
    first, *others = sorted(motions, key=lambda s: (not s.converged, s.cost))
    return replace(first, others=tuple(others)) if others else first


def _start(robot: Dynamics, q0: ArrayLike, v0: ArrayLike) -> tuple[Array, Array]:
    x, u = state(robot.model, WHO, q0=q0, v0=v0)
    for name, y, n in (("q0", x, robot.nq), ("v0", u, robot.nv)):
        if y.shape != (n,):
            raise InputError(f"{WHO}: {name} has shape {y.shape}; it must be ({n},), one state")
    return x, u


def _solution(planner: Planner, p: Progress, t0: float) -> OptimalMotion:
    x = planner.shooting.x
    if not np.isfinite(p.cost[-1]):
        raise NumericsError(f"{WHO}: {p.reason}; give a guess nearer to a motion, or a shorter dt")
    n, m = planner.task.robot.nv, len(x.driven)
    gains = x.part("K").reshape(-1, m, 2 * n).copy()
    tau = np.zeros_like(x.tau)
    tau[:, x.driven] = x.u
    driven = np.isin(np.arange(n), x.driven)
    return OptimalMotion(
        x.q.copy(), x.v.copy(), tau, p.cost[-1], len(p.cost) - 1, gains, np.array(p.cost), np.array(p.gaps),
        np.array(p.lengths), p.converged, p.reason, planner.dt, t0, driven, planner,
        planner.limits.multipliers if planner.limits else None,
    )  # fmt: skip


def _require_costs(cost: object, terminal: object) -> None:
    callable_given(f"{WHO}: cost", cost, "as cost(pose, q, v, tau, t)")
    if terminal is not None:
        callable_given(f"{WHO}: terminal", terminal, "as terminal(pose, q, v)")


def optimise(
    robot: Dynamics,
    cost: Callable[..., Scalar],
    q0: ArrayLike,
    v0: ArrayLike,
    horizon: int,
    dt: float,
    limits: Mapping[str, Any] | None = None,
    terminal: Callable[..., Scalar] | None = None,
    *,
    contacts: Any = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    guess: ArrayLike | Mapping[str, ArrayLike] | None = None,
    starts: Sequence[Any] | None = None,
    threads: int = 1,
    hessian: str = "gauss-newton",
    iterations: int = 300,
    tolerance: float = 1e-10,
    t: float = 0.0,
    passive: bool = True,
) -> OptimalMotion:
    """A motion from (q0, v0) over `horizon` knots of dt seconds that makes the sum of dt cost + terminal least.

    cost(pose, q, v, tau, t) and terminal(pose, q, v) are one scalar, of + - * / and drevo.sin, cos, sqrt, where;
    pose(link) is a link's 4x4 pose. They are traced and differentiated: of a sum of squares Gauss and Newton's
    Hessian is taken, of the rest the exact one; hessian="exact" takes it of all. v1 = v + dt a, q1 = q (+) dt v1.
    limits: {"tau": .., "q": .., "v": ..}, each a number or (n,) for -x to x, or a tuple (lower, upper) of such: of
    two joints too (-3.0, 6.0) is a pair, and [3.0, 6.0] is -3 to 3 of the first, -6 to 6 of the second. Those of
    tau hold exactly, those of q and v, from the second knot on, to 1e-9. contacts: one list as in
    constrained_dynamics, or phases [(knots, list), ..]; constraints hold throughout. actuated: joints with a
    drive, all but a floating base's by default. guess: efforts (N, nv), or a mapping of "q", "v", "tau"; states
    may have gaps, which are closed. starts: several guesses, on so many threads: the motion of least cost is
    given, the rest is in its `others`. tolerance: of the cost, relative, below which nothing is left to gain.
    passive: with the damping, dry friction and springs of the joints.
    Raises InputError, NumericsError.
    """
    expect_robot(robot, WHO)
    robot = robot if flag(f"{WHO}: passive", passive) else robot.without_passive()
    _require_costs(cost, terminal)
    N, step = whole(f"{WHO}: horizon", horizon, 1, MAX_SHOOTING_KNOTS, " of knots"), seconds(f"{WHO}: dt", dt)
    (x, u), time = _start(robot, q0, v0), number(f"{WHO}: t", t)
    exact = one_of(f"{WHO}: hessian", hessian, HESSIANS, InputError) == "exact"
    most, small = whole(f"{WHO}: iterations", iterations), positive(f"{WHO}: tolerance", tolerance)
    guesses = [guess_given(robot, N, y) for y in list_given(f"{WHO}: starts", starts, "guess") or [guess]]
    driven = tuple(np.flatnonzero(driven_rates(robot.model, actuated)).tolist())
    if not driven:
        raise InputError(f"{WHO}: no joint has a drive; name at least one in actuated")
    bounds, phases = limits_given(robot, limits, driven), phases_given(robot, N, contacts, constraints)
    require_regular(robot.model)
    boxed = bool(np.isfinite(np.concatenate([side[list(driven)] for side in bounds.tau])).any())
    shape = CostShape(driven, target_of(Spec()).lanes)
    refuse_redundant(phases, x, u)
    task = ShootingTask(robot, phases, Cost(cost, False, exact), Cost(terminal, True, exact), shape, boxed)
    count = min(len(guesses), whole(f"{WHO}: threads", threads, 1, MAX_SHOOTING_KNOTS))
    planners = [Planner(task, step, x, bounds, small) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:  # compiled code runs without the lock of the interpreter
        runs = [pool.submit(p.tried, x, u, guesses[k::count], most, time) for k, p in enumerate(planners)]
        return _best([outcome for run in runs for outcome in run.result()])
