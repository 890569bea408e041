"""drevo loads: what a motion demands of the drives and of a link's sections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from ..io.files import PICTURES
from .common import (
    PLOT,
    Base,
    Json,
    RobotName,
    guarded,
    load_robot,
    numbers_in,
    option,
    print_json,
    print_picture,
    print_table,
    ready_for,
    save_result,
)

if TYPE_CHECKING:
    from ..loads import Drives, Envelope, Trajectory
    from ..robot.face import Robot


@guarded
def loads(
    robot: RobotName,
    trajectory: Annotated[
        Path | None,
        option("A .csv or .npz file with t, q and, if known, v and a; without it: do shapes and inertias agree?"),
    ] = None,
    waypoints: Annotated[bool, option("The rows are stops, to be joined by quintics.", "--waypoints")] = False,
    link: Annotated[str | None, option("The link whose sections are loaded; else only drives are shown.")] = None,
    sections: Annotated[int, option("How many sections along the link.")] = 41,
    start: Annotated[str | None, option("Where the cut line starts: x,y,z in link axes.", "--from")] = None,
    end: Annotated[str | None, option("Where the cut line ends: x,y,z in link axes.", "--to")] = None,
    distribution: Annotated[
        str, option("Where the link's mass is: auto, shapes, collision, visual, box, or a .toml file of solids.")
    ] = "auto",
    plot: Annotated[bool, option(PLOT, "--plot")] = False,
    output: Annotated[
        Path | None,
        option("Save as .csv, or as .svg, .png or .pdf.", "-o", "--output"),
    ] = None,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Show what a motion demands of the drives and, with --link, the largest loads in that link's sections."""
    from ..loads import Trajectory, drives

    if trajectory is None:
        return _print_agreement(load_robot(robot, base), as_json)
    ready_for("an envelope" if link else "the table of drives", output, (".csv", *PICTURES))
    machine = load_robot(robot, base)
    span = _line(start, end)
    moved = Trajectory.read(machine, trajectory, waypoints)
    driven = drives(machine, moved)
    envelope = _enveloped(machine, moved, link, sections, span, distribution) if link is not None else None
    result = driven if envelope is None else envelope
    save_result(result, output)
    if as_json:
        return print_json(
            {"robot": machine.name, "drives": driven.rows(), **(_facts(envelope) if envelope else {})}
        )
    _print_drives(driven)
    if envelope is not None:
        _print_sections(envelope)
    print_picture(result, plot, output)


def _line(start: str | None, end: str | None) -> Any:
    if (start is None) != (end is None):
        raise InputError("a line has two ends: give --from and --to, or neither")
    return None if start is None else (numbers_in("--from", start), numbers_in("--to", end))


def _enveloped(
    robot: Robot, moved: Trajectory, link: str, sections: int, span: Any, distribution: str
) -> Envelope:
    from ..loads import envelope, read_solids

    mass = read_solids(distribution) if distribution.endswith(".toml") else distribution
    return envelope(robot, moved, link, sections, span=span, distribution=mass)


def _print_agreement(robot: Robot, as_json: bool) -> None:
    """Mass, centre and inertia of the shapes as solids, beside those of the description."""
    from ..loads import consistency

    agreement = consistency(robot)
    if as_json:
        print_json({"robot": robot.name, "tolerance": agreement.tolerance, "links": agreement.rows()})
        return
    rows = [
        (x.link, x.about or x.fault, *((f"{x.density:.0f}", f"{1e3 * x.centre:.1f}", f"{100 * x.inertia:.0f}",
         "yes" if x.agrees else "no") if x.about else ("", "", "", "no")))
        for x in agreement.links
    ]  # fmt: skip
    if not rows:
        return print(f"{robot.name}: none of its links has shapes, so there is nothing to compare")
    print(f"{robot.name}: its shapes as solids of the density that gives the link's mass, beside its inertia")
    heads = ("link", "shapes", "kg/m^3", "centre off, mm", "inertia off, %", "agree")
    print_table("", heads, rows, left=2)
    print(f"agree: to {100 * agreement.tolerance:g} % of the radius of gyration and of the largest moment")


def _facts(e: Envelope) -> dict[str, Any]:
    mass, span = e.loads.distribution, e.loads.span
    return {
        "link": e.loads.link, "distribution": mass.about, "stretch": list(mass.stretch), "shift": mass.shift,
        "span": {"start": span.start.tolist(), "axes": span.rotation.tolist()}, "length": span.length,
        "held": span.held, "back": span.back,
        "s": e.s.tolist(), "least": e.low.tolist(), "largest": e.high.tolist(), "cases": e.cases(),
    }  # fmt: skip


def _print_drives(driven: Drives) -> None:
    x = driven.trajectory
    heads = ("joint", "peak", "rms", "limit", "peak W", "rms W", "given J", "taken back J", "speed")
    keys = ("peak", "rms", "limit", "peak_power", "rms_power", "given", "taken_back", "speed")
    rows = [(r["joint"], *(None if r[k] is None else f"{r[k]:.4g}" for k in keys)) for r in driven.rows()]
    print(f"{x.robot.name}: drives over {x.t[-1] - x.t[0]:g} s, N m or N")
    print_table("", heads, rows)


def _print_sections(e: Envelope) -> None:
    mass, span = e.loads.distribution, e.loads.span
    a, b = (", ".join(f"{c:.4g}" for c in p) for p in span.points(e.s[[0, -1]]))
    print(f"\n{e.loads.link}: sections from ({a}) to ({b}) m in link axes, held at s = {span.held:.4g} m")
    fit = f", stretched {min(mass.stretch):.3g} to {max(mass.stretch):.3g}, moved {mass.shift:.3g} m"
    print(f"mass: {mass.about}{fit if mass.density else ''}")
    rows = [
        (f"{c['extreme']} {c['component']}", f"{c[c['component']]:.5g}", f"{c['s']:.4g}", f"{c['t']:.4g}")
        for c in e.cases()
    ]
    print("what the inboard piece exerts on the outboard one, in section axes:")
    print_table("", ("load", "N, N m", "s, m", "t, s"), rows)
