"""The rolled form: the step of one body is traced once per kind of joint, and a compiled loop does all bodies.

For large trees: time and memory O(n), and the code does not depend on n. The steps are the algorithms' own
source, on a tree of one body whose numbers are read from a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .algorithms.articulated_body import Articulated, joint_of, of_body, passed_on
from .algorithms.inverse_dynamics import body_force, rate_matrix
from .algorithms.kinematics import step_acceleration, step_velocity
from .check import SINGULAR, TRIES, refuse_singular
from .emit.llvm_rolled import Loop, Place, Rolled, Step
from .emit.lower import lower
from .graph.node import Expr, Graph
from .graph.program import Input, Output, Program
from .mechanics.columns import KINDS, WIDTH, Columns, columns_of
from .mechanics.joints import Force, Motion, Placement, place
from .mechanics.scalar import Scalar
from .mechanics.spatial import IDENTITY, ZERO, Body, Mat, Sym, Vec
from .mechanics.tree import Tree, TreeBody
from .model.description import Model
from .quantities import CATALOGUE
from .runtime.build import Spec
from .runtime.rolled import Sizes, function_of

if TYPE_CHECKING:
    from .runtime.function import Extra, Function

Array = np.ndarray[Any, Any]
Kind = tuple[str, int, bool]  # of joint, its axis, and whether its frame stands parallel to the parent's
SMALLEST = 60  # bodies; up to here straight-line code is faster and compiles at once
_LEAST = 16  # whatever is asked for: rows are moved in blocks of as many columns as a tile has lanes
BODIES = {"fixed": 0, "cylindrical": 2, "universal": 2, "planar": 3}  # of a joint; of every other kind one
TURNING = ("revolute", "helical")
QUANTITIES = ("inverse_dynamics", "bias", "inertia_product", "forward_dynamics")
LOAD: Kind = ("revolute", 0, True)  # a load reads nothing of its joint

# what the loops hand on, in the slot of each body; with external wrenches after the world's rotation, 9
_MOTION = 0
_INVERSE_FORCE, _INVERSE_SLOT = 9, 15  # w, w', a; n, f
_INERTIA, _BIAS, _GAIN = 6, 27, 33  # w, v; A 6, B 9, M 6; n, f; per freedom W 6 and x
_MOVED, _PIVOT_SLOT = 21, 42  # articulated inertia, and what is moved
_WORLD = 9


class _Tracer:
    """The inputs and outputs of one step, each with its place."""

    def __init__(self, kind: Kind, loaded: bool = False) -> None:
        self.graph = Graph()
        self.kind, self.loaded = kind, loaded
        self.inputs: list[tuple[str, int, list[Expr]]] = []
        self.outputs: list[tuple[str, int, list[int]]] = []
        x = self.read("table", WIDTH)
        inertia = Body(x[12], Vec(*x[13:16]), Sym(*x[16:22]))
        name, axis, parallel = kind
        R = IDENTITY if parallel else Mat.of((x[0:3], x[3:6], x[6:9]))
        self.body = TreeBody(
            "body", "joint", "1", -1, name, axis, R, Vec(*x[9:12]), x[22], 0, 0, x[23], inertia,  # type: ignore[arg-type]
        )  # fmt: skip
        self.tree = Tree((self.body,), {}, ZERO, self.body.nq, self.body.nv, ("joint",))

    def read(self, base: str, count: int, offset: int = 0) -> list[Expr]:
        k = len(self.inputs)
        offset += self.shift(base)
        found = [self.graph.input(f"{base}{k}[{i}]") for i in range(count)]
        self.inputs.append((base, offset, found))
        return found

    def write(self, base: str, values: Sequence[Scalar], offset: int = 0) -> None:
        self.outputs.append((base, offset + self.shift(base), [self.graph.edge(x) for x in values]))

    def shift(self, base: str) -> int:
        return _WORLD if self.loaded and base in ("own", "parent") else 0

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

    def turn(self, X: Placement) -> None:
        """The world's rotation of the body, where wrenches in world axes come."""
        if self.loaded:
            x = self.parent(9, -_WORLD)
            self.write("own", [y for row in _mat(x).mul(X.rotation) for y in row], -_WORLD)

    def quaternions(self) -> list[list[Expr]]:
        """Of q, which the first step checks."""
        return [x[-4:] for base, _, x in self.inputs if base == "arg0" and self.body.nq >= 4]


