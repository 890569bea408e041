"""Additions that a robot file has no words for, from one beside it: TOML or JSON, lists of Drevo's own format."""

from __future__ import annotations

from pathlib import Path

from ...errors import ModelError
from ...io.files import read_regular_file
from ...io.xml import MAX_XML_BYTES
from ..draft import Draft
from . import native

KEYS = ("loops", "couplings", "tendons", "tendon_couplings", "contacts", "exclusions")


def read_beside(draft: Draft, path: str) -> None:
    """Enter the loops, couplings, tendons, ... of a file. Raises ModelError."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ModelError(f"loops: the file {path!r} ends in {suffix or 'nothing'!r}; give .toml or .json")
    try:
        plain = native.read_plain(read_regular_file(path, MAX_XML_BYTES), suffix)
    except ModelError as error:
        raise ModelError(f"loops: the file {path!r}: {error}") from None
    for key, rows in plain.items():
        if key == "drevo":
            continue
        if key not in KEYS or not isinstance(rows, list):
            raise ModelError(
                f"loops: the file {path!r} holds {key!r}; beside a robot stand lists of {', '.join(KEYS)}"
            )
        getattr(draft, key).extend(native.parts_of(key, rows, f"{key} of {path!r}", draft))
