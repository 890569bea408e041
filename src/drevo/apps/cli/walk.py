"""drevo walk: a number of steps, and what the ground and the drives do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from .common import Json, RobotName, drawing_path, guarded, load_robot, option, print_json, progress_portion

if TYPE_CHECKING:
    from ..walking import Walk


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
    plot: Annotated[bool, option("Also draw reactions and drives as ROBOT-GAIT.svg.", "--plot")] = False,
    as_json: Json = False,
) -> None:
    """Let a biped walk from standing to standing, and report its balance, ground reactions and drives."""
    from dataclasses import replace

    from ..walking import draw, soles
    from ..walking import walk as run
    from ..walking.gait import gait_of

    chosen = gait_of(gait) if length is None else replace(gait_of(gait), length=length)
    corners = dict(map(_sole, feet)) if feet else None
    soles(
        load_robot(robot, "fixed"), corners
    )  # an arm is told that it has no feet, not what a free base would do to it
    made = load_robot(robot, "floating")
    with progress_portion(made.name, gait) as part:
        walked = run(made, steps, chosen, corners, progress=part)
    facts = _facts(walked, steps, gait)
    if as_json:
        print_json(facts)
    else:
        _tell(facts)
    if plot:
        path = drawing_path(made.name, gait)
        path.write_text(draw(walked, f"{made.name}: {steps} steps, {gait} gait"), encoding="utf-8")
        if not as_json:
            print(f"drawn {path}")


def _sole(text: str) -> tuple[str, list[list[float]]]:
    """A link and the corners of its sole."""
    from ...errors import InputError

    link, _, corners = text.partition("=")
    try:
        return link.strip(), [[float(x) for x in corner.split(",")] for corner in corners.split(";")]
    except ValueError:
        raise InputError(f"--feet {text!r} is not LINK=x,y,z;x,y,z;x,y,z") from None


def _facts(walked: Walk, steps: int, gait: str) -> dict[str, Any]:
    strongest, effort = walked.strongest
    return {
        "robot": walked.robot.name, "gait": gait, "steps": steps, "time": float(walked.stages[-1].t[-1]),
        "margin": walked.margin, "balance": walked.balance, "slip": walked.slip, "least_push": walked.least_push,
        "friction": walked.friction, "strongest": strongest, "effort": effort,
        "landings": [float(abs(x.impulses[x.foot, 2])) for x in walked.landings],
    }  # fmt: skip


def _tell(f: dict[str, Any]) -> None:
    print(f"{f['robot']}: {f['steps']} steps, {f['gait']} gait, {f['time']:.3g} s, {len(f['landings'])} landings")
    print(f"zero-moment point: {100 * f['margin']:.3g} cm or more inside the soles that stand")
    most = f"{100 * abs(f['balance']):.3g} cm"
    where = f"{most} or more inside" if f["balance"] > 0.0 else f"up to {most} outside"
    print(f"ground below the centre of mass: {where} them")
    print(f"soles: at most {f['slip']:.2g} m from where they were put down")
    print(f"no foot pulls: normal forces from {f['least_push']:.2g} N; friction {f['friction']:.2g}")
    hardest = max(f["landings"])
    print(f"strongest drive: {f['strongest']}, {f['effort']:.3g} N m; landings of at most {hardest:.2g} N s")
