"""Motion of links as Zaremba writes it, line by line: (1.2)-(1.11) with errata applied, and the energy (2.1).

Six numbers are linear before angular. V_k^jk is the motion of link k against link j, 0 the base; the way from j to
k goes back to the nearest body that carries both, by columns g, then out, by columns l.
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
    SWAP,
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
) -> tuple[LinkFrame, LinkFrame, list[int], list[int]]:
    """Two links in their bodies, the second of them the base by default, and the bodies on the ways to each.

    Both ways begin after the nearest body that carries both links.
    """
    at = tree.frames[link]
    seen = tree.frames[relative_to] if relative_to else LinkFrame(-1, EYE, ZERO)
    path, back = (sorted(ancestors(tree.parents, x.body)) if x.body >= 0 else [] for x in (at, seen))
    both = {*path} & {*back}
    path, back = ([i for i in way if i not in both] for way in (path, back))
    if not path and not back:
        raise TraceError(f"link {link!r} does not move against {relative_to or 'the base'}: name a link that does")
    if frame == "world":
        raise TraceError(
            f"the page in the letters of {paper} takes frame='local' or 'local_world_aligned', not 'world'"
        )
    return at, seen, path, back


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
    """V and V* of the body of a link by the columns l and -g of the joints on the way to it, and at its frame."""

    def __init__(self, tree: Tree, q: Vector, link: str, frame: str, relative_to: str) -> None:
        self.at, self.seen, self.path, self.back = links_between(tree, link, relative_to, frame, "Zaremba")
        self.lines = ZarembaLines(tree, q, self.path, self.back)
        self.page, self.frame, joints = self.lines.page, frame, self.lines.joints
        self.common = joints[(self.path or self.back)[0]].p
        self.k = joints[self.path[-1]].n if self.path else self.common
        self.j = joints[self.back[-1]].n if self.back else self.common
        outward = [(1.0, joints[i], self.lines.l[self.path[-1], i]) for i in self.path]
        self.columns = [*self._way_back(), *outward]  # in the order of the way from j to k
        self.carried: list[Worded] | None = None

    def _way_back(self) -> list[tuple[float, JointLines, Worded]]:
        """g_k^i, (1.5): up to the body that carries both links, then out to the first of them."""
        lines, columns = self.lines, []
        said = "motion of the link above by a unit rate of its joint, at the link below in its axes, m/s and rad/s"
        if self.back:
            self.page.section("motions on the way back")
        for at, i in reversed([*enumerate(self.back)]):
            j, g = lines.joints[i], lines.f[i]
            for child in reversed(self.back[: at + 1]):
                moved = SWAP @ lines.L[child] @ SWAP @ g
                g = self.page.define(f"g_{lines.joints[child].p}^{j.n}", moved, "(1.5)", said)
            for child in self.path:
                g = self.page.define(f"g_{lines.joints[child].n}^{j.n}", lines.L[child].T @ g, "(1.5)", said)
            columns.append((-1.0, j, g))
        return columns

    def twist(self, v: Vector) -> Worded:
        """V_k, (1.2), (1.4), (1.9): a sum over the joints on the way to the link."""
        self.page.section("motion of the link")
        parts = [(sign, g @ _rate(j, "v", v)) for sign, j, g in self.columns]
        numbers = ", ".join(["(1.2)"] * bool(self.path) + ["(1.4)"] * bool(self.back) + ["(1.9)"])
        return self.page.define(f"V_{self.k}^{self.j}_{self.k}", _signed(parts), numbers, LINK_TWIST)

    def acceleration(self, v: Vector, a: Vector) -> Worded:
        """V*_k, (1.9): the columns times accelerations, and those turned by each joint farther on the way."""
        parts = [(sign, g @ _rate(j, "a", a)) for sign, j, g in self.columns]
        for at, (sign, j, g) in enumerate(self.columns):
            for other, s, turning in self.columns[at + 1 :]:
                turned = turning.skew().T @ g @ _rate(j, "v", v) @ _rate(s, "v", v)
                parts.append((sign * other, turned))
        said = "derivative of V in the axes of the link, m/s² and rad/s²"
        return self.page.define(f"V_{self.k}^{self.j}_{self.k}star", _signed(parts), "(1.9)", said)

    def in_frame(self, motion: Worded) -> Worded:
        """A motion at the link's own frame, in its axes, or along those of the world."""
        if self.carried is None:
            self.carried = to_link(self.page, self.at, self.seen, self.frame, self.turn)
        for matrix in self.carried:
            motion = matrix @ motion
        return motion

    def turn(self) -> Worded:
        """C_k^j, the turn of the body against that of the other link, link by link, (1.1)."""
        out, back = (self._of_way(way)[0] for way in (self.path, self.back))
        if not self.back:
            return out
        return self.page.define(f"C_{self.k}^{self.j}", back.T @ out, "(1.1)", TURN_OF_LINK)

    def place(self) -> tuple[Worded, Worded]:
        """C_k^j and O_k^j: the turn and the origin of the body, in the axes of the other link's body."""
        (turn, place), (back, origin) = (self._of_way(way, True) for way in (self.path, self.back))
        if not self.back:
            return turn, place
        place = self.page.define(f"O_{self.k}^{self.j}", back.T @ (place - origin), "", ORIGIN_OF_LINK)
        return self.page.define(f"C_{self.k}^{self.j}", back.T @ turn, "(1.1)", TURN_OF_LINK), place

    def _of_way(self, way: list[int], placed: bool = False) -> tuple[Worded, Worded]:
        """Turn and origin of the last body of a way from the body that carries both links, in its axes."""
        lines, turn, place = self.lines, EYE3, zeros_of(3)
        for i in way:
            n = f"{lines.joints[i].n}^{self.common}"
            if i == way[0]:
                turn, place = lines.C[i], lines.O[i]
                continue
            if placed:
                place = self.page.define(f"O_{n}", place + turn @ lines.O[i], "", ORIGIN_OF_LINK)
            turn = self.page.define(f"C_{n}", turn @ lines.C[i], "(1.1)", TURN_OF_LINK)
        return turn, place


