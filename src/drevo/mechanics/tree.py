"""Tree: a Model made ready for the algorithms.

Welded links are one body; every joint is a chain of elementary joints whose axis is a coordinate axis of its
own body; bodies are numbered depth first. Numbers may be scalars of a graph: `value` decides, by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ..errors import TraceError
from ..model.description import Inertial, Link, Model, Tendon
from ..model.description import Joint as JointData
from .acting import Acting, ParameterValue, acting, armature, number_itself, offsets_of, weightless
from .joints import NQ_NV, Elementary, Motion, Placement, elementary_chain, gamma, motion_subspace, place, posed
from .rotation import ZERO_DIFFERENCE, axis_rotation, carrying, snap_rotation
from .scalar import Context, Scalar, Vector, cos, dot, is_zero, sin
from .spatial import EYE, SYM_ZERO, UNIT_VECS, ZERO, ZERO_INERTIA, Mat, RigidInertia, Sym, Vec, inertia_of
from .tree_indices import tour


class TreeBody(NamedTuple):
    """One body and the elementary joint that carries it.

    parent: -1 is the ground. R, p: placement in the parent at q = 0. axis: k of e_k.
    q, v: first coordinate and rate; the joint's own angle or shift is factor * q[q].
    phase: turned about the axis besides, where a re-framing moved the joint's zero.
    """

    link: str
    joint: str
    number: str  # how people name it: "3", "3a", "3b" for the steps of one joint, "3t" in axes of its own
    parent: int
    kind: str
    axis: int
    R: Mat
    p: Vec
    pitch: Scalar
    q: int
    v: int
    factor: float
    inertia: RigidInertia
    phase: Scalar = 0.0

    @property
    def nq(self) -> int:
        return NQ_NV[self.kind][0]

    @property
    def nv(self) -> int:
        return NQ_NV[self.kind][1]


class Owner(NamedTuple):
    """Whose coordinates from q and rates from v on are: an elementary joint, or one by formula ("custom")."""

    joint: str
    kind: str
    q: int
    nq: int
    v: int
    nv: int


class FormulaJoint(NamedTuple):
    """A joint by formula: the coordinates of its `steps` bodies, from `body` on, are gamma of its owner's."""

    owner: Owner
    body: int
    steps: int
    gamma: Callable[[Vector], list[Scalar]]

    def of(self, q: Vector) -> Vector:
        """The coordinates that it is a formula of."""
        return q[self.owner.q : self.owner.q + self.owner.nq]


class LinkFrame(NamedTuple):
    """The pose of a link's own frame in the body that holds it."""

    body: int
    R: Mat
    p: Vec


class Loose(NamedTuple):
    """A rate of a run of bodies that do not hold themselves: the first of them, and a weight (or 0)."""

    run: int
    weight: Scalar


