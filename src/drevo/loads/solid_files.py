"""Solids of links in a TOML file: a list of tables for each link, `[[forearm]]`, with `kind` and its numbers."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DrevoError, InputError, one_of, shown
from ..io.asked import asked
from ..io.files import Files, read_regular_file
from ..io.given import numbers
from ..io.meshes import read_mesh_file
from . import solids
from .solids import Solid

LONGEST = 2**20  # bytes
MAKERS = {x.__name__: asked(x) for x in (solids.box, solids.capsule, solids.cylinder, solids.point, solids.rod,
                                         solids.sphere)}  # fmt: skip


def read_solids(path: str | os.PathLike[str]) -> dict[str, tuple[Solid, ...]]:
    """{link: solids} of a TOML file, for `distribution=`.

    kind: box, capsule, cylinder, point, rod, sphere, with the arguments of `drevo.loads.box`, ...; or mesh: mass,
    file (beside this one), and scale, at, rotation where they are not 1, at the origin, none. Raises InputError.
    """
    source = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(source, str):
        raise InputError(f"solids are read from a TOML file, not from {shown(path)}")
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        given = toml.loads(read_regular_file(source, LONGEST).decode())
    except (DrevoError, ValueError) as error:
        raise InputError(f"solids: the file {source!r} is no TOML that can be read: {error}") from None
    return {link: tuple(_solid(f"{Path(source).name}: [[{link}]]", x, Files(source)) for x in _tables(link, rows))
            for link, rows in given.items()}  # fmt: skip


def _tables(link: str, rows: Any) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(x, dict) for x in rows):
        raise InputError(f"solids: {link!r} is {shown(rows)}; give tables, [[{link}]]")
    return rows


def _solid(where: str, given: dict[str, Any], files: Files) -> Solid:
    more = dict(given)
    kind = one_of(f"{where}: kind", more.pop("kind", None), (*MAKERS, "mesh"), InputError)
    try:
        return asked(_mesh, "mesh")(files, **more) if kind == "mesh" else MAKERS[kind](**more)
    except DrevoError as error:
        raise InputError(f"{where}: {error}") from None


def _mesh(
    files: Files, mass: Any, file: Any, scale: Any = 1.0, at: Any = (0.0,) * 3, rotation: Any = None
) -> Solid:
    if not isinstance(file, str):
        raise InputError(f"file is {shown(file)}; name a mesh file")
    points, faces = read_mesh_file(files, files.find(file, [files.folder]))
    factor = np.broadcast_to(numbers("scale of a mesh", scale), (3,))
    return solids.mesh(mass, points * factor, np.zeros((0, 3), int) if faces is None else faces, at, rotation)
