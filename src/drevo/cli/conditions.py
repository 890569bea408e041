"""drevo conditions: what the parameters must satisfy so that a matrix is constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json, print_table, progress, words_in

if TYPE_CHECKING:
    from ..design.conditions import Conditions
    from ..design.free_lengths import PolynomialConditions

WHAT = "mass_matrix, potential_energy, or elements separated by commas (H_21,H_33)."


@guarded
def conditions(
    robot: RobotName,
    constant: Annotated[str, option(f"What must be constant: {WHAT}")] = "",
    zero: Annotated[str, option("Elements that must be zero, separated by commas.")] = "",
    diagonal: Annotated[bool, option("All elements off the diagonal must be zero.", "--diagonal")] = False,
    free: Annotated[str, option("Parameters to solve for, separated by commas: d_*, I_3^*, L_2.")] = "",
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Find what the parameters must satisfy so that a matrix is constant, and the equations of motion then."""
    from ..design.conditions import Conditions
    from ..design.conditions import conditions as find

    with progress(1, "conditions") as step:
        step("reducing")
        found = find(load_robot(robot, base), words_in(constant), words_in(zero), diagonal, words_in(free) or None)
    whole = found if isinstance(found, Conditions) else None
    if as_json:
        print_json(
            {"robot": robot, **_data(found), **({"M": whole.M, "motion": list(whole.motion)} if whole else {})}
        )
        return
    rows = [(body, text) for body, texts in _bodies(found).items() for text in texts]
    print_table(f"{len(found)} conditions", ("body", "condition"), rows, left=2)
    if whole:
        print("\nEquations of motion when they hold:", *whole.motion, sep="\n")


def _data(found: Conditions | PolynomialConditions) -> dict[str, Any]:
    return {"count": len(found), "equations": list(found.equations), "by_body": _bodies(found)}


def _bodies(found: Conditions | PolynomialConditions) -> dict[str, tuple[str, ...]]:
    """Conditions by body; those on lengths concern several."""
    return getattr(found, "by_body", {"": found.equations})
