"""A step under the exact law with many places of contact: multipliers over loops of the soft law.

No two places are coupled in straight lines here. Forces f in the cones K of Coulomb's law are found by

    f <- P_K(f - D (J a - c + mu |w_t| n / h)),      w = h (J a - c),

where c are the accelerations that leave no velocity w, and D is firm. Each is a step of the soft law, whose cone
is P_K, with c moved by f / D; the slip that de Saxce's change of variables adds to the normal is that of the step
before. Stacks at rest take some three; from more on `NaturalMap` goes on from where they are. Where something has
to part, it is done once more without that, for the velocities that are kept. Against friction there may be nothing
that parts bodies: impulses without friction then do, beside those of the velocities that are kept.

  Rockafellar 1976, Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
  de Saxce and Feng 1998, The bipotential method.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ....codegen.llvm.stages import StageCalls
from ....ground import Uneven
from ....mechanics.algorithms.delassus import MoreauStep, closing_speed
from ....mechanics.scalar import Scalar, Vector, dot, maximum, minimum, where
from ....model.description import Model
from ...packing import Packed, of
from ..soft.couplings import JointRow, Moves, SoftRow
from ..soft.law import EllipticCone, OneSided
from ..soft.layout import PackedRows, SlotLayout, slot_layout
from ..soft.pair_loops import PairLoops
from ..soft.pair_rows import LoopedEvaluation
from ..soft.problem import soft_problem
from ..soft.program import may_loop
from ..soft.stages import Slot, SoftProblem, StageTracer
from .natural import NaturalMap, kept_from, missed, slipping
from .problem import MOST_PLACES
from .solve import RESIDUAL_TOLERANCE
from .stages import NO_RESIDUAL

# Rows, three of a place and one of a joint with a limit or dry friction, from which straight lines take longer
MOST_LIMITED_ROWS = 36
MULTIPLIER_STIFFNESS = 1e4  # of D, over the inverse weight of a place

MULTIPLIER_STEPS, MAX_MULTIPLIER_ROUNDS = 10, 20  # before Newton's method is tried; stacks at rest take some three
# Points of one foot that cannot all do as they should grow forces within it until one of them slips
STALLING_SHARE, STALLED = 0.9, 1e-4  # of what was left before; m/s
STIFFNESS_GROWTH, MAX_STIFFNESS = 30.0, 1e7
SEEN_SHARE = 0.25  # of the radius of the smaller geom: how far apart places of contact are taken into a step,
LEAST_SEEN = 0.01  # or m, of points


def many_places_problem(
    model: Model, ground: Uneven | str | None, dt: float, repeat: int, friction: float | None,
    restitution: float = 0.0, parameters: tuple[str, ...] = (),
) -> SoftProblem | None:  # fmt: skip
    """The problem of a step with more places than are coupled in straight lines; None for what loops do not know:
    joints that depend on others or are given by formula, tendons. parameters: patterns of numbers that stay
    symbols."""
    model = replace(model, stepping=replace(model.stepping, noslip=0, impratio=1.0))
    odd = any(x.mimic or x.formula for x in model.joints)
    if model.closed or model.stepping.medium or isinstance(ground, Uneven) or odd:
        return None
    state = partial(soft_problem, ground=ground, step=dt, method="euler", repeat=repeat, friction=friction)
    stated = state(model)
    margins = [*map(_seen, stated.slots)]

    def coned(problem: SoftProblem) -> SoftProblem:
        return replace(problem, slots=tuple(map(_slot, problem.slots, margins)))

    stated = replace(coned(stated), moreau=MoreauStep(dt, restitution), parameters=parameters)
    stated = replace(stated, again=lambda model, t: coned(state(model, t=t)))
    rows = [x for x in stated.rows if isinstance(x, JointRow)]
    places, joints = sum(x.most for x in stated.slots), len({x.rate for x in rows})
    many = places > MOST_PLACES or (joints > 0 and 3 * places + joints > MOST_LIMITED_ROWS)
    return stated if many and places and len(rows) == len(stated.rows) and may_loop(stated) else None


def _seen(s: Slot) -> float:
    """The gap below which a place is taken into a step, m."""
    radii = [x.geom.radius for x in s.held or () if x.geom.kind != "plane"]
    return max(SEEN_SHARE * min(radii, default=0.0), LEAST_SEEN)


def _slot(s: Slot, margin: float) -> Slot:
    """With the cone of Coulomb's law, and seen in time."""
    mu = s.group.mu[:1] * 2
    cone = EllipticCone(3, mu, mu[0]) if mu else OneSided()
    return s._replace(group=cone, soft=s.soft._replace(margin=margin))


