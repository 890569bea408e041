"""Sequence -> C99 that needs nothing but math.h."""

from __future__ import annotations

from ..about import About, header
from ..sequence.sequence import CHOICES, Sequence
from ..sequence.turns import FEW, period_texts
from ..sequence.turns import NOTE as TURNED
from .code import arguments_of, assignments, code_style, comment, entries, unpacked

_LAYOUT = "Arrays of double, row-major; what a function writes must not overlap what it reads."
NOTE = "/* {} */"


def c(sequence: Sequence, facts: About) -> str:
    """void NAME(const double *q, ..., [const double *constants,] double *out), and NAME_prologue with symbols."""
    lines = comment_block(header(facts, sequence, _LAYOUT))
    lines += ["", "#include <math.h>", "", *helpers(sequence, "static ")]
    if sequence.symbols:
        lines += [*prologue(sequence), ""]
    arguments = [f"const double *{a}" for a in arguments_of(sequence)]
    arguments += [f"double *{o}" for o in outputs_of(sequence)]
    name = sequence.identifiers[sequence.function]
    return "\n".join([*lines, f"void {name}({', '.join(arguments)})", "{", *c_statements(sequence, "{}"), "}", ""])


def comment_block(lines: list[str]) -> list[str]:
    return ["/*", *(f" * {comment(line)}".rstrip() for line in lines), " */"]


def outputs_of(sequence: Sequence) -> list[str]:
    """Identifiers of what it writes: out, or out_NAME for each of several."""
    if len(sequence.results) == 1:
        return ["out"]
    return [f"out_{sequence.identifiers[r.name]}" for r in sequence.results]


def helpers(sequence: Sequence, qualifiers: str) -> list[str]:
    """The C functions that the statements call: choices, and double NAME_turned(double x) for each period."""
    lines = [
        f"{qualifiers}double {name}(double c, double x) {{ return c {CHOICES[name]} 0.0 ? x : 0.0; }}"
        for name in sequence.choices
    ]
    lines += [""] if lines else []
    for factor, name in sequence.periods.items():
        rate, products = period_texts(factor)
        lines += [
            NOTE.format(TURNED),
            f"{qualifiers}double {name}(double x)",
            "{",
            f"    const double n = rint({rate});",
            f"    if (fabs(n) > {FEW!r}) {{",
            *(f"        x -= {product};" for product in products),
            "    }",
            "    return x;",
            "}",
            "",
        ]
    return lines


def prologue(sequence: Sequence, qualifiers: str = "") -> list[str]:
    """void NAME_prologue(const double *parameters, double *constants)."""
    name, style = sequence.identifiers, code_style(sequence)
    function = f"{name[sequence.function]}_prologue"
    lines = [f"{qualifiers}void {function}(const double *parameters, double *constants)", "{"]
    lines += [f"    const double {name[s.name]} = parameters[{k}]; {NOTE.format(comment(s.meaning))}"
              for k, (s, used) in enumerate(zip(sequence.symbols, sequence.used)) if used]  # fmt: skip
    lines += assignments(sequence.prologue, style, "    const double {} = {};", "    " + NOTE)
    lines += ["    (void)parameters;", "    (void)constants;"]
    lines += [f"    constants[{k}] = {name[constant]};" for k, constant in enumerate(sequence.constants)]
    return [*lines, "}"]


def c_statements(sequence: Sequence, index: str) -> list[str]:
    """The statements of the main function; `index` makes a place in a sample's array of a number."""
    name, style = sequence.identifiers, code_style(sequence)
    lines = [f"    (void){a};" for a in arguments_of(sequence)]
    for p in sequence.inputs:
        lines += [f"    const double {x} = {text};" for x, text in unpacked(sequence, p, f"{{}}[{index}]", 0)]
    lines += [f"    const double {name[x]} = constants[{k}];" for k, x in enumerate(sequence.constants)]
    lines += assignments(sequence.main, style, "    const double {} = {};", "    " + NOTE)
    for result, out in zip(sequence.results, outputs_of(sequence)):
        lines += [f"    {out}[{index.format(k)}] = {x};" for k, x in enumerate(entries(result, style))]
    return lines
