"""Checks of a caller's arguments, once for every room: numbers of a shape, whole numbers, flags, functions, names.

Each check gives the value as the code behind it wants it; an InputError says in one sentence what it is instead.

Checks of arguments, given by place and by name, for a whole function: missing, twice, unknown or too many.

The memory that this machine lends to results: what would need more is refused beforehand, in a sentence.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import DrevoError, InputError, NumericsError, nearest, shown

Array = np.ndarray[Any, Any]
ShapePattern = Sequence[Any]  # sizes; None fits any size, and `...` in front any leading dimensions
FLOAT_DTYPE = np.dtype(float)
MAX_EXACT_INTEGER = 2**53  # below it whole numbers are floats
ROTATION_TOLERANCE = 1e-6  # of orthonormal rows
NORMAL = float(np.finfo(float).tiny)  # the least number of all digits


# -- arrays -------------------------------------------------------------------------------------------------


def numbers(title: str, x: Any, shape: ShapePattern | None = None, dtype: np.dtype[Any] = FLOAT_DTYPE) -> Array:
    """Real numbers as an aligned array of this very dtype, of a shape where one is given.

    Complex numbers, text, objects and what a mask hides are refused.
    """
    try:
        array = np.asarray(x)
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # the last: memoryviews' formats
        raise InputError(f"{title} is no array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        called = f"a function: call it, as {getattr(x, '__name__', 'it')}()"
        kind = "None" if x is None else called if callable(x) else f"values of type {array.dtype}"
        raise InputError(f"{title} must hold real numbers, it holds {kind}")
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and np.any(getattr(x, "mask", False)):
        raise InputError(f"{title} must hold real numbers, some are masked; fill them, or leave them out")
    if shape is not None and not _fits(array.shape, tuple(shape)):
        raise InputError(f"{title} has shape {array.shape}; {_wanted(tuple(shape))}")
    if array.dtype == dtype and array.flags.aligned:
        # what came through pickle, or has metadata, has an equal dtype of its own
        return array if array.dtype is dtype else array.view(dtype)
    with np.errstate(over="ignore"):  # too large for float32: the finite check of the result speaks up
        return np.array(array, dtype, order="C")


def finite(
    title: str, x: Any, shape: ShapePattern | None = None, error: type[DrevoError] = NumericsError
) -> Array:
    """Finite real numbers in double precision, of a shape where one is given."""
    array = numbers(title, x, shape)
    try:
        bad = ~np.isfinite(array)
    except MemoryError as lack:
        raise InputError(f"{title}: there is no memory for this batch, compute it in parts: {lack}") from None
    if bad.any():
        at = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), array.shape))
        where = f" at index {', '.join(map(str, at))}" if at else ""
        raise error(f"{title} holds a value that is not finite: {array[at]}{where}")
    return array


def rotations(title: str, given: Any) -> Array:
    """Rotation matrices (..., 3, 3); InputError unless their rows are orthonormal and right-handed."""
    R = finite(title, given, (..., 3, 3), InputError)
    x, y, z = np.ascontiguousarray(np.moveaxis(R, (-2, -1), (0, 1)))
    third = [x[k - 2] * y[k - 1] - x[k - 1] * y[k - 2] - z[k] for k in range(3)]
    parts = (*third, (x * x).sum(0) - 1.0, (y * y).sum(0) - 1.0, (x * y).sum(0))
    off = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    if off > ROTATION_TOLERANCE:
        raise InputError(f"{title} is no rotation, its rows are {off:.2g} from orthonormal; normalise it")
    return R


def within_reach(title: str, result: Array, **given: Array) -> Array:
    """Returns what was found; NumericsError with the largest of what it was computed from if it is not finite."""
    if not np.isfinite(result).all():
        sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in given.items()}
        name = max(sizes, key=sizes.__getitem__)
        raise NumericsError(
            f"{title}: {name} is as large as {sizes[name]:.3g}, and what is computed from it is beyond the "
            "largest number"
        )
    return result


def _fits(shape: tuple[int, ...], wanted: tuple[Any, ...]) -> bool:
    if wanted[:1] == (...,):
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    return len(shape) == len(wanted) and all(n is None or n == k for n, k in zip(wanted, shape))


def _wanted(shape: tuple[Any, ...]) -> str:
    if len(shape) == 2 and shape[0] is ...:
        return f"its last dimension must be {shape[1]}"
    parts = ["..." if n is ... else "n" if n is None else str(n) for n in shape]
    return f"it must be ({', '.join(parts)}{',' * (len(parts) == 1)})"


def leading(title: str, **given: Array) -> tuple[int, ...]:
    """The leading dimensions of arrays whose last axis is that of a vector, broadcast to one another."""
    try:
        return np.broadcast_shapes(*(x.shape[:-1] for x in given.values()))
    except ValueError:
        said = ", ".join(f"{name} {x.shape[:-1]}" for name, x in given.items())
        raise InputError(f"{title}: the leading (batch) dimensions do not agree: {said}") from None


# -- single values ------------------------------------------------------------------------------------------


Fit = Callable[[float], bool]


def number(title: str, x: Any, rule: str = "a finite number", fit: Fit = math.isfinite) -> float:
    """A real number that fits the rule; NumPy's scalars and arrays without dimensions are numbers too."""
    if (type(x) is float or (type(x) is int and abs(x) < MAX_EXACT_INTEGER)) and fit(x):  # nearly always so
        return float(x)
    try:
        array = numbers(title, x)
    except InputError:
        array = _NO_NUMBERS
    if array.ndim or isinstance(x, (bool, np.bool_)) or not fit(float(array)):
        raise InputError(f"{title} is {shown(x)}; it must be {rule}")
    return float(array)


