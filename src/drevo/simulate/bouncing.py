"""Motions that bounce, by the moments of their impacts: free motion by dop853, impulses where a gap closes.

Steps under Coulomb's law are right to first order in the step; this is right to the tolerances of the integrator,
for few bodies that touch and leave. Contacts that stay closed are not for it.

Motions of robots that touch: one compiled call from record to record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from ..contact.laws.exact.problem import TouchingRobot, exact_robot
from ..contact.laws.exact.solve import impulses
from ..contact.pairs import warn_of_untouched
from ..contact.step import STEP_METHODS, compile_step
from ..errors import InputError, NumericsError, one_of, shown, warn_caller
from ..io.given import Array, asked, finite, flag, seconds, spelled_out, whole
from ..mechanics.algorithms.actuators import activated, actuation, control_ranges
from ..mechanics.algorithms.delassus import ContactSlot, impact_problem
from ..mechanics.algorithms.kinematics import placed_bodies
from ..mechanics.algorithms.passive import passive_tree
from ..mechanics.tree import Tree
from ..model.contact import Stepping
from ..model.description import Model
from ..model.dynamics import Dynamics
from .arguments import NumericLaw, by_step, checked_law, start
from .constraints import MAX_FIXED_STEPS, bounded
from .control import Control, law_function
from .run import Event, simulate
from .table import Occurrence, Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

USUAL_STEP = 1e-3  # s
TOUCH = "touch"
TOUCH_GAP = 1e-9  # m: gaps below it at an impact close with the first one
DIVERGED = 1e6  # rad/s or m/s: steps that fail at such a speed fail by it
SLOW = 1e-7  # m/s: what parts more slowly does not part


def simulate_bouncing(
    robot: Dynamics,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    duration: float,
    dt: float | None = None,
    ground: object = "plane",
    friction: float | None = None,
    restitution: float = 1.0,
    impacts: int = 1000,
    rtol: float = 1e-9,
    atol: float | None = None,
) -> Table:
    """The motion from (q0, v0), whose impacts follow Newton's restitution and Coulomb's friction exactly.

    impacts: how many there may be. rtol, atol: as `simulate` takes them. The table's events are the
    impacts, with the state after each. NumericsError where a contact does not part again, and beyond `impacts`.
    """
    m = exact_robot(robot.model, 1.0, ground, friction, restitution)
    warn_of_untouched(robot.model, ground, searched=False)
    end, most = seconds("duration", duration), whole("impacts", impacts)
    tree = passive_tree(robot.model)
    gaps = [partial(_gap, tree, x) for x in m.slots]
    events = [Event(gap, terminal=True, direction=-1, name=f"{TOUCH} {k}") for k, gap in enumerate(gaps)]
    now, q, v = 0.0, q0, v0
    pieces: list[Table] = []
    starts, occurrences = [0.0], list[Occurrence]()
    while True:
        piece = simulate(
            robot, q, v, tau, duration=end - now, dt=dt, method="dop853", events=events, rtol=rtol, atol=atol
        )
        if piece.q.ndim > 2:
            raise InputError("impacts are found for one motion; of a batch simulate each row by itself")
        pieces.append(piece)
        if not piece.events or now + piece.t[-1] >= end:
            return _joined(robot, pieces, starts, occurrences)
        now, last = now + piece.events[-1].t, piece.events[-1]
        q, v = last.q, _after(m, tree, last, now)
        occurrences.append(Occurrence(last.name, now, np.array(q), v))
        starts.append(now)
        if len(occurrences) > most:
            raise NumericsError(f"simulate: {most} impacts until t = {now:.6g} s; law='coulomb' in steps goes on")


def _gap(tree: Tree, slot: ContactSlot, t: float, q: Array, v: Array) -> float:
    return float(slot.touch(placed_bodies(tree, q.tolist())).dist)


def _after(m: TouchingRobot, tree: Tree, at: Occurrence, now: float) -> Array:
    """The velocities after the impact."""
    closed = [
        x for k, x in enumerate(m.slots) if at.name == f"{TOUCH} {k}" or _gap(tree, x, now, at.q, at.v) < TOUCH_GAP
    ]
    given = [list(x[:, None]) for x in (at.q, at.v)]
    free = impact_problem(tree, given[0], given[1], closed, m.stepping.restitution)
    lam = impulses(free.problem, 1e-13).lam
    v = np.array([float(np.asarray(x).reshape(())) for x in _numbers(free.pushed(list(lam)))])
    parting = impact_problem(tree, given[0], list(v[:, None]), closed, 0.0).problem.b[::3]
    if min(float(np.asarray(x).reshape(-1)[0]) for x in parting) < SLOW:
        raise NumericsError(
            f"simulate: at t = {now:.6g} s a contact does not part again; dop853 finds impacts alone, steps with "
            "method='moreau' go on"
        )
    return v


def _numbers(values: list[Any]) -> list[Any]:
    return [np.asarray(x).reshape(-1)[0] for x in values]


def _joined(robot: Dynamics, pieces: list[Table], starts: list[float], occurrences: list[Occurrence]) -> Table:
    """One table; where two pieces meet, the state after the impact follows that before it."""
    t = np.concatenate([start + piece.t for start, piece in zip(starts, pieces)])
    q, v = (np.concatenate([getattr(piece, x) for piece in pieces]) for x in "qv")
    steps, rejected = (sum(getattr(piece, x) for piece in pieces) for x in ("steps", "rejected"))
    return Table(robot, t, q, v, "dop853", steps, rejected, tuple(occurrences))


LARGE_RESIDUAL = 1e-6  # m/s, rad/s: a residual that is told


class GroundOptions(TypedDict, total=False):
    """Options that some laws of contact take, controls and sensors; the last three are of method "dop853"."""

    restitution: float
    touching: Sequence[str]
    parameters: Mapping[str, Any]
    controls: Any
    act: ArrayLike
    sensors: bool | str | Sequence[str]
    impacts: int
    rtol: float
    atol: float


@asked
@spelled_out(GroundOptions)
def simulate_touching(
    robot: Dynamics, q0: ArrayLike, v0: ArrayLike | None = None, tau: ArrayLike | None = None, *,
    duration: float, dt: float | None = None, ground: object = "plane", law: str = "soft",
    method: str | None = None, every: int = 1, friction: float | None = None, threads: int = 1,
    passive: bool = True, **more: Unpack[GroundOptions],
) -> Table:  # fmt: skip
    """The motion from (q0, v0) on a ground; leading dimensions are a batch.

    tau: nothing, constant efforts (..., nv), efforts held over each step (steps, ..., nv), or a law, a Control or
    any function (t, q, v): the efforts at the beginning of a step are held over it. ground, law, method, friction:
    see `contact.step.compile_step`; restitution, touching: of a law that takes them. parameters: by names or
    patterns of numbers of the model, values (n,), (count, n) or functions of t that give such. controls: of the
    actuators, (..., nu), (steps, ..., nu) or a function, in the place of tau, with activations act (..., na) at
    first, 0 unless given; sensors: their names, or True for all. With law "coulomb"
    and method "dop853" impacts are found by events, `bouncing.simulate_bouncing`. dt: s, by default the file's
    timestep where it says one, else 1 ms; a record every `every`.
    passive: with the damping, dry friction and springs of the joints. The table has `contact_forces`
    (n, ..., places, 3), N in world axes, and `residual` (n, ...): of the steps up to a record the worst; by name
    in `sensors` what these read at the records, and `act` (n, ..., na). Raises InputError, ModelError,
    NumericsError.
    """
    one_of("simulate: law", law, STEP_METHODS, InputError)
    if dt is None:
        dt = USUAL_STEP if robot.model.stepping.dt == Stepping().dt else robot.model.stepping.dt
    robot = robot if flag("simulate: passive", passive) else robot.without_passive()
    if law == "coulomb" and isinstance(method, str) and method == "dop853":
        given: dict[str, Any] = {"duration": duration, "dt": dt, "ground": ground, "friction": friction, **more}
        return simulate_bouncing(robot, q0, v0, tau, **given)
    dt, every = seconds("dt", dt), whole("every", every, use=": a record is kept every 1, 2, ... steps")
    bounded(end := seconds("duration", duration), dt, MAX_FIXED_STEPS, "steps")
    records = -(-max(1, math.ceil(end / dt - 1e-9)) // every)
    lead, q, v = start(robot, q0, v0, records + 1.0)
    by_name, controls = more.pop("parameters", {}), more.pop("controls", None)
    held, drives = _held_over(by_name, every), ("tau", robot.nv)
    act = _first_activations(robot.model, tau, controls, more.pop("act", None), lead)
    if controls is not None:
        tau, drives = controls, ("controls", len(control_ranges(robot.model)))
    signals = bool(more.get("sensors")) or act.size > 0
    drive, repeat = _drive(robot, tau, lead, dt, records * every, 1 if signals else held, *drives)
    given = {"friction": friction, "parameters": tuple(by_name), "controls": controls is not None, **more}
    given |= {} if method is None else {"method": method}
    f = compile_step(robot, dt=dt, ground=ground, law=law, repeat=repeat, **given)
    step = _SignalledStep(partial(_step_at, partial(f, threads=threads), by_name), act, every // repeat)
    out = _stepped(robot, step, q, v, drive, records, every // repeat, dt * repeat)
    _tell_unsettled(out[3], dt * every)
    out += step.signals(dt * every * records if signals else None, out[0], out[1], out[4])
    if controls is not None:
        out = (*out[:4], _efforts_of_controls(robot.model, dt, *out[:2], *out[4:6]), *out[5:])
    qs, vs, forces, residual, driven, acts, read = (x.reshape(records + 1, *lead, *x.shape[2:]) for x in out)
    times = dt * every * np.arange(records + 1)
    return Table(
        robot, times, qs, vs, f"{method or STEP_METHODS[law][0]} under the {law} law", records * every,
        passive=True, driven=driven, contact_forces=forces, residual=residual, act=acts,
        sensors={name: read[..., at] for name, at in f.sensors.items()},
    )  # fmt: skip


def _held_over(by_name: Any, every: int) -> int:
    """So many steps parameters are held over: one where some are functions of t."""
    if not isinstance(by_name, Mapping):
        raise InputError(f"simulate: parameters maps names to values or functions of t; not {shown(by_name)}")
    return 1 if any(map(callable, by_name.values())) else every


class _SignalledStep:
    """Calls of a step that go on with its activations; of every so many what these were and what sensors read."""

    def __init__(self, step: Any, act: Array, every: int) -> None:
        self.step, self.act, self.every, self.calls = step, act, every, 0
        self.acts, self.read = list[Array](), list[Array]()

    def __call__(self, t: float, q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
        after = self.step(t, q, v, tau, *([self.act] if self.act.size else []))
        if self.calls % self.every == 0:
            self.acts.append(self.act)
            self.read.append(getattr(after, "sensordata", self.act[:, :0]))
        self.calls += 1
        self.act = getattr(after, "act1", self.act)
        return after[:4]  # type: ignore[no-any-return]

    def signals(self, last: float | None, q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
        """Activations and readings at the records; last: the time of the last one, which one step more tells."""
        if last is None:
            return (np.zeros((*q.shape[:2], 0)),) * 2
        self(last, q[-1], v[-1], tau[-1])
        return np.array(self.acts), np.array(self.read)


def _efforts_of_controls(model: Model, dt: float, *given: Array) -> Array:
    """Efforts (..., nv) of actuators at states q, v, under controls and activations."""
    q, v, controls, act = ([*np.moveaxis(x, -1, 0)] for x in given)
    return np.stack(np.broadcast_arrays(*actuation(model, q, v, controls, act, dt).efforts), -1)


def _first_activations(model: Model, tau: Any, controls: Any, given: Any, lead: tuple[int, ...]) -> Array:
    """Activations (count, na), 0 unless given."""
    if controls is not None and tau is not None:
        raise InputError("simulate: tau and controls both drive the robot; give one of the two")
    n = 0 if controls is None else len(activated(model))
    if given is not None and not n:
        raise InputError("simulate: act is of actuators with dynamics under controls=; leave it out")
    x = finite("simulate: act", np.zeros(n) if given is None else given, (..., n), InputError)
    return np.ascontiguousarray(np.broadcast_to(x, (*lead, n)).reshape(math.prod(lead), n))


def _step_at(f: Any, by_name: Mapping[str, Any], t: float, q: Array, v: Array, *given: Array) -> Any:
    """A call of a step with its parameters at t."""
    count, parts = len(q), list[Array]()
    for name, x in by_name.items():
        y = np.atleast_1d(finite(f"simulate: parameters[{name!r}]", x(t) if callable(x) else x, error=InputError))
        if y.ndim > 2 or (len(y) not in (1, count) and y.ndim == 2):
            raise InputError(
                f"simulate: parameters[{name!r}] has the shape {y.shape}; (n,) or ({count}, n) is due"
            )
        parts.append(np.broadcast_to(y, (count, y.shape[-1])))
    return f(q, v, *given, *([np.concatenate(parts, 1)] if parts else []))


def _tell_unsettled(residual: Array, interval: float) -> None:
    """A warning where velocities do not fulfil the law."""
    worst = residual.max(initial=0.0)
    if worst > LARGE_RESIDUAL:
        when = interval * np.unravel_index(int(residual.argmax()), residual.shape)[0]
        sentence = f"simulate: until t = {when:g} s velocities of a step have a residual of {worst:.2g} m/s"
        warn_caller(f"{sentence}; the table's residual says where: take a shorter step")


def _efforts(robot: Dynamics, tau: Any, lead: tuple[int, ...], steps: int, name: str, size: int) -> Array:
    """(1 or steps, count, size)."""
    x, stepped = by_step(robot, np.zeros(size) if tau is None else tau, lead, name, size)
    if stepped and len(x) < steps:
        raise InputError(f"{name} has {len(x)} steps; the motion takes {steps}")
    return np.ascontiguousarray(x.reshape(len(x), math.prod(lead), size))


def _drive(
    robot: Dynamics, tau: Any, lead: tuple[int, ...], dt: float, steps: int, every: int, name: str, size: int
) -> tuple[NumericLaw, int]:
    """Efforts (count, nv) by time and state, or controls by their name and size, and over how many steps they are
    held."""
    if isinstance(tau, Control):
        f = law_function(robot, tau)
        return checked_law(robot, lambda t, q, v: f(np.array([t]), q, v), lead), 1
    if callable(tau):
        return checked_law(robot, tau, lead, name, size), 1
    held = _efforts(robot, tau, lead, steps, name, size)
    last = len(held) - 1
    return lambda t, *_: held[min(round(t / dt), last)], 1 if last else every


def _stepped(
    robot: Dynamics, f: Any, q: Array, v: Array, drive: NumericLaw, records: int, times: int, dt: float
) -> tuple[Array, ...]:
    """Records of q, v, forces, the residual and efforts, each (records + 1, count, ...); the first has no forces.

    f: of (t, q, v, tau). times: calls of f from record to record.
    """
    out: tuple[Array, ...] = ()
    for k in range(records):
        worst = np.zeros(len(q))
        for n in range(k * times, (k + 1) * times):
            try:
                tau = drive(n * dt, q, v)
                q1, v1, forces, residual = f(n * dt, q, v, tau)
            except NumericsError as error:
                fastest, start = float(np.abs(v).max()), f"simulate: in the call from {n * dt:g} s on"
                if fastest < DIVERGED:
                    raise NumericsError(f"{start} {error}") from error
                k = int(np.abs(v).max(0).argmax())
                name = next(j.name for j, _, sv in robot.model.slices() if sv.start <= k < sv.stop)
                raise NumericsError(
                    f"{start} the motion overflows: joint {name!r} moves at {fastest:.3g}; a smaller dt or a "
                    "softer controller may help"
                ) from error
            shapes = q1.shape, v1.shape, forces.shape, residual.shape, tau.shape
            out = out or tuple(np.zeros((records + 1, *x)) for x in shapes)
            if n == k * times:
                out[0][k], out[1][k], out[4][k] = q, v, tau
            q, v, worst = q1, v1, np.maximum(worst, residual)
        for x, y in zip(out, (q, v, forces, worst)):
            x[k + 1] = y
    out[4][-1] = drive(records * times * dt, q, v)
    return out
