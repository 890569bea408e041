"""Contacts, actuators, sensors and time stepping as MJCF; what is as usual is not written.

Tendons as MJCF: their sites, what acts along them, and what couples their lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import nextafter

from ..contact import (
    DEFAULT_FRICTION,
    JOINT_SENSORS,
    PAIR_FRICTION,
    SOLIMP,
    SOLREF,
    Actuator,
    ContactPair,
    Geom,
    JointSoftness,
    Sensor,
    Solimp,
    Solref,
    Stepping,
)
from ..description import IDENTITY, ORIGIN, Link, Model, Shape, Tendon, TendonSegment, TendonWrap
from ..rotations import IDENTITY_POSE, FramePose, pose_of_quaternion, transpose
from ..values import BOUND_THAT_IS_NONE
from .mjcf.equality import AUTOMATIC, shifted
from .mjcf.posture import Posture
from .primitives import half_lengths
from .writing import TextValue, element

SITE = "sensor_"  # how the names of sites begin at which something is measured


def place_of(pose: FramePose) -> dict[str, tuple[float, ...]]:
    """The attributes pos and xyaxes, where they say something."""
    place, turn = pose
    given: dict[str, tuple[float, ...]] = {}
    if place != ORIGIN:
        given["pos"] = place
    if turn != IDENTITY:
        x, y, _ = transpose(turn)
        given["xyaxes"] = (*x, *y)
    return given


def unless(value: TextValue | None, usual: object) -> TextValue | None:
    """None, which is not written, for what is as usual."""
    return None if value == usual else value


def softness_of(solref: Solref, solimp: Solimp, suffix: str = "") -> dict[str, TextValue | None]:
    """solref and solimp, of limits or friction with that at the end of their names."""
    return {f"solref{suffix}": unless(solref, SOLREF), f"solimp{suffix}": unless(solimp, SOLIMP)}


def geoms_of(link: Link, geoms: Iterable[Geom]) -> Iterator[list[str]]:
    """The shapes of a link in their order, those that touch as the geoms that they are, then other geoms."""
    left = {(geom.kind, geom.size, geom.origin, geom.rotation): geom for geom in geoms if not geom.points}
    whole = not left
    for shape in filter(plain_solid, link.shapes):
        size = half_lengths(shape)
        touching = (
            left.pop((shape.kind, size, shape.origin, shape.rotation), None) if shape.role == "collision" else None
        )
        if touching:
            yield _geom(touching)
        else:
            touches = None if shape.role == "collision" and whole else 0.0
            yield element(
                "geom", type=shape.kind, size=size, mass=0.0, contype=touches, conaffinity=touches,
                **place_of((shape.origin, shape.rotation)),
            )  # fmt: skip
    yield from map(_geom, left.values())


def plain_solid(shape: Shape) -> bool:
    """It is written: meshes are not."""
    return shape.kind != "mesh" and min(shape.size) > 0.0


def _geom(geom: Geom) -> list[str]:
    usual = {"condim": 3, "margin": 0, "gap": 0, "priority": 0, "solmix": 1, "contype": 1, "conaffinity": 1}
    given: dict[str, TextValue | None] = {k: unless(float(getattr(geom, k)), x) for k, x in usual.items()}
    given["friction"] = unless(geom.friction, DEFAULT_FRICTION)
    given["surfacevel"] = geom.surface if any(geom.surface) else None
    given |= {"fluidshape": "ellipsoid", "fluidcoef": geom.fluid} if geom.fluid else {}
    given["size"] = (0.0, 0.0, 1.0) if geom.kind == "plane" else geom.size
    place = place_of((geom.origin, geom.rotation))
    soft = softness_of(geom.solref, geom.solimp)
    return element("geom", name=geom.name, type=geom.kind, mass=0.0, **given, **soft, **place)


def pair_of(pair: ContactPair) -> list[str]:
    """<pair>."""
    given: dict[str, TextValue | None] = {
        "condim": float(pair.condim), "friction": unless(pair.friction, PAIR_FRICTION),
        "margin": unless(pair.margin, 0.0), "gap": unless(pair.gap, 0.0),
        "solreffriction": unless(pair.solref_friction, (0.0, 0.0)),
    }  # fmt: skip
    soft = softness_of(pair.solref, pair.solimp)
    return element("pair", geom1=pair.geom_a, geom2=pair.geom_b, **given, **soft)


def joint_softness(soft: JointSoftness | None) -> dict[str, TextValue | None]:
    """Attributes of <joint>."""
    if soft is None:
        return {}
    limit = softness_of(soft.limit_solref, soft.limit_solimp, "limit")
    friction = softness_of(soft.friction_solref, soft.friction_solimp, "friction")
    turn = None if soft.limit_angle is None else (0.0, soft.limit_angle)
    return {**limit, **friction, "margin": soft.limit_margin or None, **({"range": turn} if turn else {})}


def actuator_of(actuator: Actuator) -> list[str]:
    """Any actuator as <general>, a PID controller as <pid>, a DC motor as <dcmotor>."""
    gain, bias, muscle = actuator.gain, actuator.bias, actuator.muscle
    affine = any(gain[1:])
    law: dict[str, TextValue | None] = {
        "gaintype": "affine" if affine else None, "gainprm": unless(gain if affine else gain[0], 1.0),
        "biastype": "affine" if any(bias) else None, "biasprm": unless(bias, ORIGIN),
    }  # fmt: skip
    if muscle:
        law = dict.fromkeys(("gaintype", "biastype"), "muscle") | {"lengthrange": muscle[9:]}
        law |= dict.fromkeys(("gainprm", "biasprm"), muscle[:9])
    kind = "dcmotor" if actuator.motor else "pid" if actuator.inputs else "general"
    if m := actuator.motor:
        (_, kp, kd), (ki, bound, slew) = actuator.bias, actuator.pid
        controller, torque = (-kp, ki, -kd, slew, bound, m.voltage), (actuator.force_range or (0.0, 0.0))[1]
        law = {
            "motorconst": m.constant, "resistance": m.resistance, "inductance": (0.0, m.time_constant),
            "saturation": (torque, 0.0, m.current_rate), "controller": controller if any(controller) else None,
            "lugre": (m.bristle_stiffness, m.bristle_damping, m.coulomb, m.static, m.stribeck),
            "cogging": (m.cogging, m.periodicity, m.phase), "input": " ".join(actuator.inputs) or "none",
            "thermal": (m.thermal_resistance, m.heat_capacity, 0.0, m.resistance_growth, m.reference, m.ambient),
        }  # fmt: skip
    elif actuator.inputs:
        names, numbers = ("kp", "kv", "ki", "imax", "slewmax"), (*(-x for x in actuator.bias[1:]), *actuator.pid)
        law = {**dict(zip(names, numbers)), "input": " ".join(actuator.inputs)}
        law |= {"velrange": actuator.velocity_range, "ffrange": actuator.feedforward_range}
    return element(
        kind, name=actuator.name, joint=actuator.joint or None,
        tendon=actuator.tendon or None, gear=unless(actuator.gear, 1.0), **law,
        dyntype=unless(actuator.dynamics, "none"), dynprm=unless(actuator.times, (1.0, 0.0, 0.0)),
        ctrlrange=actuator.control_range,
        forcerange=None if actuator.motor else actuator.force_range, actrange=actuator.activation_range,
        actearly="true" if actuator.early else None,
    )  # fmt: skip


def sensor_site(k: int, sensor: Sensor) -> list[str]:
    """The <site> of a sensor of a link."""
    size, shape = sensor.size if any(sensor.size) else None, unless(sensor.shape, "sphere")
    return element("site", name=f"{SITE}{k}", type=shape, size=size, **place_of((sensor.origin, sensor.rotation)))


def sensor_of(k: int, sensor: Sensor) -> list[str]:
    """The sensor with its joint or its site."""
    where = {"site": f"{SITE}{k}"}
    if sensor.kind in JOINT_SENSORS:
        where = {"joint": sensor.joint}
    elif sensor.kind.startswith("frame"):
        where = {"objtype": "site", "objname": f"{SITE}{k}"}
    return element(sensor.kind, name=sensor.name, **where, cutoff=unless(sensor.cutoff, 0.0))


def option_of(gravity: tuple[float, ...], stepping: Stepping) -> list[str]:
    """<option>."""
    o, words = stepping.override, dict.fromkeys(stepping.disabled, "disable")
    words |= dict.fromkeys((*stepping.enabled, *(["override"] if o else [])), "enable")
    flags = element("flag", **words) if words else []
    return element(
        "option", flags, gravity=gravity, timestep=unless(stepping.dt, 0.002),
        integrator=unless(stepping.integrator, "Euler"), cone=unless(stepping.cone, "pyramidal"),
        impratio=unless(stepping.impratio, 1.0), density=unless(stepping.density, 0.0),
        viscosity=unless(stepping.viscosity, 0.0), o_margin=o[0] if o else None, o_solref=o[1:3] or None,
        noslip_iterations=unless(float(stepping.noslip), 0.0),
        noslip_tolerance=unless(stepping.noslip_tolerance, 1e-6), o_solimp=o[3:8] or None,
        o_friction=o[8:] or None, wind=unless(stepping.wind, ORIGIN),
    )  # fmt: skip


class TendonLines:
    """<tendon> and <equality><tendon> of a model; adds the sites by which they run to those of the links."""

    def __init__(self, model: Model, sites: dict[str, list[str]], stands: dict[str, tuple[float, ...]]) -> None:
        """stands: q of joints as the file stands, where it is not neutral."""
        self.sites, self.count = sites, 0
        free = {
            joint.child: pose_of_quaternion(stands[joint.name]) if joint.name in stands else IDENTITY_POSE
            for joint in model.joints
            if joint.kind == "free"
        }
        self.posture = Posture(model, {name: q[0] for name, q in stands.items() if len(q) == 1}, free)
        self.lines = [self._tendon(tendon) for tendon in model.tendons]
        tendons = {tendon.name: tendon for tendon in model.tendons}
        self.equalities = []
        for c in model.tendon_couplings:
            start = self.posture.length(tendons[c.driver]) if c.driver else None
            driven_tendon = tendons[c.tendon]
            polynomial = shifted(
                c.coefficients,
                -driven_tendon.offset - self.posture.length(driven_tendon),
                -start if start else None,
            )
            polynomial = (*polynomial, 0.0, 0.0, 0.0, 0.0)[:5]
            self.equalities.append(
                element(
                    "tendon",
                    tendon1=c.tendon,
                    tendon2=c.driver or None,
                    polycoef=polynomial,
                    **softness_of(c.solref, c.solimp),
                )
            )

    def _tendon(self, tendon: Tendon) -> list[str]:
        steps = [element("joint", joint=end.joint, coef=end.coefficient) for end in tendon.joints]
        steps += self._path(tendon.segments)
        low, high = (x - tendon.offset for x in tendon.rest)
        acts: dict[str, TextValue | None] = {
            "stiffness": tendon.stiffness or None,
            "springlength": (nextafter(low, 0.0) if low == AUTOMATIC else low, high) if tendon.stiffness else None,
            "damping": (tendon.damping, tendon.quadratic) if tendon.quadratic else tendon.damping or None,
            "frictionloss": tendon.friction or None,
            "margin": tendon.limit_margin or None,
            "solimplimit": unless(tendon.limit_solimp, SOLIMP),
            **softness_of(tendon.friction_solref, tendon.friction_solimp, "friction"),
        }
        kind = "fixed" if tendon.joints else "spatial"
        return element(kind, *steps, name=tendon.name, **acts, **self._limits(tendon))

    def _limits(self, tendon: Tendon) -> dict[str, TextValue | None]:
        if tendon.lower is None and tendon.upper is None:
            return {}
        low = -BOUND_THAT_IS_NONE if tendon.lower is None else tendon.lower - tendon.offset
        high = BOUND_THAT_IS_NONE if tendon.upper is None else tendon.upper - tendon.offset
        weight = self.posture.of_tendon(tendon)
        direct = (-tendon.limit_stiffness * weight, -tendon.limit_damping * weight)
        return {"range": (low, high), "solreflimit": tendon.limit_solref or direct}

    def _path(self, segments: tuple[TendonSegment, ...]) -> Iterator[list[str]]:
        """Sites one after the other; a pulley where a branch begins anew."""
        end = None
        for x in segments:
            if end != (x.link_a, x.point_a, x.share):
                if end is not None or x.share != 1.0:
                    yield element("pulley", divisor=1.0 / x.share)
                yield self._site(x.link_a, x.point_a)
            if x.around:
                yield self._round(x.around)
            yield self._site(x.link_b, x.point_b)
            end = (x.link_b, x.point_b, x.share)

    def _round(self, x: TendonWrap) -> list[str]:
        """A geom that touches nothing and weighs nothing, around which a tendon lies."""
        name, side = f"tendon_geom_{self.count}", self._site(x.link, x.side) if x.side else []
        kind: dict[str, TextValue | None] = {"type": "sphere", "size": x.radius}
        if x.axis:
            kind = {"type": "cylinder", "size": (x.radius, x.radius), "zaxis": x.axis}
        self.sites[x.link] += element("geom", name=name, pos=x.centre, contype=0, conaffinity=0, mass=0, **kind)
        return element("geom", geom=name, sidesite=f"tendon_site_{self.count - 1}" if side else None)

    def _site(self, link: str, point: tuple[float, float, float]) -> list[str]:
        name = f"tendon_site_{self.count}"
        self.count += 1
        self.sites[link] += element("site", name=name, pos=point)
        return element("site", site=name)
