"""Work that is counted where a clock would tell of the machine: lines of Python, nodes of graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from drevo.codegen.graph.node import Graph


def lines(call: Callable[[], Any]) -> int:
    """The lines of Python that a call executes, and its comprehensions' items."""
    seen = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal seen
        seen += event in ("line", "call")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def linear(call: Callable[[int], Callable[[], Any]], n: int) -> None:
    """Twice the size is twice the work, within a tenth."""
    once, twice = (lines(call(size)) for size in (n, 2 * n))
    assert n <= once and twice <= 2.1 * once, (once, twice)


def nodes(call: Callable[[], Any]) -> int:
    """The nodes of all graphs that a call makes."""
    made: list[Graph] = []
    start = Graph.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Graph, "__init__", lambda g: (start(g), made.append(g))[0])
        call()
    return sum(map(len, made))
