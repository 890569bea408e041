"""What acts in the joints beside the drives: rotors, which are inertia, and passive forces.

A rotor of inertia J behind a gear of ratio N turns at N v and is felt as the armature I = N^2 J: I v^2 / 2 more
kinetic energy, so I on the diagonal of M and I a in tau; that it turns in space as well is left out, as in
Featherstone 2008, section 9.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..model.description import Joint, JointDynamics, Model
from .scalar import Scalar, Vector, accumulate, is_zero, sqrt

ParameterValue = Callable[[str, float], Scalar]
WIDTH = 0.01  # rad/s or m/s: where dry friction is 0.71 of its size


def number_itself(name: str, value: float) -> Scalar:
    """The default choice: everything is a number."""
    return value


class Acting(NamedTuple):
    """The passive forces on one coordinate x = ratio q[q] + offset of a joint, in x: see `JointDynamics`."""

    q: int
    v: int
    ratio: float
    offset: float
    damping: Scalar
    quadratic: Scalar
    friction: Scalar
    stiffness: Scalar
    reference: Scalar
    push: Scalar


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
    """The passive forces, coordinate by coordinate."""
    out, offsets = [], offsets_of(model)
    for joint, d in _equipped(model):
        if not d.passive:
            continue
        ratio, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        size = {n: value(f"{joint.name}.{n}", x) if x else 0.0 for n, x in _forces(d)}
        iq, iv = offsets[joint.name]
        for k in range(joint.sizes[1]):
            out.append(Acting(iq + k, iv + k, ratio, offset, *size.values()))
    return tuple(out)


def _equipped(model: Model) -> Iterator[tuple[Joint, JointDynamics]]:
    return ((j, j.dynamics) for j in model.joints if j.dynamics)


def _forces(d: JointDynamics) -> list[tuple[str, float]]:
    names = ("damping", "quadratic", "friction", "stiffness", "reference", "offset")
    return [(n, getattr(d, n)) for n in names]


def passive_forces(forces: Sequence[Acting], nv: int, q: Vector, v: Vector, width: float = WIDTH) -> list[Scalar]:
    """What dampers, friction and springs exert on the joints, (nv,) N m or N.

    Dry friction is smooth: v / sqrt(v^2 + width^2) of its size.
    """
    out: list[Scalar] = [0.0] * nv
    for f in forces:
        rate = f.ratio * v[f.v]
        total = f.push - f.damping * rate
        if not is_zero(f.quadratic):
            total = total - f.quadratic * sqrt(rate * rate) * rate
        if not is_zero(f.friction):
            total = total - f.friction * rate * (1.0 / sqrt(rate * rate + width * width))
        if not is_zero(f.stiffness):
            total = total - f.stiffness * (f.ratio * q[f.q] + (f.offset - f.reference))
        out[f.v] = out[f.v] + f.ratio * total
    return out


def slopes(forces: Sequence[Acting], v: Vector, width: float = WIDTH) -> Iterator[tuple[int, Scalar, Scalar]]:
    """Rate and the derivatives of its passive force by its coordinate and by the rate, force by force."""
    for f in forces:
        rate, square = f.ratio * v[f.v], f.ratio * f.ratio
        by_v = -f.damping
        if not is_zero(f.quadratic):
            by_v = by_v - 2.0 * f.quadratic * sqrt(rate * rate)
        if not is_zero(f.friction):
            inverse = 1.0 / sqrt(rate * rate + width * width)
            by_v = by_v - f.friction * (width * width) * (inverse * inverse * inverse)
        yield f.v, -square * f.stiffness, square * by_v


def without_passive(model: Model) -> Model:
    """The same robot without passive forces; its rotors stay."""
    if not has_passive(model):
        return model
    joints = (replace(j, dynamics=JointDynamics(j.dynamics.armature)) if j.dynamics else j for j in model.joints)
    return replace(model, joints=tuple(joints), tendons=())


def has_passive(model: Model) -> bool:
    """Some joint or tendon has a passive force."""
    return any(d.passive for _, d in _equipped(model)) or any(t.pulls for t in model.tendons)
