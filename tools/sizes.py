"""Writes docs/sizes.md: how large the package is, room by room, and what of it is older than a commit; its
functions, its wheel and its import.

python tools/sizes.py
"""

from __future__ import annotations

import ast
import io
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "drevo"
START = "import sys; before = set(sys.modules); import drevo; print(len(set(sys.modules) - before))"
TIMES = "import numpy, time; start = time.perf_counter(); import drevo; print(time.perf_counter() - start)"
SINCE, ALIKE = "45c74de", (30, 10)  # the last commit of 21 November 2026; percent of lines
HEAD = f"""# Sizes

Written by `make sizes` for every release. Code: lines that are neither blank nor comment nor docstring. Lengths of
functions are in lines, without docstrings.

The last two columns are lines in files that git follows back to the state {SINCE}, moved, split or rewritten
since: {ALIKE[0]} % or {ALIKE[1]} % of their lines are alike at least. The first leaves out small parts that were
split off, the second takes in what merely looks alike; what an older file learned since counts as old in both.

"""


def code_lines(source: str) -> set[int]:
    """The lines with code on them."""
    tree, skip = ast.parse(source), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            skip |= docstring(node)
    dull = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in dull:
            found |= set(range(token.start[0], token.end[0] + 1))
    return found - skip


def docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The lines of the docstring of a definition."""
    if ast.get_docstring(node, clean=False) is None:
        return set()
    return set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))


def functions(source: str) -> list[int]:
    """Lengths of all functions and methods."""
    found = [n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [(n.end_lineno or 0) - n.lineno + 1 - len(docstring(n)) for n in found]


def run(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def wheel() -> int:
    """Bytes of the wheel, made from a copy: a build folder of before would be packed with it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "drevo"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "demo", "tests", "*.egg-info"))
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(copy))
        return next(Path(folder).glob("*.whl")).stat().st_size


def followed(alike: int) -> set[str]:
    """Files that come from one of the state SINCE."""
    how = ("--name-status", "--find-copies-harder", "-l0", f"-M{alike}%", f"-C{alike}%")
    told = [line.split("\t") for line in run("git", "diff", *how, SINCE, "--", "src").splitlines()]
    new = {name for status, *_, name in told if status.startswith("A")}
    return set(run("git", "ls-files", "src").splitlines()) - new


def before() -> int:
    """Lines of the state SINCE."""
    names = [x for x in run("git", "ls-tree", "-r", "--name-only", SINCE, "src").splitlines() if x.endswith(".py")]
    return sum(run("git", "show", f"{SINCE}:{name}").count("\n") for name in names)


def text() -> str:
    """The whole page."""
    lines, code, files, lengths = Counter[str](), Counter[str](), defaultdict[str, int](int), list[int]()
    old, older = [Counter[str]() for _ in ALIKE], [followed(alike) for alike in ALIKE]
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).parts
        room, source = "/".join(inside[:-1][:2]) or "the root", path.read_text(encoding="utf-8")
        files[room] += 1
        lines[room] += source.count("\n")
        code[room] += len(code_lines(source))
        lengths += functions(source)
        for found, names in zip(old, older):
            found[room] += source.count("\n") * (path.relative_to(ROOT).as_posix() in names)
    table = [
        f"| room | files | lines | code | of {SINCE}, {ALIKE[0]} % | {ALIKE[1]} % |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    table += [f"| {room} | {files[room]} | {lines[room]} | {code[room]} | {old[0][room]} | {old[1][room]} |"
              for room in sorted(files)]  # fmt: skip
    sums = (sum(files.values()), *(x.total() for x in (lines, code, *old)))
    table += [f"| **all** | {' | '.join(map(str, sums))} |", f"| {SINCE} | | {before()} | | | |"]
    p50, p90, p99 = np.percentile(lengths, [50, 90, 99])
    seconds = min(float(run(sys.executable, "-c", TIMES)) for _ in range(5))
    rest = [
        "", "| | |", "|---|--:|",
        f"| functions | {len(lengths)} |",
        f"| lines of a function: p50, p90, p99, most | {p50:.0f}, {p90:.0f}, {p99:.0f}, {max(lengths)} |",
        f"| lines of the tests | {sum(p.read_text().count(chr(10)) for p in (ROOT / 'tests').glob('*.py'))} |",
        f"| wheel, kB | {wheel() / 1000:.0f} |",
        f"| `import drevo` after numpy, ms (least of 5) | {1000 * seconds:.0f} |",
        f"| modules that it loads | {int(run(sys.executable, '-c', START))} |",
    ]  # fmt: skip
    return HEAD + "\n".join([*table, *rest]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "sizes.md").write_text(text(), encoding="utf-8")
