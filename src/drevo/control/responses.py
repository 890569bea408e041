"""Poles, zeros and responses of linear models, from their matrices; pictures as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, NumericsError, shown
from ..io.files import saving
from ..io.given import Array, finite, seconds, whole
from ..io.packages import package
from ..io.reprs import result

POLE_DISTANCE = 1e-14  # of the largest singular value of s - A: below it s is a pole
INFINITE = 1e-10  # of a generalised eigenvalue a / b: where b is below it, of the size of a and b
MAX_NUMBERS = 10_000_000  # numbers of a response
CROSS = 0.025  # of the width of a map: half the size of a mark


class Matrices(NamedTuple):
    """x' = A x + B u, y = C x + D u, or steps of dt; names of u and y."""

    A: Array
    B: Array
    C: Array
    D: Array
    dt: float | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class _Picture(Pictured):
    def save(self, path: str | Path) -> None:
        """The picture, as .svg."""
        with saving("a response", path, (".svg",)) as file:
            file.write_text(self.svg(), encoding="utf-8")


@result
class FrequencyResponse(_Picture):
    """values (k, outputs, inputs), complex: what comes out of a sine of unit size at frequencies (k,), rad/s."""

    frequencies: Array
    values: Array
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def magnitude(self) -> Array:
        """|values|."""
        return np.abs(self.values)

    @property
    def phase(self) -> Array:
        """Radians, without jumps along the frequencies."""
        return np.unwrap(np.angle(self.values), axis=0)

    def figure(self) -> Figure:
        """Bode's diagram: a column for each input, magnitudes above phases, over log10 of the frequency."""
        x = np.log10(self.frequencies)
        panels = [
            Panel(
                f"{name} of {u}{unit}",
                [Curve(o, x, y[:, i, j]) for i, o in enumerate(self.outputs)],
                log=log,
                unit=unit[2:],
            )
            for name, y, unit, log in (("size", self.magnitude, "", True), ("phase", self.phase, ", rad", False))
            for j, u in enumerate(self.inputs)
        ]
        return Figure("frequency response", panels, across=len(self.inputs), abscissa="log10 of rad/s")


@result
class StepResponse(_Picture):
    """values (k, outputs, inputs) at times (k,), s: what comes out from rest of one input that is 1 from 0 on."""

    times: Array
    values: Array
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def figure(self) -> Figure:
        """A panel for each input, over time."""
        panels = [
            Panel(f"step of {u}", [Curve(o, self.times, self.values[:, i, j]) for i, o in enumerate(self.outputs)])
            for j, u in enumerate(self.inputs)
        ]
        return Figure("step response", panels, across=min(3, len(panels)), abscissa="t, s")


@result
class PoleZeroMap(_Picture):
    """Poles and zeros in the plane of s, 1/s, or of z."""

    poles: Array
    zeros: Array
    dt: float | None

    def figure(self) -> Figure:
        """Crosses and rings; the axis, or the circle, within which motions decay."""
        every = np.concatenate([self.poles, self.zeros, [0.0]])
        wide = max(1.0 if self.dt else 0.0, float(np.abs(every).max())) or 1.0
        around = np.exp(2j * np.pi * np.linspace(0.0, 1.0, 97))
        edge = around if self.dt else np.array([-1j, 1j]) * wide
        drawn = {
            "pole": list(_crosses(self.poles, CROSS * wide)),
            "zero": [x for z in self.zeros for x in (*(z + CROSS * wide * around[::8]), np.nan)],
            "limit of decay": list(edge),
        }
        curves = [Curve(name, np.real(x), np.imag(x)) for name, x in drawn.items() if len(x)]
        plane = "z" if self.dt else "s, 1/s"
        return Figure("poles and zeros", [Panel(plane, curves, equal=True, unit=f"imaginary part of {plane}")])


def _crosses(places: Array, size: float) -> Iterator[complex]:
    for x in places:
        for turn in (1 + 1j, 1 - 1j):
            yield from (x - size * turn, x + size * turn, np.nan)


