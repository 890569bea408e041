"""Motion under constraints as Kovalchuk's block system and as Zaremba's (2.17)-(2.19) write it, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..algorithms.constraints import ConstraintRows
from ..algorithms.inertia_matrix import Factors, lower_rows
from ..scalar import Scalar, Vector, dot
from ..tree import Tree
from .kovalchuk_page import kovalchuk_terms
from .written import Page
from .zaremba_page import zaremba_motion_terms

TRUNK_JOINTS = 6  # joints that no drive moves
TRUNK_BLOCKS = (  # of the system of a machine on a trunk
    ("I_I_I I_R_I I_R_R", "blocks of I: I for the six joints of the trunk, R for the others, kg m², kg m or kg"),
    ("J_I J_R", "columns of J for the joints of the trunk and for the others, m or no unit"),
    ("a_I a_R", "accelerations of the joints of the trunk and of the others, rad/s² or m/s²"),
    ("H_I H_R", "H of the joints of the trunk and of the others, N m or N"),
)
MAX_PRINTED_COLUMNS = 6  # columns of a matrix that is printed entry by entry


class ConstraintLetters(NamedTuple):
    """A paper's letters for M, its elements, h, tau, Gamma, gamma and N.

    numbers: of its equations of motion, of constraints, and of reactions.
    """

    inertia: str
    element: str
    bias: str
    effort: str
    jacobian: str
    rest: str
    reaction: str
    numbers: tuple[str, str, str]


PAPER_LETTERS = {
    "kovalchuk": ConstraintLetters("I", "I_ij", "H", "tau", "J", "P", "R", ("", "", "")),
    "zaremba": ConstraintLetters("A", "a_ij", "b", "tau", "Gamma", "gamma", "N", ("(2.17)", "(2.18)", "(2.19)")),
}


def constrained_lines(
    paper: str, tree: Tree, q: Vector, v: Vector, tau: Vector, rows: ConstraintRows
) -> tuple[list[Scalar], list[Scalar]]:
    """Accelerations (nv,) and reactions (rows,); rows must be independent."""
    x = PAPER_LETTERS[paper]
    page, h, M = (kovalchuk_terms if paper == "kovalchuk" else zaremba_motion_terms)(tree, q, v)
    page.section("constraints")
    page.says(x.inertia, "", "", f"inertia matrix of elements {x.element}, kg m², kg m or kg")
    page.says(x.bias, "", "", f"terms of rates and of gravity, of elements {x.bias}_i, N m or N")
    G = _matrix(
        page, x.jacobian, rows.jacobian, "Jacobian of the constraints, row by row, m or no unit", x.numbers[1]
    )
    said = "accelerations of the constraints where those of the joints are 0, m/s² or rad/s²"
    gamma = _matrix(page, x.rest, [[y] for y in rows.bias], said, x.numbers[1])
    _block_system(page, x, tree)
    page.section("accelerations and reactions")
    factors = Factors(lower_rows(M), range(len(h)))
    free = factors.solve([t - y for t, y in zip(tau, h)])
    pushed = [factors.solve(row) for row in rows.jacobian]
    A, b, t = f"{x.inertia}^-1", x.bias, x.effort
    u = _matrix(
        page,
        "u",
        [[y] for y in free],
        "accelerations without the constraints, rad/s² or m/s²",
        words=f"{A} ( {t} - {b} )",
    )
    said = "accelerations by unit reactions, rad/s² or m/s² by N or N m"
    W = _matrix(page, "W", list(zip(*pushed)), said, words=f"{A} {x.jacobian}^T")
    D = [[dot(g, w) for w in pushed] for g in rows.jacobian]
    said = "accelerations of the constraints by unit reactions, m/s² or rad/s² by N or N m"
    _matrix(page, "D", D, said, x.numbers[2], f"{G} {W}")
    N = Factors(lower_rows(D), range(len(D))).solve(
        [-(dot(g, free) + y) for g, y in zip(rows.jacobian, rows.bias)]
    )
    said = "reactions of the constraints on the robot, N or N m"
    _matrix(page, x.reaction, [[y] for y in N], said, x.numbers[2], f"- D^-1 ( {G} {u} + {gamma} )")
    page.says("a", f"{u} + {W} {x.reaction}", x.numbers[0])
    return [y + dot(w, N) for y, w in zip(free, zip(*pushed))], N


def _block_system(page: Page, x: ConstraintLetters, tree: Tree) -> None:
    """The equations of motion and of the constraints before they are solved."""
    page.section("equations of motion and of the constraints")
    G, R = x.jacobian, x.reaction
    if x is PAPER_LETTERS["zaremba"]:
        page.says(f"{x.inertia} a + {x.bias}", f"{x.effort} + {G}^T {R}", x.numbers[0])
        page.says(f"{G} a + {x.rest}", "0", x.numbers[1])
        return
    page.says(f"[ I & - {G}^T ; {G} & 0 ] [ a ; {R} ] + [ H ; {x.rest} ]", f"[ {x.effort} ; 0 ]")
    if len(tree) > TRUNK_JOINTS and tree.bodies[0].joint.startswith("trunk"):
        rows = "I_I_I & I_R_I^T & - J_I^T ; I_R_I & I_R_R & - J_R^T ; J_I & J_R & 0"
        right = f"[ 0 ; {x.effort} ; 0 ]"
        for names, said in TRUNK_BLOCKS:
            for name in names.split():
                page.says(name, "", "", said)
        page.says(f"[ {rows} ] [ a_I ; a_R ; {R} ] + [ H_I ; H_R ; {x.rest} ]", right)


def _matrix(
    page: Page, name: str, rows: Sequence[Sequence[Scalar]], meaning: str, equation: str = "", words: str = ""
) -> str:
    """A line that defines a matrix, by its words or entry by entry, and the names of its entries."""
    column = len(rows[0]) == 1
    lines = [
        [
            " ".join(page.entry(f"{name}_{i + 1}" if column else f"{name}_{i + 1}_{j + 1}", y))
            for j, y in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    shown = "" if len(rows[0]) > MAX_PRINTED_COLUMNS else f"[ {' ; '.join(map(' & '.join, lines))} ]"
    page.says(name, words or shown, equation, meaning)
    return name
