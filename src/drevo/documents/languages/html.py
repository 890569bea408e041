"""Sequence -> one HTML page that needs no network: MathML, a little CSS, the code in tabs; and its live parts."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from html import escape
from typing import NamedTuple

from .. import document
from ..about import WORDS, About
from ..live import LiveInput, page_style, slider
from ..paper import as_printed
from ..pictures.drawing import svg
from ..sequence.expression import Style, write_terms
from ..sequence.names import mathml_name, plain
from ..sequence.sequence import Result, Section, Sequence, Statement
from ..vectors import mathml_line
from .c import c
from .html_style import CSS, HTML_SCRIPT
from .python import python

_SPACE = '<mspace width=".17em"/>'
PagePart = tuple[str, str, str]  # anchor, title, body


class Live(NamedTuple):
    """The live parts of a page: the slot of the value of each name, and the inputs that have sliders on it."""

    slots: Mapping[str, int]
    sliders: Mapping[str, LiveInput]


STILL_PAGE = Live({}, {})
_COUNT_WORDS = WORDS | {"trig": "sines, cosines", "hoisted": "on parameters alone"}


def html_style(digits: int) -> Style:
    """Presentation MathML."""
    show = document.rounded(digits, lambda mantissa, exponent: f"{mantissa}e{exponent}")
    return Style(
        name=mathml_name,
        number=lambda x: _number(show(x)),
        times=_SPACE,
        plus="<mo>+</mo>",
        minus="<mo>−</mo>",
        negate='<mo form="prefix">−</mo>',
        divide=lambda top, under: f"<mfrac><mrow>{top}</mrow><mrow>{''.join(under)}</mrow></mfrac>",
        call=_called,
        group=_group,
        square=_square,
        collect=True,
    )


def _called(function: str, argument: str) -> str:
    argument = argument.replace(", ", "<mo>,</mo>")
    if function == "sqrt":
        return f"<msqrt>{argument}</msqrt>"
    plainly = "<mo" not in argument and _SPACE not in argument
    return f"<mi>{function}</mi>{_SPACE}{argument}" if plainly else f"<mi>{function}</mi>{_group(argument)}"


def _square(f: str) -> str:
    if f.startswith("<msub>"):
        return f"<msubsup>{f[6:-7]}<mn>2</mn></msubsup>"
    return f"<msup>{f}<mn>2</mn></msup>"


def _group(text: str) -> str:
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def _number(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return f"<mn>{mantissa}</mn>"
    power = exponent.replace("-", "−")
    return f"<mrow><mn>{mantissa}</mn><mo>·</mo><msup><mn>10</mn><mn>{power}</mn></msup></mrow>"


def html(sequence: Sequence, facts: About) -> str:
    """The whole page, with the Python and C texts."""
    parts = [*page_parts(sequence, facts), code_part(sequence, facts)]
    title = escape(facts.title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{page_style()}</style></head>\n"
        f'<body class="drevo">{contents(parts)}\n<main>{page_head(facts)}\n'
        f"{page_body(parts)}</main>\n<script>{HTML_SCRIPT}</script></body></html>\n"
    )


def fragment(sequence: Sequence, facts: About) -> str:
    """The part of the HTML page that a notebook shows: the page without navigation, code and script."""
    return (
        f'<style>{CSS}</style><div class="drevo">{page_head(facts)}{page_body(page_parts(sequence, facts))}</div>'
    )


def contents(parts: list[PagePart]) -> str:
    """The navigation of a page: a link to each of its parts."""
    return "<nav>" + "".join(f'<a href="#{anchor}">{title}</a>' for anchor, title, _ in parts) + "</nav>"


def code_part(sequence: Sequence, facts: About) -> PagePart:
    """The Python and C texts in tabs."""
    return "code", "Code", _code({"Python": python(sequence, facts), "C": c(sequence, facts)})


def page_body(parts: list[PagePart]) -> str:
    """The parts one after another."""
    return "\n".join(f'<section id="{anchor}"><h2>{title}</h2>{body}</section>' for anchor, title, body in parts)


def page_head(facts: About) -> str:
    """The head of a page: quantity, robot, formalism, and the operation counts."""
    shown = facts.shown
    cards = "".join(
        f"<div><b>{shown[k]}</b><span>{word}</span></div>" for k, word in _COUNT_WORDS.items() if k in shown
    )
    by = f"<p>Formalism: {escape(facts.book)}</p>" if facts.formalism else ""
    what, robot = escape(facts.quantity.replace("_", " ")), escape(facts.robot)
    note = f"<details><summary>How operations are counted</summary><p>{escape(document.COUNTED)}</p></details>"
    return f'<header><h1>{what}<small>{robot}</small></h1>{by}<div class="counts">{cards}</div>{note}</header>'


def page_parts(sequence: Sequence, facts: About, live: Live = STILL_PAGE, robot: bool = False) -> list[PagePart]:
    """Everything but the code. robot: of a page that draws the robot and has its sliders, so without either."""
    if "parameters" not in live.sliders:  # where they move, so does what papers print as a number
        sequence, facts = as_printed(sequence, facts)
    style = html_style(facts.digits)
    parts: list[PagePart] = [("symbols", "Symbols", _symbols(sequence, facts))]
    if not robot and (facts.coordinates or live.sliders):
        parts.append(("inputs", "Inputs", _inputs(sequence, facts, live)))
    if facts.drawing is not None and not robot:
        parts.insert(0, ("mechanism", "Mechanism", f'<div class="wide" tabindex="0">{svg(facts.drawing)}</div>'))
    given = _given(facts, style)
    if any(sequence.used):
        given.append(("parameters", "Parameters", _parameters(sequence, live)))
    parts += [] if facts.inputs else given
    parts += _vectors(sequence, facts)
    for k, s in enumerate(sequence.prologue):
        parts.append((f"p{k}", f"{_title(s)} <i>parameters only</i>", _equations(s, style, facts, live)))
    parts += [(f"s{k}", _title(s), _equations(s, style, facts, live)) for k, s in enumerate(sequence.main)]
    if facts.vectors:  # components are folded
        parts = [
            (
                a,
                t,
                f"<details><summary>components</summary>{body}</details>" if re.fullmatch(r"[ps]\d+", a) else body,
            )
            for a, t, body in parts
        ]
    for k, r in enumerate(sequence.results):
        body = _result(r, style, facts, live)
        parts += [(f"r{k}", f"Result {_math(mathml_name(r.name))}", body)] if body else []
    parts += given if facts.inputs else []
    if facts.checks:
        parts.append(("checks", "Checks", _checks(facts)))
    parts.append(("assumptions", "Assumptions", _list(facts.assumptions)))
    return [*parts, ("sources", "Sources", _list((*facts.references, document.CITE)))]


def _title(section: Section) -> str:
    return escape(section.title[:1].upper() + plain(section.title[1:]))


def _math(text: str) -> str:
    return f"<math>{text}</math>"


def _legend(rows: Iterable[tuple[str, ...]], head: tuple[str, ...] = (), numbers: Container[int] = ()) -> str:
    """A table. numbers: columns that stand to the right."""
    body = f"<tr><th>{'</th><th>'.join(head)}</th></tr>" if head else ""
    for row in rows:
        cells = (f"<td{' class=n' * (k in numbers)}>{x}</td>" for k, x in enumerate(row))
        body += f"<tr>{''.join(cells)}</tr>"
    return f'<table class="legend">{body}</table>'


def _symbols(sequence: Sequence, facts: About) -> str:
    listed = document.legend(sequence, facts, lambda x: mathml_line(x, {}), "<mo>…</mo>")
    rows = ((_math(names.replace(", ", "<mo>,</mo>")), escape(said)) for names, said in listed)
    units = "".join(
        f'<p class="note">{escape(x)}</p>' for x in facts.assumptions if x.startswith("Lengths inside")
    )
    return _legend(rows) + units


def _inputs(sequence: Sequence, facts: About, live: Live) -> str:
    """Every scalar of the arguments; live with a slider."""
    known, rows = dict(document.input_rows(sequence, facts)), []
    for p in sequence.inputs:
        for k, symbol in enumerate(p.scalars):
            moved = [slider(p.source, k, live.sliders[p.source])] if p.source in live.sliders else []
            if moved or symbol in known:
                about = known.get(symbol, ("", "", "", ""))
                rows.append((_math(mathml_name(symbol)), *map(escape, about), *moved))
    return _legend(rows, ("symbol", "joint", "number", "kind", "unit", *(["value"] if live.sliders else [])))


def _parameters(sequence: Sequence, live: Live) -> str:
    given = live.sliders.get("parameters")
    rows = []
    for k, (s, used) in enumerate(zip(sequence.symbols, sequence.used)):
        value = slider("parameters", k, given) if given else f"{s.parameter.value:.10g}"
        rows += [(_math(mathml_name(s.name)), escape(plain(s.meaning)), value, s.unit)] if used else []
    return _legend(rows, numbers=(2,))


def _equations(section: Section, style: Style, facts: About, live: Live) -> str:
    return _table(
        [_equation(s, style, document.note_of(facts, (s.name, *s.also)), live) for s in section.statements]
    )


def _given(facts: About, style: Style) -> list[PagePart]:
    """The parameters of the robot: definitions, and values in tables of bodies."""
    parts: list[PagePart] = []
    for k, section in enumerate(facts.inputs.sections if facts.inputs else ()):
        defined, table = document.given(facts, section)
        body = _table([_row(mathml_name(s.name), write_terms(s.terms, style)) for s in defined]) if defined else ""
        if table is not None:
            head = (table.first, *(_math(mathml_name(c)) for c in table.columns))
            rows = ((n, *(_math(write_terms(x, style)) if x else "" for x in row)) for n, row in table.rows)
            body += f'<div class="wide" tabindex="0">{_legend(rows, head, numbers=range(1, len(head)))}</div>'
        parts.append((f"i{k}", _title(section), body))
    return parts


def _vectors(sequence: Sequence, facts: About) -> list[PagePart]:
    """The paper's lines by vectors and matrices."""
    symbols, parts = document.symbols_of(sequence), list[PagePart]()
    for k, section in enumerate(x for x in facts.vectors if x.printed):
        rows = (
            f"<tr><td>{_math(mathml_line(x.left, symbols))}</td>"
            f"<td>{_math('<mo>=</mo><mrow>' + mathml_line(x.right, symbols) + '</mrow>')}</td>"
            f"<td>{x.equation}</td></tr>"
            for x in section.printed
        )
        title = escape(section.title[:1].upper() + plain(section.title[1:]))
        parts.append(
            (f"v{k}", title, f'<div class="wide" tabindex="0"><table class="vec">{"".join(rows)}</table></div>')
        )
    return parts


