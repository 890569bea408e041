"""From a file to a Model: the format is found by suffix, XML formats by their root element."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from drevo.errors import ModelError
from drevo.io import xml
from drevo.io.files import Files, read_regular_file
from drevo.io.saving import saving
from drevo.model import values
from drevo.model.description import Model
from drevo.model.draft import Draft
from drevo.model.messages import listed
from drevo.model.validation import finish

XML_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf")
SUFFIXES = (*XML_SUFFIXES, ".json", ".toml")
# root element -> the module of its loader, imported when a file needs it
LOADERS = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}


def load_model(
    path: str | os.PathLike[str],
    base: str = "fixed",
    gravity: Any = None,
    strict: bool = False,
    roots: Iterable[str | os.PathLike[str]] = (),
) -> Model:
    """The Model that a file describes, on a base: "fixed", "floating" or "trunk".

    What cannot be computed or is ambiguous is refused with a ModelError that holds every problem; what is
    doubtful, or acts on the motion and is not read, gives one DrevoWarning, or with `strict` a ModelError.
    `gravity` is the file's, (0, 0, -9.81) where it has none, unless another is given. Of other files only those
    in `roots` are opened (`drevo.io.files.Files` says which these are where none are declared).
    """
    name, suffix = values.path(path), Path(path).suffix.lower()
    where = name.encode("utf-8", "backslashreplace").decode()  # a path may hold bytes that are no text
    down = None if gravity is None else values.gravity_vector(gravity)
    try:
        data = _read(name, suffix)
        draft = _draft(data, suffix, where, Files(name, [values.path(root) for root in roots]))
        draft.gravity = draft.gravity if down is None else down
        return finish(draft, base, strict)
    except ModelError as error:
        if str(error).startswith(where):
            raise
        placed = ModelError(f"{where}: {error}")
        placed.problems = error.problems
        raise placed from None


WRITERS = {".urdf": ("urdf_writer", "to_urdf"), ".toml": ("native", "to_toml"), ".json": ("native", "to_json")}


def write_model(model: Model, suffix: str, path: Any = None) -> str:
    """The model as text in the format of a suffix, as `load_model` reads it; also in a file, if it is named."""
    module, name = WRITERS[suffix]
    text: str = getattr(import_module(f"drevo.model.loaders.{module}"), name)(model)
    data = text.encode()
    if len(data) > xml.MAX_BYTES:
        raise ModelError(f"robot {model.name!r} as {suffix[1:].upper()}: {xml.too_many_bytes(len(data))}")
    if path is not None:
        with saving("a robot", path, (suffix,)) as file:
            file.write_bytes(data)
    return text


def _draft(data: bytes, suffix: str, source: str, files: Files) -> Draft:
    if suffix not in XML_SUFFIXES:
        native = import_module("drevo.model.loaders.native")
        made: Draft = native.draft_of(native.read_plain(data, suffix), source)
        return made
    doubts: list[str] = []
    root = xml.parse(data, doubts.append)
    if root.tag not in LOADERS:
        known = " or ".join(f"<{tag}>" for tag in LOADERS)
        raise ModelError(f"the root element is <{root.tag[:40]}> on line {root.line}; {known} is needed")
    draft: Draft = import_module(f"drevo.model.loaders.{LOADERS[root.tag]}").draft_of(root, source, files)
    draft.doubts[:0] = doubts
    return draft


def _read(path: str, suffix: str) -> bytes:
    """The bytes of a robot file."""
    if os.path.isdir(path):
        raise ModelError(f"a directory{_robots_in(path)}; name a robot file")
    if not os.path.lexists(path):
        raise ModelError(f"there is no such file{_meant(path)}")
    if suffix not in SUFFIXES:
        raise ModelError(f"a robot file ends in {', '.join(SUFFIXES)}, this one in {suffix or 'nothing'!r}")
    return read_regular_file(path, xml.MAX_BYTES)


def _robots_in(folder: str) -> str:
    """The robot files of a folder, as the middle of a sentence."""
    found = [name for name in _names(folder) if name.lower().endswith(SUFFIXES)]
    return f" with {listed(found)}" if found else " without a robot file"


def _meant(path: str) -> str:
    """The file in the same folder that was probably meant, or the part of the path that is missing."""
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        return f": there is no folder {folder!r}"
    close = get_close_matches(name, _names(folder or "."), 1)
    return f" (did you mean {os.path.join(folder, close[0])!r}?)" if close else ""


def _names(folder: str, most: int = 2000) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return sorted(entry.name for entry, _ in zip(found, range(most)))
    except OSError:
        return []
