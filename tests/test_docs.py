"""Every code block of the README and the docs runs; every link and every `make` target exists."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SINCE = {"jax": (3, 11)}  # packages of the extra `test` that older Pythons go without
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def blocks(page: Path, *languages: str) -> list[str]:
    return [code for language, code in BLOCK.findall(page.read_text(encoding="utf-8")) if language in languages]


def name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_has_a_language_that_is_tested(page: Path) -> None:
    assert {language for language, _ in BLOCK.findall(page.read_text())} <= {"python", "sh", "text"}


def _slow(what: Any, walks: bool) -> Any:
    """Walks take minutes, and test_walking.py takes some."""
    return pytest.param(what, marks=pytest.mark.slow) if walks else what


@pytest.mark.parametrize(
    "page", [_slow(p, p.name == "walking.md") for p in PAGES if blocks(p, "python")], ids=name
)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one program."""
    codes = blocks(page, "python")
    for package, version in SINCE.items():
        if sys.version_info < version and re.search(
            rf"^(import|from) {package}\b", "\n".join(codes), re.MULTILINE
        ):
            pytest.skip(f"{package} needs a newer Python")
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "docs"}
    for code in codes:
        exec(compile(code, str(page), "exec"), space)


def commands() -> list[str]:
    lines = [line for page in PAGES for code in blocks(page, "sh") for line in code.splitlines()]
    return sorted({line.split("#")[0].strip() for line in lines} - {""})


@pytest.mark.parametrize("command", [_slow(c, c.startswith("drevo walk")) for c in commands()])
def test_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.cli.main import app

    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    if words[0] == "make":
        assert words[1] in TARGETS
        return
    if words[0] == "pip":  # what it installs is in the environment of the tests
        assert words[1] == "install" and all(metadata.version(w) for w in words[2:])
        return
    assert words[0] == "drevo"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        made = target in ("gallery/index.md", "reference/index.md")  # by `make docs`
        assert made or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_private_is_named(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"/(home|work|tmp|Users)/|\.\./shared", text)


SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *PAGES]
DOTTED = re.compile(r"(?<![\w./])drevo((?:\.[A-Za-z_]\w*)+)")


def test_every_name_that_is_spoken_of_exists() -> None:
    """Docstrings, sentences and pages name what can be reached by that name."""
    names = {found.group(0) for path in SOURCES for found in DOTTED.finditer(_spoken(path))}
    assert "drevo.load" in names
    assert [x for x in sorted(names) if not _exists(x)] == []


def _spoken(path: Path) -> str:
    """The text of a file; of the table of names what stands under "new"."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^\|[^|]*\|", "", text, flags=re.MULTILINE) if path.name == "names.md" else text


def _exists(dotted: str) -> bool:
    at: Any = importlib.import_module("drevo")
    parts = dotted.split(".")
    for k, part in enumerate(parts[1:], 2):
        if part in getattr(at, "__dataclass_fields__", ()):
            return k == len(parts)
        try:
            at = getattr(at, part)
        except AttributeError:
            try:
                at = importlib.import_module(".".join(parts[:k]))
            except ImportError:
                return False
    return True
