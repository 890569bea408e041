"""The right-hand side of the motion: (q, v, tau, t) -> (dq/dt, a), over scalars and as a program.

Quaternions are integrated as four numbers whose rate is q w / 2, with the forces taken at q / |q|: that field is
smooth and keeps |q|, so every tableau has its full order on it, and each step ends on a unit quaternion.

As machine code the right-hand side and the engine are one module, kept on disk.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..codegen.call.rolled import RolledCode, loops_of
from ..codegen.graph.program import Program
from ..codegen.llvm.motion import add_engine, rolled_motion_text
from ..codegen.store import native
from ..codegen.store.build import Spec, machine_code, target_of
from ..codegen.store.key import key, request
from ..codegen.store.memo import persisted
from ..compiler.compile_cost import require_regular
from ..compiler.formalisms import fastest
from ..compiler.tracer import TracedFunction, Tracer
from ..compiler.ways.rolled import (
    Tables,
    forces_by_joint,
    is_large,
    prepare,
    require_regular_rolled,
    rolled_program,
)
from ..constraint.collection import all_rows
from ..constraint.kinds import Constraint
from ..constraint.numbers import Numbered, anchored, anchors, pattern_of, settled, with_numbers, with_places
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.inertia_matrix import factorised, lower_rows
from ..mechanics.algorithms.passive import passive
from ..mechanics.algorithms.schur import Schur
from ..mechanics.rotation import joint_coordinate_rates as joint_rates
from ..mechanics.scalar import Scalar, Vector, dot, sqrt
from ..mechanics.tree import Tree
from ..model.description import Model

Array = np.ndarray[Any, Any]
StateRates = Callable[[float, Array, Array], tuple[Array, Array]]
NamedOutputs = tuple[tuple[str, Vector], ...]
CLOSED = 1e-12  # m or rad: what Newton's last step starts from
DEPENDENT_ROW_MISS = (
    1e-8  # m or rad: how far a row that follows from the others may be off before it does not follow
)
PIVOT = 1e-10  # of D over its diagonal: there six digits of a reaction are left


@dataclass(frozen=True)
class Rule:
    """Constraints of a compiled motion: those that are held, and the rows of them that are independent.

    found: with zeros for what is an input: all numbers of those that were given, and what the last ones, the
    robot's `own`, leave open; its other numbers stay as they are, since they change with the robot only.
    fed: feedback with gains (damping, stiffness), a number for each row, in place of projection (Baumgarte).
    """

    found: tuple[Constraint, ...]
    kept: tuple[int, ...]
    own: int = 0
    fed: bool = False

    @staticmethod
    def numbered(
        model: Model, found: tuple[Constraint, ...], places: Array
    ) -> tuple[tuple[Constraint, ...], Array]:
        """`found` of a rule, and its numbers (count, n) where contacts and welds are held at places."""
        first = len(found) - model.closures
        count = anchors(found[:first])
        settled_set, numbers = with_places(settled(model, found[:first]), places[:, :count])
        return (*pattern_of(settled_set), *found[first:]), np.concatenate([numbers, places[:, count:]], -1)

    def with_numbers(self, numbers: Vector) -> tuple[Constraint, ...]:
        """The constraints with their numbers, scalars of any kind."""
        first = len(self.found) - self.own
        given, feedback = self.found[:first], self.found[first:]
        count = len(numbers) - anchors(feedback)
        return (*with_numbers(given, numbers[:count]), *anchored(feedback, numbers[count:]))

    @property
    def size(self) -> int:
        """All rows."""
        return sum(c.size for c in self.found)

    @property
    def dropped(self) -> tuple[int, ...]:
        return tuple(k for k in range(self.size) if k not in self.kept)

    @property
    def gaps(self) -> int:
        """The number of gaps that are closed."""
        return 0 if self.fed else len(self.kept)

    @property
    def watched(self) -> int:
        """The number of values that tell if the rows are still independent, and the others still follow."""
        return len(self.kept) if self.fed else self.size

    @property
    def given(self) -> tuple[int, ...]:
        """The number of inputs of each kind: numbers of the constraints, damping, stiffness, the diagonal of
        D at the start."""
        first, rows = len(self.found) - self.own, len(self.kept)
        numbers = len(Numbered.of(self.found[:first]).numbers) + anchors(self.found[first:])
        return numbers, *[rows if self.fed else 0] * 2, rows


def motion_program(model: Model, law: TracedFunction | None, driven: bool, rule: Rule | None = None) -> Program:
    """dq/dt and the accelerations; efforts are a law of control, an input, their sum, or nothing.

    Under a rule also the state put on its constraints, what was left of them (1 is CLOSED), and what must stay
    below 1 as long as the rule holds.
    """
    t = Tracer("motion", model, acting=True)
    timed = law is not None or rule is not None
    sizes = {"q": model.nq, "v": model.nv, "tau": model.nv if driven else 0, "t": int(timed)}
    if rule is not None:
        sizes["given"] = sum(rule.given)
    given = {name: t.input(name, n) for name, n in sizes.items()}  # of q any length is taken
    q, v, tau = with_unit_quaternions(model, given["q"]), given["v"], _efforts(model, law, given)
    tau = [x + p for x, p in zip(tau, passive(t.tree, q, v))]
    more: NamedOutputs = ()
    if rule is None:
        a = fastest(t.tree, ["forward_dynamics"])["forward_dynamics"](t.tree, q, v, tau)
    else:
        a, more = _ruled(model, t.tree, rule, given, q, tau)
    for name, values in (("dq", coordinate_rates(model, given["q"], q, v)), ("a", a), *more):
        t.output(name, values)
    return t.program()


def _efforts(model: Model, law: TracedFunction | None, given: dict[str, list[Any]]) -> list[Scalar]:
    held = given["tau"] or [0.0] * model.nv
    if law is None:
        return held
    (efforts,) = law(given["t"], given["q"], given["v"])
    return [x + y for x, y in zip(held, efforts)]


def _ruled(
    model: Model, tree: Tree, rule: Rule, given: dict[str, list[Any]], q: Vector, tau: Vector
) -> tuple[list[Scalar], NamedOutputs]:
    """Accelerations under the rule, and the further outputs."""
    v, t = given["v"], given["t"][0]
    ends = list(accumulate(rule.given, initial=0))
    numbers, g1, g0, sizes = (given["given"][at:end] for at, end in pairwise(ends))
    rows = all_rows(rule.with_numbers(numbers), Kinematics(tree, q, v), t)
    kept = select_rows(rows, rule.kept)
    compute = fastest(tree, ["mass_matrix", "bias"])
    matrix, h = compute["mass_matrix"](tree, q), compute["bias"](tree, q, v)
    gamma, rest = _fed_back(kept, g1, g0) if rule.fed else kept.bias, [0.0] * tree.nv
    schur = Schur(factorised(tree, lower_rows(matrix)), kept.jacobian)
    a, _ = schur.accelerations([x - y for x, y in zip(tau, h)], gamma)
    watch = [PIVOT * (d + size) / pivot for pivot, d, size in zip(schur.pivots, schur.diagonal, sizes)]
    if rule.fed:
        return a, (("P_q", given["q"]), ("P_v", v), ("gap", []), ("watch", watch))
    dq, dv = (schur.accelerations(rest, gap)[0] for gap in (kept.value, kept.rate))
    moved = [x + d for x, d in zip(given["q"], coordinate_rates(model, given["q"], q, dq))]
    watch += [rows.value[k] / DEPENDENT_ROW_MISS for k in rule.dropped]
    gap = [x / CLOSED for x in kept.value]
    return a, (("P_q", moved), ("P_v", [x + d for x, d in zip(v, dv)]), ("gap", gap), ("watch", watch))


def _fed_back(kept: ConstraintRows, g1: Vector, g0: Vector) -> list[Scalar]:
    """gamma + damping f' + stiffness f."""
    return [x + a * rate + b * value for x, a, rate, b, value in zip(kept.bias, g1, kept.rate, g0, kept.value)]


