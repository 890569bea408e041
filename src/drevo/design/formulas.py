"""check_formulas: published formulas against a robot. Each is judged with the true values of everything else."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ..errors import InputError, shown
from ..io.asked import asked
from ..io.reprs import brief
from ..model.description import Model
from ..model.messages import model_of
from ..robot.face import Robot
from . import expressions
from .corrections import exchanged_equals, suggestion_for
from .expressions import FormulaNode
from .formula_values import POSES, Array, Values

CLOSE = 1e-9  # of the largest value over the poses
ROUNDING = 1e-13  # of the largest |H|: an element that cancels to zero is left with about this


@dataclass(frozen=True, slots=True)
class Wrong:
    """A formula that does not hold: as printed, by how much (of the element's largest value), and mended."""

    name: str
    printed: str
    error: float
    suggestion: str

    def __str__(self) -> str:
        mend = f"; it holds as {self.suggestion}" if self.suggestion else ""
        return f"{self.printed}: off by {self.error:.2g} of the largest value{mend}"


@brief
@dataclass(frozen=True, slots=True)
class Judgement:
    """Names of the elements that are printed right, and what is wrong with the others.

    by_numbers: of the right ones, those that hold for this robot's numbers, and not if one of them changes.
    """

    right: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    defined: tuple[str, ...] = ()
    by_numbers: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{len(self.right)} right: {', '.join(self.right)}", f"{len(self.wrong)} wrong"]
        lines += [f"right by this robot's numbers alone: {', '.join(self.by_numbers)}"] if self.by_numbers else []
        return "\n".join([*lines, *(f"  {w}" for w in self.wrong)])


@asked
def check_formulas(robot: Robot | Model, text: str) -> Judgement:
    """Finds the wrong ones of the printed formulas of a hinged tree, their errors, and what they should have been.

    One formula a line (or between semicolons), "H_22 = I_2^d + H_33 + 2*L_3*m_33^e", "H_42 = H_43 = 0", in the
    paper's notation; LaTeX braces may stand and the sign of multiplication be left out. A line may define a name
    of its own ("a = x_14^e"). Names are those of `drevo.mechanics.formalisms.telegin`. Formulas must hold
    for other parameters, too: L_2 for an L_3 of the same length is wrong. What omits a term that vanishes by this
    robot's numbers is right, and among `.by_numbers`.
    """
    model = model_of(robot, "check_formulas")
    if not isinstance(text, str):
        raise InputError(f"check_formulas: the formulas are {shown(text)}; give them as text, one a line")
    check = _Check(Values(model), Values(model, 1, varied=True))
    for line in text.replace(";", "\n").splitlines():
        line = line.strip().strip(",.").strip()
        if line and not line.startswith(("#", "%")):
            check.line(line)
    if not (check.right or check.wrong or check.own):
        raise InputError("check_formulas: the text has no formula; give lines such as 'H_22 = I_2^d + H_33'")
    return Judgement(tuple(check.right), tuple(check.wrong), tuple(check.own), tuple(check.by_numbers))


class _Check:
    """The lines so far: names of their own, and judgements."""

    def __init__(self, values: Values, varied: Values) -> None:
        self.values, self.varied = values, varied
        self.own: dict[str, Array] = {}
        self.own_varied: dict[str, Array] = {}
        self.right: list[str] = []
        self.by_numbers: list[str] = []
        self.wrong: list[Wrong] = []

    def line(self, line: str) -> None:
        sides = expressions.read_formula(line)
        if len(sides) < 2:
            raise InputError(f"formula {line!r} has no '='")
        *names, last = sides
        for side in names:
            if side.kind != "name":
                raise InputError(
                    f"formula {line!r}: its left side {expressions.formula_text(side)!r} is not one name"
                )
            name = str(side.value)
            true = None if name in self.own else self.values(name)
            if true is None:
                if self.values.absent(name):
                    raise InputError(
                        f"formula {line!r}: {name!r} is not in robot {self.values.name!r}, whose bodies are "
                        f"{', '.join(self.values.number)}; a name of your own takes another letter"
                    )
                self.own[name], self.own_varied[name] = self.value(last, line), self.value(last, line, True)
            else:
                self._judge(name, true, last, line)

    def _judge(self, name: str, true: Array, node: FormulaNode, line: str) -> None:
        least = ROUNDING * float(np.max(np.abs(self.values.M))) if name.startswith("H") else 0.0
        error = _error(self.value(node, line), true, least)
        printed = f"{name} = {expressions.formula_text(node)}"
        if error > CLOSE:
            mend = suggestion_for(self.values, self.own, name, node, lambda x: self._right(x, true, least))
            found = expressions.read_formula(mend)[0] if mend else None
            general = self._general(name, found) if found else found
            mend = expressions.formula_text(general) if general not in (None, found) else mend
            self.wrong.append(Wrong(name, printed, error, f"{name} = {mend}" if mend else ""))
            return
        general = self._general(name, node)
        if general not in (None, node):  # other letters of the same values
            error = self._error_varied(name, node)
            self.wrong.append(Wrong(name, printed, error, f"{name} = {expressions.formula_text(general)}"))
            return
        self.right.append(name)
        self.by_numbers += [name] if general is None else []

    def _error_varied(self, name: str, node: FormulaNode) -> float:
        """The error of a formula where parameters have other values."""
        true = self.varied(name)
        least = ROUNDING * float(np.max(np.abs(self.varied.M))) if name.startswith("H") else 0.0
        assert true is not None
        return _error(self.value(node, "", True), true, least)

    def _general(self, name: str, node: FormulaNode) -> FormulaNode | None:
        """The formula, or with other symbols of the same values, that holds for other parameters, too."""
        candidates = chain((node,), exchanged_equals(self.values, self.varied, node))
        return next((x for x in candidates if self._error_varied(name, x) <= CLOSE), None)

    def _right(self, node: FormulaNode, true: Array, least: float) -> bool:
        try:
            return _error(self.value(node, ""), true, least) <= CLOSE
        except (InputError, ZeroDivisionError):
            return False

    def value(self, node: FormulaNode, line: str, varied: bool = False) -> Array:
        """The values of an expression over the poses, of the robot or of the varied one."""
        own, values = (self.own_varied, self.varied) if varied else (self.own, self.values)

        def named(name: str) -> Any:
            found = own.get(name)
            found = values(name) if found is None else found
            if found is None:
                raise InputError(
                    f"formula {line!r}: {name!r} is not in the paper's notation for this robot, nor defined above"
                )
            return found

        with np.errstate(all="ignore"):
            value = expressions.value(node, named, lambda t: np.full(POSES, float(t)))
        out: Array = np.asarray(value, float)
        return out


def _error(x: Array, true: Array, least: float) -> float:
    """Largest difference, of the largest value; of the printed value where the true one is 0.

    What is below `least` is rounding of the larger elements, and no value.
    """
    if not np.all(np.isfinite(x)):
        return float("inf")
    off, size = float(np.max(np.abs(x - true))), float(np.max(np.abs(true)))
    if off <= least:
        return 0.0
    return off / ((size if size > least else 0.0) or float(np.max(np.abs(x))))
