"""drevo check-formulas: which published formulas are wrong for a robot, and what they should have been."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .common import Base, Json, RobotName, guarded, load_robot, print_json

FAILED = 1


@guarded
def check_formulas(
    robot: RobotName,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A text file with one formula a line, such as H_22 = I_2^d + H_33 + 2*L_3*m_33^e."
        ),
    ],
    notation: Annotated[
        str, typer.Option(help="Whose letters: telegin, kovalchuk, vereshchagin, zaremba or alyushin.")
    ] = "telegin",
    given: Annotated[str, typer.Option(help="Conditions on parameters, such as 'd_x4 = d_y4 = 0'.")] = "",
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Prove or refute printed formulas, and suggest how to correct the wrong ones.

    The exit code is 1 if a formula is wrong.
    """
    from ..design.formulas import check_formulas as check
    from ..errors import InputError

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{str(file)!r} is no text in UTF-8") from None
    judged = check(load_robot(robot, base), text, notation=notation, given=given)
    if as_json:
        rows = [{"name": r.name, "printed": r.printed, "verdict": r.verdict, "mend": r.mend, "proof": r.proof,
                 "units": r.units} for r in judged]  # fmt: skip
        wrong = [asdict(w) for w in judged.wrong]
        print_json({"robot": robot, "right": list(judged.right), "wrong": wrong, "rows": rows})
    else:
        print(judged)
    if judged.wrong:
        raise typer.Exit(FAILED)
