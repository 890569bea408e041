"""The one key of compiled code: model, request, sources of the whole package, machine, interpreter."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...io import version
from ..graph import levers
from . import native

if TYPE_CHECKING:
    from ...model.description import Model

FORMAT = 5  # of the manifest and the code
_CODE = (".py", ".pyc", ".so", ".pyd")


def request(model: Model, *asked: object) -> str:
    """A model and what is asked of it. `asked` must show in its repr all that the code depends on."""
    # everything in the model that can change a number or a name
    text = repr((model.links, model.joints, model.gravity, model.name, model.tendons))
    return "\n".join([hashlib.sha256(text.encode()).hexdigest(), *map(repr, asked)])


def key(request: str, spec: object) -> str:
    """What was asked, how it is made (the repr of spec), and all of this process that the code depends on."""
    parts = [request, repr(spec), f"format {FORMAT}", sources(), native.machine(), *sorted(levers.off())]
    return "\n".join(
        [*parts, sys.implementation.cache_tag or "", repr(native.layout()), f"numpy {np.__version__}"]
    )


@lru_cache(maxsize=1)
def sources() -> str:
    """Version and state of the package's files: edited or upgraded sources never meet code of the old ones.

    A process that imported the package before an edit runs a mixture of both: its key is nobody else's.
    """
    try:
        found = sorted(files(version.FOLDER))
    except OSError:  # out of an archive
        found = []
    changed = any(version.LOADED < modified / 1e9 <= time.time() for _, _, modified in found)
    state = os.urandom(16) if changed or not found else hashlib.sha256(repr(found).encode()).digest()
    return f"{version.VERSION} {state.hex()}"


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
