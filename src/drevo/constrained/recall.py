"""Calls that are known again: where only the arrays are new, straight into compiled code."""

from __future__ import annotations

from operator import is_
from typing import Any

from ..codegen.runtime.memo import memoised
from .constraint import KINDS

KEPT = 4  # of what a function was asked for a robot
NOTHING = float("nan")  # equals nothing


def recalled(robot: Any, name: str, asked: tuple[Any, ...]) -> Any:
    """What was remembered of a call that asked the same lately, or None. ValueError where arrays are asked."""
    try:
        recent = robot._made[name]  # of `memoised`
    except (AttributeError, KeyError):
        return None
    for before, found in recent:
        if before == asked:
            return found
    return None


def remember(robot: Any, name: str, asked: tuple[Any, ...], found: Any) -> None:
    """So that `recalled` gives it; not where something that was asked may change unseen."""
    copy = copy_of(asked)
    if equal(copy, asked):
        recent: list[Any] = memoised(robot, name, list)
        recent[:] = [(copy, found), *[x for x in recent if not equal(x[0], asked)][: KEPT - 1]]


def equal(mine: Any, given: Any) -> bool:
    """Whether they are certain to be."""
    try:
        return bool(mine == given)
    except ValueError:  # arrays have no single answer
        return False


def copy_of(x: Any) -> Any:
    """A copy that nobody else can change; of what may change unseen, something that equals nothing."""
    if x is None or isinstance(x, (str, int, float, *KINDS)):
        return x
    if type(x) in (tuple, list):
        copies = [copy_of(y) for y in x]
        same = type(x) is tuple and all(map(is_, copies, x))
        return x if same else type(x)(copies)
    if type(x) is dict:
        return {k: copy_of(y) for k, y in x.items()}
    return NOTHING
