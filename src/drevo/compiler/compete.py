"""The competition among the formalisms: each is traced, and the one with the fewest operations kept.

The ranking says what the others needed. A formalism that cannot is left out, or refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..codegen.graph import regroup
from ..codegen.graph.plane import with_three_products
from ..codegen.graph.program import Program
from ..errors import TraceError, one_of
from ..mechanics.rotation import ZERO_DIFFERENCE
from ..mechanics.tree import build_tree
from ..model.description import Model
from ..model.quantities import names_of
from .formalisms import Candidate, candidates
from .search import OBJECTIVES, Price
from .trace import trace

REGROUPED = ("auto", "khalil")  # the formalisms of the papers are written out as they are
REGROUP = 40_000  # nodes: beyond it regrouping takes longer than all the rest, for one operation in a hundred
MUCH = 1.1  # times less, what is worth a word
CLOSE_PRICE = 1.05  # times the best price: what may win by regrouping


class RankedProgram(NamedTuple):
    """A program that competes: its price; between equals its sines and sums of angles, then its place, decide."""

    price: int
    angles: int
    at: int
    formalism: str
    program: Program


class Competition(NamedTuple):
    """Result of a competition: the winner, its program, price and counts of every formalism, the best first."""

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
    snap: float = ZERO_DIFFERENCE,
    passive: bool = False,
    merge_equal: bool = False,
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
            meta={"formalism": candidate.formalism}, merge_equal=merge_equal,
        )  # fmt: skip

    tree, plans = (
        build_tree(model, snap=snap),
        dict.fromkeys((objective, "add+mul")),
    )  # a search may miss another's
    found = [x for plan in plans for x in candidates(tree, wanted, formalism, external, plan)]
    tried = _tried(found, made, price, strict=formalism != "auto")
    if not tried:
        raise TraceError(f"no formalism gives {wanted[0]} for robot {model.name!r}")
    if formalism in REGROUPED:
        near = CLOSE_PRICE * min(t.price for t in tried)
        tried = [_tightened(t, price) if t.price <= near else t for t in tried]
    tried.sort(key=lambda t: t[:3])
    best = {t.formalism: t for t in reversed(tried)}
    ranking = tuple((t.formalism, t.price, t.program.counts) for t in sorted(best.values(), key=lambda t: t[:3]))
    about = {**tried[0].program.meta, "objective": objective, "less_in_all": _less_in_all([*best.values()])}
    return Competition(tried[0].formalism, replace(tried[0].program, meta=about), ranking)


def _less_in_all(best: Sequence[RankedProgram]) -> str:
    """In words, the formalism that does less than the winner where sines and sums of angles count."""
    price = OBJECTIVES["add+mul+trig"]
    winner, rival = min(best, key=lambda t: t[:3]), min(best, key=lambda t: (price(t.program), *t[:3]))
    if MUCH * price(rival.program) >= price(winner.program):
        return ""
    c = rival.program.counts
    return (
        f"{rival.formalism} takes {c['add']} additions and {c['mul']} multiplications, but {c['trig']} sines and "
        f'cosines and {c["angle_sums"]} sums of angles: less in all; objective="add+mul+trig" chooses by that'
    )


def _tried(
    found: Sequence[Candidate], made: Callable[[Candidate], Program], price: Price, strict: bool
) -> list[RankedProgram]:
    """Priced programs of the candidates; a refusal by the common algorithm (by any if strict) is raised."""
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
        angles = program.counts["trig"] + program.counts["angle_sums"]
        tried.append(RankedProgram(price(program), angles, len(tried), candidate.formalism, program))
    if refused and not tried:
        raise refused
    return tried


def _tightened(entry: RankedProgram, price: Price) -> RankedProgram:
    """With the sums of its program regrouped, as often as it saves something; names go where that saves more.

    Then, where products alone count, with rotations by three: a sum more for each product less.
    """
    for names in (True, False):
        while len(entry.program.order()) <= REGROUP:
            program = regroup.regrouped(entry.program, names=names)
            now = price(program)
            if now >= entry.price:
                break
            entry = entry._replace(price=now, program=program)
    if price is not OBJECTIVES["mul"]:
        return entry
    turned = with_three_products(entry.program)
    return entry._replace(price=now, program=turned) if (now := price(turned)) < entry.price else entry
