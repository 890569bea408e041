"""drevo counts: operations of the written-out equations."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load, progress, say, table

QUANTITIES = ("inverse_dynamics", "mass_matrix", "bias", "gravity", "forward_dynamics", "kinetic_energy")
COLUMNS = ("mul", "add", "div", "trig", "angle_sums", "hoisted")


@guarded
def counts(
    robot: RobotName,
    quantities: Annotated[list[str] | None, typer.Argument(metavar="[QUANTITY]...", help="All main ones.")] = None,
    formalism: Annotated[str, typer.Option(help="auto takes the one with the fewest operations.")] = "auto",
    symbols: Annotated[bool, typer.Option("--symbols", help="Keep all parameters as symbols.")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Print how many operations each quantity takes, and by which formalism."""
    from ..graph.program import CONVENTION
    from ..quantities import names_of

    wanted = names_of(quantities or QUANTITIES)
    rows = count(robot, base, wanted, formalism, "all" if symbols else None)
    if as_json:
        say({"robot": robot, "base": base, "convention": CONVENTION, "counts": rows})
        return
    cells = [(name, *(row.get(c, 0) for c in COLUMNS), row["mul"] + row["add"], row["formalism"])
             for name, row in rows.items()]  # fmt: skip
    table("", ("quantity", *COLUMNS, "mul+add", "formalism"), cells)
    print(CONVENTION)


def count(
    robot: str, base: str, wanted: tuple[str, ...], formalism: str, symbols: str | None
) -> dict[str, dict[str, Any]]:
    """Counts by quantity."""
    from ..written import write_out

    loaded, rows = load(robot, base), {}
    with progress(len(wanted), "counting") as step:
        for name in wanted:
            step(name)
            d = write_out(loaded, name, formalism=formalism, symbols=symbols)
            rows[name] = {**d.counts, "formalism": d.formalism}
    return rows
