"""What constrained dynamics, inverse dynamics and impacts give: parts of an array, and what is asked for later."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..io.given import Array
from ..io.reprs import brief_fields, result
from .terms import ConstraintTerms

AnyOnRows = TypeVar("AnyOnRows", bound="OnRows")


AnswerIndex = tuple[Any, slice]


def answer_indices(nv: int, size: int) -> tuple[AnswerIndex, AnswerIndex]:
    """Where x and N stand in what kernels give."""
    return (..., slice(nv)), (..., slice(nv, nv + size))


class RowSizes(NamedTuple):
    """Of a set: names of its rows, rates of its robot, rows."""

    names: tuple[str, ...]
    nv: int
    size: int

    @property
    def of_x(self) -> AnswerIndex:
        return answer_indices(self.nv, self.size)[0]

    @property
    def of_N(self) -> AnswerIndex:
        return answer_indices(self.nv, self.size)[1]


class OnRows:
    """rows: the names of contacts, constraints, then the robot's own loops; jacobian: their Gamma (..., m, nv).

    Everything is read out of the array of a kernel, [x, N, rank, q, v], or computed from it when it is asked for.
    """

    __slots__ = ("__dict__", "_motion", "_set", "_time")
    shown: ClassVar[tuple[str, ...]] = ("rows", "jacobian")
    _set: Any  # a PreparedSet, or RowSizes
    _motion: Array
    _time: Array

    @classmethod
    def found(cls: type[AnyOnRows], prepared: Any, motion: Array, time: Array) -> AnyOnRows:
        """What a kernel of a PreparedSet gave."""
        made = cls.__new__(cls)
        made._set, made._motion, made._time = prepared, motion, time
        return made

    @classmethod
    def of(
        cls: type[AnyOnRows], sizes: RowSizes, x: Array, N: Array, rank: Any, terms: ConstraintTerms
    ) -> AnyOnRows:
        """From arrays."""
        ranks = np.broadcast_to(np.asarray(rank, float)[..., None], (*x.shape[:-1], 1))
        return _rebuilt(
            cls, sizes, np.concatenate([x, np.broadcast_to(N, (*x.shape[:-1], sizes.size)), ranks], -1), terms
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {brief_fields((name, getattr(self, name)) for name in self.shown)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        sizes = RowSizes(self._set.names, self._set.nv, self._set.size)
        return _rebuilt, (type(self), sizes, self._motion, ConstraintTerms(*self._terms))

    @property
    def rows(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self._set.names
        return names

    @property
    def rank(self) -> Any:
        found = self._motion[..., self._set.nv + self._set.size]
        return int(found) if found.ndim == 0 else found.astype(int)

    @cached_property
    def _terms(self) -> ConstraintTerms:
        found: ConstraintTerms = self._set.terms(*self._set.state_in(self._motion), self._time)
        return found

    @property
    def jacobian(self) -> Array:
        return self._terms.jacobian


def _rebuilt(cls: type[AnyOnRows], sizes: RowSizes, motion: Array, terms: ConstraintTerms) -> AnyOnRows:
    made = cls.found(sizes, motion, np.zeros(1))
    made.__dict__["_terms"] = terms
    return made


class ConstrainedMotion(OnRows):
    """a (..., nv), N (..., m) acting on the robot, rank of Gamma, gamma (..., m).

    M a + h = tau + Gamma^T N and Gamma a + gamma = 0; with stabilisation the second holds for gamma plus its
    feedback. value and rate are f and f' of the state.
    """

    __slots__ = ()
    shown = ("rows", "jacobian", "a", "reactions", "rank", "gamma", "value", "rate")

    @property
    def a(self) -> Array:
        found: Array = self._motion[self._set.of_x]
        return found

    @property
    def reactions(self) -> Array:
        found: Array = self._motion[self._set.of_N]
        return found

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

    @property
    def v(self) -> Array:
        found: Array = self._motion[self._set.of_x]
        return found

    @property
    def impulses(self) -> Array:
        found: Array = self._motion[self._set.of_N]
        return found


@result
class ConstrainedEfforts:
    """tau (..., nv), zero where nothing drives, and N (..., m): M a + h = tau + Gamma^T N; rows: their names."""

    rows: tuple[str, ...]
    jacobian: Array
    tau: Array
    reactions: Array
    gamma: Array
