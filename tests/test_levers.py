"""What saves operations can be switched off, lever by lever: the numbers stay, and the key of the code changes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from strategies import state

import drevo
from drevo.codegen.graph import levers
from drevo.codegen.graph.node import Graph
from drevo.codegen.store import key
from drevo.codegen.store.build import Spec
from drevo.compiler.compete import compete
from drevo.compiler.search import WITHOUT_LEVER


@cache
def whole() -> tuple[dict[str, int], np.ndarray]:
    """The same with every lever."""
    with pytest.MonkeyPatch.context() as patch:
        return forward(patch, "")


def forward(monkeypatch: pytest.MonkeyPatch, lever: str) -> tuple[dict[str, int], np.ndarray]:
    """Operations as written, and what the machine code computes."""
    monkeypatch.setenv("DREVO_WITHOUT", lever)
    model = drevo.load("puma560").model
    counts = dict(compete(model, "forward_dynamics", formalism="khalil").program.counts)
    return counts, drevo.Robot(model).forward_dynamics(*state(model, 3))


@pytest.mark.counts
@pytest.mark.parametrize("lever", levers.LEVERS)
def test_without_a_lever_the_numbers_stay(lever: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, a = whole()
    more, same = forward(monkeypatch, lever)
    assert np.allclose(a, same, rtol=1e-10, atol=1e-10)
    assert more["mul"] + more["add"] >= counts["mul"] + counts["add"]
    if lever in ("frames", "unit", "parallel", "regroup"):
        assert more["mul"] > counts["mul"]


def test_rules_of_the_graph_are_levers(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes() -> tuple[bool, bool]:
        """Whether (x + y) - y is x, and p x + r x one product."""
        g = Graph()
        x, y, p, r = g.input("x"), g.input("y"), g.parameter("p"), g.parameter("r")
        return ((x + y) - y).edge == x.edge, (p * x + r * x).edge == ((p + r) * x).edge

    monkeypatch.delenv("DREVO_WITHOUT", raising=False)
    assert sizes() == (True, True)
    monkeypatch.setenv("DREVO_WITHOUT", "cancel")
    assert sizes() == (False, True)
    monkeypatch.setenv("DREVO_WITHOUT", " factor , cancel,")
    assert sizes() == (False, False)


def test_levers_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for off in ("", *levers.LEVERS, "fma,unit"):
        monkeypatch.setenv("DREVO_WITHOUT", off)
        keys.add(key.key("a request", Spec()))
    assert len(keys) == len(levers.LEVERS) + 2
    assert WITHOUT_LEVER.keys() <= levers.LEVERS.keys()


def test_a_lever_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREVO_WITHOUT", "frames,fram")
    with pytest.raises(drevo.TraceError, match="DREVO_WITHOUT names 'fram', which is no lever; levers are "):
        drevo.load("puma560").gravity(np.zeros(6))
