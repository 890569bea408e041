"""drevo swing-up: a pendulum from hanging to standing with little effort, by trajectory optimisation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from ..io.files import PICTURES
from .common import PLOT, Json, guarded, option, print_json, print_picture, ready_for, save_result

if TYPE_CHECKING:
    from ..robot.face import Robot


class Swing(NamedTuple):
    """A robot to swing up: its driven joints, upright position, seconds, the limit of effort unless told."""

    robot: Robot
    driven: tuple[str, ...]
    upright: tuple[float, ...]
    duration: float
    limit: float


def swings(kind: str) -> Swing:
    """A pendulum with a weak motor, a pole on a cart, or two links of which the first is driven."""
    from ..errors import InputError, one_of
    from ..robot.builder import Builder

    one_of("swing-up: the kind", kind, ("cart-pole", "pendulum", "double-pendulum"), InputError)
    b = Builder(kind, gravity=(0, 0, -9.81))
    rod: dict[str, Any] = {
        "mass": 1.0,
        "com": (0, 0, -0.25),
        "inertia": [[0.0208, 0, 0], [0, 0.0208, 0], [0, 0, 1e-4]],
    }
    if kind == "cart-pole":
        b.body("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
        b.body("pole", parent="cart", axis=(0, 1, 0), **rod)
        return Swing(b.robot(), ("cart_joint",), (0.0, math.pi), 2.5, 10.0)
    b.body("rod", axis=(0, 1, 0), damping=0.01, **rod)
    if kind == "pendulum":
        return Swing(b.robot(), ("rod_joint",), (math.pi,), 3.0, 1.5)
    b.body("second", parent="rod", axis=(0, 1, 0), origin=(0, 0, -0.5), damping=0.01, **rod)
    return Swing(b.robot(), ("rod_joint",), (math.pi, 0.0), 3.0, 12.0)


@guarded
def swing_up(
    kind: Annotated[str, option("cart-pole, pendulum or double-pendulum.")] = "cart-pole",
    limit: Annotated[float | None, option("Greatest effort of the drive, N or N m.")] = None,
    horizon: Annotated[int, option("Knots of the motion.", min=10, max=10_000)] = 150,
    plot: Annotated[bool, option(PLOT, "--plot")] = False,
    output: Annotated[Path | None, option("Save the motion as .svg, .png or .pdf.", "-o", "--output")] = None,
    as_json: Json = False,
) -> None:
    """Swing a pendulum up with a limited drive, and report how."""
    from ..control import optimise

    ready_for("a motion", output, PICTURES)
    s = swings(kind)
    most = s.limit if limit is None else limit

    def effort(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        return 2e-2 * sum(x * x for x in tau) + 1e-3 * sum(x * x for x in v)

    def standing(pose: Any, q: Any, v: Any) -> Any:
        return 200.0 * sum((x - y) ** 2 for x, y in zip(q, s.upright)) + 20.0 * sum(x * x for x in v)

    still = [0.0] * len(s.upright)
    start = [1e-3] * horizon if kind == "pendulum" else [0.0] * horizon
    motion = optimise(
        s.robot, effort, still, still, horizon, s.duration / horizon, {"tau": most}, standing, actuated=s.driven,
        guess=[[x, *still[1:]] for x in start], iterations=500, tolerance=1e-8,
    )  # fmt: skip
    facts = {
        "kind": kind, "converged": motion.converged, "reason": motion.reason, "iterations": motion.iterations,
        "cost": motion.cost, "effort": float(abs(motion.tau).max()), "limit": most,
        "off": float(abs(motion.q[-1] - s.upright).max()),
    }  # fmt: skip
    save_result(motion, output)
    if as_json:
        return print_json(facts)
    print(f"{kind}: {motion.reason}, {motion.iterations} iterations, cost {motion.cost:.6g}")
    print(f"greatest effort {facts['effort']:.4g} of {most:g}; {facts['off']:.2g} from standing")
    print_picture(motion, plot, output)
