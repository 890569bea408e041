"""Meanings of the letters of each paper: one table, from which the legend of a document takes those that it uses.

A row is a pattern of names and its meaning; the first pattern that fits a name holds. Order is the paper's: what
it computes first, then what that stands on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LETTERS_OF_RESULTS = {  # where the paper has another letter than the catalogue
    "kovalchuk": {"mass_matrix": "I", "bias": "H"},
    "zaremba": {"mass_matrix": "a", "bias": "b", "coriolis_matrix": "B"},
}
COMMON_PART = (r"[Ktw]\d+", "common part of several lines, in SI units")
NAMED_ANGLES = (
    (r"phi\d+", "angle that several lines take the sine and cosine of, rad"),
    (r"q_\d[\d_]*", "sum of the angles of the joints whose numbers stand side by side, rad"),
    (r"q_\w+_turned", "angle less whole turns, rad"),
    (r"gamma_\w+", "coordinate of a step of a joint by formula, rad or m"),
    (r"G_\w+", "its derivative by the joint's own coordinate, in their units"),
)
TURN_LETTERS = (
    r"[sc]_\w+",
    "sine and cosine of a joint's angle, or of the sum of those whose numbers stand side by side, no unit",
)
FILE = (
    (r"m_\w+", "mass of a link, kg"),
    (r"[xyz]_c\w+", "coordinate of a link's centre of mass in its axes, m"),
    (r"I_\w+[xyz]{2}", "inertia of a link about its centre of mass, kg m²"),
    (r"L_\w+", "coordinate of a joint's origin in its parent's axes, m"),
    (r"g_[xyz]", "acceleration of gravity, m/s²"),
)
COMMON = (
    (r"M_\w+", "element of the inertia matrix, kg m², kg m or kg"),
    TURN_LETTERS,
    *FILE,
    COMMON_PART,
    *NAMED_ANGLES,
)
LETTERS_OF_RECURSIONS = (  # of recursions that are no paper's
    (r"omega_\w+", "angular velocity of a body, rad/s"),
    (r"alpha_\w+", "angular acceleration of a body, rad/s²"),
    (r"U_\w+", "alpha x + omega x omega x of a body, by which a point's place gives its acceleration, 1/s²"),
    (r"a_\w+", "acceleration of a body's origin, that of gravity with the other sign in it, m/s²"),
    (r"v_\w+", "velocity of a body's origin, m/s"),
    (r"p_\w+", "origin of a body, world axes, m"),
    (r"R_\w+", "turn of a body against the world, no unit"),
    (r"h_\w+", "first moment of a body, alone or with all that it carries, kg m"),
    (r"f_\w+", "force on a body, alone or with all that it carries, N"),
    (r"n_\w+", "moment on a body, alone or with all that it carries, N m"),
    (r"e_\w+", "kinetic energy of a body, J"),
    (r"c_\w+\^q", "cosine of a joint's angle, no unit"),
    *COMMON,
)
TELEGIN = (
    (r"tau_\w+", "joint torques or forces, N m or N: the equations of motion"),
    (r"a_\d+", "joint acceleration, rad/s² or m/s²"),
    (r"Q_\w+\^cf", "centrifugal terms: of squares of rates, N m or N"),
    (r"Q_\w+\^c", "Coriolis terms: of products of two rates, N m or N"),
    (r"Q_\w+\^gyr", "gyroscopic part of centrifugal and Coriolis terms, which does no work, N m or N"),
    (r"Q_\w+\^g", "terms of gravity, N m or N"),
    (r"H_\w+", "element of the inertia matrix, kg m², kg m or kg"),
    (r"h_\w+", "twice Christoffel's symbol [jk, i] of the inertia matrix, subscripts j, k, i"),
    (r"G_\w+", "twice the skew matrix of the gyroscopic terms"),
    (r"I_\w+\^q", "moment of inertia of a body about its joint's axis, kg m²"),
    (r"I_\w+\^d", "moment of inertia of an augmented body about its joint's axis, kg m²"),
    (r"I_\w+\^d[xyz]", "moment of inertia of an augmented body about an axis through its pole, kg m²"),
    (r"I_[xyz]\w+\^[xyz]", "difference of two moments of inertia, that above less that below, kg m²"),
    (r"I_\w+\^[xyz]", "moment of inertia of a body about an axis through its pole, kg m²"),
    (r"I_\w+\^[xyz]{2}", "product of inertia of a body, the integral with its sign plus, kg m²"),
    (r"I_\d+", "merged constant of moments of inertia, kg m²"),
    (r"J_\w+\^o", "shifts of a subtree's masses, (3), kg m²"),
    (r"Lm_\w+\^e", "length of an offset times the projection of a subtree's first moment on it, kg m²"),
    (r"m_\w+\^\w", "projection of a subtree's first moment, kg m"),
    (r"p_\w+", "moment I^d of a body with offsets times projections of its children, kg m²"),
    (r"g_\d+", "elements of the children in the same column, and the body's own product, kg m²"),
    (r"x_\w+\^g|y_\w+\^g|z_\w+\^g", "gravity in the axes of a body, m/s²"),
    (r"[xyz]_\w+\^R", "component of an offset that moves, m"),
    (
        r"[xyz]_\w+\^v\w*",
        "velocity of a body by a unit rate of a joint, of a screw its lead by a radian, m or no unit",
    ),
    (r"[xyz]_\w+\^\w+", "direction cosine: letter below with the first number, above with the second, no unit"),
    (r"[AB]_\w+", "merged constants of the cosine and the sine of an angle, kg m²"),
    (r"R_\w+\d\w*", "merged constant: amplitude of a cosine or sine with a phase, kg m²"),
    (r"D_\w+|delta_\w+", "length and direction of a static moment across the joint's axis, kg m and rad"),
    (r"P_\w+|rho_\w+", "length and direction of the products of inertia with the joint's axis, kg m² and rad"),
    (
        r"S_\w+|sigma_\w+",
        "length and direction of half the difference of moments and the product across the axis, kg m² and rad",
    ),
    (r"beta_\w+", "direction of an offset in its body's axes, rad"),
    (r"m_o\w+", "mass of a body alone, kg"),
    (r"m_\w+", "mass of a subtree, kg"),
    (r"d_[xyz]\w+", "static moment of an augmented body about its pole, kg m"),
    (r"[xyz]_c\w+", "coordinate of a body's centre of mass, m"),
    (r"L_\w+", "length of the offset from the pole of the body's base to its own, m"),
    (r"e_\w+", "direction of the offset from the pole of the body's base to its own"),
    TURN_LETTERS,
    COMMON_PART,
    (r"g_[xyz]", "acceleration of gravity, m/s²"),
    (r"[qxyz]_\w+", "joint axis and axes of a body, no unit"),
)
LETTERS: dict[str, tuple[tuple[str, str], ...]] = {
    "telegin": TELEGIN,
    "kovalchuk": (
        (r"omega_\w+", "angular velocity of a link, in its axes, rad/s"),
        (r"epsilon_\w+", "angular acceleration of a link, in its axes, rad/s²"),
        (r"a_\d+[a-f]?[xyz]", "acceleration of the origin of a link's main frame, in its axes, m/s²"),
        (r"a_\w+\^c", "acceleration of a link's centre of mass, in its axes, m/s²"),
        (r"R_\w+\^[xyz]", "turn of a link against the base: axis of the link below, of the base above, no unit"),
        (r"phi_\w+", "gravity and inertia force at the centre of mass, N"),
        (r"f_\w+", "force of a link on its parent, in the axes of the frame that it hangs on, N"),
        (r"M_\d+[xyz]", "moment of a link on its parent about the origin of the frame that it hangs on, N m"),
        (r"tau_\w+|h_\w+", "effort of a drive, N m or N"),
        (r"r_\w+\^c", "centre of mass of a link in its main axes, m"),
        (r"J_\w+\^c", "inertia of a link about its centre of mass, kg m²"),
        *COMMON,
    ),
    "vereshchagin": (
        (r"omega_\w+", "angular velocity of a body, base axes, rad/s"),
        (r"r_\w+\^c", "centre of mass of a body in its axes, m"),
        (r"rho_\w+", "centre of mass of a body from its joint, base axes, m"),
        (r"e_\w+", "from the centre of mass of a body's base to its joint, base axes, m"),
        (r"r_\w+", "from the centre of mass of a body's base to its own, base axes, m"),
        (r"R_\w+", "turn of a body against the base, no unit"),
        (r"S_\w+", "joint map: velocity of the centre of mass by a unit rate of the joint, m or no unit"),
        (r"b_\w+", "acceleration of the centre of mass that rates alone cause, m/s²"),
        (r"M_\w+\^\w", "inertia of a body with all that it carries, their drives given: n of turns, kg m², f of "
         "shifts, kg, x, y, z between them, kg m"),
        (r"P_\w+\^\w", "inertia M of a body with all that it carries times the joint map, kg m² or kg m, kg"),
        (r"U_\w+\^o", "reciprocal of the inertia that a joint feels, 1/(kg m²) or 1/kg"),
        (r"U_\w+", "inertia that a joint feels, kg m² or kg"),
        (r"D_\w+\^\w", "P over U, no unit, m or 1/m"),
        (r"N_\w+\^\w", "inertia of a body with all that it carries as its base feels it: less P P' / U, kg m², "
         "kg m, kg"),
        (r"Q_\w+\^\w", "moment (n) and force (f) on a body with all that it carries, N m and N"),
        (r"F_\w+\^\w", "moment and force Q less what the accelerations b take, N m and N"),
        (r"G_\w+\^\w", "moment and force that a body passes to its base, N m and N"),
        (r"J_\w+\^c", "inertia of a body about its centre of mass, kg m²"),
        (r"a_\w+\^o", "joint acceleration if the base of the body stood still, rad/s² or m/s²"),
        (r"a_\w+\^c", "acceleration of the centre of mass, base axes, m/s²"),
        (r"epsilon_\w+", "angular acceleration of a body, base axes, rad/s²"),
        (r"a_\w+", "joint acceleration, rad/s² or m/s²"),
        *COMMON,
    ),
    "vereshchagin_planar": (
        (r"S_\w+", "column S of (25): motion of the centre of mass by a unit rate of the joint, x and y in m or "
         "no unit, z, the turn, no unit"),
        (r"a_\w+\^prime", "acceleration a' of (27), (28) of a centre of mass by rates alone, m/s²"),
        (r"M_\w+\^star", "inertia M* of (17) of a body with all that it carries, x and y along axes of the plane, "
         "kg, z the turn, kg m and kg m²"),
        (r"Q_\w+\^star", "force (x, y), N, and moment (z), N m, Q* of (18) on a body with all that it carries"),
        (r"U_\w+", "inertia U of (19) that a joint feels, kg m² or kg"),
        (r"a_\w+", "joint acceleration, rad/s² or m/s²"),
        *COMMON,
    ),
    "alyushin": (
        (r"E_\w+", "kinetic energy of a body, J"),
        (r"T", "kinetic energy, J"),
        (r"omega_\w+", "angular velocity of a body, in its axes, rad/s"),
        (r"v_\w+\^c", "velocity of a body's centre of mass, in its axes, m/s"),
        (r"R_\w+", "turn of a body against the observer, no unit"),
        (r"S_\w+\^c", "second moments of a body about its centre of mass, kg m²"),
        (r"r_\w+\^c", "centre of mass of a body in its axes, m"),
        *COMMON,
    ),
    "zaremba": (
        (r"(v|omega)_\w+\^\w+", "column l: velocity (v, m/s) and turn (omega, rad/s) of the link below by a unit "
         "rate of the joint above; more numbers above: its derivatives by those coordinates"),
        (r"[fm]_\d+[a-f]?t?[xyz]\^\w+", "force (f, N) and moment (m, N m) that a unit rate of the joint above "
         "asks of a link with all that it carries"),
        (r"g_\d+[a-f]?t?[xyz](\^\w+)?", "acceleration of gravity in the axes of a link, m/s²"),
        (r"Theta_\w+[xyz]{2}(\^\w+)?", "second moment of a link with all that it carries: the matrix Theta*, of "
         "which moments of inertia are sums, kg m²"),
        (r"Theta_\w+[xyz](\^\w+)?", "first moment of a link with all that it carries, kg m"),
        (r"M_\w+", "element of the inertia matrix A, kg m², kg m or kg"),
        (r"d_\w+\^\w+", "Christoffel's symbol of the first kind of the inertia matrix, kg m², kg m or kg"),
        (r"f_g\w+", "effort of gravity in a joint, N m or N"),
        (r"h_\w+|tau_\w+", "result of the equations of motion, N m or N"),
        *COMMON,
    ),
}  # fmt: skip


def meanings(formalism: str, names: Iterable[str]) -> list[tuple[list[str], str]]:
    """Names with what they mean, in the order of the table; names that it does not know are left out."""
    rows = LETTERS.get(formalism, LETTERS_OF_RECURSIONS)
    listed: dict[int, list[str]] = {}
    for name in dict.fromkeys(names):
        at = next((k for k, (pattern, _) in enumerate(rows) if re.fullmatch(pattern, name)), None)
        if at is not None:
            listed.setdefault(at, []).append(name)
    return [(listed[k], rows[k][1]) for k in sorted(listed)]
