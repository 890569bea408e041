"""Sequence -> a Python module of straight-line assignments: sin, cos, + - * / and names, nothing else."""

from __future__ import annotations

from ...codegen.graph.ops import FUNCTIONS
from ..about import About, header
from ..sequence.expression import Style, write_terms
from ..sequence.layout import FEW_TURNS, NOTE, period_texts
from ..sequence.sequence import CHOICES, Result, Section, Sequence, SequenceInput, Statement
from .code import LINE_WIDTH, arguments_of, code_style, comment, entries, filled

ROUNDER = 1.5 * 2.0**52  # added and taken away again it leaves a whole number
_PYTHON_LAYOUT = (
    "Arguments are sequences of scalars (numbers, arrays, symbols); a result is a scalar or nested lists."
)


def python(sequence: Sequence, facts: About) -> str:
    """The module: NAME(q, ...), or with symbols prologue(parameters) -> constants and NAME(q, ..., constants).

    Both take parameters by name, too: prologue({"link1.mass": 2.0}), NAME(q, ..., m_1=2.0).
    """
    title = _quoted([f"{facts.title}, written out by Drevo."])
    text = _functions(sequence, header(facts, sequence, _PYTHON_LAYOUT))
    rare = [f for f in ("atan2", *FUNCTIONS.values()) if f"{f}(" in text]
    imports = [f"from math import {', '.join(sorted(['cos', 'sin', *rare]))}"]
    imports = ["from functools import wraps", *imports] if sequence.turns or sequence.symbols else imports
    before = [*_choices(sequence), *_turns(sequence), *_by_name(sequence)]
    return "\n".join([f'"""{title[0]}"""', "", *imports, "", "", *before, text])


def _functions(sequence: Sequence, about: list[str]) -> str:
    """The prologue, where there are parameters, and the equations."""
    main = _main(sequence, _quoted(about))
    decorated = ["@less_turns", *main] if sequence.turns else main
    if not sequence.symbols:
        return "\n".join([*decorated, ""])
    decorated = ["@by_name", *decorated]
    prologue, width = _prologue(sequence), LINE_WIDTH
    while len(prologue) >= len(main) and width < 10**8:  # who counts operations counts the longest function
        prologue, width = _packed(sequence, width), 4 * width
    return "\n".join(["@ordered", *prologue, "", "", *decorated, ""])


def _choices(sequence: Sequence) -> list[str]:
    """The lines of the functions that choose between a number and 0 by a comparison."""
    lines: list[str] = []
    for name in sequence.choices:
        rule = f"c {CHOICES[name]} 0"
        lines += [
            f"def {name}(c, x):",
            f'    """x where {rule}, else 0."""',
            f"    return x if {rule} else 0.0",
            "",
            "",
        ]
    return lines


def _turns(sequence: Sequence) -> list[str]:
    """Functions that take whole turns off numbers and arrays, and the decorator that does so before equations."""
    lines: list[str] = []
    for factor, name in sequence.periods.items():
        rate, products = period_texts(factor)
        lines += [
            f"def {name}(x):",
            f'    """{NOTE[0].upper() + NOTE[1:]}."""',
            '    if isinstance(x, (int, float)) or getattr(getattr(x, "dtype", None), "kind", "") == "f":',
            f"        n = ({rate} + {ROUNDER!r}) - {ROUNDER!r}",
            f"        n = n * (abs(n) > {FEW_TURNS!r})",
            *(f"        x = x - {product}" for product in products),
            "    return x",
            "",
            "",
        ]
    if not lines:
        return []
    names = arguments_of(sequence)
    return [
        *lines,
        "def less_turns(equations):",
        '    """The equations, of angles that lost whole turns."""',
        "",
        "    @wraps(equations)",
        f"    def turned({', '.join(names)}):",
        *(x for p in sequence.inputs for x in _less_turns(sequence, p)),
        f"        return equations({', '.join(names)})",
        "",
        "    return turned",
        "",
        "",
    ]