def _motion(x: Sequence[Scalar]) -> Motion:
    return Motion(Vec(*x[:3]), Vec(*x[3:6]))


def _force(x: Sequence[Scalar]) -> Force:
    return Force(Vec(*x[:3]), Vec(*x[3:6]))


def _mat(x: Sequence[Scalar]) -> Mat:
    return Mat.of((x[0:3], x[3:6], x[6:9]))


def _flat(x: Motion | Force) -> list[Scalar]:
    return [*x[0], *x[1]]


# -- inverse dynamics ---------------------------------------------------------------------------------------


def _inverse_out(kind: Kind, quantity: str, loaded: bool) -> Step:
    """Motion of the body from its parent's, and the wrench that this takes."""
    t = _Tracer(kind, loaded)
    X = t.at()
    still, rate, rate2 = quantity == "inertia_product", Motion(ZERO, ZERO), Motion(ZERO, ZERO)
    if not still:
        rate = t.tree.rates(t.argument(1))[0]
    if quantity != "bias":
        rate2 = t.tree.rates(t.argument(1 if still else 2))[0]
    x = t.parent(9, _MOTION)
    before, after = Motion(ZERO if still else Vec(*x[:3]), ZERO), Motion(Vec(*x[3:6]), Vec(*x[6:]))
    w = X.down(before.w) + rate.w
    dw, a = step_acceleration(X, before, after, rate, rate2)
    t.turn(X)
    t.write("own", [*w, *dw, *a], _MOTION)
    t.write("own", _flat(body_force(t.body.inertia, w, dw, rate_matrix(w, dw), a)), _INVERSE_FORCE)
    return t.step(t.quaternions())


def _inverse_back(kind: Kind, loaded: bool) -> Step:
    """The joint's share of the wrench, and the wrench on to the parent."""
    t = _Tracer(kind, loaded)
    X, f = t.at(), _force(t.own(6, _INVERSE_FORCE))
    t.write("result", [t.body.factor * column.dot(f) for column in t.tree.columns(t.body)])
    total = _force(t.parent(6, _INVERSE_FORCE)) + X.up_force(f)
    t.write("parent", _flat(total), _INVERSE_FORCE)
    return t.step()


def _inverse(kinds: Sequence[Kind], quantity: str, loaded: bool) -> tuple[Loop, ...]:
    out = Loop(False, tuple(_inverse_out(k, quantity, loaded) for k in kinds))
    back = Loop(True, tuple(_inverse_back(k, loaded) for k in kinds))
    wrenches = len(CATALOGUE[quantity].state)
    return (out, _loads(_INVERSE_FORCE, wrenches), back) if loaded else (out, back)


def _loads(at: int, argument: int) -> Loop:
    """A sweep over the external wrenches: each, moved from the link's origin, is taken from its body's."""
    t = _Tracer(LOAD, True)
    world, wrench = _mat(t.own(9, -_WORLD)), t.read(f"arg{argument}", 6)
    force, moment = world.T @ Vec(*wrench[:3]), world.T @ Vec(*wrench[3:])
    left = _force(t.own(6, at)) - Force(moment + t.body.p.cross(force), force)
    t.write("own", _flat(left), at)
    return Loop(False, (t.step(),), loads=True)


# -- forward dynamics ---------------------------------------------------------------------------------------


def _articulated(x: Sequence[Scalar]) -> Articulated:
    return Articulated(Sym(*x[:6]), Mat.of((x[6:9], x[9:12], x[12:15])), Sym(*x[15:21]))


