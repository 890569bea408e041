"""Motion of links as Zaremba writes it, line by line: (1.2)-(1.11) with errata applied, and the energy (2.1).

Six numbers are linear before angular. V_k^jk is the motion of link k against link j that carries it; 0: the base.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector
from ..spatial import EYE, ZERO
from ..tree import LinkFrame, Tree
from ..tree_indices import ancestors
from .written import (
    EYE3,
    HALF,
    JointLines,
    Page,
    Worded,
    by_blocks,
    written_scalar,
    written_sum,
    zeros_of,
)
from .zaremba_page import ORIGIN_OF_LINK, TURN_OF_LINK, ZarembaLines

LINK_TWIST = "motion of the link below against that above, 0 is the base, in the axes of that below, m/s and rad/s"
WELDED_AT = "origin of the named link in the axes of the body that it is welded to, m"
WELDED_TURN = "turn of the named link in the body that it is welded to, no unit"
SEEN_TURN = "turn of the link that one looks from in the body that it is welded to, no unit"
SEEN_AT = "origin of the link that one looks from in the axes of the body that it is welded to, m"
NONE3 = zeros_of(3, 3)


def links_between(
    tree: Tree, link: str, relative_to: str, frame: str, paper: str
) -> tuple[LinkFrame, LinkFrame, list[int]]:
    """Two links in their bodies, the second of them the base by default, and the bodies from it to the first."""
    at = tree.frames[link]
    seen = tree.frames[relative_to] if relative_to else LinkFrame(-1, EYE, ZERO)
    path, above = (sorted(ancestors(tree.parents, x.body)) if x.body >= 0 else [] for x in (at, seen))
    if path[: len(above)] != above:
        raise TraceError(
            f"the page in the letters of {paper} writes motions against a link that carries the other, and "
            f"{relative_to!r} does not carry {link!r}: name one that does, or leave sequence and formalism out"
        )
    if path == above:
        raise TraceError(f"link {link!r} does not move against {relative_to or 'the base'}: name a link that does")
    if frame == "world":
        raise TraceError(
            f"the page in the letters of {paper} takes frame='local' or 'local_world_aligned', not 'world'"
        )
    return at, seen, path[len(above) :]


def to_link(page: Page, at: LinkFrame, seen: LinkFrame, frame: str, turn: Callable[[], Worded]) -> list[Worded]:
    """Matrices that bring motions of a body to a link's frame, in its axes or those that one looks from."""
    out = []
    if not at.p.zero:
        p = page.given("o_k", at.p, WELDED_AT)
        out.append(by_blocks([[EYE3, p.skew().T], [NONE3, EYE3]]))
    if frame == "local":
        R = page.given("P_k", at.R, WELDED_TURN).T
    else:
        R = page.given("P_j", seen.R, SEEN_TURN).T @ turn()
    return out if R.words == ("E",) else [*out, by_blocks([[R, NONE3], [NONE3, R]])]


class LinkMotion:
    """V and V* of the body of a link by the columns l of the joints that carry it, and at the link's frame."""

    def __init__(self, tree: Tree, q: Vector, link: str, frame: str, relative_to: str) -> None:
        self.at, self.seen, path = links_between(tree, link, relative_to, frame, "Zaremba")
        self.lines = ZarembaLines(tree, q, path)
        self.page, self.frame = self.lines.page, frame
        self.path: list[JointLines] = [self.lines.joints[i] for i in path]
        self.last = self.path[-1]
        self.carried: list[Worded] | None = None

    def twist(self, v: Vector) -> Worded:
        """V_k, (1.2), (1.4): a sum over the joints on the way to the link."""
        self.page.section("motion of the link")
        parts = [self.lines.l[self.last.i, j.i] @ _rate(j, "v", v) for j in self.path]
        n = self.last.n
        return self.page.define(
            f"V_{n}^{self.path[0].p}_{n}", written_sum(parts, zeros_of(6)), "(1.2), (1.4)", LINK_TWIST
        )

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
        return self.page.define(
            f"V_{k.n}^{self.path[0].p}_{k.n}star", written_sum(parts, zeros_of(6)), "(1.9)", said
        )

    def in_frame(self, motion: Worded) -> Worded:
        """A motion at the link's own frame, in its axes, or along those of the world."""
        if self.carried is None:
            self.carried = to_link(self.page, self.at, self.seen, self.frame, self.turn)
        for matrix in self.carried:
            motion = matrix @ motion
        return motion

    def turn(self) -> Worded:
        """C_k^j, the turn of the body against that of the other link, link by link, (1.1)."""
        turn = self.lines.C[self.path[0].i]
        for j in self.path[1:]:
            turn = self.page.define(f"C_{j.n}^{self.path[0].p}", turn @ self.lines.C[j.i], "(1.1)", TURN_OF_LINK)
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
        place = page.define(f"O_{j.n}^{m.path[0].p}", place + turn @ O[j.i], "", ORIGIN_OF_LINK)
        turn = page.define(f"C_{j.n}^{m.path[0].p}", turn @ C[j.i], "(1.1)", TURN_OF_LINK)
    if not m.at.p.zero:
        place = place + turn @ page.given("o_k", m.at.p, WELDED_AT)
    turn = turn @ page.given("P_k", m.at.R, WELDED_TURN)
    back = page.given("P_j", m.seen.R, SEEN_TURN).T
    if not m.seen.p.zero:
        place = place - page.given("o_j", m.seen.p, SEEN_AT)
    turn, place = back @ turn, back @ place
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
