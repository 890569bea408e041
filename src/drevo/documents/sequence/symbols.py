"""Symbols and meanings of model parameters: "link2.mass" is m_2, "link2.com.x" is x_c2, an origin is L_k."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...codegen.graph.program import Parameter, Program
from .names import Names

_TITLE = re.compile(r"\S+ (\S+) \((.*)\)", re.DOTALL)


class SymbolKind(NamedTuple):
    """A kind of parameters: their symbol, its meaning and its unit; gaps as in `symbols`."""

    symbol: str
    meaning: str
    unit: str


SYMBOL_KINDS = {
    "mass": SymbolKind("m_{number}", "mass of {owner}", "kg"),
    "com": SymbolKind("{entry}_c{number}", "centre of mass of {owner}, {entry} in its own axes", "m"),
    "inertia": SymbolKind(
        "I_{number}{entry}", "inertia tensor of {owner} about its centre of mass, entry {entry}", "kg m²"
    ),
    "origin": SymbolKind(
        "L_{number}{entry}", "distance of the origin of {owner} along {entry} of its parent", "m"
    ),
    "lead": SymbolKind("ell_{number}", "lead of {owner}", "m per revolution"),
    "armature": SymbolKind("I_a{number}", "inertia of the rotor of {owner} as the joint feels it", "kg m² or kg"),
    "damping": SymbolKind("d_{number}", "damping of {owner}", "N m s or N s/m"),
    "quadratic": SymbolKind("D_{number}", "quadratic damping of {owner}", "N m s² or N s²/m²"),
    "friction": SymbolKind("f_r{number}", "dry friction of {owner}", "N m or N"),
    "stiffness": SymbolKind("k_{number}", "stiffness of the spring of {owner}", "N m or N/m"),
    "reference": SymbolKind("q_r{number}", "where the spring of {owner} is at rest", "rad or m"),
    "offset": SymbolKind("f_o{number}", "constant force in {owner}", "N m or N"),
    "gravity": SymbolKind("g_{entry}", "acceleration of gravity along {entry} of the world", "m/s²"),
    "": SymbolKind("{number}", "", ""),
}
_WITH_ENTRY = "|".join(kind for kind, row in SYMBOL_KINDS.items() if "{entry}" in row.meaning)
_PLAIN_KINDS = "|".join(kind for kind, row in SYMBOL_KINDS.items() if kind and "{entry}" not in row.meaning)
_SPLIT = re.compile(rf"(.*?)\.?(?:({_PLAIN_KINDS})|({_WITH_ENTRY})\.(\w+))", re.DOTALL)
CHILD = "distance of the link that {owner} carries along {entry} of the moved joint"
PAPER_SYMBOLS = {
    "mass": "m_o{number}",
    "origin": "R_{number}{entry}",
}  # there m_i is a subtree's mass, L_i between poles


class Symbol(NamedTuple):
    """A parameter with the name it has in the equations."""

    name: str
    meaning: str
    unit: str
    parameter: Parameter


def symbols(program: Program, names: Names) -> tuple[Symbol, ...]:
    """The symbols of a program's parameters, in their order."""
    inputs = program.meta.get("inputs")
    rows = letters([p.name for p in program.parameters], _numbers(program), inputs is not None)
    out = []
    for p, (letter, meaning, unit) in zip(program.parameters, rows):
        name = names.new(f"{letter}^l" if letter in getattr(inputs, "reserved", ()) else letter)
        out.append(Symbol(name, p.meaning or meaning, unit, p))
    return tuple(out)


def letters(parameters: Sequence[str], numbers: Mapping[str, str], paper: bool = False) -> list[SymbolKind]:
    """The letter of each parameter with its meaning and unit: the number is that of its body.

    A length along one axis is L_3, several of one body are L_3x and L_3y; what a link stands off its joint is
    L_3x^l. numbers: of links and joints. paper: Telegin's letters.
    """
    split, out = [_split(name) for name in parameters], list[SymbolKind]()
    several = Counter(owner for owner, kind, _ in split if kind == "origin")
    for whole, kind, entry in split:
        child = kind == "origin" and whole.endswith(".child")
        owner = whole[:-6] if child else whole
        alone = kind == "origin" and several[whole] == 1 and not paper
        row = SYMBOL_KINDS[kind]
        symbol = PAPER_SYMBOLS.get(kind, row.symbol) if paper else row.symbol
        gaps = {"owner": owner, "number": numbers.get(owner, owner), "entry": entry}
        letter = symbol.format(**gaps | ({"entry": ""} if alone else {}))
        meaning = (CHILD if child else row.meaning).format(**gaps)
        out.append(SymbolKind(f"{letter}^l" if child else letter, meaning, row.unit))
    return out


def _split(name: str) -> tuple[str, str, str]:
    """Owner, kind and entry; an owner may hold dots itself."""
    found = _SPLIT.fullmatch(name)
    return (found[1], found[2] or found[3], found[4] or "") if found else (name, "", "")


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
