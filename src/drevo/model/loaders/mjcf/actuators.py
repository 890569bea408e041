"""<actuator> and <sensor> of an MJCF file: gains and biases of what drives joints, and what is measured."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from ....io import xml
from ....io.xml import Element, Reader
from ...contact import (
    ACTUATOR_DYNAMICS,
    JOINT_SENSORS,
    LINK_SENSORS,
    PID_INPUTS,
    SENSOR_SHAPES,
    Actuator,
    DCMotor,
    Sensor,
)
from ...description import ORIGIN, Limit, Tendon, TendonJoint, Vec3
from ...draft import unused
from ...rotations import IDENTITY_POSE
from ..schema import nonzero
from .defaults import as_controller, as_general
from .equality import Layout
from .file import File, limited, read_some
from .posture import Posture

TRANSMISSIONS = ("tendon", "jointinparent", "joint")  # of two MuJoCo takes the first
UNREAD_TRANSMISSIONS = ("cranksite", "slidersite", "site", "body")  # and before them one of these
USUAL_TIMES, USUAL_MUSCLE = (1.0, 0.0, 0.0), (0.75, 1.05, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2)
DELAYS = ("delay", "interval", "nsample")  # of a sensor that tells what has been
OBJECTS = {"body": "body", "xbody": "body", "site": "site"}  # what a frame sensor measures


def read_actuator(file: File, element: Element, label: str, stands: Posture) -> bool:
    """Enter what acts on one hinge or slide, or along a tendon; False for the rest, which is not read."""
    element, reader = as_controller(element), Reader(file.draft.problems.append, label)
    get = element.get
    by, target = next(((key, get(key)) for key in TRANSMISSIONS if get(key)), ("joint", ""))
    joint = next((joint for joint in file.draft.joints if joint.name == target), None)
    tendon = target if by == "tendon" and target in _unbounded_tendons(file) else ""
    pid = element.tag == "pid"
    kind = {"pid": "position", "dcmotor": "motor"}.get(element.tag, element.tag)
    law = Element("general", as_general(kind, element.attributes), element.line)
    dynamics = law.get("dyntype", "none")
    odd = any(map(get, UNREAD_TRANSMISSIONS)) or dynamics not in ACTUATOR_DYNAMICS
    odd |= get("actdim", "-1") not in ("-1", str(int(dynamics != "none")))
    if target and joint is None and by != "tendon":
        file.draft.doubts.append(f"{_at(element)}: the joint {target!r} does not exist; correct the name")
    alone = joint is not None and by != "tendon" and joint.kind in ("revolute", "prismatic")
    if odd or not (tendon or alone):
        return False
    muscle = _muscle(reader, law, element)
    laws = (ORIGIN, ORIGIN) if muscle else _law(reader, law)
    gear = read_some(reader, element, "gear", (1.0,) + (0.0,) * 5, xml.ANY)[0]
    if gear == 0.0:
        file.draft.doubts.append(f"{_at(element)} has the gear 0 and drives nothing; correct it")
    if laws and laws[0][0] == -laws[1][1] and laws[1][2] > 0.0:
        along = next((x for x in file.draft.tendons if x.name == tendon), Tendon("", (TendonJoint(target, 1.0),)))
        laws = _damped(*laws, gear * gear * stands.of_tendon(along))
    if laws is None:
        return False
    name = element.get("name") or unused(f"{target}_{element.tag}", {x.name for x in file.draft.actuators})
    control, force = (_range(file, reader, element, key) for key in ("ctrl", "force"))
    inherit = reader.scalar(element, "inheritrange", 0.0)
    fixed = law.get("gaintype", "fixed") == "fixed"
    activation = _range(file, reader, element, "act")
    if joint and not tendon and inherit > 0.0 and fixed and laws[1][1] and laws[0][0] == -laws[1][1]:
        inherited = _inherited(joint.limit or Limit(), inherit)
        control, activation = (control, inherited) if dynamics == "integrator" else (inherited, activation)
    a, b, c = read_some(reader, _first(law, "dynprm"), "dynprm", USUAL_TIMES)
    early = law.get("actearly", "false") == "true"
    plain = Actuator(name, "" if tendon else target, gear, *laws, control, force, tendon, dynamics, (a, b, c))
    plain = replace(plain, activation_range=activation, early=early, muscle=muscle)
    plain = _with_setpoints(reader, element, plain) if pid else plain
    driven = _motor(reader, element, plain) if element.tag == "dcmotor" else plain
    file.draft.actuators += [driven] if driven else []
    return driven is not None


def _with_setpoints(reader: Reader, element: Element, servo: Actuator) -> Actuator:
    """A servo with the inputs, the integral and the bounded rate of a <pid>."""
    ki, most, fastest = (reader.scalar(element, key, 0.0, xml.ANY) for key in ("ki", "imax", "slewmax"))
    ends = (reader.vector(element, f"{key}range", (0.0, 0.0), xml.ANY) for key in ("vel", "ff"))
    fast, more = ((low, high) if low < high else None for low, high in ends)
    inputs = tuple(element.get("input").split()) or PID_INPUTS[:2]
    return replace(
        servo, gain=(1.0, 0.0, 0.0), inputs=inputs, pid=(ki, most, fastest), velocity_range=fast,
        feedforward_range=more,
    )  # fmt: skip


def _motor(reader: Reader, element: Element, plain: Actuator) -> Actuator | None:
    """A <dcmotor>; None where its constants say too little."""

    def numbers(attribute: str, count: int) -> tuple[float, ...]:
        return read_some(reader, element, attribute, (0.0,) * count, xml.ANY)

    (torque_rate, emf), R = numbers("motorconst", 2), reader.scalar(element, "resistance", 0.0, xml.ANY)
    volts, stall, free = numbers("nominal", 3)
    emf = emf or (volts / free if free else 0.0)
    K = sqrt((torque_rate or emf) * (emf or torque_rate)) if min(torque_rate, emf) >= 0.0 else 0.0
    R = R or (K * volts / stall if stall else 0.0)
    heat, capacity, time, growth, base, ambient = numbers("thermal", 6)
    heat, capacity = heat or (time / capacity if capacity else 0.0), capacity or (time / heat if heat else 0.0)
    stiff, damping, *slides = numbers("lugre", 5)
    if min(K, R) <= 0.0 or (heat > 0.0) != (capacity > 0.0) or (stiff > 0.0 and min(slides) <= 0.0):
        return None
    rubs = (stiff, damping, *slides) if stiff > 0.0 else (0.0,) * 5
    (henry, lag), (torque, current, fastest) = numbers("inductance", 2), numbers("saturation", 3)
    kp, ki, kd, slew, bound, volts = numbers("controller", 6)
    torque, inputs = torque or K * current, tuple(element.get("input").split()) or ("voltage",)
    cogging, periodicity, phase = numbers("cogging", 3)
    motor = DCMotor(
        K, R, henry / R if henry else lag, fastest, volts, cogging, periodicity, phase,
        thermal_resistance=heat, heat_capacity=capacity, resistance_growth=growth, reference=base, ambient=ambient,
        bristle_stiffness=rubs[0], bristle_damping=rubs[1], coulomb=rubs[2], static=rubs[3], stribeck=rubs[4],
    )  # fmt: skip
    return replace(
        plain, bias=(0.0, -kp, -kd), pid=(ki, bound, slew), inputs=() if inputs == ("none",) else inputs,
        motor=motor, force_range=(-torque, torque) if torque > 0.0 else plain.force_range,
    )  # fmt: skip


def _at(element: Element) -> str:
    name = element.get("name")
    return f"{element.tag} {name!r} (line {element.line})" if name else f"{element.tag} on line {element.line}"


def _law(reader: Reader, element: Element) -> tuple[Vec3, Vec3] | None:
    """Gain and bias of a <general>, each of 1, length and velocity; None where they are of another kind."""
    kinds = element.get("gaintype", "fixed"), element.get("biastype", "none")
    if kinds[0] not in ("fixed", "affine") or kinds[1] not in ("none", "affine"):
        return None
    a, b, c = read_some(reader, _first(element, "gainprm"), "gainprm", (1.0, 0.0, 0.0), xml.ANY)
    d, e, f = read_some(reader, _first(element, "biasprm"), "biasprm", ORIGIN, xml.ANY)
    return (a, b, c) if kinds[0] == "affine" else (a, 0.0, 0.0), (d, e, f) if kinds[1] == "affine" else ORIGIN


def _damped(gain: Vec3, bias: Vec3, mobility: float) -> tuple[Vec3, Vec3] | None:
    """Gain and bias of a servo whose ratio of damping is to the critical one; None where there is none such.

    mobility: the inverse of the inertia that is moved.
    """
    constant, stiffness, ratio = bias
    if stiffness > 0.0 or not mobility > 0.0:
        return None
    return gain, (constant, stiffness, -2.0 * ratio * sqrt(-stiffness / mobility))


def _unbounded_tendons(file: File) -> set[str]:
    """Tendons that are read, and whose sum of forces is not cut."""
    every = (file.attributes(x, "", "tendon") for section in file.root.all("tendon") for x in section.children)
    return {x.name for x in file.draft.tendons} - {x.get("name") for x in every if limited(file, x, "actuatorfrc")}


def _muscle(reader: Reader, law: Element, element: Element) -> tuple[float, ...]:
    """The numbers of a muscle of which the file says between which lengths it works; empty for others."""
    kinds, ends = (law.get("gaintype", "fixed"), law.get("biastype", "none")), element.get("lengthrange", "0 0")
    if kinds != ("muscle", "muscle") or law.get("gainprm") != law.get("biasprm") or not nonzero(ends):
        return ()
    numbers = read_some(reader, _first(law, "gainprm", len(USUAL_MUSCLE)), "gainprm", USUAL_MUSCLE, xml.ANY)
    return (*numbers, *reader.vector(element, "lengthrange", (0.0, 0.0), xml.ANY))


def acts_alone(actuator: Element) -> bool:
    """True if an actuator exerts a force while its control is 0."""
    get = actuator.get
    if not nonzero(get("gear", "1")):
        return False
    if get("ctrllimited", "auto") != "false" and _excludes_zero(get("ctrlrange", "0 0")):
        return True
    general = as_general(actuator.tag, actuator.attributes)
    kind = general.get("biastype", "none")
    return kind != "none" and (kind != "affine" or nonzero(general.get("biasprm", "0")))


def _excludes_zero(text: str) -> bool:
    try:
        low, high = xml.parse_numbers(text, 2)
    except ValueError:
        return False
    return low < high and (low > 0.0 or high < 0.0)


def _first(element: Element, attribute: str, count: int = 3) -> Element:
    """The element with so many numbers of an attribute at most; others are of other kinds of gains."""
    text = " ".join(element.get(attribute).split()[:count])
    return Element(element.tag, {attribute: text} if text else {}, element.line)


def _range(file: File, reader: Reader, element: Element, prefix: str) -> tuple[float, float] | None:
    if not limited(file, element, prefix):
        return None
    low, high = reader.vector(element, f"{prefix}range", (0.0, 0.0), xml.ANY)
    return low, high


def _inherited(limit: Limit, share: float) -> tuple[float, float] | None:
    if limit.lower is None or limit.upper is None:
        return None
    middle, half = (limit.lower + limit.upper) / 2.0, (limit.upper - limit.lower) / 2.0 * share
    return middle - half, middle + half


def read_sensor(file: File, element: Element, layout: Layout) -> bool:
    """Enter what is measured at a joint, at a site or in the frame of a body; False for the rest."""
    tag, get = element.tag, element.get
    name, reader = get("name") or f"{tag}_{len(file.draft.sensors)}", Reader(file.draft.problems.append, tag)
    if tag in JOINT_SENSORS:
        if get("joint") not in {joint.name for joint in file.draft.joints}:
            return False
        cutoff = reader.scalar(element, "cutoff", 0.0)
        file.draft.sensors.append(Sensor(name, tag, get("joint"), cutoff=cutoff))
        return True
    if tag not in LINK_SENSORS or get("reftype") or get("camera") or any(nonzero(get(x, "0")) for x in DELAYS):
        return False
    if get("data", "dist") != "dist":  # a rangefinder that tells more
        return False
    cutoff = reader.scalar(element, "cutoff", 0.0)
    kind, target = OBJECTS.get(get("objtype", "site")), get("site") or get("objname")
    if kind == "site" and target in layout.sites:
        body, (place, turn) = layout.sites[target]
    elif kind == "body" and target in layout.bodies and get("objtype") == "xbody":
        body, (place, turn) = target, IDENTITY_POSE
    else:
        return False
    size, shape = layout.sizes.get(target, (ORIGIN, "sphere"))
    if shape not in SENSOR_SHAPES:
        return False
    file.draft.sensors.append(Sensor(name, tag, "", body, place, turn, size, shape, cutoff))
    return True
