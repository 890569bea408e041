"""From a Model to a file's text: the format is found by suffix."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ...errors import ModelError
from ...io import xml
from ..description import Model
from .writing import Written

WRITERS = {  # suffix -> the module that writes the format, and its function
    ".urdf": ("urdf_writer", "to_urdf"),
    ".xml": ("mjcf_writer", "to_mjcf"),
    ".mjcf": ("mjcf_writer", "to_mjcf"),
    ".sdf": ("sdf_writer", "to_sdf"),
    ".toml": ("native", "to_toml"),
    ".json": ("native", "to_json"),
}
WRITTEN_SUFFIXES = tuple(WRITERS)


def write_model(model: Model, suffix: str) -> Written:
    """The robot as the format of a suffix has it."""
    module, function = WRITERS[suffix]
    if module == "native":
        return Written(model)
    written: Written = getattr(import_module(f"drevo.model.loaders.{module}"), function)(model)
    return written


def text_of(written: Written, suffix: str, certificate: Mapping[str, str | float] | None = None) -> str:
    """The text of a file, with what it says of its own dynamics."""
    module, function = WRITERS[suffix]
    if module == "native":
        text: str = getattr(import_module("drevo.model.loaders.native"), function)(written.model, certificate)
    else:
        says = ", ".join(f"{key} {value}" for key, value in (certificate or {}).items())
        text = "\n".join([*([f"<!-- drevo certificate: {says} -->"] if says else []), *written.lines, ""])
    if (size := len(text.encode())) > xml.MAX_XML_BYTES:
        raise ModelError(f"robot {written.model.name!r} as {suffix[1:].upper()}: {xml.too_many_bytes(size)}")
    return text
