"""<include> and nested models of SDFormat, flattened: names become arm::link, poses those in the frame of arm."""

from __future__ import annotations

import os
import re

from ....errors import ModelError
from ....io import xml
from ....io.files import Files, package_name
from ....io.meshes import find_mesh
from ....io.xml import Budget, Element
from ..schema import true
from .frames import MODEL, PLACED, WORLD, key_of

RENAMED_ELEMENTS = ("link", "joint", "frame")
MAX_NESTED_MODELS = 16  # a model in a model in ...
_SCHEME = re.compile(r"^(model|package|file|sample)://")


def included(root: Element, files: Files, folder: str, depth: int = 0) -> list[str]:
    """Put the models that every <include> names in its place; what a world includes and is not found is told."""
    missing: list[str] = []
    pending = [root]
    while pending:
        element = pending.pop()
        for i, child in enumerate(element.children):
            if child.tag == "include":
                try:
                    element.children[i] = _opened(child, files, folder, depth)
                except ModelError as error:
                    if element.tag != "world":
                        raise
                    missing.append(str(error))
                    element.children[i] = Element("missing", {}, child.line)
        pending += [child for child in element.children if child.tag in ("sdf", "world", "model")]
    return missing


def _opened(element: Element, files: Files, folder: str, depth: int) -> Element:
    """The model of the file that an <include> names, under its name and at its pose."""
    label = f"<include> on line {element.line}"
    uri = element.first("uri")
    try:
        if depth >= MAX_NESTED_MODELS:
            raise ModelError(f"files include each other more than {MAX_NESTED_MODELS} deep; take one out")
        path = located(uri.text if uri else "", files, folder)
        root = xml.parse(files.read(path, xml.MAX_XML_BYTES, xml.WEIGHT), file=os.path.basename(path))
        included(root, files, os.path.dirname(path), depth + 1)
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1:
            raise ModelError(f"{os.path.basename(path)!r} holds {len(models)} models; one is needed")
    except ModelError as error:
        deeper = str(error).startswith("<include>")  # the innermost one says it all
        raise ModelError(str(error) if deeper else f"{label}: {error}") from None
    model = models[0]
    overrides = {child.tag: child for child in element.children if child.tag in ("pose", "static")}
    model.children = [child for child in model.children if child.tag not in overrides] + list(overrides.values())
    for tag in ("name", "placement_frame"):
        if given := element.first(tag):
            model.attributes[tag] = given.text
    model.attributes |= {key: element.attributes[key] for key in ("merge",) if key in element.attributes}
    return model


def located(uri: str, files: Files, folder: str) -> str:
    """The file of a URI, or of the model in its folder; sought beside the file, higher up, and in the roots."""
    name, above, tried = _SCHEME.sub("", uri.strip()), folder, []
    while above and files.may(os.path.join(os.path.realpath(above), "x")):
        tried.append(above)
        above = os.path.dirname(above) if os.path.dirname(above) != above else ""
    tried = [*tried, *files.roots] or [folder]
    package, _, rest = name.partition("/")
    inside = [top for top in tried if rest and package in (os.path.basename(top), package_name(top))]
    if inside and not any(os.path.lexists(os.path.join(top, name)) for top in tried):
        name, tried = rest, inside
    path = files.find(name, tried)
    return files.find(_described(files, path), [path]) if os.path.isdir(path) else path


def at_hand(uri: str, files: Files) -> bool:
    """There is such a mesh file, whether or not this description may read it."""
    try:
        return find_mesh(uri, files.folder) is not None or bool(located(uri, files, files.folder))
    except ModelError:
        return False


def _described(files: Files, folder: str) -> str:
    """The SDF file of a model's folder, which `model.config` may name."""
    config = os.path.join(folder, "model.config")
    if os.path.lexists(os.path.join(folder, "model.sdf")) or not os.path.isfile(config):
        return "model.sdf"
    named = xml.parse(files.read(files.find("model.config", [folder]), xml.MAX_XML_BYTES, xml.WEIGHT)).all("sdf")
    return named[-1].text if named else "model.sdf"


def flattened(model: Element, budget: Budget, depth: int = 0) -> Element:
    """The model with all links, joints and frames of the models in it as its own."""
    out: list[Element] = []
    for child in model.children:
        if child.tag != "model":
            out.append(child)
            continue
        if depth >= MAX_NESTED_MODELS:
            raise ModelError(
                f"<model> on line {child.line} is nested more than {MAX_NESTED_MODELS} deep; flatten it"
            )
        out += _inlined(flattened(child, budget, depth + 1), budget)
    return Element(model.tag, model.attributes, model.line, out, model.texts)


def _inlined(model: Element, budget: Budget) -> list[Element]:
    """Elements of a nested model, under its name; its own frame, of its name too, stands where the model does."""
    merged = true(model.get("merge"))
    name, before = key_of(model), "" if merged else f"{key_of(model)}::"
    model_frame = f"_merged__{name}__model__" if merged else name
    pose = model.first("pose") or Element("pose", {}, model.line)
    if not (pose.get("relative_to") or pose.get("frame")):
        pose = Element("pose", {**pose.attributes, "relative_to": MODEL}, pose.line, [], pose.texts)
    frame = Element("frame", {"name": model_frame}, model.line, [pose])
    held = [child for child in model.children if child.tag in RENAMED_ELEMENTS]
    if first := model.get("canonical_link") or next((key_of(link) for link in held if link.tag == "link"), ""):
        frame.attributes["attached_to"] = f"{before}{first}"
    if model.get("placement_frame"):
        frame.attributes[PLACED] = f"{before}{model.get('placement_frame')}"
    out = [frame]
    for child in held:
        if wrong := budget.spend(child.tag):
            raise ModelError(f"<model> on line {model.line}: {wrong}; the file is refused")
        out.append(_renamed(child, before, model_frame))
    return out


def _renamed(element: Element, before: str, model_frame: str) -> Element:
    """An element as the outer model names it, and all that it refers to."""

    def named(name: str) -> str:
        return model_frame if name in (MODEL, "") else name if name == WORLD else f"{before}{name}"

    def copy(old: Element) -> Element:
        new = Element(old.tag, dict(old.attributes), old.line, [copy(x) for x in old.children], old.texts)
        for name in ("relative_to", "expressed_in", "attached_to", "frame", PLACED):
            if old.get(name):
                new.attributes[name] = named(old.get(name))
        if old.tag in ("parent", "child", "gearbox_reference_body"):
            new.texts = [named(old.text)]
        if old.tag == "mimic" and old.get("joint"):
            new.attributes["joint"] = named(old.get("joint"))
        return new

    twin = copy(element)
    twin.attributes["name"] = f"{before}{element.get('name')}"
    pose = twin.first("pose")
    default = element.tag == "link" or (element.tag == "frame" and not element.get("attached_to"))
    if default and pose is None:
        twin.children.append(pose := Element("pose", {}, element.line))
    if default and pose and not (pose.get("relative_to") or pose.get("frame")):
        pose.attributes["relative_to"] = model_frame
    if element.tag == "frame" and not element.get("attached_to"):
        twin.attributes["attached_to"] = model_frame
    return twin
