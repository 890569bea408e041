"""Paths of tendons as straight segments."""

from __future__ import annotations

from collections.abc import Iterable

from .description import TendonSegment, Vec3

Waypoint = tuple[str, Vec3]  # a link, a point of it


def segments_along(path: Iterable[Waypoint | float]) -> tuple[TendonSegment, ...]:
    """The segments between places one after the other; a number is a pulley, behind which a branch begins anew and
    counts divided by the number."""
    found, last, share = [], None, 1.0
    for step in path:
        if not isinstance(step, tuple):
            last, share = None, 1.0 / step
            continue
        if last is not None:
            found.append(TendonSegment(*last, *step, share))
        last = step
    return tuple(found)
