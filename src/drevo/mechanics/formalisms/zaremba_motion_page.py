"""Motion of links as Zaremba writes it, line by line: (1.2)-(1.11) with errata applied, and the energy (2.1).

Six numbers are linear before angular. V_k^0k is the motion of link k against the base, in its axes.
"""

from __future__ import annotations

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector
from ..tree import LinkFrame, Tree
from ..tree_indices import ancestors
from .written import (
    EYE3,
    HALF,
    JointLines,
    Worded,
    by_blocks,
    written_scalar,
    written_sum,
    zeros_of,
)
from .zaremba_page import ORIGIN_OF_LINK, TURN_OF_LINK, ZarembaLines

LINK_TWIST = "motion of a link against the base, in its axes, m/s and rad/s"
WELDED_AT = "origin of the named link in the axes of the body that it is welded to, m"
WELDED_TURN = "turn of the named link in the body that it is welded to, no unit"
NONE3 = zeros_of(3, 3)


class LinkMotion:
    """V and V* of the body of a link by the columns l of the joints that carry it, and at the link's frame."""

    def __init__(self, tree: Tree, q: Vector, link: str, frame: str, relative_to: str) -> None:
        at: LinkFrame = tree.frames[link]
        if relative_to:
            raise TraceError(
                f"the page in the letters of Zaremba writes the motion of link {link!r} against the base: leave "
                "relative_to out, or sequence and formalism"
            )
        if at.body < 0:
            raise TraceError(f"link {link!r} stands on the base and does not move: name a link that does")
        if frame == "world":
            raise TraceError(
                "the page in the letters of Zaremba takes frame='local' or 'local_world_aligned', not 'world'"
            )
        path = sorted(ancestors(tree.parents, at.body))
        self.lines = ZarembaLines(tree, q, path)
        self.page, self.frame, self.at = self.lines.page, frame, at
        self.path: list[JointLines] = [self.lines.joints[i] for i in path]
        self.last = self.path[-1]
        self.carried: list[Worded] | None = None

    def twist(self, v: Vector) -> Worded:
        """V_k, (1.2), (1.4): a sum over the joints on the way to the link."""
        self.page.section("motion of the link")
        parts = [self.lines.l[self.last.i, j.i] @ _rate(j, "v", v) for j in self.path]
        n = self.last.n
        return self.page.define(f"V_{n}^0_{n}", written_sum(parts, zeros_of(6)), "(1.2), (1.4)", LINK_TWIST)

    def acceleration(self, v: Vector, a: Vector) -> Worded:
        """V*_k, (1.9): the columns times accelerations, and those turned by each joint farther out."""
        k, l = self.last, self.lines.l
        parts = [l[k.i, j.i] @ _rate(j, "a", a) for j in self.path]
        for j in self.path:
            for s in self.path:
                if s.i > j.i:
                    turned = l[k.i, s.i].skew().T @ l[k.i, j.i]
                    parts.append(turned @ _rate(j, "v", v) @ _rate(s, "v", v))
        said = "derivative of V in the axes of the link, m/s² and rad/s²"
        return self.page.define(f"V_{k.n}^0_{k.n}star", written_sum(parts, zeros_of(6)), "(1.9)", said)

    def in_frame(self, motion: Worded) -> Worded:
        """A motion at the link's own frame, in its axes, or along those of the world."""
        if self.carried is None:
            self.carried = self._carried()
        for matrix in self.carried:
            motion = matrix @ motion
        return motion

    def _carried(self) -> list[Worded]:
        """Matrices that bring motions of the body to the link's frame, one after the other."""
        out = []
        if not self.at.p.zero:
            p = self.page.given("o_k", self.at.p, WELDED_AT)
            out.append(by_blocks([[EYE3, p.skew().T], [NONE3, EYE3]]))
        local = self.frame == "local"
        turn = self.page.given("P_k", self.at.R, WELDED_TURN).T if local else self.against_base()
        return out if turn.words == ("E",) else [*out, by_blocks([[turn, NONE3], [NONE3, turn]])]

    def against_base(self) -> Worded:
        """C_k^0, the turn of the body against the base, link by link, (1.1)."""
        turn = self.lines.C[self.path[0].i]
        for j in self.path[1:]:
            turn = self.page.define(f"C_{j.n}^0", turn @ self.lines.C[j.i], "(1.1)", TURN_OF_LINK)
        return turn


