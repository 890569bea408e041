"""Facts printed in a written-out text: robot, quantity, counts and how they were made, checks, sources."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ..codegen.graph.program import CONVENTION, Program
from ..io.reprs import brief
from .pictures.drawing import Drawing
from .sequence.names import plain
from .sequence.sequence import Section, Sequence
from .sources import SOURCES, of_formalism
from .vectors import VectorSection, sections_of

Check = tuple[str, float, int]  # what, worst difference, states

SYMBOLS = {
    "q": "joint coordinates, rad or m",
    "v": "joint rates, rad/s or m/s",
    "a": "joint accelerations, rad/s² or m/s²",
    "tau": "joint torques or forces, N m or N",
    "x": "rates or accelerations that the mass matrix is applied to, rad/s² or m/s²",
    "y": "M(q) x, N m or N",
    "M": "mass matrix, kg m², kg m or kg",
    "Minv": "inverse of the mass matrix, 1/(kg m²), 1/(kg m) or 1/kg",
    "h": "bias C v + g, N m or N",
    "p": "passive forces of dampers, dry friction and springs, N m or N",
    "g": "gravity torques or forces, N m or N",
    "C": "Coriolis matrix, from the Christoffel symbols, N m s, N s or kg/s",
    "c": "centre of mass, world axes, m",
    "l": "linear momentum, kg m/s, then angular about the centre of mass, kg m²/s, world axes",
    "t": "time, s",
    "N": "reactions of contacts, constraints and loops on the robot, N or N m",
    "J": "Jacobian, linear rows first, m or no unit",
    "Lambda": "operational-space inertia of the link, linear first, kg, kg m, kg m²",
    "Lambdainv": "inverse of the operational-space inertia of the link, linear first, 1/kg, 1/(kg m), 1/(kg m²)",
}
_QUANTITY_SYMBOLS = {
    ("constrained_dynamics", "R"): "reactions of contacts, constraints and loops on the robot, N or N m",
    ("mass_matrix", "I"): "inertia matrix, kg m², kg m or kg",
    ("mass_matrix", "a"): "inertia matrix A of elements a_ij, kg m², kg m or kg",
    ("bias", "H"): "terms of rates and of gravity, N m or N",
    ("bias", "b"): "terms of rates and of gravity, N m or N",
    ("gravity", "b"): "terms of gravity, b of (2.15) without rates, N m or N",
    ("coriolis_matrix", "B"): "Coriolis matrix, from Christoffel's symbols, N m s, N s or kg/s",
    ("mass_matrix", "H"): "mass matrix, kg m², kg m or kg",
    ("kinetic_energy", "T"): "kinetic energy, J",
    ("potential_energy", "V"): "potential energy, J, zero at the world origin",
    ("pose", "T"): "pose of the link, world from link, no unit and m",
    ("poses", "T"): "pose of each moving link, world from link, no unit and m",
    ("inverse_kinematics", "T"): "pose of the link, world from link, row by row, (4, 4)",
    ("inverse_kinematics", "real"): "1 where the branch of q reaches the pose within 1e-9 m and rad, else 0",
    ("velocity", "V"): "velocity of the link, linear first, m/s and rad/s",
    ("acceleration", "A"): "acceleration of the link, linear first, m/s² and rad/s²",
    (
        "centroidal_momentum_matrix",
        "A",
    ): "A v is the momentum, linear, angular about the centre of mass; kg m, kg m²",
    ("centroidal_momentum_bias", "b"): "rate of the momentum at accelerations of 0, N, then N m",
    ("jacobian_bias", "b"): "acceleration of the link at joint accelerations of 0, m/s², then rad/s²",
    (
        "manipulability",
        "w",
    ): "root of det J J', of det J' J where joints are fewer than rows, in SI units",
    ("operational_space", "pose"): "pose of the link, world from link, no unit and m",
    ("operational_space", "Jdot_v"): "acceleration of the link at joint accelerations of 0, m/s², then rad/s²",
    ("operational_space", "mu"): "centrifugal and Coriolis force at the link, N, then N m",
    ("operational_space", "p"): "force of gravity at the link, N, then N m",
    ("operational_space", "Jbar"): "inverse of the Jacobian, weighted by the mass matrix, 1/m or no unit",
    ("operational_space", "N"): "projector on torques that do not move the link, no unit",
    ("regressor", "Y"): "joint torques are Y times the inertial parameters of the links, ten of each, in SI units",
    ("power_balance", "P"): "powers of the drives, W",
    ("power_balance", "Wk"): "rates of the kinetic energy of the links, W",
    ("power_balance", "Wp"): "rates of the potential energy of the links, W",
    ("joint_power", "We"): "power through the joint of each link, of its force and moment on the link, W",
    ("joint_wrenches", "W"): "force and moment of the parent on each link, about the link's origin, N and N m",
    ("inverse_dynamics_derivatives", "dtau_dq"): "derivative of joint torques by coordinates, in SI units",
    ("inverse_dynamics_derivatives", "dtau_dv"): "derivative of joint torques by rates, in SI units",
    ("forward_dynamics_derivatives", "da_dq"): "derivative of joint accelerations by coordinates, in SI units",
    ("forward_dynamics_derivatives", "da_dv"): "derivative of joint accelerations by rates, in SI units",
    ("lagrange_equations", "H"): "inertia matrix, kg m², kg m or kg: H a + centrifugal + coriolis + gravity = tau",
    ("lagrange_equations", "centrifugal"): "terms with squares of rates, N m or N",
    ("lagrange_equations", "coriolis"): "terms with products of two rates, N m or N",
    ("lagrange_equations", "gyroscopic"): "part of centrifugal and Coriolis terms that does no work, N m or N",
    ("lagrange_equations", "gravity"): "terms of gravity, N m or N",
    ("linear_model", "x"): "state",
    ("linear_model", "u"): "inputs",
    ("linear_model", "y"): "outputs",
    ("linear_model", "dx"): "rate of the state",
    ("linear_model", "next_x"): "state after a step",
}
DERIVATIVE_PATTERN = re.compile(r"d\d*([A-Za-z]+)_d([A-Za-z]+(?:_d[A-Za-z]+)*)")
WORDS = {
    "add": "additions",
    "mul": "multiplications",
    "div": "divisions",
    "trig": "sines and cosines",
    "angle_sums": "sums of angles",
    "sqrt": "square roots",
    "atan2": "arctangents",
    "choices": "choices",
    "hoisted": "operations on parameters alone",
}
PLURAL = r"s(?= |$)"
ASSUMPTIONS = (
    "SI units and radians; linear parts before angular ones.",
    "The frame of a body is the frame of its joint after the motion; first moments and inertias are taken in it.",
    "Letters with the number of a joint belong to the body that it carries; x, y, z are its own axes.",
    "s_i and c_i are the sine and cosine of the angle of joint i, s_ij and c_ij of the sum of those of i and j.",
)


class Coordinate(NamedTuple):
    """One scalar of an input: the joint (or link) it belongs to, its number, its kind and its unit."""

    joint: str
    number: str
    kind: str
    unit: str

    @property
    def description(self) -> str:
        """On one line."""
        number = f" ({self.number})" if self.number else ""
        return ", ".join([f"{self.joint}{number}", self.kind, *filter(None, [self.unit])])


class Inputs(NamedTuple):
    """The parameters of a robot, in the notation of a book; values: of the names that the sections define.

    lengths: components of offsets, "R_3x", as L_3 x_23^e: whether minus stands before it, and the factors' names.
    reserved: letters of bodies that no parameter may take.
    """

    sections: tuple[Section, ...]
    values: Mapping[str, float]
    lengths: Mapping[str, tuple[bool, tuple[str, ...]]] = MappingProxyType({})
    reserved: frozenset[str] = frozenset()


@brief
@dataclass(frozen=True, slots=True)
class About:
    """All texts are one line each and may hold any printable character: whoever prints them escapes them.

    notes: what stands beside a name in the documents, such as the statement that an element follows.
    """

    robot: str
    quantity: str
    formalism: str
    counts: Mapping[str, int]
    checks: tuple[Check, ...]
    assumptions: tuple[str, ...]
    references: tuple[str, ...]
    digits: int
    notes: Mapping[str, str] = field(default_factory=dict)
    inputs: Inputs | None = None
    drawing: Drawing | None = None
    coordinates: Mapping[str, tuple[Coordinate, ...]] = field(default_factory=dict)
    vectors: tuple[VectorSection, ...] = ()  # the paper's lines by vectors and matrices
    less_in_all: str = ""  # the formalism that does less where sines and sums of angles count

    @property
    def title(self) -> str:
        return f"{self.quantity.replace('_', ' ')} of {self.robot}"

    @property
    def shown(self) -> dict[str, int]:
        """The counts without the rare ones that are 0."""
        return {k: n for k, n in self.counts.items() if n or k in ("add", "mul", "trig")}

    @property
    def totals(self) -> str:
        """The counts as one sentence."""
        said = []
        for key, n in self.shown.items():
            word, mark, more = WORDS.get(key, key).partition(" o")  # "sums of angles", "operations on ..."
            said.append(f"{n} {re.sub(PLURAL, '', word) if n == 1 else word}{mark}{more}")
        return ", ".join(said)

    @property
    def paper(self) -> str:
        """The formalism whose letters hold, without what is said of its mode."""
        return self.formalism.partition(",")[0]

    @property
    def book(self) -> str:
        """The formalism for people: newton_euler is Newton-Euler."""
        return self.paper.replace("_", "-").title() + self.formalism.removeprefix(self.paper)


def about_program(program: Program, checks: tuple[Check, ...], digits: int) -> About:
    """The facts of a program."""
    meta = program.meta
    formalism = str(meta.get("formalism", ""))
    notes, inputs, drawing = meta.get("notes"), meta.get("inputs"), meta.get("drawing")
    given = meta.get("coordinates")
    sources = of_formalism(formalism, str(meta.get("quantity", "")))
    given = given if isinstance(given, Mapping) else {}
    return About(
        robot=plain(str(meta.get("robot", "robot"))),
        quantity=plain(str(meta.get("quantity", program.name))),
        formalism=plain(formalism),
        counts=program.counts,
        checks=tuple((plain(what), float(worst), int(states)) for what, worst, states in checks),
        assumptions=(*ASSUMPTIONS, *_lines(meta.get("assumptions")), *_chosen(program)),
        references=(*(SOURCES[s].text for s in sources), *_lines(meta.get("references"))),
        digits=digits,
        notes={str(k): plain(str(v)) for k, v in notes.items()} if isinstance(notes, Mapping) else {},
        inputs=inputs if isinstance(inputs, Inputs) else None,
        drawing=drawing if isinstance(drawing, Drawing) else None,
        vectors=sections_of(meta.get("lines")),
        less_in_all=plain(str(meta.get("less_in_all", ""))),
        coordinates={str(k): tuple(Coordinate(*map(plain, x)) for x in rows) for k, rows in given.items()},
    )


def _chosen(program: Program) -> list[str]:
    said = "when(c, x) is x where c > 0 and else 0; unless(c, x) is x where c <= 0 and else 0."
    return [said] if program.counts.get("choices") else []


def _lines(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (plain(value),)
    return tuple(plain(str(x)) for x in value) if isinstance(value, (tuple, list)) else ()


def meaning(facts: About, source: str) -> str:
    """The meaning of an argument or result, in words."""
    if source.startswith("f_ext:"):
        return f"wrench on {plain(source[6:])}: force, then moment about its origin, world axes"
    quantity, partial = facts.quantity, DERIVATIVE_PATTERN.fullmatch(source)
    if partial:
        by, quantity = (
            ", ".join(partial[2].split("_d")),
            quantity.removeprefix("derivative of ").partition(" by ")[0],
        )
        of = _QUANTITY_SYMBOLS.get((quantity, partial[1])) or SYMBOLS.get(partial[1], "")
        return f"derivative by {by}, whose numbers stand last, of: {of}, by rad, m or their rates"
    known = _QUANTITY_SYMBOLS.get((quantity, source)) or SYMBOLS.get(source, "")
    return known or f"{source}: {quantity.replace('_', ' ')}, in SI units"


def header(facts: About, sequence: Sequence, layout: str, first: int = 0) -> list[str]:
    """The lines that head a code text; `layout` says how arguments and results are laid out.

    first: the number of an array's first place in the language.
    """
    name = sequence.identifiers
    lines = [f"{facts.title}, by {facts.book}." if facts.formalism else f"{facts.title}.", ""]
    for p in sequence.inputs:
        lines.append(f"{name[p.name]}: ({len(p.scalars)},) {meaning(facts, p.source)}")
        known = zip(p.scalars, facts.coordinates.get(p.source, ()))
        lines += [f"  {name[s]}: {c.description}" for s, c in known]
    lines += [f"-> {name[r.name]}: {r.shape} {meaning(facts, r.source)}" for r in sequence.results]
    lines += [layout, "", f"Operations: {facts.totals}.", *textwrap.wrap(CONVENTION, 100)]
    lines += textwrap.wrap(facts.less_in_all + ".", 100) if facts.less_in_all else []
    if sequence.symbols:
        lines += ["", "Parameters, in this order:"]
        for k, (s, used) in enumerate(zip(sequence.symbols, sequence.used), first):
            note = "" if used else " (not used)"
            lines.append(f"  {k}: {name[s.name]} = {s.parameter.value!r} {s.unit}, {plain(s.meaning)}{note}")
    if facts.checks:
        lines += ["", *(f"Checked: {what}: worst {worst:.1e} over {n} states." for what, worst, n in facts.checks)]
    return lines