class MultiplierEvaluation(LoopedEvaluation):
    """The first stages of such a step; a place keeps c and its inverse weight."""

    def __init__(self, problem: SoftProblem) -> None:
        self.c_of_rows, self.push_of_rows, self.felt = list[Scalar](), list[Scalar](), list[Scalar]()
        self.rubbing = list[Packed]()  # the entries of rows of dry friction, made 0 where they are not to be felt
        super().__init__(problem)
        self.sizes |= dict.fromkeys(("moves", "kept", "borne"), self.nv) | {"felt": 1}

    def _layout(self, kind: int, pack: int, m: int) -> SlotLayout:
        return slot_layout(kind, pack, m, kept_from(m + 2, m).end)

    def _rows_of(self, k: int) -> None:
        s, at, m = StageTracer("rows", self.sizes), self.records[k], self.problem.slots[k].group.size
        weight, distance, gap = s.read("pair")[-2], s.here(at.place, 1)[0], s.here(at.gap, 1)[0]
        u, over = s.here(at.y, m), 1.0 / self.problem.step
        assert self.problem.moreau
        closing = closing_speed(distance, u[0], self.problem.moreau)
        c, push = [-((u[0] + closing) * over), *(-(x * over) for x in u[1:])], maximum(-closing, 0.0) * over
        D = where(gap < 0.0, MULTIPLIER_STIFFNESS / weight, 0.0)
        s.write_here({0: [*c, *[D] * m], at.slip: [*c, weight, push]})
        self.parts[f"rows_{k}"] = s.t.program()

    def _row(self, r: SoftRow, gap: Scalar, moves: Moves, v: Vector) -> PackedRows:
        """A limit, or dry friction, likewise: c is what it wants."""
        assert self.problem.moreau
        put, u = self.main.put, dot(list(moves.values()), [v[k] for k in moves])
        closing = 0.0 if r.group.at_rates else closing_speed(gap, u, self.problem.moreau)
        c = -((u + closing) * (1.0 / self.problem.step))
        self.c_of_rows.append(c)
        self.push_of_rows.append(maximum(-closing, 0.0) * (1.0 / self.problem.step))
        D = MULTIPLIER_STIFFNESS / r.weight
        if r.group.at_rates:
            self.felt = self.felt or self.t.input("felt", 1)
            moves = {k: x * self.felt[0] for k, x in moves.items()}
        B = [put(x) for x in moves.values()]
        self.rubbing += B if r.group.at_rates else []
        return PackedRows(r.group, tuple(moves), [B], [put(c)], [put(D)])

    def efforts(self, s: StageTracer) -> list[Scalar]:
        """With those of the impulses beside which others part bodies."""
        return [x + y for x, y in zip(super().efforts(s), s.read("borne"))]

    def more_blocks(self) -> dict[str, list[int]]:
        """The accelerations c that rows of joints want, and their part that takes joints back within bounds;
        "wanted": c that multipliers move."""
        made = {"wanted": self.c_of_rows, "c": self.c_of_rows, "push": self.push_of_rows}
        return {name: [self.t.graph.edge(x) for x in values or [0.0]] for name, values in made.items()}

    def wanted_of(self, s: StageTracer, k: int) -> list[Scalar]:
        return [s.read("wanted")[k]]


