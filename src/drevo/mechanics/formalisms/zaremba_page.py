"""Zaremba's equations as the paper writes them, (1.5), (2.1)-(2.15) with errata applied, line by line.

Six numbers are linear before angular; l_k^i is the motion of link k by a unit rate of joint i, in the axes of k.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector
from ..tree import Tree
from ..tree_indices import ancestors
from .written import (
    EYE3,
    SWAP,
    JointLines,
    Page,
    Worded,
    by_blocks,
    combination,
    element_name,
    of_all,
    refuse_many,
    written_scalar,
    written_sum,
    zeros_of,
)

TURN_OF_LINK = "turn of the link below against that above, 0 is the base, no unit"
ORIGIN_OF_LINK = "origin of the link below in the axes of that above, 0 is the base, m"
CARRIED_INERTIA = (
    "inertia of the link above with all that it carries, about the origin of the link below and in its axes, kg, "
    "kg m and kg m²"
)
VARIABLE_WORDS = {"q": "coordinate", "v": "rate"}
PER_UNIT = {"q": "rad or m", "v": "rad/s or m/s"}


class ZarembaLines:
    """l, f, Theta* and with them a_ij of a tree at q; of the bodies of a path l and f alone, of a way back f."""

    def __init__(self, tree: Tree, q: Vector, path: Sequence[int] | None = None, back: Sequence[int] = ()) -> None:
        self.page = page = Page(tree, "Zaremba")
        refuse_many(page, "the paper of Zaremba")
        self.joints, self.tree = of_all(page, q), tree
        self.L: dict[int, Worded] = {}
        self.C: dict[int, Worded] = {}
        self.O: dict[int, Worded] = {}
        self.f: dict[int, Worded] = {}
        self.l: dict[tuple[int, int], Worded] = {}
        for i in back:
            self._frame(self.joints[i])
        for i in range(len(tree)) if path is None else path:
            self._kinematics(self.joints[i])
        if path is not None:
            return
        self.theta = [zeros_of(6, 6)] * len(self.joints)
        for j in reversed(self.joints):
            self.theta[j.i] = self._inertia(j)
        self.over = [{*ancestors(tree.parents, i)} for i in range(len(tree))]  # with the link itself

    def _frame(self, j: JointLines) -> None:
        """L and f of a link, (1.2)."""
        page, n, b = self.page, j.n, j.body
        page.link(b, "kinematics of link")
        P = j.turned()
        C = page.define(f"C_{n}^{j.p}", P @ j.turn(), "(1.1)", TURN_OF_LINK)
        O = page.define(f"O_{n}^{j.p}", j.offset() + P @ j.shift(), "", ORIGIN_OF_LINK)
        lower = zeros_of(3, 3) if O.zero else O.skew() @ C
        said = "carries forces from a link to its parent, its transpose motions of the parent to it, no unit and m"
        self.L[j.i] = page.define(f"L_{n}^{j.p}", by_blocks([[C, zeros_of(3, 3)], [lower, C]]), "(1.2)", said)
        self.C[j.i], self.O[j.i] = C, O
        turning, sliding = j.columns()
        f = by_blocks([[sliding], [turning]])
        if b.factor != 1.0:
            f = Worded([[b.factor * x for x in row] for row in f.rows], ("-", *f.words) if b.factor == -1.0 else
                        (f"{b.factor:.6g}", *f.words))  # fmt: skip
        said = "motion of a link in its own axes by a unit rate of its joint, m/s and rad/s"
        self.f[j.i] = page.define(f"f^{n}", f, "", said)

    def _kinematics(self, j: JointLines) -> None:
        """L, f and l of a link, (1.2), (1.5)."""
        self._frame(j)
        self.l[j.i, j.i] = self.f[j.i]
        page, n, at = self.page, j.n, j.up
        for i, x in [(i, x) for (k, i), x in self.l.items() if k == at]:
            self.l[j.i, i] = page.define(
                f"l_{n}^{self.joints[i].n}",
                self.L[j.i].T @ x,
                "(1.5)",
                "motion of the link below by a unit rate of the joint above, in the link's axes, m/s and rad/s",
            )

    def _inertia(self, j: JointLines) -> Worded:
        """(2.10)."""
        own, n = self.own_inertia(j), j.n
        carried = [self.L[k.i] @ self.theta[k.i] @ self.L[k.i].T for k in self.joints if k.up == j.i]
        return self.page.define(f"Theta_{n}^{n}star", written_sum(carried, own), "(2.10)", CARRIED_INERTIA, True)

    def own_inertia(self, j: JointLines) -> Worded:
        """Theta of a link alone, (2.1)."""
        page, n = self.page, j.n
        page.link(j.body, "inertia of link")
        c, J = j.centre()
        m = j.mass()
        mr = page.define(f"s_{n}^m", m @ c, "", "first moment of a link about its origin, kg m")
        about = J if c.zero else J - m @ c.skew() @ c.skew()
        J0 = page.define(f"J_{n}", about, "", "inertia of a link about its origin, kg m²", True)
        side = zeros_of(3, 3) if c.zero else mr.skew()
        rows = [[m @ EYE3, side.T if not c.zero else side], [side, J0]]
        said = "inertia matrix of a link about its origin, kg, kg m and kg m²"
        return page.define(f"Theta_{n}^{n}", by_blocks(rows), "(2.1)", said)

    def element(self, i: int, j: int) -> Worded:
        """a_ij of (2.9) for j above i."""
        f, n = self.f[i], self.joints[i].n
        other = self.joints[j].n
        value = f.T @ self.theta[i] @ self.l[i, j]
        if i == j:
            value = value + self.joints[i].rotor()
        return self.page.define(
            element_name("a", len(self.joints), n, other),
            value,
            "(2.9)",
            "element of the inertia matrix A, kg m², kg m or kg",
        )

    def falls(self) -> list[Worded]:
        """The acceleration of gravity in the axes of the links, six numbers each."""
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
            out.append(by_blocks([[down[-1]], [zeros_of(3)]]))
        return out

    def weights(self) -> list[Worded]:
        """f_gi of (2.4), (2.8)."""
        out, said = [], "effort of gravity in a joint, N m or N"
        for j, fall in zip(self.joints, self.falls()):
            value = self.f[j.i].T @ self.theta[j.i] @ fall
            out.append(self.page.define(f"f_{j.n}^g", value, "(2.4), (2.8)", said))
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
                            said = (
                                "Christoffel's symbol of the first kind of the inertia matrix, kg m², kg m or kg"
                            )
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
        return combination([*((0.5, x) for x in plus), *((-0.5, x) for x in minus)])


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """A(q)."""
    return _elements(ZarembaLines(tree, q))


def zaremba_motion_terms(tree: Tree, q: Vector, v: Vector) -> tuple[Page, list[Scalar], Matrix]:
    """b (nv,) and A (nv, nv), and the page that they stand on."""
    c = ZarembaLines(tree, q)
    return c.page, _by_rates(tree, c, _bias(c, v, "b")), _elements(c)


def _elements(c: ZarembaLines) -> Matrix:
    """The elements a_ij, (2.9)."""
    c.page.section("elements of the inertia matrix")
    A: Matrix = [[0.0] * c.tree.nv for _ in range(c.tree.nv)]
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
    """B_ij = sum d^i_sj v_s."""
    c = ZarembaLines(tree, q)
    parts: dict[tuple[int, int], list[Worded]] = {}
    for (i, s, j), d in c.christoffel().items():
        for turned, column in dict.fromkeys([(s, j), (j, s)]):
            k = c.joints[turned].body.v
            parts.setdefault((i, column), []).append(d @ written_scalar(v[k], f"v_{k + 1}"))
    c.page.section("elements of the Coriolis matrix")
    C: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for (i, j), products in sorted(parts.items()):
        felt, moving, n = c.joints[i], c.joints[j], len(c.joints)
        said = "element of the Coriolis matrix, kg m²/s, kg m/s or kg/s"
        x = c.page.define(
            element_name("B", n, felt.n, moving.n), written_sum(products, zeros_of(1)), "(2.15)", said
        )
        C[felt.body.v][moving.body.v] = x.rows[0][0]
    return C


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """b of (2.15)."""
    c = ZarembaLines(tree, q)
    return _by_rates(tree, c, _bias(c, v, "b"))


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
        out.append(
            c.page.define(f"{letter}_{j.n}", value, "(2.15)", "terms of rates and of gravity of a joint, N m or N")
        )
    return out


def _by_rates(tree: Tree, c: ZarembaLines, values: list[Worded]) -> list[Scalar]:
    """Values of the book's joints in the order of v."""
    out: list[Scalar] = [0.0] * tree.nv
    for j, x in zip(c.joints, values):
        out[j.body.v] = x.rows[0][0]
    return out


