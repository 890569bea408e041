"""The reference covers every public name, with shapes and units; every page stands in a table of contents."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import drevo
from drevo.model.quantities import CATALOGUE

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import api_pages  # noqa: E402

# modules that the reference cannot be without, and which no other package is needed for
PLAIN = [m for m in api_pages.MODULES if m not in ("drevo.jax", "drevo.torch", "drevo.casadi")]
SHAPE = re.compile(r"\(\.\.\.\)|\((?:\.\.\., |n, |B, |k, )?[a-z0-9 +*]+(?:, [a-z0-9 +*]+)*,?\)|nq|nv|scalar")
UNIT = re.compile(r"(?<!['\w])(?:rad|m|kg|N|N m|J|W|s|Hz|m/s|1/s|SI)\b")
PUBLIC_MODULES = set(drevo._MODULES)


def test_every_public_module_has_a_page() -> None:
    assert {f"drevo.{name}" for name in PUBLIC_MODULES} - {"drevo.design"} == set(api_pages.MODULES) - {"drevo"}


@pytest.mark.parametrize("module", PLAIN)
def test_every_public_name_is_documented(module: str) -> None:
    found = list(api_pages.entries(module))
    names = {entry.name for entry in found}
    assert {f"{module}.{name}" for name in api_pages.public(module)} <= names
    silent = [
        e.name for e in found if e.kind in ("function", "class", "method", "property") and not e.text.strip()
    ]
    assert silent == []
    text = api_pages.page(module)
    assert all(f"}} {name}" in text for name in names)


def test_every_quantity_says_shapes_units_and_errors() -> None:
    about = {entry.name: entry.text for entry in api_pages.entries("drevo")}
    for name in CATALOGUE:
        text = about[f"drevo.Robot.{name}"]
        assert SHAPE.search(text) and UNIT.search(text), (name, text)
        assert re.search(r"^Raises .*Error", text, re.MULTILINE) or CATALOGUE[name].options, name


ARRAYS = re.compile(r"\b(?:Array|ArrayLike)\b")


def test_what_takes_or_gives_arrays_says_their_shapes() -> None:
    """Counted over all functions and methods whose signature has an array."""
    said, silent = 0, []
    for module in PLAIN:
        classes = {e.name: e.text for e in api_pages.entries(module) if e.kind == "class"}
        for entry in api_pages.entries(module):
            if entry.kind in ("function", "method") and ARRAYS.search(entry.signature):
                text = entry.text + classes.get(entry.name.rpartition(".")[0], "")
                if SHAPE.search(text) or UNIT.search(text):
                    said += 1
                else:
                    silent.append(entry.name)
    assert said > 80 and silent == []


def test_every_page_stands_in_a_table_of_contents() -> None:
    pages = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index", "package"}
    listed = set()
    for page in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^:::\{toctree\}\n(.*?)^:::", page.read_text(encoding="utf-8"), re.M | re.S):
            listed |= {line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")}
    assert pages - listed == set() and listed - pages == {"reference/index", "gallery/index"}


def test_docstrings_are_no_markup() -> None:
    assert api_pages.markdown("a *b* |c| `d_e` <f> - g\n- h\n1. i") == (
        "a \\*b\\* \\|c\\| `d_e` \\<f\\> - g\n\\- h\n1\\. i"
    )
    assert api_pages.markdown("a\n>>> b * c\n... d\ne") == "a\n\n```text\n>>> b * c\n... d\n```\ne"
    given = api_pages.signature(drevo.load)
    assert given.startswith("(source: Any, base: str = 'fixed', gravity: Sequence[float] | None = None"), given
