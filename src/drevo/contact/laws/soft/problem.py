"""The problem of a step under the soft law, out of a Model: slots of its candidates, rows of its joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ....compiler.tracer import Tracer
from ....errors import InputError
from ....ground import LEVEL, Uneven, ground_of
from ....mechanics.acting import offsets_of
from ....mechanics.algorithms.colliders import PARALLEL_SINE2
from ....mechanics.algorithms.kinematics import Poses
from ....mechanics.scalar import Scalar, where
from ....model.contact import JointSoftness
from ....model.description import Joint, Model
from ...convex.solids import radius_of, searched_places
from ...pairs import ContactCandidate, Weights, contact_candidates, inverse_weights, with_ground
from .couplings import EQUALITY, CouplingRow, JointRow, LoopRow, TendonRow
from .fluid import fluid_efforts
from .law import DryFriction, OneSided, Softness, contact_group
from .stages import Slot, SoftProblem

ROUND_GEOMS = ("sphere", "capsule")
KNOWN_LOOPS = (("point", True), ("weld", False))  # loops that the law knows, and whether they have no rotation


def soft_problem(
    model: Model, ground: object, step: float, method: str, repeat: int = 1, friction: float | None = None,
    law: str = "soft", apart: bool = False, t: Tracer | None = None,
) -> SoftProblem:  # fmt: skip
    """law: of contacts, by name.

    apart: with a slot for each place that is searched for, not one for all of a pair. t: a program in the making,
    of which numbers of the model are symbols. InputError where the law has no rule for what holds in the model.
    """
    unknown = sorted({loop.kind for loop in model.loops if (loop.kind, loop.rotation is None) not in KNOWN_LOOPS})
    if unknown:
        raise InputError(
            f"robot {model.name!r} has loops of the kinds {', '.join(unknown)}, which law='soft' does not know "
            "(it knows loops of points and welds of a rotation); take them out, or simulate with constraints and "
            "without ground"
        )
    floor, stepping = ground_of(ground), model.stepping
    if isinstance(floor, Uneven) and floor.friction:
        raise InputError("the soft law has no friction by place: give law='coulomb', or friction= of the step")
    standing = with_ground(model, "plane" if floor else None)
    standing = standing if friction is None else with_friction(standing, friction)
    weights = inverse_weights(standing, t)
    candidates = contact_candidates(standing, floor, searched=True, weights=weights)
    slots = tuple(
        _slot(x, law, stepping.cone, stepping.impratio, apart)
        for x in candidates
        if apart or not (x.searched and x.place)
    )
    kinds = coupling_rows, loop_rows, soft_joint_rows, tendon_rows
    rows = tuple(x for rows_of in kinds for x in rows_of(model, weights))
    if stepping.medium and method == "implicitfast":
        raise InputError(
            f"robot {model.name!r} moves in a medium, which implicitfast does not know: take euler or rk4"
        )
    medium = partial(fluid_efforts, model) if stepping.medium else None
    again = partial(soft_problem, ground=floor, step=step, method=method, friction=friction, law=law, apart=apart)
    return SoftProblem(model, step, slots, rows, stepping.impratio, method, repeat, medium=medium, apart=apart,
                       floor=floor if isinstance(floor, Uneven) else LEVEL, again=again)  # fmt: skip


def _slot(x: ContactCandidate, law: str, cone: str, impratio: float, apart: bool) -> Slot:
    holds = x.interaction
    mu = holds.friction[: holds.condim - 1]
    group = contact_group(law, cone, holds.condim, mu, impratio)
    soft = Softness(holds.solref, holds.solimp, holds.margin, holds.solref_friction)
    plane = x.geoms[0].kind == "plane"
    cheap = x.ground is None and plane and x.geoms[1].kind in ROUND_GEOMS
    near = None if cheap or x.ground else _near(x)
    links = x.geoms[0].link, x.geoms[1].link
    most = searched_places(*x.geoms) if x.searched and not apart else 1
    solids = x.solids if x.searched else None
    return Slot(x.bodies, x.touch, group, soft, x.weight, near, holds.by, links, most, solids,
                None if x.ground else x.solids, x.place)  # fmt: skip


def _near(x: ContactCandidate):  # type: ignore[no-untyped-def]
    """Spheres about both, or one and a plane."""
    a, b = x.solids
    margin = x.interaction.margin

    def spheres(poses: Poses) -> Scalar:
        way, reach = b.centre(poses) - a.centre(poses), radius_of(a.geom) + radius_of(b.geom) + margin
        return way.dot(way) - reach * reach

    def plane(poses: Poses) -> Scalar:
        return (b.centre(poses) - a.centre(poses)).dot(a.at(poses).axis) - (radius_of(b.geom) + margin)

    def parallel(poses: Poses) -> Scalar:
        """Negative where two capsules may touch at a second place, which is none unless they are parallel."""
        along = a.at(poses).axis.dot(b.at(poses).axis)
        return where(1.0 - along * along < 2.0 * PARALLEL_SINE2, spheres(poses), 1.0)

    if a.geom.kind == "plane":
        return plane
    return parallel if x.place and a.geom.kind == b.geom.kind == "capsule" else spheres


def coupling_rows(model: Model, weights: Weights) -> Iterator[CouplingRow]:
    """Yields the rows of couplings between joints, unless the model's steps leave them out."""
    if not model.couplings or "equality" in model.stepping.disabled:
        return
    offsets = offsets_of(model)
    for x in model.couplings:
        (q, v), (q2, v2) = offsets[x.joint], offsets[x.driver] if x.driver else (-1, -1)
        weight = weights.rates[v] + (weights.rates[v2] if x.driver else 0.0)
        yield CouplingRow((q, q2), (v, v2), x.coefficients, Softness(x.solref, x.solimp), weight)