@dataclass(frozen=True, slots=True)
class Tree:
    """Bodies depth first, link frames by name, gravity in world axes, sizes of q and v."""

    bodies: tuple[TreeBody, ...]
    frames: dict[str, LinkFrame]
    gravity: Vec
    nq: int
    nv: int
    joint_names: tuple[str, ...]  # of each elementary coordinate, for messages
    context: Context = field(default_factory=Context)
    carried: Vector = ()  # by rate, see `carried_inertia`
    loose: Mapping[int, Loose] = field(default_factory=dict)  # by rate, see `loose_rates`
    armature: Mapping[int, Scalar] = field(default_factory=dict)  # inertia of rotors by rate, kg m^2 or kg
    acting: tuple[Acting, ...] = ()  # damping, friction, springs
    tendons: tuple[Tree, tuple[Tendon, ...]] | None = None  # with the tree on which they pull
    lift: Tree | None = None  # with what is compensated of the bodies' masses
    unit: Scalar = 1.0  # metres in the lengths of the bodies; coordinates and forces stay in metres and newtons
    formulas: tuple[FormulaJoint, ...] = ()  # their bodies have the coordinates of `expanded`
    central: Mapping[str, tuple[Vec, Sym]] = field(
        default_factory=dict
    )  # of links: centre of mass, inertia about it
    locked: bool = False  # bodies have the inertia of their wheels about the axis too, see `wheels.locked`

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def parents(self) -> list[int]:
        return [b.parent for b in self.bodies]

    @property
    def expanded(self) -> Tree:
        """The tree in which the steps of joints by formula own their coordinates, after all others."""
        steps = [f.owner.joint for f in self.formulas for _ in range(f.steps)]
        names = (*self.joint_names, *steps)
        return self.replace(
            nq=self.nq + len(steps), nv=self.nv + len(steps), formulas=(), joint_names=names, carried=()
        )

    def expanded_coordinates(self, q: Vector) -> list[Scalar]:
        """q of the expanded tree."""
        return [*q, *(x for f in self.formulas for x in f.gamma(f.of(q)))]

    def owners(self) -> Iterator[Owner]:
        """Whose the coordinates are, in the order of the bodies; one that drives several joints is each one's."""
        by_formula = {f.body: f for f in self.formulas}
        for i, b in enumerate(self.bodies):
            if i in by_formula:
                yield by_formula[i].owner
            if b.q < self.nq:
                yield Owner(b.joint, b.kind, b.q, b.nq, b.v, b.nv)

    def tour(self) -> Iterator[tuple[bool, int]]:
        """Limb by limb: (True, i) on the way out, (False, i) on the way back."""
        return tour(self.parents)

    def placements(self, q: Vector) -> list[Placement]:
        """The pose of every body in its parent; all sines and cosines are formed first, once per angle."""
        q = self.expanded_coordinates(q) if self.formulas else q
        own = [self._coordinates(b, q) for b in self.bodies]
        trig = [
            (sin(x[0] + b.phase), cos(x[0] + b.phase)) if b.kind in ("revolute", "helical") else None
            for b, x in zip(self.bodies, own)
        ]
        for b, t in zip(self.bodies, trig):
            if t is not None:
                self.context.name(f"s_{b.number}", -t[0] if b.factor == -1.0 and is_zero(b.phase) else t[0])
                self.context.name(f"c_{b.number}", t[1])
        return [place(b.kind, b.axis, b.R, b.p, b.pitch, x, t) for b, x, t in zip(self.bodies, own, trig)]

    @staticmethod
    def _coordinates(b: TreeBody, q: Vector) -> list[Scalar]:
        if b.nq > 1:
            return list(q[b.q : b.q + b.nq])
        return [b.factor * q[b.q]]

    def rates(self, v: Vector) -> list[Motion]:
        """Each joint's own motion in its moved frame, from rates (or accelerations)."""
        out = []
        for b in self.bodies:
            total = Motion(ZERO, ZERO)
            for column, rate in zip(self.motion_subspace(b), v[b.v : b.v + b.nv]):
                total = total + column * (b.factor * rate)
            out.append(total)
        return out

    @staticmethod
    def motion_subspace(b: TreeBody) -> list[Motion]:
        return motion_subspace(b.kind, b.axis, b.pitch)

    # -- names for people; no-ops on numbers ------------------------------------------------------------

    def named(self, x: Scalar, label: str) -> Scalar:
        self.context.name(label, x)
        return x

    def named_vec(self, v: Vec, label: str, i: int) -> Vec:
        """label: a letter, and perhaps what stands above it, a^c."""
        if type(self.context) is not Context:
            letter, hat, above = label.partition("^")
            for axis, x in zip("xyz", v):
                self.context.name(f"{letter}_{self.bodies[i].number}{axis}{hat}{above}", x)
        return v

    def named_sym(self, m: Sym, label: str, i: int) -> Sym:
        """Names the six entries of a symmetric matrix of body i."""
        letter, hat, above = label.partition("^")
        for axes, x in zip(("xx", "xy", "xz", "yy", "yz", "zz"), m):
            self.context.name(f"{letter}_{self.bodies[i].number}{axes}{hat}{above}", x)
        return m

    def named_mat(self, m: Mat, label: str, i: int) -> Mat:
        if type(self.context) is not Context:
            for a, row in zip("xyz", m):
                for b, x in zip("xyz", row):
                    self.context.name(f"{label}_{self.bodies[i].number}{a}{b}", x)
        return m

    def guard(self, pivot: Scalar, scale: Scalar, v: int) -> None:
        """Machine code says where a pivot of rate v is lost in the rounding of what it is left of."""
        self.context.guard(pivot, scale, self.joint_names[v])

    def section(self, i: int, title: str = "") -> None:
        self.context.section(f"{title or 'link'} {self.bodies[i].number} ({self.bodies[i].link})")

    def with_rotors(self, tau: list[Scalar], a: Vector) -> list[Scalar]:
        """Joint forces with what accelerates the rotors."""
        for k, x in self.armature.items():
            tau[k] = tau[k] + x * a[k]
        return tau

    def rotor_energy(self, v: Vector) -> Scalar:
        """Kinetic energy of the rotors, J."""
        return 0.5 * dot([*self.armature.values()], [v[k] * v[k] for k in self.armature])

    def replace(self, **changes: object) -> Tree:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Builder:
    """State of one pass from Model to Tree."""

    model: Model
    links: Mapping[str, Link]
    value: ParameterValue
    snap: float
    bodies: list[partial[TreeBody]] = field(default_factory=list)  # each waits for its inertia
    frames: dict[str, LinkFrame] = field(default_factory=dict)
    inertias: list[RigidInertia] = field(default_factory=list)
    shares: Mapping[str, float] | None = None
    central: dict[str, tuple[Vec, Sym]] = field(default_factory=dict)
    formulas: list[FormulaJoint] = field(default_factory=list)
    steps: int = 0  # of the joints by formula so far


