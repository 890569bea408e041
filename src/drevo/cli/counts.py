"""drevo counts: operations of the written-out equations, quantity by formalism."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json, print_table, progress

COUNTED_QUANTITIES = ("inverse_dynamics", "mass_matrix", "bias", "gravity", "forward_dynamics", "kinetic_energy")
COUNT_COLUMNS = ("mul", "add", "div", "trig", "angle_sums", "hoisted")


@guarded
def counts(
    robot: RobotName,
    quantities: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUANTITY]...", help="Which quantities; by default the six main ones."),
    ] = None,
    formalism: Annotated[str, option("A formalism by name; auto compares all that suit the robot.")] = "auto",
    objective: Annotated[str, option("What to minimise: add+mul, mul, fma or add+mul+trig.")] = "add+mul",
    symbols: Annotated[bool, option("Keep all parameters as symbols.", "--symbols")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Count the operations of each quantity by each formalism, fewest first."""
    from ..codegen.graph.program import CONVENTION
    from ..model.quantities import names_of

    wanted = names_of(quantities or COUNTED_QUANTITIES)
    rows = count(robot, base, wanted, formalism, objective, symbols)
    if as_json:
        about = {"robot": robot, "base": base, "objective": objective, "convention": CONVENTION}
        print_json({**about, "counts": rows})
        return
    cells = [
        (name if first else "", f, *(c.get(k, 0) for k in COUNT_COLUMNS), c["mul"] + c["add"] + c["div"])
        for name, row in rows.items()
        for first, (f, c) in zip((True, *[False] * 99), row["formalisms"].items())
    ]
    print_table("", ("quantity", "formalism", *COUNT_COLUMNS, "total"), cells)
    print(CONVENTION)


def count(
    robot: str, base: str, wanted: tuple[str, ...], formalism: str, objective: str, symbols: bool
) -> dict[str, dict[str, Any]]:
    """By quantity: the winner's counts, "formalism", and the counts of all as "formalisms", the best first."""
    from ..compiler.compete import compete
    from ..compiler.pages.write_out import SNAP

    model, rows = load_robot(robot, base).model, {}
    with progress(len(wanted), "counting") as step:
        for name in wanted:
            step(name)
            ranked = compete(
                model, name, objective, formalism=formalism, parameters=("*",) if symbols else (), snap=SNAP
            )
            by = {f: counted for f, _, counted in ranked.ranking}
            rows[name] = {**by[ranked.winner], "formalism": ranked.winner, "formalisms": by}
    return rows
