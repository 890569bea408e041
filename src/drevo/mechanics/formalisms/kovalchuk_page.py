"""Kovalchuk, Kulakov, Semenov: the recursion in link axes as the paper writes it, line by line, errata applied.

Link i hangs on frame (f(i), ns(i)) of its parent; f_i and M_i are what it exerts there on the parent.
"""

from __future__ import annotations

from ..scalar import Matrix, Scalar, Vector
from ..tree import Tree
from .written import (
    AXES,
    ONE,
    JointLines,
    Page,
    Worded,
    by_blocks,
    element_name,
    of_all,
    refuse_many,
    unit_column,
    zeros_of,
)

EFFORT_MEANINGS = {  # by their letter
    "t": "effort of a drive, N m or N",
    "H": "element of H, the effort of a drive without accelerations of joints, N m or N",
    "I": "element of the inertia matrix I, the effort of a drive by a unit acceleration, kg m², kg m or kg",
}
BY_UNIT = ", by a unit acceleration of the joint above"
FRAME_ORIGIN = "origin of an auxiliary frame of a link, the one that a child hangs on, in the link's main axes, m"


class LinkLines:
    """Constants and functions of q alone of a link: the table of Denavit and Hartenberg and the arms."""

    def __init__(self, page: Page, j: JointLines, joints: list[JointLines]) -> None:
        self.j, self.n = j, j.n
        b, kids = j.body, [c for c in joints if c.up == j.i]
        siblings = [c for c in joints if c.up == j.up]
        self.ns = siblings.index(j) + 1
        page.link(b)
        page.says(f"f ( {j.n} )", j.p)
        page.says(f"ns ( {j.n} )", str(self.ns))
        self.q, self.kind, self.e = j.q, b.kind, unit_column(b.axis)
        self.sigma = 0.0 if b.kind == "prismatic" else 1.0
        self.M = page.given(
            f"R_{j.p}_{self.ns}^M", b.R, "turn of an auxiliary frame of a link against its main axes, no unit"
        )
        at = (
            page.given(f"r_{j.p}_{self.ns}", b.p, FRAME_ORIGIN)
            if j.up < 0
            else Worded([[x] for x in b.p], (f"r_{j.p}_{self.ns}",))
        )
        self.l = self.frames(page, at, j.shift())
        self.R = page.define(
            f"R_{j.p}_{j.n}",
            self.M @ self.turn,
            "(3)",
            "turn of a link's main axes against those of its parent, no unit",
        )
        self.z = page.define(f"z_{j.n}", self.M @ self.e, "", "joint axis in the main axes of the parent, no unit")
        self.c, self.J = j.centre()
        self.m = j.mass()
        self.chi = {"revolute": zeros_of(1), "prismatic": ONE}.get(b.kind) or j.lead()
        said = "from the frame that a link hangs on to one of its own, m"
        names = {c.i: f"{j.n}_{k}" for k, c in enumerate(kids, 1)}
        self.r = {c.i: page.given(f"r_{names[c.i]}", c.body.p, FRAME_ORIGIN) for c in kids}
        self.arm = {c.i: page.define(f"l_{names[c.i]}", self.l + self.r[c.i], "", said) for c in kids}
        self.kids = kids

    def frames(self, page: Page, at: Worded, shift: Worded) -> Worded:
        """A row of the table of Denavit and Hartenberg, (1), (2), (3), and l; constant parts stand in M."""
        j, frame, last = self.j, f"{self.j.p}_{self.ns}", [zeros_of(1), ONE]
        said = "auxiliary frame of a link, the one that a child hangs on, in its main frame, no unit and m"
        blocks = ("E",) if self.M.words == ("E",) and at.zero else by_blocks([[self.M, at], last]).words
        page.says(f"M_{frame}", " ".join(blocks), "(1)", said)
        along = [x for x in shift.words if x != f"e_{AXES[j.body.axis]}"]
        angle = self.q.words if self.sigma and self.q is not None else ("0",)
        table = "of the table of Denavit and Hartenberg"
        page.says(f"theta_{j.n}", " ".join(angle), "", f"angle {table}, about the joint's axis (alpha is 0), rad")
        offset = "0" if shift.zero else " ".join(along)
        page.says(f"d_{j.n}", offset, "", f"offset {table}, along the joint's axis (a is 0), m")
        said = "turn of a link's main axes in the frame that it hangs on, no unit"
        self.turn = page.define(f"R_{j.n}^A", j.turn(), "(2)", said)
        said = "from the frame that a link hangs on to its main origin, along the joint's axis, m"
        l = page.define(f"l_{j.n}", shift, "", said)
        said = "main frame of a link in the frame that it hangs on, no unit and m"
        page.says(f"A_{j.n}", " ".join(by_blocks([[self.turn, l], last]).words), "(2)", said)
        above = f"T_{j.p} " if j.up >= 0 else ""
        said = "main frame of a link in that of the base, no unit and m"
        page.says(f"T_{j.n}", f"{above}M_{frame} A_{j.n}", "(3)", said)
        return l


