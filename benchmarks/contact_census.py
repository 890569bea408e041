"""The share of the models of installed packages of which all that may touch has a rule in steps.

    python benchmarks/contact_census.py dm_control gymnasium_robotics metaworld robosuite

Counted are files that MuJoCo loads by themselves and that have freedoms, with meshes as their whole hulls. With
--steps each that is ruled steps from 60 random states that touch and 100 after its start: velocities beside
MuJoCo's, and the kinds of pairs that touch where they are apart. Needs mujoco; a package that is not installed is
passed over.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import drevo
from drevo.contact.pairs import left_out_of_contact

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from contact_cases import as_ours

HULL_CORNERS = 10_000  # more than any has
START, TOUCHING, EPISODE = 100, 60, 50  # states after the start and in all that touch, steps until another start
AGREE = 1e-9  # of a step's velocity, of the largest or of 1
METHODS = {0: "euler", 1: "rk4", 3: "implicitfast"}  # MuJoCo's integrators


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


def states(m: Any) -> list[Any]:
    """Positions and velocities, those a step later, and the kinds of pairs that touch, without actuators."""
    d, rng, out, touching = mujoco.MjData(m), np.random.default_rng(0), list[Any](), 0
    for k in range(100 * EPISODE):
        if k >= START and k % EPISODE == 0:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(size=m.nv)
        before = d.qpos.copy(), d.qvel.copy()
        mujoco.mj_step(m, d)
        pairs = {
            "-".join(sorted(mujoco.mjtGeom(int(m.geom_type[g])).name[7:].lower() for g in (c.geom1, c.geom2)))
            for c in d.contact
        }
        if k < START or (pairs and rng.uniform() < 0.2):
            out.append((*before, d.qpos.copy(), d.qvel.copy(), pairs))
            touching += k >= START
        if touching == TOUCHING:
            break
    return out


def steps(path: Path) -> str:
    """How far velocities of a step are from MuJoCo's, and where they are apart."""
    m: Any = mujoco.MjModel.from_xml_path(str(path))
    m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ccd_tolerance = 0.0, 100, 100, 1e-10
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    method = METHODS.get(int(m.opt.integrator), "implicitfast")
    step = drevo.compile(
        drevo.load(str(path), hulls=HULL_CORNERS), "step", dt=m.opt.timestep, ground=None, method=method
    )
    apart, worst, reasons = 0, [0.0], Counter[str]()
    given = states(m)
    for q, v, q1, v1, pairs in given:
        theirs = as_ours(m, q1, v1)[1]
        ours = step(*as_ours(m, q, v, np.zeros(m.nv))).v1
        worst.append(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
        if worst[-1] > AGREE:
            apart += 1
            reasons.update(pairs or {"nothing touches"})
    return f"{apart} of {len(given)} apart, median {np.median(worst):.0e}, worst {max(worst):.0e} {dict(reasons)}"


def census(package: str, stepping: bool) -> None:
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
        if stepping and word == "ruled":
            try:
                print(f"  {path.name}: {steps(path)}", flush=True)
            except (drevo.DrevoError, ValueError) as error:
                print(f"  {path.name}: {str(error)[:100]}", flush=True)
    counted = words["ruled"] + words["left out"] + words["refused"]
    print(f"{package}: {words['ruled']} of {counted} ruled; {dict(words)}; {dict(reasons)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    names = [x for x in sys.argv[1:] if x != "--steps"]
    for name in names or ["gymnasium"]:
        census(name, "--steps" in sys.argv)