def _forward_out(kind: Kind, loaded: bool) -> Step:
    """Velocities, rigid inertia and bias force."""
    t = _Tracer(kind, loaded)
    X = t.at()
    t.turn(X)
    moving = step_velocity(X, _motion(t.parent(6, _MOTION)), t.tree.rates(t.argument(1))[0])
    inertia = of_body(t.body.inertia)
    t.write("own", _flat(moving), _MOTION)
    t.write("own", _flat(moving.cross_force(inertia.times(moving))), _BIAS)
    t.write("own", _numbers(inertia), _INERTIA)
    return t.step(t.quaternions())


def _forward_back(kind: Kind, loaded: bool) -> Step:
    """Articulated inertia and bias force on to the parent; the joint keeps W = U D^-1 and x = D^-1 u."""
    t = _Tracer(kind, loaded)
    X, rate, tau = t.at(), t.tree.rates(t.argument(1))[0], t.argument(2)
    inertia, p = _articulated(t.own(21, _INERTIA)), _force(t.own(6, _BIAS))
    joint = joint_of(t.tree, 0, inertia, p, tau, _motion(t.own(6, _MOTION)).cross(rate))
    n = t.body.nv
    rows = [joint.D.solve([1.0 if l == k else 0.0 for l in range(n)]) for k in range(n)]
    columns = [_sum([U * x for U, x in zip(joint.U, row)]) for row in rows]
    t.write("own", [*(x for W in columns for x in _flat(W)), *joint.D.solve(joint.u)], _GAIN)
    passed, force = passed_on(inertia, p, joint)
    total = _articulated(t.parent(21, _INERTIA)) + passed.lifted(X)
    t.write("parent", _numbers(total), _INERTIA)
    t.write("parent", _flat(_force(t.parent(6, _BIAS)) + X.up_force(force)), _BIAS)
    return t.step()


def _numbers(x: Articulated) -> list[Scalar]:
    return [*x.A, *(y for row in x.B for y in row), *x.M]


def _sum(forces: Sequence[Force]) -> Force:
    total = forces[0]
    for f in forces[1:]:
        total = total + f
    return total


def _forward_accelerate(kind: Kind, loaded: bool) -> Step:
    """a' = X a_p + c; q'' = x - W^T a'; a = a' + S q''. Accelerations take the place of the inertia."""
    t = _Tracer(kind, loaded)
    X, rate, n = t.at(), t.tree.rates(t.argument(1))[0], t.body.nv
    here = X.down_motion(_motion(t.parent(6, _INERTIA))) + _motion(t.own(6, _MOTION)).cross(rate)
    gain = t.own(7 * n, _GAIN)
    a = [gain[6 * n + k] - here.dot(_force(gain[6 * k : 6 * k + 6])) for k in range(n)]
    for column, x in zip(t.tree.columns(t.body), a):
        here = here + column * (t.body.factor * x)
    t.write("own", _flat(here), _INERTIA)
    t.write("result", a)
    return t.step()


def _forward(kinds: Sequence[Kind], loaded: bool) -> tuple[Loop, ...]:
    out, back, accelerate = (
        Loop(step is _forward_back, tuple(step(k, loaded) for k in kinds))
        for step in (_forward_out, _forward_back, _forward_accelerate)
    )
    return (out, _loads(_BIAS, 3), back, accelerate) if loaded else (out, back, accelerate)


# -- whether M is regular -----------------------------------------------------------------------------------


def _pivots_out(kind: Kind) -> Step:
    """The rigid inertia, once to be articulated and once to be moved."""
    t = _Tracer(kind)
    inertia = _numbers(of_body(t.body.inertia))
    t.write("own", [*inertia, *inertia])
    return t.step()