# -- derivatives, Theorems 1 and 3 -------------------------------------------------------------------------------


class DerivativeLines:
    """Elements of A and efforts of gravity with their derivatives, each formed once, of any order."""

    def __init__(self, tree: Tree, q: Vector) -> None:
        self.lines = c = ZarembaLines(tree, q)
        self.page, self.formed = c.page, dict[tuple[object, ...], Worded]()
        self.g: dict[tuple[int, int], Worded] = {(j.i, j.i): c.f[j.i] for j in c.joints}
        self.shifted: dict[tuple[int, int], Worded] = {(j.i, j.i): c.theta[j.i] for j in c.joints}
        self.page.section("motions and bodies seen from above")
        for j in c.joints:
            for k in list(ancestors(tree.parents, j.i))[1:]:
                self._lift(j.i, k, next(x for x in ancestors(tree.parents, j.i) if c.joints[x].up == k))

    def _lift(self, s: int, i: int, child: int) -> None:
        """g_i^s, by the rule G L^T = L G, and Theta_i^s*, (2.12)."""
        c, (n, k) = self.lines, (self.lines.joints[x].n for x in (i, s))
        moved = SWAP @ c.L[child] @ SWAP @ self.g[child, s]
        said = "motion of the link above by a unit rate of its joint, at the link below in its axes, m/s and rad/s"
        self.g[i, s] = self.page.define(f"g_{n}^{k}", moved, "(1.5)", said)
        body = c.L[child] @ self.shifted[child, s] @ c.L[child].T
        self.shifted[i, s] = self.page.define(f"Theta_{n}^{k}star", body, "(2.12)", CARRIED_INERTIA, True)

    def _on_path(self, low: int, high: int) -> bool:
        return high in self.lines.over[low]

    def _column(self, k: int, l: Worded, turns: tuple[int, ...]) -> Worded:
        """(l_k^i)^{t1..tp}, Theorem 1, (1.16)."""
        for t in turns:
            l = self.lines.l[k, t].skew().T @ l
        return l

    def _body(self, i: int, turns: tuple[int, ...]) -> Worded:
        """(Theta_i^i*)^{t1..tp}, Theorem 3, (2.11), (2.13)."""
        if not turns:
            return self.lines.theta[i]
        first, n = turns[0], self.lines.joints[i].n
        name = f"Theta_{n}^{n}star{self._above(turns)}"
        if (name,) in self.formed:
            return self.formed[name,]
        X = self._body(i, turns[1:]) if turns[1:] else self.shifted[i, first]
        g = self.g[i, first].skew()
        said = "derivative of Theta* by the coordinates whose numbers stand last, kg, kg m and kg m² by rad or m"
        number = "(2.13)" if turns[1:] else "(2.11)"
        self.formed[name,] = self.page.define(name, g @ X + X @ g.T, number, said, True)
        return self.formed[name,]

    def _above(self, turns: tuple[int, ...]) -> str:
        return "_".join(["", *(self.lines.joints[t].n for t in turns)])

    def of(self, i: int, j: int, turns: tuple[int, ...]) -> Worded:
        """a_ij by the joints of turns, the weight's effort f_i^g where j is -1; 0 off one path."""
        c, turns = self.lines, tuple(sorted(turns))
        i, j = max(i, j), min(i, j)
        if (i, j, turns) in self.formed:
            return self.formed[i, j, turns]
        below = tuple(t for t in turns if t != i and self._on_path(t, i))
        between = tuple(t for t in turns if self._on_path(i, t) and t > j and (j < 0 or self._on_path(t, j)))
        value = zeros_of(1)
        chain = all(self._on_path(b, a) for a, b in pairwise(below))
        if chain and len(below) + len(between) == len(turns) and (j < 0 or self._on_path(i, j)):
            l = self.falls()[i] if j < 0 else c.l[i, j]
            value = c.f[i].T @ self._body(i, below) @ self._column(i, l, between)
        if not value.zero:
            n, part = c.joints[i].n, "an element of A" if j >= 0 else "an effort of gravity"
            unit = "kg m², kg m or kg" if j >= 0 else "N m or N"
            first = f"f_{n}^g" if j < 0 else f"{element_name('a', len(c.joints), n, c.joints[j].n)}^"
            used = "(2.8)" if j < 0 else "(2.9)", *["(2.11)"] * bool(below), *["(1.16)"] * bool(between)
            said = f"derivative of {part} by the coordinates of the joints above, {unit} by rad or m"
            value = self.page.define(f"{first}{self._above(turns)}", value, ", ".join(used), said)
        self.formed[i, j, turns] = value
        return value

    def falls(self) -> list[Worded]:
        """Gravity in the axes of the links, six numbers each."""
        if ("g",) not in self.formed:
            self.formed["g",] = zeros_of(1)
            self.weight = self.lines.falls()
        return self.weight

    def symbol(self, i: int, s: int, j: int, turns: tuple[int, ...] = (), times: float = 1.0) -> Worded:
        """d^i_sj of (2.14) by the joints of turns, times a number."""
        half = 0.5 * times
        plus = (half, self.of(i, j, (s, *turns))), (half, self.of(i, s, (j, *turns)))
        return combination([*plus, (-half, self.of(s, j, (i, *turns)))])


