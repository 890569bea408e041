"""Machines whose operations are counted: a hand, a hexapod, wheels, tracks, an excavator, a drone with an arm.

Links have all ten inertial parameters, unrelated; wheels, sprockets and rotors are symmetric about their axis.
"""

from __future__ import annotations

from collections.abc import Callable

import drevo
from drevo.robots.arms import drawn

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
ROUND = ((0.01, 0, 0), (0, 0.02, 0), (0, 0, 0.01))  # about y
ROTOR = ((0.001, 0, 0), (0, 0.001, 0), (0, 0, 0.002))
Vector = tuple[float, float, float]


class Machine:
    """Bodies with drawn inertias, one after another."""

    def __init__(self, name: str, bodies: int, base: str | None = "free") -> None:
        self.builder = drevo.Builder(name)
        self.drawn = iter(drawn("general", [""] * (bodies + (base is not None)), len(name)))
        if base:
            self.link("base", None, (0, 0, 0), joint=base)

    def link(
        self, name: str, parent: str | None, origin: Vector, axis: Vector = Z, joint: str = "revolute"
    ) -> str:
        """A general body; its name."""
        b = next(self.drawn)
        more = {} if joint == "free" else {"axis": axis, "origin": origin}
        self.builder.body(name, parent, joint, mass=b.mass, com=b.com, inertia=b.tensor, **more)
        return name

    def wheel(self, name: str, parent: str, origin: Vector, axis: Vector = Y) -> None:
        """A body symmetric about its axis."""
        inertia = ROUND if axis == Y else ROTOR
        self.builder.body(name, parent, axis=axis, origin=origin, mass=0.5, inertia=inertia)

    def limb(self, name: str, parent: str, places: list[tuple[Vector, Vector]]) -> str:
        """Hinges at places with axes, one on the other; the last link."""
        for k, (origin, axis) in enumerate(places):
            parent = self.link(f"{name}{k + 1}", parent, origin, axis)
        return parent


def hand() -> drevo.Robot:
    """Four fingers of four joints on a palm that stands: abduction, then three parallel hinges."""
    m = Machine("hand", 16, None)
    for k in range(4):
        m.limb(
            f"finger{k + 1}_",
            "world",
            [((0.02 * k, 0, 0.1), X), ((0, 0, 0.02), Y), ((0, 0, 0.05), Y), ((0, 0, 0.04), Y)],
        )
    return m.builder.robot()


def hexapod() -> drevo.Robot:
    """Six legs of three joints on a free body."""
    m = Machine("hexapod", 18)
    for k in range(6):
        at = (0.2 * (k // 2 - 1), 0.1 * (-1) ** k, 0.0)
        m.limb(f"leg{k + 1}_", "base", [(at, Z), ((0, 0.05 * (-1) ** k, 0), X), ((0, 0.1 * (-1) ** k, 0), X)])
    return m.builder.robot()


def wheeled() -> drevo.Robot:
    """Four wheels on a free body, the front ones steered."""
    m = Machine("wheeled", 2)
    for k, (x, y) in enumerate(((0.5, 0.3), (0.5, -0.3), (-0.5, 0.3), (-0.5, -0.3))):
        fork = m.link(f"fork{k + 1}", "base", (x, y, 0)) if x > 0 else "base"
        m.wheel(f"wheel{k + 1}", fork, (0.0, 0.05, -0.1) if x > 0 else (x, y, -0.1))
    return m.builder.robot()


def tracked() -> drevo.Robot:
    """A sprocket, an idler and three road wheels on arms to each side of a free body."""
    m = Machine("tracked", 6)
    for side, y in (("left", 0.4), ("right", -0.4)):
        m.wheel(f"{side}_sprocket", "base", (0.6, y, 0.1))
        m.wheel(f"{side}_idler", "base", (-0.6, y, 0.1))
        for k in range(3):
            arm = m.link(f"{side}_arm{k + 1}", "base", (0.4 * (k - 1), y, -0.1), Y)
            m.wheel(f"{side}_wheel{k + 1}", arm, (-0.1, 0.0, -0.1))
    return m.builder.robot()


def excavator() -> drevo.Robot:
    """Cab, boom, stick and bucket upon a ground that holds still."""
    m = Machine("excavator", 4, None)
    m.limb("part", "world", [((0, 0, 1), Z), ((0.3, 0, 0.5), Y), ((3.0, 0, 0.0), Y), ((1.8, 0, 0), Y)])
    return m.builder.robot()


def drone() -> drevo.Robot:
    """Four rotors and an arm of four joints."""
    m = Machine("drone with an arm", 4)
    for k, (x, y) in enumerate(((0.3, 0.3), (-0.3, 0.3), (-0.3, -0.3), (0.3, -0.3))):
        m.wheel(f"rotor{k + 1}", "base", (x, y, 0.1), Z)
    m.limb("arm", "base", [((0, 0, -0.1), Z), ((0, 0, -0.2), Y), ((0.3, 0, 0), Y), ((0.25, 0, 0), X)])
    return m.builder.robot()


MACHINES: dict[str, Callable[[], drevo.Robot]] = {
    "hand": hand,
    "hexapod": hexapod,
    "wheeled": wheeled,
    "tracked": tracked,
    "excavator": excavator,
    "drone with an arm": drone,
}