def _pivots_back(kind: Kind) -> Step:
    """Pivots of D = S^T I S, relative to what the joint moves: the body and half of what each child moves.

    Halves, since the whole of a long chain would hide a pivot that is sound.
    """
    t = _Tracer(kind)
    X, n, still = t.at(), t.body.nv, Motion(ZERO, ZERO)
    inertia, moved = _articulated(t.own(21, 0)), _articulated(t.own(21, _MOVED))
    joint = joint_of(t.tree, 0, inertia, Force(ZERO, ZERO), [0.0] * n, still)
    t.write("result", [p / s.dot(moved.times(s)) for p, s in zip(joint.D.pivots, joint.S)])
    passed, _ = passed_on(inertia, Force(ZERO, ZERO), joint)
    t.write("parent", _numbers(_articulated(t.parent(21, 0)) + passed.lifted(X)), 0)
    half = [0.5 * x for x in _numbers(moved.lifted(X))]
    t.write("parent", [x + y for x, y in zip(t.parent(21, _MOVED), half)], _MOVED)
    return t.step()


def require_regular(model: Model, columns: Columns, cache: bool) -> None:
    """Raises ModelError where M has no inverse at any of some configurations; O(n)."""
    spec, rng, best, name = Spec(check=False), np.random.default_rng(0), 0.0, ""
    pivots = _made(model, columns, "pivots", spec, (), None, cache)
    if pivots is None:  # no machine code can be made, so no loop either
        return
    for _ in range(TRIES):
        ratio = pivots(_anywhere(columns, rng))
        bad = np.flatnonzero(~(ratio > SINGULAR))
        if not bad.size:
            return
        worst = int(bad[-1])  # the outermost: what lies further in is spoilt by it
        pivot = float(np.nan_to_num(ratio[worst], nan=0.0))
        if pivot >= best:
            best, name = pivot, [j.name for j in model.moving_joints for _ in range(j.nv)][worst]
    refuse_singular(model, best, name)


def _anywhere(columns: Columns, rng: np.random.Generator) -> Array:
    """A configuration, limits or not: whether M can be regular does not depend on them."""
    q = rng.uniform(-3.0, 3.0, columns.nq)
    for x in (q[at : at + 4] for at in _quaternions(columns)):
        x /= np.linalg.norm(x)
    return q


def _quaternions(columns: Columns) -> list[int]:
    """Where they start in q."""
    wide = columns.widths[0]
    found: list[int] = (columns.q + wide - 4)[wide >= 4].tolist()
    return found


# -- the whole ----------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """What a quantity hands on: scalars of the ground's slot, of a body's and more of it per freedom."""

    slot: int
    per_rate: int
    gravity: int  # where in the ground's slot its acceleration stands, or -1


SHAPES = {
    **dict.fromkeys(("inverse_dynamics", "bias"), Shape(_INVERSE_SLOT, 0, _MOTION + 6)),
    "inertia_product": Shape(_INVERSE_SLOT, 0, -1),
    "forward_dynamics": Shape(_GAIN, 7, _INERTIA + 3),
    "pivots": Shape(_PIVOT_SLOT, 0, -1),
}


def rolled_program(quantity: str, kinds: Sequence[Kind], loaded: bool = False) -> Rolled:
    """The loops of a quantity over bodies of these kinds; loaded: with external wrenches."""
    turning = any(k[0] in TURNING for k in kinds)
    if quantity == "pivots":
        loops = tuple(Loop(s is _pivots_back, tuple(s(k) for k in kinds)) for s in (_pivots_out, _pivots_back))
    elif quantity == "forward_dynamics":
        loops = _forward(kinds, loaded)
    else:
        loops = _inverse(kinds, quantity, loaded)
    ground = SHAPES[quantity].slot + loaded * _WORLD
    return Rolled(loops, _state(quantity), ground, WIDTH, turning, loaded, quantity != "pivots")


def _state(quantity: str) -> tuple[str, ...]:
    return ("q",) if quantity == "pivots" else CATALOGUE[quantity].state


