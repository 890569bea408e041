"""Joints of a file that form any graph: a tree of them, and loops that the others close."""

from __future__ import annotations

from dataclasses import replace

from drevo.model.description import Joint, Loop, Vec3
from drevo.model.draft import Draft
from drevo.model.rotations import apply, inverse_pose, matmul

CLOSES = {
    **{kind: kind for kind in ("prismatic", "cylindrical", "universal")},
    **{"fixed": "weld", "spherical": "point", "revolute": "revolute", "continuous": "revolute"},
}
TURNS_ROUND = (
    "fixed",
    "revolute",
    "continuous",
    "prismatic",
    "helical",
)  # kinds that may be read from their child


def split_loops(draft: Draft) -> None:
    """Keep the joints that carry a link first, in the order of the file; every further one closes a loop.

    A joint to a link that is carried already carries its parent instead where nothing else does.
    """
    carrier: dict[str, str] = {"world": ""}
    tree: list[Joint] = []
    kinds = {"ball": "spherical", "screw": "helical"}
    for joint in draft.joints:
        joint = replace(joint, kind=kinds.get(joint.kind, joint.kind))
        a, b = joint.parent, joint.child
        if a == b:
            tree.append(joint)  # validation says what is wrong with it
        elif b not in carrier and _root(carrier, a) != b:
            carrier[b] = a
            tree.append(joint)
        elif a not in carrier and _root(carrier, b) != a and joint.kind in TURNS_ROUND and not joint.mimic:
            carrier[a] = b
            tree.append(turned_round(joint))
        else:
            close(draft, joint)
    draft.joints = tree


def _root(carrier: dict[str, str], name: str) -> str:
    while carrier.get(name):
        name = carrier[name]
    return name


def turned_round(joint: Joint) -> Joint:
    """The same joint with the same coordinate, its child told as the parent."""
    origin, rotation = inverse_pose((joint.child_origin, joint.child_rotation))
    place, turn = inverse_pose((joint.origin, joint.rotation))
    x, y, z = joint.axis
    return replace(
        joint, parent=joint.child, child=joint.parent, origin=origin, rotation=rotation, axis=(-x, -y, -z),
        child_origin=place, child_rotation=turn,
    )  # fmt: skip


def close(draft: Draft, joint: Joint) -> None:
    """Enter a joint as a loop; what acts in it beside is not read."""
    if joint.kind not in CLOSES:
        draft.problems.append(
            f"{draft.at(joint)} closes a loop, since {joint.child!r} is carried already, and is of type "
            f"{joint.kind}; only {', '.join(sorted(CLOSES))} do: remove it, or cut the loop at another joint"
        )
        return
    for what, size in (("dynamics", joint.dynamics), ("mimic", joint.mimic)):
        if size is not None:
            draft.ignore(f"{what} where a loop is closed", draft.at(joint))
    point_b, turn_b = inverse_pose((joint.child_origin, joint.child_rotation))
    kind = CLOSES[joint.kind]
    axes: tuple[Vec3 | None, Vec3 | None] = (None, None)
    if kind not in ("weld", "point"):
        second = joint.axis2 if kind == "universal" and joint.axis2 else joint.axis
        axes = apply(joint.rotation, joint.axis), apply(turn_b, second)
    turn = matmul(joint.rotation, joint.child_rotation) if kind in ("weld", "prismatic", "universal") else None
    draft.loops.append(Loop(kind, joint.parent, joint.origin, joint.child, point_b, turn, *axes))
