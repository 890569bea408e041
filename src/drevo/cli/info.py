"""drevo info: what a robot is."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .common import Base, Json, RobotName, guarded, load_robot, print_json, print_table

if TYPE_CHECKING:
    from ..robot.face import Robot


@guarded
def info(robot: RobotName, base: Base = "fixed", as_json: Json = False) -> None:
    """Show a robot: its size and mass, its joints in the order of q, and what in its file was not read."""
    data = describe_robot(load_robot(robot, base))
    if as_json:
        print_json(data)
        return
    print(f"{data['name']}: {len(data['links'])} links, nq {data['nq']}, nv {data['nv']}, {data['mass']:.6g} kg")
    print("gravity {:g} {:g} {:g} m/s^2".format(*data["gravity"]))
    head = ["joint", "kind", "parent", "child", "q", "limits"]
    rows = [[j["name"], j["kind"], j["parent"], j["child"], _span(j), _limits(j)] for j in data["joints"]]
    if any(j["dynamics"] for j in data["joints"]):
        head.append("acts in it")
        for row, j in zip(rows, data["joints"]):
            row.append(", ".join(f"{name} {value:g}" for name, value in j["dynamics"].items()))
    print_table("", head, rows, left=4)
    for note in data["notes"]:
        print(f"note: {note}")
    for link, off in data["nearly_symmetric"].items():
        print(f"note: link {link!r} is symmetric about its joint but for {off:.1e}; symmetric= may take it for it")


def describe_robot(robot: Robot) -> dict[str, Any]:
    """A summary of a robot as plain data: its size, mass, gravity, links, joints and notes."""
    from ..compiler.pages.symmetry import nearly_symmetric

    model = robot.model
    joints, at = [], 0
    for joint in model.joints:
        limit = joint.limit
        joints.append({
            "name": joint.name, "kind": joint.kind, "parent": joint.parent, "child": joint.child,
            "q": [at, at + joint.nq], "mimic": joint.mimic.joint if joint.mimic else None,
            "lower": limit.lower if limit else None, "upper": limit.upper if limit else None,
            "dynamics": {k: x for k, x in asdict(joint.dynamics).items() if x} if joint.dynamics else {},
        })  # fmt: skip
        at += joint.nq
    return {
        "name": model.name, "source": model.source, "nq": robot.nq, "nv": robot.nv, "gravity": model.gravity,
        "mass": model.total_mass,
        "links": [link.name for link in model.links], "joints": joints, "notes": list(model.notes),
        "nearly_symmetric": nearly_symmetric(model),
    }  # fmt: skip


def _span(joint: dict[str, Any]) -> str:
    first, end = joint["q"]
    if joint["mimic"]:
        return f"of {joint['mimic']}"
    return "" if end == first else str(first) if end == first + 1 else f"{first}-{end - 1}"


def _limits(joint: dict[str, Any]) -> str:
    low, high = joint["lower"], joint["upper"]
    if low is None and high is None:
        return ""
    return " .. ".join("" if x is None else f"{x:.4g}" for x in (low, high))
