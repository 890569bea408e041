"""A Model as MJCF that MuJoCo compiles: a link a body, links without mass between joints in one body together.

MuJoCo takes no moving body with a principal moment below 1e-15 kg m^2 (1e-14 where the tensor is not diagonal),
and none whose moments break the triangle inequality by rounding: such a tensor is raised a little about each axis.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..carriers import WORLD, moving_without_mass, with_carriers, with_chains, with_world
from ..contact import Geom, JointSoftness
from ..description import (
    IDENTITY,
    ORIGIN,
    Inertial,
    Joint,
    JointDynamics,
    Limit,
    Loop,
    Model,
    Tendon,
    TendonCoupling,
    TendonSegment,
    Vec3,
)
from ..draft import listed
from ..rotations import (
    IDENTITY_POSE,
    FramePose,
    add_vectors,
    apply,
    compose,
    from_axis_angle,
    inverse_pose,
    pose_of_quaternion,
)
from ..values import BOUND_THAT_IS_NONE
from .mjcf import CONTACT_PREFIX
from .mjcf.equality import MIMIC, shifted
from .mjcf_contact import (
    TendonLines,
    actuator_of,
    geoms_of,
    joint_softness,
    option_of,
    pair_of,
    place_of,
    plain_solid,
    sensor_of,
    sensor_site,
    softness_of,
    unless,
)
from .writing import TextValue, Written, begin, element

MJCF_WRITTEN_KINDS = {"fixed": "", "revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}
MJCF_WRITTEN_KINDS |= {"spherical": "ball", "free": "free"}
SAYS = (
    "quadratic",
    "cubic",
    "stiffness2",
    "stiffness3",
    "rest",
    "gravcomp",
    "mocap",
)  # unlike other formats
LEAST_MASS = 1e-14  # kg, of what MuJoCo takes as a body
MOMENT_ROUNDING = 1e-12  # of the trace: what moments may break the triangle inequality by


def to_mjcf(robot: Model) -> Written:
    """The robot as MJCF has it: joints of two or three coordinates as chains, mimic joints by equalities."""
    model = _with_points(with_world(with_carriers(with_chains(robot, MJCF_WRITTEN_KINDS), ("spherical", "free"))))
    out = begin(robot, model, MJCF_WRITTEN_KINDS, closes=True, says=SAYS)
    runs = _runs(model)
    out.lost += _lost(model, {run[-1].child for run in runs})
    out.left_out += _left_out(model)
    links = {link.name: link for link in model.links}
    sites = _sites(model)
    stands, softness = _stands(model), {soft.joint: soft for soft in model.softness}
    tendons = TendonLines(model, sites, stands)
    geoms: defaultdict[str, list[Geom]] = defaultdict(list)
    for geom in model.geoms:
        geoms[geom.link].append(geom)
    below: defaultdict[str, list[list[str]]] = defaultdict(list)
    for run in reversed(runs):
        link = links[run[-1].child]
        pose, joints = _placed(run, stands, softness)
        inside = (*joints, _inertial(link.inertial), *geoms_of(link, geoms[link.name]), sites[link.name])
        more = {"gravcomp": link.gravcomp or None, "mocap": "true" if link.mocap else None}
        body = element("body", *inside, *reversed(below[link.name]), name=link.name, **place_of(pose), **more)
        below[_holder(model, run[0])].append(body)
    world = (*geoms_of(model.links[0], geoms[WORLD]), sites[WORLD], *reversed(below[WORLD]))
    out.lines = element(
        "mujoco",
        element("compiler", angle="radian"),
        option_of(model.gravity, model.stepping),
        element("worldbody", *world),
        *(
            element(tag, *held) if held else ()
            for tag, held in (
                ("tendon", tendons.lines),
                ("equality", [*_equalities(model, stands), *tendons.equalities]),
                ("contact", [*_excluded(model), *map(pair_of, model.pairs)]),
                ("actuator", list(map(actuator_of, model.actuators))),
                ("sensor", [sensor_of(k, sensor) for k, sensor in enumerate(model.sensors)]),
            )
        ),
        model=model.name,
    )
    return out


def _sites(model: Model) -> defaultdict[str, list[str]]:
    """Contact points, ends of loops and sensors, by their links."""
    sites: defaultdict[str, list[str]] = defaultdict(list)
    for k, contact in enumerate(model.contacts):
        sites[contact.link] += element("site", name=f"{CONTACT_PREFIX}{k}", pos=contact.point)
    for k, loop in enumerate(model.loops):
        sites[loop.link_a] += element(
            "site", name=f"loop_{k}_a", **place_of((loop.point_a, loop.rotation or IDENTITY))
        )
        sites[loop.link_b] += element("site", name=f"loop_{k}_b", **place_of((loop.point_b, IDENTITY)))
    for k, sensor in enumerate(model.sensors):
        if sensor.link:
            sites[sensor.link] += sensor_site(k, sensor)
    return sites


def _excluded(model: Model) -> Iterator[list[str]]:
    """Elements of pairs of bodies that never touch."""
    for pair in model.exclusions:
        yield element("exclude", body1=pair.link_a, body2=pair.link_b)


def _stands(model: Model) -> dict[str, tuple[float, ...]]:
    """q of every joint as the file stands, where that is not its neutral one."""
    if not model.initial:
        return {}
    by_joint = {joint.name: model.initial[part] for joint, part, _ in model.slices()}
    return {name: q for name, q in by_joint.items() if any(q[:-1] or q)}


def _with_points(model: Model) -> Model:
    """Loops as MJCF has them: a hinge by two points of its axis, a rod by a tendon whose length is held."""
    loops: list[Loop] = []
    tendons, couplings = list(model.tendons), list(model.tendon_couplings)
    for k, loop in enumerate(model.loops):
        if loop.kind == "revolute" and loop.axis_a and loop.axis_b:
            a, b = (add_vectors(p, axis) for p, axis in ((loop.point_a, loop.axis_a), (loop.point_b, loop.axis_b)))
            loops += [Loop("point", loop.link_a, loop.point_a, loop.link_b, loop.point_b)]
            loops += [Loop("point", loop.link_a, a, loop.link_b, b)]
        elif loop.kind == "rod":
            segment = TendonSegment(loop.link_a, loop.point_a, loop.link_b, loop.point_b)
            tendons.append(Tendon(f"rod_{k}", segments=(segment,)))
            couplings.append(TendonCoupling(f"rod_{k}", "", (loop.length,)))
        else:
            loops.append(loop)
    return replace(model, loops=tuple(loops), tendons=tuple(tendons), tendon_couplings=tuple(couplings))


def _runs(model: Model) -> list[list[Joint]]:
    """The joints of each body: those over links that neither weigh nor show anything go on in one body."""
    kept = {link.name for link in model.links if _weighs(link.inertial) or link.shapes}
    kept |= {contact.link for contact in model.contacts}
    kept |= {name for loop in model.loops for name in (loop.link_a, loop.link_b)}
    kept |= {name for t in model.tendons for x in t.segments for name in x.links}
    kept |= {name for pair in model.exclusions for name in (pair.link_a, pair.link_b)}
    kept |= {geom.link for geom in model.geoms} | {sensor.link for sensor in model.sensors}
    children = Counter(joint.parent for joint in model.joints)
    open_runs: dict[str, list[Joint]] = {}
    runs: list[list[Joint]] = []
    for joint in model.joints:
        plain = joint.kind not in ("fixed", "free")
        run = open_runs.pop(joint.parent, None) if plain else None
        if run is None:
            runs.append(run := [])
        run.append(joint)
        if plain and joint.kind != "spherical" and joint.child not in kept and children[joint.child] == 1:
            open_runs[joint.child] = run
    return runs


def _holder(model: Model, joint: Joint) -> str:
    """The body that holds the joint's; a free one hangs in the world itself."""
    return WORLD if joint.kind == "free" and joint.parent == model.joints[0].child else joint.parent


