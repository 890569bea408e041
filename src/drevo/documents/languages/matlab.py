"""Sequence -> a MATLAB (or Octave) function file."""

from __future__ import annotations

from ..about import About, header
from ..sequence.expression import Style
from ..sequence.layout import FEW_TURNS, NOTE, period_texts
from ..sequence.sequence import CHOICES, Result, Sequence
from .code import LINE_WIDTH, arguments_of, assignments, code_style, comment, entries, unpacked

_MATLAB_LAYOUT = "Arguments are vectors; results are scalars, column vectors and matrices."


def matlab(sequence: Sequence, facts: About) -> str:
    """function [results] = NAME(q, v, ..., constants); with symbols, constants = NAME('prologue', parameters)."""
    name, style = sequence.identifiers, code_style(sequence)
    results = [name[r.name] for r in sequence.results]
    returned = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    lines = [f"function {returned} = {name[sequence.function]}({', '.join(arguments_of(sequence))})"]
    lines += [f"% {comment(line)}".rstrip() for line in header(facts, sequence, _MATLAB_LAYOUT, 1)]
    if sequence.symbols:
        lines += _entrance(sequence)
    for p in sequence.inputs:
        lines += [f"{x} = {text};" for x, text in unpacked(sequence, p, "{}({})", 1)]
    lines += [f"{name[x]} = constants({k + 1});" for k, x in enumerate(sequence.constants)]
    lines += assignments(sequence.main, style, "{} = {};", "% {}")
    for r in sequence.results:
        lines += _result(r, name[r.name], style)
    lines += [
        "end",
        *(_prologue(sequence, style) if sequence.symbols else []),
        *_choices(sequence),
        *_turns(sequence),
    ]
    return "\n".join([*lines, ""])


def _entrance(sequence: Sequence) -> list[str]:
    """A function inside a file cannot be called from elsewhere, so the main one hands the parameters on."""
    name = sequence.identifiers
    function, first = name[sequence.function], name[sequence.inputs[0].name]
    result = name[sequence.results[0].name]
    second = [name[p.name] for p in sequence.inputs[1:]] + ["constants"]
    return [
        f"if ischar({first}) % constants = {function}('prologue', parameters), once per parameter set",
        f"{result} = {function}_prologue({second[0]});",
        "return;",
        "end",
    ]


def _result(result: Result, name: str, style: Style) -> list[str]:
    values = entries(result, style)
    if not result.shape:
        return [] if values[0] == name else [f"{name} = {values[0]};"]
    if 0 in result.shape:
        return [f"{name} = zeros({', '.join(map(str, (*result.shape, 1)[:2]))});"]
    width = result.shape[-1] if len(result.shape) > 1 else 1
    rows = [_continued(values[k : k + width]) for k in range(0, len(values), width)]
    return [f"{name} = [ ...", *(f"    {row}; ..." for row in rows), "];"]


def _continued(values: list[str]) -> str:
    """A row, broken with the marks that MATLAB wants."""
    text, length = values[0], len(values[0])
    for v in values[1:]:
        length += len(v) + 2
        text += f", ...\n     {v}" if length > LINE_WIDTH else f", {v}"
        length = len(v) if length > LINE_WIDTH else length
    return text


def _choices(sequence: Sequence) -> list[str]:
    lines = []
    for name in sequence.choices:
        lines += ["", f"function y = {name}(c, x)", "y = 0;", f"if c {CHOICES[name]} 0", "y = x;", "end", "end"]
    return lines


def _turns(sequence: Sequence) -> list[str]:
    lines = []
    for factor, name in sequence.periods.items():
        rate, products = period_texts(factor)
        lines += ["", f"function x = {name}(x)", f"% {NOTE}", f"n = round({rate});", f"if abs(n) > {FEW_TURNS!r}"]
        lines += [*(f"x = x - {product};" for product in products), "end", "end"]
    return lines


def _prologue(sequence: Sequence, style: Style) -> list[str]:
    name = sequence.identifiers
    lines = ["", f"function constants = {name[sequence.function]}_prologue(parameters)"]
    lines += [f"{name[s.name]} = parameters({k + 1}); % {comment(s.meaning)}"
              for k, (s, used) in enumerate(zip(sequence.symbols, sequence.used)) if used]  # fmt: skip
    lines += assignments(sequence.prologue, style, "{} = {};", "% {}")
    constants = [name[c] for c in sequence.constants]
    return [*lines, f"constants = [{_continued(constants) if constants else ''}];", "end"]
