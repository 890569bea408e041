"""Formulas of the five papers, proved by certificates; single slips in them, refuted and mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.design import expressions
from drevo.design.expressions import FormulaNode

SPATIAL = """
H_33 = I_3^d + I_4^z + 2*L_4*m_44^e; m_44^e = d_x4*s_4 + d_y4*c_4; I_3^d = I_3^z + m_4*L_4^2
J_3^o = m_4*L_4^2 + 2*L_4*m_44^e; H_42 = -I_4^xz*s_34 - I_4^yz*c_34; H_21 = H_22 + L_2*m_21^x
m_31^x = d_x3*c_2*c_3 - d_y3*c_2*s_3 + d_z3*s_2 + m_41^x; H_43 = H_44 + L_4*m_44^e
J_2^s = I_2^y + I_3^z + I_z3^x*s_3^2 + I_z3^y*c_3^2 - 2*I_3^xy*s_3*c_3 + I_4^z + I_z4^x*s_34^2 + I_z4^y*c_34^2 - 2*I_4^xy*s_34*c_34
H_65 = -I_6^xz*s_6 - (I_6^yz + L_7*d_z7)*c_6 + H_75; m_21^x = d_x2*c_2 + d_z2*s_2 + m_31^x
H_75 = -I_7^xz*s_67 - I_7^yz*c_67; H_51 = H_55 - L_5*m_51^x; I_z4^x = I_4^x - I_4^z"""  # noqa: E501
THREE = """
m_33^e = d_x3*(x_23^e*c_3 + y_23^e*s_3); m_32^e = d_x3*s_23; m_22^e = d_x2*s_2 + d_y2*c_2 + m_32^e
H_22 = I_2^d + H_33 + 2*L_3*m_33^e; H_11 = I_1^d + H_22 + 2*L_2*m_22^e; H_31 = H_32 + L_2*m_32^e
I_2^d = I_2^q + m_3*L_3^2; d_y2 = m_o2*y_c2 + m_3*L_3*y_23^e"""
RIGHT = {
    "three-link": ("telegin", THREE),
    "two-arm-spatial": ("telegin", SPATIAL),
    "kovalchuk": ("kovalchuk", """
        omega_2z = v_1 + v_2; a_2x = L_2*a_1*s_2 - L_2*v_1^2*c_2; a_2x^c = a_2x - x_c2*omega_2z^2
        phi_2x = m_2*(g_y*s_12 - a_2x^c); I_21 = I_22 + m_2*x_c2*L_2*c_2; tau_1 = h_1*0 + tau_1
        H_2 = m_2*x_c2*L_2*s_2*v_1^2 - m_2*g_y*x_c2*c_12; f_2y = s_2*phi_2x + c_2*phi_2y""".replace(
        "tau_1 = h_1*0 + tau_1", "I_22 = I_2zz + m_2*x_c2^2")),
    "vereshchagin": ("vereshchagin", """
        U_2 = I_2zz + m_2*x_c2^2; M_1zz^f = m_1 + m_2; b_1x = -x_c1*c_1*v_1^2
        Q_2y^f = m_2*g_y; rho_2x = x_c2*c_12"""),
    "zaremba": ("zaremba", """
        a_21 = a_22 + L_2*m_2*x_c2*c_2; d_11^2 = L_2*Theta_2x*s_2; Theta_2x = x_c2*m_2
        Theta_1x = x_c1*m_1 + L_2*m_2 + f_1y^2; b_2 = d_11^2*v_1^2 - f_g2; f_g2 = m_2*g_y*x_c2*c_12"""),
    "alyushin": ("alyushin", """
        E_1 = 0.5*m_1*v_1y^c^2 + 0.5*I_1zz*v_1^2; v_2y^c = c_2*L_2*v_1 + x_c2*omega_2z; T = E_1 + E_2
        v_2x^c = s_2*L_2*v_1; M_22 = I_2zz + m_2*x_c2^2""".replace("v_1y^c^2", "v_1y^c*v_1y^c")),
}  # fmt: skip
SLIPS = 200


def robot_of(name: str) -> drevo.Robot:
    return drevo.load(name) if "-" in name else drevo.robots.rod_chain(2)


def lines_of(text: str) -> list[str]:
    return [x.strip() for x in text.replace("\n", ";").split(";") if x.strip()]


@pytest.mark.parametrize("name", RIGHT)
def test_formulas_of_the_papers_are_proved(name: str) -> None:
    notation, text = RIGHT[name]
    judged = drevo.check_formulas(robot_of(name), text, notation=notation)
    assert len(judged) == len(lines_of(text)) and not judged.wrong
    for row in judged:
        holds_by_numbers = row.name in judged.by_numbers
        assert row.verdict == "proved" and (holds_by_numbers or (row.certificate and row.certificate.holds())), row


def slips(node: FormulaNode, names: list[str]) -> Iterator[FormulaNode]:
    """A sign, an index, a factor, a sine for a cosine, a term less, two symbols in each other's place."""
    for x in expressions.nodes(node):
        if len(x.parts) == 2 and x.kind in "+-":
            yield expressions.replaced(node, x, FormulaNode("-" if x.kind == "+" else "+", None, x.parts))
            yield expressions.replaced(node, x, x.parts[0])
        if x.kind == "number":
            yield from (expressions.replaced(node, x, FormulaNode("number", t)) for t in ("1", "3", "4"))
        if x.kind == "name":
            yield from (
                expressions.replaced(node, x, FormulaNode("name", n)) for n in slips_of(str(x.value), names)
            )
            yield expressions.replaced(node, x, FormulaNode("*", None, (FormulaNode("number", "2"), x)))


