"""Joints of a file that form any graph: a tree of them, and loops that the others close."""

from __future__ import annotations

from dataclasses import replace

from ..description import IDENTITY, Joint, Loop, Vec3
from ..draft import Draft
from ..rotations import FramePose, apply, compose, inverse_pose, matmul, transpose

CLOSED = 1e-12  # metres, or what axes are apart: a loop is closed
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


def closing_joint(loop: Loop, between: FramePose) -> Joint | None:
    """A joint without a name that closes a loop where b stands so in a; None where it is not closed there."""
    place = compose(between, (loop.point_b, IDENTITY))[0]
    kinds = {closed: kind for kind, closed in CLOSES.items() if kind not in ("continuous",)}
    if loop.kind not in kinds or loop.kind == "cylindrical":
        return None
    across = (0.0, 0.0, 0.0)  # what the joint leaves free
    axis_a, axis_b = loop.axis_a or across, apply(between[1], loop.axis_b or across)
    gap: list[float] = [x - y for x, y in zip(place, loop.point_a, strict=True)]
    if loop.kind == "prismatic":
        along = sum(x * y for x, y in zip(gap, axis_a, strict=True))
        gap = [x - along * y for x, y in zip(gap, axis_a, strict=True)]
    if loop.kind in ("revolute", "prismatic"):
        gap += [x - y for x, y in zip(axis_a, axis_b, strict=True)]
    if loop.kind in ("weld", "prismatic"):
        turn = loop.rotation or IDENTITY
        gap += [
            x - y for one, other in zip(turn, between[1], strict=True) for x, y in zip(one, other, strict=True)
        ]
    if loop.kind == "universal" and loop.rotation is None:
        gap.append(sum(x * y for x, y in zip(axis_a, axis_b, strict=True)))
    if (loop.kind == "weld" and loop.rotation is None) or max(map(abs, gap)) > CLOSED:
        return None
    first = apply(transpose(between[1]), axis_a)
    second = loop.axis_b if loop.kind == "universal" else None
    x, y, z = loop.point_b
    first = first if any(first) else (1.0, 0.0, 0.0)
    return Joint(
        "", kinds[loop.kind], loop.link_a, loop.link_b, place, between[1], first, second, child_origin=(-x, -y, -z)
    )


def _root(carrier: dict[str, str], name: str) -> str:
    """The link at the top of the chain of carriers."""
    while carrier.get(name):
        name = carrier[name]
    return name


def turned_round(joint: Joint) -> Joint:
    """Reverses a joint, with the same coordinate: its child becomes the parent."""
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
    for part, size in (("dynamics", joint.dynamics), ("mimic", joint.mimic)):
        if size is not None:
            draft.ignore(f"{part} where a loop is closed", draft.at(joint))
    point_b, turn_b = inverse_pose((joint.child_origin, joint.child_rotation))
    kind = CLOSES[joint.kind]
    axes: tuple[Vec3 | None, Vec3 | None] = (None, None)
    if kind not in ("weld", "point"):
        second = joint.axis2 if kind == "universal" and joint.axis2 else joint.axis
        axes = apply(joint.rotation, joint.axis), apply(turn_b, second)
    turn = matmul(joint.rotation, joint.child_rotation) if kind in ("weld", "prismatic", "universal") else None
    draft.loops.append(Loop(kind, joint.parent, joint.origin, joint.child, point_b, turn, *axes))