def _table(rows: list[str], kind: str = "eq") -> str:
    return f'<div class="wide" tabindex="0"><table class="{kind}">{"".join(rows)}</table></div>'


def _equation(s: Statement, style: Style, said: str, live: Live) -> str:
    also = "<mo>,</mo>".join(map(mathml_name, s.also))
    notes = [f"<i>also</i> {_math(also)}"] if also else []
    return _row(
        mathml_name(s.name), write_terms(s.terms, style), "; ".join([*notes, *_said(said)]), live.slots.get(s.name)
    )


def _said(note: str) -> list[str]:
    return [f"<i>{escape(note)}</i>"] if note else []


def _row(left: str, right: str, note: str = "", slot: int | None = None) -> str:
    last = f"<td>{note}</td>" if note else ""
    value = "" if slot is None else f'<td class="v" data-slot="{slot}"></td>'
    return f"<tr><td>{_math(left)}</td><td>{_math(f'<mo>=</mo><mrow>{right}</mrow>')}</td>{value}{last}</tr>"


def _result(result: Result, style: Style, facts: About, live: Live) -> str:
    symmetric = f"<p>{_math(mathml_name(result.name))} is symmetric.</p>" if document.is_symmetric(result) else ""
    rows = []
    for same in document.equal_entries(result):
        left = "<mo>=</mo>".join(map(mathml_name, same.names))
        note = "".join(_said(document.note_of(facts, same.names)))
        rows.append(_row(left, write_terms((same.value,), style), note, live.slots.get(same.names[0])))
    return symmetric + (_table(rows, "eq same") if rows else "")


def _checks(facts: About) -> str:
    rows = ((escape(what), f"{worst:.1e}", str(n)) for what, worst, n in facts.checks)
    return _legend(rows, ("compared with", "worst difference", "states"), numbers=(1, 2))


def _list(items: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(x)}</li>' for x in items)}</ul>"


def _code(texts: dict[str, str]) -> str:
    tabs = "".join(f"<button data-tab={name}>{name}</button>" for name in texts)
    blocks = "".join(
        f"<pre tabindex=0 data-tab={name}{'' if k == 0 else ' hidden'}><code>{escape(text)}</code></pre>"
        for k, (name, text) in enumerate(texts.items())
    )
    return f'<div class="tabs">{tabs}<button class="copy">Copy</button></div>{blocks}'