def slips_of(name: str, names: list[str]) -> Iterator[str]:
    if name[:2] in ("c_", "s_"):
        yield {"c": "s", "s": "c"}[name[0]] + name[1:]
    at = next((i for i, letter in enumerate(name) if letter.isdigit()), None)
    for k in range(1, 8) if at is not None else ():
        yield name[:at] + str(k) + name[at + 1 :]  # type: ignore[operator]
    yield from (n for n in names if n[0] == name[0] and n != name)


def expanded(text: str) -> Any:
    import sympy

    node = expressions.read_formula(text.split(" = ")[1])[0]
    return sympy.expand(expressions.value(node, lambda n: sympy.Symbol(n.replace("^", "u")), sympy.Rational))


def slips_in(name: str, count: int, seed: int) -> list[tuple[str, str]]:
    """Lines as printed in the paper, and with one slip of symbols that the robot has."""
    from drevo.design.truth import noted, sampled_truth
    from drevo.model.draft import model_of

    notation, text = RIGHT[name]
    truth = sampled_truth(noted(model_of(robot_of(name), "test"), notation), 5, True)
    out = []
    for line in lines_of(text):
        left, right = line.split(" = ")
        node = expressions.read_formula(right, lambda n: n == "d_11" or n == "f_1y")[0]
        names = [str(x.value) for x in expressions.leaves(node) if x.kind == "name"]
        for x in slips(node, names):
            known = all(truth(str(y.value)) is not None for y in expressions.leaves(x) if y.kind == "name")
            if (
                known
                and expressions.formula_text(x) != right
                and not any(str(y.value) == left for y in expressions.leaves(x))
            ):
                out.append((line, f"{left} = {expressions.formula_text(x)}"))
    rng = np.random.default_rng(seed)
    return [out[i] for i in rng.permutation(len(out))[:count]]


@pytest.mark.parametrize("name", RIGHT)
def test_slips_are_refuted_and_mended(name: str, seed: int = 0, count: int = 12) -> None:
    pytest.importorskip("sympy")
    notation, _ = RIGHT[name]
    bad = slips_in(name, count, seed)
    judged = drevo.check_formulas(robot_of(name), "\n".join(x for _, x in bad), notation=notation)
    for row, (line, printed) in zip(judged, bad):
        if row.verdict != "wrong":  # another identity: certified, or it is judged falsely
            assert row.certificate is not None and row.certificate.holds(), (line, printed)
    mends = [(row.mend, line) for row, (line, _) in zip(judged, bad) if row.verdict == "wrong"]
    again = drevo.check_formulas(robot_of(name), "\n".join(m for m, _ in mends if m), notation=notation)
    assert not again.wrong
    same = [bool(m) and expanded(m) == expanded(line) for m, line in mends]
    assert np.mean(same) >= 0.9, [x for x, ok in zip(mends, same) if not ok]


