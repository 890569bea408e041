"""Program -> Sequence: the statements of a written-out program, with the names a person would use.

The operations of the sequence are those of the program, none more and none less.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...codegen.graph.ops import ADD, CHOICE, CONST, COS, DIV, INPUT, MUL, OPS, SIN
from ...codegen.graph.program import Output, Program
from .expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from .layout import StatementLayout, Turn, entry_name
from .names import Names, parts
from .symbols import Symbol, symbols

CHOICES = {"when": ">", "unless": "<="}  # name(c, x) is x where c > 0, or where it is not, else 0
MAX_OPERANDS = 8  # operands of one statement: about what fits on a line
TIME = "t"  # the input that is no coordinate
ALSO = 3  # names shown beside the first for one value


class Statement(NamedTuple):
    """name = terms. also: other names of the same value. nested: a sum of angles that are sums themselves."""

    name: str
    terms: Terms
    also: tuple[str, ...] = ()
    nested: bool = False


class Section(NamedTuple):
    """Statements under one title."""

    title: str
    statements: tuple[Statement, ...]


class SequenceInput(NamedTuple):
    """A state argument: its own name, the program's name for it, its scalars and which of them are used."""

    name: str
    source: str
    scalars: tuple[str, ...]
    used: tuple[bool, ...]


class Result(NamedTuple):
    """An output, row-major; every entry is a signed name or number."""

    name: str
    source: str
    shape: tuple[int, ...]
    entries: Terms


class Sequence(NamedTuple):
    """A program written out. prologue: work on parameters alone; constants: what main reads of it.

    `used`: for every symbol, whether anything reads it. identifiers: name -> identifier.
    turns: what loses whole turns before anything is computed; periods: factor -> identifier of what takes them.
    choices: those of CHOICES that are called.
    """

    function: str
    inputs: tuple[SequenceInput, ...]
    symbols: tuple[Symbol, ...]
    used: tuple[bool, ...]
    constants: tuple[str, ...]
    prologue: tuple[Section, ...]
    main: tuple[Section, ...]
    results: tuple[Result, ...]
    identifiers: dict[str, str]
    turns: tuple[Turn, ...] = ()
    periods: Mapping[float, str] = MappingProxyType({})
    choices: tuple[str, ...] = ()

    def statements(self) -> Iterator[Statement]:
        """All of them, the prologue first."""
        for section in (*self.prologue, *self.main):
            yield from section.statements


def write_sequence(program: Program, longest: int = MAX_OPERANDS) -> Sequence:
    """The sequence of a program; statements have at most `longest` operands where the operations allow it."""
    return _Writer(program, longest).sequence()


def write_sequence_with_edges(program: Program, longest: int = MAX_OPERANDS) -> tuple[Sequence, dict[str, int]]:
    """The sequence of a program, and the edge that every statement stands for, by the statement's name."""
    writer = _Writer(program, longest)
    sequence = writer.sequence()
    edges = {name: 2 * n ^ writer.flip.get(n, False) for n, name in writer.name.items()}
    return sequence, {s.name: edges[s.name] for s in sequence.statements()}


