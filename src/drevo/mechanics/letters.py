"""Numbers and letters of bodies, as people read them.

Bodies that a preparation turned, shifted or regrouped have letters of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model.description import Model
from .reduce import replaced_entry
from .scalar import is_zero
from .tree import Tree, TreeBody


def body_numbers(tree: Tree, model: Model) -> dict[str, str]:
    """The numbers of links and joints in letters; links that are welded on have the next free ones."""
    numbers = {b.joint: b.number.rstrip("abcdefrt") for b in tree.bodies}
    numbers |= {b.link: b.number.rstrip("t") for b in tree.bodies}
    welded = [l.name for l in model.links if l.name not in numbers and l.name != model.root]
    welded.sort(key=lambda name: name not in tree.frames or tree.frames[name].body < 0)  # those that move first
    first = 1 + max((int(b.number.rstrip("abcdefrt")) for b in tree.bodies), default=0)
    numbers |= {name: str(first + k) for k, name in enumerate(welded)}
    return numbers | {j.name: numbers[j.child] for j in model.joints if j.name not in numbers}


def own_letters(tree: Tree, before: Tree) -> Tree:
    """Bodies that are no longer as in `before`, in their joints' axes, have letters of their own: Theta_2tx."""

    def changed(b: TreeBody, old: TreeBody) -> bool:
        """Frame, first moment or second moments but that along the axis, which rates do not feel."""
        I, J = b.inertia, old.inertia
        moments = zip(replaced_entry(I.S, b.axis, 0.0), replaced_entry(J.S, b.axis, 0.0))
        turned = ((x, y) for r, s in zip(b.R, old.R) for x, y in zip(r, s))
        pairs = ((b.phase, old.phase), *zip(b.p, old.p), *turned, *zip(I.h, J.h), *moments)
        return not all(is_zero(x - y) for x, y in pairs)

    marked = [b.number for b, old in zip(tree.bodies, before.bodies) if changed(b, old)]
    if not marked:
        return tree
    said = ", ".join(f"{n}t" for n in marked)
    tree.context.assume(
        f"Letters with {said} are of bodies whose axes are turned or shifted against their joints' own, or whose "
        "inertia is regrouped."
    )
    return tree.replace(
        bodies=tuple(b._replace(number=f"{b.number}t") if b.number in marked else b for b in tree.bodies)
    )


def lettered(prepare: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """A preparation after which no letter means two things."""
    return lambda tree: own_letters(prepare(tree), tree)
