"""The robots that Drevo and its peers are compared on: files of example-robot-data, made plain."""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

MUJOCO = '<mujoco><compiler discardvisual="true" balanceinertia="true" fusestatic="true"/></mujoco>'
NOT_DYNAMICS = ("visual", "collision")


@dataclass(frozen=True, slots=True)
class Subject:
    """A robot, where it lies, what it stands on, and joints welded so that every peer has the same model."""

    name: str
    path: str
    base: str
    welded: tuple[str, ...] = ()


SUBJECTS = (
    Subject("panda", "panda_description/urdf/panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
    Subject("go2", "go2_description/urdf/go2.urdf", "floating"),
    Subject("talos", "talos_data/robots/talos_reduced.urdf", "floating"),
)


def data_folder() -> Path:
    """Where the package example-robot-data keeps its files."""
    package = distribution("example-robot-data")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))


def plain_urdf(subject: Subject, mujoco: bool = False) -> str:
    """The description without meshes; for MuJoCo the free joint is written out, as its loader welds roots."""
    root = ET.parse(data_folder() / subject.path).getroot()
    for link in root.findall("link"):
        for tag in NOT_DYNAMICS:
            for shape in link.findall(tag):
                link.remove(shape)
    for joint in root.findall("joint"):
        if joint.get("name") in subject.welded:
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
    if mujoco:
        root.append(ET.fromstring(MUJOCO))
        if subject.base == "floating":
            _put_free(root)
    return ET.tostring(root, encoding="unicode")


def _put_free(root: ET.Element) -> None:
    children = {joint.find("child").get("link") for joint in root.findall("joint")}  # type: ignore[union-attr]
    base = next(link.get("name") for link in root.findall("link") if link.get("name") not in children)
    ET.SubElement(root, "link", name="ground__")
    joint = ET.SubElement(root, "joint", name="free__", type="floating")
    ET.SubElement(joint, "parent", link="ground__")
    ET.SubElement(joint, "child", link=str(base))


def plain_file(subject: Subject) -> Path:
    """The plain description as a file."""
    folder = Path(tempfile.mkdtemp(prefix="drevo-bench-"))
    path = folder / f"{subject.name}.urdf"
    path.write_text(plain_urdf(subject), encoding="utf-8")
    return path
