"""Random sequences of public calls, each in a fresh process, and a digest of every result.

    python sequences.py FIRST LAST LENGTH ROOM ...

prints a line of JSON for each sequence: [[call, digest], ...]. This process makes no call itself; it forks.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import importlib
import json
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from public_calls import ROOMS, Call
from public_values import fresh

import drevo
from drevo.codegen.call.function import Function
from drevo.model.loaders.native import to_json

BY_NAME = {room.__name__: room for room in ROOMS}
TIMES = ("seconds",)  # what a clock said


@cache
def calls_of(room: str) -> list[Call]:
    """The calls of a room; their arguments are made now, by calls too."""
    return list(BY_NAME[room](np.random.default_rng(1)))


def called(c: Call) -> Any:
    """What it gives, or says, on generators that begin where they stood and a builder as it was."""
    function = c.function
    if isinstance(owner := getattr(function, "__self__", None), drevo.Builder):
        function = getattr(copy.deepcopy(owner), function.__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*map(fresh, c.args), **{k: fresh(x) for k, x in c.given.items()})
        except drevo.DrevoError as error:
            return str(error)


def parts(x: Any, depth: int = 0) -> Iterator[bytes]:
    """A result bit by bit: numbers, texts, and what holds them; of anything else its type."""
    yield type(x).__name__.encode()
    if isinstance(x, (float, complex, int, str, bytes, type(None))):
        yield x.hex().encode() if isinstance(x, float) else repr(x).encode()
    elif isinstance(x, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(x)
        yield f"{array.dtype}{array.shape}".encode()
        yield array.tobytes() if array.dtype.kind in "fciub" else repr(array).encode()
    elif isinstance(x, Function):
        yield x.manifest.text().encode()
    elif isinstance(x, drevo.Robot):
        yield to_json(x.model).encode()
    elif depth < 8:
        for y in inside(x):
            yield from parts(y, depth + 1)


def inside(x: Any) -> list[Any]:
    """What an object holds."""
    if isinstance(x, Mapping):
        return [y for item in x.items() for y in item]
    if isinstance(x, (tuple, list)):
        return list(x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return [getattr(x, f.name, None) for f in dataclasses.fields(x) if f.name not in TIMES]
    return []


def digest(x: Any) -> str:
    return hashlib.sha256(b"\0".join(parts(x))).hexdigest()[:16]


def sequence(seed: int, length: int, rooms: list[str]) -> list[tuple[str, str]]:
    """Calls of some three rooms, drawn at random, one after the other."""
    rng, out = np.random.default_rng(seed), []
    some = rng.permutation(rooms)[:3]
    for _ in range(length):
        room = str(rng.choice(some))
        calls = calls_of(room)
        k = int(rng.integers(len(calls)))
        out.append((f"{room} {k}, {calls[k].name}", digest(called(calls[k]))))
    return out


def forked(work: Callable[[], Any]) -> str:
    """What a child makes of it, as JSON."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reads)
            with os.fdopen(writes, "w") as file:
                json.dump(work(), file)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("a sequence ended in an error; it is above")
    return text


def imported() -> None:
    """Every module is there before the first call, so that no child has to import it."""
    for module in pkgutil.walk_packages(drevo.__path__, "drevo."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # of a package that an extra brings: no call of ours takes it
                if (error.name or "drevo").partition(".")[0] == "drevo":
                    raise
    for name in ("llvmlite.binding", "scipy.linalg", "scipy.integrate", "scipy.optimize", "sympy"):
        importlib.import_module(name)


if __name__ == "__main__":
    imported()
    first, last, length = map(int, sys.argv[1:4])
    for seed in range(first, last):
        print(forked(lambda seed=seed: sequence(seed, length, sys.argv[4:])), flush=True)  # type: ignore[misc]