def derivative_lines(
    name: str, wrt: tuple[str, ...], tree: Tree, q: Vector, v: Vector = (), a: Vector = ()
) -> object:
    """Derivatives by q of A and of the efforts of gravity of any order, of the other efforts of the first."""
    if name not in ("mass_matrix", "gravity", "bias", "inverse_dynamics") or wrt not in {
        ("q",) * len(wrt),
        ("v",),
    }:
        raise TraceError(
            f"the derivative of {name} by {', '.join(wrt)}: no page in the letters of Zaremba gives it"
        )
    d, n = DerivativeLines(tree, q), range(tree.nv)
    at = sorted(n, key=lambda i: tree.bodies[i].v)  # a body by its rate
    d.page.section("derivatives")
    if name == "mass_matrix":
        return [[[d.of(i, j, t).rows[0][0] for t in product(at, repeat=len(wrt))] for j in at] for i in at]
    if name == "gravity":
        return [[-d.of(i, -1, t).rows[0][0] for t in product(at, repeat=len(wrt))] for i in at]
    if len(wrt) > 1:
        raise TraceError(
            f"the derivative of {name}: the page in the letters of Zaremba has those of the first order"
        )
    letters = ("v", v), ("a", a)
    rate, acceleration = (
        [written_scalar(x[tree.bodies[i].v], f"{y}_{tree.bodies[i].v + 1}") if x else zeros_of(1) for i in n]
        for y, x in letters
    )
    return [[_slope(d, wrt[0], i, k, rate, acceleration).rows[0][0] for k in at] for i in at]


def _slope(d: DerivativeLines, by: str, i: int, k: int, v: list[Worded], a: list[Worded]) -> Worded:
    """An effort by q_k or v_k, (4.2)."""
    n = range(len(v))
    if by == "v":
        value = written_sum((d.symbol(i, s, k, times=2.0) @ v[s] for s in n), zeros_of(1))
    else:
        value = written_sum((d.of(i, j, (k,)) @ a[j] for j in n), zeros_of(1))
        pairs = [(s, j, d.symbol(i, s, j, (k,), 1.0 if s == j else 2.0)) for j in n for s in range(j + 1)]
        value = written_sum((x @ v[s] @ v[j] for s, j, x in pairs), value)
        value = value - d.of(i, -1, (k,))
    rows, columns = (d.lines.joints[x].n for x in (i, k))
    said = f"derivative of an effort by the {VARIABLE_WORDS[by]} of the joint above, N m or N by {PER_UNIT[by]}"
    return d.page.define(f"tau_{rows}^_{columns}", value, "(4.2)", said)