def _by_name(sequence: Sequence) -> list[str]:
    """The table of parameters, and the decorators of what takes them by name."""
    if not sequence.symbols:
        return []
    states = ", ".join(arguments_of(sequence)[:-1])
    name = sequence.identifiers
    rows = [f"    ({s.parameter.name!r}, {name[s.name]!r}, {s.parameter.value!r})," for s in sequence.symbols]
    return [
        "PARAMETERS = [",
        *rows,
        "]",
        "",
        "",
        "def ordered(prologue):",
        '    """The prologue, of parameters in their order or by name; what is not given is the robot\'s."""',
        "",
        "    @wraps(prologue)",
        "    def called(parameters=None, **values):",
        '        if parameters is None or hasattr(parameters, "keys"):',
        "            values = {**(parameters or {}), **values}",
        "            parameters = [",
        "                values.pop(symbol, values.pop(name, value)) for name, symbol, value in PARAMETERS",
        "            ]",
        "        if values:",
        '            raise TypeError(f"no parameters: {sorted(values)}")',
        "        return prologue(parameters)",
        "",
        "    return called",
        "",
        "",
        "def by_name(equations):",
        '    """The equations, of constants of the prologue or of parameters by name."""',
        "",
        "    @wraps(equations)",
        f"    def called({states}, constants=None, parameters=None, **values):",
        '        if constants is None or hasattr(constants, "keys"):',
        "            constants = prologue(constants if parameters is None else parameters, **values)",
        "        elif values or parameters is not None:",
        '            raise TypeError("constants or parameters, not both")',
        f"        return equations({states}, constants)",
        "",
        "    return called",
        "",
        "",
    ]


def _less_turns(sequence: Sequence, port: SequenceInput) -> list[str]:
    """An argument again, its angles less whole turns; what is needed as it is too comes again, behind."""
    name = sequence.identifiers[port.name]
    turns = [t for t in sequence.turns if t.source == port.name]
    calls = {t.name: f"{sequence.periods[t.factor]}({name}[{t.place}])" for t in turns}
    entries = [calls.pop(s, f"{name}[{k}]") for k, s in enumerate(port.scalars)] if turns else []
    return [f"    {line}" for line in _bracketed(f"{name} = [", [*entries, *calls.values()], "]")] if turns else []


def _quoted(lines: list[str]) -> list[str]:
    """Lines that a docstring can hold: no escapes, and no quotes that could end it."""
    return [line.replace("\\", "\\\\").replace('"', "'") for line in lines]


def _prologue(sequence: Sequence) -> list[str]:
    names, constants = _prologue_names(sequence)
    body = _statements(sequence.prologue, _Printer(sequence))
    return [
        "def prologue(parameters):",
        *_unpacked(names, "parameters"),
        *body,
        *_bracketed("return [", constants, "]"),
    ]


def _packed(sequence: Sequence, width: int) -> list[str]:
    """The prologue with as many statements on a line as fit."""
    (names, constants), printer = _prologue_names(sequence), _Printer(sequence)
    texts = [printer.assignment(s) for section in sequence.prologue for s in section.statements]
    texts = [f"[{', '.join(names)}] = parameters", *texts, f"return [{', '.join(constants)}]"]
    lines, line = [], ""
    for text in texts:
        if line and len(line) + len(text) > width:
            lines.append(f"    {line}")
            line = ""
        line += f"; {text}" if line else text
    return ["def prologue(parameters):", *lines, f"    {line}"]


def _prologue_names(sequence: Sequence) -> tuple[list[str], list[str]]:
    name = sequence.identifiers
    return [name[s.name] for s in sequence.symbols], [name[c] for c in sequence.constants]


