"""Every failure a user can cause, as one sentence: which element, which rule, which values, what to do."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable
from reprlib import Repr
from typing import Any

MAX_LISTED_NAMES = 6  # names that are listed beside the one that was probably meant
LEAST_SIMILARITY = 0.6  # of difflib's ratio, which finds what may be meant; few slips decide
MAX_SHOWN_CHARACTERS = 80  # characters of a value in a sentence
# words of the field -> what Drevo calls it, where that is known there
MEANINGS = {
    **dict.fromkeys(("fk", "forward_kinematics", "frame_placement", "transform"), "pose"),
    **dict.fromkeys(("ik", "solve_ik", "inverse_kinematic"), "inverse_kinematics"),
    **dict.fromkeys(("com", "center_of_gravity", "centre_of_mass", "com_position"), "center_of_mass"),
    **dict.fromkeys(("dof", "dofs", "ndof", "num_dof", "n_dof"), "nv"),
    **dict.fromkeys(("inertia_matrix", "joint_inertia", "generalized_inertia", "M", "crb"), "mass_matrix"),
    **dict.fromkeys(("nonlinear_effects", "nle", "bias_forces", "qfrc_bias"), "bias"),
    **dict.fromkeys(("coriolis", "C"), "coriolis_matrix"),
    **dict.fromkeys(
        ("gravity_torque", "gravity_torques", "gravity_vector", "g", "gravity_compensation"), "gravity"
    ),
    **dict.fromkeys(("limits", "joint_limits", "position_limits", "lower_limits", "q_min", "qmin"), "lower"),
    **dict.fromkeys(("upper_limits", "q_max", "qmax"), "upper"),
    **dict.fromkeys(("effort_limits", "torque_limits", "tau_max", "effort_limit"), "max_effort"),
    **dict.fromkeys(("velocity_limits", "v_max", "velocity_limit"), "max_velocity"),
    **dict.fromkeys(("jacobian_dot", "jacobian_derivative", "Jdot", "dJ"), "jacobian_bias"),
    **dict.fromkeys(("mass", "masses", "weight"), "total_mass"),
    **dict.fromkeys(("links", "bodies", "body_names"), "link_names"),
    **dict.fromkeys(("joints", "names"), "joint_names"),
    **dict.fromkeys(("ke", "kinetic"), "kinetic_energy"),
    **dict.fromkeys(("pe", "potential"), "potential_energy"),
    **dict.fromkeys(("J", "body_jacobian", "frame_jacobian", "geometric_jacobian"), "jacobian"),
    **dict.fromkeys(("timestep", "time_step", "step", "h"), "dt"),
    **dict.fromkeys(("torque", "torques", "effort", "efforts", "u"), "tau"),
    "tau": "efforts",
    **dict.fromkeys(("position", "orientation", "placement"), "pose"),
    **dict.fromkeys(("time", "t_end", "tf", "seconds"), "duration"),
}
_ADDRESS = re.compile(r"( object)? at 0x[0-9A-Fa-f]+")
_LINES = re.compile(r"\s*\n(?!  - )\s*")  # those of a list of problems stay
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LONG_WORD = re.compile(r"\S{200,}")
_REPR = Repr()  # of the first elements only: the rest may be millions
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = _REPR.maxset = 30
_REPR.maxstring = _REPR.maxother = 200


def printable(text: str) -> str:
    """A text whose control characters, line feeds aside, are told and not sent to a terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class DrevoError(Exception):
    """The base of everything that Drevo raises on purpose; `problems` holds all where the text counts some.

    Its text is on one line, apart from a list of problems, without addresses in memory, and with words that can be
    read: of a name without end both ends are shown.
    """

    problems: tuple[str, ...] = ()
    __str__ = Exception.__str__  # a KeyError would show its text in quotes

    def __init__(self, text: str = "", *more: Any) -> None:
        plain = printable(_LINES.sub(" ", _ADDRESS.sub("", str(text))))
        super().__init__(
            _LONG_WORD.sub(
                lambda word: f"{word[0][:MAX_SHOWN_CHARACTERS]}...{word[0][-MAX_SHOWN_CHARACTERS:]}", plain
            ),
            *more,
        )


class ModelError(DrevoError, ValueError):
    """A robot description that cannot be computed or is ambiguous."""


class MissingFileError(ModelError, FileNotFoundError):
    """A file or a robot of a name that is not there."""


class TraceError(DrevoError, ValueError):
    """A quantity, formalism or parameter that this robot cannot give."""


class EmitError(DrevoError):
    """A target that cannot express the program, or a compiler that failed."""


class NumericsError(DrevoError, ValueError, ArithmeticError):
    """Numbers that have no answer: a non-unit quaternion, a singular matrix, a value that is not finite."""


class InputError(DrevoError, ValueError):
    """Arguments of the wrong shape, type or name."""


class UnknownNameError(TraceError, InputError, KeyError):
    """A name that is none of the robot, of the catalogue or of the options."""


class DrevoWarning(UserWarning):
    """A description that can be computed but is doubtful, or acts in ways that are not read.

    One per file, naming the elements; `problems` holds all of them where the text counts some.
    """

    problems: tuple[str, ...] = ()


def warn_caller(warning: str | DrevoWarning) -> None:
    """A DrevoWarning at the line of the first caller outside of this package, however deep it is seen here."""
    package, level, frame = os.path.dirname(__file__), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(DrevoWarning(printable(warning)) if isinstance(warning, str) else warning, stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str:
    """The public name that was probably meant: one that is spelt nearly so, or has it as a word; "" for none."""
    from difflib import get_close_matches

    public = [other for other in known if not other.startswith("_")]
    if (meant := MEANINGS.get(name, "")) in public:
        return meant
    close = get_close_matches(name[:MAX_SHOWN_CHARACTERS], public, 3, LEAST_SIMILARITY)
    close = [other for other in close if name in other or _slips(name, other)]
    return next(iter(close or [other for other in public if name in other.split("_")]), "")


def _slips(name: str, other: str) -> bool:
    """Few letters are wrong, missing, too many or exchanged: at most a third (Damerau 1964)."""
    rows: list[list[int]] = [[*range(len(other) + 1)]]
    for i, a in enumerate(name[:MAX_SHOWN_CHARACTERS], 1):
        row = [i]
        for j, b in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == name[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1] <= (max(len(name), len(other)) + 1) // 3


def one_of(
    what: str, value: Any, names: Iterable[str], error: type[DrevoError] = TraceError, hint: str = ""
) -> str:
    """`value`, if it is one of the names; otherwise the error says which was probably meant, or all there are."""
    known = list(names)
    if isinstance(value, str) and value in known:
        return value
    near = nearest(value, known) if isinstance(value, str) else ""
    there = f"there are {', '.join(known[:40])}{', ...' * (len(known) > 40)}"
    if near:
        there = f"{there}; " * (len(known) <= MAX_LISTED_NAMES) + f"did you mean {near!r}?"
    kind = UnknownNameError if issubclass(UnknownNameError, error) else error
    raise kind(f"{what} {shown(value)} is not known{hint}; {there}")


def shown(value: object) -> str:
    """A value as a sentence shows it: on one line, without its address, cut."""
    try:
        text = " ".join(_ADDRESS.sub("", _REPR.repr(value)).split())
    except Exception:  # an integer of a million digits, or a foreign object
        text = f"a {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."
