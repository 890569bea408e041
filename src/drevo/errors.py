"""Every failure a user can cause, as one sentence: which element, which rule, which values, what to do."""

from __future__ import annotations


class DrevoError(Exception):
    """The base of everything that Drevo raises on purpose."""


class ModelError(DrevoError):
    """A robot description that cannot be computed or is ambiguous."""


class TraceError(DrevoError):
    """A quantity, formalism or parameter that this robot cannot give."""


class EmitError(DrevoError):
    """A target that cannot express the program, or a compiler that failed."""


class NumericsError(DrevoError):
    """Numbers that have no answer: a non-unit quaternion, a singular matrix, a value that is not finite."""


class InputError(DrevoError):
    """Arguments of the wrong shape, type or name."""


class DrevoWarning(UserWarning):
    """A description that can be computed but is doubtful; one per file, naming every doubtful element."""
