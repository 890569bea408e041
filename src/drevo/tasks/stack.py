"""A stack of tasks as one program: what is minimised on every level, and the stages that solve level after level.

A level of a lower number is never disturbed: what it has found, J dq, is an equality of the later ones (Kanoun,
Lamiraux, Wieber 2011, "Kinematic control of redundant manipulators: generalizing the task-priority framework to
inequality tasks"). Equalities are in the matrix of a level with their squares too, so that it has no small pivots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from math import prod
from typing import NamedTuple

from ..codegen.graph.program import Parameter, Program
from ..codegen.graph.rebuild import part_of_graph
from ..codegen.llvm.stages import StageCalls, Stages
from ..codegen.lower.loops import Place
from ..compiler.tracer import Tracer, names_parameter
from ..constraint.collection import all_rows
from ..constraint.kinds import Constraint
from ..contact.packing import Pack, of
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.scalar import Matrix, Scalar, Vector, accumulate, clip, is_zero, maximum, minimum
from ..model.description import Model
from .apart import ApartRows
from .kinds import KinematicTask, Posed
from .level import LevelData, MatrixEntries, along
from .limits import Bounds, CollisionLimit, RateLimits
from .primal import PrimalLevelSolver
from .quadratic import LevelSolver

SparseTaskRows = list[dict[int, Scalar]]


class StackProblem(NamedTuple):
    """A stack, checked. names: of its tasks. equal: tasks and constraints that hold exactly. damping: of all
    rates, in squares of costs. parameters: patterns of costs and gains that are inputs. warm: it begins with an
    active set.
    """

    model: Model
    tasks: tuple[KinematicTask, ...]
    names: tuple[str, ...]
    dt: float
    limits: RateLimits
    collisions: tuple[CollisionLimit, ...]
    equal: tuple[KinematicTask, ...]
    equal_names: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    damping: float
    parameters: tuple[str, ...]
    warm: bool

    def is_input(self, number: str) -> bool:
        """True for a number of a task, TASK.gain and its like, that is an argument of the compiled function."""
        return any(names_parameter(x, number) for x in self.parameters)

    def key(self) -> tuple[object, ...]:
        """All that the code depends on beside the model: the whole problem, less the numbers that are inputs."""
        tasks = [self._without_inputs(task, name) for task, name in zip(self.tasks, self.names)]
        return (*tasks, *(getattr(self, x) for x in self._fields if x not in ("model", "tasks")))

    def _without_inputs(self, task: KinematicTask, name: str) -> tuple[object, ...]:
        """A task for a key: of its numbers that are inputs only whether they are zero, which is in the code."""
        labelled = [("gain", task.gain), ("lm_damping", task.lm_damping), *task.costs(self.model)]
        kept = [(label, x > 0.0 if self.is_input(f"{name}.{label}") else x) for label, x in labelled]
        rest = [
            x.name for x in fields(task) if x.name not in ("gain", "lm_damping") and not x.name.endswith("cost")
        ]
        return type(task).__name__, kept, [(x, getattr(task, x)) for x in rest]

    @property
    def accelerates(self) -> bool:
        """True where the rates of the last step are an argument."""
        return any(x < float("inf") for x in self.limits.acceleration)


class TaskLevel(NamedTuple):
    """Tasks of one priority: H, c, the rows that later levels keep, and the damping of their errors."""

    H: MatrixEntries
    c: list[Scalar]
    rows: SparseTaskRows
    damping: Scalar


class StackProgram:
    """The program of a problem in the making."""

    def __init__(self, problem: StackProblem) -> None:
        self.p, self.n = problem, problem.model.nv
        t = self.t = Tracer("inverse_kinematics_step", problem.model)
        t.listed = problem.parameters
        (q,) = t.state("q")
        self.at = Posed(t.tree, problem.model, q, problem.dt)
        self.targets = {name: self._input(name, task.target_shape(problem.model)) for task, name in self._named()}
        before = t.input("before", self.n) if problem.accelerates else [0.0] * self.n
        self.bounds: Bounds = [
            tuple(None if x is None else x * problem.dt for x in pair)  # type: ignore[misc]
            for pair in problem.limits.bounds(self.at, before)
        ]
        self.overruns = problem.limits.overruns(self.at, before) if problem.accelerates else []
        self.equalities = self._equalities()
        places = [(c, x.distance, x.gain) for x in problem.collisions for c in x.places(problem.model)]
        self.apart = ApartRows(self.at, places, problem.limits.speed) if places else None
        self.levels = [self._level(k) for k in sorted({x.priority for x in problem.tasks})]

    def _named(self) -> list[tuple[KinematicTask, str]]:
        """Tasks and equalities with their names."""
        p = self.p
        return [*zip(p.tasks, p.names), *zip(p.equal, p.equal_names)]

    def _input(self, name: str, shape: tuple[int, ...] | None) -> Vector:
        """An argument for a target."""
        if shape is None:
            return []
        values = self.t.input(f"target_{name}", prod(shape))
        self.t.inputs[-1] = self.t.inputs[-1]._replace(shape=shape)
        return values

    # -- what is minimised --------------------------------------------------------------------------------------

    def _number(self, name: str, value: float) -> Scalar:
        """A number of a task, or its symbol."""
        if not self.p.is_input(name):
            return value
        symbols = self.t.symbols.made
        if name not in symbols:
            symbols[name] = Parameter(name, self.t.graph.parameter(name).edge >> 1, value)
        return self.t.graph.expr(2 * symbols[name].node)

    def _level(self, priority: int) -> TaskLevel:
        H: MatrixEntries = {}
        c: list[Scalar] = [0.0] * self.n
        kept: SparseTaskRows = []
        damping: Scalar = 0.0
        for task, name in zip(self.p.tasks, self.p.names):
            if task.priority == priority:
                rows, more = self._task(task, name, H, c)
                kept, damping = kept + rows, damping + more
        return TaskLevel(H, c, kept, damping)

    def _task(
        self, task: KinematicTask, name: str, H: MatrixEntries, c: list[Scalar]
    ) -> tuple[SparseTaskRows, Scalar]:
        """Adds a task to H and c; its rows and what damps it."""
        rows = task.rows(self.at, self.targets.get(name, []))
        gain = self._number(f"{name}.gain", task.gain)
        square: Scalar = 0.0
        kept = []
        for J, e, (label, cost) in zip(rows.J, rows.error, task.costs(self.p.model)):
            if cost == 0.0:
                continue
            weight = self._number(f"{name}.{label}", cost)
            row = {k: weight * x for k, x in enumerate(J) if not is_zero(x)}
            error = weight * (gain * e)
            square = square + error * error
            add_square(H, row)
            for k, x in row.items():
                c[k] = c[k] + x * error
            kept.append({k: x for k, x in enumerate(J) if not is_zero(x)})
        more: Scalar = 0.0
        if task.lm_damping:
            more = self._number(f"{name}.lm_damping", task.lm_damping) * square
            for k in range(self.n):
                accumulate(H, (k, k), more)
        return kept, more

    def _equalities(self) -> tuple[SparseTaskRows, list[Scalar]]:
        rows: Matrix = []
        sides: list[Scalar] = []
        for task, name in zip(self.p.equal, self.p.equal_names):
            terms = task.rows(self.at, self.targets.get(name, []))
            chosen = [cost > 0.0 for _, cost in task.costs(self.p.model)]
            rows += [J for J, some in zip(terms.J, chosen) if some]
            sides += [-(task.gain * e) for e, some in zip(terms.error, chosen) if some]
        if self.p.constraints:
            still = Kinematics(self.at.tree, self.at.q, [0.0] * self.n)
            held = all_rows(self.p.constraints, still, 0.0)
            rows += held.jacobian
            sides += [-x for x in held.value]
        return [{k: x for k, x in enumerate(row) if not is_zero(x)} for row in rows], sides

    # -- stages -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """(q, targets, ..) -> (v, kkt, active), and overrun where accelerations are bounded."""
        pack = Pack()
        fixed, sides = self.equalities
        earlier: SparseTaskRows = []
        levels: list[LevelData] = []
        for level in self.levels:
            H, rows = dict(level.H), [*fixed, *earlier]
            for row in rows:
                add_square(H, row)
            for k in range(self.n):
                accumulate(H, (k, k), self.p.damping)
            packed = [{k: pack.put(x) for k, x in row.items()} for row in rows]
            given = [None] * len(rows) if levels else pack.put_all(sides)
            matrix, damping = {k: pack.put(x) for k, x in H.items()}, pack.put(self.p.damping + level.damping)
            levels.append(LevelData(matrix, pack.put_all(level.c), packed, given, [True] * len(rows), damping))
            earlier = [*earlier, *level.rows]
        size = len(pack)
        if self.apart:
            size = self.apart.put(size)
            levels = [self.apart.added(x, len(fixed), k == 0) for k, x in enumerate(levels)]
        return self._staged(pack, max(1, size), levels)

    def _staged(self, pack: Pack, terms: int, levels: Sequence[LevelData]) -> Program:
        n, most = self.n, max(1, max(len(x.rows) for x in levels))
        ends = [(0.0 if low is None else low, 0.0 if high is None else high) for low, high in self.bounds]
        limited = [(low is not None, high is not None) for low, high in self.bounds]
        sizes = {
            "terms": terms, "x": n, "low": n, "high": n, "state": n, "holds": most, "lam": most,
            "sides": most, "origin": n, "least": 1, "tries": 1, "going": 1,
        }  # fmt: skip
        sizes |= {name: len(x) for name, x in self.apart.values().items()} if self.apart else {}
        solvers = []
        for k, data in enumerate(levels):
            sizes[f"level{k}_kkt"] = 1
            solver = PrimalLevelSolver if k else LevelSolver
            followed = data is not levels[-1]
            solvers.append(solver(f"level{k}_", n, data, limited, sizes, followed))
            sizes |= solvers[-1].blocks
        sizes |= {"overrun": n} if self.overruns else {}
        parts = {k: x for s in solvers for k, x in s.parts.items()}
        parts |= self.apart.parts if self.apart else {}
        parts["terms"] = self._terms(pack, ends)
        for k in range(1, len(levels)):
            parts[f"keep{k}"] = self._keep(k, levels[0], levels[k], sizes)
        parts["begin"] = self._begin(sizes)
        parts["end"] = self._end(len(levels), sizes)
        if self.p.warm:
            self.t.input("active", n + self._apart)
        self._declare(len(levels))
        stages = Stages(sizes, parts, partial(_write, self.apart, solvers))
        return replace(self.t.program(), stages=stages)

    @property
    def _apart(self) -> int:
        return len(self.apart.places) if self.apart else 0

    def _declare(self, levels: int) -> None:
        """Names and sizes of results, which the last stage writes."""
        t = self.t
        t.output("v", [0.0] * self.n)
        t.output("kkt", [0.0] * levels, (levels,))
        t.output("held", [0.0] * (self.n + self._apart))
        if self.overruns:
            t.output("overrun", [0.0] * self.n)

    def _terms(self, pack: Pack, ends: Sequence[tuple[Scalar, Scalar]]) -> Program:
        graph = self.t.graph
        apart = self.apart.values() if self.apart else {}
        results = {name: tuple(map(graph.edge, x)) for name, x in apart.items()} | {
            Place("terms"): pack.edges() or (graph.edge(0.0),),
            "low": tuple(graph.edge(x) for x, _ in ends), "high": tuple(graph.edge(y) for _, y in ends),
            "overrun": tuple(graph.edge(x) for x in self.overruns),
        }  # fmt: skip
        results = {name: edges for name, edges in results.items() if edges}
        part = part_of_graph("terms", graph, tuple(self.t.inputs), results, self.t.parameters)
        return replace(part, units=tuple(self.t.units))

    def _begin(self, sizes: dict[str, int]) -> Program:
        t = Tracer("begin")
        active: Sequence[Scalar] = (
            t.input("active", self.n + self._apart) if self.p.warm else [0.0] * (self.n + self._apart)
        )
        state = [clip(x, -1.0, 1.0) if self.p.warm else x for x in active[: self.n]]
        for k, pair in enumerate(self.bounds):
            if self.p.warm:
                state[k] = maximum(state[k], 0.0) if pair[0] is None else state[k]
                state[k] = minimum(state[k], 0.0) if pair[1] is None else state[k]
        first = len(self.equalities[0])
        holds: list[Scalar] = [0.0] * sizes["holds"]
        holds[first : first + self._apart] = active[self.n :]
        for name, values in (("state", state), ("holds", holds), ("x", [0.0] * self.n)):
            t.output(name, values)
        t.output("lam", [0.0] * sizes["lam"])
        return t.program()

    def _keep(self, k: int, first: LevelData, data: LevelData, sizes: dict[str, int]) -> Program:
        """J dq of what earlier levels have found, of inequalities that they could not meet too."""
        t = Tracer(f"keep{k}")
        terms, x = t.input("terms", sizes["terms"]), t.input("x", self.n)
        out: list[Scalar] = [0.0] * sizes["sides"]
        for r, (row, equal) in enumerate(zip(data.rows, data.equal)):
            found = along({j: of(terms, value) for j, value in row.items()}, x)
            side = found if equal else first.sides[r]
            assert side is not None
            out[r] = found if equal else maximum(of(terms, side), found)
        t.output("sides", out)
        t.output("origin", x)
        return t.program()

    def _end(self, levels: int, sizes: dict[str, int]) -> Program:
        t = Tracer("end")
        x, state, holds = (t.input(name, sizes[name]) for name in ("x", "state", "holds"))
        kkt = [t.input(f"level{k}_kkt", 1)[0] for k in range(levels)]
        over, first = 1.0 / self.p.dt, len(self.equalities[0])
        v = []
        for k, y in enumerate(x):
            speed = self.p.limits.speed[k]
            v.append(clip(y * over, -speed, speed) if speed < float("inf") else y * over)
        t.output("v", v)
        t.output("kkt", kkt)
        active = [*state, *holds[first : first + self._apart]]
        t.output("held", [clip(x, -1.0, 1.0) for x in active] if levels > 1 else active)
        if self.overruns:
            t.output("overrun", t.input("overrun", self.n))
        return t.program()


def add_square(H: MatrixEntries, row: dict[int, Scalar]) -> None:
    """Adds row^T row to a lower triangle."""
    for i, x in row.items():
        for j, y in row.items():
            if j <= i:
                accumulate(H, (i, j), x * y)


def _write(apart: ApartRows | None, solvers: Sequence[LevelSolver], c: StageCalls) -> None:
    c.call("terms")
    if apart:
        apart.write(c)
    c.call("begin")
    for k, solver in enumerate(solvers):
        if k:
            c.call(f"keep{k}")
        solver.write(c)
    c.call("end")
