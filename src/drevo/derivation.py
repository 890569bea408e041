"""Derivation: a Program written out for people and for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .emit.about import About, Check, about
from .emit.c import c
from .emit.cuda import cuda
from .emit.html import fragment, html
from .emit.latex import latex
from .emit.markdown import markdown
from .emit.matlab import matlab
from .emit.python import python
from .emit.reading import read
from .emit.sequence import LONGEST, Port, Result, Sequence, write_sequence
from .emit.symbolic import sympy
from .errors import EmitError, InputError, NumericsError
from .graph.program import Program

Array = np.ndarray[Any, Any]

SUFFIXES = {
    ".tex": latex,
    ".md": markdown,
    ".html": html,
    ".htm": html,
    ".py": python,
    ".c": c,
    ".cu": cuda,
    ".m": matlab,
}
NUMERIC = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "atan2": np.arctan2}
UNIT = 1e-6  # how far the length of a quaternion may be from 1
NOTEBOOK = 2_000_000  # characters of HTML that a notebook is asked to show


@dataclass(frozen=True)
class Derivation:
    """The written-out equations of one quantity.

    checks: rows of what it was compared with, the worst difference, over how many states.
    digits: significant digits of numbers in LaTeX, Markdown and HTML; code has all of them.
    """

    program: Program
    sequence: Sequence
    checks: tuple[Check, ...] = ()
    digits: int = 6

    @property
    def counts(self) -> dict[str, int]:
        """Operations, in the convention of drevo.graph.program.CONVENTION."""
        return self.program.counts

    @property
    def formalism(self) -> str:
        """The book by which the equations were derived."""
        return self.about.formalism

    @cached_property
    def about(self) -> About:
        """What the texts say about themselves."""
        return about(self.program, self.checks, self.digits)

    def with_checks(self, checks: Iterable[Check]) -> Derivation:
        """The same with further checks passed."""
        return replace(self, checks=(*self.checks, *checks))

    # -- texts ----------------------------------------------------------------------------------------------

    def latex(self) -> str:
        """A LaTeX document: aligned equations by section."""
        return latex(self.sequence, self.about)

    def markdown(self) -> str:
        """A Markdown document with $ mathematics."""
        return markdown(self.sequence, self.about)

    def html(self) -> str:
        """One page that needs no network."""
        return html(self.sequence, self.about)

    def python(self) -> str:
        """A module of straight-line scalar assignments."""
        return python(self.sequence, self.about)

    def c(self) -> str:
        """C99: void NAME(const double *q, ..., double *out)."""
        return c(self.sequence, self.about)

    def cuda(self) -> str:
        """CUDA C++: kernels NAME_rows and NAME_batch_last."""
        return cuda(self.sequence, self.about)

    def matlab(self) -> str:
        """A MATLAB function file."""
        return matlab(self.sequence, self.about)

    def sympy(self) -> dict[str, Any]:
        """Results by name as SymPy matrices (needs sympy)."""
        return sympy(self.sequence)

    def save(self, path: str | Path) -> Path:
        """Writes the text that the suffix names: .tex .md .html .py .c .cu .m."""
        path = Path(path)
        writer = SUFFIXES.get(path.suffix.lower())
        if writer is None:
            raise EmitError(f"save: suffix {path.suffix!r} of {str(path)!r} is none of {' '.join(SUFFIXES)}")
        path.write_text(writer(self.sequence, self.about), encoding="utf-8", newline="\n")
        return path

    def _repr_html_(self) -> str:
        text = fragment(self.sequence, self.about)
        if len(text) < NOTEBOOK:
            return text
        return f"<p>{len(text)} characters of equations: save('equations.html') to read them.</p>"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def __str__(self) -> str:
        return self.python()

    # -- numbers --------------------------------------------------------------------------------------------

    def evaluate(self, *, parameters: Mapping[str, float] | None = None, **state: Any) -> Any:
        """Numbers from the written-out sequence itself: q=, v=, a= or tau=; leading batch dimensions broadcast.

        f_ext: {link: (..., 6)} where the program has such inputs. parameters: other values, by the model's names.
        Returns an array, or a tuple of them for several results.
        """
        arrays = self._arguments(state)
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        self._check_units(arrays)
        if parameters and not self.sequence.symbols:
            raise InputError(f"evaluate: no parameter is symbolic here, {', '.join(parameters)} cannot be set")
        columns = [np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in arrays]
        values = read(self.sequence, columns, self._values(parameters or {}), NUMERIC)
        made = [_stacked(v, r, batch) for v, r in zip(values, self.sequence.results)]
        return made[0] if len(made) == 1 else tuple(made)

    def _values(self, given: Mapping[str, float]) -> list[np.float64]:
        known = {s.parameter.name for s in self.sequence.symbols}
        for name in given:
            if name not in known:
                there = ", ".join(sorted(known))
                raise InputError(f"evaluate: parameter {name!r} is not symbolic here; there are {there}")
        return [np.float64(given.get(s.parameter.name, s.parameter.value)) for s in self.sequence.symbols]

    def _arguments(self, state: Mapping[str, Any]) -> list[Array]:
        forces = state.get("f_ext") or {}
        given = {k: v for k, v in state.items() if k != "f_ext"}
        given.update((f"f_ext:{k}", v) for k, v in forces.items())
        names = [p.source for p in self.sequence.inputs]
        for name in given:
            if name not in names:
                there = ", ".join(names)
                raise InputError(f"evaluate: {name!r} is no argument of {self.program.name}; it takes {there}")
        return [_array(p, given) for p in self.sequence.inputs]

    def _check_units(self, arrays: list[Array]) -> None:
        where = {n: (k, j) for k, port in enumerate(self.program.inputs) for j, n in enumerate(port.nodes)}
        for unit in self.program.units:
            k, j = where[unit[0]]
            length = np.linalg.norm(arrays[k][..., j : j + 4], axis=-1)
            wrong = np.argwhere(~(np.abs(length - 1.0) <= UNIT))
            if len(wrong):
                at = tuple(int(i) for i in wrong[0])
                row = f" in row {at if len(at) > 1 else at[0]}" if at else ""
                found = f"{length[at]:.9g}"
                raise NumericsError(f"q[{j}:{j + 4}]{row} is a quaternion of length {found}, which must be 1")


def _array(port: Port, given: Mapping[str, Any]) -> Array:
    if port.source not in given:
        raise InputError(f"evaluate: argument {port.source!r} is missing")
    try:
        x = np.asarray(given[port.source], float)
    except (TypeError, ValueError):
        raise InputError(f"evaluate: {port.source!r} is no array of numbers") from None
    if x.ndim == 0 or x.shape[-1] != len(port.scalars):
        raise InputError(f"evaluate: {port.source!r} must have shape (..., {len(port.scalars)}), not {x.shape}")
    return x


def _stacked(entries: list[Any], result: Result, batch: tuple[int, ...]) -> Array:
    """Scalars and arrays over the batch as one array with the batch first."""
    out = np.empty((*batch, len(entries)))
    for k, x in enumerate(entries):
        out[..., k] = x
    return out.reshape((*batch, *result.shape))


def write_out_program(
    program: Program, *, checks: Iterable[Check] = (), digits: int = 6, longest: int = LONGEST
) -> Derivation:
    """The Derivation of a Program; statements of at most about `longest` operands."""
    return Derivation(program, write_sequence(program, longest), tuple(checks), digits)
