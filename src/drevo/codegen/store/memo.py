"""Memoisation of what is made once: in memory as long as its owner lives, on disk for every process.

One lock around all that compiles, held while the process forks: a child finds LLVM and every module at rest.

What another thread holds at a fork (LLVM, a module half imported) nobody would ever give back in the child.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from threading import RLock, get_ident
from typing import TypeVar


class _Lock:
    """A reentrant lock: one thread at a time, which may enter again. RuntimeError where the interpreter ends: a
    thread that ended with it inside will not leave."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=not sys.is_finalizing()):
            raise RuntimeError("the interpreter ends while another thread compiles: nothing more is compiled")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


LOCK = _Lock()
_HELD_LOCKS: list[ExitStack] = []


def _hold() -> None:
    """Waits for what is being compiled and imported, and keeps new work out."""
    stack = ExitStack()
    _HELD_LOCKS.append(stack)
    stack.enter_context(LOCK)
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    inner = getattr(library, "_lock", None)  # others use LLVM too
    if inner is not None:
        stack.enter_context(inner)
    for _ in range(1000):
        busy = _importing()
        if not busy:
            return
        with suppress(Exception):  # that thread will hear of it
            importlib.import_module(busy[0])  # waits for the thread that is at it


def _importing() -> list[str]:
    """Modules of ours that other threads are importing; those of this thread will go on in the child."""
    held = getattr(importlib._bootstrap, "_module_locks", {})
    mine = get_ident()
    ours = [(name, ref()) for name, ref in list(held.items()) if name.split(".")[0] in ("drevo", "llvmlite")]
    return [name for name, lock in ours if getattr(lock, "owner", None) not in (None, mine)]


def _release() -> None:
    _HELD_LOCKS.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)


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
    from . import cache  # late: `import drevo` itself needs no hashlib

    found = cache.read_entry(name) if use else None
    if found is None:
        with LOCK:
            found = make()
        if use:
            cache.write_entry(name, found)
    return found
