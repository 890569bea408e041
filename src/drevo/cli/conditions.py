"""drevo conditions: what the parameters must satisfy so that a matrix is constant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json, print_table, progress, words_in

if TYPE_CHECKING:
    from ..design.conditions import Conditions
    from ..design.free_lengths import PolynomialConditions
    from ..robot.face import Robot

LEGEND = (
    "m_i: mass of body i and of all that it carries; d_xi, d_yi, d_zi: its first moments about its joint,\n"
    "with what it carries as points at their joints; I_i^x, I_i^xy: moments and products of inertia of the same;\n"
    "L_i: distance to its joint from the joint before; m_oi: its own mass"
)
ELEMENTS_HELP = "mass_matrix, potential_energy, or elements separated by commas (H_21,H_33)."


@guarded
def conditions(
    robot: RobotName,
    constant: Annotated[str, option(f"What must be constant: {ELEMENTS_HELP}")] = "",
    zero: Annotated[str, option("Elements that must be zero, separated by commas.")] = "",
    diagonal: Annotated[bool, option("All elements off the diagonal must be zero.", "--diagonal")] = False,
    free: Annotated[str, option("Parameters to solve for, separated by commas: d_*, I_3^*, L_2.")] = "",
    realise: Annotated[
        bool, option("Add the least masses with which they hold, to --output.", "--realise")
    ] = False,
    reach: Annotated[float, option("How far from a joint added masses may stand, in metres.")] = 0.5,
    density: Annotated[
        float | None, option("Of counterweights, kg/m^3: they are then boxes, which are drawn.")
    ] = None,
    proportions: Annotated[str, option("Of their sides: 1,1,0.1 are plates, 1,0.1,0.1 rods.")] = "1,1,1",
    output: Annotated[
        Path | None, option("Save the realised robot as .urdf, .xml, .sdf, .toml or .json.", "-o", "--output")
    ] = None,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Find what the parameters must satisfy so that a matrix is constant, and the equations of motion then.

    With --realise, find the counterweights too, with which the robot meets the conditions.
    """
    from ..design.conditions import Conditions
    from ..design.conditions import conditions as find

    with progress(1, "conditions") as step:
        step("reducing")
        result = find(
            load_robot(robot, base), words_in(constant), words_in(zero), diagonal, words_in(free) or None
        )
    whole = result if isinstance(result, Conditions) else None
    balanced = _realised(result, (reach, density, proportions), output) if realise or output is not None else None
    if as_json:
        masses = {"masses": _masses(balanced)} if balanced else {}
        print_json({"robot": robot, **_data(result), **masses})
        return
    rows = [(body, text) for body, texts in _bodies(result).items() for text in texts]
    print_table(f"{len(result)} conditions", ("body", "condition"), rows, left=2)
    print(LEGEND)
    if whole:
        print("\nEquations of motion when they hold:", *whole.motion, sep="\n")
    if balanced is not None:
        before = _masses(load_robot(robot, base))
        weights = [(name, f"{before[name]:.6g}", f"{mass:.6g}") for name, mass in _masses(balanced).items()]
        print_table("\nMasses with counterweights", ("link", "before, kg", "after, kg"), weights)
    if output is not None:
        print(f"saved {output}")


def _realised(
    conditions: Conditions | PolynomialConditions, how: tuple[float, float | None, str], output: Path | None
) -> Robot:
    """The robot that meets the conditions, saved where a file is named."""
    reach, density, proportions = how
    sides: list[Any] = [float(x) if x.replace(".", "", 1).isdigit() else x for x in words_in(proportions)]
    robot = conditions.realise(reach=reach, density=density, proportions=sides)
    if output is not None:
        robot.save(output)
    return robot


def _masses(robot: Robot) -> dict[str, float]:
    return {link.name: link.inertial.mass for link in robot.model.links if link.inertial is not None}


def _data(result: Conditions | PolynomialConditions) -> dict[str, Any]:
    from ..design.conditions import Conditions

    whole = {"M": result.M, "motion": list(result.motion)} if isinstance(result, Conditions) else {}
    return {"count": len(result), "equations": list(result.equations), "by_body": _bodies(result), **whole}


def _bodies(result: Conditions | PolynomialConditions) -> dict[str, tuple[str, ...]]:
    """Conditions by body; those on lengths concern several."""
    return getattr(result, "by_body", {"": result.equations})
