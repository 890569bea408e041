"""Section 5 of Telegin's paper line by line, proved under the conditions of each place; misprints refuted."""

from __future__ import annotations

import pytest

import drevo

C17 = "d_x4 = d_y4 = 0"
C18 = f"{C17}; I_3^y - I_3^x = m_4*L_4^2; I_4^y = I_4^x; I_3^xy = I_4^xy = 0"
C19 = f"{C18}; d_x7 = d_y7 = 0; I_6^y - I_6^x = m_7*L_7^2; I_7^y = I_7^x; I_6^xy = I_7^xy = 0"
C20 = f"{C19}; d_z2 + d_z3 + d_z4 = 0; d_x3 = d_y3 = d_x2 = d_x5 = d_x6 = d_y6 = 0; d_z5 + d_z6 + d_z7 = 0"
C21 = f"{C20}; I_4^xz = I_4^yz = I_7^xz = I_7^yz = 0"
C22 = f"{C21}; I_3^yz + L_4*d_z4 = 0; I_3^xz = 0"
SECTION_5 = [  # what holds, and under which conditions
    ("", """
        J_4^o = 0; H_44 = J_4^s + J_4^o
        J_4^s = I_4^z + I_z4^x*x_44^q^2 + I_z4^y*y_44^q^2 - 2*(I_4^xy*x_44^q*y_44^q + I_4^xz*x_44^q*z_44^q + I_4^yz*y_44^q*z_44^q)
        x_44^q = 0; y_44^q = 0; z_44^q = 1; J_4^s = I_4^z; H_44 = I_4^z
        H_33 = I_3^d + H_44 + 2*L_4*(m_44^e - e_44^q*m_44^q); e_44^q = 0; H_33 = I_3^d + I_4^z + 2*L_4*m_44^e
        m_44^e = m_43^y; m_43^y = d_x4*x_43^y + d_y4*y_43^y + d_z4*z_43^y; x_43^y = s_4; y_43^y = c_4
        z_43^y = 0; m_44^e = d_x4*s_4 + d_y4*c_4; H_33 = I_3^d + I_4^z + 2*L_4*(d_x4*s_4 + d_y4*c_4)
        I_3^d = I_3^z + m_4*L_4^2; H_22 = J_2^s + J_2^o - L_4*e_42^q*(m_4*L_4*e_42^q + 2*m_42^q); J_2^o = J_3^o
        J_3^o = m_4*L_4^2 + 2*L_4*m_44^e; e_42^q = c_3; x_32^q = s_3; y_32^q = c_3; z_32^q = 0; x_42^q = s_34
        y_42^q = c_34; z_42^q = 0; x_22^q = 0; y_22^q = 1; z_22^q = 0
        J_2^s = I_2^z + I_z2^y + I_3^z + I_z3^x*s_3^2 + I_z3^y*c_3^2 - 2*I_3^xy*s_3*c_3 + I_4^z + I_z4^x*s_34^2 + I_z4^y*c_34^2 - 2*I_4^xy*s_34*c_34
        I_z3^x = I_3^x - I_3^z; I_z3^y = I_3^y - I_3^z
        H_11 = I_1^d + H_22 + H_55 + 2*L_2*(m_22^e - e_22^q*m_22^q) + 2*L_5*(m_55^e - e_55^q*m_55^q); e_22^q = 0
        e_55^q = 0; m_22^e = m_21^x; m_55^e = -m_51^x; m_31^x = d_x3*x_31^x + d_y3*y_31^x + d_z3*z_31^x + m_41^x
        x_31^x = c_2*c_3; y_31^x = -c_2*s_3; m_21^x = d_x2*x_21^x + d_y2*y_21^x + d_z2*z_21^x + m_31^x
        x_21^x = c_2; y_21^x = 0; z_21^x = s_2; H_11 = I_1^d + H_22 + H_55 + 2*L_2*m_21^x - 2*L_5*m_51^x
        H_43 = H_44 + L_4*(q_44^q*m_44^e - q_44^e*m_44^q); q_44^e = 0; q_44^q = 1
        H_21 = H_22 + L_2*(q_22^q*m_22^e - q_22^e*m_22^q); q_22^e = 0; q_22^q = 1; H_21 = H_22 + L_2*m_21^x
        H_51 = H_55 + L_5*(q_55^q*m_55^e - q_55^e*m_55^q); q_55^e = 0; H_51 = H_55 - L_5*m_51^x
        H_42 = J_42^s + J_4^o*q_42^q; J_42^s = J_442
        J_442 = I_4^x*x_44^q*x_42^q + I_4^y*y_44^q*y_42^q + I_4^z*z_44^q*z_42^q - I_4^xy*(x_44^q*y_42^q + y_44^q*x_42^q) - I_4^xz*(x_44^q*z_42^q + z_44^q*x_42^q) - I_4^yz*(y_44^q*z_42^q + z_44^q*y_42^q)
        H_42 = I_4^z*z_42^q - I_4^xz*x_42^q - I_4^yz*y_42^q; H_42 = -I_4^xz*s_34 - I_4^yz*c_34
        H_75 = -I_7^xz*s_67 - I_7^yz*c_67; H_41 = H_42 + L_2*(q_42^q*m_42^e - q_42^e*m_42^q); q_42^q = 0
        J_32^s = J_332 + J_432; J_32^s = -I_3^xz*s_3 - I_3^yz*c_3 - I_4^xz*s_34 - I_4^yz*c_34
        H_32 = J_32^s + J_3^o*q_32^q - L_4*(e_43^q*(m_44^q*e_42^q + m_42^q) + e_42^q*m_43^q); e_43^q = 0
        m_43^q = d_z4; H_32 = -I_3^xz*s_3 - (I_3^yz + L_4*d_z4)*c_3 - I_4^xz*s_34 - I_4^yz*c_34
        H_31 = H_32 + L_2*(q_32^q*m_32^e - q_32^e*m_32^q); q_32^q = 0; q_32^e = s_2; x_32^y = s_3; y_32^y = c_3
        z_32^y = 0"""),  # noqa: E501
    (C17, """
        H_33 = I_3^d + I_4^z; J_2^o = m_4*L_4^2; m_42^q = 0; H_22 = J_2^s + m_4*L_4^2*(1 - c_3^2)
        m_41^x = d_z4*s_2; H_43 = H_44
        H_22 = I_2^y + I_3^x + m_4*L_4^2 + (I_3^y - I_3^x - m_4*L_4^2)*c_3^2 - 2*I_3^xy*s_3*c_3 + I_4^x + (I_4^y - I_4^x)*c_34^2 - 2*I_4^xy*s_34*c_34
        H_22 = I_2^z + I_z2^y + I_3^z + I_z3^x + m_4*L_4^2 + (I_z3^y - I_z3^x - m_4*L_4^2)*c_3^2 - 2*I_3^xy*s_3*c_3 + I_4^z + I_z4^x + (I_z4^y - I_z4^x)*c_34^2 - 2*I_4^xy*s_34*c_34
        m_31^x = d_x3*c_2*c_3 - d_y3*c_2*s_3 + d_z3*s_2 + d_z4*s_2
        m_21^x = d_x2*c_2 + d_z2*s_2 + d_x3*c_2*c_3 - d_y3*c_2*s_3 + d_z3*s_2 + d_z4*s_2
        m_21^x = (d_x2 + (d_x3*c_3 - d_y3*s_3))*c_2 + (d_z2 + d_z3 + d_z4)*s_2; m_32^y = d_x3*s_3 + d_y3*c_3
        H_31 = H_32 - L_2*m_32^y*s_2; H_31 = H_32 - L_2*(d_x3*s_3 + d_y3*c_3)*s_2; H_41 = H_42"""),  # noqa: E501
    (C18, """
        H_22 = I_2^y + I_3^x + I_4^x + m_4*L_4^2; H_22 = I_2^y + I_3^y + I_4^y; H_44 = I_4^z"""),
    (C19, """
        H_77 = I_7^z; H_66 = I_6^d + I_7^z; H_55 = I_5^y + I_6^x + m_7*L_7^2 + I_7^x
        m_51^x = d_x5*c_5 + d_z5*s_5 + d_x6*c_5*c_6 - d_y6*c_5*s_6 + d_z6*s_5 + d_z7*s_5
        m_51^x = (d_x5 + (d_x6*c_6 - d_y6*s_6))*c_5 + (d_z5 + d_z6 + d_z7)*s_5; H_76 = H_77"""),
    (C20, """
        H_11 = I_1^d + H_22 + H_55; m_21^x = 0; H_21 = H_22; H_51 = H_55"""),
    (C21, """
        H_42 = 0; H_75 = 0; H_41 = 0"""),
    (C22, """
        H_32 = 0; H_31 = 0"""),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), SECTION_5, ids=["none", "17", "18", "19", "20", "21", "22"])
