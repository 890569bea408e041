"""Limbs that are alike but for their numbers, as one limb whose numbers stand for all of theirs.

Legs of a quadruped, fingers of a hand: runs of the same joints upon one body. What an algorithm does for one of
them it does for each, on other numbers; where they meet, sums are formed (`handed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from .scalar import Scalar
from .tree import Tree, TreeBody
from .tree_indices import subtree_ends

MOST = 8  # limbs side by side
Limbs = tuple[range, ...]  # bodies of each; the first stands for all
LimbNumbers = tuple[float, ...]  # one for each limb
Part = TypeVar("Part")  # a number, or a structure of them
_NUMBERS = frozenset(("R", "p", "pitch", "factor", "inertia", "phase"))  # of a body; all else is alike


def alike_limbs(tree: Tree) -> tuple[Limbs, ...]:
    """Groups of as many limbs each, none where no two are alike: first the one that leaves the fewest bodies where
    a limb stands for all of its group."""
    ends, rates = subtree_ends(tree.parents), [b.v for b in tree.bodies]
    groups: dict[object, list[range]] = {}
    for i, b in enumerate(tree.bodies):
        run = range(i, ends[i])
        if all(rates.count(tree.bodies[k].v) == 1 and tree.bodies[k].kind != "wheel" for k in run):
            groups.setdefault((b.parent, *(_form(tree, k, i) for k in run)), []).append(run)
    many = [tuple(runs) for runs in groups.values() if 1 < len(runs) <= MOST]
    found, taken = list[Limbs](), set[int]()
    for runs in sorted(many, key=lambda runs: -sum(map(len, runs[1:]))):
        if len(runs) == len([*found, runs][0]) and all(taken.isdisjoint(run) for run in runs):
            found.append(runs)
            taken.update(i for run in runs for i in run)
    return tuple(found)


def limbs_apart(tree: Tree) -> Iterator[Limbs]:
    """Ways to cut a tree into a trunk and limbs that hang on it, from few to many: each time the largest limb that
    has a fork is opened there."""
    ends, children = subtree_ends(tree.parents), dict[int, list[int]]()
    for i, b in enumerate(tree.bodies):
        children.setdefault(b.parent, []).append(i)
    limbs, left = list[range](), [-1]
    while left:
        at = max(left, key=lambda i: ends[i] - i if i >= 0 else len(tree))
        left.remove(at)
        while len(below := children.get(at, [])) == 1:
            (at,) = below
        if below:
            limbs = [x for x in limbs if at not in x] + [range(i, ends[i]) for i in below]
            left += below
            yield tuple(limbs)


def _form(tree: Tree, k: int, i: int) -> tuple[object, ...]:
    """What must be equal: the joint, and where its body and its coordinates stand from those of body i."""
    b, first = tree.bodies[k], tree.bodies[i]
    return b.kind, b.axis, k > i and b.parent - i, b.q - first.q, b.v - first.v


class Joined(NamedTuple):
    """A tree in which one limb stands for all. q, v: of its coordinates and rates those of the whole tree that
    each stands for."""

    tree: Tree
    q: tuple[tuple[int, ...], ...]
    v: tuple[tuple[int, ...], ...]


def joined_limbs(
    tree: Tree, groups: Sequence[Limbs], number: Callable[[LimbNumbers], Scalar], total: Callable[[Scalar], Scalar]
) -> Joined:
    """number: what stands for numbers that differ; total: the sum over the limbs of what each has."""
    gone = {i for limbs in groups for run in limbs[1:] for i in run}
    alike = {i: [run[k] for run in limbs] for limbs in groups for k, i in enumerate(limbs[0])}
    place, bodies = {-1: -1}, list[TreeBody]()
    q, v = list[tuple[int, ...]](), list[tuple[int, ...]]()
    for i, b in enumerate(tree.bodies):
        if i in gone:
            continue
        same = [tree.bodies[k] for k in alike.get(i, (i,))]
        fields = {k: joined([getattr(x, k) for x in same], number) for k in _NUMBERS}
        place[i] = len(bodies)
        bodies.append(b._replace(**fields, parent=place[b.parent], q=len(q), v=len(v)))
        q += [tuple(x.q + k for x in same) for k in range(b.nq)]
        v += [tuple(x.v + k for x in same) for k in range(b.nv)]
    rotors = {k: [tree.armature.get(r, 0.0) for r in rates] for k, rates in enumerate(v)}
    made = tree.replace(
        bodies=tuple(bodies), nq=len(q), nv=len(v), frames={}, loose={},
        armature={k: joined(x, number) for k, x in rotors.items() if any(x)},
        carried=[joined([tree.carried[r] for r in rates], number) for rates in v] if tree.carried else (),
        limbs={k: total for k, rates in enumerate(v) if len(rates) > 1},
        joint_names=tuple(tree.joint_names[rates[0]] for rates in v),
    )  # fmt: skip
    return Joined(made, tuple(q), tuple(v))


def joined(same: Sequence[Scalar], number: Callable[[LimbNumbers], Scalar]) -> Scalar:
    """One number, or structure of numbers, for several."""
    first = same[0]
    if isinstance(first, tuple):
        parts = (joined(x, number) for x in zip(*same))
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return first if all(x == first for x in same) else number(tuple(map(float, same)))


def handed(tree: Tree, i: int, x: Part) -> Part:
    """What body i hands to its parent: where it stands for several limbs, the sum over them."""
    b, limbs = tree.bodies[i], tree.limbs
    return _mapped(limbs[b.v], x) if b.v in limbs and tree.bodies[b.parent].v not in limbs else x


def _mapped(f: Callable[[Scalar], Scalar], x: Any) -> Any:
    if not isinstance(x, tuple):
        return f(x)
    parts = (_mapped(f, y) for y in x)
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
