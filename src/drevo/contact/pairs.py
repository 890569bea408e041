"""The candidates of contact: which places of a robot may touch what, and by which parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ..compiler.tracer import Tracer
from ..errors import NumericsError, warn_caller
from ..ground import Deciding, Uneven, ground_of
from ..mechanics.acting import number_itself
from ..mechanics.algorithms.boxes import PlacedGeom, Proximity
from ..mechanics.algorithms.colliders import between, found_place, on_ground, places
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.algorithms.inertia_matrix import Factors, elimination_order, mass_matrix_rows
from ..mechanics.algorithms.kinematics import Pose, Poses, jacobian
from ..mechanics.algorithms.passive import tendon_length
from ..mechanics.configuration import neutral
from ..mechanics.scalar import Scalar, Vector, dot, sqrt
from ..mechanics.spatial import Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..model.contact import ContactPair, Geom, Solimp, Solref
from ..model.description import IDENTITY, ORIGIN, Joint, Model
from ..model.pairing import (
    LEFT_OUT,
    SEARCHED_PAIRS,
    TOUCHING_PAIRS,
    as_ruled,
    touching_pairs,
    weld_bodies,
    without_rule,
)
from .convex.solids import radius_of, searched_places

LEAST_FRICTION = 1e-5
LEAST_SOLMIX = 1e-15  # of solmix: below it a geom has none
OF_PAIRS = "pairs of the kinds"  # how notes on pairs begin
FLOOR_NAME = "ground"
ALL_CONTACT_BITS = 2**31 - 1  # bits of what touches everything


class Interaction(NamedTuple):
    """Contact parameters where two geoms touch. friction: of two tangents, of spin, of rolling about two axes."""

    condim: int
    friction: tuple[float, float, float, float, float]
    solref: Solref
    solimp: Solimp
    margin: float
    gap: float
    solref_friction: Solref = (0.0, 0.0)
    by: Deciding = ()  # geoms whose friction of sliding it is; the larger one's


class ContactCandidate(NamedTuple):
    """A place where two bodies of a tree may touch; -1 is the ground. The normal goes from first to second.

    weight: the inverse weights of both bodies together, of translation and of rotation. touch: distance, point and
    frame, near: a cheaper lower bound of the distance, both from the poses of the bodies.
    """

    geoms: tuple[Geom, Geom]
    place: int  # among those of the pair
    bodies: tuple[int, int]
    interaction: Interaction
    weight: tuple[Scalar, Scalar]
    solids: tuple[HeldGeom, HeldGeom]
    ground: Uneven | None = None
    searched: bool = False  # whether the places of the pair are searched for in machine code

    def touch(self, poses: Poses, place: Vector = ()) -> Proximity:
        """place: what has been searched for, as of `found_place`."""
        a, b = (solid.at(poses) for solid in self.solids)
        if self.searched:
            proximity = found_place(a, b, place)
        else:
            proximity = (on_ground(self.ground.surface, b) if self.ground else between(a, b))[self.place]
        if not any(any(solid.geom.surface) for solid in self.solids):
            return proximity
        (u, w), (u2, w2) = (_surface(solid.geom, at, proximity.point) for solid, at in zip(self.solids, (a, b)))
        n, *tangents = proximity.frame
        return proximity._replace(slip=(*(t.dot(u2 - u) for t in tangents), n.dot(w2 - w)))

    def sized(self, geoms: Mapping[str, Geom]) -> ContactCandidate:
        """The place with other geoms of the same names."""
        a, b = (x._replace(geom=geoms[x.geom.name]) for x in self.solids)
        return self._replace(geoms=(a.geom, b.geom), solids=(a, b))

    def near(self, poses: Poses) -> Scalar | None:
        """By spheres about both; None against uneven ground."""
        a, b = self.solids
        if self.ground:
            return None
        p, q = a.centre(poses), b.centre(poses)
        if a.geom.kind == "plane":
            return (q - p).dot(a.at(poses).axis) - radius_of(b.geom)
        way = q - p
        return sqrt(way.dot(way)) - (radius_of(a.geom) + radius_of(b.geom))


class HeldGeom(NamedTuple):
    """A geom in the body of a tree that has it, or in its own link where that stands on the ground."""

    geom: Geom
    body: int
    R: Mat
    p: Vec
    ordered: bool = False  # as of `PlacedGeom`

    def at(self, poses: Poses) -> PlacedGeom:
        pose = self._carrier(poses).compose(self.R, self.p)
        corners = self.geom.points if self.geom.kind == "hull" else ()
        points = tuple(Vec(*x) for x in corners)
        return PlacedGeom(self.geom.kind, self.geom.size, pose.R, pose.p, points, self.ordered)

    def centre(self, poses: Poses) -> Vec:
        pose = self._carrier(poses)
        return pose.p + pose.R @ self.p

    def _carrier(self, poses: Poses) -> Pose:
        return poses[self.body if self.body >= 0 else self.geom.link]


def contact_candidates(
    model: Model, ground: object = None, searched: bool = False, weights: Weights | None = None
) -> tuple[ContactCandidate, ...]:
    """All places where the robot may touch itself, what stands beside it, and the ground.

    ground: None for the planes of the model itself; "plane" for z = 0 where it has none; `drevo.ground.grid` or
    `drevo.ground.function` in their place. searched: with the pairs whose places are searched for, of them a hull
    on a plane, which else has a place at every corner. weights: the model's, where they are known.
    """
    floor = ground_of(ground)
    model = with_ground(model, floor)
    tree, weigh = build_tree(model), (weights or inverse_weights(model)).bodies
    swept = model.stepping.noslip > 0  # by sweeps that stop before their end, so that order counts
    placed = {geom.name: held_geom(tree, geom)._replace(ordered=swept) for geom in model.geoms}
    found = []
    for a, b, interaction in interactions(model, searched):
        ends, bodies = (placed[a.name], placed[b.name]), (placed[a.name].body, placed[b.name].body)
        weight = weigh[a.link][0] + weigh[b.link][0], weigh[a.link][1] + weigh[b.link][1]
        uneven = floor if a.name == FLOOR_NAME and isinstance(floor, Uneven) else None
        kinds = a.kind, b.kind
        sought = kinds in SEARCHED_PAIRS and not uneven and (searched or kinds not in TOUCHING_PAIRS)
        count = searched_places(a, b) if sought else places(kinds, len(b.points))
        for k in range(count):
            found.append(ContactCandidate((a, b), k, bodies, interaction, weight, ends, uneven, sought))
    return tuple(found)


def _surface(geom: Geom, at: PlacedGeom, point: Vec) -> tuple[Vec, Vec]:
    """The velocity of a geom's surface at a point, and its angular velocity."""
    turns = at.R @ Vec(*geom.surface[3:])
    return at.R @ Vec(*geom.surface[:3]) + turns.cross(point - at.p), turns


