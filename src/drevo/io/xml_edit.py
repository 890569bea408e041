"""Changes of single attributes and elements in the text of an XML file; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from xml.sax.saxutils import escape

from .xml import Element

_TAG = re.compile(rb"""<([^\s/>]+)((?:\s+[^\s=>/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>""")


class Edit(NamedTuple):
    """The bytes from start to end become the text."""

    start: int
    end: int
    text: bytes


def set_attribute(data: bytes, element: Element, name: str, value: str | None) -> Edit:
    """The attribute with another value, or without one taken away; a new one stands last."""
    tag = _start(data, element)
    given = re.search(rb"(\s+" + re.escape(name.encode()) + rb"\s*=\s*)(\"[^\"]*\"|'[^']*')", tag[2])
    text = b"" if value is None else b'"' + escape(value, {'"': "&quot;"}).encode() + b'"'
    if given is None:
        return Edit(tag.end(2), tag.end(2), b"" if value is None else b" " + name.encode() + b"=" + text)
    first = tag.start(2) + (given.start() if value is None else given.start(2))
    return Edit(first, tag.start(2) + given.end(), text)


def set_text(data: bytes, element: Element, value: str) -> Edit:
    """The text of an element that holds no elements, without the white space around it; a comment in it stays."""
    tag = _start(data, element)
    if tag[3]:
        return insert_child(data, element, escape(value))
    held = data[tag.end() : data.index(b"<", tag.end())]
    start = tag.end() + len(held) - len(held.lstrip())
    return Edit(start, max(start, tag.end() + len(held.rstrip())), escape(value).encode())


def insert_child(data: bytes, element: Element, text: str) -> Edit:
    """A new first child, or the text of an element without any."""
    tag = _start(data, element)
    if tag[3]:
        return Edit(tag.start(3), tag.end(), b">" + text.encode() + b"</" + tag[1] + b">")
    return Edit(tag.end(), tag.end(), text.encode())


def remove(data: bytes, element: Element) -> Edit:
    """The element and what it holds, taken away."""
    tag = _start(data, element)
    if tag[3]:
        return Edit(tag.start(), tag.end(), b"")
    end = re.compile(rb"</" + re.escape(tag[1]) + rb"\s*>").search(data, tag.end())
    assert end is not None  # a parser has read it
    return Edit(tag.start(), end.end(), b"")


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with all changes, which may not overlap."""
    parts, done = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        assert edit.start >= done, "changes that overlap"
        parts += [data[done : edit.start], edit.text]
        done = edit.end
    return b"".join([*parts, data[done:]])


def _start(data: bytes, element: Element) -> re.Match[bytes]:
    """The start tag: all of it, its name, its attributes, the stroke of an element without an end tag."""
    found = _TAG.match(data, element.offset)
    assert found is not None, element  # the parser has read it here
    return found