class _Writer:
    """State of the one pass that names and writes every node in the order of its making."""

    def __init__(self, program: Program, longest: int) -> None:
        self.program, self.graph = program, program.graph
        self.layout = StatementLayout(program, longest)
        self.names = Names()
        self.name: dict[int, str] = {}  # node -> name, of leaves and statements
        self.flip: dict[int, bool] = {}  # node -> its name stands for minus the node
        self.terms: dict[int, Terms] = {}  # of nodes written inside their user
        self.single: dict[int, Terms] = {}  # edge -> the one term of a node that has a name
        self.function = self.names.new(program.name)
        self.ports = self._ports()
        self.common = "w" if any(p.name == TIME for p in program.inputs) else "t"  # of t1, t2, ...
        self.symbols = symbols(program, self.names)
        self.name.update((s.parameter.node, s.name) for s in self.symbols)
        self.result_names = [self.names.new(o.name) if o.shape else "" for o in program.outputs]
        self.entries = {entry_name(o.name, o.shape, k) for o in program.outputs for k in range(len(o.edges))}
        self.joints = self._joints()
        self.turned: dict[tuple[int, float], str] = {}  # input, factor -> its name less whole turns
        self.turns = self._turns()
        self.periods = self._periods()
        self.sums: set[str] = set()  # names of sums of angles
        self.fixed = {s.name for s in self.symbols}  # names of what depends on parameters alone

    def sequence(self) -> Sequence:
        """Names and writes every node."""
        written: list[tuple[int, Statement]] = []
        for n in self.layout.order:
            if self.graph.op[n] <= INPUT:
                continue
            terms = self._express(n)
            if n in self.layout.inner:
                self.terms[n] = terms
            else:
                written.append((n, self._statement(n, terms)))
        results = tuple(self._result(o, name) for o, name in zip(self.program.outputs, self.result_names))
        return Sequence(
            function=self.function,
            inputs=self.ports,
            symbols=self.symbols,
            used=tuple(s.parameter.node in self.layout.uses for s in self.symbols),
            constants=self._constants(),
            prologue=self._sections([w for w in written if self.layout.hoisted(w[0])], "regrouped parameters"),
            main=self._sections([w for w in written if not self.layout.hoisted(w[0])], "sines and cosines"),
            results=results,
            identifiers=self.names.identifiers,
            turns=self.turns,
            periods=self.periods,
            choices=tuple(OPS[op].name for op in CHOICE if op in {self.graph.op[n] for n in self.layout.order}),
        )

    # -- arguments and results ------------------------------------------------------------------------------

    def _ports(self) -> tuple[SequenceInput, ...]:
        named = [(self.names.new(p.name.replace(":", "_")), p) for p in self.program.inputs]
        out = []
        for name, p in named:
            scalars = tuple(self.names.new(f"{name}_{k + 1}") for k in range(p.size))
            if p.name == TIME:  # a scalar of its own: people read t, programs its only entry
                name, scalars = self.names.apart(name), (self.names.called(name, scalars[0]),)
            self.name.update(zip(p.nodes, scalars))
            out.append(SequenceInput(name, p.name, scalars, tuple(n in self.layout.read for n in p.nodes)))
        return tuple(out)

    def _turns(self) -> tuple[Turn, ...]:
        """A name of its own where something else reads the input as it is."""
        out, lay = [], self.layout
        wanted = {(leaf, factor) for (_, leaf), factor in lay.turns.items()}
        for p, port in zip(self.program.inputs, self.ports):
            for k, n in enumerate(p.nodes):
                for factor in sorted(f for leaf, f in wanted if leaf == n):
                    own = lay.apart(n, factor)
                    name = self.names.new(f"{self.name[n]}_turned") if own else self.name[n]
                    self.turned[n, factor] = name if own else ""
                    out.append(Turn(name, port.scalars[k], port.name, k, factor))
        return tuple(out)

    def _periods(self) -> dict[float, str]:
        factors = sorted({t.factor for t in self.turns}, key=lambda f: (f != 1.0, f))
        return {f: self.names.identifiers[self.names.new(f"{self.function}_turned")] for f in factors}

    def _joints(self) -> dict[int, str]:
        """Angle inputs -> their joint's number: from the label of a sine, or else the place of the coordinate."""
        g = self.graph
        found = {n: parts(self.name[n])[1] for p in self.program.inputs for n in p.nodes}
        for n in reversed(self.layout.order):
            if g.op[n] in (SIN, COS) and g.op[g.a[n] >> 1] == INPUT:
                for label, _ in reversed(self.program.labels.get(n, ())):
                    if label.startswith(("s_", "c_")):
                        found[g.a[n] >> 1] = label[2:]
        return found

    def _constants(self) -> tuple[str, ...]:
        """Hoisted values that main reads, in the order of their making."""
        lay, read = self.layout, set(e >> 1 for e in self.program.output_edges)
        for n in lay.order:
            if not lay.hoisted(n):
                read.update(e >> 1 for e in lay.operands(n))
        op = self.graph.op
        return tuple(self.name[n] for n in lay.order if n in read and lay.hoisted(n) and op[n] != CONST)

    def _result(self, o: Output, name: str) -> Result:
        entries = tuple(self._terms_of(e)[0] for e in o.edges)
        if not name:  # a scalar's own statement bears its name
            own = entries[0].factors[0]
            name = o.name if own == Name(o.name) and not entries[0].negative else self.names.new(o.name)
        return Result(name, o.name, o.shape, entries)

    def _sections(self, written: list[tuple[int, Statement]], first: str) -> tuple[Section, ...]:
        """Statements by the section in which their node was made; `first`: the title of what came before."""
        starts = [at for at, _ in self.program.sections]
        first = first if starts else "equations"
        titles = [first, *(title for _, title in self.program.sections)]
        groups: list[tuple[str, list[Statement]]] = []
        for n, s in written:
            title = titles[bisect_right(starts, n)]
            if not groups or groups[-1][0] != title:
                groups.append((title, []))
            groups[-1][1].append(s)
        return tuple(Section(title, tuple(statements)) for title, statements in groups)

    # -- names ----------------------------------------------------------------------------------------------

    def _statement(self, n: int, terms: Terms) -> Statement:
        name, flip, also = self._called(n, terms)
        nested = n in self.layout.angle and any(x.text in self.sums for t in terms for x in t.factors
                                                if isinstance(x, Name))  # fmt: skip
        self.name[n], self.flip[n] = name, flip
        if n in self.layout.angle:
            self.sums.add(name)
        if self.layout.hoisted(n):
            self.fixed.add(name)
        return Statement(name, absorbed(led(_signed(terms, flip))), also, nested)

    def _called(self, n: int, terms: Terms) -> tuple[str, bool, tuple[str, ...]]:
        """Name of a statement, whether it stands for minus the node, and its further names.

        An output's name decides, then a label: a name that was given to minus the node keeps its own sign, and
        all users take the sign into their sums.
        """
        labels = self.program.labels.get(n, ())
        wanted, flip = self.layout.wanted.get(n, ("", False))
        own = bool(wanted)
        if not wanted and labels:
            wanted, sign = min(labels, key=lambda l: l[1])
            flip = bool(sign)
        if not wanted:
            wanted, flip = self._temporary(n), all(t.negative for t in terms)
        cosine = wanted[:2] == "c_" and any(name[:2] == "c_" for name in self.entries)
        if not own and (cosine or wanted in self.entries):  # c_2 of a cosine where c is a centre of mass
            wanted = f"{wanted}^q"
        labels = tuple(x for x in labels if x[0] not in self.entries)
        also = [label for label, sign in labels if bool(sign) == flip and label != wanted]
        return self.names.new(wanted), flip, tuple(also[:ALSO])

    def _temporary(self, n: int) -> str:
        """s_23, c_23 and q_23 by the joints; t1, t2, ... and K1, K2, ... for what has no name.

        Where t is the time, w1, w2, ... stand for t1, t2, ...
        """
        op, e = self.graph.op[n], self.graph.a[n]
        if op in (SIN, COS):
            letter = "s" if op == SIN else "c"
            suffix = None if e & 1 else self._suffix(e >> 1)
            return f"{letter}_{suffix or self.name.get(e >> 1, 'x')}"
        if n in self.layout.angle:
            suffix = self._suffix(n)
            return f"q_{suffix}" if suffix else self.names.next("phi")
        return self.names.next("K" if self.layout.hoisted(n) else self.common)

    def _suffix(self, n: int) -> str | None:
        """Joint numbers of an angle: "23" for q2 + q3."""
        leaves = self.layout.angles_of(n)
        if leaves is None:
            return None
        numbers = sorted((self.joints[k] for k in leaves), key=lambda s: (len(s), s))
        return ("" if all(len(s) == 1 for s in numbers) else "_").join(numbers)

    # -- expressions ----------------------------------------------------------------------------------------

    def _express(self, n: int) -> Terms:
        g, lay = self.graph, self.layout
        op = g.op[n]
        if op == ADD or lay.doubled(n) is not None:
            return tuple(t for e in lay.operands(n) for t in self._terms_of(e, n))
        if op in (MUL, DIV):
            (s, x), (r, y) = self._product_of(g.a[n], n), self._product_of(g.b[n], n)
            if op == DIV:
                return (Term(s ^ r, x, y),)
            if _numeric(x) and _numeric(y):  # side by side they would fold, and the count would fall
                y = (Group((Term(False, y),)),)
            return (Term(s ^ r, self._ranked(x, y)),)
        second = led(self._terms_of(g.b[n])) if OPS[op].arity == 2 else ()
        return (Term(False, (FunctionCall(OPS[op].name, led(self._terms_of(g.a[n])), second),)),)

    def _ranked(self, x: tuple[Factor, ...], y: tuple[Factor, ...]) -> tuple[Factor, ...]:
        if self._rank(x[-1]) <= self._rank(y[0]):
            return x + y
        return tuple(sorted(x + y, key=self._rank))

    def _rank(self, factor: Factor) -> int:
        """Numbers stand first in a product, then what depends on parameters alone."""
        if isinstance(factor, Name):
            return 1 if factor.text in self.fixed else 2
        return 0 if isinstance(factor, Number) else 2

    def _terms_of(self, edge: int, user: int = -1) -> Terms:
        """An operand as terms of a sum."""
        if own := self.turned.get((edge >> 1, self.layout.turns.get((user, edge >> 1), 0.0))):
            return (Term(bool(edge & 1), (Name(self.name[edge >> 1], own),)),)
        known = self.single.get(edge)
        if known is not None:
            return known
        n, negative = edge >> 1, bool(edge & 1)
        if n in self.terms:
            return _signed(self.terms[n], negative)
        term = Term(negative ^ self.flip.get(n, False), (self._atom(n),))
        self.single[edge] = (term,)
        return (term,)

    def _atom(self, n: int) -> Factor:
        if self.graph.op[n] == CONST:
            return Number(self.graph.constants[self.graph.a[n]])
        return Name(self.name[n])

    def _product_of(self, edge: int, user: int) -> tuple[bool, tuple[Factor, ...]]:
        """An operand as factors of a product; the sign of a sum without a positive term comes out."""
        terms = self._terms_of(edge, user)
        if len(terms) == 1:
            return terms[0].negative, terms[0].factors
        negative = all(t.negative for t in terms)
        return negative, (Group(led(_signed(terms, negative))),)


