"""One step of a sweep: the work on one body of one kind, its numbers read from a table and from slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....codegen.graph.node import Expr
from ....codegen.lower.loops import Place
from ....codegen.lower.lower import Lowered, lower
from ....codegen.store import native
from ....mechanics.acting import ACTING_FIELDS, Acting, force_in
from ....mechanics.algorithms.kinematics import Pose
from ....mechanics.body_table import ALL_BODY_NUMBERS, BODY_NUMBERS
from ....mechanics.joints import NO_FORCE, Force, Motion, Placement, place
from ....mechanics.scalar import Scalar, Vector, dot, sqrt
from ....mechanics.spatial import EYE, ZERO, Mat, RigidInertia, Sym, Vec
from ....mechanics.tree import Loose, Tree, TreeBody
from ...tracer import Tracer

# of joint, its axis, whether its frame stands parallel to the parent's, whether joints may have rotors; of a body
# in a run of loose rates 1 and the parent's freedoms, where it is in the run too, else 0; which passive forces act
Kind = tuple[str, int, bool, bool, int, tuple[str, ...]]
PIVOT_TEST_NUMBERS = (
    6  # numbers behind those of the freedoms: the right-hand side that tests the pivots, see `guard_pivots`
)
RESTS = 7  # numbers of the rest of a free joint's spring
ALL = ALL_BODY_NUMBERS + len(ACTING_FIELDS) + RESTS  # with what acts in the joint
TURNING = ("revolute", "helical")
WORLD_ROTATION_NUMBERS = 9  # with external wrenches the world's rotation comes before all else in a slot


class StepTracer(Tracer):
    """The inputs and outputs of one step, each with its place."""

    def __init__(self, kind: Kind, loaded: bool = False, united: bool = False) -> None:
        """loaded: with external wrenches; united: quaternions are made unit here, not expected to be."""
        super().__init__("step")
        self.kind, self.loaded, self.united = kind, loaded, united
        name, axis, parallel, geared, run, acts = kind
        x = self.read("table", table_width(kind))
        self.forces = dict(zip((*ACTING_FIELDS, *range(RESTS)), x[ALL_BODY_NUMBERS:])) if acts else {}
        inertia = RigidInertia(x[12], Vec(*x[13:16]), Sym(*x[16:22]))
        R = EYE if parallel else Mat.of((x[0:3], x[3:6], x[6:9]))
        self.body = TreeBody(
            "body", "joint", "1", -1, name, axis, R, Vec(*x[9:12]), x[22], 0, 0, x[23], inertia,  # type: ignore[arg-type]
        )  # fmt: skip
        names = ("joint",) * self.body.nv
        self.rotor = x[BODY_NUMBERS] if geared else 0.0
        armature = dict.fromkeys(range(self.body.nv), self.rotor) if geared else {}
        self.tree = Tree(
            (self.body,), {}, ZERO, self.body.nq, self.body.nv, names, self.context, armature=armature,
            loose={k: Loose(0, x[BODY_NUMBERS + 1 + k]) for k in range(self.body.nv)} if run else {},
        )  # fmt: skip

    def read(self, block: str, count: int, first: int = 0, number: int = 0) -> list[Expr]:
        """Entries of a block, or of that number among blocks of a name."""
        name = f"{block}{len(self.inputs)}"
        return self.input(Place(block, first + self.shift(block), number, name), count)

    def write(self, block: str, values: Vector, first: int = 0, number: int = 0) -> None:
        """Stores entries of a block."""
        self.output(Place(block, first + self.shift(block), number, f"{block}{len(self.outputs)}"), values)

    def shift(self, block: str) -> int:
        return WORLD_ROTATION_NUMBERS if self.loaded and block in ("own", "parent") else 0

    def step(self, units: Sequence[Sequence[Expr]] = ()) -> Lowered:
        """The traced work, lowered."""
        for quaternion in units:
            self.require_unit(quaternion)
        return lower(self.program(), fma=native.host().fma)

    # -- what several steps need ------------------------------------------------------------------------

    def passive(self) -> list[Scalar]:
        """The passive efforts of dampers, friction and springs on the joint."""
        acts, b = self.kind[5], self.body
        springy = any(a.startswith("stiff") for a in acts)
        x: Vector = [0.0] * b.nq
        if springy:
            read = self.argument(0)
            x = self.unit(read) if b.nq > 1 else read
        found: dict[str, Any] = {a: self.forces[a] if a in acts else 0.0 for a in ACTING_FIELDS}
        rest = tuple(self.forces[k] for k in range(b.nq if b.nq > 1 else 0))
        return force_in(Acting(b.kind, 0, 0, b.nv, 1.0, 0.0, rest, **found), x, self.argument(1))

    def own(self, count: int, offset: int) -> list[Expr]:
        return self.read("own", count, offset)

    def parent(self, count: int, offset: int) -> list[Expr]:
        return self.read("parent", count, offset)

    def argument(self, i: int) -> list[Expr]:
        return self.read("arg", self.body.nv if i else self.body.nq, number=i)

    def at(self) -> Placement:
        """The body in its parent; the sweep over all angles came before every loop."""
        trig = None
        if self.kind[0] in TURNING:
            trig = (self.body.factor * self.read("sines", 1)[0], self.read("cosines", 1)[0])
        still = self.kind[0] == "revolute"  # nothing but the angle
        return self.placement([] if still else self.argument(0), trig)

    def placement(self, q: Sequence[Expr], trig: tuple[Scalar, Scalar] | None) -> Placement:
        b = self.body
        x = [b.factor * y for y in q] if b.nq == 1 else self.unit(q)
        return place(b.kind, b.axis, b.R, b.p, b.pitch, x, trig)

    def unit(self, q: Sequence[Expr]) -> list[Scalar]:
        """Coordinates of a joint, their quaternion made unit where that is asked for."""
        size = 1.0 / sqrt(dot(q[-4:], q[-4:])) if self.united else 1.0
        return [*q[:-4], *(x * size for x in q[-4:])]

    def lost(self, first: int, width: int) -> Force:
        """The right-hand side of the body that tests the pivots; its freedoms begin at `first`."""
        return force_of(self.own(PIVOT_TEST_NUMBERS, first + width * self.body.nv)) if self.kind[4] else NO_FORCE

    def lose(self, X: Placement | None, lost: Force, first: int, width: int) -> None:
        """It is set, or (through the joint at X) added to the parent's."""
        if X is None and self.kind[4]:
            self.write("own", flat_of(lost), first + width * self.body.nv)
        elif X is not None and self.kind[4] > 1:
            at = first + width * (self.kind[4] - 1)
            total = force_of(self.parent(PIVOT_TEST_NUMBERS, at)) + X.force_to_parent(lost)
            self.write("parent", flat_of(total), at)

    def turn(self, X: Placement) -> None:
        """The world's rotation of the body, where wrenches in world axes come."""
        if self.loaded:
            x = self.parent(9, -WORLD_ROTATION_NUMBERS)
            self.write("own", numbers_of_mat(mat_of(x).mul(X.rotation)), -WORLD_ROTATION_NUMBERS)

    def quaternions(self) -> list[list[Expr]]:
        """The quaternions in q of the body, which the first step checks."""
        of_q = [x for x in self.inputs if x.name.home == ("arg", 0)] if self.body.nq >= 4 else []  # type: ignore[attr-defined]
        return [[Expr(self.graph, 2 * n) for n in x.nodes[-4:]] for x in of_q]


def table_width(kind: Kind) -> int:
    """Numbers of a body in the table."""
    return ALL if kind[5] else ALL_BODY_NUMBERS if kind[3] or kind[4] else BODY_NUMBERS


def motion_of(x: Vector) -> Motion:
    return Motion(Vec(*x[:3]), Vec(*x[3:6]))


def force_of(x: Vector) -> Force:
    return Force(Vec(*x[:3]), Vec(*x[3:6]))


def body_from(x: Vector) -> RigidInertia:
    """m, h, S."""
    return RigidInertia(x[0], Vec(*x[1:4]), Sym(*x[4:10]))


def mat_of(x: Vector) -> Mat:
    """A matrix (3, 3) of nine numbers, row by row."""
    return Mat.of((x[0:3], x[3:6], x[6:9]))


def numbers_of_mat(m: Mat) -> list[Scalar]:
    return [x for row in m for x in row]


def pose_of(x: Vector) -> Pose:
    return Pose(mat_of(x), Vec(*x[9:12]))


def numbers_of_pose(x: Pose) -> list[Scalar]:
    return [*numbers_of_mat(x.R), *x.p]


def flat_of(x: Motion | Force) -> list[Scalar]:
    return [*x[0], *x[1]]
