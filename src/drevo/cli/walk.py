"""drevo walk: a number of steps, and what the ground and the drives do meanwhile."""

from __future__ import annotations

from math import radians
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..io.files import PICTURES
from .common import (
    PLOT,
    Json,
    RobotName,
    guarded,
    load_robot,
    numbers_in,
    option,
    print_json,
    print_picture,
    progress_portion,
    ready_for,
    save_result,
)

if TYPE_CHECKING:
    from ..walking import Gait, Walk


@guarded
def walk(
    robot: RobotName,
    steps: Annotated[int, option("How many steps, one foot after the other.")] = 6,
    gait: Annotated[str, option("Kind of gait: dynamic or static.")] = "dynamic",
    length: Annotated[float | None, option("Length of a step, in metres.")] = None,
    feet: Annotated[
        list[str] | None,
        option(
            "A sole, for each foot: LINK=x,y,z;x,y,z;x,y,z, its corners in link axes, in metres.",
            "--feet",
            metavar="LINK=CORNERS",
        ),
    ] = None,
    turn: Annotated[float, option("Turn to the left with each step, in degrees.")] = 0.0,
    slope: Annotated[float, option("The ground rises forward by so many degrees.")] = 0.0,
    rise: Annotated[
        float, option("Height of a step up in the ground, after the first foothold, in metres.")
    ] = 0.0,
    law: Annotated[str, option("Law of contact: coulomb or soft.")] = "coulomb",
    push: Annotated[
        str | None, option("A push in the middle of the walk: N s forward and to the left.", metavar="X,Y")
    ] = None,
    patch: Annotated[
        float | None, option("Coefficient of friction of a slippery place under the foothold in the middle.")
    ] = None,
    plot: Annotated[bool, option(PLOT, "--plot")] = False,
    output: Annotated[
        Path | None, option("Save reactions, drives and footprints as .svg, .png or .pdf.", "-o", "--output")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let a biped walk from standing to standing, and report its balance, ground reactions and drives."""
    from dataclasses import replace

    from ..walking.gait import gait_of

    ready_for("a walk", output, PICTURES)
    chosen = replace(gait_of(gait), turn=radians(turn), slope=radians(slope), rise=rise)
    if length is not None:
        chosen = replace(chosen, length=length)
    walked = _walked(robot, steps, chosen, feet, law=law, push=numbers_in("--push", push), patch=patch)
    save_result(walked, output)
    if as_json:
        return print_json(_facts(walked, steps, gait))
    _tell(_facts(walked, steps, gait))
    print_picture(walked, plot, output)


def _walked(robot: str, steps: int, gait: Gait, feet: list[str] | None, **given: Any) -> Walk:
    from ..walking import soles, walk

    corners = dict(map(_sole, feet)) if feet else None
    # an arm is told that it has no feet, not what a free base would do to it
    soles(load_robot(robot, "fixed"), corners)
    biped = load_robot(robot, "floating")
    with progress_portion(biped.name, gait.name) as part:
        return walk(biped, steps, gait, corners, progress=part, **given)


def _sole(text: str) -> tuple[str, list[list[float]]]:
    """A link and the corners of its sole."""
    from ..errors import InputError

    link, _, corners = text.partition("=")
    try:
        return link.strip(), [[float(x) for x in corner.split(",")] for corner in corners.split(";")]
    except ValueError:
        raise InputError(f"--feet {text!r} is not LINK=x,y,z;x,y,z;x,y,z") from None


def _facts(walked: Walk, steps: int, gait: str) -> dict[str, Any]:
    (strongest, effort), plan = walked.strongest, walked.plan
    return {
        "robot": walked.robot.name, "gait": gait, "steps": steps, "time": float(walked.t[-1]), "fell": walked.fell,
        "margin": plan.margin, "balance": plan.balance, "friction": plan.friction, "away": walked.away,
        "slip": walked.slip, "residual": float(walked.residual.max()), "strongest": strongest, "effort": effort,
    }  # fmt: skip


def _tell(f: dict[str, Any]) -> None:
    """Prints the facts of a walk as sentences."""
    end = "stands" if f["fell"] is None else f"falls at {f['fell']:.3g} s"
    print(f"{f['robot']}: {f['steps']} step{'s' * (f['steps'] != 1)}, {f['gait']} gait, {f['time']:.3g} s: {end}")
    print(f"plan: zero-moment point {100 * f['margin']:.3g} cm or more inside the soles that stand")
    most = f"{100 * abs(f['balance']):.3g} cm"
    where = f"{most} or more inside" if f["balance"] > 0.0 else f"up to {most} outside"
    print(f"plan: ground below the centre of mass {where} them; friction {f['friction']:.2g}")
    print(
        f"walk: centre of mass at most {1e3 * f['away']:.2g} mm from the plan; soles slip {1e3 * f['slip']:.2g} mm"
    )
    print(
        f"walk: strongest drive {f['strongest']}, {f['effort']:.3g} N m; residual of the law {f['residual']:.1g}"
    )