def loop_rows(model: Model, weights: Weights) -> Iterator[LoopRow]:
    """Yields the rows that close kinematic loops, unless the model's steps leave them out."""
    if not model.loops or "equality" in model.stepping.disabled:
        return
    for x in model.loops:
        turn, move = (weights.bodies[x.link_a][k] + weights.bodies[x.link_b][k] for k in (1, 0))
        yield LoopRow(x, Softness(x.solref, x.solimp), (move, turn))


def soft_joint_rows(model: Model, weights: Weights) -> Iterator[JointRow]:
    """Dry friction and limits, unless the model's steps leave them out."""
    off, offsets = model.stepping.disabled, offsets_of(model)
    rates, soft = weights.rates, {x.joint: x for x in model.softness}
    for joint in model.joints:
        if joint.mimic:
            continue
        q, v = offsets[joint.name]
        told = soft.get(joint.name, JointSoftness(joint.name))
        if joint.dynamics and joint.dynamics.friction and "frictionloss" not in off:
            held = DryFriction(bound=joint.dynamics.friction)
            softness = Softness(told.friction_solref, told.friction_solimp)
            for k in range(joint.nv):
                if joint.kind == "free" and k < 3:
                    yield JointRow(v, q, held, softness, rates[v + k], axis=k)
                else:
                    yield JointRow(v + k, q + k, held, softness, rates[v + k])
        if joint.nq == joint.nv == 1 and "limit" not in off:
            yield from _limits(joint, told, q, v, rates[v])
        elif told.limit_angle is not None and "limit" not in off:
            softness = Softness(told.limit_solref, told.limit_solimp, told.limit_margin)
            yield JointRow(v, q, OneSided(), softness, rates[v], -1.0, told.limit_angle, ball=True)


def _limits(joint: Joint, told: JointSoftness, q: int, v: int, weight: Scalar) -> Iterator[JointRow]:
    limit, softness = joint.limit, Softness(told.limit_solref, told.limit_solimp, told.limit_margin)
    for sign, at in ((1.0, limit.lower), (-1.0, limit.upper)) if limit else ():
        if at is not None:
            yield JointRow(v, q, OneSided(), softness, weight, sign, at)


def tendon_rows(model: Model, weights: Weights) -> Iterator[TendonRow]:
    """Couplings, dry friction and limits of tendons, unless the model's steps leave them out."""
    off, weigh = model.stepping.disabled, weights.tendons
    of = {x.name: x for x in model.tendons}
    for c in () if "equality" in off else model.tendon_couplings:
        weight = weigh[c.tendon] + (weigh[c.driver] if c.driver else 0.0)
        coupling = (of.get(c.driver), c.coefficients)
        yield TendonRow(of[c.tendon], EQUALITY, Softness(c.solref, c.solimp), weight, coupling)
    for x in model.tendons:
        if x.friction and "frictionloss" not in off:
            softness = Softness(x.friction_solref, x.friction_solimp)
            yield TendonRow(x, DryFriction(bound=x.friction), softness, weigh[x.name])
        if x.limit_solref is None or "limit" in off:
            continue
        softness = Softness(x.limit_solref, x.limit_solimp, x.limit_margin)
        for sign, at in ((1.0, x.lower), (-1.0, x.upper)):
            if at is not None:
                yield TendonRow(x, OneSided(), softness, weigh[x.name], sign=sign, at=at)


def with_friction(model: Model, mu: float) -> Model:
    """The model with one coefficient of sliding friction everywhere; of 0 its contacts are frictionless."""
    changed = {"friction": None} if mu else {"friction": None, "condim": 1}
    geoms = (replace(x, friction=(mu, *x.friction[1:]), condim=x.condim if mu else 1) for x in model.geoms)
    return replace(model, geoms=tuple(geoms), pairs=tuple(replace(x, **changed) for x in model.pairs))
