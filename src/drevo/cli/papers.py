"""drevo papers: the five papers made anew, with a table of what was checked against what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, guarded, option, print_json


@guarded
def papers(
    name: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="telegin, vereshchagin, kovalchuk, alyushin, zaremba; together."),
    ],
    output: Annotated[Path, option("The folder to write into.", "-o", "--output")] = Path("paper"),
    as_json: Json = False,
) -> None:
    """Write a paper's examples, figures and errata anew, each formula computed and compared.

    The exit code is 1 if a row of the table does not hold.
    """
    from ..papers import make_paper

    rows = make_paper(name, output)
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        for row in rows:
            print(f"{row.verdict:8} {row.error:8.1e}  {row.formula} {row.says}: {row.call}, against {row.against}")
        print(f"written to {output}")
    if any(row.verdict == "differs" for row in rows):
        raise typer.Exit(1)
