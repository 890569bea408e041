"""Derivation: a Program written out for people and for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.graph.ops import OPS
from ...codegen.graph.program import Program
from ...documents.about import About, Check, about_program
from ...documents.languages.table import BY_ENDING, text_in
from ...documents.paper import as_printed
from ...documents.sequence.layout import less_turns
from ...documents.sequence.reading import read_sequence, sympy
from ...documents.sequence.sequence import MAX_OPERANDS, Sequence, write_sequence
from ...errors import InputError
from ...io.files import saving
from ...io.given import asked_methods
from ...model.draft import shorten

if TYPE_CHECKING:
    from ...codegen.store.build import Manifest

Array = np.ndarray[Any, Any]

NUMERIC: dict[str, Callable[..., Any]] = {row.name: row.apply for row in OPS if row.apply} | {"turned": less_turns}
NOTEBOOK = 2_000_000  # characters of HTML that a notebook is asked to show


@asked_methods
@dataclass(frozen=True, eq=False)
class Derivation:
    """The written-out equations of one quantity; two are equal where their texts are.

    checks: what the equations were compared with, the worst difference, and over how many states.
    digits: significant digits of numbers in LaTeX, Markdown and HTML; code has all of them.
    """

    program: Program
    sequence: Sequence
    checks: tuple[Check, ...] = ()
    digits: int = 6

    def __repr__(self) -> str:
        by = f" by {self.formalism}" if self.formalism else ""
        title = self.about.title if len(self.about.title) <= 80 else self.about.title[:77] + "..."
        return f"<Derivation of {title}{by}: {self.about.totals}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Derivation):
            return NotImplemented
        return (self.sequence, self.about) == (other.sequence, other.about)

    def __hash__(self) -> int:
        return hash((self.about.title, self.formalism, *self.counts.values()))

    @property
    def counts(self) -> dict[str, int]:
        """Operations, in the convention of drevo.codegen.graph.program.CONVENTION."""
        return self.program.counts

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the robot that the page reads, by name, with the robot's own values."""
        page, _ = as_printed(self.sequence, self.about)
        known = zip(page.symbols, page.used)
        return {s.parameter.name: s.parameter.value for s, used in known if used}

    @property
    def formalism(self) -> str:
        """The formalism by which the equations were derived; each rests on a book or paper."""
        return self.about.formalism

    @cached_property
    def about(self) -> About:
        """The facts that the texts state about themselves."""
        return about_program(self.program, self.checks, self.digits)

    def with_checks(self, checks: Iterable[Check]) -> Derivation:
        """A copy of the derivation with further checks."""
        return replace(self, checks=(*self.checks, *checks))

    # -- texts ----------------------------------------------------------------------------------------------

    def text(self, language: str) -> str:
        """The text in a language: one of LANGUAGES in documents.languages.table. EmitError where there is none."""
        return text_in(language, self.sequence, self.about)

    def latex(self, columns: int = 1) -> str:
        """A LaTeX document: aligned equations by section, in lines that fit a page or one of two columns.

        It needs amsmath, longtable and geometry, under pdflatex or lualatex. EmitError for other columns.
        """
        from ...documents.languages.latex import latex

        return latex(self.sequence, self.about, columns)

    def markdown(self) -> str:
        """A Markdown document with $ mathematics."""
        return self.text("markdown")

    def html(self) -> str:
        """An HTML page that needs no network: sliders, every line with its value, the Python and C texts.

        The values are WebAssembly of the same program; of more than some thousand operations they are left out, as
        from text("html").
        """
        from .drawing import live_page

        return live_page(self.program, self.about) or self.text("html")

    def python(self) -> str:
        """A Python module of straight-line scalar assignments."""
        return self.text("python")

    def c(self) -> str:
        """C99: void NAME(const double *q, ..., double *out)."""
        return self.text("c")

    def cuda(self, dtype: str = "float64") -> str:
        """CUDA C++: kernels NAME_rows and NAME_batch_last, in double, or in float for dtype "float32"."""
        from ...documents.languages.c import cuda

        return cuda(self.sequence, self.about, dtype)

    def matlab(self) -> str:
        """A MATLAB (or Octave) function file."""
        return self.text("matlab")

    def sympy(self) -> dict[str, Any]:
        """The results by name, as SymPy matrices and expressions (needs sympy)."""
        return sympy(self.sequence)

    def save(self, path: str | Path) -> Path:
        """Writes the text that the ending names: .tex .md .html .htm .py .c .cu .m, ..."""
        with saving("a derivation", path, BY_ENDING) as file:
            language = BY_ENDING[file.suffix.lower()]
            text = self.html() if language == "html" else self.text(language)
            file.write_text(text, encoding="utf-8", newline="\n")
        return Path(path)

    def _repr_html_(self) -> str:
        from ...documents.languages.html import fragment

        shown = fragment(self.sequence, self.about)
        if len(shown) < NOTEBOOK:
            return shown
        return f"<p>{len(shown)} characters of equations: save('equations.html') to read them.</p>"

    def _repr_latex_(self) -> str | None:
        """The displays of the Markdown document, for what shows mathematics alone."""
        shown = "\n\n".join(re.findall(r"\$\$.*?\$\$", self.markdown(), re.DOTALL))
        return shown if len(shown) < NOTEBOOK else None

    def _repr_markdown_(self) -> str:
        return self.markdown()

    # -- numbers --------------------------------------------------------------------------------------------

    def evaluate(self, *args: Any, parameters: Mapping[str, float] | None = None, **state: Any) -> Any:
        """Numbers from the written-out sequence itself, for q, v, a or tau in the order of the inputs, or by name.

        Arguments are (..., nq) or (..., nv); leading batch dimensions broadcast. f_ext: {link: (..., 6)} where the
        program has such inputs. parameters: other values for symbolic parameters, {"link2.mass": 3.0}.
        Returns an array, or a tuple of them for several results. InputError for arguments that do not fit,
        NumericsError where the numbers have no answer.
        """
        from ...codegen.call import arguments, diagnose

        m = self._manifest
        given = arguments.gather(m.name, m.inputs, self._arguments(args, state), np.dtype(float), rows=True)
        chosen = self._values(parameters)
        with np.errstate(all="ignore"):  # what is not finite is said below
            values = read_sequence(self.sequence, list(map(np.transpose, given.arrays)), chosen, NUMERIC)
        flat = [_stacked(v, given.samples) for v in values]
        diagnose.report(m, given.arrays, flat, rows=True)
        made = [x.reshape((*given.lead, *r.shape)) for x, r in zip(flat, self.sequence.results)]
        return made[0] if len(made) == 1 else tuple(made)

    @cached_property
    def _manifest(self) -> Manifest:
        """The description of the arguments and results by which they are checked, as of compiled code."""
        from ...codegen.store.build import Manifest

        places = {n: (k, j) for k, port in enumerate(self.program.inputs) for j, n in enumerate(port.nodes)}
        units = tuple((places[u[0]][0], tuple(places[n][1] for n in u)) for u in self.program.units)
        inputs = tuple((p.source, (len(p.scalars),)) for p in self.sequence.inputs)
        outputs = tuple((r.source, r.shape) for r in self.sequence.results)
        return Manifest("evaluate", inputs, outputs, None, units, {}, 0, 0, 0, 1, (), {})

    def _values(self, given: Mapping[str, float] | None) -> list[np.float64]:
        """The values of the parameters, the model's own where none is given."""
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"evaluate: parameters must be {{name: number}}, not {type(given).__name__}")
        known = {s.parameter.name: s.parameter.value for s in self.sequence.symbols}
        for name, x in (given or {}).items():
            if name not in known:
                there = (
                    f"symbolic are {shorten(sorted(known))}" if known else "no parameter is symbolic: see symbols="
                )
                raise InputError(f"evaluate: parameter {name!r} cannot be set; {there}")
            known[name] = _finite(x)
            if not np.isfinite(known[name]):
                raise InputError(f"evaluate: parameter {name!r} must be a finite number, not {str(x)[:60]}")
        return [np.float64(x) for x in known.values()]

    def _arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The state arguments in the order of the inputs."""
        names = [p.source for p in self.sequence.inputs]
        usage = f"evaluate({', '.join(names)})"
        if len(args) > len(names):
            raise InputError(f"{usage} takes {len(names)} arguments, {len(args)} were given")
        given = dict(zip(names, args))
        for name, x in _with_wrenches(named, usage).items():
            if name not in names:
                raise InputError(f"{usage} takes no argument {name!r}")
            if name in given:
                raise InputError(f"{usage} was given {name!r} twice")
            given[name] = x
        missing = [repr(name) for name in names if name not in given]
        if missing:
            raise InputError(f"{usage}: {', '.join(missing)} is missing")
        return [given[name] for name in names]


def _with_wrenches(named: dict[str, Any], usage: str) -> dict[str, Any]:
    """Arguments by name, those of f_ext={link: wrench} as f_ext:LINK."""
    forces = named.pop("f_ext", None) or {}
    if not isinstance(forces, Mapping):
        raise InputError(f"{usage}: f_ext must be {{link: wrench}}, not {type(forces).__name__}")
    return {**named, **{f"f_ext:{link}": w for link, w in forces.items()}}


def _finite(x: Any) -> float:
    """A number as a float, NaN where it is none."""
    try:
        return np.nan if isinstance(x, (bool, str, bytes)) else float(x)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _stacked(entries: list[Any], samples: int) -> Array:
    """Scalars and arrays over the samples as one array with the samples first."""
    out = np.empty((samples, len(entries)))
    for k, x in enumerate(entries):
        out[:, k] = x
    return out


def write_out_program(
    program: Program, *, checks: Iterable[Check] = (), digits: int = 6, longest: int = MAX_OPERANDS
) -> Derivation:
    """The Derivation of a Program; statements of at most about `longest` operands."""
    return Derivation(program, write_sequence(program, longest), tuple(checks), digits)
