"""Linear models as values: matrices, the step of a discrete one, and the names of what they act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError
from ..io.given import Array, finite, seconds
from ..io.packages import package
from ..io.reprs import result

AnyLinearModel = TypeVar("AnyLinearModel", bound="LinearModel")


@result
class Modes:
    """Natural frequencies rad/s (rising), damping ratios, and shapes (states, modes) of a linear model."""

    frequencies: Array
    damping: Array
    shapes: Array


@result
class LinearModel:
    """x' = A x + B u, y = C x + D u; with a step dt: x(k + 1) = A x(k) + B u(k).

    A (n, n), B (n, m); C (p, n), by default the state itself, D (p, m), by default zero. dt: None, or the step of
    a discrete model in seconds. states, inputs, outputs: their names. The arrays are copies that cannot be
    written to. Raises InputError, NumericsError.
    """

    A: Array
    B: Array
    C: Array = None  # type: ignore[assignment]
    D: Array = None  # type: ignore[assignment]
    dt: float | None = None
    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = _rows("A", self.A)
        m = (*finite("linear model: B", self.B).shape, 1, 1)[1]
        p = n if self.C is None else _rows("C", self.C)
        given = {
            "A": real_matrix("linear model: A", self.A, (n, n)),
            "B": real_matrix("linear model: B", self.B, (n, m)),
            "C": real_matrix("linear model: C", np.eye(n) if self.C is None else self.C, (p, n)),
            "D": real_matrix("linear model: D", np.zeros((p, m)) if self.D is None else self.D, (p, m)),
            "dt": None if self.dt is None else seconds("linear model: dt", self.dt),
            "states": _names("states", self.states, n, [f"x{i}" for i in range(n)]),
            "inputs": _names("inputs", self.inputs, m, [f"u{i}" for i in range(m)]),
        }
        own = given["states"] if self.C is None else [f"y{i}" for i in range(p)]
        given["outputs"] = _names("outputs", self.outputs, p, own)
        for name, x in given.items():
            object.__setattr__(self, name, x)

    def discretised(self: AnyLinearModel, dt: float) -> AnyLinearModel:
        """The model in steps of dt seconds, exact for inputs held over each: exp of [[A, B], [0, 0]] dt.

        Outputs and names stay. Raises InputError of a model that is discrete, NumericsError where dt is too long
        for its growth.
        """
        step = seconds("discretised: dt", dt)
        if self.dt is not None:
            raise InputError(
                f"discretised: the model is discrete, with steps of {self.dt:g} s; discretise the continuous one"
            )
        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        block[:n, :n], block[:n, n:] = self.A, self.B
        with np.errstate(all="ignore"):
            whole = package("scipy.linalg", "an exact discretisation").expm(block * step)
        if not np.isfinite(whole).all():
            raise NumericsError(
                f"discretised: the model grows beyond all numbers within a step of {step:g} s; take a shorter one"
            )
        return replace(self, A=whole[:n, :n], B=whole[:n, n:], dt=step)

    def modes(self) -> Modes:
        """Eigenvalues -damping w +- i w sqrt(1 - damping^2), one of each pair.

        Of a discrete model those of the continuous motion through its samples, log(z) / dt: frequencies up to
        pi / dt can be told apart.
        """
        values, vectors = np.linalg.eig(self.A)
        keep = values.imag >= 0.0
        values, vectors = values[keep], vectors[:, keep]
        if self.dt is not None:
            with np.errstate(divide="ignore"):
                values = np.log(np.abs(values)) / self.dt + 1j * (np.angle(values) / self.dt)
        size = np.abs(values)
        damping = np.ones_like(size)  # of what is gone after one step
        np.divide(-values.real, size, out=damping, where=np.isfinite(size) & (size > 0.0))
        damping[size == 0.0] = 0.0
        order = np.argsort(size, kind="stable")
        return Modes(size[order], damping[order], vectors[:, order])

    def decays(self, poles: Array) -> bool:
        """Whether motions with these poles die out: left of the axis, or within the unit circle."""
        if self.dt is None:
            return bool(np.max(poles.real, initial=-math.inf) < 0.0)
        return bool(np.max(np.abs(poles), initial=0.0) < 1.0)


def real_matrix(what: str, x: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Finite numbers of a shape, as a copy that cannot be written to."""
    array = np.array(finite(what, x, shape))
    array.setflags(write=False)
    return array


def _rows(name: str, x: ArrayLike) -> int:
    return len(np.atleast_1d(finite(f"linear model: {name}", x)))


def _names(what: str, given: Sequence[str], size: int, own: Sequence[str]) -> tuple[str, ...]:
    names = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not names:
        return tuple(own)
    if len(names) != size or not all(isinstance(x, str) for x in names) or len(set(names)) != size:
        raise InputError(f"linear model: {what} must be {size} different names, not {given!r}")
    return names
