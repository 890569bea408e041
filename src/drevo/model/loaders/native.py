"""Drevo's own format, in JSON or TOML: the Model field by field, what equals its default left out.

    {"drevo": 1, "name": "arm",
     "links": [{"name": "world"},
               {"name": "link1", "inertial": {"mass": 2.0, "com": [0, 0, 0.1], "tensor": [...]}}],
     "joints": [{"name": "joint1", "kind": "revolute", "parent": "world", "child": "link1",
                 "axis": [0, 0, 1]}]}

The names and meanings are those of drevo.model.description. Line numbers and the file's own path are not
kept.

Additions that a robot file has no words for, from one beside it: TOML or JSON, lists of Drevo's own format.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from ...errors import ModelError
from ...io.files import read_regular_file
from ...io.xml import ANY, MAX_MASS, MAX_XML_BYTES, TAG_LIMITS, too_many_bytes
from .. import values
from ..contact import Actuator, ContactPair, DCMotor, Geom, JointSoftness, Sensor, Stepping
from ..description import (
    LOOP_KINDS,
    SHAPE_SIZES,
    ContactExclusion,
    ContactPoint,
    Inertial,
    Joint,
    JointCoupling,
    JointDynamics,
    Keyframe,
    Limit,
    Link,
    Loop,
    Mat3,
    Model,
    PoseFormula,
    Shape,
    Tendon,
    TendonCoupling,
    Vec3,
)
from ..draft import Draft, refuse

FILE_FORMAT = 1
MOST_ROWS = TAG_LIMITS["link"]
_NOT_KEPT = ("line", "source", "about")
_DOTTED = re.compile(r"(?:\.[\w\s\"'-]*){16}")  # keys that tomllib would take quadratic time over; we use none

_ENDLESS = re.compile(r"[0-9_]{1000}")
MOST_OBJECTS = 150_000  # of JSON
MOST_TOKENS = 500_000  # a reader takes up to ten microseconds for each

FieldReaders = dict[str, Callable[[object], Any]]


# --- out -------------------------------------------------------------------


def to_json(model: Model, certificate: Mapping[str, str | float] | None = None) -> str:
    """The model as JSON text."""
    plain = _plain(model, certificate)
    parts = []
    for key, value in plain.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):  # one link or joint a line
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f'"{key}": [\n  {rows}\n ]')
        else:
            parts.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{" + ",\n ".join(parts) + "}\n"


def to_toml(model: Model, certificate: Mapping[str, str | float] | None = None) -> str:
    """The model as TOML text."""
    plain = _plain(model, certificate)
    tables = {
        key: rows for key, rows in plain.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)
    }
    lines = [f"{key} = {_toml(value)}" for key, value in plain.items() if key not in tables]
    for key, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{key}]]", *(f"{name} = {_toml(value)}" for name, value in row.items())]
    text = "\n".join(lines) + "\n"
    if count_tokens(text) > MOST_TOKENS:
        raise ModelError(f"robot {model.name!r} is too large for TOML, whose readers are slow; save it as JSON")
    return text


def _plain(model: Model, certificate: Mapping[str, str | float] | None) -> dict[str, Any]:
    """The model as plain tables, with the version of the format and the certificate."""
    held = {"certificate": dict(certificate)} if certificate else {}
    return {"drevo": FILE_FORMAT, **held, **_encode(model)}


def _encode(value: Any) -> Any:
    """Dictionaries and lists in place of data classes and tuples."""
    if is_dataclass(value):
        return {
            f.name: _encode(getattr(value, f.name))
            for f in fields(value)
            if f.name not in _NOT_KEPT and getattr(value, f.name) != f.default
        }
    return [_encode(part) for part in value] if isinstance(value, tuple) else value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- in --------------------------------------------------------------------


def read_plain(data: bytes, suffix: str) -> dict[str, object]:
    """The dictionary that a file's bytes hold."""
    if len(data) > MAX_XML_BYTES:
        raise ModelError(too_many_bytes(len(data)))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"line {line}: the file is not in UTF-8; save it in UTF-8") from None
    try:
        plain = _read_toml(text) if suffix == ".toml" else _read_json(text)
    except ModelError:
        raise
    except RecursionError:
        raise ModelError("the file is nested too deeply to be a robot description") from None
    except ValueError as error:  # the parsers' own errors, which name line and column
        raise ModelError(f"the file is not valid {suffix[1:].upper()}: {error}") from None
    if not isinstance(plain, dict) or plain.get("drevo") != FILE_FORMAT:
        raise ModelError(f'the file is not a Drevo robot: it must hold "drevo": {FILE_FORMAT}')
    return plain


