"""The rolled form: the step of one body is traced once per kind of joint, and a compiled loop does all bodies.

For large trees: time and memory O(n), and the code does not depend on n. The steps are the algorithms' own
source, on a tree of one body whose numbers are read from a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .algorithms.articulated_body import Articulated, _joint, _passed, of_body
from .algorithms.inverse_dynamics import body_force, rate_matrix
from .algorithms.kinematics import step_acceleration, step_velocity
from .emit.llvm_rolled import Loop, Place, Rolled, Step
from .emit.lower import lower
from .graph.node import Expr, Graph
from .graph.program import Input, Output, Program
from .mechanics.joints import Force, Motion, Placement, place
from .mechanics.scalar import Scalar
from .mechanics.spatial import IDENTITY, ZERO, Body, Mat, Sym, Vec
from .mechanics.tree import Tree, TreeBody, build_tree
from .model.description import Model
from .quantities import CATALOGUE
from .runtime.build import Spec
from .runtime.rolled import Sizes, function_of

if TYPE_CHECKING:
    from .runtime.function import Extra, Function

Array = np.ndarray[Any, Any]
Kind = tuple[str, int, bool]  # of joint, its axis, and whether its frame stands parallel to the parent's
TABLE = 24  # R 9, p 3, m, h 3, S 6, pitch, factor
SMALLEST = 60  # bodies; up to here straight-line code is faster and compiles at once
_LEAST = 16  # whatever is asked for: rows are moved in blocks of as many columns as a tile has lanes
BODIES = {"fixed": 0, "cylindrical": 2, "universal": 2, "planar": 3}  # of a joint; of every other kind one
TURNING = ("revolute", "helical")

# what the loops hand on, in the slot of each body
_MOTION = 0
_INVERSE_FORCE, _INVERSE_SLOT = 9, 15  # w, w', a; n, f
_INERTIA, _BIAS, _GAIN = 6, 27, 33  # w, v; A 6, B 9, M 6; n, f; per freedom W 6 and x


class _Tracer:
    """The inputs and outputs of one step, each with its place."""

    def __init__(self, kind: Kind) -> None:
        self.graph = Graph()
        self.kind = kind
        self.inputs: list[tuple[str, int, list[Expr]]] = []
        self.outputs: list[tuple[str, int, list[int]]] = []
        x = self.read("table", TABLE)
        inertia = Body(x[12], Vec(*x[13:16]), Sym(*x[16:22]))
        name, axis, parallel = kind
        R = IDENTITY if parallel else Mat.of((x[0:3], x[3:6], x[6:9]))
        self.body = TreeBody(
            "body", "joint", "1", -1, name, axis, R, Vec(*x[9:12]), x[22], 0, 0, x[23], inertia,  # type: ignore[arg-type]
        )  # fmt: skip
        self.tree = Tree((self.body,), {}, ZERO, self.body.nq, self.body.nv, ("joint",))

    def read(self, base: str, count: int, offset: int = 0) -> list[Expr]:
        k = len(self.inputs)
        found = [self.graph.input(f"{base}{k}[{i}]") for i in range(count)]
        self.inputs.append((base, offset, found))
        return found

    def write(self, base: str, values: Sequence[Scalar], offset: int = 0) -> None:
        self.outputs.append((base, offset, [self.graph.edge(x) for x in values]))

    def step(self, units: Sequence[Sequence[Expr]] = ()) -> Step:
        """The traced work, lowered."""
        ins = [
            Input(f"{b}{i}", (len(x),), tuple(e.edge >> 1 for e in x)) for i, (b, _, x) in enumerate(self.inputs)
        ]
        outs = [Output(f"{b}{i}", (len(x),), tuple(x)) for i, (b, _, x) in enumerate(self.outputs)]
        checked = tuple(tuple(x.edge >> 1 for x in u) for u in units)
        program = Program("step", self.graph, tuple(ins), (), tuple(outs), units=checked)
        given = tuple(Place(b, o) for b, o, _ in self.inputs)
        return Step(lower(program), given, tuple(Place(b, o) for b, o, _ in self.outputs))

    # -- what several steps need ------------------------------------------------------------------------

    def own(self, count: int, offset: int) -> list[Expr]:
        return self.read("own", count, offset)

    def parent(self, count: int, offset: int) -> list[Expr]:
        return self.read("parent", count, offset)

    def argument(self, i: int) -> list[Expr]:
        return self.read(f"arg{i}", self.body.nv if i else self.body.nq)

    def at(self) -> Placement:
        """The body in its parent; the sweep over all angles came before every loop."""
        trig = None
        if self.kind[0] in TURNING:
            trig = (self.body.factor * self.read("sines", 1)[0], self.read("cosines", 1)[0])
        still = self.kind[0] == "revolute"  # nothing but the angle
        return self.placement([] if still else self.argument(0), trig)

    def placement(self, q: Sequence[Expr], trig: tuple[Scalar, Scalar] | None) -> Placement:
        b = self.body
        x = [b.factor * y for y in q] if b.nq == 1 else list(q)
        return place(b.kind, b.axis, b.R, b.p, b.pitch, x, trig)

    def quaternions(self) -> list[list[Expr]]:
        """Of q, which the first step checks."""
        return [x[-4:] for base, _, x in self.inputs if base == "arg0" and self.body.nq >= 4]


def _motion(x: Sequence[Scalar]) -> Motion:
    return Motion(Vec(*x[:3]), Vec(*x[3:6]))


def _force(x: Sequence[Scalar]) -> Force:
    return Force(Vec(*x[:3]), Vec(*x[3:6]))


def _flat(x: Motion | Force) -> list[Scalar]:
    return [*x[0], *x[1]]


# -- inverse dynamics ---------------------------------------------------------------------------------------


def _inverse_out(kind: Kind, accelerated: bool) -> Step:
    """Motion of the body from its parent's, and the wrench that this takes."""
    t = _Tracer(kind)
    X = t.at()
    rate = t.tree.rates(t.argument(1))[0]
    rate2 = t.tree.rates(t.argument(2))[0] if accelerated else Motion(ZERO, ZERO)
    x = t.parent(9, _MOTION)
    before, after = Motion(Vec(*x[:3]), ZERO), Motion(Vec(*x[3:6]), Vec(*x[6:]))
    w = X.down(before.w) + rate.w
    dw, a = step_acceleration(X, before, after, rate, rate2)
    t.write("own", [*w, *dw, *a], _MOTION)
    t.write("own", _flat(body_force(t.body.inertia, w, dw, rate_matrix(w, dw), a)), _INVERSE_FORCE)
    return t.step(t.quaternions())


