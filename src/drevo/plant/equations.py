"""A robot with torques as inputs, positions and velocities as states: its variables, and its equations in C."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..compiler.pages.derivation import write_out_program
from ..compiler.pages.telegin_inputs import coordinates_of
from ..compiler.pages.write_out import quantity_equations
from ..compiler.tracer import Tracer
from ..control.law import Law
from ..documents.about import Coordinate
from ..documents.languages.code import comment
from ..documents.sequence.names import plain
from ..documents.sequence.symbols import Symbol
from ..errors import EmitError
from ..io.packages import VERSION
from ..mechanics.configuration import quaternion_parts
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.description import Model

MASSES = ("*.mass",)  # the parameters of a plant unless others are named


@dataclass(frozen=True)
class Variable:
    """One number of a plant. role: input, state, derivative, control or parameter; unit: "N m", "rad/s²"."""

    name: str
    role: str
    unit: str
    start: float
    about: str


@dataclass(frozen=True)
class Plant:
    """A robot as another simulator needs it.

    variables: in the order of the array VALUE_AT_START of the text: inputs, states (q, then v), their derivatives,
    torques of the controller if there is one, parameters. c: the text, with the functions `plant`, `controller`,
    `constants_of` and `unit`.
    """

    robot: str
    variables: tuple[Variable, ...]
    c: str

    def of(self, role: str) -> list[Variable]:
        """The variables of a role."""
        return [x for x in self.variables if x.role == role]


def plant_of(model: Model, law: Law | None, parameters: Sequence[str], start: Vector, passive: bool) -> Plant:
    """The plant of a robot. start: q at the start; passive: with damping, dry friction and springs of the joints.

    parameters: names and patterns of those that stay parameters. Raises EmitError for robots with loops.
    """
    if model.closed:
        raise EmitError(
            f"export: robot {model.name!r} has loops, which nothing in an FMU or S-function would keep closed; "
            "export its constrained_dynamics as C"
        )
    motion = quantity_equations(model, "forward_dynamics", symbols=list(parameters), passive=passive)
    variables = tuple(_variables(model, law is not None, start, motion.sequence.symbols))
    return Plant(model.name, variables, _text(model, motion.c(), "" if law is None else law.c("law"), variables))


def _variables(model: Model, controlled: bool, start: Vector, symbols: Sequence[Symbol]) -> Iterator[Variable]:
    """All variables, in the order of the array."""
    tree = build_tree(model)
    q, v, a, tau = ([*coordinates_of(x, model, tree)] for x in ("q", "v", "a", "tau"))
    rates = [x._replace(kind=f"rate of {x.kind}", unit=f"{x.unit or '1'}/s") for x in q]
    yield from _named("{}.tau", "input", tau)
    yield from _named("{}.q", "state", q, start)
    yield from _named("{}.v", "state", v)
    yield from _named("der({}.q)", "derivative", rates)
    yield from _named("{}.a", "derivative", a)
    yield from _named("{}.control", "control", tau if controlled else [])
    for s in symbols:
        yield Variable(s.parameter.name, "parameter", s.unit, s.parameter.value, plain(s.meaning))


def _named(form: str, role: str, rows: Sequence[Coordinate], start: Vector | None = None) -> Iterator[Variable]:
    """The variables of a vector: JOINT.q, or JOINT.q[1], JOINT.q[2], ... where a joint has several."""
    many, place = Counter(x.joint for x in rows), Counter[str]()
    for k, x in enumerate(rows):
        place[x.joint] += 1
        name = form.format(x.joint)
        if many[x.joint] > 1:
            name = re.sub(r"\)?$", rf"[{place[x.joint]}]\g<0>", name, count=1)
        yield Variable(name, role, x.unit, 0.0 if start is None else float(start[k]), f"{x.joint}: {x.kind}")


def _rates(model: Model) -> str:
    """C of dq/dt over (q, v): v itself, but of quaternions, and of a position with velocities in body axes."""
    t = Tracer("rates", model)
    q, v = t.state("q", "v")
    out = list[Scalar]()
    for joint, sq, sv in model.slices():
        x, u = q[sq], v[sv]
        if not joint.turns:
            out += u
            continue
        e, w, spin = Vec(*x[-4:-1]), x[-1], Vec(*u[-3:])
        if joint.kind == "free":
            out += from_quaternion(*x[-4:]) @ Vec(*u[:3])
        out += [*((spin * w + e.cross(spin)) * 0.5), -0.5 * e.dot(spin)]  # half of the product by (spin, 0)
    t.output("rates", out)
    return write_out_program(t.program(quantity="rates")).c()


def _text(model: Model, motion: str, law: str, variables: Sequence[Variable]) -> str:
    """The equations and what the wrappers call of them, all of it static."""
    hoisted = "forward_dynamics_prologue" in motion
    sizes = Counter(x.role for x in variables)
    turned = [part.start for _, part in quaternion_parts(model)]
    values = {
        "ROBOT": comment(model.name), "VERSION": VERSION, "NQ": model.nq, "NX": sizes["state"],
        "NU": sizes["input"], "NY": sizes["control"], "NP": sizes["parameter"],
        "NK": max(map(int, re.findall(r"constants\[(\d+)\]", motion)), default=-1) + 1,
        "START": ",\n".join(f"    {x.start!r} /* {comment(x.name)} */" for x in variables) or "0.0",
        "EQUATIONS": "\n".join(_static(text) for text in (motion, _rates(model), law)),
        "PROLOGUE": "forward_dynamics_prologue(parameters, constants);" if hoisted else "",
        "CONSTANTS": "constants, " if hoisted else "", "LAW": "law(&t, q, x + NQ, control);" if law else "",
        "UNIT": "\n".join(f"    unit_quaternion(q + {k});" for k in turned),
    }  # fmt: skip
    return re.sub("@([A-Z]+)@", lambda key: str(values[key[1]]), PLANT_C)


def _static(text: str) -> str:
    """C without its headers, of functions that no other file sees."""
    return text.replace("#include <math.h>\n", "").replace("\nvoid ", "\nstatic void ")


PLANT_C = """\
/* Forward dynamics of @ROBOT@ as a plant: torques in, motion out. Written by Drevo @VERSION@. */
#include <math.h>
#include <string.h>

