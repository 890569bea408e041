"""References to cite with a result: the books and papers on which it rests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .codegen.call.function import Function
from .compiler.pages.derivation import Derivation
from .documents.sources import FORMALISM, METHOD, SOURCES, of_formalism
from .errors import InputError, shown
from .io.given import asked
from .io.packages import VERSION
from .simulate.table import Table


class Bibliography(str):
    """Entries of BibTeX; shown as they are printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@asked
def cite(*results: Derivation | Function | Table | str) -> Bibliography:
    """The sources of results as BibTeX, each once: print(drevo.cite(table, function)).

    results: what `write_out`, `compile` and `simulate` give, or names of formalisms; without any, Drevo itself.
    InputError for anything else.
    """
    if not results:
        return Bibliography(
            f"@software{{drevo,\n  title = {{Drevo}},\n  author = {{{{The Drevo contributors}}}},\n  "
            f"version = {{{VERSION}}},\n}}"
        )
    names = dict.fromkeys(name for x in results for name in _sources(x))
    return Bibliography("\n".join(SOURCES[name].bibtex for name in names))


def _sources(x: Any) -> Iterator[str]:
    if isinstance(x, str) and x in FORMALISM:
        yield from FORMALISM[x]
    elif isinstance(x, Derivation):
        yield from of_formalism(x.formalism, x.about.quantity)
    elif isinstance(x, Function):
        yield from of_formalism(str(x.meta.get("formalism", "")), str(x.meta.get("quantity", "")))
    elif isinstance(x, Table):
        yield from (METHOD[x.method],) if x.method in METHOD else ()
        yield from ("khalil",)  # by which compiled code computes the accelerations
        if x.under is not None:
            yield from ("udwadia",) if x.under.feedback is None else ("udwadia", "baumgarte")
    else:
        raise InputError(
            f"{shown(x)} is nothing that rests on a source: give what write_out, compile or simulate gave, or a "
            f"formalism ({', '.join(FORMALISM)})"
        )
