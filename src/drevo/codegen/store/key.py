"""The one key of compiled code: model, request, sources of the whole package, machine, interpreter."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...io import packages
from ..graph import levers
from . import native
from .memo import memoised

if TYPE_CHECKING:
    from ...model.description import Model

FORMAT = 5  # of the manifest and the code
_CODE = (".py", ".pyc", ".so", ".pyd")


# Fields of the model's dataclasses that change neither a number nor a name in compiled code, with the reason.
UNKEYED = {
    "Model.source": "where the robot was read",
    "Model.notes": "what reading it had to say",
    "Model.about": "what it is, for people",
    "Link.line": "where it stands in its file",
    "Joint.line": "where it stands in its file",
}
_PLAIN_TYPES = {float, int, str, bool, type(None)}


def request(model: Model, *asked: object) -> str:
    """The text that identifies a robot and what is wanted of it: the whole model but `UNKEYED`, and `asked`."""
    told = memoised(model, "key", lambda: hashlib.sha256(key_text(model).encode()).hexdigest())
    return "\n".join([told, *map(key_text, asked)])


def key_text(x: object) -> str:
    """A text that only an equal value of the same type has: floats and arrays to the bit, dataclasses by field.

    What has a `digest` is told by it. TypeError for what has no such text, as a function: its trace tells it.
    """
    kind: Any = type(x)
    if kind in _PLAIN_TYPES or (kind is tuple and _PLAIN_TYPES.issuperset(map(type, x))):  # type: ignore[call-overload]
        return repr(x)
    if isinstance(x, np.ndarray | np.generic) and x.dtype != object:
        data = np.ascontiguousarray(x)
        return f"{kind.__name__}({x.dtype.str}, {x.shape}, {hashlib.sha256(data.tobytes()).hexdigest()})"
    for plain in (str, float, int):
        if isinstance(x, plain):
            return f"{kind.__name__}({plain.__repr__(x)})"
    if isinstance(told := getattr(x, "digest", None), str):
        return f"{kind.__name__}({told})"
    if isinstance(x, Mapping):
        return f"{kind.__name__}({', '.join(f'{key_text(k)}: {key_text(y)}' for k, y in x.items())})"
    if isinstance(x, tuple | list):
        return f"{kind.__name__}({', '.join(map(key_text, x))})"
    if is_dataclass(x):
        return f"{kind.__name__}({', '.join(f'{n}={key_text(getattr(x, n))}' for n in _keyed(kind))})"
    raise TypeError(f"a {kind.__name__} is no part of a key")


@lru_cache
def _keyed(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that its key has."""
    return tuple(f.name for f in fields(kind) if f"{kind.__name__}.{f.name}" not in UNKEYED)


def key(request: str, spec: object) -> str:
    """The cache key of code: what was asked, how it is made, and all of this process that the code depends on."""
    parts = [request, key_text(spec), f"format {FORMAT}", sources(), native.machine(), *sorted(levers.off())]
    return "\n".join(
        [*parts, sys.implementation.cache_tag or "", repr(native.layout()), f"numpy {np.__version__}"]
    )


@lru_cache(maxsize=1)
def sources() -> str:
    """Version and state of the package's files: edited or upgraded sources never meet code of the old ones.

    A process that imported the package before an edit runs a mixture of both: its key is nobody else's.
    """
    try:
        found = sorted(files(packages.FOLDER))
    except OSError:  # out of an archive
        found = []
    changed = any(packages.PROCESS_START < modified / 1e9 <= time.time() for _, _, modified in found)
    state = os.urandom(16) if changed or not found else hashlib.sha256(repr(found).encode()).digest()
    return f"{packages.VERSION} {state.hex()}"


def files(folder: str, within: str = "") -> list[tuple[str, int, int]]:
    """Name, size and time of every file of code, in all folders."""
    found = []
    for item in os.scandir(folder):
        name = within + item.name
        if item.is_dir(follow_symlinks=False):
            found += files(item.path, name + "/") if item.name != "__pycache__" else []
        elif name.endswith(_CODE):
            seen = item.stat()
            found.append((name, seen.st_size, seen.st_mtime_ns))
    return found