def frequency_response(m: Matrices, frequencies: ArrayLike) -> FrequencyResponse:
    """C (s - A)^-1 B + D at s = i w, of a discrete model at z = exp(i w dt)."""
    w = np.atleast_1d(finite("frequency_response: frequencies", frequencies))
    limit = math.inf if m.dt is None else math.pi / m.dt * (1.0 + 1e-12)
    if w.ndim != 1 or not len(w) or not (w > 0.0).all() or not (w <= limit).all():
        above = "" if m.dt is None else f", up to pi / dt = {limit:.6g}"
        raise InputError(f"frequency_response: frequencies must be a list of numbers above 0, rad/s{above}")
    _bounded("frequency_response", len(w) * m.D.size)
    s = 1j * w if m.dt is None else np.exp(1j * w * m.dt)
    pencil = s[:, None, None] * np.eye(len(m.A)) - m.A
    if len(m.A):
        sizes = np.linalg.svd(pencil, compute_uv=False)
        lost = sizes[:, -1] <= POLE_DISTANCE * sizes[:, 0]
        if lost.any():
            raise NumericsError(
                f"frequency_response: {w[int(lost.argmax())]:.6g} rad/s is a natural frequency without damping, "
                "where the response has no bound; leave it out"
            )
    return FrequencyResponse(w, m.C @ np.linalg.solve(pencil, (m.B + 0j)[None]) + m.D, m.inputs, m.outputs)


def step_response(m: Matrices, step: Matrices, times: Array) -> StepResponse:
    """step: the model in steps of the times, which are even."""
    x, u = np.zeros_like(m.B), m.B.shape[-1]
    _bounded("step_response", len(times) * m.D.size)
    values = np.empty((len(times), len(m.C), u))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(len(times)):
            values[k] = m.C @ x + m.D
            x = step.A @ x + step.B
    if not np.isfinite(values).all():
        raise NumericsError("step_response: the model grows beyond all numbers in this time; take a shorter one")
    return StepResponse(times, values, m.inputs, m.outputs)


def response_times(dt: float | None, duration: float, samples: int) -> Array:
    """Even times from 0 on, of a discrete model its own."""
    end = seconds("step_response: duration", duration)
    if dt is not None:
        return dt * np.arange(
            whole("step_response: duration / dt", int(min(end / dt + 1e-9, MAX_NUMBERS)) + 1, 2, MAX_NUMBERS)
        )
    return np.linspace(0.0, end, whole("step_response: samples", samples, 2, MAX_NUMBERS))


def _bounded(title: str, numbers: int) -> None:
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"{title}: it would have {numbers:.3g} numbers, more than {MAX_NUMBERS:.0e}; ask for fewer at once"
        )


def transmission_zeros(m: Matrices, output: str | None, source: str | None) -> Array:
    """Zeros s, where [[A - s, B], [C, D]] loses rank, of as many outputs as inputs; of a channel by its names."""
    rows, columns = _channel("output", output, m.outputs), _channel("input", source, m.inputs)
    B, C, D = m.B[:, columns], m.C[rows], m.D[np.ix_(rows, columns)]
    n, p, u = len(m.A), *D.shape
    if p != u:
        raise InputError(
            f"zeros: the model has {p} outputs and {u} inputs; zeros are those of as many outputs as inputs: name "
            "one of each, zeros(output=, input=)"
        )
    pencil, mass = np.block([[m.A, B], [C, D]]), np.zeros((n + p, n + p))
    mass[:n, :n] = np.eye(n)
    size = max(1.0, float(np.abs(pencil).max(initial=0.0)))
    eig = package("scipy.linalg", "zeros of a linear model").eigvals
    a, b = eig(pencil / size, mass, homogeneous_eigvals=True)
    small = np.hypot(np.abs(a), np.abs(b)) <= INFINITE
    if small.any():
        raise NumericsError("zeros: the outputs depend on each other whatever the frequency is; leave some out")
    kept = np.abs(b) > INFINITE * np.hypot(np.abs(a), np.abs(b))
    return np.asarray(a[kept] / b[kept] * size)


def _channel(title: str, name: str | None, names: Sequence[str]) -> list[int]:
    if name is None:
        return list(range(len(names)))
    if not isinstance(name, str) or name not in names:
        raise InputError(f"zeros: {title} {shown(name)} is none of the model's: {', '.join(names[:40])}")
    return [names.index(name)]
