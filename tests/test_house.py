"""The drawing of the house is what its script draws; imports go down; what the architecture names is there."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402


def test_the_drawing_is_current() -> None:
    """Where this fails: python tools/house.py."""
    assert (ROOT / "docs" / "house.svg").read_text(encoding="utf-8") == house.svg()
    ET.fromstring(house.svg())


def test_no_room_imports_one_above_it_late_or_early() -> None:
    rooms = house.layers()
    for room, below in house.imports().items():
        assert {other for other in below if rooms.index(other) < rooms.index(room)} == set(), room


def test_every_room_is_in_the_house_and_says_what_it_is() -> None:
    rooms = {p.stem for p in house.SOURCES.glob("*.py")} | {
        p.parent.name for p in house.SOURCES.glob("*/__init__.py")
    }
    assert rooms - {"__init__", "__main__"} == set(house.layers())
    assert all(house._about(room) for room in house.layers())


def test_files_that_the_guides_name_exist() -> None:
    for page in ("architecture.md", "extending.md", "one-number.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", text):
            assert (house.SOURCES / name).exists() or (ROOT / name).exists(), f"{page}: {name}"