def select_rows(rows: ConstraintRows, kept: Sequence[int]) -> ConstraintRows:
    """Some of the rows."""
    return ConstraintRows(*([part[k] for k in kept] for part in rows))


# -- coordinates --------------------------------------------------------------------------------------------


def with_unit_quaternions(model: Model, q: Vector) -> list[Scalar]:
    """q with its quaternions made unit."""
    out = list(q)
    for k in quaternions(model):
        size = 1.0 / sqrt(dot(q[k : k + 4], q[k : k + 4]))
        out[k : k + 4] = [x * size for x in q[k : k + 4]]
    return out


def quaternions(model: Model) -> tuple[int, ...]:
    """The indices in q at which the quaternions begin."""
    return tuple(s.stop - 4 for j, s, _ in model.slices() if j.turns)


def coordinate_rates(model: Model, raw: Vector, unit: Vector, v: Vector) -> list[Scalar]:
    """dq/dt of rates v; unit: raw with unit quaternions."""
    out: list[Scalar] = []
    for _, sq, sv in model.slices():
        out += joint_rates(raw[sq], unit[sq], v[sv])
    return out


def numeric_rates(
    model: Model,
    efforts: Callable[[float, Array, Array], Array],
    forward: Callable[[float, Array, Array, Array], Array],
) -> StateRates:
    """Right-hand side (dq/dt, a) on arrays, of efforts(t, q, v) and accelerations forward(t, q, v, tau)."""

    turning = [(sq, sv) for j, sq, sv in model.slices() if j.turns]
    plain = [(sq, sv) for j, sq, sv in model.slices() if not j.turns]
    to, source = ([i for x in plain for i in range(x[k].start, x[k].stop)] for k in (0, 1))

    def rates(t: float, q: Array, v: Array) -> tuple[Array, Array]:
        unit, dq = q.copy(), np.empty(q.shape)
        for k in quaternions(model):
            unit[:, k : k + 4] /= np.linalg.norm(unit[:, k : k + 4], axis=-1, keepdims=True)
        a = forward(t, unit, v, efforts(t, unit, v))
        dq[:, to] = v[:, source]
        for sq, sv in turning:
            dq[:, sq] = np.stack(joint_rates(list(q[:, sq].T), list(unit[:, sq].T), list(v[:, sv].T)), -1)
        return dq, a

    return rates


