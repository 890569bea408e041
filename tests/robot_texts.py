"""Models out of texts, by the loaders alone."""

from __future__ import annotations

from drevo.io import xml
from drevo.model.description import Model
from drevo.model.draft import STANDARD_GRAVITY
from drevo.model.loaders import native, urdf
from drevo.model.validation import finish


def parse_urdf(
    data: bytes,
    base: str = "fixed",
    gravity: tuple[float, ...] = STANDARD_GRAVITY,
    strict: bool = False,
    source: str = "",
) -> Model:
    doubts: list[str] = []
    draft = urdf.draft_of(xml.parse(data, doubts.append), source)
    draft.gravity, draft.doubts = gravity, doubts + draft.doubts  # type: ignore[assignment]
    return finish(draft, base, strict)


def from_json(text: str | bytes) -> Model:
    return _native(text, ".json")


def from_toml(text: str | bytes) -> Model:
    return _native(text, ".toml")


def _native(text: str | bytes, suffix: str) -> Model:
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return finish(native.draft_of(native.read_plain(data, suffix), ""), "fixed", False)
