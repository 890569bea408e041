"""Runs the doctor over the robots of installed packages, into the table of docs/doctor.md.

python tools/doctor.py
"""

from __future__ import annotations

import tempfile
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import drevo
from drevo.errors import DrevoError

PAGE = Path(__file__).parents[1] / "docs" / "doctor.md"
START, END = "<!-- written by tools/doctor.py -->\n", "<!-- until here -->"
PACKAGES = {"example-robot-data": ("robots", ".urdf"), "gymnasium": ("assets", ".xml")}


def files(package: str) -> list[tuple[str, Path]]:
    """Names and paths of a package's robots; none where it is not installed."""
    folder, suffix = PACKAGES[package]
    try:
        found = distribution(package).files or ()
    except PackageNotFoundError:
        return []
    wanted = [f for f in found if f.suffix == suffix and folder in f.parts]
    return sorted(("/".join(f.parts[f.parts.index(folder) + 1 :]), Path(str(f.locate()))) for f in wanted)


def row(name: str, path: Path, folder: Path) -> list[str]:
    """What is found in one file, and what is left of it after the repair."""
    try:
        found = drevo.check(path)
        after = drevo.check(path, fix=folder / path.name)
    except DrevoError as error:
        return [name, "", str(error).rpartition(": ")[2][:60], "", "", ""]
    cells = [told(found, severity) for severity in ("error", "warning", "hint")]
    left = sum(f.severity != "hint" for f in after)
    return [name, *cells, str(len(after.changes) or ""), str(left or "")]


def told(found: drevo.doctor.Findings, severity: str) -> str:
    """How many findings of each kind."""
    kinds = Counter(f.kind for f in found if f.severity == severity)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def tables() -> str:
    """A table for every package that is installed."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            rows = [row(name, path, Path(folder)) for name, path in files(package)]
            sound = sum(not "".join(r[1:3]) for r in rows)
            head = f"\n### {package} {distribution(package).version}" if rows else ""
            if head:
                parts += [head, "", f"{sound} of {len(rows)} files have neither an error nor a warning.", ""]
                parts += [
                    "| file | errors | warnings | hints | changes of --fix | left after it |",
                    "|" + "---|" * 6,
                ]
                parts += ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join(parts) + "\n\n"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    PAGE.write_text(before + START + tables() + END + rest.partition(END)[2], encoding="utf-8")
    print(PAGE)