def build_tree(
    model: Model,
    value: ParameterValue = number_itself,
    context: Context | None = None,
    snap: float = ZERO_DIFFERENCE,
    forces: bool = False,
    shares: Mapping[str, float] | None = None,
) -> Tree:
    """The tree of a model. `value(name, number)` may return a symbol for a parameter; names are
    "<link>.mass", "<link>.com.x", "<link>.inertia.xy" (about the centre of mass), "<joint>.origin.x",
    "<joint>.child.origin.x" of a link apart from its joint, "<joint>.lead", "<joint>.armature" and the other
    fields of `JointDynamics`, "<link>.pose.x" of a link of motion capture, "gravity.z". Rotation entries within
    `snap` of 0 or +-1 are taken as such.
    forces: with those that act in the joints. shares: of the masses of links, all that there is of their inertia.
    """
    state = _Builder(model, {l.name: l for l in model.links}, value, snap, shares=shares)
    offsets = offsets_of(model)
    by_parent: dict[str, list[JointData]] = {}
    for joint in model.joints:
        by_parent.setdefault(joint.parent, []).append(joint)
    state.frames[model.root] = LinkFrame(-1, EYE, ZERO)
    stack = list(reversed(by_parent.get(model.root, [])))
    numbered = _numbering(model)
    while stack:
        joint = stack.pop()
        _attach(state, joint, offsets, numbered)
        frame = state.frames[joint.child]
        inertial = state.links[joint.child].inertial
        if frame.body >= 0 and inertial is not None:
            body = _inertia(state, joint.child, inertial)
            if frame.R != EYE or not frame.p.zero:
                body = body.moved(frame.R, frame.p)
            before = state.inertias[frame.body]
            state.inertias[frame.body] = body if before is ZERO_INERTIA else before + body
        stack.extend(reversed(by_parent.get(joint.child, [])))
    bodies = tuple(b(RigidInertia(i.m, i.h, _clean(i.S))) for b, i in zip(state.bodies, state.inertias))
    g = Vec(*(value(f"gravity.{a}", x) if x else 0.0 for a, x in zip("xyz", model.gravity)))
    names = tuple(j.name for j in model.moving_joints for _ in range(j.nv))
    made = Tree(
        bodies, state.frames, g, model.nq, model.nv, names, context or Context(),
        armature={} if shares else armature(model, value), formulas=tuple(state.formulas), central=state.central,
    )  # fmt: skip
    if not forces:
        return made
    part = weightless(model)
    lift = build_tree(model, value, context, snap, shares=part) if part else None
    return made.replace(acting=acting(model, value), lift=lift)


