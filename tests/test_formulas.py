"""Published formulas against a robot: the paper's printed lists, every kind of slip, bad text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from telegin_cases import case, model_of

import drevo
from drevo.design import expressions
from drevo.design.formulas import check_formulas
from drevo.errors import DrevoError, InputError

PRINTED = r"""
a = x_14^e
b = y_14^e
H_33 = I_3^q
m_33^e = d_x3 c_3
H_22 = I_2^d + H_33 + 2 L_3 m_33^e
m_{32}^{e} = d_{x3} s_{23}
m_22^e = d_x2 (a c_2 - b s_2) + m_32^e
H_32 = H_33 + L_3*m_33^e; H_31 = H_32 + L_2*m_32^e; H_21 = H_22 + L_2*m_22^e
H_{55} = I_{3}^{q}
m_55^e = d_x5 \cdot c_5
H_44 = I_4^d + H_55 + 2*L_5*m_55^e
m_54^e = d_x5 s_45
m_44^e = d_x4(a c_4 + b s_4) + m_54^e
H_54 = H_55 + L_5 m_55^e; H_51 = H_54 + L_4 m_54^e; H_41 = H_44 + L_4 m_44^e
H_11 = I_1^d + H_22 + H_44 + 2 L_2 (m_22^e + m_44^e)
"""
ARMS = model_of(case("ex2_5dof_0")["bodies"])
LINKS = model_of(case("ex1_3link_0")["bodies"])
BALANCED = model_of(case("ex3_7dof_6")["bodies"])


def test_the_printed_list_of_example_2() -> None:
    j = check_formulas(ARMS, PRINTED)
    assert {w.name: w.suggestion for w in j.wrong} == {
        "m_32^e": "m_32^e = d_x3*(a*c_23 - b*s_23)",
        "H_55": "H_55 = I_5^q",
        "m_54^e": "m_54^e = d_x5*(a*c_45 + b*s_45)",
    }
    assert j.defined == ("a", "b") and len(j.right) == 14 and all(w.error > 1e-3 for w in j.wrong)
    assert "H_55 = I_3^q" in str(j)


def test_corrections_are_right() -> None:
    j = check_formulas(ARMS, PRINTED)
    again = check_formulas(ARMS, "a = x_14^e\nb = y_14^e\n" + "\n".join(w.suggestion for w in j.wrong))
    assert again.wrong == () and len(again.right) == 3


def test_example_1_is_right() -> None:
    text = """
    I_3^d = I_3^q, I_2^d = I_2^q + m_3 L_3^2
    d_x3 = m_o3 x_c3
    a = x_23^e
    b = y_23^e
    m_33^e = d_x3(a c_3 + b s_3); m_32^e = d_x3 s_23; m_22^e = d_x2 s_2 + d_y2 c_2 + m_32^e
    L_a = L_3 d_x3 a; L_b = L_3 d_x3 b
    H_32 = H_33 + L_a c_3 + L_b s_3
    H31 = H32 + L_2 m_32^e
    """.replace("I_3^q, ", "I_3^q; ")
    j = check_formulas(LINKS, text)
    assert j.wrong == () and len(j.right) == 8


@pytest.mark.parametrize(
    ("printed", "suggestion"),
    [
        ("H_21 = H_22 + L_3*m_22^e", "H_21 = H_22 + L_2*m_22^e"),
        ("H_21 = H_22 - L_2*m_22^e", "H_21 = H_22 + L_2*m_22^e"),
        ("H_22 = I_2^q + H_33 + 2*L_3*m_33^e", "H_22 = I_2^d + H_33 + 2*L_3*m_33^e"),
        ("d_x3 = m_3*y_c3", "d_x3 = m_3*x_c3"),
        ("m_32^e = d_x3*c_23", "m_32^e = d_x3*s_23"),
        ("I_2^d = I_2^q + m_3*L_3", "I_2^d = I_2^q + m_3*L_3^2"),
        ("H_11 = 3", "H_11 = I_1^d + H_22 + 2*L_2*m_22^e"),
        ("H_31 = H_33", "H_31 = H_32 + L_2*m_32^e"),
    ],
)
def test_slips_are_mended(printed: str, suggestion: str) -> None:
    (w,) = check_formulas(LINKS, printed).wrong
    assert w.suggestion == suggestion and w.printed == printed and w.error > 1e-6


def test_a_forgotten_term_of_example_3() -> None:
    j = check_formulas(
        BALANCED, "H_55 = I_5^y + I_6^x + m_7 L_7^2\nH_75 = H_71 = H_42 = 0\nH_66 = I_6^z + I_7^z + m_7 L_7^2"
    )
    assert j.right == ("H_75", "H_71", "H_42", "H_66")
    assert j.wrong[0].suggestion == "H_55 = I_5^y + I_6^x + m_7*L_7^2 + I_7^x"


def test_direction_cosines_and_sums() -> None:
    arms = model_of(case("ex3_7dof_0")["bodies"])
    j = check_formulas(
        arms, "q_32^q = 0; x_32^y = s_3; y_32^q = c_3; J_4^o = 0; J_44^s = I_4^z; J_4^s = I_4^z; J_444 = I_4^z"
    )
    assert j.wrong == () and len(j.right) == 7
    j = check_formulas(arms, "I_z4^x = I_4^x - I_4^z; x_32^{q2} = s_3^2 + 0 L_4".replace("x_32^{q2}", "x_32^q"))
    assert j.right == ("I_z4^x",) and j.wrong[0].suggestion


@pytest.mark.parametrize(
    "text",
    [
        "H_22",
        "H_22 = foo",
        "H_22 + 1 = H_33",
        "H_22 = ",
        "H_22 = (1",
        "H_22 = 1)",
        "H_22 = 1 +* 2",
        "H_22 = $§",
        "=",
        "(" * 5000,
        "H_22 = " + "1+" * 5000 + "1",
        "H_22 = sin 3",
    ],
)
def test_bad_text_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InputError) as caught:
        check_formulas(LINKS, text)
    assert "\n" not in str(caught.value)


def test_sines_may_be_written_out() -> None:
    j = check_formulas(LINKS, r"m_32^e = d_x3*sin(q_2 + q_3); m_33^e = d_x3(x_23^e \cos(q_3) + y_23^e \sin(q_3))")
    assert j.right == ("m_32^e", "m_33^e")
    (w,) = check_formulas(LINKS, "m_32^e = d_x3*sin(q_2 - q_3)").wrong
    assert w.suggestion == "m_32^e = d_x3*sin(q_2 + q_3)"


def test_other_joints_are_refused() -> None:
    import drevo

    with pytest.raises(DrevoError, match="hinged"):
        check_formulas(drevo.robots.stanford(), "H_11 = 0")


@pytest.mark.parametrize(
    "text",
    ["a + b*c", "-a", "a - (b - c)", "a/(b*c)", "(a + b)^2", "2*a*-1", "I_3^yz + L_4*d_z4", "m_10,3^e*c_9,10"],
)
def test_expressions_are_printed_as_they_are_read(text: str) -> None:
    if text == "2*a*-1":
        with pytest.raises(InputError):
            expressions.read_formula(text)
        return
    (node,) = expressions.read_formula(text)
    assert expressions.formula_text(node) == text


def test_elements_that_cancel_to_rounding_are_zero() -> None:
    """On a robot whose elements cancel, "H_61 = H_65" and "H_71 = 0" are right, though all is rounding there."""
    robot = drevo.conditions(drevo.load("two-arm-spatial"), constant="mass_matrix").realise()
    judged = drevo.check_formulas(robot, "H_71 = 0\nH_61 = H_65\nH_33 = H_43")
    assert judged.right == ("H_71", "H_61") and [w.name for w in judged.wrong] == ["H_33"]


@pytest.mark.parametrize(("text", "words"), [
    ("H_99 = 1", "'H_99' is not in robot 'three-link', whose bodies are 1, 2, 3"), ("", "has no formula"),
    ("H_12 = H_77", "'H_77' is not in the paper's notation"), ("d_x9 = 1", "'d_x9' is not in robot"),
    ("# only a remark", "has no formula"), (None, "the formulas are None"), (["H_11 = 1"], "the formulas are"),
    ("@@@", "cannot be read"), ("H_11", "has no '='"), ("H_11 = = 2", "out of place"), ("H_4 = 2", "'H_4' is not"),
])  # fmt: skip
def test_what_is_no_formula_of_this_robot(text: object, words: str) -> None:
    with pytest.raises(drevo.InputError, match=words):
        drevo.check_formulas(drevo.load("three-link"), text)
    with pytest.raises(drevo.InputError, match="takes a robot"):
        drevo.check_formulas("three-link", "H_11 = 1")


def test_own_names_stay_allowed() -> None:
    judged = drevo.check_formulas(drevo.load("three-link"), "a = d_x3; R_9 = 2*a; H_32 = 0")
    assert judged.defined == ("a", "R_9")


RIGHT = {
    "links": (LINKS, """
        m_33^e = d_x3*(x_23^e*c_3 + y_23^e*s_3); m_32^e = d_x3*s_23; m_22^e = d_x2*s_2 + d_y2*c_2 + m_32^e
        H_22 = I_2^d + H_33 + 2*L_3*m_33^e; H_11 = I_1^d + H_22 + 2*L_2*m_22^e; H_32 = H_33 + L_3*m_33^e
        H_31 = H_32 + L_2*m_32^e; H_21 = H_22 + L_2*m_22^e; I_2^d = I_2^q + m_3*L_3^2"""),
    "arms": (ARMS, """
        m_33^e = d_x3*c_3; H_22 = I_2^d + H_33 + 2*L_3*m_33^e; m_32^e = d_x3*(x_14^e*c_23 - y_14^e*s_23)
        m_22^e = d_x2*(x_14^e*c_2 - y_14^e*s_2) + m_32^e; H_32 = H_33 + L_3*m_33^e; H_31 = H_32 + L_2*m_32^e
        H_44 = I_4^d + H_55 + 2*L_5*m_55^e; m_44^e = d_x4*(x_14^e*c_4 + y_14^e*s_4) + m_54^e
        H_51 = H_54 + L_4*m_54^e; H_41 = H_44 + L_4*m_44^e"""),
}  # fmt: skip


def slips(node: expressions.FormulaNode, bodies: int) -> Iterator[expressions.FormulaNode]:
    """A wrong sign, number, index, a dropped term or factor, a sine for a cosine: one at a time."""
    for x in expressions.nodes(node):
        if len(x.parts) == 2:
            yield from (expressions.replaced(node, x, part) for part in x.parts)
        if x.kind in "+-" and len(x.parts) == 2:
            other = "-" if x.kind == "+" else "+"
            yield expressions.replaced(node, x, expressions.FormulaNode(other, None, x.parts))
        if x.kind == "number":
            yield expressions.replaced(node, x, expressions.FormulaNode("number", "3"))
        if x.kind == "name":
            at = next(i for i, letter in enumerate(x.value) if letter.isdigit())
            names = [x.value[:at] + str(int(x.value[at]) % bodies + 1) + x.value[at + 1 :]]
            names += [{"c": "s", "s": "c"}[x.value[0]] + x.value[1:]] if x.value[:2] in ("c_", "s_") else []
            yield from (expressions.replaced(node, x, expressions.FormulaNode("name", n)) for n in names)


@pytest.mark.parametrize("robot", RIGHT)
def test_a_battery_of_slips(robot: str) -> None:
    """No right formula is called wrong, no wrong one right; every mend holds, and nearly all are as printed."""
    sympy = pytest.importorskip("sympy")

    def expanded(text: str) -> Any:
        node = expressions.read_formula(text.split(" = ")[1])[0]
        return sympy.expand(expressions.value(node, lambda n: sympy.Symbol(n.replace("^", "u")), sympy.Rational))

    model, text = RIGHT[robot]
    lines = [x.strip() for x in text.replace("\n", ";").split(";") if x.strip()]
    assert not check_formulas(model, text).wrong
    bad = []
    for line in lines:
        name, right = line.split(" = ")
        changed = slips(expressions.read_formula(right)[0], len(model.joints))
        bad += [(line, f"{name} = {expressions.formula_text(x)}") for x in changed]
    bad = [bad[i] for i in np.random.default_rng(0).permutation(len(bad))[:60]]
    judged = check_formulas(model, "\n".join(x for _, x in bad))
    assert [w.printed for w in judged.wrong] == [x for _, x in bad]
    assert not check_formulas(model, "\n".join(w.suggestion for w in judged.wrong)).wrong
    same = [expanded(w.suggestion) == expanded(line) for w, (line, _) in zip(judged.wrong, bad)]
    assert np.mean(same) >= 0.85 and not any("*1" in w.suggestion for w in judged.wrong)


def test_latex_is_read() -> None:
    text = r"m_{32}^{e} = d_{x3} \sin q_{2} \cos q_{3} + d_{x3} \cos q_2 \cdot \sin q_3"
    text += r"; d_{x3} = \frac{2 m_{o3}}{2} x_{c3}"
    assert check_formulas(LINKS, text).right == ("m_32^e", "d_x3")
    with pytest.raises(InputError, match="frac takes two groups in braces"):
        check_formulas(LINKS, r"H_33 = \frac{1}")


def alike(com: float = 0.1) -> drevo.Robot:
    """Three links of equal lengths, masses and moments."""
    b, inertia = drevo.Builder("alike"), np.diag([0.1, 0.2, 0.25])
    for k in range(3):
        b.body(f"link{k + 1}", f"link{k}" if k else None, axis=(0, 0, 1), origin=(0.3 if k else 0.0, 0, 0),
               mass=1.0, com=(com if k < 2 else 0.1, 0.02 if com > 0 else 0.0, 0), inertia=inertia)  # fmt: skip
    return b.robot()


@pytest.mark.parametrize(
    ("printed", "suggestion"),
    [
        ("H_32 = H_33 + L_2*m_33^e", "H_32 = H_33 + L_3*m_33^e"),
        ("I_2^d = I_2^q + m_3*L_2^2", "I_2^d = I_2^q + m_3*L_3^2"),
        ("d_x2 = m_o3*x_c2 + m_3*L_2", "d_x2 = m_o2*x_c2 + m_3*L_3"),
        ("H_22 = H_33 + I_2^q + m_3*L_2^2 + 2*L_2*m_33^e", "H_22 = H_33 + I_2^q + m_3*L_3^2 + 2*L_3*m_33^e"),
        ("H_32 = H_33 - L_2*m_33^e", "H_32 = H_33 + L_3*m_33^e"),
    ],
)
def test_equal_numbers_are_not_one_symbol(printed: str, suggestion: str) -> None:
    """A letter of another body is wrong, however equal the two are on this robot."""
    (w,) = check_formulas(alike(), printed).wrong
    assert w.suggestion == suggestion and w.error > 1e-3
    assert check_formulas(alike(), suggestion).wrong == ()


def test_what_holds_by_the_numbers_of_a_robot_is_told() -> None:
    j = check_formulas(alike(com=-0.3), "d_x2 = 0; H_33 = I_3^q")
    assert j.right == ("d_x2", "H_33") and j.wrong == () and j.by_numbers == ("d_x2",)
    assert "by this robot's numbers alone" in str(j)