@pytest.mark.parametrize(("notation", "line", "printed"), [
    ("telegin", "H_66 = I_6^z + I_7^z + m_7*L_7^2 + 2*L_7*(d_x7*s_7 + d_y7*c_7)",
     "H_66 = I_6^z + I_7^z + m_7*L_7^2 + 2*L_7*d_x7*s_7 + d_y7*c_7"),
    ("telegin", "H_32 = -I_3^xz*s_3 - (I_3^yz + L_4*d_z4)*c_3 + H_42",
     "H_32 = -I_3^xz*s_3 - I_3^yz + L_4*d_z4*c_3 + H_42"),
    ("telegin", "I_1^d = I_1^y + m_2*L_2^2 + m_5*L_5^2", "I_1^d = I_1^y + m_2*L_2^3 + m_5*L_5^2"),
    ("kovalchuk", "I_11 = I_1zz + m_1*x_c1^2 + I_22 + m_2*L_2^2 + 2*m_2*x_c2*L_2*c_2",
     "I_11 = I_1zz + m_1*x_c1^3 + I_22 + m_2*L_2^2 + 2*m_2*x_c2*L_2*c_2"),
    ("kovalchuk", "phi_1x = m_1*(g_y*s_1 + x_c1*v_1^2)", "phi_1x = m_1*(g_y*s_1 + x_c1*v_1^3)"),
    ("kovalchuk", "epsilon_2z = a_1 + a_2", "epsilon_2z = a_1"),
    ("zaremba", "a_22 = I_2zz + m_2*x_c2^2", "a_22 = I_2zz + m_2*x_c2^3"),
    ("alyushin", "E_2 = 0.5*m_2*(v_2x^c*v_2x^c + v_2y^c*v_2y^c) + 0.5*I_2zz*omega_2z*omega_2z",
     "E_2 = 0.5*m_2*v_2x^c*v_2x^c + v_2y^c*v_2y^c + 0.5*I_2zz*omega_2z*omega_2z"),
])  # fmt: skip
def test_brackets_and_exponents_are_mended(notation: str, line: str, printed: str) -> None:
    """What agrees by a chance of this robot's numbers, 4 x_c^3 for x_c = 0.25 m, is no mend: its units differ."""
    robot = robot_of("two-arm-spatial" if notation == "telegin" else notation)
    assert not drevo.check_formulas(robot, line, notation=notation).wrong
    (row,) = drevo.check_formulas(robot, printed, notation=notation)
    assert row.verdict == "wrong" and expanded(row.mend) == expanded(line)


def test_a_number_is_mended_where_it_stands() -> None:
    (row,) = drevo.check_formulas(drevo.load("two-arm-spatial"), "H_75 = -2*I_7^xz*s_67 - I_7^yz*c_67")
    assert row.mend == "H_75 = -I_7^xz*s_67 - I_7^yz*c_67"


@pytest.mark.parametrize(("robot", "notation", "line", "printed"), [
    ("chain", "kovalchuk", "I_21 = I_22 + m_2*x_c2*L_2*c_2", "I_21 = I_22"),
    ("chain", "kovalchuk", "I_21 = I_22 + m_2*x_c2*L_2*c_2", "I_21 = I_22 + c_2"),
    ("chain", "kovalchuk", "H_2 = m_2*x_c2*L_2*s_2*v_1^2 - m_2*g_y*x_c2*c_12", "H_2 = m_2*x_c2*L_2*s_2*v_1^2"),
    ("chain", "alyushin", "v_2y^c = c_2*L_2*v_1 + x_c2*omega_2z", "v_2y^c = c_2*v_1 + x_c2*omega_2z"),
    ("three-link", "telegin", "d_x2 = m_o2*x_c2 + m_3*L_3*x_23^e", "d_x2 = m_o2*x_c2"),
    ("three-link", "telegin", "m_33^e = d_x3*(x_23^e*c_3 + y_23^e*s_3)", "m_33^e = x_23^e*c_3 + y_23^e*s_3"),
    ("two-arm-spatial", "telegin", "m_44^e = d_x4*s_4 + d_y4*c_4", "m_44^e = d_x4*s_4"),
])  # fmt: skip
def test_products_that_are_left_out_are_found(robot: str, notation: str, line: str, printed: str) -> None:
    """Terms and factors of several symbols, in the letters of the formula."""
    (row,) = drevo.check_formulas(robot_of(robot), printed, notation=notation)
    assert row.verdict == "wrong" and expanded(row.mend) == expanded(line)