def _signed(parts: list[tuple[float, Worded]]) -> Worded:
    """A sum of what counts positive, first, and of what counts negative."""
    ordered = sorted(parts, key=lambda part: part[0] < 0.0)
    return written_sum((x if sign > 0.0 else -x for sign, x in ordered), zeros_of(6))


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
    for sign, j, g in m.columns:
        said = "column of the Jacobian: motion of the link by a unit rate of the joint, m/s and rad/s"
        value, number = (g, "(1.10)") if sign > 0.0 else (-g, "(1.11)")
        column = m.page.define(f"J_{j.n}", m.in_frame(value), number, said)
        for row, (x,) in zip(J, column.rows):
            row[j.body.v] = x
    return J


def acceleration_lines(
    tree: Tree, q: Vector, v: Vector, a: Vector, link: str, frame: str, kind: str, relative_to: str = ""
) -> list[Scalar]:
    """A of a link: linear, angular, of its origin (classical) or of V itself (spatial)."""
    m = LinkMotion(tree, q, link, frame, relative_to)
    V, moved = m.twist(v), m.in_frame(m.acceleration(v, a))
    if kind == "classical":
        said = "motion of the link at its frame, in the axes asked for, m/s and rad/s"
        V = m.page.define(f"V_{m.k}^o", m.in_frame(V), "", said) if m.carried else V
        moved = moved + V.skew() @ (by_blocks([[EYE3, NONE3], [NONE3, NONE3]]) @ V)
    out = m.page.define("A", moved, "", "")
    return [row[0] for row in out.rows]


def pose_lines(tree: Tree, q: Vector, link: str, relative_to: str = "") -> Matrix:
    """T of a link: turn and origin, link by link, (1.1)."""
    m = LinkMotion(tree, q, link, "local_world_aligned", relative_to)
    page = m.page
    page.section("pose of the link")
    turn, place = m.place()
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
