"""drevo accuracy: how accurately a robot places its tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from .common import (
    Base,
    Json,
    RobotName,
    guarded,
    load_robot,
    numbers_in,
    option,
    print_json,
    print_table,
    vector_in,
)

if TYPE_CHECKING:
    from ..loads import Accuracy, MonteCarlo

MAX_ERROR_SOURCES = 8  # of error in the table


@guarded
def accuracy(
    robot: RobotName,
    link: Annotated[str, option("The link that carries the tool.")],
    q: Annotated[str | None, option("Configuration: numbers separated by commas; by default neutral.")] = None,
    point: Annotated[str, option("The tool's point in link axes: x,y,z in metres.")] = "0,0,0",
    joint_error: Annotated[float, option("Tolerance of every joint, in rad or m.")] = 0.0,
    frame_error: Annotated[
        str | None, option("Tolerance of every joint frame's placement: two numbers, m,rad.")
    ] = None,
    stiffness: Annotated[float | None, option("Stiffness of every drive, in N m/rad or N/m.")] = None,
    error_distribution: Annotated[
        str,
        option("Distribution of errors: uniform within the tolerances, or normal (the tolerance is three sigma)."),
    ] = "uniform",
    monte_carlo: Annotated[int, option("Check the result on so many robots with random errors.")] = 0,
    seed: Annotated[int, option("Seed of the random errors.", min=0)] = 0,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Show how accurately a robot places its tool: sag, worst case and standard deviation."""
    import numpy as np

    from ..loads import accuracy as of

    machine = load_robot(robot, base)
    at = vector_in(machine, "q", q)
    result = of(
        machine, at, link, point=numbers_in("--point", point) or (), joint_errors=joint_error,
        frame_errors=numbers_in("--frame-error", frame_error), stiffness=stiffness,
        error_distribution=error_distribution,
    )  # fmt: skip
    drawn = result.monte_carlo(monte_carlo, np.random.default_rng(seed)) if monte_carlo else None
    if as_json:
        print_json({"robot": machine.name, **_facts(result, drawn)})
        return
    _tell(machine.name, result, drawn)


def _tell(name: str, result: Accuracy, drawn: MonteCarlo | None) -> None:
    import numpy as np

    heads = ("", "sag", "worst case", "deviation", *(("drawn worst", "drawn deviation") if drawn else ()))
    columns = [result.sag, result.worst, result.deviation]
    if drawn:
        columns += [drawn.worst, np.sqrt(np.diag(drawn.covariance))]
    units = [f"{axis}, {'m' if k < 3 else 'rad'}" for k, axis in enumerate(("x", "y", "z", "rx", "ry", "rz"))]
    rows = [(unit, *(f"{c[k]:.4g}" for c in columns)) for k, unit in enumerate(units)]
    print(f"{name}: errors of {result.link}, world axes")
    print_table("", heads, rows)
    shares = list(result.shares().items())[:MAX_ERROR_SOURCES]
    if shares:
        rows = [(source, f"{100 * x:.3g}") for source, x in shares]
        print_table("\nwhere the variance of the position comes from", ("source", "%"), rows)


def _facts(result: Accuracy, drawn: MonteCarlo | None) -> dict[str, Any]:
    facts = {
        "link": result.link, "error_distribution": result.error_distribution,
        "sag": result.sag.tolist(), "worst": result.worst.tolist(),
        "deviation": result.deviation.tolist(), "covariance": result.covariance.tolist(),
        "shares": {name: float(x) for name, x in result.shares().items()},
    }  # fmt: skip
    if drawn is None:
        return facts
    check = {"mean": drawn.mean, "worst": drawn.worst, "covariance": drawn.covariance}
    return {**facts, "monte_carlo": {"count": len(drawn.errors), **{k: x.tolist() for k, x in check.items()}}}