def _signed(terms: Terms, negative: bool) -> Terms:
    return tuple(t.flipped() for t in terms) if negative else terms


def led(terms: Terms) -> Terms:
    """A sum that begins with a positive term if it has one, and never with two numbers, which would fold."""
    first = next((k for k, t in enumerate(terms) if not t.negative), 0)
    terms = (terms[first], *terms[:first], *terms[first + 1 :])
    if len(terms) > 2 and all(_constant(t) for t in terms[:2]):
        other = next((k for k, t in enumerate(terms) if not _constant(t)), 1)
        terms = (terms[0], terms[other], *terms[1:other], *terms[other + 1 :])
    return terms


def absorbed(terms: Terms) -> Terms:
    """A leading minus goes into the first factor that is a difference: -(a - b) c is (b - a) c."""
    first = terms[0]
    for k, f in enumerate(first.factors):
        if first.negative and isinstance(f, Group) and any(t.negative for t in f.terms):
            turned = Group(led(_signed(f.terms, True)))
            factors = (*first.factors[:k], turned, *first.factors[k + 1 :])
            return (Term(False, factors, first.over), *terms[1:])
    return terms


def _constant(term: Term) -> bool:
    return all(isinstance(f, Number) for f in (*term.factors, *term.over))


def _numeric(factors: tuple[Factor, ...]) -> bool:
    return any(isinstance(f, Number) for f in factors)