def test_mends_that_are_as_likely_are_all_told() -> None:
    """The components L_2 and L_2x are one there: the letter without an axis comes first."""
    (row,) = drevo.check_formulas(robot_of("chain"), "I_21 = I_22 + m_2*x_c2*c_2", notation="kovalchuk")
    assert row.mend == "I_21 = I_22 + m_2*x_c2*c_2*L_2" and row.others == ("I_21 = I_22 + m_2*x_c2*c_2*L_2x",)
    assert str(row).endswith(f"it holds as {row.mend}, or as {row.others[0]}")


def test_what_was_judged_before_does_not_matter() -> None:
    """The same rows alone, after other texts, and in two threads at once; SymPy is not asked for."""
    from concurrent.futures import ThreadPoolExecutor

    from drevo.design import formulas

    lines = [
        *lines_of(THREE),
        "H_22 = I_2^d + H_33",
        "a = d_x3; m_32^e = a*c_23",
        "H_33 = I_3^q/2*2",
        "d_x3 = m_3/x_c3",
    ]

    def judged(line: str) -> list[tuple[str, ...]]:
        robot = drevo.load("three-link")  # a model of its own each time
        return [(r.verdict, r.mend, r.proof, *r.others) for r in drevo.check_formulas(robot, line)]

    alone = []
    for line in lines:
        formulas._tables.cache_clear()
        alone.append(judged(line))
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(judged, [*lines, *lines[::-1]])) == [*alone, *alone[::-1]]
    assert formulas._tables.cache_info().currsize == 1


def test_units_refute_what_agrees_by_chance() -> None:
    (row,) = drevo.check_formulas(robot_of("kovalchuk"), "I_22 = I_2zz + 4*m_2*x_c2^3", notation="kovalchuk")
    assert row.verdict == "wrong" and row.units


def test_conditions_may_be_given() -> None:
    """Telegin's (17): H_33 loses its angle; without them the same line is refuted at a point."""
    robot = drevo.load("two-arm-spatial")
    line = "H_33 = I_3^d + I_4^z"
    (row,) = drevo.check_formulas(robot, line, given="d_x4 = d_y4 = 0")
    assert row.verdict == "proved" and row.certificate.holds() and "x_c4" in row.proof
    (row,) = drevo.check_formulas(robot, line)
    assert row.verdict == "wrong" and "counterexample at" in row.proof and "m_44" in row.mend
    (row,) = drevo.check_formulas(robot, "H_22 = I_2^y + I_3^y + I_4^y", given="""d_x4 = d_y4 = 0
        I_3^y - I_3^x = m_4*L_4^2, I_4^y = I_4^x, I_3^xy = I_4^xy = 0""")  # fmt: skip
    assert row.verdict == "proved" and row.certificate.holds()


def test_a_certificate_of_something_else_does_not_hold() -> None:
    from dataclasses import replace

    (row,) = drevo.check_formulas(drevo.load("three-link"), "H_22 = I_2^d + H_33 + 2*L_3*m_33^e")
    proof = row.certificate
    assert proof is not None and proof.holds()
    assert not replace(proof, formula="I_2^d + H_33 + 3*L_3*m_33^e").holds()
    assert not replace(proof, difference="L_3").holds()


def test_units_are_checked() -> None:
    (row,) = drevo.check_formulas(drevo.load("three-link"), "H_32 = H_33 + m_33^e")
    assert row.verdict == "wrong" and row.units == "H_33 has kg m^2, m_33^e has kg m"
    assert row.mend == "H_32 = H_33 + L_3*m_33^e"


@pytest.mark.parametrize(("given", "words"), [
    ("d_x3", "has no '='"), ("q_1 = 0", "holds a coordinate"), ("m_3 = 0", "cannot be fulfilled"),
    ("d_x9 = 0", "'d_x9' is not in"),
])  # fmt: skip
def test_conditions_that_are_none(given: str, words: str) -> None:
    with pytest.raises(drevo.InputError, match=words):
        drevo.check_formulas(drevo.load("three-link"), "H_33 = I_3^q", given=given)


def test_other_notations_are_refused() -> None:
    with pytest.raises(drevo.InputError, match="there are telegin, kovalchuk"):
        drevo.check_formulas(drevo.load("three-link"), "H_33 = I_3^q", notation="zarembo")
