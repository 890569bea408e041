"""Messages about a model's faults: the element of each, and all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import InputError, ModelError, nearest, shown
from .description import Joint, Link, Model

PROBLEM_INDENT = "\n  - "
MOST_PROBLEMS = 10  # that a message spells out; `problems` of the error holds all


def at(thing: Link | Joint, noun: str = "") -> str:
    """The label of an element in a sentence: its kind, name and line."""
    noun = noun or ("link" if isinstance(thing, Link) else "joint")
    return f"{noun} {thing.name!r}" + (f" (line {thing.line})" if thing.line else "")


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names in quotes, a long list cut short."""
    return shorten([repr(name) for name in names], most)


def shorten(parts: Sequence[str], most: int = 6, glue: str = ", ", last: str = " ") -> str:
    """The parts in a row, a long row cut short."""
    more = f"{last}and {len(parts) - most} more" if len(parts) > most else ""
    return glue.join(parts[:most]) + more


def list_counts(tags: Mapping[str, int], most: int = 40) -> str:
    """Names with how often they occur, a long list cut short."""
    return shorten([f"{tag} ({count})" for tag, count in tags.items()], most)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing; bounded, since the search is quadratic."""
    known = [other for other in known if len(other) <= 64]
    close = nearest(name, known) if len(known) <= 200 and len(name) <= 64 else ""
    return f" (did you mean {close!r}?)" if close else ""


def model_of(robot: object, what: str) -> Model:
    """The Model of a Robot, or the Model itself; InputError where `what` was given something else."""
    model = robot if isinstance(robot, Model) else getattr(robot, "model", None)
    if not isinstance(model, Model):
        raise InputError(f"{what} takes a robot, as drevo.load gives it, not {shown(robot)}")
    return model


def expect_robot(robot: object, what: str) -> None:
    """InputError where `what` was given neither a Robot nor a stand-in: a Model has nothing to compute with."""
    if isinstance(robot, Model) or not hasattr(robot, "integrate"):
        raise InputError(f"{what} takes a robot, as drevo.load gives it, not {shown(robot)}")
    model_of(robot, what)


def names_in(given: object, what: str) -> tuple[str, ...]:
    """One name or several, those of a set sorted; InputError where `what` was given something else."""
    many = [given] if isinstance(given, str) else given
    if not isinstance(many, (list, tuple, set, frozenset)) or not all(isinstance(s, str) for s in many):
        raise InputError(f"{what} must be a name or a list of names, not {shown(given)}")
    return tuple(sorted(many) if isinstance(many, (set, frozenset)) else many)


def refuse(where: str, problems: Sequence[str]) -> None:
    """Raise one ModelError for all problems, the first of them spelt out; nothing where there is none."""
    if not problems:
        return
    several = f"{len(problems)} problems:{PROBLEM_INDENT}" if len(problems) > 1 else ""
    error = ModelError(f"{where}: {several}{shorten(problems, MOST_PROBLEMS, PROBLEM_INDENT, PROBLEM_INDENT)}")
    error.problems = tuple(problems)
    raise error
