"""drevo check: what is wrong with a description, its repair, and whether the compiled functions agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import (
    MAX_BATCH,
    Base,
    Json,
    RobotName,
    guarded,
    load_robot,
    option,
    print_json,
    print_table,
    progress,
)

if TYPE_CHECKING:
    from ..doctor import Findings
    from ..robot.face import Robot

SEED = 0
FAILED = 1


@guarded
def check(
    robot: RobotName,
    base: Base = "fixed",
    strict: Annotated[bool, option("Fail where something is merely suspicious.", "--strict")] = False,
    fix: Annotated[bool, option("Write the file again with what can be mended mended.", "--fix")] = False,
    output: Annotated[
        Path | None, option("The repaired file, by default NAME-fixed of the same ending here.", "-o", "--output")
    ] = None,
    states: Annotated[int, option("How many random states to test.", min=1, max=MAX_BATCH)] = 256,
    as_json: Json = False,
) -> None:
    """Examine a robot's description, with --fix repair it, and test its equations of motion on random states.

    Findings are ranked: errors cannot be computed, warnings are suspicious, hints are worth a look. The exit code
    is 1 if there is an error (with --strict: or a warning) or a test fails.
    """
    from ..doctor import check as examine_description

    findings = examine_description(robot)
    where: str | Path = robot
    if fix or output is not None:
        where = output or Path(Path(findings.source).stem + "-fixed" + Path(findings.source).suffix)
        findings = examine_description(robot, fix=where)
    rows, notes = [], []
    if findings.sound():
        loaded = load_robot(str(where), base)
        rows, notes = examine(loaded, states), list(loaded.notes)
    good = findings.sound(strict) and all(row["ok"] for row in rows)
    if as_json:
        facts = {"robot": robot, "base": base, "states": states, "ok": good, "findings": findings.rows()}
        print_json({**facts, "changes": list(findings.changes), "checks": rows, "notes": notes})
    else:
        _tell(findings, notes, where if findings.changes or fix else None)
        _tell_tests(findings.robot, rows, states)
    if not good:
        raise typer.Exit(FAILED)


def _tell(findings: Findings, notes: list[str], saved: str | Path | None) -> None:
    for change in findings.changes:
        print(f"changed {change}")
    if saved is not None:
        print(f"saved {saved}")
    for note in notes:
        print(f"note: {note}")
    for line in findings.lines():
        print(line)


def _tell_tests(name: str, rows: list[dict[str, Any]], states: int) -> None:
    if rows:
        cells = [
            (r["check"], f"{r['worst']:.1e}", f"{r['limit']:.0e}", "ok" if r["ok"] else "FAILED") for r in rows
        ]
        print_table(f"{name}, {states} random states", ("check", "worst", "limit", ""), cells)


def examine(robot: Robot, states: int = 256) -> list[dict[str, Any]]:
    """Identities that hold whatever the numbers are; each with its worst relative error."""
    import numpy as np

    from ..compiler.compile_cost import smallest_pivot

    rng = np.random.default_rng(SEED)
    q = robot.random(rng, states)
    v, a = rng.normal(size=(2, states, robot.nv))
    with progress(6, "checking") as step:
        step("pivots of M")
        pivot, joint = smallest_pivot(robot.model)
        step("mass matrix")
        M = robot.mass_matrix(q)
        step("inverse dynamics")
        tau, h, g = robot.inverse_dynamics(q, v, a), robot.bias(q, v), robot.gravity(q)
        step("forward dynamics")
        back = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau))
        step("energy")
        T = robot.kinetic_energy(q, v)
        step("gravity")
        slope = _slope(robot, q, v)
    rows = [
        _row("M is symmetric", M, np.swapaxes(M, -1, -2), 1e-12),
        _row("M a + h = inverse dynamics", np.einsum("bij,bj->bi", M, a) + h, tau, 1e-10),
        _row("inverse of forward dynamics", back, tau, 1e-8),
        _row("v M v / 2 = kinetic energy", np.einsum("bi,bij,bj->b", v, M, v) / 2, T, 1e-11),
        _row("g v = rate of the potential energy", np.einsum("bi,bi->b", g, v), slope, 1e-6),
    ]
    name = f"smallest pivot of M is positive ({joint})"
    return [{"check": name, "worst": pivot, "limit": 0.0, "ok": bool(pivot > 0.0)}, *rows]


def _slope(robot: Robot, q: Any, v: Any) -> Any:
    """Rate of the potential energy along v, by a central difference."""
    step = 1e-6
    up, down = robot.integrate(q, step * v), robot.integrate(q, -step * v)
    return (robot.potential_energy(up) - robot.potential_energy(down)) / (2 * step)


def _row(name: str, got: Any, expected: Any, limit: float) -> dict[str, Any]:
    import numpy as np

    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    worst = float(np.max(np.abs(got - expected), initial=0.0)) / scale
    return {"check": name, "worst": worst, "limit": limit, "ok": worst <= limit}
