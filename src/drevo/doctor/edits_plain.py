"""Changes of a description as edits of its JSON or TOML: single values of the format of Drevo's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..errors import ModelError
from ..io.plain_edit import Spot, add_value, set_value, spots_of, take_away
from ..model.description import Inertial
from ..model.loaders.native import read_plain
from .edits import MendedText, Told, writers
from .findings import Change, Subject

KeyOrPlace = str | int


class PlainText(MendedText):
    """The text of a file with the places of its values: makes edits, and says each in a sentence."""

    def __init__(self, s: Subject) -> None:
        self.s, self.data = s, s.data
        suffix = os.path.splitext(s.draft.source)[1].lower()
        self.toml, self.held = suffix == ".toml", read_plain(s.data, suffix)
        self.top = spots_of(s.data, suffix)
        if not self.top.like(self.held):
            raise ModelError(
                f"{s.draft.source}: it is written in a way in which no value can be changed by itself; save it "
                "anew first (drevo convert)"
            )

    def set(self, owner: str, value: Any, *path: KeyOrPlace) -> Iterator[Told]:
        """One value, of lists each that differs; nothing where it stands there, or its table does not."""
        *above, key = path
        table, spot = self.top.at(*above), self.top.at(*path)
        if spot is not None:
            yield from self._set(owner, spot, _below(self.held, path), value, _name(path))
        elif table is not None and isinstance(key, str):
            edit = add_value(self.data, table, key, value, self.toml)
            yield edit, f"{owner}: {_name(path)} on line {self._line(edit.start)}, {value} is new"

    def _set(self, owner: str, spot: Spot, old: Any, value: Any, name: str) -> Iterator[Told]:
        if isinstance(spot.inside, list) and isinstance(value, tuple) and len(value) == len(spot.inside):
            for k, (one, was, new) in enumerate(zip(spot.inside, old, value)):
                yield from self._set(owner, one, was, new, f"{name}[{k}]")
        elif old != value:
            yield set_value(spot, value), f"{owner}: {name} on line {self._line(spot.start)}, {old} -> {value}"

    def drop(self, owner: str, keys: tuple[str, ...], *path: KeyOrPlace) -> Iterator[Told]:
        """Entries of a table taken away."""
        table = self.top.at(*path)
        gone = tuple(key for key in keys if self.top.at(*path, key))
        for edit in take_away(self.data, table, gone) if table and gone else ():
            removed = ", ".join(f"{key} {_below(self.held, (*path, key))}" for key in gone)
            yield edit, f"{owner}: {removed} of {_name(path)} on line {self._line(edit.start)}, is taken away"

    def inertial(self, k: int, new: Inertial) -> Iterator[Told]:
        """The mass, centre and tensor of a link, each where it differs."""
        link = self.s.draft.links[k]
        for name in ("mass", "com", "tensor"):
            if link.inertial and getattr(new, name) != getattr(link.inertial, name):
                yield from self.set(self.s.draft.at(link), getattr(new, name), "links", k, "inertial", name)

    def joint(self, k: int) -> str:
        """The name of a joint in a sentence."""
        return self.s.draft.at(self.s.draft.joints[k])

    def _line(self, at: int) -> int:
        return self.data.count(b"\n", 0, at) + 1


def _below(held: Any, path: tuple[KeyOrPlace, ...]) -> Any:
    for step in path:
        held = held[step]
    return held


def _name(path: tuple[KeyOrPlace, ...]) -> str:
    """`mass of inertial`: the keys below a link or a joint."""
    return " of ".join(str(step) for step in reversed(path[2:])) or "it"


def _limits(text: PlainText, change: Change) -> Iterator[Told]:
    """Crossed limits exchanged."""
    limit, at = text.s.draft.joints[change.index].limit, ("joints", change.index, "limit")
    if limit:
        for name, value in (("lower", limit.upper), ("upper", limit.lower)):
            yield from text.set(text.joint(change.index), value, *at, name)


def _continuous(text: PlainText, change: Change) -> Iterator[Told]:
    """A revolute joint whose limits are both zero turns without limits."""
    owner = text.joint(change.index)
    yield from text.set(owner, "continuous", "joints", change.index, "kind")
    yield from text.drop(owner, ("lower", "upper"), "joints", change.index, "limit")


def _mimic(text: PlainText, change: Change) -> Iterator[Told]:
    """The first joint of the circle becomes independent."""
    yield from text.drop(text.joint(change.index), ("mimic",), "joints", change.index)


def _joint_name(text: PlainText, change: Change) -> Iterator[Told]:
    yield from text.set(text.joint(change.index), change.value, "joints", change.index, "name")


def _link_name(text: PlainText, change: Change) -> Iterator[Told]:
    """The second link of a name, and the second joint that carries one of that name."""
    link = text.s.draft.links[change.index]
    carriers = [k for k, joint in enumerate(text.s.draft.joints) if joint.child == link.name]
    if len(carriers) == 2:
        yield from text.set(text.s.draft.at(link), change.value, "links", change.index, "name")
        yield from text.set(text.joint(carriers[1]), change.value, "joints", carriers[1], "child")


def _mesh(text: PlainText, change: Change) -> Iterator[Told]:
    key, old, new = change.value
    for k, link in enumerate(text.s.draft.links):
        for n, shape in enumerate(link.shapes):
            if shape.uri == old:
                yield from text.set(text.s.draft.at(link), new, "links", k, "shapes", n, key)


PlainText.writers = writers(_limits, _continuous, _mimic, _joint_name, _link_name, _mesh)
