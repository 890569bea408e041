"""Telegin's numbered formulas, from poses and bodies alone, against the robot's mass matrix and direct sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..design.conditions import conditions
from ..design.formulas import check_formulas
from ..io.given import Array
from ..robot.face import Robot
from .rows import CheckedFormula, agreeing, example, misprint, random_states, relative_error

PRINTED_CONDITIONS = """d_x4 = d_y4 = 0; I_3^y - I_3^x = m_4*L_4^2; I_4^y = I_4^x; I_3^xy = I_4^xy = 0
d_x7 = d_y7 = 0; I_6^y - I_6^x = m_7*L_7^2; I_7^y = I_7^x; I_6^xy = I_7^xy = 0; d_z2 + d_z3 + d_z4 = 0
d_x3 = d_y3 = d_x2 = 0; d_x5 = d_x6 = d_y6 = 0; d_z5 + d_z6 + d_z7 = 0; I_4^xz = I_4^yz = I_7^xz = I_7^yz = 0
I_3^yz + L_4*d_z4 = 0; I_3^xz = 0"""  # (17)-(22)
CONFIGURATIONS_OF_EACH = 4  # random configurations


class HingedBodies:
    """The paper's letters for a tree of hinges at one q, as vectors in base axes; bodies are numbered from 0."""

    def __init__(self, robot: Robot, q: Array) -> None:
        model = robot.model
        links = {x.name: x for x in model.links}
        joints = model.moving_joints
        rows = {j.child: k for k, j in enumerate(joints)}
        poses = [robot.pose(q, j.child) for j in joints]
        self.axes = [T[:3, :3] for T in poses]
        self.O = [T[:3, 3] for T in poses]
        self.up = [rows.get(j.parent, -1) for j in joints]
        self.N = range(len(joints))
        self.S = [[j for j in self.N if self.up[j] == i] for i in self.N]
        self.q = [A @ np.array(j.axis) for A, j in zip(self.axes, joints)]
        offsets = [O - (self.O[u] if u >= 0 else O) for O, u in zip(self.O, self.up)]
        self.L = [float(np.linalg.norm(x)) for x in offsets]
        self.e = [x / L if L else x for x, L in zip(offsets, self.L)]
        inertials: list[Any] = [links[j.child].inertial for j in joints]
        self.m_o = [x.mass for x in inertials]
        self.c = [A @ np.array(x.com) for A, x in zip(self.axes, inertials)]
        central = [A @ np.array(x.tensor) @ A.T for A, x in zip(self.axes, inertials)]
        self.I = [J + m * (c @ c * np.eye(3) - np.outer(c, c)) for J, m, c in zip(central, self.m_o, self.c)]
        self.n = [[k for k in self.N if i in self.carrying(k)] for i in self.N]
        self.m = [sum(self.m_o[k] for k in below) for below in self.n]
        self.static = [sum(self.m_o[k] * (self.O[k] + self.c[k] - self.O[i]) for k in self.n[i]) for i in self.N]

    def carrying(self, k: int) -> list[int]:
        """The bodies that carry a body, itself first."""
        return [k, *self.carrying(self.up[k])] if k >= 0 else []

    def d(self, i: int) -> Array:
        """(1): static moment of an augmented body."""
        return np.asarray(self.m_o[i] * self.c[i] + sum(self.m[j] * self.L[j] * self.e[j] for j in self.S[i]))

    def moment(self, j: int) -> Array:
        """(4): static moment of a subtree, by the recursion."""
        return np.asarray(self.d(j) + sum(self.moment(k) for k in self.S[j]))

    def J(self, k: int, j: int, i: int) -> float:
        """J_kji in components, products of inertia with their sign plus."""
        A, I = self.axes[k], self.axes[k].T @ self.I[k] @ self.axes[k]
        a, b = A.T @ self.q[j], A.T @ self.q[i]
        polar = sum(I[x, x] * a[x] * b[x] for x in range(3))
        pairs = ((0, 1), (0, 2), (1, 2))
        return float(polar - sum(-I[x, y] * (a[x] * b[y] + a[y] * b[x]) for x, y in pairs))

    def J_s(self, j: int, i: int) -> float:
        """J_ji^s."""
        return sum(self.J(k, j, i) for k in self.n[j])

    def J_s_by_6(self, i: int) -> float:
        """(6): J_i^s by differences of moments."""
        total = 0.0
        for j in self.n[i]:
            I = self.axes[j].T @ self.I[j] @ self.axes[j]
            x, y, z = self.axes[j].T @ self.q[i]
            total += I[2, 2] + (I[0, 0] - I[2, 2]) * x * x + (I[1, 1] - I[2, 2]) * y * y
            total += 2.0 * (I[0, 1] * x * y + I[0, 2] * x * z + I[1, 2] * y * z)
        return total

    def J_o(self, i: int) -> float:
        """(3): shifts of the masses that a body carries."""
        kids = self.S[i]
        return float(
            sum(
                self.m[j] * self.L[j] ** 2 + 2 * self.L[j] * self.moment(j) @ self.e[j] + self.J_o(j) for j in kids
            )
        )

    def H(self, j: int, i: int, everywhere: bool = False) -> float:
        """(2), 0 where body i does not carry body j unless everywhere."""
        if i not in self.carrying(j) and not everywhere:
            return 0.0
        q, e, L, m = self.q, self.e, self.L, self.moment
        line = self.carrying(j)
        between = line[: line.index(i)] if i in line else [k for k in self.N if i < k <= j]
        total = self.J_s(j, i) + self.J_o(j) * (q[j] @ q[i])
        total += sum(L[k] * (q[j] @ q[i] * (m(j) @ e[k]) - m(j) @ q[i] * (q[j] @ e[k])) for k in between)
        for k in (x for x in self.n[j] if x != j):
            ej, ei = e[k] @ q[j], e[k] @ q[i]
            total -= L[k] * (ej * (self.m[k] * L[k] * ei + m(k) @ q[i]) + ei * (m(k) @ q[j]))
        return float(total)

    def H_by_5(self, i: int) -> float:
        """(5): elements on the diagonal."""
        total = self.J_s_by_6(i) + self.J_o(i)
        for j in (x for x in self.n[i] if x != i):
            ej = self.e[j] @ self.q[i]
            total -= self.L[j] * ej * (self.m[j] * self.L[j] * ej + 2.0 * self.moment(j) @ self.q[i])
        return float(total)

    def H_by_8(self, i: int, H: Array) -> float:
        """(8): from the elements of the bodies that hang on body i, by parallel axes."""
        total = self.J(i, i, i)
        for j in self.S[i]:
            along = self.e[j] @ self.q[j]
            total += self.m[j] * self.L[j] ** 2 * (1.0 - along**2)
            total += H[j, j] + 2.0 * self.L[j] * (
                self.moment(j) @ self.e[j] - along * (self.moment(j) @ self.q[j])
            )
        return float(total)

    def parallel(self, i: int) -> bool:
        """True if the joints of all bodies on body i are parallel to its own."""
        return all(np.allclose(self.q[j], self.q[i]) for j in self.S[i])


