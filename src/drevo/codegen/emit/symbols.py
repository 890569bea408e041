"""Symbols and meanings of model parameters: "link2.mass" is m_2, "link2.com.x" is x_c2, an origin is L_k."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..graph.program import Parameter, Program
from .names import Names

_TITLE = re.compile(r"\S+ (\S+) \((.*)\)", re.DOTALL)
_UNITS = {
    "mass": "kg",
    "com": "m",
    "inertia": "kg m²",
    "origin": "m",
    "lead": "m per revolution",
    "gravity": "m/s²",
}


class Symbol(NamedTuple):
    """A parameter with the name it has in the equations."""

    name: str
    meaning: str
    unit: str
    parameter: Parameter


def symbols(program: Program, names: Names) -> tuple[Symbol, ...]:
    """The symbols of a program's parameters, in their order."""
    numbers, paper = _numbers(program), program.meta.get("inputs") is not None
    lengths = 0
    out = []
    for p in program.parameters:
        owner, kind, entry = _split(p.name)
        lengths += kind == "origin"
        number = numbers.get(owner, owner)
        wanted = f"L_{lengths}" if kind == "origin" else _symbol(kind, number, entry)
        if paper and kind in ("mass", "origin"):  # there m_i is the mass of a subtree and L_i a distance of poles
            wanted = f"m_o{number}" if kind == "mass" else f"R_{number}{entry}"
        meaning = p.meaning or _meaning(owner, kind, entry)
        out.append(Symbol(names.new(wanted), meaning, _UNITS.get(kind, ""), p))
    return tuple(out)


def _split(name: str) -> tuple[str, str, str]:
    """Owner, kind and entry; an owner may hold dots itself."""
    found = re.fullmatch(r"(.*?)\.?(mass|com|inertia|origin|lead|gravity)(?:\.(\w+))?", name, re.DOTALL)
    return (found[1], found[2], found[3] or "") if found else (name, "", "")


def _symbol(kind: str, number: str, entry: str) -> str:
    table = {
        "mass": f"m_{number}",
        "com": f"{entry}_c{number}",
        "inertia": f"I_{number}{entry}",
        "lead": f"ell_{number}",
        "gravity": f"g_{entry}",
    }
    return table.get(kind, number)


def _meaning(owner: str, kind: str, entry: str) -> str:
    if kind == "origin" and owner.endswith(".child"):
        return f"distance of the link that {owner[:-6]} carries along {entry} of the moved joint"
    table = {
        "mass": f"mass of {owner}",
        "com": f"centre of mass of {owner}, {entry} in its own axes",
        "inertia": f"inertia tensor of {owner} about its centre of mass, entry {entry}",
        "origin": f"distance of the origin of {owner} along {entry} of its parent",
        "lead": f"lead of {owner}",
        "gravity": f"acceleration of gravity along {entry} of the world",
    }
    return table.get(kind, "")


def _numbers(program: Program) -> Mapping[str, str]:
    """Numbers of links: what the program says, or the section titles "link 3 (name)", then order of appearance."""
    given = program.meta.get("numbers")
    numbers: dict[str, str] = {str(k): str(v) for k, v in given.items()} if isinstance(given, Mapping) else {}
    for _, title in program.sections:
        found = _TITLE.fullmatch(title)
        if found:
            numbers.setdefault(found[2], found[1])
    _fill(numbers, [_split(p.name) for p in program.parameters])
    return numbers


def _fill(numbers: dict[str, str], names: Sequence[tuple[str, str, str]]) -> None:
    """Whoever has no number yet gets the next free one."""
    used, k = set(numbers.values()), 1
    for owner, kind, _ in names:
        if kind in ("origin", "gravity", "") or owner in numbers:
            continue
        while str(k) in used:
            k += 1
        numbers[owner] = str(k)
        used.add(str(k))