def _read_json(text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        table = dict(pairs)
        if len(table) < len(pairs):
            raise ValueError(f"a key is given twice in {{{', '.join(repr(key) for key, _ in pairs[:8])}}}")
        return table

    if text.count("{") > MOST_OBJECTS:
        raise ModelError(f"the file has more than {MOST_OBJECTS} objects, more than any robot")
    return json.loads(text, object_pairs_hook=once)


def _read_toml(text: str) -> object:
    if count_tokens(text) > MOST_TOKENS:
        raise ModelError(f"the file has more than {MOST_TOKENS} values, keys and lines; TOML is slow: use JSON")
    if _ENDLESS.search(text):
        raise ModelError("the file has a number of thousands of digits, which is none of a robot")
    if _DOTTED.search(text):
        raise ModelError(
            "the file has keys with many dots, which a Drevo robot does not use; write nested tables out"
        )
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return toml.loads(text.replace("\r\n", "\n"))


def count_tokens(text: str) -> int:
    """An upper bound on the number of tokens that a TOML reader has to read."""
    return sum(map(text.count, ",={[.\\\n"))


def draft_of(plain: dict[str, object], source: str = "") -> Draft:
    """The draft of a robot from a dictionary, each value checked."""
    problems: list[str] = []
    top = {key: value for key, value in plain.items() if key not in ("drevo", "certificate", *_NATIVE_LISTS)}
    head = _decode(Model, {**top, "links": [], "joints": []}, "the robot", problems)
    lists = {key: _list(plain.get(key, []), key, problems) for key in _NATIVE_LISTS}
    refuse(source or "robot", problems)
    draft = Draft(head.name, gravity=head.gravity, source=source, ordered=True)
    draft.stepping, draft.initial = head.stepping, head.initial
    for key, rows in lists.items():
        setattr(draft, key, rows)
    draft.notes = list(head.notes)
    draft.take_as_kinematic()
    return draft


def as_json(value: Any) -> str:
    """A part of a model as a line of JSON."""
    return json.dumps(_encode(value), ensure_ascii=False)


def parts_of(key: str, rows: list[object], where: str, draft: Draft) -> list[Any]:
    """Parts of a model that a list of it holds, out of JSON; what is wrong goes to the problems."""
    parts = [_decode(_NATIVE_LISTS[key], row, where, draft.problems) for row in rows]
    return [row for row in parts if row is not None]


def _list(rows: object, key: str, problems: list[str]) -> list[Any]:
    if not isinstance(rows, list):
        problems.append(f"{key} is not a list")
        return []
    if len(rows) > MOST_ROWS:
        raise ModelError(f"the file has {len(rows)} {key}, and a robot may have at most {MOST_ROWS}")
    return [_decode(_NATIVE_LISTS[key], row, f"{key}[{i}]", problems) for i, row in enumerate(rows)]


def _decode(kind: type, plain: object, where: str, problems: list[str]) -> Any:
    """One data class; what is wrong with its values is said once per value."""
    try:
        return _build(kind, plain)
    except ValueError as error:
        name = plain.get("name") if isinstance(plain, dict) else None
        said = f" ({name.encode('utf-8', 'backslashreplace').decode()})" if isinstance(name, str) else ""
        problems.append(f"{where}{said}: {error}")


def _build(kind: type, plain: object) -> Any:
    readers = _readers(kind)
    if not isinstance(plain, dict):
        raise ValueError("it is not a table of names and values")
    if unknown := set(plain) - set(readers):
        raise ValueError(f"it has the unknown key {min(unknown)!r}; known are {', '.join(readers)}")
    fields_read = {}
    for key, value in plain.items():
        try:
            fields_read[key] = readers[key](value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    for f in fields(kind):
        if f.name in readers and f.name not in fields_read and f.default is MISSING:
            raise ValueError(f"it has no {f.name!r}")
    return kind(**fields_read)


def _each(item: Callable[[object], Any]) -> Callable[[object], Any]:
    def of(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError("it is not a list")
        return tuple(item(part) for part in value)

    return of


def _one(kind: type) -> Callable[[object], Any]:
    return lambda value: _build(kind, value)


def _of(*words: str) -> Callable[[object], str]:
    def word(value: object) -> str:
        if value not in words:
            raise ValueError(f"{str(value)[:40]!r} is not one of {', '.join(words)}")
        return str(value)

    return word


def _whole(value: object) -> int:
    """A whole number; ValueError for anything else, True too."""
    if type(value) is not int:
        raise ValueError(f"{str(value)[:40]!r} is not a whole number")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is neither true nor false")
    return value


def _pair(value: object) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError('it is not a list of ["name", "formula"]')
    return values.name(value[0]), values.text(value[1])


def _any_number(value: object) -> float:
    return values.scalar(value, ANY)


_NATIVE_LISTS: dict[str, type] = {
    "links": Link,
    "joints": Joint,
    "loops": Loop,
    "couplings": JointCoupling,
    "contacts": ContactPoint,
    "keyframes": Keyframe,
    "tendons": Tendon,
    "tendon_couplings": TendonCoupling,
    "exclusions": ContactExclusion,
    "geoms": Geom,
    "pairs": ContactPair,
    "softness": JointSoftness,
    "actuators": Actuator,
    "sensors": Sensor,
}
# where a type does not say it all
_OTHERWISE: dict[type, FieldReaders] = {
    Inertial: {"mass": lambda m: values.scalar(m, MAX_MASS), "tensor": values.tensor},
    PoseFormula: {"pose": _each(_pair)},
    Shape: {"kind": _of(*SHAPE_SIZES, "mesh"), "role": _of("visual", "collision")},
    Loop: {"kind": _of(*LOOP_KINDS)},
    JointCoupling: dict.fromkeys(("joint", "driver"), values.text),
    TendonCoupling: dict.fromkeys(("tendon", "driver"), values.text),
    Actuator: dict.fromkeys(("gain", "bias"), values.tuple_of(3, ANY)) | {"joint": values.text},
    Model: dict.fromkeys(("links", "joints"), lambda rows: ()),
}
_UNBOUNDED = (Limit, JointDynamics, Tendon, Link, Actuator, DCMotor, Stepping)  # their numbers are no lengths
_OF_TYPES: dict[Any, Callable[[object], Any]] = {
    int: _whole,
    bool: _switch,
    Vec3: values.vector,
    Mat3: values.rotation,
}


@lru_cache
def _readers(kind: type) -> FieldReaders:
    """By field; of a Model those that are no lists."""
    hints, skipped = get_type_hints(kind), (*_NOT_KEPT, *(_NATIVE_LISTS if kind is Model else ()))
    names = [f.name for f in fields(kind) if f.name not in skipped]
    needed = {f.name for f in fields(kind) if f.default is MISSING}
    return {x: _reader(kind, hints[x], x in needed) for x in names} | _OTHERWISE.get(kind, {})


def _reader(kind: type, hint: Any, needed: bool) -> Callable[[object], Any]:
    """The function that reads a type; text that is needed is a name."""
    parts = [x for x in get_args(hint) if x is not type(None)]
    if isinstance(hint, UnionType):
        return _reader(kind, parts[0], needed)
    if hint is str:
        return values.name if needed else values.text
    if hint is float:
        return _any_number if kind in _UNBOUNDED else values.scalar
    if hint in _OF_TYPES:
        return _OF_TYPES[hint]
    if parts and parts[-1] is ...:
        return values.sequence if parts[0] is float else _each(_reader(kind, parts[0], False))
    return values.tuple_of(len(parts), ANY) if parts else _one(hint)


KEYS = ("loops", "couplings", "tendons", "tendon_couplings", "contacts", "exclusions")


def read_beside(draft: Draft, path: str) -> None:
    """Enter the loops, couplings, tendons, ... of a file. Raises ModelError."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ModelError(f"loops: the file {path!r} ends in {suffix or 'nothing'!r}; give .toml or .json")
    try:
        plain = read_plain(read_regular_file(path, MAX_XML_BYTES), suffix)
    except ModelError as error:
        raise ModelError(f"loops: the file {path!r}: {error}") from None
    for key, rows in plain.items():
        if key == "drevo":
            continue
        if key not in KEYS or not isinstance(rows, list):
            raise ModelError(
                f"loops: the file {path!r} holds {key!r}; beside a robot stand lists of {', '.join(KEYS)}"
            )
        getattr(draft, key).extend(parts_of(key, rows, f"{key} of {path!r}", draft))