def held_geom(tree: Tree, geom: Geom) -> HeldGeom:
    """A geom in the body of the tree that carries it."""
    frame = tree.frames[geom.link]
    R, p = Mat.of(geom.rotation), Vec(*geom.origin)
    if frame.body < 0:
        return HeldGeom(geom, frame.body, R, p)
    return HeldGeom(geom, frame.body, frame.R.mul(R), frame.p + frame.R @ p)


def with_ground(model: Model, ground: Uneven | str | None) -> Model:
    """The model with what touches as geoms: contact points where it has no other, and the ground given."""
    geoms = model.geoms or tuple(
        Geom(f"point_{k}", point.link, "sphere", (0.0,), point.point, conaffinity=0)
        for k, point in enumerate(model.contacts)
    )
    welded = weld_bodies(model)
    floors = [geom for geom in geoms if geom.kind in ("plane", "hfield") and welded[geom.link] == model.root]
    planes = [geom for geom in floors if geom.kind == "plane"]
    if isinstance(ground, Uneven) or (ground and not floors):
        usual = (
            planes[0]
            if planes
            else Geom(FLOOR_NAME, model.root, "plane", contype=ALL_CONTACT_BITS, conaffinity=ALL_CONTACT_BITS)
        )
        floor = replace(usual, name=FLOOR_NAME, link=model.root, origin=ORIGIN, rotation=IDENTITY)
        geoms = (floor, *(geom for geom in geoms if geom not in floors and geom.name != FLOOR_NAME))
        kept = {geom.name for geom in geoms}
        pairs = tuple(x for x in model.pairs if {x.geom_a, x.geom_b} <= kept)
        return replace(model, geoms=geoms, pairs=pairs)
    return replace(model, geoms=geoms)


