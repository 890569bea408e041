"""The one way in for XML, hardened and bounded, with line numbers; and for numbers written as text.

Changes of single attributes and elements in the text of an XML file; every other byte stays.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape

from ..errors import ModelError

MAX_XML_BYTES = 8 * 2**20
WEIGHT = 4  # how often a byte of it counts among the bytes of all files
MAX_DEPTH = 10_000  # nobody recurses into them
MAX_ELEMENTS = 200_000
MAX_ATTRIBUTES = 256
MAX_ATTRIBUTE = 4096
MAX_NAME = 256
# what takes longest to read of a robot, so that the largest file is read in seconds
TAG_LIMITS = {tag: 20_000 for tag in ("link", "body", "joint", "freejoint", "frame")}
TAG_LIMITS |= {"geom": 30_000, "visual": 50_000, "collision": 50_000}
BULKY = ("hfield", "mesh", "flex", "skin", "texture")  # of MuJoCo: arrays as attributes, which nobody reads here

MAX_LENGTH = 1e6  # metres; also the bound of every plain number (angles, axes, ratios)
MAX_MASS = 1e9  # kilograms
MAX_INERTIA = MAX_MASS * MAX_LENGTH**2
ANY = math.inf

_XML_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_XML_SPACE = re.compile(r"[ \t\r\n]+")  # str.split() would also split on Unicode spaces
_LATE_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?\s+<\?xml\s[^>]*\?>")
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


class Line(int):
    """The number of a line, which a sentence tells with the file that was included."""

    file = ""

    def __str__(self) -> str:
        return f"{int(self)} of {self.file}" if self.file else int.__repr__(self)


class Budget:
    """Counts the elements of a description, its included files and copies together, against the limits."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds: Counter[str] = Counter()

    def spend(self, tag: str) -> str:
        """Count one more element; what is wrong where that is one too many."""
        self.count += 1
        if self.count > MAX_ELEMENTS:
            return f"the file has more than {MAX_ELEMENTS} elements"
        if tag in TAG_LIMITS:
            self.kinds[tag] += 1
            if self.kinds[tag] > TAG_LIMITS[tag]:
                return f"the file has more than {TAG_LIMITS[tag]} elements <{tag}>"
        return ""


