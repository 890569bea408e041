"""The arguments of `simulate`: states and efforts checked, and the right-hand side that they need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.store.memo import memoised
from ..compiler.ways.rolled import forces_by_joint, is_large
from ..constraint.collection import acting_in
from ..errors import InputError, NumericsError
from ..io.given import Array, leading, numbers
from ..mechanics.acting import without_passive
from ..mechanics.configuration import neutral, require_unit_quaternions
from ..model.dynamics import Dynamics
from .constraints import HeldConstraints, require_memory
from .control import Control, beyond_law, law_function, traced_law
from .motion import CompiledMotion, StateRates, numeric_rates, owners, quaternions

Efforts = Callable[[float, Array, Array], ArrayLike]
NumericLaw = Callable[[float, Array, Array], Array]


def start(
    robot: Dynamics, q0: ArrayLike, v0: ArrayLike | None, records: float
) -> tuple[tuple[int, ...], Array, Array]:
    """Leading dimensions, and states (count, n) that are finite and on the manifold; there is room for records."""
    q = numbers("q0", q0, (..., robot.nq))
    v = np.zeros((*q.shape[:-1], robot.nv)) if v0 is None else numbers("v0", v0, (..., robot.nv))
    lead = leading("simulate", q0=q, v0=v)
    require_memory(records, (*lead, robot.nq + robot.nv))
    q = np.broadcast_to(q, (*lead, robot.nq)).reshape(math.prod(lead), robot.nq).copy()
    v = np.broadcast_to(v, (*lead, robot.nv)).reshape(math.prod(lead), robot.nv).copy()
    _finite(robot, q, v, "at t = 0 s")
    require_unit_quaternions(robot.model, "simulate: q0", q)
    for k in quaternions(robot.model):
        q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=-1, keepdims=True)
    return lead, q, v


def _finite(robot: Dynamics, q: Array, v: Array, when: str) -> None:
    """NumericsError for the first joint whose state is not finite."""
    for name, sq, sv in owners(robot.model):
        bad = ~(np.isfinite(q[:, sq]).all(-1) & np.isfinite(v[:, sv]).all(-1))
        if bad.any():
            where = f" in row {int(bad.argmax())}" if len(q) > 1 else ""
            raise NumericsError(f"simulate: the state of joint {name!r}{where} is not finite {when}")


@dataclass(frozen=True)
class RightHandSide:
    """The right-hand side, efforts that are an input of it, (1 or steps, count, nv), or else the law of them."""

    rates: CompiledMotion | StateRates
    held: Array | None
    law: NumericLaw
    control: Control | None = None


def by_step(
    robot: Dynamics, tau: ArrayLike, lead: tuple[int, ...], name: str = "tau", size: int | None = None
) -> tuple[Array, bool]:
    """Constant efforts, or those of every step, (1 or steps, *lead, nv), and which of the two they are; controls
    have another name and size."""
    n, letters = (robot.nv, "nv") if size is None else (size, str(size))
    x = numbers(name, tau, (..., n))
    if not np.isfinite(x).all():
        raise NumericsError(f"simulate: {name} is not finite")
    stepped = x.ndim == len(lead) + 2
    try:
        return np.broadcast_to(x, (len(x) if stepped else 1, *lead, n)), stepped
    except ValueError:
        raise InputError(
            f"{name} has shape {np.shape(tau)}; it is (..., {letters}) or (steps, ..., {letters}) with leading "
            f"dimensions {lead}"
        ) from None


def right_hand_side(
    robot: Dynamics,
    tau: ArrayLike | Efforts | Control | None,
    lead: tuple[int, ...],
    under: HeldConstraints | None,
    passive: bool = False,
) -> RightHandSide:
    """passive: with the forces that act in the joints."""
    if tau is None or isinstance(tau, Control):
        law = checked_law(robot, _law(robot, tau), lead)
        return RightHandSide(
            machine_motion(robot, tau, False, under, passive) or _numeric(robot, law, under, passive),
            None,
            law,
            tau,
        )
    if callable(tau):
        law = checked_law(robot, tau, lead)
        return RightHandSide(_numeric(robot, law, under, passive), None, law)
    x, stepped = by_step(robot, tau, lead)
    machine = machine_motion(robot, None, True, under, passive)
    if machine is None and stepped:
        raise InputError("efforts by step need machine code: give tau as a function of time")
    held = np.ascontiguousarray(x.reshape(len(x), math.prod(lead), robot.nv))
    law = checked_law(robot, lambda t, q, v: x[0], lead)
    if machine is None:
        return RightHandSide(_numeric(robot, law, under, passive), None, law)
    return RightHandSide(machine, held, law)


def machine_motion(
    robot: Dynamics,
    control: Control | None,
    driven: bool,
    under: HeldConstraints | None = None,
    passive: bool = False,
) -> CompiledMotion | None:
    """Machine code, made once for a robot, a law and constraints; None where there is no one choice of independent
    rows."""
    rule = under.rule if under else None
    if under is not None and rule is None:
        return None
    model = robot.model if passive else without_passive(robot.model)
    if (control is not None or rule is not None or not forces_by_joint(model)) and is_large(model):
        return None  # a motion in one piece would take minutes to compile; its parts are compiled
    law = None if control is None else traced_law(model, control)
    key = ("motion", law, driven, rule, model is robot.model)
    return memoised(robot, key, lambda: CompiledMotion(model, law, driven, rule))


def _law(robot: Dynamics, control: Control | None) -> Efforts:
    """A law of control, or no efforts, as a function on arrays."""

    compiled = law_function(robot, control) if control is not None and is_large(robot.model) else None

    def efforts(t: float, q: Array, v: Array) -> Array:
        if control is None:
            return np.zeros(robot.nv)
        if compiled is not None:
            found: Array = compiled(np.array([t]), q, v)
            return found
        parts = control(t, list(np.moveaxis(q, -1, 0)), list(np.moveaxis(v, -1, 0)))
        return np.stack([np.broadcast_to(x, v.shape[:-1]) for x in parts], -1)

    return efforts


def checked_law(
    robot: Dynamics, efforts: Efforts, lead: tuple[int, ...], name: str = "tau", size: int | None = None
) -> NumericLaw:
    """Efforts (count, nv), or controls by their name and size, of a function that sees (..., nq) and (..., nv)."""
    n, letters = (robot.nv, "nv") if size is None else (size, str(size))

    def checked(t: float, q: Array, v: Array) -> Array:
        try:
            result = efforts(t, q.reshape(*lead, robot.nq), v.reshape(*lead, robot.nv))
        except TypeError as error:
            raise InputError(f"{name}(t, q, v) raised TypeError: {error}; correct it") from error
        except NumericsError as error:
            off = beyond_law(efforts, t, neutral(robot.model))
            raise NumericsError(f"simulate: at t = {t:.6g} s {off or error}") from None
        given = numbers(f"{name}(t, q, v)", result, (..., n))
        try:
            return np.broadcast_to(given, (*lead, n)).reshape(len(v), n)
        except ValueError:
            raise InputError(
                f"{name}(t, q, v) has shape {given.shape}; it is (..., {letters}) with leading dimensions {lead}"
            ) from None

    return checked


def _numeric(robot: Dynamics, law: NumericLaw, under: HeldConstraints | None, passive: bool) -> StateRates:
    """The right-hand side with a law of Python's."""

    def efforts(t: float, q: Array, v: Array) -> Array:
        return law(t, q, v) + acting_in(robot, q, v, passive)

    if under is not None:
        return numeric_rates(robot.model, efforts, under.accelerations)
    forward = robot.forward_dynamics

    def accelerations(t: float, q: Array, v: Array, tau: Array) -> Array:
        try:
            return np.asarray(forward(q, v, tau))
        except NumericsError:  # the motion says when and where
            if len(v) == 1:
                return np.full(v.shape, np.nan)
            rows = [slice(k, k + 1) for k in range(len(v))]
            return np.concatenate([accelerations(t, q[r], v[r], tau[r]) for r in rows])

    return numeric_rates(robot.model, efforts, accelerations)
