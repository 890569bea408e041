"""Index functions of a rooted tree: integers only, O(n), no recursion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def children_of(parent: Sequence[int]) -> list[list[int]]:
    """Children of every node; parent[i] < i, -1 is the ground."""
    out: list[list[int]] = [[] for _ in parent]
    for i, p in enumerate(parent):
        if p >= 0:
            out[p].append(i)
    return out


def depth_first(children: Sequence[Sequence[int]], roots: Sequence[int]) -> list[int]:
    """Nodes parent before child, every subtree contiguous, siblings in the given order."""
    order: list[int] = []
    stack = list(reversed(roots))
    while stack:
        i = stack.pop()
        order.append(i)
        stack.extend(reversed(children[i]))
    return order


def tour(parent: Sequence[int]) -> Iterator[tuple[bool, int]]:
    """The walk around a depth-first numbered tree: (True, i) on entering i, (False, i) on leaving it."""
    path: list[int] = []
    for i, p in enumerate(parent):
        while path and path[-1] != p:
            yield False, path.pop()
        yield True, i
        path.append(i)
    while path:
        yield False, path.pop()


def ancestors(parent: Sequence[int], i: int) -> Iterator[int]:
    """i, its parent, ... up to a root."""
    while i >= 0:
        yield i
        i = parent[i]


def subtree_ends(parent: Sequence[int]) -> list[int]:
    """For a depth-first numbering: subtree of i is range(i, end[i])."""
    end = [i + 1 for i in range(len(parent))]
    for i in range(len(parent) - 1, -1, -1):
        if parent[i] >= 0:
            end[parent[i]] = max(end[parent[i]], end[i])
    return end
