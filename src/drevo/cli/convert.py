"""drevo convert: a robot from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json


@guarded
def convert(
    robot: RobotName,
    to: Annotated[
        Path, typer.Argument(metavar="FILE", help="What to write: .urdf, .xml (MJCF), .sdf, .toml or .json.")
    ],
    lossy: Annotated[bool, option("Leave out what the format cannot say, and list it.", "--lossy")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Write a robot as another file, with the same dynamics.

    What is written is loaded again and compared before it is kept. What acts on the motion and the format cannot
    say is refused, unless --lossy leaves it out.
    """
    loaded = load_robot(robot, base)
    loaded.save(to, lossy=lossy)
    if as_json:
        print_json({"file": str(to), "robot": loaded.name, "nq": loaded.nq, "nv": loaded.nv})
        return
    print(f"{to}: {loaded.name}, nq {loaded.nq}, nv {loaded.nv}")