def positive(title: str, x: Any, unit: str = "", least: float = 0.0) -> float:
    """A finite number above 0, from `least`."""
    more = f" from {least:g}" if least else ""
    return number(title, x, f"a positive number{unit}{more}", lambda y: 0.0 < y < math.inf and y >= least)


def seconds(title: str, x: Any) -> float:
    """A finite time above 0; compiled motions take a subnormal number for 0, and would never come to its end."""
    return positive(title, positive(title, x, " of seconds"), " of seconds", NORMAL)


def whole(title: str, x: Any, least: int = 1, most: float = math.inf, use: str = "") -> int:
    """A whole number within bounds, of Python's or NumPy's; `use` says what it counts."""
    if isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind in "iu":
        x = x[()]
    if not isinstance(x, (int, np.integer)) or isinstance(x, bool) or not least <= x <= most:
        end = f" to {most:.0f}" if most < math.inf else ""
        raise InputError(f"{title} is {shown(x)}; it must be a whole number from {least}{end}{use}")
    return int(x)


def flag(title: str, x: Any) -> bool:
    """True or False."""
    if not isinstance(x, (bool, np.bool_)):
        raise InputError(f"{title} is {shown(x)}; it must be True or False")
    return bool(x)


def short_text(title: str, x: Any, most: int = 100) -> str:
    """Text that can be shown."""
    if not isinstance(x, str) or len(x) > most:
        raise InputError(f"{title} is {shown(x)}; it must be text of at most {most} characters")
    return x


def callable_given(title: str, x: Any, usage: str) -> Callable[..., Any]:
    """Returns x if it can be called; else an InputError says the usage that the function must have."""
    if not callable(x):
        raise InputError(f"{title} is {shown(x)}; it must be a function {usage}")
    return x  # type: ignore[no-any-return]


def generator(title: str, x: Any, hint: str = "") -> Any:
    """A generator of random numbers."""
    if not isinstance(x, (np.random.Generator, np.random.RandomState)):
        rule = f"must be a generator such as numpy.random.default_rng(0), not {shown(x)}"
        raise InputError(f"{title} {rule}{hint}")
    return x


_NO_NUMBERS = np.zeros((0,))  # what is no number has no single one


