"""What is shipped: a description that reads the same anywhere, and sources that hold what their tests need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_description_needs_nothing_beside_it() -> None:
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)|(?:src|href)=\"([^\"]*)\"", text)
    assert all(link.startswith("https://") for pair in links for link in pair if link)
    assert PROJECT["description"].split(":")[0].split()[-1] == "robots"


def test_every_file_is_shipped() -> None:
    """Folders at the root that git knows are in MANIFEST.in, or setuptools takes them by itself."""
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked source distribution has no history")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {line.split("/")[0] for line in done.stdout.splitlines()}
    shipped = set(re.findall(r"^graft (\w+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE))
    included = re.findall(r"^include (.*)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    own = {"src", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"}
    hidden = {name for name in names if name.startswith(".")}
    assert names - hidden - own == shipped | {w for line in included for w in line.split()}


@pytest.mark.needs("setuptools")  # of an environment since Python 3.12 no part
def test_a_build_folder_of_before_is_not_packed(tmp_path: Path) -> None:
    """By the command of setup.py on a small package: what pyproject.toml says needs a newer setuptools."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    for file in ("src/small/__init__.py", "src/small/new.py", "build/lib/small/old.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    command = [sys.executable, "setup.py", "--quiet", "build"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert {x.name for x in (tmp_path / "build/lib/small").iterdir()} == {"__init__.py", "new.py"}


def test_extras_that_sentences_name_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"drevo\[([\w,]+)\]", path.read_text(encoding="utf-8")):
            assert set(name.split(",")) <= {*extras}, path