def _rate(j: JointLines, letter: str, x: Vector) -> Worded:
    return written_scalar(x[j.body.v], f"{letter}_{j.body.v + 1}")


def velocity_lines(tree: Tree, q: Vector, v: Vector, link: str, frame: str, relative_to: str = "") -> list[Scalar]:
    """V of a link: linear, angular."""
    m = LinkMotion(tree, q, link, frame, relative_to)
    out = m.page.define("V", m.in_frame(m.twist(v)), "", "")
    return [row[0] for row in out.rows]


def jacobian_lines(tree: Tree, q: Vector, link: str, frame: str, relative_to: str = "") -> Matrix:
    """J, whose columns are the l of (1.10) in the frame, 6 x nv."""
    m = LinkMotion(tree, q, link, frame, relative_to)
    m.page.section("columns of the Jacobian")
    J: Matrix = [[0.0] * tree.nv for _ in range(6)]
    for j in m.path:
        said = "column of the Jacobian: motion of the link by a unit rate of the joint, m/s and rad/s"
        column = m.page.define(f"J_{j.n}", m.in_frame(m.lines.l[m.last.i, j.i]), "(1.10)", said)
        for row, (x,) in zip(J, column.rows):
            row[j.body.v] = x
    return J


def acceleration_lines(
    tree: Tree, q: Vector, v: Vector, a: Vector, link: str, frame: str, kind: str, relative_to: str = ""
) -> list[Scalar]:
    """A of a link: linear, angular, of its origin (classical) or of V itself (spatial)."""
    m = LinkMotion(tree, q, link, frame, relative_to)
    V, moved = m.twist(v), m.acceleration(v, a)
    if kind == "classical":
        if not m.at.p.zero:
            raise TraceError(
                "the page in the letters of Zaremba has the classical acceleration of links with a joint of their "
                f"own; {link!r} is welded: take kind='spatial'"
            )
        linear = by_blocks([[EYE3, NONE3], [NONE3, NONE3]]) @ V
        moved = moved + V.skew() @ linear
    out = m.page.define("A", m.in_frame(moved), "", "")
    return [row[0] for row in out.rows]


def pose_lines(tree: Tree, q: Vector, link: str, relative_to: str = "") -> Matrix:
    """T of a link: turn and origin, link by link, (1.1)."""
    m = LinkMotion(tree, q, link, "local_world_aligned", relative_to)
    page, C, O = m.page, m.lines.C, m.lines.O
    page.section("pose of the link")
    turn, place = C[m.path[0].i], O[m.path[0].i]
    for j in m.path[1:]:
        place = page.define(f"O_{j.n}^0", place + turn @ O[j.i], "", ORIGIN_OF_LINK)
        turn = page.define(f"C_{j.n}^0", turn @ C[j.i], "(1.1)", TURN_OF_LINK)
    if not m.at.p.zero:
        place = place + turn @ page.given("o_k", m.at.p, WELDED_AT)
    turn = turn @ page.given("P_k", m.at.R, WELDED_TURN)
    out = page.define("T", by_blocks([[turn, place], [zeros_of(1, 3), Worded([[1.0]], ("1",))]]), "", "")
    return [list(row) for row in out.rows]


def kinetic_energy_lines(tree: Tree, q: Vector, v: Vector) -> Scalar:
    """T, (2.1): half of V^T Theta V of every link."""
    lines = ZarembaLines(tree, q, range(len(tree)))
    page, parts = lines.page, list[Worded]()
    bodies = [lines.own_inertia(j) for j in lines.joints]
    page.section("motions of the links")
    for j, body in zip(lines.joints, bodies):
        along = sorted(ancestors(tree.parents, j.i))
        columns = [lines.l[j.i, i] @ _rate(lines.joints[i], "v", v) for i in along]
        V = page.define(f"V_{j.n}^0_{j.n}", written_sum(columns, zeros_of(6)), "(1.2)", LINK_TWIST)
        value = V.T @ body @ V
        if not (rotor := j.rotor()).zero:
            rate = _rate(j, "v", v)
            value = value + rotor @ rate @ rate
        parts.append(page.define(f"T_{j.n}", HALF @ value, "(2.1)", "kinetic energy of a link, J"))
    page.section("kinetic energy")
    return page.define("T", written_sum(parts, zeros_of(1)), "(2.1)", "").rows[0][0]
