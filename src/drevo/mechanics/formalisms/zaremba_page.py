"""Zaremba's equations as the paper writes them, (1.5), (2.1)-(2.15) with errata applied, line by line.

Six numbers are linear before angular; l_k^i is the motion of link k by a unit rate of joint i, in the axes of k.
"""

from __future__ import annotations

from ..scalar import Matrix, Scalar, Vector
from ..tree import Tree
from ..tree_indices import ancestors
from .written import (
    EYE3,
    HALF,
    JointLines,
    Page,
    Worded,
    by_blocks,
    of_all,
    refuse_many,
    written_scalar,
    written_sum,
    zeros_of,
)


class ZarembaLines:
    """l, f, Theta* and with them a_ij of a tree at q."""

    def __init__(self, tree: Tree, q: Vector) -> None:
        self.page = page = Page(tree, "Zaremba")
        refuse_many(page, "the paper of Zaremba")
        self.joints, self.tree = of_all(page, q), tree
        self.L: list[Worded] = []
        self.C: list[Worded] = []
        self.f: list[Worded] = []
        self.l: dict[tuple[int, int], Worded] = {}
        for j in self.joints:
            self._kinematics(j)
        self.theta = [zeros_of(6, 6)] * len(self.joints)
        for j in reversed(self.joints):
            self.theta[j.i] = self._inertia(j)
        self.over = [{*ancestors(tree.parents, i)} for i in range(len(tree))]  # with the link itself

    def _kinematics(self, j: JointLines) -> None:
        """L, f and l of a link, (1.2), (1.5)."""
        page, n, b = self.page, j.n, j.body
        page.link(b, "kinematics of link")
        P = j.turned()
        C = page.define(f"C_{n}^{j.p}", P @ j.turn(), "(1.1)", "turn of a link against its parent")
        O = page.define(f"O_{n}^{j.p}", j.offset() + P @ j.shift(), "", "origin of a link in its parent's axes, m")
        lower = zeros_of(3, 3) if O.zero else O.skew() @ C
        said = "carries forces from a link to its parent, transposed motions the other way"
        self.L.append(page.define(f"L_{n}^{j.p}", by_blocks([[C, zeros_of(3, 3)], [lower, C]]), "(1.2)", said))
        self.C.append(C)
        turning, sliding = j.columns()
        f = by_blocks([[sliding], [turning]])
        if b.factor != 1.0:
            f = Worded([[b.factor * x for x in row] for row in f.rows], ("-", *f.words) if b.factor == -1.0 else
                        (f"{b.factor:.6g}", *f.words))  # fmt: skip
        self.f.append(page.define(f"f^{n}", f, "", "motion of a link in its own axes by a unit rate of its joint"))
        self.l[j.i, j.i] = self.f[-1]
        at = j.up
        for i, x in [(i, x) for (k, i), x in self.l.items() if k == at]:
            self.l[j.i, i] = page.define(
                f"l_{n}^{self.joints[i].n}",
                self.L[-1].T @ x,
                "(1.5)",
                "motion of the link below by a unit rate of the joint above, link axes",
            )

    def _inertia(self, j: JointLines) -> Worded:
        """(2.1), (2.10)."""
        page, n = self.page, j.n
        page.link(j.body, "inertia of link")
        c, J = j.centre()
        m = j.mass()
        mr = page.define(f"s_{n}^m", m @ c, "", "first moment of a link about its origin, kg m")
        about = J if c.zero else J - m @ c.skew() @ c.skew()
        J0 = page.define(f"J_{n}", about, "", "inertia of a link about its origin, kg m²", True)
        side = zeros_of(3, 3) if c.zero else mr.skew()
        rows = [[m @ EYE3, side.T if not c.zero else side], [side, J0]]
        own = page.define(f"Theta_{n}", by_blocks(rows), "(2.1)", "inertia matrix of a link about its origin")
        carried = [self.L[k.i] @ self.theta[k.i] @ self.L[k.i].T for k in self.joints if k.up == j.i]
        said = "inertia matrix of a link with all that it carries"
        return page.define(f"Theta_{n}^{n}star", written_sum(carried, own), "(2.10)", said, True)

    def element(self, i: int, j: int) -> Worded:
        """a_ij of (2.9) for j above i."""
        f, n = self.f[i], self.joints[i].n
        other = self.joints[j].n
        value = f.T @ self.theta[i] @ self.l[i, j]
        if i == j:
            value = value + self.joints[i].rotor()
        return self.page.define(f"a_{n}_{other}", value, "(2.9)", "element of the inertia matrix A")

    def weights(self) -> list[Worded]:
        """f_gi of (2.4), (2.8)."""
        page = self.page
        page.section("gravity")
        g = page.given("g", self.tree.gravity, "acceleration of gravity, base axes, m/s²")
        down: list[Worded] = []
        out = []
        for j in self.joints:
            before = down[j.up] if j.up >= 0 else g
            down.append(
                page.define(
                    f"g_{j.n}", self.C[j.i].T @ before, "", "acceleration of gravity in a link's axes, m/s²"
                )
            )
            fall = by_blocks([[down[-1]], [zeros_of(3)]])
            value = self.f[j.i].T @ self.theta[j.i] @ fall
            out.append(page.define(f"f_{j.n}^g", value, "(2.4), (2.8)", "effort of gravity in a joint, N m or N"))
        return out

    def christoffel(self) -> dict[tuple[int, int, int], Worded]:
        """d^i_sj for s <= j, (2.7), (2.14) in the form at the deepest link: at most three terms are not zero."""
        self.page.section("Christoffel's symbols")
        out = {}
        n = len(self.joints)
        for i in range(n):
            for s in range(n):
                for j in range(s, n):
                    deepest = max(i, s, j)
                    if all(x in self.over[deepest] for x in (i, s, j)):
                        value = self._symbol(i, s, j, deepest)
                        if not value.zero:
                            a, b, c = (self.joints[x].n for x in (i, s, j))
                            said = "Christoffel's symbol of the first kind of the inertia matrix"
                            out[i, s, j] = self.page.define(f"d_{b}_{c}^{a}", value, "(2.14)", said)
        return out

    def _symbol(self, i: int, s: int, j: int, m: int) -> Worded:
        """Half of the derivatives by Theorem 1: (l^i)^s = <l^s>^T l^i where i is above s."""

        def term(x: int, y: int, z: int) -> Worded:
            """l^x Theta (l^z)^y, where y turns z."""
            if not (z != y and z in self.over[y]):
                return zeros_of(1)
            l = [self.l[m, k] for k in (x, y, z)]
            if any(e.zero for e in l):
                return zeros_of(1)
            return l[0].T @ self.theta[m] @ l[1].skew().T @ l[2]

        plus = [term(i, s, j), term(j, s, i), term(i, j, s), term(s, j, i)]
        minus = [term(j, i, s), term(s, i, j)]
        value = written_sum(plus, zeros_of(1)) - written_sum(minus, zeros_of(1))
        return HALF @ value if not value.zero else value


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """A(q)."""
    c = ZarembaLines(tree, q)
    c.page.section("elements of the inertia matrix")
    A: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for j in c.joints:
        for i in sorted(c.over[j.i]):
            x = c.element(j.i, i).rows[0][0]
            row, column = j.body.v, c.joints[i].body.v
            A[row][column] = A[column][row] = x
    return A


