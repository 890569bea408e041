"""An MJCF file held against the whole schema: refused is what the schema does not have, named what acts unread."""

from __future__ import annotations

from functools import cache

from ....io.xml import Element
from ..schema import Node, format_table, label_of, no_such_attribute, no_such_element
from .defaults import SHARED_DEFAULTS
from .file import File

REFUSED_ELEMENTS = ("composite", "flexcomp")  # they make bodies and joints by rules of their own


@cache
def schema() -> Node:
    """<mujoco>, with what may hold itself."""
    root = format_table("mjcf/schema.txt")
    body, default = root.children["body"], root.children["default"]
    body.children["body"], default.children["default"] = body, default
    for tag in ("frame", "replicate"):
        body.children[tag].children = body.children
    root.children = {**root.children, "worldbody": body}
    del root.children["body"]
    return root


def check_schema(file: File) -> None:
    """Every element and attribute of a file whose default classes are read."""
    draft, loud = file.draft, _loud(file)
    stack = [(file.root, schema(), "", "")]
    while stack:
        element, node, kind, childclass = stack.pop()  # kind: of its defaults, none of a default itself
        attributes = element.attributes
        if not attributes.keys() <= node.silent:
            draft.problems += [
                no_such_attribute(element, node, name)
                for name in attributes
                if name not in node.verdicts and not (element is file.root and name.startswith(("xmlns", "xsi:")))
            ]
        if kind and (loud or not attributes.keys() <= node.silent):
            _name(file, element, node, kind, childclass, loud)
        childclass = attributes.get("childclass") or childclass
        for child in element.children:
            if child.tag in REFUSED_ELEMENTS:
                draft.problems.append(
                    f"<{child.tag}> on line {child.line} makes bodies by rules of its own and is not read; write "
                    "them out (MuJoCo saves them so, mj_saveLastXML)"
                )
            elif inner := node.children.get(child.tag):
                kind = "" if element.tag == "default" else SHARED_DEFAULTS.get(element.tag, child.tag)
                stack.append((child, inner, kind, childclass))
            else:
                draft.problems.append(no_such_element(child, node, element))


def _loud(file: File) -> set[str]:
    """Kinds of elements of which a default says something that acts and is not read."""
    nodes = schema().children["default"].children
    every = (pair for usual in file.classes.values() for pair in usual.items())
    return {tag for tag, given in every if tag in nodes and nodes[tag].told(given)}


def _name(file: File, element: Element, node: Node, kind: str, childclass: str, loud: set[str]) -> None:
    if "class" in node.verdicts and kind in loud:
        element = file.attributes(element, childclass, kind)
    for name in node.told(element.attributes):
        file.draft.ignore(name, label_of(element))