def kinds_of(columns: Columns) -> tuple[list[Kind], Array]:
    """The kinds present, in a fixed order: they are what the code depends on; and the kind of every body."""
    codes, number = np.unique(6 * columns.kind + 2 * columns.axis + columns.parallel, return_inverse=True)
    return [(KINDS[c // 6], int(c % 6 // 2), bool(c % 2)) for c in codes], number


def numbers_of(columns: Columns, quantity: str, links: Sequence[str]) -> Array:
    """The table: the ground's slot, then 24 numbers per body, then as many per load, of which p counts."""
    shape, world = SHAPES[quantity], [x for row in IDENTITY for x in row] if links else []
    ground = np.zeros(shape.slot)
    if shape.gravity >= 0:
        ground[shape.gravity : shape.gravity + 3] = [-x for x in columns.gravity]
    loads = np.zeros((len(links), WIDTH))
    loads[:, 9:12] = np.array([columns.frame(link).p for link in links]).reshape(-1, 3)
    return np.concatenate([world, ground, columns.numbers.ravel(), loads.ravel()])


def integers_of(columns: Columns, quantity: str, number: Array, links: Sequence[str]) -> tuple[Array, int]:
    """Per body: kind, slot of the parent, own slot, first of q and of v, then the same of the loads, where v is
    the place of the wrench; and the scalars of all slots."""
    shape = SHAPES[quantity]
    size = shape.slot + _WORLD * bool(links) + shape.per_rate * columns.widths[1]
    first = shape.slot + _WORLD * bool(links)
    ends = first + np.cumsum(size)
    slots = ends - size
    parent = np.where(columns.parent >= 0, slots[columns.parent], 0)
    bodies = np.stack([number, parent, slots, columns.q, columns.v], 1)
    held = [columns.frame(link).body for link in links]
    loads = [(0, 0, slots[b] if b >= 0 else 0, 0, 6 * i) for i, b in enumerate(held)]
    return np.concatenate([bodies, np.array(loads, np.int64).reshape(-1, 5)]).astype(np.int32), int(ends[-1])


def rolled_function(
    model: Model,
    quantity: str,
    spec: Spec,
    *,
    external: Sequence[str] = (),
    extra: Extra | None = None,
    cache: bool = True,
    smallest: int = SMALLEST,
) -> Function | None:
    """The rolled Function of a model, or None where straight-line code is the right form.

    None: up to `smallest` bodies, mimic joints, another quantity, layout or option than this form has.
    The code is kept under the kinds of joints.
    external: links that take a wrench. Raises ModelError where M is found singular.
    """
    plain = spec.layout == "rows" and not spec.packed and not spec.parameters
    if quantity not in QUANTITIES or not plain or any(j.mimic for j in model.joints):
        return None
    if external and not (CATALOGUE[quantity].external and {l.name for l in model.links}.issuperset(external)):
        return None  # tracing says what is wrong
    if sum(BODIES.get(j.kind, 1) for j in model.joints) <= max(smallest, _LEAST):
        return None
    columns = columns_of(model)
    if CATALOGUE[quantity].inverse:
        require_regular(model, columns, cache)
    return _made(model, columns, quantity, spec, external, extra, cache)


def _made(
    model: Model,
    columns: Columns,
    quantity: str,
    spec: Spec,
    links: Sequence[str],
    extra: Extra | None,
    cache: bool,
) -> Function | None:
    kinds, number = kinds_of(columns)
    integers, slots = integers_of(columns, quantity, number, links)
    result = "ratio" if quantity == "pivots" else CATALOGUE[quantity].outputs[0][0]
    sizes = Sizes(quantity, _state(quantity), result, columns.nq, columns.nv, slots, tuple(links))
    request = "\n".join(["rolled", quantity, repr(kinds), "loaded" if links else ""])
    about = {"robot": model.name, "quantity": quantity, "formalism": "newton_euler", "form": "rolled"}
    units = tuple((0, tuple(range(at, at + 4))) for at in _quaternions(columns))
    table = numbers_of(columns, quantity, links)
    return function_of(
        sizes, lambda: rolled_program(quantity, kinds, bool(links)), table, integers, spec, request=request,
        meta=about, units=units, extra=extra, cache=cache,
    )  # fmt: skip


__all__ = ["QUANTITIES", "SMALLEST", "kinds_of", "rolled_function", "rolled_program"]