def gravity(tree: Tree, q: Vector) -> list[Scalar]:
    """g(q), the efforts that hold the weight."""
    c = ZarembaLines(tree, q)
    return _by_rates(tree, c, [-x for x in c.weights()])


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> Matrix:
    """C_ij = sum d^i_sj v_s."""
    c = ZarembaLines(tree, q)
    C: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for (i, s, j), d in c.christoffel().items():
        x = d.rows[0][0]
        a, b, e = (c.joints[k].body.v for k in (i, s, j))
        C[a][e] = C[a][e] + x * v[b]
        if s != j:
            C[a][b] = C[a][b] + x * v[e]
    c.page.says("C_i_j", "sum d_s_j^i v_s", "(2.15)", "element of the Coriolis matrix, a sum over s")
    return C


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """b of (2.15)."""
    c = ZarembaLines(tree, q)
    return _by_rates(tree, c, _bias(c, v, "h"))


def inverse_dynamics(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """A a + b, (2.15)."""
    c = ZarembaLines(tree, q)
    b = _bias(c, v, "b")
    c.page.section("elements of the inertia matrix")
    A = {(j.i, i): c.element(j.i, i) for j in c.joints for i in sorted(c.over[j.i])}
    c.page.section("equations of motion")
    out = []
    for j in c.joints:
        row = [A[max(j.i, k), min(j.i, k)] @ written_scalar(a[c.joints[k].body.v], f"a_{c.joints[k].body.v + 1}")
               for k in range(len(c.joints)) if (max(j.i, k), min(j.i, k)) in A]  # fmt: skip
        value = written_sum(row, zeros_of(1)) + b[j.i]
        out.append(c.page.define(f"tau_{j.n}", value, "(2.15)", "effort of a drive, N m or N"))
    return _by_rates(tree, c, out)


def _bias(c: ZarembaLines, v: Vector, letter: str) -> list[Worded]:
    """b_i = sum d^i_sj v_s v_j - f_gi."""
    weight, symbols = c.weights(), c.christoffel()
    c.page.section("centrifugal and Coriolis terms, and gravity")
    rates = [written_scalar(v[j.body.v], f"v_{j.body.v + 1}") for j in c.joints]
    two = Worded([[2.0]], ("2",))
    out = []
    for j in c.joints:
        parts = [d @ rates[s] @ rates[k] if s == k else two @ d @ rates[s] @ rates[k]
                 for (i, s, k), d in symbols.items() if i == j.i]  # fmt: skip
        value = written_sum(parts, zeros_of(1)) - weight[j.i]
        out.append(c.page.define(f"{letter}_{j.n}", value, "(2.15)", "terms of rates and of gravity, N m or N"))
    return out


def _by_rates(tree: Tree, c: ZarembaLines, values: list[Worded]) -> list[Scalar]:
    out: list[Scalar] = [0.0] * tree.nv
    for j, x in zip(c.joints, values):
        out[j.body.v] = x.rows[0][0]
    return out