class Motions:
    """omega, epsilon and accelerations of a link's main origin, in its axes."""

    def __init__(self, omega: Worded, eps: Worded, a: Worded) -> None:
        self.omega, self.eps, self.a = omega, eps, a


def table_of_links(tree: Tree, q: Vector) -> tuple[Page, list[LinkLines]]:
    """The table of a tree's links."""
    page = Page(tree, "Kovalchuk")
    refuse_many(page, "the paper of Kovalchuk")
    joints = of_all(page, q)
    return page, [LinkLines(page, j, joints) for j in joints]


def inverse_dynamics(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Efforts of the drives, (nv,)."""
    return efforts_of_links(*table_of_links(tree, q), v, a)


def efforts_of_links(
    page: Page, links: list[LinkLines], v: Vector, a: Vector, letter: str = "tau"
) -> list[Scalar]:
    """The recursions outwards and inwards, (nv,)."""
    page.section("given")
    g = [page.given("g", page.tree.gravity, "acceleration of gravity, base axes, m/s²")]
    moving: list[Motions] = []
    centres: list[Worded] = []
    down: list[Worded] = []
    for x in links:
        page.link(x.j.body, "outwards, link")
        up = moving[x.j.up] if x.j.up >= 0 else Motions(zeros_of(3), zeros_of(3), zeros_of(3))
        moving.append(_outwards(page, x, up, links, x.j.of("v", v), x.j.of("a", a)))
        base = down[x.j.up] if x.j.up >= 0 else g[0]
        down.append(page.define(f"g_{x.n}", x.R.T @ base, "", "acceleration of gravity in a link's axes, m/s²"))
        centres.append(_centre(page, x, moving[-1], f"a_{x.n}^c", ""))
    f, M = [zeros_of(3)] * len(links), [zeros_of(3)] * len(links)
    out: list[Scalar] = [0.0] * page.tree.nv
    for x in reversed(links):
        page.link(x.j.body, "inwards, link")
        i = x.j.i
        phi = page.define(f"phi_{x.n}", x.m @ (down[i] - centres[i]), "", "gravity and inertia force of a link, N")
        own = -(x.J @ moving[i].eps) - moving[i].omega.cross(x.J @ moving[i].omega)
        f[i], M[i] = _inwards(page, x, phi, own, links, f, M, "")
        _effort(page, x, f[i], M[i], f"{letter}_{x.n}", x.j.rotor() @ x.j.of("a", a), out)
    return out


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """The H vector: efforts without accelerations of joints."""
    return efforts_of_links(*table_of_links(tree, q), v, [0.0] * tree.nv, "H")


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """M column by column: a unit acceleration of a joint moves its subtree only."""
    return unit_elements(*table_of_links(tree, q))


def kovalchuk_terms(tree: Tree, q: Vector, v: Vector) -> tuple[Page, list[Scalar], Matrix]:
    """H (nv,) and I (nv, nv), and the page that they stand on."""
    page, links = table_of_links(tree, q)
    return page, efforts_of_links(page, links, v, [0.0] * tree.nv, "H"), unit_elements(page, links)


def unit_elements(page: Page, links: list[LinkLines]) -> Matrix:
    """The elements i_ji, by columns."""
    matrix: Matrix = [[0.0] * page.tree.nv for _ in range(page.tree.nv)]
    for column in links:
        page.link(column.j.body, "unit acceleration of joint")
        below = [column]
        for x in links:
            if x.j.up in {y.j.i for y in below}:
                below.append(x)
        _column(page, column, below, links, matrix)
    return matrix


def _column(page: Page, column: LinkLines, below: list[LinkLines], links: list[LinkLines], matrix: Matrix) -> None:
    """i_ji of one column."""
    mark = column.n
    moving: dict[int, Motions] = {}
    phi: dict[int, Worded] = {}
    for x in below:
        first = x is column
        up = Motions(zeros_of(3), zeros_of(3), zeros_of(3)) if first else moving[x.j.up]
        moving[x.j.i] = _outwards(
            page, x, up, links, zeros_of(1), ONE if first else zeros_of(1), f"^{mark}", first
        )
        phi[x.j.i] = -(x.m @ _centre(page, x, moving[x.j.i], f"a_{x.n}^c_{mark}", BY_UNIT))
    f, M = [zeros_of(3)] * len(links), [zeros_of(3)] * len(links)
    for x in reversed(below):
        i, row = x.j.i, [0.0] * len(matrix)
        force = page.define(f"phi_{x.n}^{mark}", phi[i], "", f"inertia force of a link{BY_UNIT}, N")
        f[i], M[i] = _inwards(page, x, force, -(x.J @ moving[i].eps), links, f, M, f"^{mark}")
        rotor = x.j.rotor() if x is column else zeros_of(1)
        _effort(page, x, f[i], M[i], element_name("I", len(matrix), x.n, mark), rotor, row, column.j.body.factor)
        matrix[x.j.body.v][column.j.body.v] = matrix[column.j.body.v][x.j.body.v] = row[x.j.body.v]


def _outwards(
    page: Page,
    x: LinkLines,
    up: Motions,
    links: list[LinkLines],
    v: Worded,
    a: Worded,
    mark: str = "",
    at_rest: bool = False,
) -> Motions:
    """(4), (5) and what follows them; at_rest: the parent does not move."""
    by = BY_UNIT if mark else ""
    spin, accelerated = x.z @ v, x.z @ a
    omega, eps, slip = up.omega, up.eps, zeros_of(3)
    if x.sigma:
        omega, eps = omega + spin, eps + accelerated + up.omega.cross(spin)
    if not x.chi.zero:
        two = Worded([[2.0]], ("2",))
        slip = x.chi @ (accelerated + two @ up.omega.cross(spin))
    if not mark:  # by a unit acceleration all are at rest
        omega = page.define(f"omega_{x.n}", x.R.T @ omega, "(4)", "angular velocity of a link, in its axes, rad/s")
    eps = page.define(
        f"epsilon_{x.n}{mark}", x.R.T @ eps, "", f"angular acceleration of a link, in its axes{by}, rad/s²"
    )
    at = zeros_of(3)
    if x.j.up >= 0 and not at_rest:
        parent = links[x.j.up]
        arm = parent.r[x.j.i]
        frame = up.a + up.eps.cross(arm) + up.omega.cross(up.omega.cross(arm))
        at = page.define(
            f"a_{x.j.p}_{x.ns}{mark}", frame, "", f"acceleration of the origin of an auxiliary frame{by}, m/s²"
        )
    moved = x.R.T @ (at + slip) + eps.cross(x.l) + omega.cross(omega.cross(x.l))
    above = f"^o{mark.replace('^', '_')}"
    return Motions(
        omega,
        eps,
        page.define(f"a_{x.n}{above}", moved, "", f"acceleration of a link's main origin, in its axes{by}, m/s²"),
    )


def _centre(page: Page, x: LinkLines, m: Motions, name: str, by: str) -> Worded:
    """The acceleration of the centre of mass."""
    moved = m.a + m.eps.cross(x.c) + m.omega.cross(m.omega.cross(x.c))
    return page.define(name, moved, "", f"acceleration of a link's centre of mass, in its axes{by}, m/s²")


def _inwards(
    page: Page,
    x: LinkLines,
    phi: Worded,
    own: Worded,
    links: list[LinkLines],
    f: list[Worded],
    M: list[Worded],
    mark: str,
) -> tuple[Worded, Worded]:
    """f_i and M_i with the corrections of brackets and arms."""
    force = moment = zeros_of(3)
    for c in x.kids:
        turn = links[c.i].M
        force = force + turn @ f[c.i]
        moment = moment + turn @ M[c.i] + x.arm[c.i].cross(turn @ f[c.i])
    force, moment = force + phi, moment + own + (x.l + x.c).cross(phi)
    by = BY_UNIT if mark else ""
    said = f"force of a link on its parent, in the axes of the frame that it hangs on{by}, N"
    about = (
        "moment of a link on its parent about the origin (o) of the frame that it hangs on, in the axes of that "
        f"frame{by}; M with two numbers is a frame, as in the paper; N m"
    )
    return (
        page.define(f"f_{x.n}{mark}", x.turn @ force, "", said),
        page.define(f"M_{x.n}^o{mark.replace('^', '_')}", x.turn @ moment, "", about),
    )


def _effort(
    page: Page,
    x: LinkLines,
    f: Worded,
    M: Worded,
    name: str,
    rotor: Worded,
    out: list[Scalar],
    factor: float = 1.0,
) -> None:
    """tau_i = -k (sigma M_i + chi f_i)."""
    felt = zeros_of(1)
    if x.sigma:
        felt = felt + x.e.T @ M
    if not x.chi.zero:
        felt = felt + x.e.T @ (x.chi @ f if x.chi.words != ("1",) else f)
    both = x.j.body.factor * factor
    value = -felt if both == 1.0 else _times(both, -felt)
    effort = page.define(name, value + rotor, "", EFFORT_MEANINGS[name[0]])
    out[x.j.body.v] = effort.rows[0][0]


def _times(x: float, value: Worded) -> Worded:
    return -value if x == -1.0 else Worded([[x]], (f"{x:.6g}",)) @ value
