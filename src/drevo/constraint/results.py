"""Results of constrained dynamics, inverse dynamics and impacts: parts of an array, and what is asked later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..io.given import Array
from ..io.reprs import brief, brief_fields
from .terms import ConstraintTerms

AnyOnRows = TypeVar("AnyOnRows", bound="OnRows")


class RowSizes(NamedTuple):
    """The rows of a constraint set: their names and their number."""

    names: tuple[str, ...]
    size: int


class OnRows:
    """rows: the names of contacts, constraints, then the robot's own loops; jacobian: their Gamma (..., m, nv).

    Everything is read out of the arrays of a kernel, x and [N, rank, q, v], or computed from them when it is asked
    for.
    """

    __slots__ = ("_found", "_held", "_set", "_time", "_x")
    shown: ClassVar[tuple[str, ...]] = ("rows", "jacobian")
    _set: Any  # a PreparedSet, or RowSizes
    _x: Array
    _found: ConstraintTerms
    _held: Array
    _time: Array

    @classmethod
    def found(cls: type[AnyOnRows], prepared: Any, motion: Sequence[Array], time: Array) -> AnyOnRows:
        """A result made of the arrays that a kernel of a PreparedSet gave."""
        result = cls.__new__(cls)
        result._set, (result._x, result._held), result._time = prepared, motion, time
        return result

    @classmethod
    def of(
        cls: type[AnyOnRows], sizes: RowSizes, x: Array, N: Array, rank: Any, terms: ConstraintTerms
    ) -> AnyOnRows:
        """From arrays."""
        ranks = np.broadcast_to(np.asarray(rank, float)[..., None], (*x.shape[:-1], 1))
        held = np.concatenate([np.broadcast_to(N, (*x.shape[:-1], sizes.size)), ranks], -1)
        return _rebuilt(cls, sizes, (x, held), terms)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {brief_fields((name, getattr(self, name)) for name in self.shown)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        sizes = RowSizes(self._set.names, self._set.size)
        return _rebuilt, (type(self), sizes, (self._x, self._held), ConstraintTerms(*self._terms))

    @property
    def rows(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self._set.names
        return names

    @property
    def rank(self) -> Any:
        ranks = self._held[..., self._set.size]
        return int(ranks) if ranks.ndim == 0 else ranks.astype(int)

    @property
    def _terms(self) -> ConstraintTerms:
        if not hasattr(self, "_found"):
            self._found = self._set.terms(*self._set.state_in(self._held), self._time)
        return self._found

    @property
    def _N(self) -> Array:
        return self._held[..., : self._set.size]

    @property
    def jacobian(self) -> Array:
        return self._terms.jacobian


def _rebuilt(cls: type[AnyOnRows], sizes: RowSizes, motion: Sequence[Array], terms: ConstraintTerms) -> AnyOnRows:
    result = cls.found(sizes, motion, np.zeros(1))
    result._found = terms
    return result


class ConstrainedMotion(OnRows):
    """a (..., nv), N (..., m) acting on the robot, rank of Gamma, gamma (..., m).

    M a + h = tau + Gamma^T N and Gamma a + gamma = 0; with stabilisation the second holds for gamma plus its
    feedback. value and rate are f and f' of the state.
    """

    __slots__ = ()
    shown = ("rows", "jacobian", "a", "reactions", "rank", "gamma", "value", "rate")
    a: Array = property(attrgetter("_x"))  # type: ignore[assignment]
    reactions: Array = property(attrgetter("_N"))  # type: ignore[assignment]

    @property
    def gamma(self) -> Array:
        return self._terms.gamma

    @property
    def value(self) -> Array:
        return self._terms.value

    @property
    def rate(self) -> Array:
        return self._terms.rate


class Impact(OnRows):
    """Velocity after an impact (..., nv), impulses (..., m), rank of Gamma; M (v+ - v) = Gamma^T impulses."""

    __slots__ = ()
    shown = ("rows", "jacobian", "v", "impulses", "rank")
    v: Array = property(attrgetter("_x"))  # type: ignore[assignment]
    impulses: Array = property(attrgetter("_N"))  # type: ignore[assignment]


@brief
@dataclass(frozen=True, eq=False, slots=True)
class ConstrainedEfforts:
    """tau (..., nv), zero where nothing drives, and N (..., m): M a + h = tau + Gamma^T N; rows: their names."""

    rows: tuple[str, ...]
    tau: Array
    reactions: Array
    jacobian: Array
    gamma: Array