def test_every_line_is_proved(given: str, text: str) -> None:
    judged = drevo.check_formulas(drevo.load("two-arm-spatial"), text, given=given)
    assert len(judged) == len([x for x in text.replace("\n", ";").split(";") if x.strip()])
    for row in judged:
        assert row.verdict == "proved" and row.certificate is not None and row.certificate.holds(), row


@pytest.mark.parametrize(("name", "given", "printed", "mend"), [
    ("two-arm-planar", "", "m_32^e = d_x3*s_23", "m_32^e = d_x3*(x_12^e*c_23 + y_12^e*s_23)"),
    ("two-arm-planar", "", "m_54^e = d_x5*s_45", "m_54^e = d_x5*(x_14^e*c_45 + y_14^e*s_45)"),
    ("two-arm-planar", "", "H_55 = I_3^q", "H_55 = I_5^q"),
    ("two-arm-spatial", C19, "H_55 = I_5^y + I_6^x + m_7*L_7^2", "H_55 = I_5^y + I_6^x + m_7*L_7^2 + I_7^x"),
    ("two-arm-spatial", C22, "H_65 = 0", ""),
    ("two-arm-spatial", "", "x_32^z = s_3", "x_32^z = 0"),
])  # fmt: skip
def test_misprints_are_refuted_at_a_point(name: str, given: str, printed: str, mend: str) -> None:
    (row,) = drevo.check_formulas(drevo.load(name), printed, given=given)
    assert row.verdict == "wrong" and row.proof.startswith("counterexample at ") and row.proof.endswith(" exactly")
    assert not mend or row.mend == mend
