"""Sets of constraints made ready for a robot: checked once, taken apart, with the functions of their form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..codegen.graph.program import Program
from ..codegen.runtime.function import Function
from ..codegen.runtime.memo import memoised
from ..codegen.runtime.recall import equal
from ..compiler.request import requested
from ..compiler.rolled import is_large
from ..mechanics.trunk import trunk_pitch
from ..model.dynamics import Array, Dynamics, of_model
from . import kernels
from .collection import collect, is_lasting, labels
from .constraint import Constraint, Contact
from .large import by_loops
from .numbers import Numbered, pattern_of, settled
from .recall import NOTHING, copy_of
from .terms import ConstraintTerms, constraint_function

SolvedMotion = tuple[Array, Array]
Contacts = Sequence[Contact | Mapping[str, Any]] | None
RECENT = 8  # sets of a robot that are known again
BROAD = 40_000  # products of rates and pairs of rows: beyond it the solve is not written out
NOW = np.zeros(1)  # the time, unless it is told
NOW.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Kernels:
    """The functions of all sets of a form, each made at its first use."""

    robot: Dynamics
    pattern: tuple[Constraint, ...]

    def _requested(self, name: str, program: Callable[..., Program], *how: str) -> Function:
        lasting = all(map(is_lasting, self.pattern))
        make = partial(program, self.robot.model, self.pattern, *how)
        return requested(self.robot, (name, *how, self.pattern), make, lasting=lasting)

    @cached_property
    def terms(self) -> Function:
        return constraint_function(self.robot, self.pattern)

    @cached_property
    def motion(self) -> Function:
        return self._requested("constrained_dynamics", kernels.accelerations_program)

    @cached_property
    def impact(self) -> Function:
        return self._requested("impact", kernels.impact_program)

    def fed(self, how: str) -> Function:
        """SolvedMotion with gains of a feedback, "rows" or "matrices", or with "passive" forces of the joints."""
        name = "constrained_dynamics"
        return memoised(self, (name, how), lambda: self._requested(name, kernels.accelerations_program, how))


class PreparedSet:
    """Constraints of a robot. numbers: what follows the time in calls of their kernels, if there are any.

    plain: its kernels take calls as they come. contacts, constraints: copies of what was given.
    """

    def __init__(self, robot: Dynamics, found: tuple[Constraint, ...]) -> None:
        self.robot, self.found = robot, found
        self.nq, self.nv, self.size = robot.nq, robot.nv, sum(c.size for c in found)
        apart = Numbered.of(settled(robot.model, found))
        self.numbers = [np.array(apart.numbers, float)] if apart.numbers else []
        self.kernels: Kernels | None = None
        small = not is_large(robot.model) and not by_loops(robot, found) and self.nv * self.size**2 <= BROAD
        if small and of_model(robot):
            self.kernels = memoised(robot, ("kernels", apart.signature), self._kernels)
        self.plain = self.kernels is not None and trunk_pitch(robot.model) is None
        self.contacts: Any = NOTHING
        self.constraints: Any = NOTHING

    def _kernels(self) -> Kernels:
        return Kernels(self.robot, pattern_of(settled(self.robot.model, self.found)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the rows."""
        return labels(self.found)

    @cached_property
    def motion(self) -> Callable[..., SolvedMotion]:
        """Accelerations of (q, v, tau, t, *numbers): a and [N, rank, q, v]."""
        assert self.kernels is not None
        return self.kernels.motion.fast or self.kernels.motion

    @cached_property
    def impact(self) -> Callable[..., SolvedMotion]:
        """Velocities of (q, v, t, *numbers, restitution): v and [impulses, rank, q, v]."""
        assert self.kernels is not None
        return self.kernels.impact.fast or self.kernels.impact

    def state_in(self, held: Array) -> tuple[Array, Array]:
        """q and v of what a kernel gave."""
        first = self.size + 1
        return held[..., first : first + self.nq], held[..., first + self.nq :]

    def terms(self, q: Array, v: Array, t: Array) -> ConstraintTerms:
        """f, f', Gamma and gamma; t (1,) or (..., 1)."""
        if not self.found or self.kernels is None:
            lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
            none = np.zeros((*lead, 0))
            return ConstraintTerms(none, none, np.zeros((*lead, 0, self.nv)), none)
        return ConstraintTerms(*self.kernels.terms(q, v, t, *(self.numbers or [np.zeros(0)])))


# -- what was asked before ----------------------------------------------------------------------------------


def prepared_set(robot: Dynamics, contacts: Any, constraints: Any) -> PreparedSet:
    """The set of a call, checked; the same one where equal arguments were given lately. Raises InputError."""
    recent = memoised(robot, ("recent sets",), list[PreparedSet])
    found = next((s for s in recent if equal(s.contacts, contacts) and equal(s.constraints, constraints)), None)
    if found is None:
        copies = copy_of(contacts), copy_of(constraints)  # before anything takes their members
        found = PreparedSet(robot, collect(robot.model, contacts, constraints))
        found.contacts, found.constraints = copies
        recent.insert(0, found)
        del recent[RECENT:]
    return found
