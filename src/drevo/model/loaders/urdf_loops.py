"""Loops, gearboxes and rotors behind gears in URDF, in words of Drake and Gazebo.

<loop_joint> between <link1> and <link2>; <drake:ball_constraint>; <drake:linear_bushing_rpy>, which holds exactly
here what it holds stiffly there; and SDFormat's <joint> in a <gazebo> without reference.
"""

from __future__ import annotations

from dataclasses import replace

from ...io import xml
from ...io.files import Files
from ...io.xml import Element, Reader
from ..description import IDENTITY, ORIGIN, Joint, JointDynamics, Loop, Mat3, Vec3
from ..draft import Draft
from ..rotations import IDENTITY_POSE, FramePose, apply, from_rpy, inverse_pose, matmul, transpose
from .closures import close
from .sdf.frames import MODEL, WORLD, Scene, child_text, key_of, read_pose
from .sdf.joints import read_gearboxes, read_joint

BALL, BUSHING = "drake:ball_constraint", "drake:linear_bushing_rpy"
LOOP_JOINT_KINDS = {"ball": "spherical"}
LOOP_TAGS = ("loop_joint", BALL, BUSHING, "frame")


def read_loops(draft: Draft, root: Element) -> None:
    """Enter every loop, coupling and rotor that the extensions say."""
    for element in root.all("loop_joint"):
        _read_loop_joint(draft, element)
    for element in root.all(BALL):
        reader = Reader(draft.problems.append, f"{BALL} (line {element.line})")
        ends = [(_end(reader, element, f"{BALL}_body_{x}"), _point(reader, element, f"{BALL}_p_{p}"))
                for x, p in (("A", "AP"), ("B", "BQ"))]  # fmt: skip
        draft.loops.append(Loop("point", *ends[0], *ends[1]))
    for element in root.all(BUSHING):
        _read_bushing(draft, root, element)
    _read_gazebo(draft, [joint for x in root.all("gazebo") if not x.get("reference") for joint in x.all("joint")])
    for element in root.all("transmission"):
        _read_rotors(draft, element)


def _read_loop_joint(draft: Draft, element: Element) -> None:
    """Enters a loop_joint element as a loop, or its faults."""
    name, kind = key_of(element), element.get("type")
    reader = Reader(draft.problems.append, f"loop_joint {name!r} (line {element.line})")
    (parent, parent_pose), (child, child_pose) = (_placed(reader, element, tag) for tag in ("link1", "link2"))
    x, y, z = reader.vector(element.first("axis"), "xyz", (1.0, 0.0, 0.0))
    place, turn = inverse_pose(child_pose)
    joint = Joint(
        name, LOOP_JOINT_KINDS.get(kind, kind), parent, child, *parent_pose, axis=(x, y, z), line=element.line
    )
    close(draft, replace(joint, child_origin=place, child_rotation=turn))


def _placed(reader: Reader, element: Element, tag: str) -> tuple[str, FramePose]:
    """A link and a frame in it."""
    end = element.first(tag)
    if end is None or not end.get("link"):
        reader.report(f"{reader.owner} names no {tag}; add <{tag} link=.../>")
        return f"<{tag}>", IDENTITY_POSE
    x, y, z = reader.vector(end, "xyz", ORIGIN)
    rpy = reader.vector(end, "rpy", ORIGIN)
    return end.get("link"), ((x, y, z), from_rpy(*rpy) if any(rpy) else IDENTITY)


def _end(reader: Reader, element: Element, tag: str) -> str:
    end = element.first(tag)
    name = end.get("name") or end.text if end else ""
    if not name:
        reader.report(f"{reader.owner} has no <{tag}>; add it")
    return name or f"<{tag}>"


def _point(reader: Reader, element: Element, tag: str) -> Vec3:
    x, y, z = reader.vector(element.first(tag), "value", ORIGIN)
    return (x, y, z)


