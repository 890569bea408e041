"""Functions of the user's that are traced: what they raise and give, as sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from ..errors import DrevoError, InputError, TraceError, shown
from ..mechanics.jet import Jet
from ..mechanics.scalar import Scalar

WRITE = (
    "write it with + - * / **, drevo.sin, cos, sqrt, where, minimum, maximum, clip, without a branch on a value"
)


def call_traced(who: str, give: Callable[[], Any]) -> Any:
    """What a function gives; whatever it raises is a sentence about it."""
    try:
        return give()
    except InputError as error:
        raise InputError(f"{who}: {error}") from None
    except ZeroDivisionError:
        raise InputError(f"{who} divides by zero whatever the state is; correct it") from None
    except TraceError as error:
        raise InputError(f"{who} cannot be traced: {error}") from None
    except (DrevoError, TypeError) as error:
        raise InputError(f"{who} cannot be traced: {error}; {WRITE}") from error
    except Exception as error:
        raise InputError(f"{who} raised {type(error).__name__}: {error}; correct it") from error


def scalars_given(who: str, found: Any, size: int) -> list[Scalar]:
    """So many scalars, traced or plain."""
    if isinstance(found, (Jet, Real, str)) or not isinstance(found, Iterable):
        raise InputError(f"{who} gave {short(found)}, not a list of {size}; return [value, ...]")
    values = list(found)
    if len(values) != size:
        raise InputError(f"{who} gave {len(values)} values, size is {size}")
    for x in values:
        if not isinstance(x, Jet) and not (isinstance(x, Real) and math.isfinite(x)):
            raise InputError(f"{who} gave {short(x)} among its values; each must be a finite number")
    return values


def short(x: object) -> str:
    """What a value is, for a sentence."""
    return "one traced number" if isinstance(x, Jet) else shown(x)
