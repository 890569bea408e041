"""The competition among the formalisms: each is traced, and the one with the fewest operations kept.

The ranking says what the others needed. A formalism that cannot is left out, or refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..codegen.graph import regroup
from ..codegen.graph.program import Program
from ..errors import TraceError, one_of
from ..mechanics.rotation import TINY
from ..mechanics.tree import build_tree
from ..model.description import Model
from ..model.quantities import names_of
from .formalisms import Candidate, candidates
from .search import OBJECTIVES, Counts
from .trace import trace

Price = Callable[[Counts], int]
REGROUPED = ("auto", "khalil")  # the formalisms of the papers are written out as they are
REGROUP = 40_000  # nodes: beyond it regrouping takes longer than all the rest, for one operation in a hundred
CLOSE = 1.05  # times the best price: what may win by regrouping


class RankedProgram(NamedTuple):
    """A program that competes: its price, and its place among those tried, which decides between equals."""

    price: int
    at: int
    formalism: str
    program: Program


class Competition(NamedTuple):
    """Who won, its program, and the price and counts of every formalism, the best first."""

    winner: str
    program: Program
    ranking: tuple[tuple[str, int, dict[str, int]], ...]


def compete(
    model: Model,
    quantity: str | Sequence[str],
    objective: str = "add+mul",
    *,
    formalism: str = "auto",
    parameters: Sequence[str] = (),
    compiled: bool = False,
    external: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    snap: float = TINY,
    passive: bool = False,
) -> Competition:
    """The program of a quantity with the fewest operations, by one formalism or, "auto", by the best of all.

    objective: "mul" | "add+mul" | "fma" | "add+mul+trig". Plans are found on the robot's numbers and hold for
    symbols too.
    """
    wanted, price = names_of(quantity), OBJECTIVES[one_of("objective", objective, OBJECTIVES)]

    def made(candidate: Candidate) -> Program:
        return trace(
            model, wanted, parameters=parameters, compiled=compiled, external=external, compute=candidate.compute,
            prepare=candidate.prepare, snap=snap, options=options, passive=passive,
            meta={"formalism": candidate.formalism},
        )  # fmt: skip

    found = candidates(build_tree(model, snap=snap), wanted, formalism, external, objective)
    tried = _tried(found, made, price, strict=formalism != "auto")
    if not tried:
        raise TraceError(f"no formalism gives {wanted[0]} for robot {model.name!r}")
    if formalism in REGROUPED:
        near = CLOSE * min(t.price for t in tried)
        tried = [_tightened(t, price) if t.price <= near else t for t in tried]
    tried.sort(key=lambda t: t[:2])
    best = {f: (f, p, program.counts) for p, _, f, program in reversed(tried)}
    ranking = tuple(sorted(best.values(), key=lambda r: r[1]))
    _, _, winner, program = tried[0]
    about = {**program.meta, "objective": objective, "ranking": tuple((f, p) for f, p, _ in ranking)}
    return Competition(winner, replace(program, meta=about), ranking)


def _tried(
    found: Sequence[Candidate], made: Callable[[Candidate], Program], price: Price, strict: bool
) -> list[RankedProgram]:
    """The programs of all candidates that can; what the common algorithm, or any if strict, refuses is refused."""
    tried: list[RankedProgram] = []
    refused: TraceError | None = None
    for candidate in found:
        try:
            program = made(candidate)
        except TraceError as error:
            if strict or candidate.formalism == "newton_euler":
                raise
            refused = error
            continue
        tried.append(RankedProgram(price(program.counts), len(tried), candidate.formalism, program))
    if refused and not tried:
        raise refused
    return tried


def _tightened(entry: RankedProgram, price: Price) -> RankedProgram:
    """With the sums of its program regrouped, as often as it saves something; names go where that saves more."""
    for names in (True, False):
        while len(entry.program.order()) <= REGROUP:
            program = regroup.regrouped(entry.program, names=names)
            now = price(program.counts)
            if now >= entry.price:
                break
            entry = entry._replace(price=now, program=program)
    return entry
