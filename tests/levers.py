"""Every lever that saves operations, each with a way to switch it off: what is left must still be right.

`pytest --without=frames` runs the suite so; `make nightly` goes through all of them. Tests marked `counts` say how
much a lever saves and are left out then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from drevo.emit import lower
from drevo.formalisms import search
from drevo.graph import regroup
from drevo.graph.node import Graph


def plan_with(**changes: Any) -> Callable[[], None]:
    """Plans take these settings, whatever they were made with."""

    def switch() -> None:
        fresh = search.Plan.__new__

        def settled(cls: type[search.Plan], values: Iterable[Any]) -> search.Plan:
            return tuple.__new__(cls, (dict(zip(cls._fields, values)) | changes).values())

        search.Plan.__new__ = lambda cls, *args, **given: settled(cls, fresh(cls, *args, **given))  # type: ignore
        search.Plan._make = classmethod(settled)  # type: ignore[assignment]

    return switch


def method(owner: Any, name: str, instead: Callable[..., Any]) -> Callable[[], None]:
    """One function replaced by one that does without."""
    return lambda: setattr(owner, name, instead)


LEVERS: dict[str, Callable[[], None]] = {
    "frames": plan_with(frames=False, moves=()),
    "holders": plan_with(holders=()),
    "phase": plan_with(phase=False),
    "unit": plan_with(unit=False),
    "parallel": plan_with(parallel=False, sums=False),
    "meeting": plan_with(meeting=0, carried=False),
    "sigma": plan_with(gauge="yy", holders=()),
    "cancel": method(Graph, "_cancel", lambda self, x, y: None),
    "factor": method(Graph, "_common_factor", lambda self, x, y: None),
    "regroup": method(regroup, "regrouped", lambda program, early=False: program),
    "fma": method(lower, "_fuse", lambda *_: {}),
}

__all__ = ["LEVERS"]
