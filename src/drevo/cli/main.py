"""The command `drevo`: one verb a file, nothing heavy imported before a verb runs."""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    accuracy,
    bench,
    check,
    check_formulas,
    conditions,
    counts,
    demo,
    info,
    linearise,
    loads,
    precompile,
    simulate,
    walk,
    write_out,
)

app = typer.Typer(
    name="drevo",
    help="Compiles the dynamics of tree-structured robots: equations to read, functions at machine speed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"drevo {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("info")(info.info)
app.command("check")(check.check)
app.command("conditions")(conditions.conditions)
app.command("check-formulas")(check_formulas.check_formulas)
app.command("counts")(counts.counts)
app.command("write-out")(write_out.write_out)
app.command("bench")(bench.bench)
app.command("precompile")(precompile.precompile)
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.command("linearise")(linearise.linearise)
app.command("loads")(loads.loads)
app.command("accuracy")(accuracy.accuracy)
app.command("walk")(walk.walk)
