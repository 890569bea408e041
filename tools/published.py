"""Writes the verdicts on the robot files of installed packages into docs/robots.md, each beside its peer's.

python tools/published.py [--in FOLDER] [--list] [PACKAGE ...]

Every file with moving joints that its format's own library loads (MJCF by MuJoCo, URDF by Pinocchio, SDF by Drake)
is loaded here and compared, model by model, see `agreement`. FOLDER: site-packages of another environment, or any
folder whose folders are packages.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agreement import PEERS, NotForUs

import drevo
from drevo.model.loaders import load_model

PAGE = Path(__file__).parents[1] / "docs" / "robots.md"
MJCF = "mujoco"  # the root element
TOLERANCE = 1e-10
MARKS = "<!-- packages -->", "<!-- /packages -->"
SUFFIXES = (".xml", ".mjcf", ".urdf", ".sdf", ".world")
ROOT = re.compile(rb"<(mujoco|robot|sdf)[\s>]")
LONG = 150
AXES = 1e-7
DIFFERS = "agrees to 1e-8: MuJoCo finds the principal axes of a mesh no closer"

HEAD = """
Every file with moving joints that the library made for its format reads (MJCF: MuJoCo, URDF: Pinocchio, SDF:
Drake), of packages that pip or apt installs: poses, the mass matrix and the bias at 20 states, beside that
library's (`python tools/published.py` writes this table).
"""


class Verdict(NamedTuple):
    """What became of a file: not for us, refused, warned, loaded; why; the worst difference to the peer."""

    path: str
    kind: str
    why: str = ""
    worst: float = 0.0


def judged(path: str, tag: str) -> Verdict:
    """One file, read by the library of its format and here."""
    _, _, models, compare = PEERS[tag]
    worst, said = 0.0, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = list(models(path))
            for name, theirs in found:
                ours = load_model(path, model=name if len(found) > 1 else "")
                whole = {"whole": not any("is not read" in str(w.message) for w in caught)} if tag == MJCF else {}
                worst = max(worst, compare(ours, theirs, **whole))
        except NotForUs as why:
            return Verdict(path, str(why))
        except drevo.DrevoError as error:
            return Verdict(path, "refused", str(error).removeprefix(f"{path}: "))
    said = next((str(w.message) for w in caught if issubclass(w.category, drevo.DrevoWarning)), "")
    return Verdict(path, "warned" if said else "loaded", said, worst)


# --- the page ----------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", help="of them only these; all by default")
    parser.add_argument("--in", dest="folders", action="append", required=True, type=Path)
    parser.add_argument("--formats", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--list", action="store_true", help="say what became of every file, and leave the page")
    asked = parser.parse_args()
    found: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    with ProcessPoolExecutor(max_tasks_per_child=200) as pool:
        held = [
            (folder.name, tag, path)
            for folder in sorted(folder for top in asked.folders for folder in top.iterdir() if folder.is_dir())
            if not asked.packages or folder.name in asked.packages
            for path, tag in robot_files(folder)
            if tag in asked.formats
        ]
        for (package, tag, _), verdict in zip(held, pool.map(_judged, held, chunksize=4), strict=True):
            found[package, tag].append(verdict)
    if asked.list:
        for verdict in (v for verdicts in found.values() for v in verdicts):
            sys.stdout.write(f"{verdict.kind:20} {verdict.worst:8.1e} {verdict.path} {verdict.why[:LONG]}\n")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{page(found)}{MARKS[1]}{after}", encoding="utf-8")


def _judged(held: tuple[str, str, str]) -> Verdict:
    return judged(held[2], held[1])


def robot_files(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a package with the root elements that they begin with."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        root = ROOT.search(path.read_bytes()[:100_000]) if path.is_file() else None
        if root and (tag := root[1].decode()) in PEERS:
            yield str(path), tag


def page(found: dict[tuple[str, str], list[Verdict]]) -> str:
    rows = [
        HEAD,
        "| package | format | files | load | of these with a warning | agree to 1e-10 | refused |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    total: Counter[str] = Counter()
    for (package, tag), verdicts in found.items():
        one = tally(verdicts)
        total += one
        rows += [row(f"{package} | {PEERS[tag][0]}", one)] if one["files"] else []
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for verdict in (v for verdicts in found.values() for v in verdicts):
        if why := reason(verdict):
            reasons[why].append(Path(verdict.path).name)
    told = [f"| {', '.join(sorted(names))} | {why} |" for why, names in reasons.items()]
    table = ["", "| file | why |", "|---|---|", *told] if told else []
    return "\n".join([*rows, row("together | ", total), *table, ""])


def reason(verdict: Verdict) -> str:
    """Why a file is not among those that agree."""
    if verdict.kind == "refused":
        return " ".join(re.sub(r"\d+", "#", verdict.why).split())[:LONG]
    if verdict.worst <= TOLERANCE:
        return ""
    return f"loads; {DIFFERS}" if verdict.worst < AXES else "loads, with other dynamics"


def tally(verdicts: list[Verdict]) -> Counter[str]:
    kinds = Counter(v.kind for v in verdicts)
    ours = kinds["loaded"] + kinds["warned"]
    return Counter(
        files=ours + kinds["refused"],
        load=ours,
        warned=kinds["warned"],
        agree=sum(v.worst <= TOLERANCE for v in verdicts if v.kind in ("loaded", "warned")),
        refused=kinds["refused"],
    )


def row(name: str, one: Counter[str]) -> str:
    return f"| {name} | {one['files']} | {one['load']} | {one['warned']} | {one['agree']} | {one['refused']} |"


if __name__ == "__main__":
    main()
