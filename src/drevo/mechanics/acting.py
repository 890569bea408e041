"""Efforts in the joints beside those of the drives: rotors, which are inertia, and passive forces.

A rotor of inertia J behind a gear of ratio N turns at N v and is felt as the armature I = N^2 J: I v^2 / 2 more
kinetic energy, so I on the diagonal of M and I a in tau; that it turns in space as well is left out, as in
Featherstone 2008, section 9.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..model.description import QUATERNIONS, Joint, JointDynamics, Model
from .jet import Jet, jet, jet_along
from .manifold import NEVER_ZERO, log_ball
from .rotation import from_quaternion
from .scalar import Scalar, Vector, accumulate, is_zero, sqrt
from .spatial import Vec

ParameterValue = Callable[[str, float], Scalar]
ACTING_FIELDS = (  # fields of JointDynamics that Acting has too
    "damping", "quadratic", "cubic", "friction", "stiffness", "stiffness2", "stiffness3", "reference", "offset",
)  # fmt: skip
FRICTION_WIDTH = 0.01  # rad/s or m/s: where dry friction is 0.71 of its size


def number_itself(name: str, value: float) -> Scalar:
    """The default choice: everything is a number."""
    return value


class Acting(NamedTuple):
    """The passive forces in a joint of n rates, on each coordinate x = ratio q + shift: see `JointDynamics`."""

    kind: str
    q: int
    v: int
    n: int
    ratio: float
    shift: float
    rest: tuple[float, ...]
    damping: Scalar
    quadratic: Scalar
    cubic: Scalar
    friction: Scalar
    stiffness: Scalar
    stiffness2: Scalar
    stiffness3: Scalar
    reference: Scalar
    offset: Scalar

    def coordinates(self, q: Vector) -> Vector:
        return q[self.q : self.q + self.n + (self.kind in QUATERNIONS)]

    def rates(self, v: Vector) -> Vector:
        return v[self.v : self.v + self.n]

    @property
    def springy(self) -> bool:
        return not all(map(is_zero, (self.stiffness, self.stiffness2, self.stiffness3)))

    @property
    def along_axes(self) -> bool:
        """Something depends on the axes along which rates are taken."""
        return not all(map(is_zero, (self.quadratic, self.cubic, self.friction)))


def offsets_of(model: Model) -> dict[str, tuple[int, int]]:
    """First coordinate and rate of every joint; a mimic joint has those of the joint that drives it."""
    at, iq, iv = {}, 0, 0
    for j in model.joints:
        at[j.name] = (iq, iv)
        iq, iv = iq + j.nq, iv + j.nv
    for j in model.joints:
        if j.mimic:
            at[j.name] = at[j.mimic.joint]
    return at


def armature(model: Model, value: ParameterValue) -> dict[int, Scalar]:
    """Inertia of the rotors by rate, kg m^2 or kg; that of a mimic joint as its driver feels it."""
    out: dict[int, Scalar] = {}
    offsets = offsets_of(model)
    for joint, d in _equipped(model):
        if d.armature:
            ratio = joint.mimic.multiplier if joint.mimic else 1.0
            size, first = value(f"{joint.name}.armature", d.armature), offsets[joint.name][1]
            for k in range(joint.sizes[1]):
                accumulate(out, first + k, size if ratio * ratio == 1.0 else ratio * ratio * size)
    return out


def acting(model: Model, value: ParameterValue = number_itself) -> tuple[Acting, ...]:
    """The passive forces in the joints."""
    out, offsets = [], offsets_of(model)
    for joint, d in _equipped(model):
        if not d.passive:
            continue
        ratio, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        sizes = [(n, getattr(d, n)) for n in ACTING_FIELDS]
        found: dict[str, Any] = {n: value(f"{joint.name}.{n}", x) if x else 0.0 for n, x in sizes}
        rest = d.rest or (0.0,) * (joint.sizes[0] - 1) + (1.0,)
        out.append(Acting(joint.kind, *offsets[joint.name], joint.sizes[1], ratio, offset, rest, **found))
    return tuple(out)


def _equipped(model: Model) -> Iterator[tuple[Joint, JointDynamics]]:
    return ((j, j.dynamics) for j in model.joints if j.dynamics)


def passive_forces(forces: Sequence[Acting], nv: int, q: Vector, v: Vector) -> list[Scalar]:
    """Efforts of dampers, friction and springs on the joints, (nv,) N m or N.

    Dry friction is smooth: v / sqrt(v^2 + FRICTION_WIDTH^2) of its size.
    """
    out: list[Scalar] = [0.0] * nv
    for f in forces:
        for k, x in enumerate(force_in(f, f.coordinates(q), f.rates(v), FRICTION_WIDTH), f.v):
            out[k] = out[k] + x
    return out


def force_in(f: Acting, x: Vector, u: Vector, width: float = FRICTION_WIDTH) -> list[Scalar]:
    """Passive efforts in one joint at its own coordinates and rates."""
    if f.kind not in QUATERNIONS:
        ratio, free = f.ratio, [f.shift - f.reference + f.ratio * y for y in x]
        return [ratio * (_against(f, ratio * w, width) - _spring(f, y, y) + f.offset) for w, y in zip(u, free)]
    R = from_quaternion(*x[3:]) if f.kind == "free" else None
    against = [_against(f, w, width) for w in u]
    if R is not None and f.along_axes:
        against[:3] = R.T @ Vec(*(_against(f, w, width) for w in R @ Vec(*u[:3])))
    out = [y + f.offset for y in against]
    if f.springy:
        ways = [Vec(*log_ball(f.rest[-4:], x[-4:]))]
        if R is not None:
            ways.insert(0, R.T @ (Vec(*x[:3]) - Vec(*f.rest[:3])))
        pull = [z for y in ways for z in _spring(f, sqrt(y.dot(y) + NEVER_ZERO), y)]
        out = [y - z for y, z in zip(out, pull)]
    return out


def _against(f: Acting, rate: Scalar, width: float) -> Scalar:
    """Damping and friction."""
    size = f.damping
    if not is_zero(f.quadratic):
        size = size + f.quadratic * abs(rate)
    if not is_zero(f.cubic):
        size = size + f.cubic * (rate * rate)
    if not is_zero(f.friction):
        size = size + f.friction * (1.0 / sqrt(rate * rate + width * width))
    return -(size * rate)


def resistance(f: Acting, rate: Scalar) -> Scalar:
    """-dF/dv of the dampers alone, v a rate."""
    slope = f.damping
    if not is_zero(f.quadratic):
        slope = slope + 2.0 * (f.quadratic * abs(rate))
    if not is_zero(f.cubic):
        slope = slope + 3.0 * (f.cubic * (rate * rate))
    return slope


def _spring(f: Acting, size: Scalar, way: Any) -> Any:
    """Stiffness times the displacement `way`; `size` is its length, signed for a number."""
    stiffness = f.stiffness
    if not is_zero(f.stiffness2) or not is_zero(f.stiffness3):
        stiffness = stiffness + size * (f.stiffness2 + size * f.stiffness3)
    return way * stiffness


def slopes(
    forces: Sequence[Acting], q: Vector, v: Vector, width: float = FRICTION_WIDTH
) -> Iterator[tuple[int, int, Scalar, Scalar]]:
    """Rate of the force, rate that moves it, and the derivatives by its coordinate and by itself."""
    for f in forces:
        x, u = f.coordinates(q), f.rates(v)
        for k in range(f.n):
            unit = [1.0 if i == k else 0.0 for i in range(f.n)]
            by_q = force_in(f, jet_along(x, f.kind, unit), u, width)
            by_v = force_in(f, x, [Jet(y, e) for y, e in zip(u, unit)], width)
            for r, (a, b) in enumerate(zip(by_q, by_v)):
                if r == k or f.kind in QUATERNIONS:
                    yield f.v + r, f.v + k, jet(a).d, jet(b).d


def weightless(model: Model) -> dict[str, float]:
    """Links whose weight is compensated, and how much of it."""
    return {link.name: link.gravcomp for link in model.links if link.gravcomp}


def without_passive(model: Model) -> Model:
    """The robot's model without passive forces; its rotors stay."""
    if not has_passive(model):
        return model
    joints = (replace(j, dynamics=j.dynamics.rotors) if j.dynamics else j for j in model.joints)
    links = (replace(link, gravcomp=0.0) if link.gravcomp else link for link in model.links)
    return replace(model, joints=tuple(joints), links=tuple(links), tendons=())


def has_passive(model: Model) -> bool:
    """Some joint or tendon has a passive force, or some weight is compensated."""
    pulled = any(t.pulls for t in model.tendons) or any(link.gravcomp for link in model.links)
    return pulled or any(d.passive for _, d in _equipped(model))
