"""Rules about joints: limits, efforts, gears; and about the mesh files that a description names."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..io import xml
from ..io.meshes import find_mesh, find_moved
from ..io.xml import Element
from ..model.loaders.sdf.frames import child_text
from .findings import Change, Finding, Subject, of_element

BOUNDED = ("revolute", "prismatic", "helical")
DRIVEN = (*BOUNDED, "continuous")
LARGE_GEAR = 20.0  # a gear whose rotor, seen through its square, weighs as much as the link


def check_joints(s: Subject) -> Iterator[Finding]:
    """Limits that leave nothing, efforts that are not given."""
    held = _bounded_drives(s)
    for k, joint in enumerate(s.draft.joints):
        at, limit = s.draft.at(joint), joint.limit
        if limit and joint.kind in BOUNDED and limit.lower is not None and limit.lower == limit.upper:
            turns = joint.kind == "revolute" and limit.lower == 0.0
            yield of_element(
                "warning", "limits-zero", at, joint, f"both limits are {limit.lower:g}, so that it cannot move",
                "give it a range, or make it fixed" + "; without limits it is continuous" * turns,
                Change("continuous", k) if turns else None,
            )  # fmt: skip
        if limit and joint.kind in DRIVEN and limit.velocity == 0.0:
            message = "the velocity limit is zero"
            yield of_element("hint", "limits-zero", at, joint, message, "give the speed that the drive reaches")
        if (
            joint.kind in DRIVEN
            and joint.mimic is None
            and joint.name not in held
            and not (limit and limit.effort)
        ):
            message = (
                "there is no effort limit" if not limit or limit.effort is None else "the effort limit is zero"
            )
            yield of_element(
                "hint", "effort", at, joint, message, "give the torque or force that the drive reaches"
            )
    yield from _gears(s)


def _bounded_drives(s: Subject) -> set[str]:
    """Joints of MJCF without a drive, and those whose drive has a range of control or of force."""
    if s.root is None or s.root.tag != "mujoco":
        return set()
    free = {joint.name for joint in s.draft.joints}
    ranges = ("ctrlrange", "forcerange")
    classes = [x.tag for default in s.root.all("default") for x in default.walk() if any(map(x.get, ranges))]
    for drive in (x for section in s.root.all("actuator") for x in section.children):
        if drive.tag not in classes and not any(map(drive.get, ranges)):
            free.discard(drive.get("joint"))
    return free


def _gears(s: Subject) -> Iterator[Finding]:
    joints = {joint.name: joint for joint in s.draft.joints}
    for name, gear in _ratios(s.root):
        joint = joints.get(name)
        if joint is None or abs(gear) < LARGE_GEAR or (joint.dynamics and joint.dynamics.armature > 0.0):
            continue
        message = f"a gear of {abs(gear):g} drives it and the armature is zero"
        remedy = "give the inertia of the rotor times the gear's square"
        yield of_element("hint", "armature", s.draft.at(joint), joint, message, remedy)


def _ratios(root: Element | None) -> Iterator[tuple[str, float]]:
    """Joints with the gear of their drive, as <transmission> of URDF and <actuator> of MJCF say it."""
    if root is None:
        return
    for drive in root.all("transmission"):
        joint = drive.first("joint")
        for reduction in (x for x in drive.walk() if x.tag == "mechanicalReduction"):
            if joint:
                yield joint.get("name"), _number(reduction.text)
    for section in root.all("actuator"):
        for drive in section.children:
            yield drive.get("joint"), _number(drive.get("gear").partition(" ")[0])


def _number(text: str) -> float:
    try:
        return xml.parse_number(text)
    except ValueError:
        return 0.0


# --- mesh files ----------------------------------------------------------------------------------------------


def check_meshes(s: Subject) -> Iterator[Finding]:
    """Mesh files that are named and not there."""
    folder, listed = s.files.folder, set()
    if not folder or not s.data:
        return
    mesh_folder = _mesh_folder(s.root, folder)
    for where, line, attribute, uri in _named(s):
        if uri in listed or find_mesh(uri, mesh_folder):
            continue
        listed.add(uri)
        change, remedy = None, "correct the path, or set ROS_PACKAGE_PATH to where the package stands"
        moved = find_moved(uri, folder)
        if moved:
            new = os.path.relpath(moved, mesh_folder)
            change, remedy = Change("mesh", 0, (attribute, uri, new)), f"there is {new}: name that"
        yield Finding("warning", "mesh", where, f"the mesh file {uri!r} is not found", remedy, line, change)


def _named(s: Subject) -> Iterator[tuple[str, int, str, str]]:
    """Yields every name of a mesh file: its element, the line, the attribute, child or key, and the name."""
    if s.root is None:
        for link in s.draft.links:
            yield from ((s.draft.at(link), 0, "uri", shape.uri) for shape in link.shapes if shape.uri)
        return
    attribute = {"mujoco": "file", "sdf": "uri"}.get(s.root.tag, "filename")
    for element in s.root.walk():
        uri = child_text(element, attribute) if s.root.tag == "sdf" else element.get(attribute)
        if element.tag == "mesh" and uri:
            yield f"<{element.tag}> on line {element.line}", int(element.line), attribute, uri


def _mesh_folder(root: Element | None, folder: str) -> str:
    """The folder from which names of meshes count: of MJCF its meshdir, or assetdir."""
    compilers = root.all("compiler") if root and root.tag == "mujoco" else []
    folders = [c.get("meshdir") or c.get("assetdir") for c in compilers]
    return os.path.join(folder, next(filter(None, folders), ""))
