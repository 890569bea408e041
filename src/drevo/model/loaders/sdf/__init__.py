"""SDFormat: one model, with the poses of versions 1.5 and later. Mesh files are opened only to be weighed.

A link's frame may stand anywhere relative to its joint, and the links may form any graph: what the joints in the
order of the file carry is the tree, and every further joint closes a loop. A model that no joint holds in the
world stands, on a fixed base, where the file puts it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ....errors import ModelError
from ....io import xml
from ....io.files import Files
from ....io.xml import Budget, Element, Reader
from ...description import Link
from ...draft import STANDARD_GRAVITY, Draft, list_counts, listed, shorten
from ...rotations import compose
from .. import primitives
from ..closures import split_loops
from ..primitives import enter_geoms
from ..schema import check_known, format_table, true
from .frames import JOINTS, MODEL, WORLD, Scene, as_vec3, child_text, enter_frames, read_numbers
from .include import flattened, included, located
from .joints import read_gearboxes, read_joint
from .links import read_link

KNOWN_OPTIONS = (
    "pose",
    "link",
    "joint",
    "frame",
    "static",
    "self_collide",
    "allow_auto_disable",
    *primitives.TAGS,
)


def draft_of(root: Element, source: str = "", files: Files | None = None, model: str = "") -> Draft:
    """The draft of a model as the elements of an SDF file describe it, not yet judged."""
    if root.tag != "sdf":
        raise ModelError(
            f"the root element is <{root.tag[:40]}> on line {root.line}; an SDF file begins with <sdf>"
        )
    files = files or Files(source)
    missing = included(root, files, files.folder)
    chosen, world = _chosen(root, model, missing)
    top = flattened(chosen, Budget())
    draft = Draft(
        top.get("name") or "robot", source=source, notes=[f"not found, and left out: {x}" for x in missing]
    )
    if world:
        reader = Reader(draft.problems.append, "world")
        draft.gravity = as_vec3(read_numbers(reader, world.first("gravity"), STANDARD_GRAVITY))
        top.children += _joints_of_world(draft, world, top.get("name"))
    scene = Scene(draft, files, _version(root) < (1, 5))
    enter_frames(scene, top, world)
    draft.links = [read_link(scene, element) for element in top.all("link")]
    for element in top.children:
        if element.tag in JOINTS:
            read_joint(scene, element)
    split_loops(draft)
    read_gearboxes(scene)
    primitives.read_own(draft, top)
    if top.first(primitives.KINEMATIC):
        draft.links = [replace(link, inertial=None) for link in draft.links]
        draft.take_as_kinematic()
    enter_geoms(draft, scene.friction, files, lambda uri: located(uri, files, files.folder))
    _stand(scene)
    _note_unread(draft, top)
    return draft


def _note_unread(draft: Draft, model: Element) -> None:
    """Notes what the model's element holds and nothing here reads."""
    unused = Counter(child.tag for child in model.children if child.tag not in KNOWN_OPTIONS)
    if unused:
        draft.notes.append("tags not used: " + list_counts(unused))
    check_known(draft, model, format_table("sdf/schema.txt"))


def _version(root: Element) -> tuple[float, float]:
    """Major and minor: 1.11 is later than 1.9."""
    try:
        major, _, minor = root.get("version", "1.7").partition(".")
        return xml.parse_number(major), xml.parse_number(minor or "0")
    except ValueError as error:
        raise ModelError(f"version of <sdf> on line {root.line}: {error}") from None


def _chosen(root: Element, wanted: str, missing: list[str]) -> tuple[Element, Element | None]:
    """The model of the file that is wanted, by default the one that moves, and the world that holds it."""
    models: list[tuple[Element, Element | None]] = [(model, None) for model in root.all("model")]
    models += [(model, world) for world in root.all("world") for model in world.all("model")]
    candidates = [held for held in models if not true(child_text(held[0], "static"))]
    names = listed(model.get("name") for model, _ in models)
    if wanted:
        candidates = [held for held in models if held[0].get("name") == wanted]
        if len(candidates) != 1:
            raise ModelError(f"the file has {len(candidates)} models {wanted!r}; it has {names}: correct the name")
    if not candidates and missing:
        raise ModelError(missing[0])
    if len(candidates) != 1:
        static = listed(model.get("name") for model, _ in models if true(child_text(model, "static")))
        why = f" ({static} {'is' if len(models) == 1 else 'are'} static)" if static else ""
        raise ModelError(
            f"the file has {len(candidates)} models that can move{why}; it must hold exactly one, or name it "
            f"(drevo.load(..., model=...)): there are {names or 'none'}"
        )
    return candidates[0]


def _joints_of_world(draft: Draft, world: Element, model: str) -> list[Element]:
    """The joints beside the models that hold this one in the world; those to other models are not read."""
    joints = []
    for joint in world.all("joint"):
        ends = [child for child in joint.children if child.tag in ("parent", "child")]
        names = {child.text.partition("::")[0] for child in ends}
        if model not in names:
            continue
        if names != {model, WORLD}:
            draft.ignore("the world's joint to another model", f"joint {joint.get('name')!r}")
            continue
        for end in ends:
            end.texts = [end.text.removeprefix(f"{model}::") if end.text != model else MODEL]
        joints.append(joint)
    return joints


def _stand(scene: Scene) -> None:
    """The world, where something refers to it, and where on a fixed base the links stand that nothing carries."""
    draft = scene.draft
    carried = {joint.child for joint in draft.joints}
    roots = [link.name for link in draft.links if link.name not in carried]
    if WORLD in roots:
        draft.stands = {}
        return
    used = {joint.parent for joint in draft.joints} | {x for y in draft.loops for x in (y.link_a, y.link_b)}
    if WORLD in used:
        draft.links.insert(0, Link(WORLD))
    draft.stands = {name: compose(scene.world, scene.where(name)) for name in roots}
    if loose := [repr(name) for name in roots[WORLD not in used :]]:
        draft.notes.append(
            f"links that no joint carries, which SDF lets float, stand still on a fixed base: {shorten(loose)}"
        )
