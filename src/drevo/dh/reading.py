"""Any robot as a Denavit-Hartenberg table, standard or modified.

Each row is a body with one coordinate; welded links are one body, joints of several freedoms are chains of rows
with massless bodies between. The first child of a body takes its x axis from the common normal of the two joint
axes; every other child starts from an auxiliary frame M_{i,k} of its parent (Kovalchuk, Kulakov, Semenov), as
does the first where no normal is to be had: at the base, past a ball, and where the axes are almost parallel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ModelError, shown
from ..mechanics.spatial import UNIT_VECS
from ..mechanics.tree import Tree, TreeBody, plain_tree
from ..model.description import ContactPoint, JointCoupling, JointDynamics, Loop, Model, Shape
from ..model.draft import model_of
from ..robot.face import Robot

Array = np.ndarray[Any, Any]
ArrayFrame = tuple[Array, Array]  # rotation, origin
CONVENTIONS = ("standard", "modified")
BALLS = ("spherical", "free")  # no axis: the row's frame is the body's own
PARALLEL = 1e-13  # sine of the angle between two axes: below it they are parallel, with rounding in it
ALMOST = 0.05  # below it their common normal runs away: rounding grows in it as 1 / sine^2
ROUNDING_LEFT = 1e-14  # m or rad: left over from rounding
IDENTITY_ARRAYS: ArrayFrame = (np.eye(3), np.zeros(3))


@dataclass(frozen=True, eq=False)
class Table(Sequence[Mapping[str, Any]]):
    """Rows for `drevo.from_dh`, which takes the whole table back: the same dynamics, the same q, links and frames.

    rows: mappings with `name parent joint theta d a alpha mass com inertia` and where needed `M joint_name lead
    limit mimic dynamics`. frames: (row, 4x4) of every link: where it stands in the frame of the row that holds it;
    row 0 is the base, whose link is the root. shapes: of the links that have any.
    """

    rows: tuple[Any, ...]
    convention: str
    name: str
    gravity: tuple[float, float, float]
    frames: Mapping[str, tuple[int, Array]] = field(default_factory=dict)
    root: str = "world"
    loops: tuple[Loop, ...] = ()
    contacts: tuple[ContactPoint, ...] = ()
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)
    couplings: tuple[JointCoupling, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: Any) -> Any:
        return self.rows[k]

    def __repr__(self) -> str:
        return f"<Table of {self.name!r}: {len(self)} rows, {self.convention} convention>"

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The table for a terminal: angles as parts of pi where they are, q where the joint moves."""
        from ..documents.dh_text import text_table

        return text_table(self.rows, self.convention)

    def markdown(self) -> str:
        """The table as Markdown."""
        from ..documents.dh_text import markdown_table

        return markdown_table(self.rows, self.convention)

    def _repr_html_(self) -> str:
        from ..documents.dh_text import html_table

        return html_table(self.rows, self.convention)

    def _repr_latex_(self) -> str:
        return self.latex()

    def latex(self) -> str:
        """The table as a LaTeX tabular (booktabs)."""
        from ..documents.dh_text import latex_table

        return latex_table(self.rows, self.convention)


def table(robot: Robot | Model, convention: str = "standard") -> Table:
    """The Denavit-Hartenberg table of any robot.

    convention: "standard" (distal, A = Rz(theta) Tz(d) Tx(a) Rx(alpha)) or "modified" (proximal,
    A = Rx(alpha) Tx(a) Rz(theta) Tz(d)). A floating base is a row of its own with the joint "free" before the
    others, a spherical joint one with the joint "spherical": their frames are those of the links. Masses,
    centres of mass and central inertias are in the rows' frames, kg, m, kg m^2. Raises ModelError for an
    unknown convention.
    """
    convention_of(convention)
    model = model_of(robot, "drevo.dh.table")
    return _Export(model, plain_tree(model, "drevo.dh.table"), convention).table()


def convention_of(name: object) -> str:
    """A known convention, or ModelError."""
    if not isinstance(name, str) or name not in CONVENTIONS:
        raise ModelError(f"the convention is 'standard' or 'modified', not {shown(name)}")
    return name