def _inverse_back(kind: Kind) -> Step:
    """The joint's share of the wrench, and the wrench on to the parent."""
    t = _Tracer(kind)
    X, f = t.at(), _force(t.own(6, _INVERSE_FORCE))
    t.write("result", [t.body.factor * column.dot(f) for column in t.tree.columns(t.body)])
    total = _force(t.parent(6, _INVERSE_FORCE)) + X.up_force(f)
    t.write("parent", _flat(total), _INVERSE_FORCE)
    return t.step()


def _inverse(kinds: Sequence[Kind], accelerated: bool) -> tuple[Loop, ...]:
    out = tuple(_inverse_out(k, accelerated) for k in kinds)
    return Loop(False, out), Loop(True, tuple(_inverse_back(k) for k in kinds))


# -- forward dynamics ---------------------------------------------------------------------------------------


def _articulated(x: Sequence[Scalar]) -> Articulated:
    return Articulated(Sym(*x[:6]), Mat.of((x[6:9], x[9:12], x[12:15])), Sym(*x[15:21]))


def _forward_out(kind: Kind) -> Step:
    """Velocities, rigid inertia and bias force."""
    t = _Tracer(kind)
    X = t.at()
    moving = step_velocity(X, _motion(t.parent(6, _MOTION)), t.tree.rates(t.argument(1))[0])
    inertia = of_body(t.body.inertia)
    t.write("own", _flat(moving), _MOTION)
    t.write("own", _flat(moving.cross_force(inertia.times(moving))), _BIAS)
    t.write("own", [*inertia.A, *(x for row in inertia.B for x in row), *inertia.M], _INERTIA)
    return t.step(t.quaternions())


def _forward_back(kind: Kind) -> Step:
    """Articulated inertia and bias force on to the parent; the joint keeps W = U D^-1 and x = D^-1 u."""
    t = _Tracer(kind)
    X, rate, tau = t.at(), t.tree.rates(t.argument(1))[0], t.argument(2)
    inertia, p = _articulated(t.own(21, _INERTIA)), _force(t.own(6, _BIAS))
    joint = _joint(t.tree, 0, inertia, p, tau, _motion(t.own(6, _MOTION)).cross(rate))
    n = t.body.nv
    rows = [joint.D.solve([1.0 if l == k else 0.0 for l in range(n)]) for k in range(n)]
    columns = [_sum([U * x for U, x in zip(joint.U, row)]) for row in rows]
    t.write("own", [*(x for W in columns for x in _flat(W)), *joint.D.solve(joint.u)], _GAIN)
    passed, force = _passed(inertia, p, joint)
    total = _articulated(t.parent(21, _INERTIA)) + passed.lifted(X)
    t.write("parent", [*total.A, *(x for row in total.B for x in row), *total.M], _INERTIA)
    t.write("parent", _flat(_force(t.parent(6, _BIAS)) + X.up_force(force)), _BIAS)
    return t.step()


def _sum(forces: Sequence[Force]) -> Force:
    total = forces[0]
    for f in forces[1:]:
        total = total + f
    return total


