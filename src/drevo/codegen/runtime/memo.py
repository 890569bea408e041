"""What is made once: in memory as long as its owner lives, on disk for every process."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from . import cache
from .lock import LOCK

T = TypeVar("T")


def memoised(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once for an owner, if that has attributes. It may refer to it: both go together."""
    made: dict[Hashable, T] = getattr(owner, "__dict__", {}).setdefault("_made", {})
    if key not in made:
        made[key] = make()
    return made[key]


def persisted(name: str, use: bool, make: Callable[[], bytes]) -> bytes:
    """Object code from the cache, or made now and stored; name: `key.key` of it. use: whether the cache may."""
    found = cache.read_entry(name) if use else None
    if found is None:
        with LOCK:
            found = make()
        if use:
            cache.write_entry(name, found)
    return found