def left_out_of_contact(model: Model, searched: bool = False) -> list[str]:
    """The notes on geoms of a file that contact has no rule for, and kinds of pairs; searched: those whose places
    are searched for are none of them."""
    notes = [x.removeprefix(LEFT_OUT) for x in model.notes if x.startswith(LEFT_OUT)]
    notes = [x for x in notes if not x.startswith(OF_PAIRS)]  # of a file written before
    kinds = "" if searched else without_rule(model)
    return [*notes, f"{OF_PAIRS} {kinds}"] if kinds else notes


def warn_of_untouched(model: Model, ground: object, searched: bool = True) -> None:
    """One DrevoWarning for what passes through other things in steps of the model, if anything does. searched:
    whether places of contact are searched for where a pair has no rule."""
    if "contact" in model.stepping.disabled:
        return
    notes = left_out_of_contact(model, searched)
    bare = all(geom.kind == "plane" for geom in model.geoms)
    if bare and (model.contacts or (ground is None and not notes)):
        return
    if notes:
        warn_caller(
            f"robot {model.name!r}: these pass through what they meet, for steps have no rule for them: "
            f"{'; '.join(notes)}; put spheres, capsules or hulls (hulls=) in their place"
        )
    elif bare:
        warn_caller(
            f"robot {model.name!r} has no contact geometry, so that nothing of it touches the ground: give its "
            "links collision shapes, geoms or contact points, or ground=None"
        )


def interactions(model: Model, searched: bool = False) -> Iterator[tuple[Geom, Geom, Interaction]]:
    """Pairs of geoms that may touch and have a rule, or are searched, in its order, with their parameters."""
    kinds = (*TOUCHING_PAIRS, *SEARCHED_PAIRS) if searched else TOUCHING_PAIRS
    if "contact" in model.stepping.disabled:
        return
    for a, b, pair in touching_pairs(model):
        first, second = as_ruled(a, b)
        if (first.kind, second.kind) in kinds:
            yield first, second, _overridden(model, interaction_of(a, b, pair))


def _overridden(model: Model, x: Interaction) -> Interaction:
    if not model.stepping.override:
        return x
    margin, a, b, d0, dw, width, mid, power, *friction = model.stepping.override
    u, w, spin, roll, roll2 = (max(LEAST_FRICTION, y) for y in friction)
    return x._replace(
        margin=margin, solref=(a, b), solimp=(d0, dw, width, mid, power), friction=(u, w, spin, roll, roll2), by=()
    )


def interaction_of(a: Geom, b: Geom, pair: ContactPair | None = None) -> Interaction:
    """Contact parameters of two geoms: those of their pair, if it is listed, else of the geom of higher priority,
    else of both."""
    if pair:
        u, w, spin, roll, roll2 = (max(LEAST_FRICTION, x) for x in pair.friction)
        five = u, w, spin, roll, roll2
        soft = pair.solref, pair.solimp, pair.margin, pair.gap, pair.solref_friction
        return Interaction(pair.condim, five, *soft)
    if a.priority != b.priority:
        over = a if a.priority > b.priority else b
        deciding = (over,)
        friction, condim, solref, solimp = over.friction, over.condim, over.solref, over.solimp
    else:
        deciding = (a, b)  # type: ignore[assignment]
        friction = tuple(map(max, a.friction, b.friction))  # type: ignore[assignment]
        condim, share = max(a.condim, b.condim), _share(a.solmix, b.solmix)
        solimp = tuple(share * x + (1.0 - share) * y for x, y in zip(a.solimp, b.solimp))  # type: ignore[assignment]
        timed = a.solref[0] > 0.0 and b.solref[0] > 0.0
        mixed = (share * x + (1.0 - share) * y if timed else min(x, y) for x, y in zip(a.solref, b.solref))
        solref = tuple(mixed)  # type: ignore[assignment]
    slide, spin, roll = (max(LEAST_FRICTION, x) for x in friction)
    margin, gap = a.margin + b.margin, a.gap + b.gap
    by = tuple((x.name, x.friction[0]) for x in deciding)
    return Interaction(condim, (slide, slide, spin, roll, roll), solref, solimp, margin, gap, by=by)


def _share(a: float, b: float) -> float:
    """The weight of the first geom in the mixture of two, from the solmix of both."""
    if a < LEAST_SOLMIX or b < LEAST_SOLMIX:
        return 0.5 if a < LEAST_SOLMIX and b < LEAST_SOLMIX else float(a >= LEAST_SOLMIX)
    return a / (a + b)


class Weights(NamedTuple):
    """Inverse weights at the initial configuration: of links by translation and rotation, of rates, of tendons."""

    bodies: dict[str, tuple[Scalar, Scalar]]
    rates: tuple[Scalar, ...]
    tendons: dict[str, Scalar]


