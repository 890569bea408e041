"""drevo simulate: a motion from rest, its energy, a plot and a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..io.files import PICTURES
from .common import (
    PLOT,
    STATE,
    Base,
    Gravity,
    Json,
    RobotName,
    guarded,
    load_robot,
    option,
    print_json,
    print_picture,
    progress_portion,
    ready_for,
    save_result,
    under_gravity,
    vector_in,
)

if TYPE_CHECKING:
    from ..robot.face import Robot
    from ..simulate.table import Table


@guarded
def simulate(
    robot: RobotName,
    n: Annotated[int | None, option("How many bodies rod-chain has.")] = None,
    duration: Annotated[float, option("How long the motion lasts, in seconds.")] = 10.0,
    dt: Annotated[
        float | None, option("Step in seconds, by default 0.001; for dop853 the time between records.")
    ] = None,
    method: Annotated[
        str, option("Integrator: rk4, dop853, gauss4, gauss6, midpoint or semi_implicit_euler.")
    ] = "rk4",
    rtol: Annotated[float, option("Relative tolerance of dop853.")] = 1e-9,
    max_steps: Annotated[int | None, option("The most steps, by default 10,000,000; of dop853 100,000.")] = None,
    every: Annotated[int, option("Record every so many steps.")] = 10,
    q: Annotated[
        str | None,
        option(f"Coordinates at the start, rad or m: {STATE}as the file starts (rod-chain: -1 rad first)."),
    ] = None,
    v: Annotated[str | None, option(f"Velocities at the start: {STATE}0.")] = None,
    law: Annotated[
        str | None, option("Let the geoms of the file touch each other, under this law: soft or coulomb.")
    ] = None,
    gravity: Gravity = None,
    base: Base = "fixed",
    plot: Annotated[bool, option(PLOT, "--plot")] = False,
    output: Annotated[
        Path | None,
        option("Save as .csv, .npz or .parquet, or as a picture: .svg, .png, .pdf.", "-o", "--output"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate how a robot moves under gravity, and report how well its energy is conserved."""
    ready_for("a motion", output, (".npz", ".csv", ".parquet", *PICTURES))
    machine = under_gravity(_robot(robot, n, base), gravity)
    start = _start(machine, robot, q), vector_in(machine, "v", v)
    with progress_portion(machine.name, method) as part:
        free: Any = {"method": method, "rtol": rtol, "max_steps": max_steps, "progress": part}
        chosen = {k: free[k] for k, x in (("method", "rk4"), ("rtol", 1e-9), ("max_steps", None)) if free[k] != x}
        given = {"law": law, "ground": None} | chosen if law else free
        moved = machine.simulate(*start, duration=duration, dt=dt, every=every, **given)
    save_result(moved, output)
    if as_json:
        print_json(_facts(moved))
        return
    _tell(moved)
    print_picture(moved, plot, output)


def _tell(moved: Table) -> None:
    """Prints a motion: its steps, its energy, and how well constraints are met."""
    print(repr(moved)[1:-1])
    print(f"energy: {moved.energy[0]:.10g} J at the start, later off by at most {moved.energy_drift:.3g} J")
    if moved.rows:
        kept, rate = moved.constraint_drift, moved.constraint_rate_drift
        print(f"constraints are met to {kept:.3g} m or rad, their rates to {rate:.3g} m/s or rad/s")


def _robot(name: str, n: int | None, base: str) -> Robot:
    from ..errors import InputError
    from ..robots import rod_chain

    if n is None:
        return load_robot(name, base)
    if name != "rod-chain":
        raise InputError(f"--n is the number of bodies of rod-chain, not of {name!r}")
    return rod_chain(n)


def _start(robot: Robot, name: str, q: str | None) -> Any:
    start = robot.initial if q is None else vector_in(robot, "q", q)
    if name == "rod-chain" and q is None:
        start[0] = -1.0  # Yudintsev's example
    return start


def _facts(moved: Table) -> dict[str, Any]:
    return {
        "robot": moved.robot.name, "method": moved.method, "steps": moved.steps, "rejected": moved.rejected,
        "records": len(moved), "time": float(moved.t[-1]), "energy": float(moved.energy[0]),
        "energy_drift": moved.energy_drift, "constraint_drift": moved.constraint_drift,
        "q": moved.q[-1].tolist(), "v": moved.v[-1].tolist(),
    }  # fmt: skip
