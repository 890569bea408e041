"""MJCF (MuJoCo XML): the tree of bodies with joints and inertias, of all the files that it includes.

A body with several joints becomes several links, the ones between without mass (BODY_JOINT). A free joint counts
from the world's origin, as in MuJoCo, so that its q is the pose of the body; q of a hinge or a slide counts from
its `ref`. `schema.txt` lists all elements and attributes of the format: what acts on the motion and is not read is
warned about. Mesh files are opened only where the inertia of a body is that of its meshes.
"""

from __future__ import annotations

from ....errors import ModelError
from ....io.files import Files
from ....io.xml import Element
from ...description import ContactPoint, Link
from ...draft import Draft
from .bodies import check_compensation, read_bodies, tune_springs
from .inertials import scale_to_total
from .posture import Posture
from .sections import read_keyframes, read_sections
from .settings import read_file
from .touching import name_fused, read_initial

CONTACT_PREFIX = "contact_point_"  # how the names of sites begin that are the robot's contact points


def draft_of(root: Element, source: str = "", files: Files | None = None) -> Draft:
    """The draft of a robot from the elements of an MJCF file, not yet judged."""
    if root.tag != "mujoco":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; an MJCF file begins with <mujoco>"
        )
    draft = Draft(root.get("model") or "mujoco", links=[Link("world")], source=source)
    file = read_file(draft, root, files or Files(source), source)
    layout = read_bodies(file)
    scale_to_total(file)
    name_fused(file)
    read_keyframes(file)
    stands = Posture(draft, layout.at, layout.bodies)
    read_sections(file, layout, stands)
    tune_springs(file, stands)
    check_compensation(file)
    read_initial(file, layout)
    draft.contacts += [
        ContactPoint(body, at) for name, (body, (at, _)) in layout.sites.items() if name.startswith(CONTACT_PREFIX)
    ]
    draft.note_missing_meshes(file.meshes.missing_file)
    return draft