def inverse_weights(model: Model, t: Tracer | None = None) -> Weights:
    """MuJoCo's invweight0: the means of J M^-1 J^T at the centre of mass of every link, and of M^-1 over rates.

    t: a program in the making of which numbers of the model are symbols. Links that cannot move have none.
    NumericsError where M is singular there.
    """
    tree, number = (t.tree, t.symbols.own) if t else (build_tree(model), number_itself)
    q = list(model.initial) if model.initial else neutral(model).tolist()
    try:
        f = Factors(mass_matrix_rows(tree, q), elimination_order(tree))
    except ZeroDivisionError:
        raise NumericsError(
            f"robot {model.name!r} has a singular mass matrix where it begins, so that contacts have no weight "
            "there; give its moving links mass, or set another initial configuration"
        ) from None

    def through(row: Vector) -> Scalar:
        """J M^-1 J^T of a row."""
        return dot([x * x for x in f.solve_transposed(row)], f.inverse)

    bodies, carrier = dict[str, tuple[Scalar, Scalar]](), {x.child: x for x in model.joints}
    for link in model.links:
        bodies[link.name] = 0.0, 0.0
        if tree.frames[link.name].body >= 0:
            J = jacobian(tree, q, link.name, "local")
            com = _offset(model, carrier[link.name])
            if link.inertial:
                com = Vec(*(number(f"{link.name}.com.{a}", x) for a, x in zip("xyz", link.inertial.com)))
            moved = zip(*(Vec(*v) + Vec(*w).cross(com) for v, w in zip(zip(*J[:3]), zip(*J[3:]))))
            translation, rotation = (sum(map(through, part), 0.0) * (1.0 / 3.0) for part in (moved, J[3:]))
            bodies[link.name] = translation, rotation
    rates = [through([float(i == k) for i in range(tree.nv)]) for k in range(tree.nv)]
    for joint, _, at in model.slices():
        for first, last in ((at.start, at.start + 3), (at.start + 3, at.stop)) if joint.turns else ():
            rates[first:last] = [sum(rates[first:last], 0.0) * (1.0 / 3.0)] * (last - first)
    for name, mass, slides in _sliders(model):
        bodies[name] = 1.0 / number(f"{name}.mass", mass), 0.0
        for k in slides:
            rates[k] = bodies[name][0]
    moving = Kinematics(tree, q, [0.0] * tree.nv)
    tendons = {x.name: through(tendon_length(moving, x).jacobian[0]) for x in model.tendons}
    return Weights(bodies, tuple(rates), tendons)


def _offset(model: Model, joint: Joint) -> Vec:
    """The centre that MuJoCo gives a body without mass: as far from its origin as this is from its parent's, of a
    free one as it is from the world's where it begins."""
    if joint.kind == "free" and model.initial:
        at = next(at for other, at, _ in model.slices() if other is joint)
        return Vec(*model.initial[at][:3])
    return Vec(*joint.origin) + Mat.of(joint.rotation) @ Vec(*joint.child_origin)


def _sliders(model: Model) -> Iterator[tuple[str, float, list[int]]]:
    """Links that slide along their own principal axes and bear nothing, with masses and rates: MuJoCo takes 1 / m,
    whatever their armature and however many slides they have."""
    carrier = {joint.child: joint for joint in model.joints}
    bearing = {joint.parent for joint in model.joints}
    real = {geom.link for geom in model.geoms} | {link.name for link in model.links if link.inertial}
    fixed = {name for name, first in weld_bodies(model).items() if first == model.root}
    rates = {joint.name: at.start for joint, _, at in model.slices()}
    for link in model.links:
        body = link.inertial
        if link.name in bearing or not body or not body.mass or any(body.com):
            continue
        slides, at = list[int](), link.name
        while at not in fixed and carrier[at].kind == "prismatic" and carrier[at].name in rates:
            joint = carrier[at]
            turned = joint.rotation != IDENTITY and joint.parent not in fixed
            if turned or sorted(map(abs, joint.axis))[:2] != [0.0, 0.0] or (slides and at in real):
                break
            slides.append(rates[joint.name])
            at = joint.parent
        straight = all(body.tensor[i][j] == 0.0 for i in range(3) for j in range(3) if i != j)
        if slides and at in fixed and straight:
            yield link.name, body.mass, slides
