"""Motions of a robot, and its dynamics under contacts and constraints: each method imports its room late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import unwrap
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from ..errors import InputError, warn_caller
from ..io.given import Array, asked, asked_methods
from ..model.description import Model
from ..model.draft import listed
from ..model.dynamics import START_TIME
from ..model.pairing import strangers

Found = TypeVar("Found")
# options of motions on a ground, and of others
ON_GROUND = {
    "friction", "restitution", "touching", "impacts", "threads", "parameters", "controls", "act", "sensors",
}  # fmt: skip
OFF_GROUND = {"rtol", "atol", "max_steps", "events", "contacts", "constraints", "stabilise", "progress"}

if TYPE_CHECKING:
    from ..constraint.kinds import Constraint
    from ..constraint.prepared import Contacts
    from ..constraint.results import ConstrainedEfforts, ConstrainedMotion, Impact
    from ..control.linear_kernels import Linearisation
    from ..simulate.integrators import Integrator
    from ..simulate.run import Event
    from ..simulate.table import Table


@asked_methods
class MotionMethods:
    """Methods of a Robot for motions, linear models and dynamics under contacts and constraints."""

    def _method(self, function: Callable[..., Found]) -> Callable[..., Found]:
        """A function of a robot as this robot's attribute, so that later calls go straight in.

        It is checked as it is called, without the robot.
        """
        entry: Callable[..., Found] = MethodType(asked(unwrap(function), unseen=("robot",)), self)
        self.__dict__[function.__name__] = entry
        return entry

    def constrained_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        f_ext: Mapping[str, ArrayLike] | None = None,
        t: ArrayLike = START_TIME,
        stabilise: tuple[ArrayLike, ArrayLike] | None = None,
        passive: bool = False,
    ) -> ConstrainedMotion:
        """Accelerations and reactions under contacts and constraints: `drevo.constraint.constrained_dynamics`."""
        from ..constraint.dynamics import constrained_dynamics

        return self._method(constrained_dynamics)(
            q, v, tau, contacts=contacts, constraints=constraints, f_ext=f_ext, t=t, stabilise=stabilise,
            passive=passive,
        )  # fmt: skip

    def constrained_inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        actuated: Sequence[str] | None = None,
        t: ArrayLike = START_TIME,
        f_ext: Mapping[str, ArrayLike] | None = None,
        passive: bool = False,
    ) -> ConstrainedEfforts:
        """Efforts and reactions of a motion: `drevo.constraint.constrained_inverse_dynamics`."""
        from ..constraint.inverse import constrained_inverse_dynamics

        return self._method(constrained_inverse_dynamics)(
            q, v, a, contacts=contacts, constraints=constraints, actuated=actuated, t=t, f_ext=f_ext,
            passive=passive,
        )  # fmt: skip

    def impact(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        restitution: float = 0.0,
        t: ArrayLike = START_TIME,
    ) -> Impact:
        """Velocities after contacts and constraints close suddenly: `drevo.constraint.impact`."""
        from ..constraint.dynamics import impact

        return self._method(impact)(
            q, v, contacts=contacts, constraints=constraints, restitution=restitution, t=t
        )  # fmt: skip

    def assemble(
        self,
        q: ArrayLike,
        *,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        keep: Sequence[str] = (),
        t: float = 0.0,
        tolerance: float = 1e-12,
        steps: int = 100,
    ) -> Array:
        """A configuration that closes the robot's loops (and constraints, contacts), found from q (..., nq).

        keep: names of joints that stay where they are: `drevo.constraint.assemble`.
        """
        from ..constraint.closing import assemble

        return self._method(assemble)(
            q, contacts=contacts, constraints=constraints, keep=keep, t=t, tolerance=tolerance, steps=steps
        )  # fmt: skip

    def linearise(
        self,
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
        outputs: Sequence[str] = ("q", "v"),
    ) -> Linearisation:
        """A and B about a state (dq, dv), with constraints and contacts: `drevo.control.linearise`."""
        from ..control.linearise import linearise

        return self._method(linearise)(
            q, v, tau, contacts=contacts, constraints=constraints, actuated=actuated, t=t, passive=passive,
            f_ext=f_ext, stabilise=stabilise, outputs=outputs,
        )  # fmt: skip

    def simulate(
        self, q0: ArrayLike, v0: ArrayLike | None = None, tau: Any = None, *,
        duration: float, dt: float | None = None, method: str | Integrator | None = None, every: int = 1,
        passive: bool = True, ground: object = ..., law: str | None = None, friction: float | None = None,
        restitution: float | None = None, touching: Sequence[str] | None = None, impacts: int | None = None,
        threads: int | None = None, rtol: float | None = None, atol: float | None = None,
        max_steps: int | None = None, events: Sequence[Event] | None = None, contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None, stabilise: tuple[ArrayLike, ArrayLike] | None = None,
        progress: Callable[[float], None] | None = None, step: float | None = None,
        parameters: Mapping[str, Any] | None = None, controls: Any = None, act: ArrayLike | None = None,
        sensors: bool | str | Sequence[str] | None = None,
    ) -> Table:  # fmt: skip
        """The motion from a state, compiled with its integrator: `drevo.simulate.simulate`.

        With ground or law, of which the other then is "plane" or "soft": under one-sided contact, by steps that
        take friction, restitution, touching, threads, and impacts with method "dop853", and parameters, numbers
        of the model or poses of motion capture by name, each a value or a function of t; controls of the actuators
        in the place of tau, with activations act, and sensors, True for all. Such a motion takes no rtol, events,
        contacts and what follows them. None: the usual one. step is dt.
        """
        chosen = {
            "dt": step if dt is None else dt, "method": method, "friction": friction, "restitution": restitution,
            "touching": touching, "impacts": impacts, "threads": threads, "rtol": rtol, "atol": atol,
            "max_steps": max_steps, "events": events, "contacts": contacts, "constraints": constraints,
            "stabilise": stabilise, "progress": progress, "law": law, "parameters": parameters,
            "controls": controls, "act": act, "sensors": sensors,
        }  # fmt: skip
        given: dict[str, Any] = {name: x for name, x in chosen.items() if x is not None}
        given |= {"duration": duration, "every": every, "passive": passive}
        if ground is not ...:
            given["ground"] = ground  # None: the planes of the model itself
        robot: Any = self
        if tau is None and controls is None:
            _warn_of_no_drive(robot.model)
        if given.keys() & {"ground", "law"}:
            by_events = isinstance(method, str) and method == "dop853"
            refused = OFF_GROUND - ({"rtol", "atol", "max_steps", "progress"} if by_events else set())
            if of_none := given.keys() & refused:
                raise InputError(
                    f"simulate: {min(of_none)} is of a motion without contact; under law= or ground= leave it out"
                )
            from ..simulate.bouncing import simulate_touching

            return simulate_touching(robot, q0, v0, tau, **given)
        if of_ground := given.keys() & ON_GROUND:
            raise InputError(f"simulate: {min(of_ground)} is of a motion on a ground: give ground='plane' too")
        if not given.keys() & {"contacts", "constraints"}:
            _warn_of_no_law(robot.model)
        from ..simulate.run import simulate

        return simulate(robot, q0, v0, tau, **given)


def _warn_of_no_drive(model: Model) -> None:
    """A DrevoWarning where nothing is given to actuators that exert forces at control 0 too."""
    alone = [x.name for x in model.actuators if x.acts_alone and "actuation" not in model.stepping.disabled]
    if alone:
        warn_caller(
            f"simulate: the actuators {listed(alone)} of {model.name!r} exert nothing without controls, though "
            "they do at control 0; give controls=, with law='soft', ground=None, or tau="
        )


def _warn_of_no_law(model: Model) -> None:
    """A DrevoWarning where a motion without a law of contact lets things pass through each other."""
    if any(x.kind in ("plane", "hfield") for x in model.geoms):
        warn_caller(f"simulate: the floor of {model.name!r} holds nothing without a law of contact: law='soft'")
    elif pair := strangers(model):
        names = " and ".join(repr(x.link) for x in pair)
        warn_caller(
            f"simulate: {names} of {model.name!r} pass through each other without a law of contact: law='soft', "
            "ground=None"
        )