class CompiledMotion:
    """A derivative and its engine, loaded. `integrate` and `integrate_adaptive` run it from a state.

    large: the derivative is a loop over the bodies, whose efforts are always an input.
    """

    def __init__(self, model: Model, law: TracedFunction | None, driven: bool, rule: Rule | None = None) -> None:
        self.model, self.rule = model, rule
        self.large = law is None and rule is None and is_large(model) and forces_by_joint(model)
        if self.large:
            (self._code, self.arena), self.scratch = _rolled_motion(model), 0
        else:
            asked = request(model, "motion", driven, rule, law)
            make = partial(_program, model, law, driven, rule)
            made, self._code = machine_code(asked, make, Spec(), True, add_engine)
            self.arena, self.scratch = made.arena, made.scratch
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._integrate, self._integrate_adaptive = (
            kind(self._code.address(n)) for n in ("integrate", "integrate_adaptive")
        )

    def integrate(self, state: Array) -> int:
        """Steps of one length, without the GIL; the number of records that were made."""
        return int(self._integrate(state.ctypes.data))

    def integrate_adaptive(self, state: Array) -> int:
        """Steps of adaptive length, one record each, without the GIL; the number of records that were made."""
        return int(self._integrate_adaptive(state.ctypes.data))


def _rolled_motion(model: Model) -> tuple[native.Code, int]:
    """The engine with the loops that it calls, and the bytes of the arena. Efforts are always an input."""
    require_regular_rolled(model)
    spec, tables = Spec(), Tables.acting(model)
    sizes, request, data = prepare(tables, "motion", (), {})
    loops = loops_of(request, lambda: rolled_program("motion", tables.kinds), spec, True)
    text = persisted(
        key("engine over loops", spec), True, lambda: native.compile_text(rolled_motion_text(target_of(spec)))
    )
    code = RolledCode(text, loops, data, spec.dtype, sizes)
    return code, sizes.arena(target_of(spec).lanes, 8)


def _program(model: Model, law: TracedFunction | None, driven: bool, rule: Rule | None) -> Program:
    require_regular(model)
    return motion_program(model, law, driven, rule)


def owners(model: Model) -> Iterator[tuple[str, slice, slice]]:
    """Joint names with their parts of q and v, for messages."""
    return ((j.name, sq, sv) for j, sq, sv in model.slices())
