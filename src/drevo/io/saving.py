"""Files that a user names: the ending says what is written; what the system refuses is one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError


@contextmanager
def saving(what: str, path: Any, endings: Collection[str]) -> Iterator[Path]:
    """The path to write `what` to, which ends with one of `endings`; InputError where that cannot be."""
    file = ready(what, path, endings)
    try:
        yield file
    except OSError as error:
        raise InputError(
            f"{what} cannot be saved as {str(file)!r}: {(error.strerror or str(error)).lower()}"
        ) from None


def ready(what: str, path: Any, endings: Collection[str]) -> Path:
    """A path in a folder that exists, whose ending is one of those that `what` can be saved as."""
    try:
        file = Path(path)
    except TypeError:
        raise InputError(f"{what} is saved to a path, not to {type(path).__name__}") from None
    if file.suffix.lower() not in endings or "\0" in str(file):
        kinds = " or ".join(", ".join(endings).rsplit(", ", 1))
        raise InputError(f"{what} is saved as {kinds}, not as {str(path)!r}")
    if not file.parent.is_dir():
        raise InputError(f"{what} cannot be saved as {str(file)!r}: there is no folder {str(file.parent)!r}")
    return file