class _Export:
    """Frames and rows, body by body in the order of q."""

    def __init__(self, model: Model, tree: Tree, convention: str) -> None:
        self.model, self.tree, self.standard = model, tree, convention == "standard"
        self.joints = {j.name: j for j in model.joints}
        place = {j.name: i for i, j in enumerate(model.joints)}
        self.order = sorted(range(len(tree)), key=lambda i: (place[tree.bodies[i].joint], i))
        self.first: dict[int, int] = {}  # the child that lies on the common normal
        for i in self.order:
            self.first.setdefault(tree.bodies[i].parent, i)
        self.row: dict[int, int] = {-1: 0, **{i: k for k, i in enumerate(self.order, 1)}}
        self.driver = {b.q: b.joint for b in tree.bodies if not self.joints[b.joint].mimic}
        self.names = dict(zip(self.order, self._names()))
        self.frame: dict[int, ArrayFrame] = {-1: IDENTITY_ARRAYS}  # of the row, in body axes

    def table(self) -> Table:
        rows = tuple(self._row(i) for i in self.order)
        frames: dict[str, tuple[int, Array]] = {}
        for link, at in self.tree.frames.items():
            where = _after(_inverse(self.frame[at.body]), (np.array(at.R, float), np.array(at.p, float)))
            frames[link] = (self.row[at.body], _matrix(where))
        model, convention = self.model, "standard" if self.standard else "modified"
        shapes = {link.name: link.shapes for link in model.links if link.shapes}
        ends = (model.loops, model.contacts, shapes, model.couplings)
        return Table(rows, convention, model.name, model.gravity, frames, model.root, *ends)

    def _names(self) -> Iterator[str]:
        """Links, and for the steps of one joint the link with the step's letter; unique."""
        taken = {link.name for link in self.model.links}
        last = {b.joint: i for i, b in enumerate(self.tree.bodies)}
        for i in self.order:
            b = self.tree.bodies[i]
            name = b.link if last[b.joint] == i else f"{b.link}_{b.number[-1]}"
            while last[b.joint] != i and name in taken:
                name += "_"
            taken.add(name)
            yield name

    # -- frames ---------------------------------------------------------------------------------------------

    def _row(self, i: int) -> Mapping[str, Any]:
        b = self.tree.bodies[i]
        M, before, G = self._arrival(i)
        constants = [0.0, 0.0, *before]
        after: ArrayFrame = IDENTITY_ARRAYS
        if b.kind not in BALLS and (normal := self._leaving(i, G)):
            theta, d, a, alpha = normal
            constants = [theta, d, a, alpha] if self.standard else [theta, d, *before]
            after = _after(_about_z(theta, d), _about_x(alpha, a)) if self.standard else _about_z(theta, d)
        self.frame[i] = _after(G, after)
        row = {"name": self.names[i], "parent": self.row[b.parent], "joint": b.kind}
        row |= dict(zip(("theta", "d", "a", "alpha"), (x if abs(x) > ROUNDING_LEFT else 0.0 for x in constants)))
        if M is not None:
            row["M"] = _matrix(M)
        return row | self._body(b, self.frame[i]) | self._joint(i)

    def _axis(self, i: int) -> Array:
        """The joint's axis in body axes, in the sense of its coordinate; a mimic joint's sense is in its ratio."""
        b = self.tree.bodies[i]
        flipped = b.factor < 0.0 and not self.joints[b.joint].mimic
        return np.array(UNIT_VECS[b.axis]) * (-1.0 if flipped else 1.0)

    def _arrival(self, i: int) -> tuple[ArrayFrame | None, tuple[float, float], ArrayFrame]:
        """M, then a and alpha of the modified convention, and the joint's frame at theta = d = 0, in body axes."""
        b = self.tree.bodies[i]
        body: ArrayFrame = (np.array(b.R, float), np.array(b.p, float))
        home = _sound(_after(_inverse(body), self.frame[b.parent]))  # the parent's frame in this body's axes
        still = (0.0, 0.0)
        if b.kind in BALLS:
            placed = _inverse(home)
            return (None if _near(placed) else placed), still, IDENTITY_ARRAYS
        u = self._axis(i)
        theta, d, a, alpha, sound = _normal(home, u, np.zeros(3))
        before = (a, alpha)
        M: ArrayFrame | None = None
        if self.standard or not sound:
            M = _after(_inverse(home), _towards(home, u))
            before = still
        elif abs(theta) > ROUNDING_LEFT or abs(d) > ROUNDING_LEFT:
            M = _about_z(theta, d)
        if M is not None and _near(M):
            M = None
        start = home if M is None else _after(home, M)
        return M, before, _after(start, _about_x(before[1], before[0]))

    def _leaving(self, i: int, G: ArrayFrame) -> tuple[float, float, float, float] | None:
        """theta, d, a, alpha from the joint's frame to the axis of the first child; None where there is none."""
        child = self.first.get(i)
        if child is None or self.tree.bodies[child].kind in BALLS:
            return None
        c = self.tree.bodies[child]
        R, p = np.array(c.R, float), np.array(c.p, float)
        theta, d, a, alpha, sound = _normal(G, R @ self._axis(child), p)
        return (theta, d, a, alpha) if sound else None

    # -- what stands beside the constants -------------------------------------------------------------------

    def _body(self, b: TreeBody, frame: ArrayFrame) -> dict[str, Any]:
        R, p = frame
        m, h = float(b.inertia.m), b.inertia.h
        c = h * (1.0 / m) if m else h
        J = np.array(b.inertia.shifted(-c).J.mat, float)
        return {"mass": m, "com": R.T @ (np.array(c, float) - p), "inertia": R.T @ J @ R}

    def _joint(self, i: int) -> dict[str, Any]:
        b = self.tree.bodies[i]
        joint, steps = self.joints[b.joint], sum(x.joint == b.joint for x in self.tree.bodies)
        out: dict[str, Any] = {"joint_name": b.joint if steps == 1 else f"{b.joint}_{b.number[-1]}"}
        if b.kind == "helical":
            out["lead"] = 2.0 * math.pi * float(b.pitch)
        if joint.limit is not None:
            out["limit"] = joint.limit
        if joint.dynamics != JointDynamics():
            out["dynamics"] = joint.dynamics
        if joint.mimic:
            out["mimic"] = (self.driver[b.q], b.factor)
        return out


