"""Writes docs/coverage.md from what `make coverage` recorded: the lines and branches that the tests reach.

python tools/reached.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEAST = 95.0  # per cent of the lines
HEAD = """# Coverage

Written by `make coverage`, from the tests of `make test-all` and the processes they start. A branch is one way
out of a line with several. Left out, as no test can reach it: what only a type checker reads (`if TYPE_CHECKING`,
overloads, bodies of protocols), and the bodies of the typed methods, which stand for compiled ones. What runs in
processes that end without Python's leave, as some workers do, is not seen.

"""


def recorded() -> dict[str, Any]:
    """The report of all processes together."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        words = [sys.executable, "-m", "coverage"]
        if list(ROOT.glob(".coverage.*")):
            subprocess.run([*words, "combine", "--append", "-q"], cwd=ROOT, check=True)
        subprocess.run([*words, "json", "-q", "-o", str(file)], cwd=ROOT, check=True)
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def room(path: str) -> str:
    """The folder of the package in which a file lies."""
    parts = Path(path).parts
    inside = parts[parts.index("drevo") + 1 :]
    return inside[0] if len(inside) > 1 else "the root"


def row(name: str, summaries: list[dict[str, int]]) -> str:
    """One line of the table."""
    n, hit, ways, taken = (
        sum(s[k] for s in summaries)
        for k in ("num_statements", "covered_lines", "num_branches", "covered_branches")
    )
    return f"| {name} | {n} | {share(hit, n):.1f} | {ways} | {share(taken, ways):.1f} |"


def share(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


def text(found: dict[str, Any]) -> str:
    """The whole page."""
    files = {path: x["summary"] for path, x in found["files"].items()}
    rooms = defaultdict(list)
    for path, summary in files.items():
        rooms[room(path)].append(summary)
    low = sorted((share(s["covered_lines"], s["num_statements"]), path) for path, s in files.items())
    table = ["| room | lines | reached, % | branches | taken, % |", "|---|--:|--:|--:|--:|"]
    table += [row(name, rooms[name]) for name in sorted(rooms)]
    table += [row("**all**", list(files.values()))]
    least = [f"| `{path.split('drevo/')[-1]}` | {x:.1f} |" for x, path in low[:10]]
    foot = ["", "The files of which the least is reached:", "", "| file | lines, % |", "|---|--:|", *least]
    return HEAD + "\n".join([*table, *foot]) + "\n"


if __name__ == "__main__":
    found = recorded()
    (ROOT / "docs" / "coverage.md").write_text(text(found), encoding="utf-8")
    total = found["totals"]
    reached = share(total["covered_lines"], total["num_statements"])
    print(f"lines {reached:.1f} %, branches {share(total['covered_branches'], total['num_branches']):.1f} %")
    sys.exit(f"fewer than {LEAST} % of the lines are reached" if reached < LEAST else 0)