/* how many: coordinates, states (these and rates), inputs, torques of a controller, parameters, constants */
enum { NQ = @NQ@, NX = @NX@, NU = @NU@, NY = @NY@, NP = @NP@, NK = @NK@ };

/* time, inputs, states, their derivatives, torques of the controller, parameters, step of integration in s */
static const double VALUE_AT_START[] = {
    0.0 /* time */,
@START@,
    0.001 /* step */
};

@EQUATIONS@

#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

static void unit_quaternion(double *x)
{
    double size = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
    for (int k = 0; k < 4; ++k) x[k] /= size;
}

/* Makes the quaternions of a configuration unit ones: an integrator does not keep them so. */
static void unit(double *q)
{
    (void)q;
@UNIT@
}

/* What depends on the parameters alone. */
static void constants_of(const double *parameters, double *constants)
{
    (void)parameters, (void)constants;
    @PROLOGUE@
}

/* The torques of the controller, NY of them. */
static void controller(double t, const double *x, double *control)
{
    double q[NQ];
    (void)t, (void)control;
    memcpy(q, x, sizeof q);
    unit(q);
    @LAW@
}

/* dx/dt of the state x under the torques u, to which those of the controller are added. */
static void plant(double t, const double *x, const double *u, const double *constants, double *dx, double *control)
{
    double q[NQ], tau[NU];
    (void)constants;
    memcpy(q, x, sizeof q);
    unit(q);
    controller(t, x, control);
    for (int k = 0; k < NU; ++k) tau[k] = u[k] + (NY ? control[k] : 0.0);
    rates(q, x + NQ, dx);
    forward_dynamics(q, x + NQ, tau, @CONSTANTS@dx + NQ);
}
"""