def _lost(model: Model, bodies: set[str]) -> Iterator[str]:
    """The parts of a robot that MuJoCo would refuse or take for another robot's."""
    free = [j for j in model.joints if j.kind == "free"]
    if placed := [j.name for j in free if (j.origin, j.rotation) != IDENTITY_POSE or _holder(model, j) != WORLD]:
        yield f"the places of {listed(placed)} (a free joint counts from the world's origin)"
    if bare := [link.name for link in moving_without_mass(model) if link.name in bodies]:
        yield f"moving links without mass, {listed(bare)} (MuJoCo wants one; give them some)"
    if odd := [link.name for link in model.links[1:] if link.inertial and not _takes(link.inertial)]:
        mended = "raised until MuJoCo takes them; `drevo check --fix` corrects a file"
        yield f"the inertias of {listed(odd)}, which no real body has ({mended})"
    rests = [(j.name, j.dynamics.rest) for j in model.joints if j.kind == "spherical" and j.dynamics]
    if turned := [name for name, rest in rests if any(rest[:3])]:
        yield f"the turned rests of the springs of {listed(turned)}"
    if odd_loops := sorted({loop.kind for loop in model.loops} - {"point", "weld"}):
        yield f"its loops of the kinds {listed(odd_loops)}"
    if unsaid := [loop for loop in model.loops if loop.kind == "weld" and loop.rotation is None]:
        yield f"the orientations of {len(unsaid)} welds, which nobody gives (give Builder.loop a rotation)"
    if steep := [c.joint for c in model.couplings if len(c.coefficients) > 5] + [
        c.tendon for c in model.tendon_couplings if len(c.coefficients) > 5
    ]:
        yield f"the couplings of {listed(steep)}, of a degree above 4"
    if both := [tendon.name for tendon in model.tendons if tendon.joints and tendon.segments]:
        yield f"the tendons {listed(both)}, which run between points and count coordinates too"
    if (root := model.links[0].inertial) and root.mass:
        yield f"the mass of the immovable link {WORLD!r}"