def plain_tree(model: Model, what: str, snap: float = ZERO_DIFFERENCE, remedy: str = "") -> Tree:
    """Builds the tree of a model for `what`, which knows no joints by formula: TraceError where there is one.

    remedy: what to do then, for the message.
    """
    tree = build_tree(model, snap=snap)
    if tree.formulas:
        joint = tree.formulas[0].owner.joint
        raise TraceError(
            f"{what}: joint {joint!r} is by formula, which it does not cover{remedy and f': {remedy}'}"
        )
    return tree


def _numbering(model: Model) -> dict[str, str]:
    """Numbers of the moving joints for people, 1.. in the order of q; mimic joints after them."""
    moving = [j for j in model.joints if j.kind != "fixed"]
    ordered = [j for j in moving if not j.mimic] + [j for j in moving if j.mimic]
    return {j.name: str(i + 1) for i, j in enumerate(ordered)}


def _attach(
    state: _Builder, joint: JointData, offsets: dict[str, tuple[int, int]], numbered: dict[str, str]
) -> None:
    """Adds the bodies of one joint (none for a weld) and the frame of its child link."""
    parent = state.frames[joint.parent]
    turn = snap_rotation(_matrix(joint.rotation), state.snap)
    if state.links[joint.child].mocap:
        origin, turn = posed(joint, turn, state.value)
    else:
        origin = _lengths(state, f"{joint.name}.origin", joint.origin)
    R = snap_rotation(_times(parent.R, turn), state.snap)
    p = origin if parent.R == EYE and parent.p.zero else parent.p + parent.R @ origin
    if joint.kind == "fixed":
        state.frames[joint.child] = LinkFrame(parent.body, R, p)
        return
    pitch = state.value(f"{joint.name}.lead", joint.lead) * (0.5 / math.pi) if joint.lead else 0.0
    chain = elementary_chain(joint, pitch)
    body, (iq, iv) = parent.body, offsets[joint.name]
    if joint.dynamics and joint.dynamics.rotor:
        _add_rotor(state, joint, parent, (iq, iv), numbered[joint.name])
    if joint.formula:
        iq, iv = _by_formula(state, joint, len(chain), iq, iv)
    for step, e in enumerate(chain):
        k, sign, A = _axis(e)
        factor, shift = sign, 0.0
        if joint.mimic and not joint.formula:
            factor, shift = sign * joint.mimic.multiplier, sign * joint.mimic.offset
        R, p = _with_offset(e, k, _times(R, A), p, shift)
        number = numbered[joint.name] + ("abcdef"[step] if len(chain) > 1 else "")
        state.bodies.append(
            partial(TreeBody, joint.child, joint.name, number, body, e.kind, k, snap_rotation(R, state.snap), p,
                    e.pitch, iq + step, iv + step, factor)
        )  # fmt: skip
        state.inertias.append(ZERO_INERTIA)
        body = len(state.bodies) - 1
        R, p = EYE if A is EYE else A.T, ZERO  # the joint's moved frame, seen from the body
    if joint.apart:
        p = R @ _lengths(state, f"{joint.name}.child.origin", joint.child_origin)
        R = snap_rotation(_times(R, snap_rotation(_matrix(joint.child_rotation), state.snap)), state.snap)
    state.frames[joint.child] = LinkFrame(body, R, p)


