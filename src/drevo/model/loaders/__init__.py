"""From a file to a Model: the format is found by suffix, XML formats by their root element."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from drevo.errors import ModelError
from drevo.io import xml
from drevo.model.description import Model, Vec
from drevo.model.validation import GRAVITY, Draft, finish

XML_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf")
SUFFIXES = (*XML_SUFFIXES, ".json", ".toml")
# root element -> the module of its loader, imported when a file needs it
LOADERS = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}


def load_model(
    path: str | os.PathLike[str],
    base: str = "fixed",
    gravity: Sequence[float] = GRAVITY,
    strict: bool = False,
) -> Model:
    """The Model that a file describes, on a base: "fixed", "floating" or "trunk".

    What cannot be computed or is ambiguous is refused with a ModelError that holds every problem; what is
    doubtful gives one DrevoWarning, or with `strict` a ModelError. The file's own gravity, where the format
    has one, yields to the argument unless that is the default. Nothing but this file is opened.
    """
    where, suffix = os.fspath(path), Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(
            f"{where}: a robot file ends in {', '.join(SUFFIXES)}, this one in {suffix or 'nothing'!r}"
        )
    down, data = _gravity(gravity), _read(where)
    try:
        return finish(_draft(data, suffix, down, where), base, strict)
    except ModelError as error:
        raise (error if str(error).startswith(where) else ModelError(f"{where}: {error}")) from None


def _draft(data: bytes, suffix: str, gravity: Vec, source: str) -> Draft:
    if suffix not in XML_SUFFIXES:
        native = import_module("drevo.model.loaders.native")
        made: Draft = native.draft_of(native.read(data, suffix), gravity, source)
        return made
    root = xml.parse(data)
    if root.tag not in LOADERS:
        known = " or ".join(f"<{tag}>" for tag in LOADERS)
        raise ModelError(f"the root element is <{root.tag[:40]}> on line {root.line}; {known} is needed")
    draft: Draft = import_module(f"drevo.model.loaders.{LOADERS[root.tag]}").draft_of(root, gravity, source)
    return draft


def _read(path: str) -> bytes:
    """The bytes of a plain file, one more than allowed at most."""
    try:
        if not os.path.isfile(path):  # a pipe or a device would never end
            raise ModelError(
                f"{path}: there is no such file" if not os.path.exists(path) else f"{path}: not a file"
            )
        with open(path, "rb") as file:
            return file.read(xml.MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error}); give a file that can") from None


def _gravity(gravity: Sequence[float]) -> Vec:
    try:
        x, y, z = (float(component) for component in gravity)
    except (TypeError, ValueError):
        raise ModelError(f"gravity is three numbers in m/s^2, not {gravity!r}") from None
    if not all(math.isfinite(component) for component in (x, y, z)):
        raise ModelError(f"gravity has a component that is not finite: {gravity!r}")
    return (x, y, z)