def _forward_accelerate(kind: Kind) -> Step:
    """a' = X a_p + c; q'' = x - W^T a'; a = a' + S q''. Accelerations take the place of the inertia."""
    t = _Tracer(kind)
    X, rate, n = t.at(), t.tree.rates(t.argument(1))[0], t.body.nv
    here = X.down_motion(_motion(t.parent(6, _INERTIA))) + _motion(t.own(6, _MOTION)).cross(rate)
    gain = t.own(7 * n, _GAIN)
    a = [gain[6 * n + k] - here.dot(_force(gain[6 * k : 6 * k + 6])) for k in range(n)]
    for column, x in zip(t.tree.columns(t.body), a):
        here = here + column * (t.body.factor * x)
    t.write("own", _flat(here), _INERTIA)
    t.write("result", a)
    return t.step()


def _forward(kinds: Sequence[Kind]) -> tuple[Loop, ...]:
    steps: tuple[Callable[[Kind], Step], ...] = (_forward_out, _forward_back, _forward_accelerate)
    return tuple(Loop(s is _forward_back, tuple(s(k) for k in kinds)) for s in steps)


# -- the whole ----------------------------------------------------------------------------------------------


def rolled_program(quantity: str, kinds: Sequence[Kind]) -> Rolled:
    """The loops of a quantity over bodies of these kinds."""
    arguments, turning = CATALOGUE[quantity].state, any(k[0] in TURNING for k in kinds)
    if quantity == "forward_dynamics":
        return Rolled(_forward(kinds), arguments, _GAIN, TABLE, turning)
    return Rolled(_inverse(kinds, quantity == "inverse_dynamics"), arguments, _INVERSE_SLOT, TABLE, turning)


QUANTITIES = ("inverse_dynamics", "bias", "forward_dynamics")


def kinds_of(tree: Tree) -> list[Kind]:
    """The kinds present, in a fixed order: they are what the code depends on."""
    return sorted({_kind(b) for b in tree.bodies})


def _kind(b: TreeBody) -> Kind:
    return b.kind, b.axis, b.R == IDENTITY


def _slot(quantity: str, nv: int) -> int:
    return _GAIN + 7 * nv if quantity == "forward_dynamics" else _INVERSE_SLOT


def numbers_of(tree: Tree, quantity: str) -> Array:
    """The table: the ground's slot, then 24 numbers per body."""
    ground = np.zeros(_GAIN if quantity == "forward_dynamics" else _INVERSE_SLOT)
    at = _INERTIA + 3 if quantity == "forward_dynamics" else _MOTION + 6
    ground[at : at + 3] = [-x for x in tree.gravity]
    rows = [
        (*b.R.x, *b.R.y, *b.R.z, *b.p, b.inertia.m, *b.inertia.h, *b.inertia.S, b.pitch, b.factor)
        for b in tree.bodies
    ]
    return np.concatenate([ground, np.array(rows, float).ravel()])


def integers_of(tree: Tree, quantity: str, kinds: Sequence[Kind]) -> tuple[Array, int]:
    """Per body: kind, slot of the parent, own slot, first of q and of v; and the scalars of all slots."""
    number = {k: i for i, k in enumerate(kinds)}
    at = _GAIN if quantity == "forward_dynamics" else _INVERSE_SLOT
    slots: list[int] = []
    rows = []
    for b in tree.bodies:
        parent = slots[b.parent] if b.parent >= 0 else 0
        rows.append((number[_kind(b)], parent, at, b.q, b.v))
        slots.append(at)
        at += _slot(quantity, b.nv)
    return np.array(rows, np.int32), at


def rolled_function(
    model: Model,
    quantity: str,
    spec: Spec,
    *,
    stamp: str = "",
    extra: Extra | None = None,
    cache: bool = True,
    smallest: int = SMALLEST,
) -> Function | None:
    """The rolled Function of a model, or None where straight-line code is the right form.

    None: up to `smallest` bodies, mimic joints, another quantity, layout or option than this form has.
    stamp: text that changes with the sources; the code is kept under it and the kinds of joints.
    """
    plain = spec.layout == "rows" and not spec.packed and not spec.parameters
    if quantity not in QUANTITIES or not plain or any(j.mimic for j in model.joints):
        return None
    if sum(BODIES.get(j.kind, 1) for j in model.joints) <= max(smallest, _LEAST):
        return None
    tree = build_tree(model)
    kinds = kinds_of(tree)
    integers, slots = integers_of(tree, quantity, kinds)
    sizes = Sizes(quantity, CATALOGUE[quantity].state, CATALOGUE[quantity].outputs[0][0], tree.nq, tree.nv, slots)
    key = "\n".join(["rolled", stamp, quantity, repr(kinds)])
    about = {"robot": model.name, "quantity": quantity, "formalism": "newton_euler", "form": "rolled"}
    units = tuple((0, tuple(range(b.q + b.nq - 4, b.q + b.nq))) for b in tree.bodies if b.nq >= 4)
    return function_of(
        sizes, lambda: rolled_program(quantity, kinds), numbers_of(tree, quantity), integers, spec, key=key,
        meta=about, units=units, extra=extra, cache=cache,
    )  # fmt: skip


__all__ = ["QUANTITIES", "SMALLEST", "kinds_of", "rolled_function", "rolled_program"]
