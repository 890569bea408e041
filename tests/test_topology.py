"""Index functions of the tree: every index vector of the Kovalchuk cases, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import work
from kovalchuk_cases import DATA, NAMES, TREES, robot

import drevo
from drevo.robot.topology import Topology


def check(t: Topology, index: dict[str, Any]) -> None:
    """Every function of the paper, over links 0..n."""
    n = len(index["f"])
    assert len(t) == n + 1
    assert list(t.f[1:]) == index["f"] and t.parent[0] == -1
    assert list(t.ns[1:]) == index["ns"] and t.position_among_siblings[0] == 0
    assert [list(c) for c in t.Gamma] == index["Gamma"]
    assert list(t.dg) == index["dg_plus"]
    assert list(t.Dnum[1:]) == index["Dnum"] and t.depth_first[0] == 0
    assert list(t.order[1:]) == index["Dnum_inv"]
    assert list(t.nan[1:]) == index["nan"]
    assert [list(a) for a in t.an[1:]] == index["an"]
    assert [list(s) for s in t.subtree[1:]] == index["Dnum_k_inv"]
    assert t.D[1:, 1:].tolist() == index["D"] and t.reachable[:, 0].tolist() == [1] * (n + 1)


@pytest.mark.parametrize("case", DATA["index_cases"])
def test_index_cases(case: dict[str, Any]) -> None:
    """Trees given by their parent list."""
    check(Topology(case["parent"]), case["index"])


@pytest.mark.parametrize("case", TREES, ids=NAMES)
def test_trees(case: dict[str, Any]) -> None:
    """Robots: the order of the bodies is the numbering, depth first or not."""
    t = Topology.of(robot(case).model)
    check(t, case["output"]["index"])
    assert list(t.sigma[1:]) == case["output"]["sigma"]
    assert t.names[0] == "world" and t.names[1] == "link1"


def test_call_as_the_paper_does() -> None:
    """s(i, k), an(i, j), f(i)."""
    t = Topology([0, 1, 1, 3, 3])
    assert t.s(1, 2) == 3 and t.s(3, 1) == 4 and t.f(4) == 3 and t.an(5, 2) == 3 and t.ns(5) == 2
    with pytest.raises(IndexError, match="has 2 of these"):
        t.s(1, 3)
    with pytest.raises(IndexError, match="not in the tree"):
        t.f(9)


def test_numpy_takes_the_tables() -> None:
    """Tables are sequences, so NumPy reads them."""
    t = Topology([0, 1, 1])
    assert np.array(t.parent).tolist() == [-1, 0, 1, 1]
    assert t.children == ((1,), (2, 3), (), ()) and repr(t.dg) == "(1, 2, 0, 0)"
    inverse = np.linalg.inv(np.eye(4) - np.eye(4)[np.maximum(t.parent, 0)] * (np.array(t.parent) >= 0)[:, None])
    assert (inverse == t.D).all()  # D = (E - S)^-1


def test_welded_links_count() -> None:
    """A weld is a link of the topology, with sigma 0."""
    b = drevo.Builder("welded")
    b.body("a", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    b.body("b", "a", "fixed", mass=1.0, inertia=np.eye(3))
    b.body("c", "b", "spherical", mass=1.0, inertia=np.eye(3))
    t = Topology.of(b.robot().model)
    assert t.names == ("world", "a", "b", "c") and list(t.sigma) == [0, 1, 0, 1] and t.an[3] == (1, 2)


def test_work_is_linear() -> None:
    """In a chain and in a star."""
    work.linear(lambda n: lambda: Topology(list(range(n))), 1000)
    work.linear(lambda n: lambda: Topology([0] * n), 1000)
    t = Topology(list(range(100_000)))
    assert len(t.subtree[1]) == t.subtree_size[1]


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ([0, 3, 2], "2 -> 3 -> 2"),
        ([1], "1 -> 1"),
        ([0, 9], "parent 9; links are 0"),
        ([0, -2], "parent -2"),
        ([2, 0], "number every parent before its children"),
    ],
)
def test_refused(parents: list[int], words: str) -> None:
    """Cycles and parents that are not there."""
    with pytest.raises(drevo.ModelError, match=words):
        Topology(parents)


def test_links_by_name_and_wrong_arguments() -> None:
    t = drevo.load("biped").topology
    assert t.f("right_foot") == t.f(t.names.index("right_foot")) and t.parent["right_foot"] == t.f("right_foot")
    assert t.s("pelvis", 1) == t.children[0][0] and t.parent[-1] == t.parent[len(t) - 1]
    for ask, words in (
        (lambda: t.f("right_fot"), "link 'right_fot' is not in the tree .did you mean 'right_foot'"),
        (lambda: t.f(99), "link 99 is not in the tree; links are 0 .base. to 13"),
        (lambda: t.f(1.5), "link 1.5 is neither a number nor a name"),
        (lambda: t.f(None), "link None is neither"),
        (lambda: t.f(1, 1), "link 1 has one of these"),
        (lambda: t.s(0, "a"), "link 0 has . of these; 'a' is not one of 1"),
    ):
        with pytest.raises(drevo.DrevoError, match=words):
            ask()
    for parents, words in ((["a"], "link 1 has the parent 'a'; give its number"), ("abc", "the parents are 'abc'"),
                           (5, "the parents are 5"), ([0, 0.5], "link 2 has the parent 0.5"), (None, "are None"),
                           ([True], "the parent True"), ([0, 7], "link 2 has the parent 7")):  # fmt: skip
        with pytest.raises(drevo.ModelError, match=words):
            Topology(parents)
    for more, words in (({"names": ["a"]}, "names has 1 entries, 3 needed"), ({"turning": 5}, "turning is 5")):
        with pytest.raises(drevo.ModelError, match=words):
            Topology([0, 1], **more)
