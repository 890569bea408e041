"""check_formulas: published formulas against a robot. Each is judged with the true values of everything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np

from ..errors import InputError, TraceError, one_of, shown
from ..io.given import asked
from ..io.reprs import brief
from ..model.description import Model
from ..model.draft import model_of
from ..robot.face import Robot
from . import expressions
from .corrections import Corrections, MendSearch
from .exact import Algebra, Relation
from .expressions import FormulaNode
from .proofs import Proof, at_the_numbers, counterexample, proof_of
from .statements import conditions_of, fulfilled
from .telegin_names import COORDINATE_LETTERS, split_name
from .truth import NOTATIONS, Truth, exact_truth, noted, sampled_truth
from .vocabulary import UnitsDiffer, renamings, unit_of

Array = np.ndarray[Any, Any]

CLOSE = 1e-9  # of the largest value over the samples
SYMBOL_ROUNDING = 1e-13  # of the largest value of a letter: what cancels to zero is left with about this
MAX_RENAMINGS = 60
MAX_TABLES = 24  # pairs of a robot and a notation whose tables are kept
CHANCE = 2.0  # cost of a factor that makes a formula right for the robot's numbers
LIKELY = 1.3  # cost of one letter for another
CHEAPEST = 0.8  # cost of a sign
BY_NUMBERS_COST = 1.2  # of a correction that holds for the robot's numbers alone


@dataclass(frozen=True, slots=True)
class Wrong:
    """A formula that does not hold: as printed, by how much (of the element's largest value), and mended.

    others: mends that are as likely.
    """

    name: str
    printed: str
    error: float
    suggestion: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        mend = _it_holds_as(self.suggestion, *self.others)
        return f"{self.printed}: off by {self.error:.2g} of the largest value{mend}"


def _it_holds_as(*mends: str) -> str:
    return "; it holds as " + ", or as ".join(x for x in mends) if any(mends) else ""


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """A formula and its verdict: "proved", "wrong" or "sampled" (it holds at random states, no exact proof).

    proof: in words, the difference that vanishes, or the point where it does not. certificate: a proof that
    multiplies out again (`certificate.holds()`). mend: the formula put right. units: what is added that cannot be.
    others: mends that are as likely, with symbols that have the same values.
    """

    name: str
    printed: str
    verdict: str
    proof: str
    mend: str = ""
    error: float = 0.0
    units: str = ""
    certificate: Proof | None = None
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.verdict}: {self.printed}" + _it_holds_as(self.mend, *self.others)


@brief
@dataclass(frozen=True, slots=True)
class Judgement:
    """Rows with a verdict each; names of those that are printed right, and what is wrong with the others.

    by_numbers: of the right ones, those that hold for this robot's numbers, and not if one of them changes.
    """

    right: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    defined: tuple[str, ...] = ()
    by_numbers: tuple[str, ...] = ()
    rows: tuple[FormulaRow, ...] = ()

    def __iter__(self) -> Iterator[FormulaRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: int) -> FormulaRow:
        return self.rows[k]

    def __str__(self) -> str:
        proved = sum(r.verdict == "proved" for r in self.rows)
        lines = [f"{len(self.right)} right ({proved} proved): {', '.join(self.right)}", f"{len(self.wrong)} wrong"]
        lines += [f"right by this robot's numbers alone: {', '.join(self.by_numbers)}"] if self.by_numbers else []
        return "\n".join([*lines, *(f"  {w}" for w in self.wrong)])


@asked
def check_formulas(
    robot: Robot | Model, text: str, notation: str = "telegin", given: str | None = None
) -> Judgement:
    """Proves or refutes printed formulas of a robot, and says what the wrong ones should have been.

    One formula a line (or between semicolons), "H_22 = I_2^d + H_33 + 2*L_3*m_33^e", "H_42 = H_43 = 0"; the sign
    of multiplication may be left out. LaTeX of written pages is read as printed, its lines in any order. A line
    may define a name of its own ("a = x_14^e"). notation: whose letters they are: "telegin", "kovalchuk",
    "vereshchagin", "zaremba" or "alyushin", as on the pages of that formalism. given: conditions on parameters,
    "d_x4 = d_y4 = 0".

    Formulas must hold for other parameters, too: L_2 for an L_3 of the same length is wrong. What omits a term
    that vanishes by this robot's numbers is right, and among `.by_numbers`. Placements that are turned by no
    quarter turns are taken as the nearest rotations with rational entries. Raises InputError for text that is no
    formula of this robot, TraceError for joints that the notation does not cover.
    """
    model = model_of(robot, "check_formulas")
    if not isinstance(text, str):
        raise InputError(f"check_formulas: the formulas are {shown(text)}; give them as text, one a line")
    one_of("check_formulas: notation", notation, NOTATIONS, InputError)
    if not isinstance(given, str | None):
        raise InputError(f"check_formulas: given is {shown(given)}; it is text, 'd_x4 = 0'")
    divides = "/" in text or "frac" in text  # by symbols that the next text should not find
    lines = list(_lines(text))
    left = [expressions.left_name(line) for line in lines]
    at_rest = notation == "kovalchuk" and _writes_bias(text, left)
    by_page = notation == "vereshchagin" and any(name.endswith("^star") for name in left)
    tables = (_Tables if divides else _tables)(model, notation, given or "", at_rest, by_page)
    with tables.lock:
        check = _Check(tables)
        check.text(lines, left)
    if not (check.rows or check.defined):
        raise InputError("check_formulas: the text has no formula; give lines such as 'H_22 = I_2^d + H_33'")
    right = tuple(r.name for r in check.rows if r.verdict != "wrong")
    wrong = tuple(Wrong(r.name, r.printed, r.error, r.mend, r.others) for r in check.rows if r.verdict == "wrong")
    return Judgement(right, wrong, tuple(check.defined), tuple(check.by_numbers), tuple(check.rows))


def _lines(text: str) -> Iterator[str]:
    """The formulas of a text, or of a page's lines in LaTeX, where a long one goes on after &\\quad."""
    text = re.sub(r"\\\\\s*\n\s*&\s*\\quad", " ", text)
    for line in text.replace(";", "\n").splitlines():
        line = line.strip().removesuffix("\\\\").strip().strip(",.").strip()
        if line and not line.startswith(("#", "%", "$$", "\\begin", "\\end")):
            yield line


def _writes_bias(text: str, left: list[str]) -> bool:
    """The lines lead to bias, where accelerations are zero: there is none among them, nor an effort."""
    wanted = [name for name in left if re.fullmatch(r"[hH]_\d+", name)]
    return bool(wanted) and not re.search(r"\b(a|\\?tau)_(\d+|\{\d+\})(?![\w^])", text)


class _Tables:
    """Values of all symbols of a robot in one notation under conditions; one thread fills them at a time."""

    def __init__(self, model: Model, notation: str, given: str, at_rest: bool, by_page: bool) -> None:
        self.name, self.notation, self.lock = model.name, notation, Lock()
        robot = noted(model, notation)._replace(at_rest=at_rest, by_page=by_page)
        exact = exact_truth(robot)
        self.exact: Truth = exact[0]
        self.algebra: Algebra = exact[1]
        self.given: tuple[Relation, ...] = conditions_of(given, self.exact, self.algebra)

        def fulfil(draws: dict[str, Any]) -> Mapping[str, Any]:
            return fulfilled(draws, self.given, self.algebra)

        self.varied = Corrections(sampled_truth(robot, 1, True, fulfil))
        self.numbers = Corrections(sampled_truth(robot, 0, False, fulfil), CHANCE)


_tables = lru_cache(maxsize=MAX_TABLES)(_Tables)


class _Check:
    """The lines so far: names of the author's own, and verdicts."""

    def __init__(self, tables: _Tables) -> None:
        self.name, self.notation = tables.name, tables.notation
        self.exact, self.algebra, self.given = tables.exact, tables.algebra, tables.given
        self.varied, self.numbers = tables.varied, tables.numbers
        for c in (self.varied, self.numbers):
            c.begin()
        self.defined: dict[str, Any] = {}  # as polynomials; None where they are too large
        self.by_numbers: list[str] = []
        self.rows: list[FormulaRow] = []

    # -- lines -----------------------------------------------------------------------------------------------

    def text(self, lines: list[str], left: list[str]) -> None:
        """All lines; what defines a name that others read comes before them, wherever it stands."""
        self.left = {name: k for k, name in reversed([*enumerate(left)])}
        waiting, rows = dict(enumerate(lines)), dict[int, list[FormulaRow]]()

        def take(k: int) -> None:
            line = waiting.pop(k)
            sides = expressions.read_formula(line, self._has_indices)
            for x in expressions.leaves(sides[-1]):
                first = self.left.get(str(x.value))
                if x.kind == "name" and first in waiting and self.numbers.value(str(x.value)) is None:
                    take(first)
            rows[k] = list(self._line(line, sides))

        for k in range(len(lines)):
            if k in waiting:
                take(k)
        self.rows = [row for k in sorted(rows) for row in rows[k]]

    def _line(self, line: str, sides: list[FormulaNode]) -> Iterator[FormulaRow]:
        """One line: a chain of equalities."""
        if len(sides) < 2:
            raise InputError(f"formula {line!r} has no '='")
        *names, last = sides
        for side in names:
            name = expressions.formula_text(side)
            if side.kind != "name" and not (side.kind == "*" and self.numbers.truth(name) is not None):
                raise InputError(f"formula {line!r}: its left side {name!r} is not one name")
            self._check_names(last, line)
            if name in self.defined or self.numbers.truth(name) is None:
                self._define(name, last, line)
            else:
                yield self._judge(name, last)

    def _has_indices(self, name: str) -> bool:
        """A name with digits above it: a left side of the text, or of Zaremba, who writes joints there."""
        return name in self.left or (self.notation == "zaremba" and self.numbers.truth(name) is not None)

    def _define(self, name: str, node: FormulaNode, line: str) -> None:
        if self._absent(name):
            raise InputError(
                f"formula {line!r}: {name!r} is not in robot {self.name!r}, whose bodies are "
                f"{', '.join(self.exact.number)}; a name of your own takes another letter"
            )
        for c in (self.varied, self.numbers):
            c.define(name, node)
        self.defined[name] = self._exact_value(node)

    def _absent(self, name: str) -> bool:
        """Written like a symbol of the notation, of a body that there is not; an element H is always one."""
        base, sub, _ = split_name(name)
        number = re.sub(r"^[a-z]*", "", sub)
        if self.notation != "telegin" or base not in (*"HscqLmdIJ", *COORDINATE_LETTERS) or not number.isdigit():
            return False
        return base == "H" or not self.exact.bodies(number)

    def _check_names(self, node: FormulaNode, line: str) -> None:
        for x in expressions.leaves(node):
            if x.kind == "name" and self.numbers.value(str(x.value)) is None:
                raise InputError(
                    f"formula {line!r}: {x.value!r} is not in the paper's notation for this robot, "
                    "nor defined above"
                )

    # -- values ----------------------------------------------------------------------------------------------

    def _named(self, name: str) -> Any:
        x = self.defined[name] if name in self.defined else self.exact(name)
        if x is None:
            raise TraceError(f"{name} has no exact value")
        return x

    def _expression(self, node: FormulaNode) -> Any:
        return expressions.value(node, self._named, lambda t: self.algebra.scalar(self.algebra.number(float(t))))

    def _exact_value(self, node: FormulaNode) -> Any:
        try:
            return self._expression(node)
        except (TraceError, ZeroDivisionError):
            return None

    # -- verdicts --------------------------------------------------------------------------------------------

    def _judge(self, name: str, node: FormulaNode) -> FormulaRow:
        printed = f"{name} = {expressions.formula_text(node)}"
        holds = self._holds_exactly(name, node)
        if holds is True:
            return self._proved(name, node, printed)
        if holds is None and self._error(self.varied, name, node) <= CLOSE:
            return FormulaRow(name, printed, "sampled", "it holds at random states with random parameters")
        doubt = self.varied.doubt(node)
        if np.any(doubt) and self._error(self.varied, name, node, doubt) <= CLOSE:
            return FormulaRow(name, printed, "sampled", "to the digits that are printed it holds at random states")
        if self._error(self.numbers, name, node) <= CLOSE and not self._units_differ(name, node):
            return self._by_numbers(name, node, printed)
        return self._refuted(name, node, printed, self._error(self.numbers, name, node))

    def _holds_exactly(self, name: str, node: FormulaNode) -> bool | None:
        """True if a formula holds for all states and parameters; None where that is too large to say."""
        try:
            p = self.algebra.polynomial(self._named(name)) - self.algebra.polynomial(self._expression(node))
            return not self.algebra.vanishing(p, self.given)[0]
        except ZeroDivisionError:
            return False
        except TraceError:
            return None

    def _proved(self, name: str, node: FormulaNode, printed: str) -> FormulaRow:
        try:
            proof = proof_of(name, node, self.algebra, self._expression, self._named, self.given)
        except TraceError as too_large:
            words = f"both sides have the same normal form; no certificate: {too_large}"
            return FormulaRow(name, printed, "proved", words)
        return FormulaRow(name, printed, "proved", str(proof), certificate=proof)

    def _by_numbers(self, name: str, node: FormulaNode, printed: str) -> FormulaRow:
        """A formula that holds for the robot's numbers: it has letters of equal ones, or lacks terms."""
        general = self._general(name, node)
        if general is None and (likely := MendSearch(self.varied, name, node).mends(LIKELY)):
            general = likely[0][1]
        if general is not None:
            mend = f"{name} = {expressions.formula_text(general)}"
            return self._row(name, node, printed, self._error(self.varied, name, node), mend)
        self.by_numbers.append(name)
        if self._holds_for_numbers(name, node):
            words = "with this robot's numbers both sides are one polynomial in sines and cosines"
            return FormulaRow(name, printed, "proved", words)
        return FormulaRow(name, printed, "sampled", "it holds at random states, by this robot's numbers alone")

    def _general(self, name: str, node: FormulaNode) -> FormulaNode | None:
        """The formula with other letters of the same numbers that holds for other parameters, too."""
        for candidate in islice(renamings(self.varied.truth, self.numbers.truth, node), MAX_RENAMINGS):
            if self._error(self.varied, name, candidate) <= CLOSE:
                return candidate
        return None

    def _holds_for_numbers(self, name: str, node: FormulaNode) -> bool:
        try:
            p = self.algebra.polynomial(self._named(name)) - self.algebra.polynomial(self._expression(node))
            p = self.algebra.vanishing(p, self.given)[0]
        except (TraceError, ZeroDivisionError):
            return False
        return not self.algebra.reduced(at_the_numbers(p, self.algebra, self.exact, self.given))

    def _mended(self, name: str, node: FormulaNode) -> list[FormulaNode]:
        """The likeliest corrections: for all parameters, or for its numbers where that is much likelier."""

        def usable(x: FormulaNode) -> bool:
            return not self._units_differ(name, x)

        general = MendSearch(self.varied, name, node).mends(usable=usable)
        limit = general[0][0] - BY_NUMBERS_COST if general else np.inf
        special = MendSearch(self.numbers, name, node).mends(limit, usable) if limit > CHEAPEST else []
        return [self._general(name, x) or x for _, x in special] or [x for _, x in general]

    def _units_differ(self, name: str, node: FormulaNode) -> str:
        """Names the units of two parts of a formula that are not the same; nothing where all agree.

        A number that stands for a quantity has the unit that it needs: one alone, or neither whole nor half.
        """
        leaves = list(expressions.leaves(node))
        numbers = [float(x.value) for x in leaves if x.kind == "number"]
        if len(numbers) == len(leaves) or any(2.0 * x % 1.0 for x in numbers):
            return ""
        whole = FormulaNode("-", None, (FormulaNode("name", name), node))
        try:
            unit_of(whole, self._named, self.algebra, self.exact)
        except UnitsDiffer as differ:
            return str(differ)
        except (TraceError, ZeroDivisionError):
            pass
        return ""

    def _refuted(self, name: str, node: FormulaNode, printed: str, error: float) -> FormulaRow:
        mends = [
            f"{name} = {expressions.formula_text(expressions.simplified(x))}" for x in self._mended(name, node)
        ]
        return self._row(name, node, printed, error, *dict.fromkeys(mends))

    def _row(self, name: str, node: FormulaNode, printed: str, error: float, *mends: str) -> FormulaRow:
        proof = f"off by {error:.3g} of the largest value at random states"
        try:
            true, side = (self.algebra.polynomial(x) for x in (self._named(name), self._expression(node)))
            point = counterexample(name, true, side, self.algebra, self.exact, self.given)
            proof = f"counterexample {point}" if point else proof
        except (TraceError, ZeroDivisionError):
            pass
        units = self._units_differ(name, node)
        return FormulaRow(name, printed, "wrong", proof, "".join(mends[:1]), error, units, others=mends[1:])

    def _error(self, c: Corrections, name: str, node: FormulaNode, doubt: Array | float = 0.0) -> float:
        """Largest difference, less a doubt, of the largest value; of the printed value where the true one is 0.

        What is below the rounding of the larger values of its letter is no value.
        """
        x, true = c.of(node), c.value(name)
        assert true is not None
        if not np.all(np.isfinite(x)):
            return float("inf")
        off, size = float(np.max(np.abs(x - true) - doubt)), float(np.max(np.abs(true)))
        if off <= CLOSE * size:
            return off / size if size else 0.0
        least = SYMBOL_ROUNDING * c.largest(split_name(name)[0])
        if off <= least:
            return 0.0
        return off / ((size if size > least else 0.0) or float(np.max(np.abs(x))))