def telegin_numbered() -> Iterator[CheckedFormula]:
    """(1)-(16) and the misprints that numbers show."""
    spatial, plane = (_bodies(name) for name in ("two-arm-spatial", "two-arm-planar"))
    pairs = [(b, H) for name in ("three-link", "two-arm-planar", "two-arm-spatial") for b, H in _bodies(name)]
    yield from _static_moments(pairs)
    yield from _elements(pairs)
    yield from _in_a_plane([*_bodies("three-link"), *plane])
    yield from _given(spatial)
    yield from _misprints(spatial)


def _bodies(name: str) -> list[tuple[HingedBodies, Array]]:
    """The letters and the mass matrix at random configurations."""
    robot = example(name)
    q = random_states(robot, 1)[0][:CONFIGURATIONS_OF_EACH]
    return [(HingedBodies(robot, x), robot.mass_matrix(x)) for x in q]


def _over(pairs: Iterable[tuple[HingedBodies, Array]], both: Callable[[HingedBodies, Array], Any]) -> float:
    """The worst relative error of pairs of arrays, (got, wanted) at every configuration."""
    return max(relative_error(*both(b, H)) for b, H in pairs)


def _static_moments(pairs: list[tuple[HingedBodies, Array]]) -> Iterator[CheckedFormula]:
    """(1), (3), (4), (6), (9)."""
    call = "write_out(robot, 'mass_matrix', formalism='telegin')"

    def augmented(b: HingedBodies, H: Array) -> Any:
        points = [[(b.m_o[i], b.c[i]), *((b.m[j], b.O[j] - b.O[i]) for j in b.S[i])] for i in b.N]
        return [b.d(i) for i in b.N], [sum(m * r for m, r in body) for body in points]

    def shifts(b: HingedBodies, H: Array) -> Any:
        below = [[k for k in b.n[i] if k != i] for i in b.N]
        direct = [sum(b.m[k] * b.L[k] ** 2 + 2 * b.L[k] * b.static[k] @ b.e[k] for k in ks) for ks in below]
        return [b.J_o(i) for i in b.N], direct

    def moments(b: HingedBodies, H: Array) -> Any:
        return [b.J_s_by_6(i) for i in b.N], [sum(b.q[i] @ b.I[k] @ b.q[i] for k in b.n[i]) for i in b.N]

    def sums(b: HingedBodies, H: Array) -> Any:
        kids = [sum(b.m_o[k] for j in b.S[i] for k in b.n[j]) for i in b.N]
        return kids, [sum(b.m_o[k] for k in b.n[i] if k != i) for i in b.N]

    for formula, says, against, both in (
        ("(1)", "static moment of an augmented body", "masses at the poles of the bodies on it", augmented),
        ("(3)", "shifts of the masses that a body carries", "sum over all of them", shifts),
        ("(4)", "projections of a subtree's static moment", "sum over its bodies", lambda b, H: (
            [b.moment(i) for i in b.N], b.static)),
        ("(6)", "moments of a subtree's bodies about an axis", "q I q of every body", moments),
        ("(9)", "a sum over a subtree, by the bodies on its first", "the sum as it is", sums),
    ):  # fmt: skip
        yield agreeing(formula, call, against, _over(pairs, both), says=says)


