"""Tables of formats: what is read of every element and attribute, what is named in a warning, and for which reason
the rest needs neither. `mjcf/schema.txt` says how a table is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ...io import xml
from ...io.xml import Element
from ..draft import Draft, did_you_mean

NAMED = "named"  # the verdict of what is told; "read" and the reasons are silent


def nonzero(text: str) -> bool:
    """True if some number in the text is not 0; text that is no number counts as one."""
    try:
        return any(xml.parse_number(part) for part in text.split())
    except ValueError:
        return True


def true(text: str) -> bool:
    """True if a switch is on."""
    return text.strip().lower() in ("true", "1")


@dataclass(slots=True)
class Node:
    """An element of a format: the verdicts of its attributes, and the elements that it may hold by their tags."""

    verdicts: dict[str, str] = field(default_factory=dict)
    neutral: dict[str, str] = field(default_factory=dict)  # of attributes: the value that changes nothing
    older: set[str] = field(default_factory=set)  # attributes that the format once had
    children: dict[str, Node] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()  # attributes about which nobody is told
    passed: frozenset[str] = frozenset()  # and elements inside

    def told(self, attributes: Mapping[str, str]) -> list[str]:
        """The attributes that act and are not read."""
        return [
            name for name, text in attributes.items() if self.verdicts.get(name) == NAMED and self.acts(name, text)
        ]

    def acts(self, name: str, text: str) -> bool:
        """True if a value differs from the neutral ones."""
        neutral = self.neutral[name]
        return nonzero(text) if neutral == "0" else text.strip().lower() not in neutral.lower().split("|")

    @property
    def inside(self) -> list[str]:
        """The tags of the elements that it may hold."""
        return [*self.children, *(name[1:] for name in self.verdicts if name.startswith("."))]


def parsed(text: str) -> dict[str, Node]:
    """The elements of a table by their paths."""
    nodes: dict[str, Node] = {}
    above: list[Node] = []
    older = verdict = ""
    for line in re.sub(r",\n", ", ", text).splitlines():
        if not line or line.startswith(("#", "reason ")):
            continue
        if not line.startswith(" "):
            above = [nodes.setdefault(path, Node()) for path in line.split(", ")]
            continue
        begin = re.match(r" *(older )?(\w+): ", line)
        older, verdict = (begin[1] or "", begin[2]) if begin else (older, verdict)
        for word in line[begin.end() if begin else 0 :].split():
            name, _, neutral = word.partition("=")
            for node in above:
                node.verdicts[name], node.neutral[name] = verdict, neutral
                node.older |= {name} if older else set()
    for node in nodes.values():
        node.silent = frozenset(name for name, verdict in node.verdicts.items() if verdict != NAMED)
        node.passed = frozenset(name[1:] for name in node.silent if name.startswith("."))
    return nodes


@cache
def format_table(file: str) -> Node:
    """The outermost element of a format, which stands first in a file of this folder; paths begin below it."""
    nodes = parsed((Path(__file__).parent / file).read_text("utf-8"))
    root = next(iter(nodes.values()))
    for path, node in list(nodes.items())[1:]:
        above, _, tag = path.rpartition("/")
        nodes.get(above, root).children[tag] = node
    return root


def label_of(element: Element) -> str:
    """The label in a sentence of an element that need not have a name."""
    name = element.get("name") or element.get("reference")
    return f"{element.tag} {name!r}" if name else f"{element.tag} on line {element.line}"


def no_such_attribute(element: Element, node: Node, name: str) -> str:
    """A sentence about an attribute that no version of the format has."""
    meant = did_you_mean(name, node.verdicts)
    return f"<{element.tag}> on line {element.line} has no attribute {name[:40]!r}{meant}; correct or remove it"


def no_such_element(element: Element, node: Node, above: Element) -> str:
    """A sentence about an element that no version of the format has there."""
    meant = did_you_mean(element.tag, node.inside)
    return (
        f"<{element.tag[:40]}> on line {element.line} has no place in <{above.tag}>{meant}; correct or remove it"
    )


# --- formats in which anybody may write anything: URDF and SDF -------------------------------------------------

HOLDERS = ("robot", "model", "link", "joint")  # what extensions add elements to


def check_known(draft: Draft, top: Element, root: Node) -> None:
    """Doubt numbers that stand in known elements under unknown names, and name what acts and is not read."""
    stack = [(top, root, label_of(top))]
    while stack:
        element, node, owner = stack.pop()
        for name, text in element.attributes.items():
            if name not in node.silent:
                if name in node.verdicts:
                    _tell(draft, node, name, text, owner)
                elif _numeric(text) and ":" not in name and "*" not in node.verdicts:
                    draft.doubts.append(f"{owner}: {no_such_attribute(element, node, name)}")
        for child in element.children:
            if child.tag in node.passed:
                continue
            if inner := node.children.get(child.tag):
                named = child.get("name") or child.get("reference")
                stack.append((child, inner, label_of(child) if named else owner))
            elif f".{child.tag}" in node.verdicts:
                text = " ".join(x.text for x in child.walk())
                _tell(draft, node, f".{child.tag}", text, owner)
            elif _misspelt(element, node, child):
                draft.doubts.append(f"{owner}: {no_such_element(child, node, element)}")


def _tell(draft: Draft, node: Node, name: str, text: str, owner: str) -> None:
    if node.verdicts[name] == NAMED and node.acts(name, text):
        draft.ignore(name.lstrip("."), owner)


def _misspelt(element: Element, node: Node, child: Element) -> bool:
    """True if an unknown element is no extension and carries numbers."""
    if ":" in child.tag or "*" in node.verdicts:
        return False
    if element.tag in HOLDERS and not did_you_mean(child.tag, node.inside):
        return False
    return any(_numeric(text) for x in child.walk() for text in (x.text, *x.attributes.values()))


def _numeric(text: str) -> bool:
    try:
        return bool([xml.parse_number(part) for part in text.split()])
    except ValueError:
        return False