def _add_rotor(state: _Builder, joint: JointData, parent: LinkFrame, at: tuple[int, int], number: str) -> None:
    """The rotor of a joint as a hinged body of its parent's, whose inertia has it at rest: J e e^T."""
    d = joint.dynamics
    assert d is not None and d.rotor_axis is not None
    size = state.value(f"{joint.name}.rotor", d.rotor)
    gear = d.gear * joint.mimic.multiplier if joint.mimic else d.gear
    k, sign, A = _axis(Elementary("revolute", d.rotor_axis))
    R = snap_rotation(_times(parent.R, A), state.snap)
    moments = [-0.5 * size if i == k else 0.5 * size for i in range(3)]  # turned: J about e_k alone
    own = Sym(moments[0], 0.0, 0.0, moments[1], 0.0, moments[2])
    state.bodies.append(
        partial(TreeBody, "", joint.name, f"{number}r", parent.body, "revolute", k, R, ZERO, 0.0, *at, sign * gear)
    )
    state.inertias.append(RigidInertia(0.0, ZERO, own))
    if parent.body >= 0:
        less = RigidInertia(0.0, ZERO, SYM_ZERO - own).turned(R)
        state.inertias[parent.body] = state.inertias[parent.body] + less


def _by_formula(state: _Builder, joint: JointData, steps: int, iq: int, iv: int) -> tuple[int, int]:
    """Enters a joint by formula; the first coordinate and rate of its steps."""
    nq, nv = joint.sizes
    owner = Owner(joint.name, joint.kind, iq, nq, iv, nv)
    state.formulas.append(FormulaJoint(owner, len(state.bodies), steps, partial(gamma, joint)))
    state.steps += steps
    return state.model.nq + state.steps - steps, state.model.nv + state.steps - steps


def _lengths(state: _Builder, name: str, origin: Sequence[float]) -> Vec:
    return Vec(*(state.value(f"{name}.{a}", x) if x else 0.0 for a, x in zip("xyz", origin)))


def _times(a: Mat, b: Mat) -> Mat:
    """a b; most placements of large trees are parallel, and cost nothing."""
    return a if b == EYE else b if a == EYE else a.mul(b)


def _matrix(rows: Sequence[Sequence[float]]) -> Mat:
    return EYE if rows == EYE else Mat.of(rows)


def _axis(e: Elementary) -> tuple[int, float, Mat]:
    """k, sign and re-framing A, so that A takes sign * e_k to the joint axis."""
    if e.kind in ("spherical", "free"):
        return 0, 1.0, EYE
    k = max(range(3), key=lambda i: abs(e.axis[i]))
    if all(abs(x) < 1e-15 for i, x in enumerate(e.axis) if i != k):
        return k, math.copysign(1.0, e.axis[k]), EYE
    sign = math.copysign(1.0, e.axis[k])
    return k, sign, carrying(k, [sign * x for x in e.axis])


def _with_offset(e: Elementary, k: int, R: Mat, p: Vec, shift: float) -> tuple[Mat, Vec]:
    """A mimic joint's constant offset, folded into the placement and never into the angle."""
    if shift == 0.0:
        return R, p
    if e.kind in ("prismatic", "helical"):
        p = p + (R @ UNIT_VECS[k]) * (shift if e.kind == "prismatic" else e.pitch * shift)
    if e.kind in ("revolute", "helical"):
        R = R.mul(axis_rotation(k, math.sin(shift), math.cos(shift)))
    return R, p


def _inertia(state: _Builder, link: str, inertial: Inertial) -> RigidInertia:
    def get(name: str, x: float) -> Scalar:
        return state.value(f"{link}.{name}", x) if x else 0.0

    com = Vec(*(get(f"com.{a}", x) for a, x in zip("xyz", inertial.com)))
    if state.shares is not None:
        mass = get("mass", inertial.mass) * state.shares.get(link, 0.0)
        return RigidInertia(mass, com * mass, SYM_ZERO)
    t = Sym.of(Mat.of(inertial.tensor))
    names = ("xx", "xy", "xz", "yy", "yz", "zz")
    tensor = Sym(*(get(f"inertia.{n}", x) for n, x in zip(names, t)))
    state.central[link] = com, tensor
    return inertia_of(get("mass", inertial.mass), com, tensor)


def _clean(S: Sym) -> Sym:
    """Rounding left-overs of the second moments become structural zeros."""
    if not all(isinstance(x, (int, float)) for x in S):
        return S
    scale = abs(S.xx) + abs(S.yy) + abs(S.zz)
    return Sym(*(0.0 if abs(x) <= ZERO_DIFFERENCE * scale else x for x in S)) if scale else SYM_ZERO