def _elements(pairs: list[tuple[HingedBodies, Array]]) -> Iterator[CheckedFormula]:
    """(2), (5), (7), (8)."""
    call, against = (
        "write_out(robot, 'mass_matrix', formalism='telegin', sequence='paper')",
        "robot.mass_matrix(q)",
    )

    def neighbours(b: HingedBodies, H: Array) -> Any:
        both = []
        for i in (x for x in b.N if b.up[x] >= 0 and np.allclose(b.q[x], b.q[b.up[x]])):
            for j in b.n[i]:
                m, along = b.moment(j), b.q[j] @ b.e[i]
                step = b.L[i] * (b.q[j] @ b.q[i] * (m @ b.e[i]) - along * (m @ b.q[i]))
                both.append((H[j, i] + step, H[j, b.up[i]]))
        return tuple(zip(*both))

    def stars(b: HingedBodies, H: Array) -> Any:
        whole = [i for i in b.N if b.parallel(i)]
        return [b.H_by_8(i, H) for i in whole], [H[i, i] for i in whole]

    def every(b: HingedBodies, H: Array) -> Any:
        return [[b.H(max(i, j), min(i, j)) for i in b.N] for j in b.N], H

    def diagonal(b: HingedBodies, H: Array) -> Any:
        return [b.H_by_5(i) for i in b.N], np.diag(H)

    yield agreeing("(2)", call, against, _over(pairs, every), says="statement 1: every element")
    yield agreeing("(5)", call, against, _over(pairs, diagonal), says="statement 1: elements on the diagonal")
    yield agreeing("(7)", call, against, _over(pairs, neighbours), says="statement 2: parallel neighbouring axes")
    yield agreeing(
        "(8)", call, against, _over(pairs, stars), says="statement 3: all axes on a body parallel to its own"
    )


def _in_a_plane(pairs: list[tuple[HingedBodies, Array]]) -> Iterator[CheckedFormula]:
    """(10)-(12), (14)."""
    call, against = "write_out(two-arm-planar, 'mass_matrix', formalism='telegin')", "robot.mass_matrix(q)"

    def diagonal(b: HingedBodies, H: Array) -> Any:
        bodies = [b.q[i] @ b.I[i] @ b.q[i] + sum(b.m[j] * b.L[j] ** 2 for j in b.S[i]) for i in b.N]
        added = [sum(H[j, j] + 2 * b.L[j] * b.moment(j) @ b.e[j] for j in b.S[i]) for i in b.N]
        return np.add(bodies, added), np.diag(H)

    def below(b: HingedBodies, H: Array) -> Any:
        rows = [(j, i) for i in b.N if b.up[i] >= 0 for j in b.n[i]]
        return [H[j, i] + b.L[i] * b.moment(j) @ b.e[i] for j, i in rows], [H[j, b.up[i]] for j, i in rows]

    def projections(b: HingedBodies, H: Array) -> Any:
        parts = [b.axes[j].T @ b.d(j) for j in b.N]
        along = [[b.axes[j].T @ b.e[i] for i in b.N] for j in b.N]

        def m(j: int, i: int) -> float:
            return float(parts[j][:2] @ along[j][i][:2] + sum(m(k, i) for k in b.S[j]))

        rows = [(j, i) for j in b.N for i in b.carrying(j)]
        return [m(j, i) for j, i in rows], [b.static[j] @ b.e[i] for j, i in rows]

    def flat(b: HingedBodies, H: Array) -> Any:
        static = [b.m_o[i] * b.c[i] + sum(b.m[j] * (b.O[j] - b.O[i]) for j in b.S[i]) for i in b.N]
        return [(b.axes[i].T @ b.d(i))[:2] for i in b.N], [(b.axes[i].T @ x)[:2] for i, x in zip(b.N, static)]

    yield agreeing("(10)", call, against, _over(pairs, diagonal), says="statement 4: elements on the diagonal")
    yield agreeing("(11)", call, against, _over(pairs, below), says="statement 4: elements below the diagonal")
    yield agreeing(
        "(12)", call, "sum over the subtree's bodies", _over(pairs, projections), says="projections in a plane"
    )
    yield agreeing(
        "(14)",
        call,
        "masses at the poles of the bodies on it",
        _over(pairs, flat),
        says="static moments in a plane",
    )


