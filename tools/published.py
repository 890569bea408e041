"""Writes the verdicts on the robot files of installed packages into docs/robots.md, each beside its peer's.

python tools/published.py [--in FOLDER] [--list] [PACKAGE ...]

Every MJCF file with moving joints that MuJoCo loads is loaded here and compared: the mass matrix, the bias,
the poses of all named bodies, at 20 random states. FOLDER: site-packages of another environment.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import drevo
from drevo.mechanics.algorithms import inverse_dynamics, kinematics
from drevo.mechanics.algorithms.inertia_matrix import mass_matrix
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Model
from drevo.model.loaders import load_model

PAGE = Path(__file__).parents[1] / "docs" / "robots.md"
PACKAGES = (
    *("brax", "dm_control", "gym_aloha", "gymnasium", "gymnasium_robotics", "mani_skill", "metaworld", "mujoco"),
    *("mujoco_playground", "robohive", "robosuite"),
)
STATES, TOLERANCE = 20, 1e-10
MARKS = "<!-- packages -->", "<!-- /packages -->"
LONG = 150
AXES = 1e-7
DIFFERS = "agrees to 1e-8: MuJoCo finds the principal axes of a mesh no closer"


HEAD = """
Every file with moving joints that MuJoCo itself reads, of packages that pip installs: poses, the mass matrix
and the bias at 20 states, beside MuJoCo's (`python tools/published.py` writes this table).
"""


class Verdict(NamedTuple):
    """What became of a file: not for us, refused, warned, loaded; why; the worst difference to the peer."""

    path: str
    kind: str
    why: str = ""
    worst: float = 0.0


def judged(path: str) -> Verdict:
    """One MJCF file, read by MuJoCo and here."""
    try:
        theirs = mujoco.MjModel.from_xml_path(path)
    except ValueError:
        return Verdict(path, "not read by the peer")
    if not theirs.njnt:
        return Verdict(path, "without joints")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ours = load_model(path)
        except drevo.DrevoError as error:
            return Verdict(path, "refused", str(error).removeprefix(f"{path}: "))
    worst = compared(ours, theirs)
    return Verdict(path, "warned" if caught else "loaded", str(caught[0].message) if caught else "", worst)


# --- against MuJoCo ----------------------------------------------------------------------------------------------


def compared(ours: Model, theirs: Any) -> float:
    """The worst relative difference of M, the bias and the poses; infinite where the joints are others."""
    if (ours.nq, ours.nv) != (theirs.nq, theirs.nv):
        return float("inf")
    tree, data, rng = build_tree(ours), mujoco.MjData(theirs), np.random.default_rng(0)
    return max(difference(ours, tree, theirs, data, rng) for _ in range(STATES))


def difference(ours: Model, tree: Tree, theirs: Any, data: Any, rng: Any) -> float:
    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M)
    q, turns, shift = states(theirs, data)
    v = turns.T @ data.qvel
    own = np.array(mass_matrix(tree, list(q)))
    bias = np.array(inverse_dynamics.bias(tree, list(q), list(v)))
    bias = turns @ (bias + (own - np.diag(theirs.dof_armature)) @ shift)  # a rotor's inertia does not turn with it
    own = turns @ own @ turns.T
    poses = dict(zip(kinematics.moving_links(tree), kinematics.poses(tree, list(q))))
    apart = [
        np.abs(np.array(poses[name])[:3, 3] - data.xpos[i]).max()
        + np.abs(np.array(poses[name])[:3, :3] - data.xmat[i].reshape(3, 3)).max()
        for i in range(1, theirs.nbody)
        if (name := theirs.body(i).name) in poses
    ]
    size = max(1.0, np.abs(data.xpos).max())
    largest = max(np.abs(data.qfrc_bias).max(), np.abs(M).max())
    return float(
        max(
            np.abs(M - own).max() / np.abs(M).max(),
            np.abs(bias - data.qfrc_bias).max() / largest,
            max(apart, default=0.0) / size,
        )
    )


def states(theirs: Any, data: Any) -> tuple[Any, Any, Any]:
    """q with quaternions xyzw; v_theirs = turns v_ours; what the turning axes of a free joint add to a_ours."""
    q, turns, shift = data.qpos.copy(), np.eye(theirs.nv), np.zeros(theirs.nv)
    for kind, at, dof in zip(theirs.jnt_type, theirs.jnt_qposadr, theirs.jnt_dofadr):
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            q[at : at + 4] = np.roll(q[at : at + 4], -1)
        elif kind == mujoco.mjtJoint.mjJNT_FREE:
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, q[at + 3 : at + 7])
            R = R.reshape(3, 3)
            q[at + 3 : at + 7] = np.roll(q[at + 3 : at + 7], -1)
            turns[dof : dof + 3, dof : dof + 3] = R
            shift[dof : dof + 3] = -np.cross(data.qvel[dof + 3 : dof + 6], R.T @ data.qvel[dof : dof + 3])
    return q, turns, shift


# --- the page ----------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--in", dest="folder", action="append", help="site-packages of an environment")
    parser.add_argument("--list", action="store_true", help="say what became of every file, and leave the page")
    asked = parser.parse_args()
    folders = [Path(folder) for folder in asked.folder or {str(Path(mujoco.__file__).parents[1])}]
    files = {
        package: sorted(str(p) for folder in folders for p in (folder / package).rglob("*.xml") if mjcf(p))
        for package in asked.packages
    }
    with ProcessPoolExecutor() as pool:
        found = {p: list(pool.map(judged, paths, chunksize=4)) for p, paths in files.items() if paths}
    if asked.list:
        for verdict in (v for verdicts in found.values() for v in verdicts):
            sys.stdout.write(f"{verdict.kind:20} {verdict.worst:8.1e} {verdict.path} {verdict.why[:LONG]}\n")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}\n{page(found)}{MARKS[1]}{after}", encoding="utf-8")


def mjcf(path: Path) -> bool:
    return b"<mujoco" in path.read_bytes()[:100_000]


def page(found: dict[str, list[Verdict]]) -> str:
    rows = [
        HEAD,
        "| package | files | load | of these with a warning | agree to 1e-10 | refused |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    total: Counter[str] = Counter()
    for package, verdicts in found.items():
        one = tally(verdicts)
        total += one
        rows += [row(package, one)] if one["files"] else []
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for verdict in (v for verdicts in found.values() for v in verdicts):
        if why := reason(verdict):
            reasons[why].append(Path(verdict.path).name)
    told = [f"| {', '.join(sorted(names))} | {why} |" for why, names in reasons.items()]
    table = ["", "| file | why |", "|---|---|", *told] if told else []
    return "\n".join([*rows, row("together", total), *table, ""])


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
