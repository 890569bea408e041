"""The share of the models of installed packages of which all that may touch has a rule in steps.

    python benchmarks/contact_census.py dm_control gymnasium_robotics metaworld robosuite

Counted are files that MuJoCo loads by themselves and that have freedoms, with meshes as hulls of 16 corners. Needs
mujoco; a package that is not installed is passed over.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import mujoco

import drevo
from drevo.contact.pairs import left_out_of_contact

HULL_CORNERS = 16


def verdict(path: Path) -> tuple[str, list[str]]:
    """One word for a file, and what passes through other things in its steps."""
    try:
        freedoms = mujoco.MjModel.from_xml_path(str(path)).nv
    except ValueError:
        return "not by itself", []
    if not freedoms:
        return "no freedom", []
    try:
        model = drevo.load(str(path), hulls=HULL_CORNERS).model
    except drevo.DrevoError as error:
        return "refused", [str(error)[:80]]
    notes = left_out_of_contact(model, searched=True)
    return ("left out" if notes else "ruled"), [note.split(" '")[0] for note in notes]


def census(package: str) -> None:
    """Prints one package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        print(f"{package}: not installed")
        return
    words, reasons = Counter[str](), Counter[str]()
    for path in sorted(Path(next(iter(spec.submodule_search_locations))).rglob("*.xml")):
        word, why = verdict(path)
        words[word] += 1
        reasons.update(why)
    counted = words["ruled"] + words["left out"] + words["refused"]
    print(f"{package}: {words['ruled']} of {counted} ruled; {dict(words)}; {dict(reasons)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or ["gymnasium"]:
        census(name)
