"""Arms with closed forms, in the shapes that are sold: joints by axis and by the step from the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import drevo

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
Row = tuple[str, tuple[float, float, float], tuple[float, float, float]]  # R or P, axis, step
BALL = ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1))
TOOL = (0.05, -0.02, 0.11)

ARMS: dict[str, Sequence[Row]] = {
    # offset shoulder and elbow, wrist in line
    "abb": [("R", Z, (0, 0, 0.29)), ("R", Y, (0.1, 0, 0.2)), ("R", Y, (0, 0, 0.27)), ("R", X, (0.1, 0, 0.07)),
            ("R", Y, (0.302, 0, 0)), ("R", X, (0.07, 0, 0))],
    "kuka": [("R", (0, 0, -1), (0, 0, 0.4)), ("R", Y, (0.025, 0, 0)), ("R", Y, (0.455, 0, 0)),
             ("R", (-1, 0, 0), (0.2, 0, 0.035)), ("R", Y, (0.22, 0, 0)), ("R", (-1, 0, 0), (0.08, 0, 0))],
    # the third axis turns the other way, the shoulder stands aside
    "fanuc": [("R", Z, (0, 0, 0.33)), ("R", Y, (0.075, 0.03, 0)), ("R", (0, -1, 0), (0, 0, 0.32)),
              ("R", (-1, 0, 0), (0.1, 0, 0.075)), ("R", (0, -1, 0), (0.225, 0, 0)),
              ("R", (-1, 0, 0), (0.08, 0, 0))],
    "ur10e": [("R", Z, (0, 0, 0.1807)), ("R", Y, (0, 0.17, 0)), ("R", Y, (0, 0, 0.6127)),
              ("R", Y, (0, 0, 0.57155)),
              ("R", (0, 0, -1), (0, 0.00415, 0)), ("R", Y, (0, 0, -0.11985))],
    # a slanted wrist, and axes that are in no plane of coordinates
    "slanted": [("R", Z, (0, 0, 0.3)), ("R", (0.6, 0.8, 0), (0.1, 0, 0.1)), ("R", (0.6, 0.8, 0), (0.05, 0.1, 0.4)),
                ("R", X, (0.3, 0, 0.1)), ("R", (0.6, 0, 0.8), (0.1, 0, 0)), ("R", X, (0, 0, 0))],
    # two axes that meet at the shoulder; at the elbow; parallel ones there
    "shoulder": [("R", Z, (0, 0, 0.3)), ("R", Y, (0, 0, 0.1)), ("R", X, (0.05, 0.1, 0.4)),
                 ("R", Z, (0.1, 0.1, 0.3)),
                 ("R", X, (0, 0, 0)), ("R", Z, (0, 0, 0.2))],
    "elbow": [("R", Z, (0, 0, 0.3)), ("R", Y, (0.2, 0.1, 0.1)), ("R", X, (0.1, 0, 0)), ("R", Z, (0.3, 0.1, 0.3)),
              ("R", X, (0, 0, 0)), ("R", Z, (0, 0, 0.1))],
    "carousel": [("R", Z, (0, 0, 0.3)), ("R", Z, (0.4, 0, 0)), ("R", X, (0.3, 0, 0)), ("R", Z, (0.1, 0.3, 0)),
                 ("R", X, (0, 0, 0)), ("R", Z, (0, 0, 0.1))],
    # the wrist at the base
    "turned": [("R", Z, (0, 0, 0.3)), ("R", Y, (0, 0, 0)), ("R", Z, (0, 0, 0)), ("R", Y, (0.1, 0, 0.4)),
               ("R", Y, (0, 0.1, 0.3)), ("R", X, (0.1, 0, 0.1))],
    "gantry": [("P", X, (0, 0, 1.0)), ("P", Y, (0, 0, 0)), ("P", (0, 0, -1), (0, 0, 0)), ("R", Z, (0, 0, -0.1)),
               ("R", Y, (0, 0, -0.1)), ("R", Z, (0, 0, -0.1))],
    "gantry4": [("P", X, (0, 0, 1.0)), ("P", Y, (0, 0, 0)), ("P", Z, (0, 0, 0)), ("R", Z, (0, 0, -0.1))],
    "cylinder": [("R", Z, (0, 0, 0.3)), ("P", Z, (0, 0, 0)), ("P", X, (0.2, 0.1, 0)), ("R", Z, (0.1, 0, 0)),
                 ("R", Y, (0, 0, 0)), ("R", Z, (0, 0, 0.1))],
    "lifted": [("P", Z, (0, 0, 0.3)), ("R", Z, (0.1, 0, 0)), ("R", Z, (0.4, 0, 0)), ("R", X, (0.3, 0, 0)),
               ("R", Y, (0, 0, 0)), ("R", X, (0.1, 0, 0))],
    "polar": [("R", Z, (0, 0, 0.3)), ("R", Y, (0, 0, 0.2)), ("P", (0.6, 0.8, 0), (0.1, 0, 0)),
              ("R", X, (0.2, 0.1, 0)),
              ("R", Y, (0, 0, 0)), ("R", X, (0.1, 0, 0))],
    "scara": [("R", Z, (0, 0, 0.3)), ("R", Z, (0.4, 0, 0)), ("R", Z, (0.3, 0, 0)),
              ("P", (0, 0, -1), (0, 0, -0.1))],
    "plane": [("R", Y, (0, 0, 0.1)), ("R", Y, (0.5, 0, 0)), ("R", (0, -1, 0), (0.3, 0, 0))],
    "five": [("R", Z, (0, 0, 0.1)), ("R", Y, (0, 0, 0.1)), ("R", Y, (0, 0, 0.3)), ("R", Y, (0, 0, 0.3)),
             ("R", Z, (0, 0, 0.1))],
    # seven joints, closed when one is given
    "iiwa": [("R", Z, (0, 0, 0.1475)), ("R", Y, (0, 0, 0.2125)), ("R", Z, (0, 0, 0.21)),
             ("R", (0, -1, 0), (0, 0, 0.21)),
             ("R", Z, (0, 0, 0.2)), ("R", Y, (0, 0, 0.2)), ("R", Z, (0, 0, 0.1))],
}  # fmt: skip
EVERY = [*ARMS, "puma560", "rx90", "stanford", "ur5"]
GIVEN = {"iiwa": ("j3", "j1", "j2", "j5", "j6", "j7"), "panda": ("panda_joint7", "panda_joint6", "panda_joint4")}


def arm(name: str, tilt: float = 0.0) -> drevo.Robot:
    """A robot of the table, or one by its name; tilt: by how much its joints are out of true, rad."""
    if name not in ARMS:
        return drevo.load(name)
    builder, rng = drevo.Builder(name), np.random.default_rng(3)
    for k, (kind, axis, step) in enumerate(ARMS[name], 1):
        builder.body(
            f"l{k}", parent=f"l{k - 1}" if k > 1 else "world", joint_name=f"j{k}", axis=axis, origin=step,
            joint="revolute" if kind == "R" else "prismatic", mass=1.0, com=(0, 0, 0.1), inertia=BALL,
            rpy=tilt * rng.normal(size=3),
        )  # fmt: skip
    last = f"l{len(ARMS[name])}"
    builder.body("tool", parent=last, joint="fixed", origin=TOOL, rpy=(0.3, -0.2, 0.1))
    return builder.robot()


def link_of(robot: drevo.Robot) -> str:
    """The link whose pose is asked for."""
    return next(x for x in ("tool", "tool0", "panda_link8", robot.link_names[-1]) if x in robot.link_names)
