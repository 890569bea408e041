"""Peers outside the main table: CasADi's C through gcc, and JAX programs and Drake in another interpreter.

They are slower by orders of magnitude to build, so they are measured when asked for, Drevo beside them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from cases import ARGUMENTS, FEW, Case
from contenders import cached
from inner_loops import BUILD, HERE, Child, write_states
from robots import plain_urdf

from drevo.compiler.formalisms import common_algorithm
from drevo.mechanics.tree import build_tree

ROUNDS = 8
PEERS = ("frax", "adam.jax", "mjx", "drake")
BATCH = {"frax": 2_000, "adam.jax": 2_000, "mjx": 200, "drake": 200}  # evaluations of a window
CASADI = {"panda": tuple(ARGUMENTS)[1:4], "go2": tuple(ARGUMENTS)[1:4], "talos": tuple(ARGUMENTS)[1:3]}


def measured(cases: dict[str, Case], python: str | None) -> dict[str, Any]:
    """Cells of peer, robot, quantity with Drevo's own figure of the same rounds; what is missing, and why."""
    if python is None:
        return {}
    cells: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name, quantities in CASADI.items():
        for quantity in quantities:
            child = casadi_child(cases[name], quantity)
            if isinstance(child, str):
                missing[f"CasADi C, {name}, {quantity}"] = child
            else:
                cells.append(_beside(cases[name], quantity, "CasADi C, gcc", child, quantity, 2_000))
                child.close()
    for peer in PEERS:
        _interpreter(cases["panda"], peer, python, cells, missing)
    return {"cells": cells, "missing": missing}


def _interpreter(case: Case, peer: str, python: str, cells: list[dict[str, Any]], missing: dict[str, str]) -> None:
    """One peer in another interpreter, on the Panda."""
    path, states = case.path, case.folder / "states.npz"
    if peer == "mjx":
        path = case.folder / "mujoco.urdf"
        path.write_text(plain_urdf(case.subject, mujoco=True))
    np.savez(states, **{k: x[:10_000] for k, x in case.state.items()})
    child = Child([python, HERE / "others.py", peer, path, states])
    word, version, *rest = child.line().split()
    if word != "ready":
        missing[peer] = " ".join([version, *rest])
        return
    try:
        for theirs in rest:
            child.seconds(theirs, 0, BATCH[peer])  # compiles
            cells.append(_beside(case, theirs, f"{peer} {version}", child, theirs, BATCH[peer]))
        child.close()
    except RuntimeError as error:
        missing[f"{peer} {version}"] = str(error)


def _beside(case: Case, quantity: str, who: str, child: Child, name: str, count: int) -> dict[str, Any]:
    """A peer and Drevo in turn."""
    own, best = cached(case, quantity), [np.inf, np.inf]
    for k in range(ROUNDS):
        best[0] = min(best[0], child.seconds(name, k * count, count) / count * 1e9)
        seconds, many = own(k)
        best[1] = min(best[1], seconds / many * 1e9)
    print(f"       {who}, {case.subject.name}, {quantity}: {best[0]:.0f} / {best[1]:.1f} ns", file=sys.stderr)
    ns, drevo = (round(x, 2) for x in best)
    return {"who": who, "robot": case.subject.name, "quantity": quantity, "ns": ns, "drevo": drevo}


# --- CasADi ------------------------------------------------------------------------------------------------


def casadi_child(case: Case, quantity: str) -> Child | str:
    """CasADi's graph of the plain recursion, Drevo's own source, as its C code, gcc -O3 -march=native."""
    try:
        library = _casadi_library(case, quantity)
        loop = BUILD / "casadi_inner_loop"
        if not loop.exists():
            _run("g++", "-std=c++17", "-O2", HERE / "casadi_inner_loop.cpp", "-ldl", "-o", loop)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    states = case.folder / "casadi_states"
    write_states([case.state[key][:FEW] for key in ("q", "v", "a", "tau")], states)
    nq, nv = case.robot.nq, case.robot.nv
    at = {"q": 0, "v": nq, "a": nq + nv, "tau": nq + 2 * nv}
    child = Child([loop, library, states, str(nq + 3 * nv), *(str(at[s]) for s in ARGUMENTS[quantity])])
    ours = getattr(case.robot, quantity)(*(x[0] for x in case.arguments(quantity)))
    theirs = child.show(quantity, 0)
    if not np.allclose(theirs, ours.ravel()[: theirs.size], rtol=1e-9, atol=1e-8 * np.max(np.abs(ours))):
        raise SystemExit(f"CasADi's {quantity} of {case.subject.name} differs; nothing is compared")
    return child


def _casadi_library(case: Case, quantity: str) -> Path:
    import casadi as ca

    path = BUILD / f"casadi_{ca.__version__}_{case.subject.name}_{quantity}.so"
    if path.exists():
        return path
    if hasattr(ca.GlobalOptions, "setNumpyMode"):
        ca.GlobalOptions.setNumpyMode(1)
    tree = build_tree(case.robot.model)
    state = {s: ca.SX.sym(s, tree.nq if s == "q" else tree.nv) for s in ARGUMENTS[quantity]}
    result = common_algorithm(quantity)(tree, *([x[i] for i in range(x.numel())] for x in state.values()))
    flat = [x for row in result for x in (row if isinstance(row, list) else [row])]
    f = ca.Function("f", list(state.values()), [ca.cse(ca.vertcat(*flat))])
    with tempfile.TemporaryDirectory(prefix="drevo-bench-") as folder:
        generator = ca.CodeGenerator("f.c")
        generator.add(f)
        generator.generate(folder + "/")
        made = path.with_suffix(".part")
        _run("gcc", "-O3", "-march=native", "-shared", "-fPIC", Path(folder) / "f.c", "-lm", "-o", made)
    made.rename(path)
    return path


def _run(*command: str | Path) -> None:
    subprocess.run([str(x) for x in command], check=True, timeout=600, capture_output=True)
