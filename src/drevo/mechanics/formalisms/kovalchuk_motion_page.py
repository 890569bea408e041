"""Velocities and Jacobians of links as Kovalchuk, Kulakov and Semenov write them, (3)-(5).

A column of the Jacobian is the motion by a unit rate of its joint, as one of the inertia matrix is efforts by a
unit acceleration. Six numbers are linear before angular.
"""

from __future__ import annotations

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector
from ..tree import Tree
from .kovalchuk_page import LinkLines
from .written import ONE, Page, Worded, by_blocks, of_all, refuse_many, zeros_of
from .zaremba_motion_page import links_between, to_link

UNIT_RATE = ", by a unit rate of the joint above"


class LinkVelocities:
    """The links on the way to one, and omega and v of each by rates of joints."""

    def __init__(self, tree: Tree, q: Vector, link: str, frame: str, relative_to: str) -> None:
        at, seen, path, back = links_between(tree, link, relative_to, frame, "Kovalchuk")
        if back:
            raise TraceError(
                "the page in the letters of Kovalchuk writes motions against a link that carries the other, and "
                f"{relative_to!r} does not carry {link!r}: name one that does, or ask for formalism='zaremba'"
            )
        self.page = page = Page(tree, "Kovalchuk")
        refuse_many(page, "the paper of Kovalchuk")
        joints = of_all(page, q)
        self.links = [LinkLines(page, joints[i], joints) for i in path]
        self.matrices = to_link(page, at, seen, frame, self._turn)

    def _turn(self) -> Worded:
        """The turn of the last link against the first one's parent, (3)."""
        first, *others = self.links
        turn, said = first.R, "turn of a link's main axes against those of its parent, no unit"
        for x in others:
            turn = self.page.define(f"R_{first.j.p}_{x.n}", turn @ x.R, "(3)", said)
        return turn

    def motion(self, links: list[LinkLines], rates: list[Worded], mark: str = "") -> Worded:
        """Six numbers of the last link at its frame; the first link's parent is at rest."""
        page, by = self.page, UNIT_RATE if mark else ""
        omega, v, before = zeros_of(3), zeros_of(3), None
        for x, rate in zip(links, rates):
            if before is not None:
                moved = v + omega.cross(before.r[x.j.i])
                said = f"velocity of the origin of an auxiliary frame{by}, m/s"
                v = page.define(f"v_{x.j.p}_{x.ns}{mark}", moved, "(5)", said)
            spin = x.z @ rate
            slip = zeros_of(3) if x.chi.zero else x.chi @ spin
            said = f"angular velocity of a link, in its axes{by}, rad/s"
            omega = page.define(f"omega_{x.n}{mark}", x.R.T @ (omega + spin if x.sigma else omega), "(4)", said)
            said = f"velocity of a link's main origin, in its axes{by}, m/s"
            above = f"^o{mark.replace('^', '_')}"
            v = page.define(f"v_{x.n}{above}", x.R.T @ (v + slip) + omega.cross(x.l), "(5)", said)
            before = x
        value = by_blocks([[v], [omega]])
        for matrix in self.matrices:
            value = matrix @ value
        return value


def velocity_lines(tree: Tree, q: Vector, v: Vector, link: str, frame: str, relative_to: str = "") -> list[Scalar]:
    """V of a link: linear, angular."""
    m = LinkVelocities(tree, q, link, frame, relative_to)
    m.page.section("motion of the link")
    out = m.page.define("V", m.motion(m.links, [x.j.of("v", v) for x in m.links]), "", "")
    return [row[0] for row in out.rows]


def jacobian_lines(tree: Tree, q: Vector, link: str, frame: str, relative_to: str = "") -> Matrix:
    """J, column by column, 6 x nv."""
    m = LinkVelocities(tree, q, link, frame, relative_to)
    J: Matrix = [[0.0] * tree.nv for _ in range(6)]
    for k, joint in enumerate(m.links):
        m.page.link(joint.j.body, "unit rate of joint")
        rates = [ONE, *[zeros_of(1)] * (len(m.links) - k - 1)]
        said = "column of the Jacobian: motion of the link by a unit rate of the joint, m/s and rad/s"
        column = m.page.define(f"J_{joint.n}", m.motion(m.links[k:], rates, f"^{joint.n}"), "", said)
        for row, (x,) in zip(J, column.rows):
            row[joint.j.body.v] = joint.j.body.factor * x
    return J