@dataclass(slots=True, eq=False)
class Element:
    """One element of a file: its tag, attributes, children, text and the line on which it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    offset: int = -1  # of its first byte in the file

    @property
    def text(self) -> str:
        """The text directly inside the element, without the white space around it."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list[Element]:
        """The children with this tag, in file order."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        """The first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def get(self, attribute: str, default: str = "") -> str:
        """An attribute, or the default where it is absent."""
        return self.attributes.get(attribute, default)

    def walk(self) -> Iterator[Element]:
        """The element and everything below it, depth first, without recursion."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


class _Tree:
    """Handlers of expat that build Elements and keep the limits while they do."""

    def __init__(self, file: str, budget: Budget) -> None:
        self.root: Element | None = None
        self.open: list[Element] = []
        self.file, self.budget = file, budget
        self.skipped = 0  # bytes of the file that the parser is not given
        self.parser = parser = expat.ParserCreate("utf-8")  # overrides what the file declares
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self.start, self.end
        parser.CharacterDataHandler = self.characters
        # a declaration ends the parse before anything that it declares can be used
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self.declared
        parser.UnparsedEntityDeclHandler = parser.ExternalEntityRefHandler = self.declared

    @property
    def line(self) -> int:
        if not self.file:
            return self.parser.CurrentLineNumber
        line = Line(self.parser.CurrentLineNumber)
        line.file = self.file
        return line

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.check(tag, attributes)
        element = Element(tag, attributes, self.line, offset=self.parser.CurrentByteIndex + self.skipped)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def check(self, tag: str, attributes: dict[str, str]) -> None:
        """Refuse the element that passes a limit."""
        if wrong := self.budget.spend(tag):
            self.refuse(wrong)
        if len(self.open) >= MAX_DEPTH:
            self.refuse(f"elements are nested deeper than {MAX_DEPTH}")
        if len(attributes) > MAX_ATTRIBUTES:
            self.refuse(f"<{tag[:40]}> has {len(attributes)} attributes, {MAX_ATTRIBUTES} are allowed")
        if len(tag) > MAX_NAME or any(len(name) > MAX_NAME for name in attributes):
            self.refuse(f"a name that begins with {tag[:40]!r} is longer than {MAX_NAME} characters")
        for name, value in attributes.items():
            if len(value) > MAX_ATTRIBUTE and tag not in BULKY:
                self.refuse(f"{name} of <{tag}> has {len(value)} characters, {MAX_ATTRIBUTE} are allowed")

    def refuse(self, fault: str) -> None:
        raise ModelError(f"line {self.line}: {fault}; the file is refused as a robot description")

    def end(self, tag: str) -> None:
        self.open.pop()

    def characters(self, text: str) -> None:
        if not text.isspace():
            self.open[-1].texts.append(text)

    @staticmethod
    def declared(*_: object) -> NoReturn:
        raise ModelError(
            "the file has a DTD (DOCTYPE, entity declarations), which a robot description does not need and "
            "which can be an attack; remove the DOCTYPE"
        )


def parse(
    data: bytes,
    doubt: Callable[[str], object] = lambda sentence: None,
    file: str = "",
    budget: Budget | None = None,
) -> Element:
    """The root element of an XML document in UTF-8; ModelError where it is broken, hostile or too big.

    `doubt` takes a sentence about what XML forbids and every reader of robots allows; `file` is told with the
    lines of an included file, and `budget` counts the elements of several files together.
    """
    _check_bytes(data)
    tree = _Tree(file, budget or Budget())
    if late := _LATE_DECLARATION.match(data):  # lines are kept, so that those of the elements stay
        doubt("there is white space before <?xml, which must be the very first of a file; remove it")
        lines = data.count(b"\n", 0, late.end())
        data, tree.skipped = b"\n" * lines + data[late.end() :], late.end() - lines
    try:
        # one feed: in pieces, a long attribute would be scanned anew with every piece
        tree.parser.Parse(data, True)
    except expat.ExpatError as error:
        line, why = error.lineno, expat.ErrorString(error.code)
        raise ModelError(f"line {line}: the XML is malformed or cut off ({why}); mend or re-export it") from None
    if tree.root is None:
        raise ModelError("line 1: the XML has no element")
    return tree.root


def too_many_bytes(count: int, most: int = MAX_XML_BYTES) -> str:
    """The message that refuses a file that is too large."""
    return f"the file has {count} bytes, more than {most} bytes, the most that a robot description may have"


def _check_bytes(data: bytes) -> None:
    if not data.strip():
        raise ModelError("the file is empty (line 1): a robot description needs at least one element")
    if len(data) > MAX_XML_BYTES:
        raise ModelError(too_many_bytes(len(data)))
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"line {line}: the file is not in UTF-8; save it in UTF-8") from None
    declared = _ENCODING.match(data[:1024])
    if declared and not data.isascii() and declared[1].lower() not in (b"utf-8", b"utf8"):
        raise ModelError(f"line 1: the file declares {declared[1].decode()}; save it in UTF-8 and declare that")


def parse_number(text: str) -> float:
    """A finite decimal number in ASCII and the C locale; ValueError says what is wrong with anything else."""
    text = text.strip(" \t\r\n")
    if _XML_NUMBER.fullmatch(text) is None:
        plain = text.lower().lstrip("+-")
        if plain in ("nan", "inf", "infinity"):
            raise ValueError(f"{_short(text)} is not finite")
        hint = " (the decimal sign is a point)" if "," in text else ""
        raise ValueError(f"{_short(text)} is not a number{hint}")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{_short(text)} is too large")
    return value


def parse_numbers(text: str, count: int) -> tuple[float, ...]:
    """Exactly `count` numbers, separated by white space."""
    parts = [part for part in _XML_SPACE.split(text) if part]
    if len(parts) != count:
        given = f"{len(parts)} number" + ("" if len(parts) == 1 else "s")
        raise ValueError(f"{_short(text)} has {given}, {count} needed")
    return tuple(parse_number(part) for part in parts)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


class Reader:
    """Reads attributes as numbers; what cannot be read is said in a sentence, and zeros stand in its place.

    `report` takes the sentence; `owner` is the link or joint that the sentences name.
    """

    def __init__(self, report: Callable[[str], object], owner: str) -> None:
        self.report = report
        self.owner = owner

    def vector(
        self, element: Element | None, attribute: str, default: tuple[float, ...], bound: float = MAX_LENGTH
    ) -> tuple[float, ...]:
        """As many numbers as the default has; the default where the element or the attribute is absent."""
        text = element.attributes.get(attribute) if element else None
        if element is None or text is None:
            return default
        try:
            values = parse_numbers(text, len(default))
            self._check(values, bound)
        except ValueError as error:
            self.report(
                f"{self.owner}: {attribute} of <{element.tag}> on line {element.line}: {error}; correct it"
            )
            return default
        return values

    def scalar(self, element: Element | None, attribute: str, default: float, bound: float = MAX_LENGTH) -> float:
        """One number; the default where the element or the attribute is absent."""
        return self.vector(element, attribute, (default,), bound)[0]

    def optional(self, element: Element | None, attribute: str, bound: float = ANY) -> float | None:
        """One number, or None where the element or the attribute is absent."""
        if element is None or attribute not in element.attributes:
            return None
        return self.scalar(element, attribute, 0.0, bound)

    def needed(
        self, element: Element | None, parent: Element, tag: str, attribute: str, bound: float = MAX_LENGTH
    ) -> float:
        """One number that must be there: `attribute` of <tag> inside `parent`."""
        if element is None or attribute not in element.attributes:
            line = (element or parent).line
            self.report(f"{self.owner}: <{tag}> on line {line} has no {attribute}; add it")
            return 0.0
        return self.scalar(element, attribute, 0.0, bound)

    @staticmethod
    def _check(values: tuple[float, ...], bound: float) -> None:
        for value in values:
            if abs(value) > bound:
                raise ValueError(f"{value:g} is beyond {bound:g}, the largest that is allowed")


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
    match = _TAG.match(data, element.offset)
    assert match is not None, element  # the parser has read it here
    return match
