"""Numbers that come as Python values (Builder, JSON, TOML): checked, and made plain tuples of floats.

Each function raises ValueError with the middle of a sentence; the caller knows which element it is about.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from ..errors import DrevoError, ModelError, shown
from ..io.xml import MAX_INERTIA, MAX_LENGTH, MAX_NAME
from .description import Mat3, Vec3
from .rotations import symmetric

T = TypeVar("T")
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
BOUND_THAT_IS_NONE = 1e16  # what files write for a bound that is none
MAX_PATH = 4096  # characters
NO_PATH = "a robot is named by the path of its file or by its name"
ROTATION_ROUNDING = 1e-6  # how far a printed rotation or tensor may be from orthogonal or symmetric


def checked(error: type[DrevoError], owner: str, noun: str, check: Callable[[object], T], value: object) -> T:
    """The value as a check gives it; the error with a whole sentence where it refuses."""
    try:
        return check(value)
    except ValueError as refusal:
        raise error(f"{owner}: {noun} {refusal}; correct it") from None


def scalar(value: object, bound: float = MAX_LENGTH) -> float:
    """A finite real number within the bound."""
    if (type(value) is float or type(value) is int) and -bound <= value <= bound < math.inf:
        return float(value)  # nearly always so: the rest is for what is not
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{shown(value)} is not finite")
    if abs(number) > bound:
        raise ValueError(f"{number:g} is beyond {bound:g}, the largest that is allowed")
    return number


def sequence(value: object, bound: float = MAX_LENGTH) -> tuple[float, ...]:
    """A list of numbers."""
    return tuple([scalar(part, bound) for part in _parts(value, "a list of numbers")])


def vector(value: object, bound: float = MAX_LENGTH) -> Vec3:
    """Three numbers."""
    if (type(value) is tuple or type(value) is list) and len(value) == 3:  # nearly always so
        x, y, z = value
        plain = type(x) is type(y) is type(z) is float
        if plain and abs(x) <= bound and abs(y) <= bound and abs(z) <= bound < math.inf:
            return x, y, z
    parts = _parts(value, "a list of numbers")
    if len(parts) != 3:
        raise ValueError(f"{shown(value)} has {len(parts)} numbers, 3 needed")
    return (scalar(parts[0], bound), scalar(parts[1], bound), scalar(parts[2], bound))


def tuple_of(count: int, bound: float = MAX_LENGTH) -> Callable[[object], tuple[float, ...]]:
    """A check for so many numbers."""

    def check(value: object) -> tuple[float, ...]:
        numbers = sequence(value, bound)
        if len(numbers) != count:
            raise ValueError(f"{shown(value)} has {len(numbers)} numbers, {count} needed")
        return numbers

    return check


def pair(value: object) -> tuple[float, float]:
    """Two numbers."""
    a, b = tuple_of(2)(value)
    return a, b


def matrix(value: object, bound: float = MAX_LENGTH) -> Mat3:
    """Three rows of three numbers."""
    rows = _parts(value, "a 3x3 matrix")
    if len(rows) != 3:
        raise ValueError(f"{shown(value)} has {len(rows)} rows, 3 needed")
    return (vector(rows[0], bound), vector(rows[1], bound), vector(rows[2], bound))


def rotation(value: object) -> Mat3:
    """A proper rotation matrix."""
    r = matrix(value)
    (a, b, c), (d, e, f), (g, h, i) = r
    lengths = a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, g * g + h * h + i * i - 1.0
    angles = a * d + b * e + c * f, a * g + b * h + c * i, d * g + e * h + f * i
    if max(map(abs, lengths + angles)) > ROTATION_ROUNDING:
        raise ValueError(f"{shown(value)} is not a rotation: its rows are not orthogonal and of length one")
    if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0.0:
        raise ValueError(f"{shown(value)} is a reflection (determinant -1), not a rotation")
    return r


def tensor(value: object) -> Mat3:
    """A symmetric matrix; rounding in its symmetry is averaged away."""
    t = matrix(value, MAX_INERTIA)
    size = max(abs(x) for row in t for x in row)
    for i in range(3):
        for j in range(i):
            if abs(t[i][j] - t[j][i]) > ROTATION_ROUNDING * size:
                raise ValueError(f"{shown(value)} is not symmetric: {t[i][j]:g} against {t[j][i]:g}")
    return symmetric(t)


def gravity_vector(value: object) -> Vec3:
    """Gravity as an argument; ModelError where it is not three finite numbers."""
    try:
        return vector(value)
    except ValueError as error:
        raise ModelError(
            f"gravity is three numbers, m/s^2 along the world's axes, such as (0, 0, -9.81): {error}"
        ) from None


def bound(value: float | None) -> float | None:
    """A bound of a joint; None for what files write where they mean that there is none."""
    return None if value is None or abs(value) >= BOUND_THAT_IS_NONE else value


def path(value: object) -> str:
    """A path as text; ModelError where it is none."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(text, str) or not text.strip() or "\0" in text or len(text) > MAX_PATH:
        raise ModelError(f"{NO_PATH}, not by {shown(value)}")
    return text


def _parts(value: object, noun: str) -> list[Any]:
    """The elements of a list, tuple or array; those of an array as Python numbers."""
    if type(value) is tuple or type(value) is list:  # nearly always so
        return list(value)
    if isinstance(value, memoryview) or (hasattr(value, "__array__") and not isinstance(value, np.ndarray)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "fiu":
        return list(value.tolist())
    flat = isinstance(value, np.ndarray) and not value.ndim
    if flat or isinstance(value, (str, bytes, Mapping, Set)) or not isinstance(value, Iterable):
        raise ValueError(f"{shown(value)} is not {noun}")
    return list(value)


def name(value: object) -> str:
    """A name: text that is not empty."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME:
        raise ValueError(f"{shown(value)} is not a name (text of 1 to {MAX_NAME} characters)")
    if refused := control_character(value):
        raise ValueError(f"{shown(value)} holds the control character {refused!r}, which no name may")
    return text(value)


def control_character(name: str) -> str:
    """The first control character or line break of a name; "" where there is none."""
    match = _CONTROL_CHARACTERS.search(name)
    return match[0] if match else ""


def text(value: object) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not text")
    if _SURROGATE.search(value):
        raise ValueError(f"{shown(value)} has half of a surrogate pair, which is no character and cannot be saved")
    return value
