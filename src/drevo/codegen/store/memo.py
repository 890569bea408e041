"""Memoisation of what is made once: in memory as long as its owner lives, on disk for every process."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TypeVar

from . import cache
from .lock import LOCK

T = TypeVar("T")
MOST_KEPT = 256  # things made for one owner, of some 0.1 MB each


def memoised(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, made once for an owner, if that has attributes. It may refer to it: both go together.

    Of more than MOST_KEPT the first one made is let go: a process that asks for ever new things stays bounded.
    """
    made: dict[Hashable, T] = getattr(owner, "__dict__", {}).setdefault("_made", {})
    try:
        return made[key]
    except KeyError:
        pass
    found = made.setdefault(key, make())  # of two threads that made it both have the first
    while len(made) > MOST_KEPT:
        with suppress(KeyError, RuntimeError):  # another thread is here too
            del made[next(iter(made))]
    return found


def persisted(name: str, use: bool, make: Callable[[], bytes]) -> bytes:
    """Object code from the cache, or made now and stored; name: `key.key` of it. use: whether the cache may."""
    found = cache.read_entry(name) if use else None
    if found is None:
        with LOCK:
            found = make()
        if use:
            cache.write_entry(name, found)
    return found
