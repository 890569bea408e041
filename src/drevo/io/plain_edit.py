"""Finds the places of values in JSON and TOML, and changes of single ones in the text; every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .xml import Edit

_PLAIN_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"""(?!")|\'\'\'.*?\'\'\'(?!\')|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_BARE = re.compile(r"[^\s,\]}#]+")
_PLAIN_KEY = re.compile(r"[\w-]+")
_LINE_REST = re.compile(rb"[ \t]*(?:#[^\n]*)?\r?\n?")  # of a line


@dataclass
class Spot:
    """The place of a value, in bytes: `inside` are those of a table by their keys, or of a list.

    key: where its key begins, or its header; -1 of a table that dotted keys make, which stands nowhere itself.
    spread: a table of TOML whose entries stand on lines of their own; before: the dotted keys before theirs.
    row: of what stands between two brackets, all that do, in their order.
    """

    start: int
    end: int
    inside: dict[str, Spot] | list[Spot] | None = None
    key: int = -1
    spread: bool = False
    before: str = ""
    row: list[Spot] = field(default_factory=list, repr=False, compare=False)

    def at(self, *path: str | int) -> Spot | None:
        """The value below by keys and places in lists; None where there is none."""
        spot: Spot | None = self
        for step in path:
            held = spot.inside if spot else None
            if isinstance(step, int):
                spot = held[step] if isinstance(held, list) and step < len(held) else None
            else:
                spot = held.get(step) if isinstance(held, dict) else None
        return spot

    def like(self, value: object) -> bool:
        """True if it holds what a reader found: the same keys, lists as long."""
        if isinstance(value, dict) and isinstance(self.inside, dict):
            return self.inside.keys() == value.keys() and all(x.like(value[k]) for k, x in self.inside.items())
        if isinstance(value, list) and isinstance(self.inside, list):
            return len(self.inside) == len(value) and all(x.like(y) for x, y in zip(self.inside, value))
        return self.inside is None and not isinstance(value, (dict, list))


def spots_of(data: bytes, suffix: str) -> Spot:
    """All values of a file that a reader of ".json" or ".toml" has accepted."""
    text = data.decode("latin-1")  # a character for every byte
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    return _toml(text, start) if suffix == ".toml" else _value(text, _skip(text, start))


def _toml(text: str, at: int) -> Spot:
    root = table = Spot(at, at, {}, spread=True)
    while (at := _skip(text, at)) < len(text):
        if text[at] == "[":
            many = text.startswith("[[", at)
            keys, after = _keys(text, at + 1 + many)
            end = text.index("]", after) + 1 + many
            table = _header(root, keys, many, at, end)
            at = end
            continue
        keys, after = _keys(text, at)
        spot = _value(text, _skip(text, after + 1))
        spot.key, held, before = at, table, ""
        for key in keys[:-1]:
            before += f"{key}."
            held.end = spot.end
            held = _entries(held).setdefault(key, Spot(at, at, {}, spread=True, before=before))
        _entries(held)[keys[-1]] = spot
        held.end = table.end = at = spot.end
    return root


def _header(root: Spot, keys: list[str], many: bool, at: int, end: int) -> Spot:
    """The table that a header opens."""
    table = root
    for k, key in enumerate(keys):
        last = k == len(keys) - 1
        spot = Spot(at, end, {}, at, spread=True)
        if many and last:
            rows = _entries(table).setdefault(key, Spot(at, end, [], at)).inside
            assert isinstance(rows, list)
            rows.append(spot)
            return spot
        table = _entries(table).setdefault(key, spot)
        if isinstance(table.inside, list):
            table = table.inside[-1]
    table.end = end
    return table


def _entries(spot: Spot) -> dict[str, Spot]:
    """The entries of a place that is known to hold a table."""
    assert isinstance(spot.inside, dict)
    return spot.inside


def _value(text: str, at: int) -> Spot:
    if text[at] not in "[{":
        match = _STRING.match(text, at) or _BARE.match(text, at)
        assert match is not None  # a parser has read it
        return Spot(at, match.end())
    start, keyed = at, text[at] == "{"
    held: dict[str, Spot] = {}
    rows: list[Spot] = []
    while text[at := _skip(text, at + 1)] not in "]}":
        begin, keys = at, [""]
        if keyed:
            keys, at = _keys(text, at)
            at = _skip(text, at + 1)
        spot = _value(text, at)
        spot.key, spot.row = begin, rows
        rows.append(spot)
        inner, before = held, ""
        for key in keys[:-1]:
            before += f"{key}."
            inner = _entries(inner.setdefault(key, Spot(begin, begin, {}, before=before)))
        inner[keys[-1]] = spot
        at = _skip(text, spot.end)
        if text[at] != ",":
            break
    return Spot(start, at + 1, held if keyed else rows)


def _keys(text: str, at: int) -> tuple[list[str], int]:
    """The keys between dots, and where what follows them stands."""
    keys = []
    while True:
        at = _skip(text, at)
        match = _STRING.match(text, at) or _PLAIN_KEY.match(text, at)
        assert match is not None  # a parser has read it
        keys.append(match[0].encode("latin-1").decode().strip("\"'"))
        at = _skip(text, match.end())
        if text[at] != ".":
            return keys, at
        at += 1


def _skip(text: str, at: int) -> int:
    match = _PLAIN_SPACE.match(text, at)
    return match.end() if match else at


# --- changes -----------------------------------------------------------------------------------------------------


def set_value(spot: Spot, value: Any) -> Edit:
    """The value in place of the one that stands there."""
    return Edit(spot.start, spot.end, _text(value))


def add_value(data: bytes, table: Spot, key: str, value: Any, toml: bool) -> Edit:
    """One more entry of a table, its last."""
    held = sorted((x for spot in _entries(table).values() for x in _standing(spot)), key=lambda x: x.end)
    said = f"{table.before}{key} = ".encode() if toml else f'"{key}": '.encode()
    if table.spread:
        said = (b"\r\n" if b"\r\n" in data else b"\n") + said
    elif held:
        said = b", " + said
    at = table.end if table.spread else held[-1].end if held else table.start + 1
    return Edit(at, at, said + _text(value))


def take_away(data: bytes, table: Spot, keys: tuple[str, ...]) -> Iterator[Edit]:
    """Entries taken away, with the commas or the lines that were theirs."""
    away = [spot for name, spot in _entries(table).items() if name in keys]
    if table.spread:
        for spot in away:
            if spot.key < 0:
                yield from take_away(data, spot, tuple(_entries(spot)))
            else:
                rest = _LINE_REST.match(data, spot.end)
                yield Edit(spot.key, rest.end() if rest else spot.end, b"")
        return
    places = {x.key for spot in away for x in _standing(spot)}
    row = next((x.row for spot in away for x in _standing(spot)), [])
    start, kept = None, -1
    for k, spot in enumerate(row):
        gone, last = spot.key in places, k == len(row) - 1
        if gone and start is None:
            start = spot.key
        if start is not None and (last or not gone):
            begin = kept if gone and kept >= 0 else start
            yield Edit(begin, spot.end if gone else spot.key, b"")
            start = None
        kept = kept if gone else spot.end


def _standing(spot: Spot) -> Iterator[Spot]:
    """An entry of an inline table; of one that dotted keys make, what it holds."""
    if not spot.before:
        yield spot
    for inner in _entries(spot).values() if spot.before else ():
        yield from _standing(inner)


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