Asked = TypeVar("Asked", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def asked(function: Asked, name: str = "", unseen: Sequence[str] = ("self", "cls")) -> Asked:
    """The function; arguments that do not fit its signature are an InputError in place of Python's TypeError.

    name: what its caller knows it by, if not by its own. unseen: parameters that the caller does not give."""
    title = name or function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it comes from within
                raise
            raise InputError(_misfit(title, function, args, given, unseen)) from None

    return cast(Asked, call)


def spelled_out(options: type) -> Callable[[Asked], Asked]:
    """Makes help(), completion and the reference show the keys of a TypedDict for `**options: Unpack[...]`.

    Names that do not fit are refused where the options are read; `...` stands for the usual value of each.
    """
    usual = type("Usual", (), {"__repr__": lambda self: "..."})()

    def shown_in_full(function: Asked) -> Asked:
        plain = inspect.signature(function)
        kept = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=getattr(x, "__forward_arg__", x)
            )
            for name, x in options.__annotations__.items()
        ]
        function.__signature__ = plain.replace(parameters=[*kept, *named])  # type: ignore[attr-defined]
        return function

    return shown_in_full


def asked_methods(owner: Class, but: Sequence[str] = ()) -> Class:
    """A class whose public methods, and what makes it, are all so; it costs a call 0.25 us."""
    for name, value in list(vars(owner).items()):
        if name in but or (name.startswith("_") and name != "__init__"):
            continue
        if isinstance(value, FunctionType):
            setattr(owner, name, asked(value))
        elif isinstance(value, (classmethod, staticmethod)):
            setattr(owner, name, type(value)(asked(value.__func__)))
    return owner


def asked_all(module: str) -> None:
    """Applies `asked` to all that a public module names in `__all__` and has of its own; where it is defined too,
    as pickle finds it there."""
    face = sys.modules[module]
    for name in face.__all__:
        value = getattr(face, name)
        home = sys.modules.get(getattr(value, "__module__", ""))
        if home is None or not f"{home.__name__}.".startswith(f"{module}."):
            continue
        if isinstance(value, type):
            asked_methods(value)
        elif isinstance(value, FunctionType):
            for place in (face, home):
                setattr(place, name, asked(value))


def _misfit(
    name: str, function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any], unseen: Sequence[str]
) -> str:
    """The error message that tells what is wrong with the arguments."""
    every = inspect.signature(function).parameters.values()
    parameters = [p for p in every if p.name not in unseen]
    args = args[len(every) - len(parameters) :]
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    usage = f"{name}({', '.join([*placed, *(f'{n}=' for n in named), *['...'] * open_ended])})"
    if len(args) > len(placed) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        more = "; what else it takes goes by name" if named or open_ended else ""
        takes = f"{len(placed) or 'no'} argument{'s' * (len(placed) != 1)} by position"
        return f"{usage} takes {takes}, {len(args)} {'is' if len(args) == 1 else 'are'} given{more}"
    if twice := [n for n in placed[: len(args)] if n in given]:
        return f"{usage} was given {twice[0]!r} twice, by place and by name"
    if not open_ended and (unknown := [n for n in given if n not in (*placed, *named)]):
        near = nearest(unknown[0], [*placed, *named])
        return f"{usage} takes no argument {shown(unknown[0])}" + (f"; did you mean {near!r}?" if near else "")
    free = [p.name for p in parameters if p.default is p.empty and p.name in (*placed[len(args) :], *named)]
    return f"{usage} is missing {', '.join(repr(n) for n in free if n not in given)}"


_CGROUP = "/sys/fs/cgroup/memory.max"


def lent() -> float:
    """Bytes that results may fill: half of this machine's, or of what the process may have of it."""
    try:
        total = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not everywhere
        return math.inf
    try:
        with open(_CGROUP, encoding="ascii") as file:
            return 0.5 * min(total, float(file.read()))
    except (OSError, ValueError):  # no limit: "max"
        return 0.5 * total