def _left_out(model: Model) -> Iterator[str]:
    limits = [(joint.name, joint.limit) for joint in model.joints if joint.limit]
    if names := [name for name, limit in limits if limit.velocity]:
        yield f"the velocity limits of {listed(names)}"
    if names := [link.name for link in model.links if any(not plain_solid(shape) for shape in link.shapes)]:
        yield f"the meshes of {listed(names)}"
    if names := [geom.name for geom in model.geoms if geom.points]:
        yield f"the hulls and height fields {listed(names)}, which touch"


# --- bodies ----------------------------------------------------------------


def _placed(
    run: list[Joint], stands: dict[str, tuple[float, ...]], softness: dict[str, JointSoftness]
) -> tuple[FramePose, list[list[str]]]:
    """The body's pose in the body that holds it as the file stands, and its joints."""
    pose, frames = IDENTITY_POSE, []
    for joint in run:
        frames.append(pose := compose(pose, (joint.origin, joint.rotation)))
        if joint.name in stands and joint.kind in ("revolute", "continuous", "prismatic"):
            pose = compose(pose, _moved(joint, stands[joint.name][0]))
        pose = compose(pose, (joint.child_origin, joint.child_rotation))
    back = inverse_pose(pose)
    if run[0].kind == "free":  # where the file puts the body
        rest = stands.get(run[0].name) or (run[0].dynamics or JointDynamics()).rest
        pose = pose_of_quaternion(rest) if rest else pose
    return pose, [
        _joint(joint, compose(back, frame), stands.get(joint.name, (0.0,))[0], softness.get(joint.name))
        for joint, frame in zip(run, frames, strict=True)
    ]


def _moved(joint: Joint, q: float) -> FramePose:
    """The displacement that a hinge or a slide gives to its frame."""
    if joint.kind == "prismatic":
        x, y, z = joint.axis
        return (q * x, q * y, q * z), IDENTITY
    return ORIGIN, from_axis_angle(joint.axis, q)


def _powers(*sizes: float) -> TextValue:
    """A number, or polynomial coefficients."""
    while len(sizes) > 1 and not sizes[-1]:
        sizes = sizes[:-1]
    return sizes if len(sizes) > 1 else sizes[0]