def _main(sequence: Sequence, about: list[str]) -> list[str]:
    name = sequence.identifiers
    printer = _Printer(sequence)
    lines = [f"def {name[sequence.function]}({', '.join(arguments_of(sequence))}):"]
    lines += [f'    """{about[0]}', *(f"    {line}".rstrip() for line in about[1:]), '    """']
    for p in sequence.inputs:
        behind = [t.name for t in sequence.turns if t.source == p.name and t.name != t.scalar]
        lines += _unpacked([name[s] for s in (*p.scalars, *behind)], name[p.name])
    if sequence.symbols:
        lines += _unpacked([name[c] for c in sequence.constants], "constants")
    lines += _statements(sequence.main, printer)
    return [*lines, *_returned(sequence, printer.style)]


def _unpacked(names: list[str], source: str) -> list[str]:
    return _bracketed("[", names, f"] = {source}") if names else []


def _bracketed(before: str, items: list[str], after: str) -> list[str]:
    """On one line if it fits, otherwise filled lines between the brackets."""
    line = f"    {before}{', '.join(items)}{after}"
    return [line] if len(line) <= LINE_WIDTH else [f"    {before}", *filled(items, " " * 8, ","), f"    {after}"]


def _statements(sections: tuple[Section, ...], printer: _Printer) -> list[str]:
    lines = []
    for section in sections:
        lines.append(f"    # {comment(section.title)}")
        for s in section.statements:
            also = f"  # = {comment(', '.join(s.also))}" if s.also else ""
            text = printer.assignment(s)
            lines += [f"    {text}{also}"] if text else []
    return lines


class _Printer:
    """Prints statements; a sum of angles that are sums themselves is bound inside the first sine that uses it.

    There it is seen to be an angle: q_234 = q_23 + q_4 apart would look like a use of q_23 as a value.
    """

    def __init__(self, sequence: Sequence) -> None:
        self.name = sequence.identifiers
        self.pending: dict[str, str] = {}
        self.style = code_style(sequence)._replace(name=self._named, call=self._called)

    def assignment(self, s: Statement) -> str:
        """name = expression; empty while it waits for its first use."""
        text = write_terms(s.terms, self.style)
        if s.nested:
            self.pending[s.name] = text
            return ""
        return f"{self.name[s.name]} = {text}"

    def _named(self, name: str) -> str:
        text = self.pending.pop(name, None)
        return self.name[name] if text is None else f"({self.name[name]} := {text})"

    @staticmethod
    def _called(function: str, argument: str) -> str:
        bound = argument.startswith("(") and argument.count("(") == 1 and argument.endswith(")")
        return f"{function}{argument}" if bound else f"{function}({argument})"


def _returned(sequence: Sequence, style: Style) -> list[str]:
    """return x; several results are made one by one."""
    if len(sequence.results) == 1:
        text = _nested(sequence.results[0], style)
        return [f"    return {text[0].lstrip()}", *text[1:]]
    lines, names = [], []
    for r in sequence.results:
        text = _nested(r, style)
        name = sequence.identifiers[r.name]
        names.append(name if r.shape else text[0].lstrip())
        lines += [f"    {name} = {text[0].lstrip()}", *text[1:]] if r.shape else []
    return [*lines, f"    return {', '.join(names)}"]


def _nested(result: Result, style: Style) -> list[str]:
    """Nested lists of any depth: rows on lines of their own."""
    values = entries(result, style)
    if not result.shape:
        return [f"    {values[0]}"]
    last = result.shape[-1]
    count = len(values) // last if last else 0
    rows = [_bracketed("[", values[k * last : (k + 1) * last], "]") for k in range(count)]
    for size in reversed(result.shape[:-1]):
        rows = [_listed(rows[k : k + size]) for k in range(0, len(rows), size)] if size else [["    []"]]
    return rows[0] if rows else ["    []"]


def _listed(rows: list[list[str]]) -> list[str]:
    lines = ["    ["]
    for row in rows:
        lines += [f"    {line}" for line in row[:-1]]
        lines.append(f"    {row[-1]},")
    return [*lines, "    ]"]
