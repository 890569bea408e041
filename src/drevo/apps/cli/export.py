"""drevo export: a quantity as an object file for another processor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json


@guarded
def export(
    robot: RobotName,
    quantity: Annotated[
        str, typer.Argument(metavar="QUANTITY", help="inverse_dynamics, mass_matrix, pose, ...")
    ] = "inverse_dynamics",
    target: Annotated[
        str, option("cortex-m4f, cortex-m7, aarch64, riscv64, wasm, windows, macos or ptx.", "-t", "--target")
    ] = "",
    dtype: Annotated[str, option("float64 or float32.")] = "float64",
    output: Annotated[Path, option("The folder to write to.", "-o", "--output")] = Path(),
    name: Annotated[str, option("The name of the function; by default robot_quantity.")] = "",
    parameters: Annotated[str, option("Parameters to keep as an argument, with commas between them.")] = "",
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    frame: Annotated[str, option("The frame of velocity, jacobian, ...")] = "",
    ros2: Annotated[bool, option("A ROS 2 package for the robot instead: a plug-in in C++.", "--ros2")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Write a quantity for another processor: an object file or module, a header or loader, an example.

    Nothing but Drevo is needed to make it; the line that links it with the example is printed.
    """
    from ...robot.writing import export as exported

    if ros2:
        from ..ros2 import ros2_package

        print(*ros2_package(load_robot(robot, base), output, link=link), sep="\n")
        return
    options: dict[str, Any] = {k: x for k, x in (("link", link), ("frame", frame)) if x}
    kept = [x.strip() for x in parameters.split(",") if x.strip()]
    made = exported(
        load_robot(robot, base),
        quantity,
        target,
        dtype=dtype,
        folder=output,
        name=name,
        parameters=kept,
        **options,
    )
    if not as_json:
        print(made)
        return
    told = {k: getattr(made, k) for k in ("name", "target", "dtype", "size", "instructions", "cycles", "link")}
    print_json(told | {"files": [str(f) for f in made.files]})