def _joint(joint: Joint, frame: FramePose, ref: float, soft: JointSoftness | None) -> list[str]:
    if joint.kind == "fixed":
        return []
    d, line = joint.dynamics or JointDynamics(), joint.kind not in ("spherical", "free")
    acts: dict[str, TextValue] = {"armature": d.armature, "frictionloss": d.friction}
    acts |= {"damping": _powers(d.damping, d.quadratic, d.cubic)}
    acts |= {"stiffness": _powers(d.stiffness, d.stiffness2, d.stiffness3), "springref": d.reference}
    return element(
        "joint",
        name=joint.name,
        type=MJCF_WRITTEN_KINDS.get(joint.kind, joint.kind),
        pos=frame[0] if frame[0] != IDENTITY_POSE[0] and joint.kind != "free" else None,
        axis=apply(frame[1], joint.axis) if line else None,
        ref=ref or None if line else None,
        **(_limits(joint.limit or Limit()) if line else {}),
        **joint_softness(soft),
        **{name: value or None for name, value in acts.items()},
    )


def _limits(limit: Limit) -> dict[str, tuple[float, float] | None]:
    """Attributes that limit a joint; wide bounds stand for one that has none."""
    low = -BOUND_THAT_IS_NONE if limit.lower is None else limit.lower
    high = BOUND_THAT_IS_NONE if limit.upper is None else limit.upper
    bounded = low < high and (limit.lower, limit.upper) != (None, None)
    return {
        "range": (low, high) if bounded else None,
        "actuatorfrcrange": (-limit.effort, limit.effort) if limit.effort and limit.effort > 0.0 else None,
    }


def _weighs(body: Inertial | None) -> bool:
    return body is not None and bool(body.mass or any(map(any, body.tensor)))


def _gap(body: Inertial) -> float:
    """The margin of the principal moments, to a negative one and to breaking the triangle inequality."""
    low, middle, high = np.linalg.eigvalsh(np.array(body.tensor)).tolist()
    return float(min(low, low + middle - high))


def _takes(body: Inertial) -> bool:
    """MuJoCo takes the inertia, if need be a little raised."""
    trace = sum(body.tensor[k][k] for k in range(3))
    return not _weighs(body) or (body.mass > 0.0 and _gap(body) >= -MOMENT_ROUNDING * trace)


def _inertial(body: Inertial | None) -> list[str]:
    if body is None or not _weighs(body):
        return []
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.tensor
    diagonal = xy == xz == yz == 0.0
    least, gap = 2e-15 if diagonal else 2e-14, _gap(body)
    raised = least - min(gap, 0.0) if gap < least else 0.0
    moments: Vec3 = (xx + raised, yy + raised, zz + raised)
    if diagonal:
        return element("inertial", pos=body.com, mass=body.mass or LEAST_MASS, diaginertia=moments)
    return element("inertial", pos=body.com, mass=body.mass or LEAST_MASS, fullinertia=(*moments, xy, xz, yz))


def _equalities(model: Model, stands: dict[str, tuple[float, ...]]) -> Iterator[list[str]]:
    """Loops by their sites, couplings, and mimic joints as couplings with a name of their own."""

    def moved(coefficients: tuple[float, ...], joint: str, driver: str) -> tuple[float, ...]:
        y, x = (stands.get(name, (0.0,))[0] for name in (joint, driver))
        return (*shifted(coefficients, -y, -x if driver else None), 0.0, 0.0, 0.0, 0.0, 0.0)[:5]

    for k, loop in enumerate(model.loops):
        soft = softness_of(loop.solref, loop.solimp) | {"torquescale": unless(loop.torquescale, 1.0)}
        tag = "connect" if loop.kind == "point" else "weld"
        yield element(tag, site1=f"loop_{k}_a", site2=f"loop_{k}_b", **soft)
    for c in model.couplings:
        polynomial = moved(c.coefficients, c.joint, c.driver)
        soft = softness_of(c.solref, c.solimp)
        yield element("joint", joint1=c.joint, joint2=c.driver or None, polycoef=polynomial, **soft)
    for joint in model.joints:
        if mimic := joint.mimic:
            line = moved((mimic.offset, mimic.multiplier), joint.name, mimic.joint)
            yield element(
                "joint", name=f"{MIMIC}{joint.name}", joint1=joint.name, joint2=mimic.joint, polycoef=line
            )
