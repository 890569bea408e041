"""Ways of saving operations that can be switched off: to see what one saves, or that the rest is right without it.

The environment variable DREVO_WITHOUT names those that are off, with commas between; it is set before Python
starts, and belongs to the key of compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ...errors import TraceError

LEVERS = {
    "frames": "frames of bodies are moved to where turns and offsets vanish",
    "holders": "bodies take pole masses over, so that components of their parent's first moment vanish",
    "phase": "the frame of a last body is turned about its axis, so that its first moment keeps one component",
    "unit": "lengths are measured in a unit that makes an offset 1",
    "parallel": "runs of parallel axes share their rotation",
    "meeting": "elements of the inertia matrix are formed at a body between their two",
    "sigma": "inertias are gauged to the least of numbers (off: the parameters of Khalil and Kleinfinger, yy)",
    "absolute": "the inertia matrix takes absolute rates along runs of parallel axes",
    "wheels": "bodies that are symmetric about their hinge do not turn",
    "cancel": "x - x in neighbouring sums cancels while the graph is built",
    "factor": "a common factor on parameters alone leaves a sum while the graph is built",
    "three": "a rotation in a plane takes three products where products alone count",
    "rates": "the rate of a rotation by its angle is the component that the rotation gives beside it",
    "regroup": "sums of the finished program are regrouped",
    "fma": "a product and a sum are one instruction of the machine",
}


_WITHOUT: ContextVar[frozenset[str]] = ContextVar("without", default=frozenset())


@contextmanager
def without(*names: str) -> Iterator[None]:
    """These are off as well, as long as it lasts."""
    before = _WITHOUT.set(_WITHOUT.get() | {*names})
    try:
        yield
    finally:
        _WITHOUT.reset(before)


def off() -> frozenset[str]:
    """The levers that DREVO_WITHOUT names, and those of `without`."""
    given = os.environ.get("DREVO_WITHOUT")
    named = frozenset(word.strip() for word in given.split(",")) - {""} if given else frozenset[str]()
    names = named | _WITHOUT.get()
    for name in sorted(names - LEVERS.keys()):
        raise TraceError(f"DREVO_WITHOUT names {name!r}, which is no lever; levers are {', '.join(LEVERS)}")
    return names