def _normal(G: ArrayFrame, u: Array, point: Array) -> tuple[float, float, float, float, bool]:
    """theta, d, a, alpha that take G to a frame whose z axis is the line along u through a point.

    The last says whether they can be trusted: not where the lines are almost parallel. Of parallel lines the
    normal at G's origin is taken (d = 0), of one and the same line G's own x axis.
    """
    u, p = G[0].T @ u, G[0].T @ (point - G[1])
    s = math.hypot(u[0], u[1])
    if s <= PARALLEL:
        a = math.hypot(p[0], p[1])
        theta = math.atan2(p[1], p[0]) if a > ROUNDING_LEFT else 0.0
        return theta, 0.0, a if a > ROUNDING_LEFT else 0.0, 0.0 if u[2] > 0.0 else math.pi, True
    n = np.array([-u[1], u[0], 0.0]) / s  # along z x u
    a, t = float(p @ n), -float(p[0] * u[0] + p[1] * u[1]) / s**2
    sign = -1.0 if a < -ROUNDING_LEFT or (abs(a) <= ROUNDING_LEFT and n[0] < 0.0) else 1.0
    theta = math.atan2(sign * n[1], sign * n[0])
    return theta, float(p[2] + t * u[2]), abs(a), math.atan2(sign * s, u[2]), s > ALMOST


def _towards(home: ArrayFrame, u: Array) -> ArrayFrame:
    """The auxiliary frame at the joint: home's axes by the smallest turn that brings z along u.

    Home itself where the line is its z axis; else the origin is the joint's own.
    """
    R, p = home
    local, away = R.T @ u, R.T @ -p
    s = math.hypot(local[0], local[1])
    if s <= PARALLEL and local[2] > 0.0:
        return (R, p) if math.hypot(away[0], away[1]) <= ROUNDING_LEFT else (R, np.zeros(3))
    axis = np.array([-local[1], local[0], 0.0]) / s if s > PARALLEL else np.array([1.0, 0.0, 0.0])
    angle = math.atan2(s, local[2])
    K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    turn = np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K
    return R @ turn, np.zeros(3)


# -- frames -------------------------------------------------------------------------------------------------


def _after(a: ArrayFrame, b: ArrayFrame) -> ArrayFrame:
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def _inverse(a: ArrayFrame) -> ArrayFrame:
    return a[0].T, -(a[0].T @ a[1])


def _sound(a: ArrayFrame) -> ArrayFrame:
    """One Newton step R (3 - R^T R) / 2 to a rotation: rounding must not grow from row to row."""
    R, p = a
    return 1.5 * R - 0.5 * R @ (R.T @ R), p


def _about_z(theta: float, d: float) -> ArrayFrame:
    s, c = math.sin(theta), math.cos(theta)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, d])


def _about_x(alpha: float, a: float) -> ArrayFrame:
    s, c = math.sin(alpha), math.cos(alpha)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]), np.array([a, 0.0, 0.0])


def _near(M: ArrayFrame) -> bool:
    return all(np.abs(x - y).max() <= ROUNDING_LEFT for x, y in zip(M, IDENTITY_ARRAYS))


def _matrix(M: ArrayFrame) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = M
    out[np.abs(out) <= ROUNDING_LEFT] = 0.0
    return out
