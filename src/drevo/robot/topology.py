"""Index functions of a tree of links: 0 is the base, links are 1..n, a parent before its children.

Names after Kovalchuk, Kulakov and Semenov stand beside the plain ones. Built in O(n); what is larger
(the reachability matrix, lists of ancestors) is made when it is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from ..errors import InputError, ModelError, shown
from ..mechanics.tree_indices import children_of, depth_first
from ..model.description import Joint, Model
from ..model.draft import did_you_mean, model_of

T = TypeVar("T")
KINDS_THAT_TURN = ("revolute", "continuous", "helical", "cylindrical", "planar", "universal", "spherical", "free")


class LinkIndexError(InputError, IndexError):
    """No such link: an IndexError too, so that a Table is a sequence."""


class IndexTable(Sequence[T]):
    """An index function: `table[i]`, or as the paper writes it `table(i)` and `table(i, k)`, k from 1.

    i: the number of a link, or its name.
    """

    def __init__(self, size: int, entry: Callable[[int], T], names: Sequence[str] = ()) -> None:
        self._size = size
        self._entry = entry
        self._names = names

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, i: int | str) -> T: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[T, ...]: ...
    def __getitem__(self, i: int | str | slice) -> T | tuple[T, ...]:
        if isinstance(i, slice):
            return tuple(self._entry(k) for k in range(*i.indices(self._size)))
        if isinstance(i, str):
            return self._entry(self._number(i))
        try:
            k = operator.index(i)
        except TypeError:
            raise InputError(f"link {shown(i)} is neither a number nor a name; links are {self._links}") from None
        if not -self._size <= k < self._size:
            raise LinkIndexError(f"link {k} is not in the tree; links are {self._links}")
        return self._entry(k % self._size)

    @property
    def _links(self) -> str:
        return f"0 (base) to {self._size - 1}"

    def _number(self, name: str) -> int:
        if name not in self._names:
            raise LinkIndexError(f"link {shown(name)} is not in the tree{did_you_mean(name, self._names)}")
        return self._names.index(name)

    def __iter__(self) -> Iterator[T]:
        return map(self._entry, range(self._size))

    def __call__(self, i: int | str, k: int | None = None) -> Any:
        row: Any = self[i]
        if k is None:
            return row
        if not isinstance(row, tuple):
            raise InputError(f"link {i!r} has one of these, {row}; leave the {shown(k)} out")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= len(row):
            raise LinkIndexError(f"link {i!r} has {len(row)} of these; {shown(k)} is not one of 1..{len(row)}")
        return row[k - 1]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self)) if self._size <= 50 else f"<{self._size} entries>"


class Topology:
    """The tree of the links. Every attribute is indexed by the link's number; the paper's name is in brackets.

    names              link names, the base first
    parent             (f) number of the parent; -1 for the base
    children           (Gamma, s) children in ascending order; s(i, k) is the k-th of link i
    out_degree         (dg) how many children
    depth_first        (Dnum) place in the depth-first preorder; `order` is its inverse
    ancestors          (an) from the one that hangs on the base down to the parent; the base does not count
    ancestor_count     (nan) how many
    subtree            the link and all that hangs on it, in preorder
    subtree_size       how many
    reachable          (D) matrix, 1 where link i (row) is in the subtree of link j (column)
    position_among_siblings   (ns) from 1; 0 for the base
    joint_type         (sigma) 1 where the joint turns, 0 where it slides or is a weld
    """

    def __init__(self, parent: Sequence[int], names: Sequence[str] = (), turning: Sequence[int] = ()) -> None:
        """parent: number of the parent of each link 1..n; names: of base and links; turning: 1 or 0 of each link.

        Raises ModelError for what is no tree.
        """
        parents = _checked(parent)
        n = len(parents)
        children = [tuple(c) for c in children_of(parents)]
        order = depth_first(children, [0])
        self.names = _each("names", names, n) or tuple(str(i) for i in range(n))
        turning = _each("turning", turning, n - 1)
        self.parent = _table(parents)
        self.children = _table(children)
        self.out_degree = _table([len(c) for c in children])
        self.order = tuple(order)
        number, size, level, place = [0] * n, [1] * n, [0] * n, [0] * n
        for k, i in enumerate(order):
            number[i] = k
            level[i] = max(level[parents[i]], 0) + 1 if i else -1
            for j, c in enumerate(children[i], 1):
                place[c] = j
        for i in reversed(order[1:]):
            size[parents[i]] += size[i]
        self.depth_first = _table(number)
        self.subtree_size = _table(size)
        self.ancestor_count = _table([max(x - 1, 0) for x in level])
        self.position_among_siblings = _table(place)
        self.joint_type = _table([0, *turning] if turning else [0] + [1] * (n - 1))
        self.ancestors = IndexTable(n, self._ancestors)
        self.subtree = IndexTable(n, self._subtree)
        for table in vars(self).values():
            if isinstance(table, IndexTable):
                table._names = self.names

    @classmethod
    def of(cls, model: Model) -> Topology:
        """The links of a model in the order of the joints that carry them; welded links are links too."""
        model = model_of(model, "Topology.of")
        number = {link.name: i for i, link in enumerate(model.links)}
        carried: dict[str, Joint] = {j.child: j for j in model.joints}
        joints = [carried[link.name] for link in model.links[1:]]
        return cls(
            [number[j.parent] for j in joints],
            [link.name for link in model.links],
            [int(j.kind in KINDS_THAT_TURN) for j in joints],
        )

    def __len__(self) -> int:
        """Links, the base included."""
        return len(self.parent)

    def __repr__(self) -> str:
        return f"<Topology: base and {len(self) - 1} links>"

    def _ancestors(self, i: int) -> tuple[int, ...]:
        chain: list[int] = []
        while self.parent[i] > 0:
            i = self.parent[i]
            chain.append(i)
        return tuple(reversed(chain))

    def _subtree(self, k: int) -> tuple[int, ...]:
        first = self.depth_first[k]
        return self.order[first : first + self.subtree_size[k]]

    @property
    def reachable(self) -> np.ndarray[Any, Any]:
        """d_ij = [Dnum(j) <= Dnum(i) < Dnum(j) + |sub(j)|]; memory n^2."""
        number = np.array(self.depth_first)
        end = number + np.array(self.subtree_size)
        inside = (number <= number[:, None]) & (number[:, None] < end)
        return np.asarray(inside, np.int64)

    # the paper's names
    f = property(lambda self: self.parent)
    Gamma = property(lambda self: self.children)
    s = property(lambda self: self.children)
    dg = property(lambda self: self.out_degree)
    Dnum = property(lambda self: self.depth_first)
    D = property(lambda self: self.reachable)
    an = property(lambda self: self.ancestors)
    nan = property(lambda self: self.ancestor_count)
    ns = property(lambda self: self.position_among_siblings)
    sigma = property(lambda self: self.joint_type)


def _table(values: Sequence[T]) -> IndexTable[T]:
    return IndexTable(len(values), values.__getitem__)


def _checked(parent: Sequence[int]) -> list[int]:
    """-1 for the base, then the parents; ModelError where one is no earlier link."""
    given: Any = np.asarray(parent) if isinstance(parent, memoryview) else parent  # which iterates along one axis
    if isinstance(given, (str, bytes)) or not np.iterable(given):
        raise ModelError(f"the parents are {shown(parent)}; give a list of numbers, one for each link 1..n")
    parents = [-1]
    for p in given:
        if isinstance(p, (bool, np.bool_)) or not isinstance(p, (int, np.integer)):
            raise ModelError(f"link {len(parents)} has the parent {shown(p)}; give its number, 0 for the base")
        parents.append(int(p))
    for i, p in enumerate(parents[1:], 1):
        if not 0 <= p < len(parents):
            raise ModelError(f"link {i} has the parent {p}; links are 0 (base) to {len(parents) - 1}")
        if p >= i:
            cycle = _cycle(parents, i)
            why = f": the links {' -> '.join(map(str, cycle))} form a cycle" if cycle else ""
            raise ModelError(f"link {i} has the parent {p}{why}; number every parent before its children")
    return parents


def _each(title: str, given: Any, count: int) -> tuple[Any, ...]:
    """One for each, or none at all."""
    given = np.asarray(given) if isinstance(given, memoryview) else given
    if isinstance(given, str) or not np.iterable(given):
        raise ModelError(f"{title} is {shown(given)}; give a list of {count}")
    listed = tuple(given)
    if listed and len(listed) != count:
        raise ModelError(f"{title} has {len(listed)} entries, {count} needed")
    return listed


def _cycle(parents: Sequence[int], start: int) -> list[int]:
    """The cycle that the parents of a link run into, if any."""
    path: list[int] = []
    i = start
    while i > 0 and i < len(parents) and i not in path:
        path.append(i)
        i = parents[i]
    return [*path[path.index(i) :], i] if i in path else []
