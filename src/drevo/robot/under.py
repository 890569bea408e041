"""A robot under contacts and constraints, as a value whose calls need not say them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..constraint.checks import feedback
from ..constraint.closing import assembled_under, held_under
from ..constraint.dynamics import asked_set, impact_under, motion_under
from ..constraint.inverse import driven_of, efforts_under
from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..constraint.results import ConstrainedEfforts, ConstrainedMotion, Impact
from ..io.given import Array, asked_methods
from ..io.reprs import brief_fields
from ..model.dynamics import START_TIME, Dynamics, Forces

if TYPE_CHECKING:
    from ..control.linear_kernels import Linearisation
    from ..simulate.integrators import Integrator
    from ..simulate.run import Event
    from ..simulate.table import Table


@asked_methods
class Held:
    """A robot under constraints, made by `robot.under`: checked once, then its calls take states alone.

    rows: the names of the rows of contacts, constraints, then the robot's own loops. It does not change and may be
    used by many threads; `moved` gives another one with other numbers.
    """

    __slots__ = ("_driven", "_gains", "_given", "_set", "robot")

    def __init__(
        self,
        robot: Dynamics,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        actuated: Sequence[str] | None = None,
        stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        self.robot, self._set = robot, asked_set(robot, "under", contacts, constraints)
        self._gains = None if stabilise is None else feedback(stabilise, self._set.size)
        self._driven, self._given = driven_of(robot, actuated), (actuated, stabilise)

    def __repr__(self) -> str:
        return f"<Held {self.robot.name!r}: {brief_fields([('rows', self.rows)])}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Held, (self.robot, None, self.constraints, *self._given)

    @property
    def rows(self) -> tuple[str, ...]:
        return self._set.names

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The contacts and constraints, without the robot's own loops."""
        every = self._set.found
        return every[: len(every) - self.robot.model.closures]

    def moved(
        self, points: ArrayLike | None = None, normals: ArrayLike | None = None, offsets: ArrayLike | None = None
    ) -> Held:
        """The robot under constraints of the same form with other numbers; nothing is compiled.

        points (n, 3): those of contacts, then of constraints, in their order, both of what stands between two
        links; normals (n, 3): of planes; offsets (n,): of planes and gears. What is not given stays. Raises
        InputError.
        """
        other: Held = object.__new__(Held)
        other.robot, other._set = self.robot, self._set.moved(points, normals, offsets)
        other._gains, other._driven, other._given = self._gains, self._driven, self._given
        return other

    def dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: Forces | None = None,
        *,
        t: ArrayLike = START_TIME,
        passive: bool = False,
    ) -> ConstrainedMotion:
        """Accelerations and reactions: `drevo.constraint.constrained_dynamics`."""
        return motion_under(self._set, q, v, tau, f_ext, t, self._gains, passive)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        f_ext: Forces | None = None,
        *,
        t: ArrayLike = START_TIME,
        passive: bool = False,
    ) -> ConstrainedEfforts:
        """Efforts and reactions of a motion: `drevo.constraint.constrained_inverse_dynamics`."""
        return efforts_under(self._set, self._driven, q, v, a, f_ext, t, passive)

    def impact(self, q: ArrayLike, v: ArrayLike, restitution: float = 0.0, *, t: ArrayLike = START_TIME) -> Impact:
        """The velocity after the constraints strike: `drevo.constraint.impact`."""
        return impact_under(self._set, q, v, restitution, t)

    def assemble(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        keep: Sequence[str] = (),
        t: float = 0.0,
        tolerance: float = 1e-12,
        steps: int = 100,
    ) -> Any:
        """A configuration that keeps the constraints, found from q, which may be far off: `constraint.assemble`.

        With v a pair: this, and the rates nearest to v that keep the constraints there.
        """
        closed = assembled_under(self._set, q, keep, t, tolerance, steps)
        return closed if v is None else self.hold(closed, v, t=t, tolerance=tolerance)

    def hold(
        self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike = 0.0, tolerance: float = 1e-12, steps: int = 30
    ) -> tuple[Array, Array]:
        """The state nearest by M that keeps the constraints: `drevo.constraint.hold`."""
        return held_under(self._set, q, v, t, tolerance, steps)

    def linearise(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        t: ArrayLike = START_TIME,
        passive: bool = True,
        f_ext: Forces | None = None,
        outputs: Sequence[str] | None = None,
    ) -> Linearisation:
        """The linear model about a state: `drevo.control.linearise`."""
        from ..control.linearise import LINEAR_STATE, model_under

        wanted = LINEAR_STATE if outputs is None else outputs
        return model_under(self._set, self._driven, self._gains, q, v, tau, t, passive, f_ext, wanted)

    def simulate(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        tau: Any = None,
        *,
        duration: float,
        dt: float | None = None,
        method: str | Integrator = "rk4",
        every: int = 1,
        rtol: float = 1e-9,
        atol: float | None = None,
        max_steps: int | None = None,
        events: Sequence[Event] = (),
        passive: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> Table:
        """The motion from a state under the constraints: `drevo.simulate.simulate`."""
        from ..simulate.run import simulate

        return simulate(
            self.robot, q, v, tau, duration=duration, dt=dt, method=method, every=every, rtol=rtol, atol=atol,
            max_steps=max_steps, events=events, constraints=self.constraints, stabilise=self._given[1],
            passive=passive, progress=progress,
        )  # fmt: skip
