"""<include>: what a file names is put in the place of the name, as if it stood there."""

from __future__ import annotations

import os
from typing import NamedTuple

from ....errors import ModelError
from ....io import xml
from ....io.files import Files
from ....io.xml import Budget, Element

ROOTS = ("mujoco", "mujocoinclude")
DEEPEST = 32  # a file that names a file that names ...


class IncludedFrom(NamedTuple):
    """The place of an element: in a file of this folder, included by these files."""

    folder: str
    chain: tuple[str, ...] = ()


def include(root: Element, folder: str, source: str, files: Files, budget: Budget) -> None:
    """Put what every <include> names in its place: a file in the folder of the root, or else in its own."""

    def spliced(element: Element, place: IncludedFrom) -> list[Element]:
        out: list[Element] = []
        for child in element.children:
            if child.tag == "include":
                inner, top = _opened(child, folder, place, files, budget)
                out += spliced(top, inner)
            else:
                out.append(child)
                pending.append((child, place))
        return out

    pending = [(root, IncludedFrom(folder, (os.path.realpath(source),)))]
    while pending:
        element, place = pending.pop()
        element.children = spliced(element, place)


def _opened(
    element: Element, folder: str, place: IncludedFrom, files: Files, budget: Budget
) -> tuple[IncludedFrom, Element]:
    """The root of the file that an <include> names."""
    who = f"<include> on line {element.line}"
    try:
        path = files.find(element.get("file"), (folder, place.folder))
        real = os.path.realpath(path)
        if real in place.chain or len(place.chain) > DEEPEST:
            raise ModelError(
                f"{element.get('file')!r} includes itself or too many files in each other; take it out"
            )
        data = files.read(path, xml.MAX_XML_BYTES, xml.WEIGHT)
    except ModelError as error:
        raise ModelError(f"{who}: {error}") from None
    name = os.path.basename(path)
    try:
        root = xml.parse(data, file=name, budget=budget)
    except ModelError as error:
        raise ModelError(f"{who}, {name!r}: {error}") from None
    if root.tag not in ROOTS:
        raise ModelError(f"{who}: {name!r} begins with <{root.tag[:40]}>; <mujoco> or <mujocoinclude> is needed")
    return IncludedFrom(os.path.dirname(path), (*place.chain, real)), root
