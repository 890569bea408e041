"""A robot as a drawing of its tree in text, and as a table for notebooks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from ..model.description import Joint, Model

MAX_LINES = 40  # lines of a tree
UNITS = {"prismatic": "m"}


def tree_of(model: Model, most: int = MAX_LINES) -> str:
    """The tree: a line for every link, with the joint that carries it, its coordinates and its mass.

    Links stand under what carries them; of a chain they stand under one another without moving to the right.
    """
    lines = list(_lines(model))
    more = [f"... and {len(lines) - most} more links"] if len(lines) > most else []
    return "\n".join([*lines[:most], *more])


def _lines(model: Model) -> Iterator[str]:
    """Lines of the tree of links, each with its joint, its place in q and its mass."""
    below: defaultdict[str, list[Joint]] = defaultdict(list)
    for joint in model.joints:
        below[joint.parent].append(joint)
    places = {joint.name: (q.start, q.stop) for joint, q, _ in model.slices()}
    masses = {link.name: link.inertial.mass for link in model.links if link.inertial}
    stack: list[tuple[str, str, str]] = [(model.root, "", "")]
    while stack:
        link, mark, margin = stack.pop()
        mass = f"  {masses[link]:.4g} kg" if masses.get(link) else ""
        yield f"{mark}{link}{mass}"
        joints = below[link]
        for k, joint in reversed(list(enumerate(joints))):
            last = k == len(joints) - 1
            tick = "" if len(joints) == 1 else "└ " if last else "├ "
            inner = margin if len(joints) == 1 else margin + ("  " if last else "│ ")
            stack.append((joint.child, f"{margin}{tick or '· '}{_joint(joint, places)} ", inner))


def _joint(joint: Joint, places: dict[str, tuple[int, int]]) -> str:
    """shoulder: revolute q[0] ->"""
    if joint.mimic:
        return f"{joint.name}: {joint.kind} with {joint.mimic.joint} ->"
    if joint.name not in places:
        return f"{joint.name}: {joint.kind} ->"
    first, end = places[joint.name]
    return f"{joint.name}: {joint.kind} q[{first}{f':{end}' if end - first > 1 else ''}] ->"


def page_of(model: Model, drawing: str) -> str:
    """HTML: the drawing, and a row for every joint that moves."""
    rows = "".join(
        f"<tr><td>{escape(joint.name)}</td><td>{joint.kind}</td><td>{_range(q)}</td><td>{_limits(joint)}</td>"
        f"<td>{escape(joint.child)}</td></tr>"
        for joint, q, _ in model.slices()[:MAX_LINES]
    )
    more = f"<p>and {len(model.slices()) - MAX_LINES} more</p>" if len(model.slices()) > MAX_LINES else ""
    heads = "".join(f"<th>{head}</th>" for head in ("joint", "kind", "q", "limits", "carries"))
    title = f"<b>{escape(model.name)}</b>: {len(model.links)} links, nq {model.nq}, nv {model.nv}"
    return f"<div>{title}<br/>{drawing}<table><tr>{heads}</tr>{rows}</table>{more}</div>"


def _range(part: slice) -> str:
    return str(part.start) if part.stop - part.start == 1 else f"{part.start} to {part.stop - 1}"


def _limits(joint: Joint) -> str:
    limit, unit = joint.limit, UNITS.get(joint.kind, "rad")
    if limit is None or (limit.lower is None and limit.upper is None):
        return ""
    low, high = ("-" if x is None else f"{x:.4g}" for x in (limit.lower, limit.upper))
    return f"{low} to {high} {unit}"
