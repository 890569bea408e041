"""Motions under contacts and constraints: reactions at every stage, the state put back after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constrained import Contacts, constrained_dynamics, hold
from ..constraint import Constraint, Contact, collect, contact, labels
from ..errors import InputError, NumericsError
from ..robot import Robot

Array = np.ndarray[Any, Any]
CLOSED = 1e-6  # m or rad: how far from its constraints a motion may begin


@dataclass(frozen=True)
class Held:
    """Contacts and constraints of one simulation, the robot's own loops among them."""

    robot: Robot
    contacts: tuple[Contact, ...]
    constraints: tuple[Constraint, ...]

    @staticmethod
    def of(robot: Robot, contacts: Contacts, constraints: Sequence[Constraint] | None, q: Array) -> Held | None:
        """None if nothing is held. Contacts without an anchor get the place of their point at the start."""
        if not (contacts or constraints or robot.model.loops):
            return None
        found = collect(robot.model, contacts, constraints)  # checks every name
        given = [c for c in found[: len(contacts or ())] if isinstance(c, Contact)]
        if len(q) == 1:  # rows of a batch stand in different places
            given = [_anchored(robot, c, q[0]) for c in given]
        return Held(robot, tuple(given), tuple(constraints or ()))

    def accelerations(self, t: float, q: Array, v: Array, tau: Array) -> Array:
        """a of every row, the constraints' reactions in."""
        try:
            return constrained_dynamics(self.robot, q, v, tau, self.contacts, self.constraints, t=t).a
        except NumericsError as error:
            raise NumericsError(f"simulate: at t = {t:.6g} s: {error}") from None

    def project(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The nearest state that keeps the constraints."""
        try:
            return hold(self.robot, q, v, self.contacts, self.constraints, t)
        except NumericsError as error:
            raise NumericsError(f"simulate: at t = {t:.6g} s: {error}") from None

    def start(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state at t = 0, put right within CLOSED; refused beyond it."""
        value = self.gaps(0.0, q, v)
        if (value > CLOSED).any():
            *_, i = np.unravel_index(int(value.argmax()), value.shape)
            name = labels(collect(self.robot.model, self.contacts, self.constraints))[int(i)]
            raise InputError(
                f"q0 is {value.max():.3g} away from {name}; a motion begins on its constraints: "
                "drevo.constrained.hold finds the nearest state that does"
            )
        return self.project(0.0, q, v)

    def gaps(self, t: ArrayLike, q: Array, v: Array) -> Array:
        """|f(q, t)| of every row of the constraints."""
        tau = np.zeros(self.robot.nv)
        return np.abs(constrained_dynamics(self.robot, q, v, tau, self.contacts, self.constraints, t=t).value)


def _anchored(robot: Robot, c: Contact, q: Array) -> Contact:
    """The contact with the place, and of a foot the orientation, that it has at q."""
    pose = robot.pose(q, c.link)
    anchor = pose[:3, :3] @ np.array(c.point) + pose[:3, 3] if c.anchor is None else c.anchor
    turn = pose[:3, :3] if c.rotation is None and c.size == 6 else c.rotation
    return contact(c.link, c.point, c.size, anchor, turn)


__all__ = ["CLOSED", "Held"]