class MultiplierLoops(PairLoops):
    """The calls of a tile: those of the soft law, again and again with other multipliers."""

    e: MultiplierEvaluation

    def __init__(self, e: Any) -> None:
        super().__init__(e)
        assert e.problem.moreau
        self.splits = e.problem.moreau.splits
        e.sizes |= {"going": 1, "left": 1, "last": 1, "firm": 1, "begun": 1, "failed": 1}
        stages = {
            "decide": self._decide, "tell": self._tell, "lack": self._lack_rows, "renew": self._renew_rows,
            "part": self._part_rows, "fail": self._fail, "ease": self._ease_rows, "push": self._push_rows,
            "rest": self._rest,
        }  # fmt: skip
        e.add(stages)
        e.add_by_slot({
            "lack": self._lack, "renew": self._renew, "loosen": self._loosen, "part": self._part,
            "ease": self._ease, "push": self._push,
        })  # fmt: skip
        self.map = NaturalMap(self)

    def forward(self, c: StageCalls) -> None:
        """Fulfils the law as it is asked, where something has to part without that for what is kept, and where it
        was asked in vain beside that without friction."""
        c.fill(1.0, "felt", 0, 1)
        c.fill(0.0, "borne", 0, self.e.nv)
        touching = self.begun(c)
        c.fill(1.0, "going", 0, 1)
        c.fill(NO_RESIDUAL, "last", 0, 1)
        with c.f.loop(3, some=True) as loop:
            self.newton(c, touching)
            self._multiplied(c, touching)
            asked, eased, pushed = (loop.i.equals(k) for k in range(3))
            with c.f.when(asked):
                self._both(c, "part", touching)
                c.call("fail")
            with c.f.when(eased):
                c.call("tell")
            with c.f.when(pushed):
                c.call("rest")
            again = asked & c.some_above("going")
            with c.f.when(again):
                self._both(c, "ease", touching)
            with c.f.when(~(again | pushed)):
                self._touched(c, touching)
                self.crosses(c, touching)
                self.judge(c, touching)
                self.forces(c, touching)
            loop.leave(~(again | c.some_above("failed")))
            with c.f.when(eased):
                self._both(c, "push", touching)
                self._without_tangents(c, touching)

    def _without_tangents(self, c: StageCalls, touching: Any) -> None:
        """Takes the tangents out of the rows of places: so their cones push along normals alone."""
        for kind in self.e.alike:
            m, first = self.e.contacts[kind.law].group.size, self.e.records[kind.law].end
            with self.places(c, kind, touching) as (pair, block, _), c.f.loop(pair.rates) as i:
                for j in range(1, m):
                    self.put(c, block, i.i * m + (first + j), c.f.zero(c.l.type))

    def _multiplied(self, c: StageCalls, touching: Any) -> None:
        """Moves multipliers, and takes Newton's steps where that is slow, until the states that go on fulfil the
        law. What is done to a state is the same whatever the states beside it need."""
        c.fill(MULTIPLIER_STIFFNESS, "firm", 0, 1)
        c.at("begun").store(c.load("going"), c.l.bytes)
        with c.f.loop(MAX_MULTIPLIER_ROUNDS, some=True) as rounds:
            with c.f.loop(MULTIPLIER_STEPS, some=True) as loop:
                self._lacking(c, touching)
                loop.leave(~c.some_above("going"))
                self._both(c, "renew", touching)
                self.newton(c, touching)
            self._lacking(c, touching)
            rounds.leave(~c.some_above("going"))
            self.map.write(c, touching)
            rounds.leave(~c.some_above("going"))
        self._touched(c, touching)
        self.each(c, "loosen", touching)

    def _touched(self, c: StageCalls, touching: Any) -> None:
        """Writes the forces that c and the accelerations give, and g."""
        c.call("gradient")
        self.each(c, "touch", touching)

    def _lacking(self, c: StageCalls, touching: Any) -> None:
        self._both(c, "lack", touching)
        c.call("decide")

    def _both(self, c: StageCalls, stage: str, touching: Any) -> None:
        """A stage of a state, then that of its places."""
        c.call(stage)
        self.each(c, stage, touching)

    def weight_of(self, D: Scalar) -> Scalar:
        """The inverse weight of a row of this D."""
        return 1.0 / D * MULTIPLIER_STIFFNESS

    def _missing(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> tuple[list[Scalar], list[Scalar], Scalar]:
        """The acceleration of a place that is too much, its forces, its inverse weight."""
        m, block = x.group.size, s.here(0, at.S)
        y = [u + of(block, z) - c for u, z, c in zip(s.here(at.y, m), x.ref, s.here(at.slip, m))]
        return y, list(s.here(at.f, m)), s.here(at.slip + m, 1)[0]

    def _lack(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Measures by how much the impulses of a place miss the law, m/s."""
        left = worst = s.number("left")
        for z in missed(x.group, *self._missing(s, x, at)):
            worst = maximum(worst, abs(z) * self.e.problem.step)
        s.write(left=where(s.here(at.gap, 1)[0] < 0.0, worst, left))

    def _renew(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Moves c of a place by its forces and its slip, of states that go on; D as firm as they have it."""
        (y, f, weight), m, block = self._missing(s, x, at), x.group.size, s.here(0, at.S)
        going, firm = s.number("going") > 0.0, s.number("firm")
        moved = [c + z * weight / firm for c, z in zip(s.here(at.slip, m), f)]
        moved[0] = moved[0] + y[0] - slipping(x.group, y)[0]
        D = [where(going, where(of(block, z) > 0.0, firm / weight, 0.0), of(block, z)) for z in x.D]
        s.write_here({0: [*(where(going, z, of(block, old)) for z, old in zip(moved, x.ref)), *D]})

    def _loosen(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Goes back to the first D, in states that were begun with; forces stay what they are."""
        m, block, begun = x.group.size, s.here(0, at.S), s.number("begun") > 0.0
        moved = [u + of(block, z) for u, z in zip(s.here(at.y, m), x.ref)]
        new = self.held(s, x, at, moved, s.here(at.f, m))
        s.write_here({0: [where(begun, u, of(block, z)) for u, z in zip(new, (*x.ref, *x.D))]})

    @staticmethod
    def held(s: StageTracer, x: PackedRows, at: SlotLayout, moved: Vector, f: Vector) -> list[Scalar]:
        """c for which the soft law has the forces f at the accelerations J a, and the first D."""
        weight, block = s.here(at.slip + x.group.size, 1)[0], s.here(0, at.S)
        c = [u + z * weight * (1.0 / MULTIPLIER_STIFFNESS) for u, z in zip(moved, f)]
        return [*c, *(where(of(block, d) > 0.0, MULTIPLIER_STIFFNESS / weight, 0.0) for d in x.D)]

    def _lack_rows(self, s: StageTracer) -> None:
        """Measures by how much the impulses of joints miss their laws, m/s or rad/s."""
        h, worst, a, block = self.e.problem.step, 0.0 * s.number("left"), s.read("a"), s.read("main")
        for k, x in enumerate(self.e.rows):
            y = dot([of(block, z) for z in x.B[0]], [a[r] for r in x.rates]) - s.read("c")[k]
            force, weight = self.e.newton.answer(s, k, a).force, self.weight_of(of(block, x.D[0]))
            worst = maximum(worst, abs(missed(x.group, [y], force, weight)[0]) * h)
        s.write(left=worst)

    def _renew_rows(self, s: StageTracer) -> None:
        """Moves c of rows of joints by their forces, of states that go on."""
        a, block, going = s.read("a"), s.read("main"), s.number("going") > 0.0
        out = list(s.read("wanted"))
        for k, x in enumerate(self.e.rows):
            force = self.e.newton.answer(s, k, a).force[0]
            out[k] = where(going, s.read("c")[k] + force / of(block, x.D[0]), out[k])
        s.write(wanted=out)

    def _part_rows(self, s: StageTracer) -> None:
        """Writes the accelerations that move bodies, and as `going` the states in which a joint has to go back."""
        most: Scalar = 0.0 * s.number("left")
        for x in s.read("push"):
            most = maximum(most, x)
        s.write(moves=s.read("a"), going=where(most > 0.0, 1.0, 0.0))

    def _part(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Adds to `going` the states in which a place has to part."""
        parts = where(s.here(at.gap, 1)[0] < 0.0, s.here(at.slip + x.group.size + 1, 1)[0], 0.0)
        s.write(going=where(parts > 0.0, 1.0, s.number("going")))

    def _fail(self, s: StageTracer) -> None:
        """Tells the residual, but of states that settle with nothing that parts: they part without friction. Where
        things bounce only these go on, for velocities that part bodies are kept."""
        last, going = s.number("last"), s.number("going")
        failed = where(last > RESIDUAL_TOLERANCE, going, 0.0)
        s.write(failed=failed, residual=maximum(s.number("residual"), where(failed > 0.0, 0.0, last)))
        s.write(going=going if self.splits else failed)

    def _ease_rows(self, s: StageTracer) -> None:
        """Begins once more, without the velocities that take joints back; without the forces of what failed."""
        going, failed, push = s.number("going"), s.number("failed") > 0.0, s.read("push")
        c = [x - y for x, y in zip(s.read("c"), push)]
        s.write(c=c, wanted=[where(failed, x, y - z) for x, y, z in zip(c, s.read("wanted"), push)])
        s.write(live=going, alpha=0.0, last=where(going > 0.0, NO_RESIDUAL, s.number("last")))

    def _ease(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Takes from the wanted acceleration of a place the part that parts its bodies."""
        (first, *rest), push = s.here(at.slip, x.group.size), s.here(at.slip + x.group.size + 1, 1)[0]
        block, failed = s.here(0, at.S), s.number("failed") > 0.0
        c, (normal, *tangents) = [first - push, *rest], [of(block, z) for z in x.ref]
        ref = [where(failed, z, old) for z, old in zip(c, [normal - push, *tangents])]
        s.write_here({0: ref, at.slip: c[0]})

    def _push_rows(self, s: StageTracer) -> None:
        """Begins once more in states that failed, beside the impulses of what is kept: limits and normals push."""
        failed, pushed = s.number("failed"), [x + y for x, y in zip(s.read("c"), s.read("push"))]
        pushed[: len(self.e.rows)] = [0.0 if x.group.at_rates else c for x, c in zip(self.e.rows, pushed)]
        s.write(kept=s.read("a"), borne=[x + y for x, y in zip(s.read("borne"), s.read("r"))])
        s.write(wanted=pushed, c=pushed, going=failed, live=failed, alpha=0.0)
        s.write(last=where(failed > 0.0, NO_RESIDUAL, s.number("last")))
        s.write_some("main", {x[0]: 0.0 for x in self.e.rubbing if isinstance(x, tuple)})

    def _push(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Takes the wanted acceleration of a place for one that parts its bodies, along the normal alone."""
        c = [s.here(at.slip, 1)[0] + s.here(at.slip + x.group.size + 1, 1)[0], *[0.0] * (x.group.size - 1)]
        s.write_here({0: c, at.slip: c})

    def _rest(self, s: StageTracer) -> None:
        """Writes what moves bodies that parted so; where nothing parts them they move as they are kept. Of what is
        kept, the accelerations again."""
        failed, kept, old = s.number("failed") > 0.0, s.read("kept"), s.number("residual")
        parted = [where(s.number("going") > 0.0, x, y) for x, y in zip(kept, s.read("a"))]
        moves = [where(failed, x, y) for x, y in zip(parted, s.read("moves"))]
        s.write(moves=moves, a=kept if self.splits else moves)
        s.write(residual=where(failed, maximum(old, s.number("last")), old))

    def _decide(self, s: StageTracer) -> None:
        """Says which states go on, and keeps how far those are that did."""
        going, left = s.number("going") > 0.0, s.number("left")
        on = where(going, where(left > RESIDUAL_TOLERANCE, 1.0, 0.0), 0.0)
        stays = where(left > STALLING_SHARE * s.number("last"), where(left < STALLED, on, 0.0), 0.0)
        firm = minimum(s.number("firm") * where(stays > 0.0, STIFFNESS_GROWTH, 1.0), MAX_STIFFNESS)
        s.write(going=on, live=on, alpha=0.0, last=where(going, left, s.number("last")), firm=firm)

    def _tell(self, s: StageTracer) -> None:
        s.write(residual=maximum(s.number("residual"), s.number("last")))
