"""The command `drevo`: one verb a file, nothing heavy imported before a verb runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import (
    accuracy,
    bench,
    check,
    check_formulas,
    compute,
    conditions,
    convert,
    counts,
    demo,
    envs,
    export,
    info,
    linearise,
    loads,
    papers,
    precompile,
    simulate,
    sweep,
    swing_up,
    view,
    walk,
    write_out,
)
from .common import REFUSED_EXIT, option, said

VERBS = (  # the name, what runs, and the example that its help shows
    ("info", info.info, "drevo info puma560"),
    ("check", check.check, "drevo check arm.urdf --strict"),
    ("convert", convert.convert, "drevo convert puma560 puma560.urdf"),
    ("robots", compute.robots, "drevo robots"),
    ("compute", compute.compute, "drevo compute puma560 gravity --q joint2=-0.8,joint3=0.6"),
    ("ik", compute.ik, "drevo ik puma560 --link link6 --pose 0.5,0.1,0.4,0,1,0,0"),
    ("workspace", compute.workspace, "drevo workspace puma560 --link link6 --samples 20000"),
    ("counts", counts.counts, "drevo counts stanford inverse_dynamics mass_matrix"),
    ("write-out", write_out.write_out, "drevo write-out three-link mass_matrix --symbols all -o mass.html"),
    ("export", export.export, "drevo export puma560 inverse_dynamics --target cortex-m7 --dtype float32 -o out"),
    ("view", view.view, "drevo view puma560 --export puma560.html"),
    ("simulate", simulate.simulate, "drevo simulate rod-chain --n 5 --duration 2 --plot -o chain.csv"),
    ("linearise", linearise.linearise, "drevo linearise puma560 --q 0,-0.8,0.6,0,0.9,0"),
    ("loads", loads.loads, "drevo loads three-link --trajectory stops.csv --waypoints --link link2"),
    ("accuracy", accuracy.accuracy, "drevo accuracy puma560 --link link6 --joint-error 1e-4"),
    ("sweep", sweep.sweep, "drevo sweep --example"),
    ("walk", walk.walk, "drevo walk biped --steps 1"),
    ("swing-up", swing_up.swing_up, "drevo swing-up --kind pendulum"),
    ("envs", envs.envs, "drevo envs list"),
    ("conditions", conditions.conditions, "drevo conditions three-link --constant mass_matrix"),
    ("check-formulas", check_formulas.check_formulas, "drevo check-formulas three-link formulas.txt"),
    ("papers", papers.papers, "drevo papers vereshchagin -o vereshchagin"),
    ("precompile", precompile.precompile, "drevo precompile puma560 --quantities inverse_dynamics"),
    ("bench", bench.bench, "drevo bench scara --states 1000"),
    ("demo", demo.demo, "drevo demo -o pages --states 1000"),
)


class Verbs(TyperGroup):
    """Usage errors are one sentence, as all other refusals are."""

    def main(self, args: Any = None, *rest: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a locale without m² must not end in a traceback
                stream.reconfigure(errors="replace")
        try:
            code = super().main(args, *rest, standalone_mode=False, **extra)  # type: ignore[misc]
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            where = f" (see {context.command_path} --help)" if context else ""
            print(f"drevo: {said(error.format_message().rstrip('.'))}{where}", file=sys.stderr)
            code = REFUSED_EXIT
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="drevo",
    cls=Verbs,
    help="Compiles the dynamics of tree-structured robots: equations to read, functions at machine speed.",
    epilog="Each command explains itself: drevo COMMAND --help",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ..io.packages import VERSION

        print(f"drevo {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, option("Print the version.", "--version", callback=_version, is_eager=True)] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


for _name, _verb, _example in VERBS:
    app.command(_name, epilog=f"Example: {_example}")(_verb)
