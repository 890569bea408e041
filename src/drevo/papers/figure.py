"""Figure 1 of Kovalchuk, Kulakov and Semenov: a link between its neighbours, numbered by index functions."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np

from ..compiler.pages.drawing import seen_from
from ..dh import table
from ..documents.pictures.drawing import Drawing, DrawnBody, Point, svg
from ..io.given import Array
from ..mechanics.spatial import Vec
from ..robot.face import Robot

STUB_LENGTH = 0.5  # of a link that is cut off, by the longest l_{i,k}


def index_figure(robot: Robot, link: str) -> str:
    """A link that carries others, with its main and auxiliary frames; f(i) and s(i, k) are cut off. SVG.

    Frames are those of the table of Denavit and Hartenberg at zero coordinates.
    """
    t, frames = robot.topology, joint_frames(robot)
    i = t.names.index(link)
    children = {f"s(i,{k})": c for k, c in enumerate(t.Gamma(i), 1)}
    pole = frames[i][:3, 3]
    arms = [_unit(frames[c][:3, 3] - pole) for c in children.values()]
    far = STUB_LENGTH * max(float(np.linalg.norm(frames[c][:3, 3] - pole)) for c in children.values())
    cut = [("f(i)", pole, -np.sum(arms, axis=0))]
    cut += [(s, frames[c][:3, 3], _center(robot, t.subtree(c)) - frames[c][:3, 3]) for s, c in children.items()]
    kinds = ["prismatic" if not t.sigma(c) else "revolute" for c in (i, *children.values())]
    parts = [_part("i", -1, frames[i], kinds[0], _center(robot, (i,)))]
    parts += [_part(f"i,{k}", 0, frames[c], kinds[k]) for k, c in enumerate(children.values(), 1)]
    letters = {f"{x}_i": f"{x}_f(i),ns(i)" for x in "Oxyz"}
    for k, s in enumerate(children, 1):
        letters |= {f"L_i,{k}": f"l_i,{k}", f"q_i,{k}": f"q_{s}"}
    said = [f"{s} = {c} ({t.names[c]})" for s, c in {"i": i, "f(i)": t.f(i), **children}.items()]
    said[2:2] = [f"ns(i) = {t.ns(i)}", f"dg^+(i) = {t.dg(i)}"]
    up = -_unit(np.array(robot.model.gravity))
    front = np.linalg.svd([*arms, up])[2][2]  # across which the arms spread least
    right, above = seen_from(Vec(*_unit(front - up * (front @ up))), Vec(*up))
    stubs = tuple((name, _point(at), _point(at + far * _unit(way))) for name, at, way in cut)
    shown = Drawing(tuple(parts), _point(right), _point(above), ("its neutral posture", *said), letters, stubs)
    return svg(shown)


def joint_frames(robot: Robot) -> list[Array]:
    """(3): the frame (f(i), ns(i)) of each link i, whose z is the axis of its joint, (4, 4); 0 is the base's."""
    main, joint = [np.eye(4)], [np.eye(4)]
    for row in table(robot):
        c, s, ca, sa = (f(row[x]) for x in ("theta", "alpha") for f in (cos, sin))
        a, d = row["a"], row["d"]
        A = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
        joint.append(main[row["parent"]] @ row.get("M", np.eye(4)))
        main.append(joint[-1] @ A)  # (2)
    return joint


def _part(number: str, parent: int, frame: Array, kind: str, center: Array | None = None) -> DrawnBody:
    x, y, z = (_point(frame[:3, k]) for k in range(3))
    cross = None if center is None else _point(center)
    return DrawnBody(number, parent, _point(frame[:3, 3]), kind, z, cross, None, (x, y, z))


def _center(robot: Robot, links: tuple[int, ...]) -> Array:
    """The centre of mass of links at zero coordinates, (3,)."""
    q, members = robot.neutral(), (robot.model.links[k] for k in links)
    held = [(x.inertial.mass, robot.pose(q, x.name) @ [*x.inertial.com, 1.0]) for x in members if x.inertial]
    return np.asarray(sum(m * p for m, p in held) / sum(m for m, _ in held))[:3]


def _unit(v: Array) -> Array:
    return np.asarray(v / np.linalg.norm(v))


def _point(v: Any) -> Point:
    x, y, z = map(float, v)
    return x, y, z
