"""The share of the models of installed packages of which all that may touch has a rule in steps.

    python benchmarks/contact_census.py dm_control gymnasium_robotics metaworld robosuite --records there

Counted are files that MuJoCo loads by themselves and that have freedoms, with meshes as their whole hulls. With
--steps each that is ruled steps from 60 random states that touch and 100 after its start: velocities beside
MuJoCo's, and where they are apart the kinds of pairs that touch, or that MuJoCo's own step moves as far if its
state is moved by 1e-12 and its search for places ends earlier. Each file has a process, --limit seconds and a
record in --records, by which a run that was stopped goes on. Needs mujoco; a package that is not installed is
passed over.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import drevo
from drevo.contact.pairs import left_out_of_contact
from drevo.model.loaders.solids import MOST_SUPPORTS

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from contact_cases import as_ours

START, TOUCHING, EPISODE = 100, 60, 50  # states after the start and in all that touch, steps until another start
AGREE = 1e-9  # of a step's velocity, of the largest or of 1
SHARE = 0.1  # of a difference: where MuJoCo's own step moves by more it has no certain result
METHODS = {0: "euler", 1: "rk4", 3: "implicitfast"}  # MuJoCo's integrators


def verdict(path: Path, stepping: bool) -> dict[str, Any]:
    """One word for a file, what passes through other things in its steps, and how these agree."""
    try:
        m: Any = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return {"word": "not by itself"}
    if not m.nv:
        return {"word": "no freedom"}
    try:
        robot = drevo.load(str(path), hulls=MOST_SUPPORTS)
        notes = left_out_of_contact(robot.model, searched=True)
        if notes or not stepping:
            return {"word": "left out" if notes else "ruled", "why": [note.split(" '")[0] for note in notes]}
        return {"word": "ruled", **steps(m, robot)}
    except drevo.DrevoError as error:
        return {"word": "refused", "why": [str(error)[:80]]}


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


def steps(m: Any, robot: drevo.Robot) -> dict[str, Any]:
    """How far velocities of a step are from MuJoCo's, and what touches where they are apart."""
    m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations, m.opt.ccd_tolerance = 0.0, 100, 100, 1e-14
    m.opt.ccd_iterations = 500
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    method = METHODS.get(int(m.opt.integrator), "implicitfast")
    began = time.process_time()
    step = drevo.compile(robot, "step", dt=m.opt.timestep, ground=None, method=method)
    prepared, off, reasons = time.process_time() - began, list[float](), Counter[str]()
    for q, v, q1, v1, pairs in states(m):
        theirs = as_ours(m, q1, v1)[1]
        ours = step(*as_ours(m, q, v, np.zeros(m.nv))).v1
        off.append(float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())))
        if not off[-1] <= AGREE:
            uncertain = moved(m, q, v, v1) > SHARE * np.abs(ours - theirs).max()
            reasons["MuJoCo's moves" if uncertain else "+".join(sorted(pairs)) or "nothing touches"] += 1
    return {"off": off, "reasons": reasons, "prepared": round(prepared, 1)}


def moved(m: Any, q: Any, v: Any, v1: Any) -> float:
    """How far MuJoCo's own step moves where its state moves by 1e-12, and its search ends a hundred times earlier:
    far at ties, as of two equal ways out, and where solids are curved."""
    d, rng, most, given = mujoco.MjData(m), np.random.default_rng(0), 0.0, m.opt.ccd_tolerance
    for k in range(8):
        mujoco.mj_resetData(m, d)
        m.opt.ccd_tolerance = given * (1.0, 100.0)[k % 2]
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv), 1e-12)
        mujoco.mj_step(m, d)
        most = max(most, float(np.abs(d.qvel - v1).max()))
    m.opt.ccd_tolerance = given
    return most


def told(found: dict[str, Any]) -> str:
    """One line of a record."""
    if "off" not in found:
        return f"{found['word']} {'; '.join(found.get('why', []))}"
    off = np.array(found["off"])
    apart = int((~(off <= AGREE)).sum())
    return (
        f"{apart} of {len(off)} apart, median {np.median(off):.0e}, worst {off.max():.0e} {found['reasons'] or ''}"
    )


def record(path: Path, kept: Path | None, stepping: bool, limit: float) -> dict[str, Any]:
    """What is known of a file, from its record or of a process of its own."""
    if kept is not None and kept.exists():
        return dict(json.loads(kept.read_text()))
    command = [sys.executable, __file__, "--one", str(path), *(["--steps"] if stepping else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        found = {"word": "failed", "why": done.stderr.splitlines()[-1:]}
        if not done.returncode:
            found = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        found = {"word": "out of time", "why": [f"{limit:g} s"]}
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found))
    return dict(found)


def census(package: str, given: argparse.Namespace) -> None:
    """Prints one package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        print(f"{package}: not installed")
        return
    root = Path(next(iter(spec.submodule_search_locations)))
    words, reasons = Counter[str](), Counter[str]()
    for path in sorted(root.rglob("*.xml")):
        name = str(path.relative_to(root))
        kept = given.records and Path(given.records) / package / (name.replace("/", "-") + ".json")
        found = record(path, kept, given.steps, given.limit)
        words[found["word"]] += 1
        reasons.update(found.get("why", []))
        if given.steps and found["word"] not in ("not by itself", "no freedom"):
            print(f"  {name}: {told(found)}", flush=True)
    counted = words.total() - words["not by itself"] - words["no freedom"]
    print(f"{package}: {words['ruled']} of {counted} ruled; {dict(words)}; {dict(reasons)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=["gymnasium"])
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--records", help="a folder of records, one of each file")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a file")
    parser.add_argument("--one", type=Path, help="a file alone")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(verdict(arguments.one, arguments.steps)))
    else:
        for each in arguments.packages:
            census(each, arguments)