def _read_bushing(draft: Draft, root: Element, element: Element) -> None:
    """Stiff along three directions and about as many as hold: a point, a hinge or a weld."""
    reader = Reader(draft.problems.append, f"{BUSHING} (line {element.line})")
    frames = {frame.get("name"): frame for frame in root.all("frame")}
    ends = []
    for role in ("frameA", "frameC"):
        name = _end(reader, element, f"drake:bushing_{role}")
        if name not in frames:
            reader.report(f"{reader.owner}: the frame {name!r} does not exist; correct the name")
            return
        x, y, z = reader.vector(frames[name], "xyz", ORIGIN)
        ends.append((frames[name].get("link"), (x, y, z), from_rpy(*reader.vector(frames[name], "rpy", ORIGIN))))
    force, torque = (_point(reader, element, f"drake:bushing_{load}_stiffness") for load in ("force", "torque"))
    free = [k for k in range(3) if torque[k] == 0.0]
    (a, point_a, turn_a), (b, point_b, turn_b) = ends
    if not all(force) or len(free) == 2:
        draft.ignore("a bushing that holds neither a point, a hinge nor a weld", reader.owner)
        return
    draft.doubts.append(f"{reader.owner} is held exactly, and stiffly by others")
    if len(free) == 1:
        axis = tuple(float(k == free[0]) for k in range(3))
        axes = apply(turn_a, axis), apply(turn_b, axis)  # type: ignore[arg-type]
        draft.loops.append(Loop("revolute", a, point_a, b, point_b, None, *axes))
    else:
        turn: Mat3 | None = None if free else matmul(turn_a, transpose(turn_b))
        draft.loops.append(Loop("point" if free else "weld", a, point_a, b, point_b, turn))


def _read_gazebo(draft: Draft, joints: list[Element]) -> None:
    """SDFormat's joints between links that stand where all coordinates are zero."""
    if not joints:
        return
    scene = Scene(draft, Files())
    scene.placed[WORLD] = IDENTITY_POSE
    carried = {joint.child for joint in draft.joints}
    scene.frames = {link.name: (MODEL, IDENTITY_POSE) for link in draft.links if link.name not in carried}
    scene.frames |= {joint.child: (joint.parent, (joint.origin, joint.rotation)) for joint in draft.joints}
    tree = list(draft.joints)
    for element in joints:
        pose = element.first("pose")
        reader = Reader(draft.problems.append, f"joint {element.get('name')!r} (line {element.line})")
        relative = (pose.get("relative_to") if pose else "") or child_text(element, "child") or MODEL
        scene.frames[key_of(element)] = relative, read_pose(reader, pose)
        read_joint(scene, element)
    closing, draft.joints = draft.joints[len(tree) :], tree
    for joint in closing:
        close(draft, joint)
    read_gearboxes(scene)


def _read_rotors(draft: Draft, element: Element) -> None:
    """The rotor's inertia times the square of its gear's ratio, at the joint that it drives."""
    names = [joint.get("name") for joint in element.all("joint")]
    for actuator in element.all("actuator"):
        reader = Reader(draft.problems.append, f"transmission {element.get('name')!r} (line {element.line})")
        rotor = reader.scalar(actuator.first("drake:rotor_inertia"), "value", 0.0, xml.MAX_INERTIA)
        gear, reduction = actuator.first("drake:gear_ratio"), actuator.first("mechanicalReduction")
        ratio = reader.scalar(gear, "value", 1.0)
        if gear is None and reduction is not None and (rotor or reduction.text.strip("+-0.") == ""):
            ratio = reader.scalar(
                Element("mechanicalReduction", {"value": reduction.text}, reduction.line), "value", 1.0
            )
        if ratio == 0.0:
            report = reader.report if rotor else draft.doubts.append
            report(f"{reader.owner}: the gear ratio is 0; give the turns of the rotor per turn of the joint")
        lost = [name for name in names if name not in {joint.name for joint in draft.joints}]
        if rotor and lost:
            reader.report(f"{reader.owner}: the joint {lost[0]!r} does not exist; correct the name")
        for k, joint in enumerate(draft.joints):
            if rotor and joint.name in names:
                d = joint.dynamics or JointDynamics()
                draft.joints[k] = replace(joint, dynamics=replace(d, armature=d.armature + rotor * ratio**2))