def _given(spatial: list[tuple[HingedBodies, Array]]) -> Iterator[CheckedFormula]:
    """(13), (16): offsets that the examples give; (15): sines and cosines of sums of angles."""
    for formula, name, offsets in (
        ("(13)", "three-link", {1: (0.0, 1.0)}),
        ("(16)", "two-arm-planar", {2: (1.0, 0.0), 4: (1.0, 0.0)}),
    ):
        b, _ = _bodies(name)[0]
        offered = [(b.axes[b.up[i]].T @ b.e[i])[:2] for i in offsets]
        said = f"drevo.load({name!r})"
        yield agreeing(
            formula, said, "poses", relative_error(offered, list(offsets.values())), says="offsets that are given"
        )
    robot = example("two-arm-spatial")
    q = random_states(robot, 1)[0][:CONFIGURATIONS_OF_EACH]
    cosines = [(b.axes[3].T @ b.q[1])[:2] for b, _ in spatial]
    want = [(np.sin(x[2] + x[3]), np.cos(x[2] + x[3])) for x in q]
    call = "write_out(two-arm-spatial, 'mass_matrix', formalism='telegin')"
    yield agreeing("(15)", call, "poses", relative_error(cosines, want), says="x_42^q = s_34, y_42^q = c_34")


def _misprints(spatial: list[tuple[HingedBodies, Array]]) -> Iterator[CheckedFormula]:
    """Misprints of the text around the formulas."""
    call = "robot.mass_matrix(q)"
    centres = _over(spatial, lambda b, H: ([b.d(i) / (b.m_o[i] + sum(b.m[j] for j in b.S[i])) for i in b.N],
                                           [b.d(i) for i in b.N]))  # fmt: skip
    yield misprint("(1)", call, "d of (1)", centres, says="d said to be the coordinates of the centre of mass")
    across = [(j, i) for i, j in ((1, 4), (1, 5), (2, 6))]
    off = max(max(abs(b.H(j, i, True)) for j, i in across) / np.abs(H).max() for b, H in spatial)
    yield misprint("(2)", call, "0", off, says="said for all i, j: bodies of two arms, where the element is 0")
    three = _bodies("three-link")[1][0]
    x3, (x2, y2), e3 = three.axes[2][:, 0], three.axes[1].T[:2], three.e[2]
    a, b = e3 @ x2, e3 @ y2
    slip = abs(a * (x3 @ three.e[1]) + b * (x3 @ y2) - x3 @ e3)
    yield misprint("after (15)", call, "x_33^e", slip, says="x_33^e = a x_32^e + b x_32^y, for x_32^x")
    sine = max(abs(b.axes[2][:, 0] @ b.axes[1][:, 2] - b.axes[2][:, 0] @ b.axes[1][:, 1]) for b, _ in spatial)
    yield misprint("after (21)", call, "x_32^z = 0", sine, says="x_32^y = x_32^z = s_3")
    yield from _sufficient()


def _sufficient() -> Iterator[CheckedFormula]:
    """(17)-(22) as printed leave H_65 to change with angles."""
    robot: Any = example("two-arm-spatial")
    asked: Any = conditions(robot, constant="mass_matrix")
    printed = [x.strip() for line in PRINTED_CONDITIONS.splitlines() for x in line.split(";")]
    left = asked.compare(printed)
    call = "conditions(robot, constant='mass_matrix').compare(printed)"
    error = abs(len(asked) - 28) + abs(left.rank - 26) + abs(len(left.missing) - 2)
    yield agreeing("(17)-(22)", call, "28 conditions, 26 in print, 2 missing", error, says="necessary")
    given = ", ".join(printed).replace("\n", ", ")
    judged = check_formulas(robot, "H_65 = 0", given=given)
    error = float(judged.wrong[0].error) if judged.wrong else 0.0
    yield misprint(
        "(22)",
        "check_formulas(robot, 'H_65 = 0', given=...)",
        "the element",
        error,
        says="(17)-(22) said to be sufficient: H_65 = 0",
    )
