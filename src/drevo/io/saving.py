"""Files that a user names, written whole or not at all; what the system refuses is one sentence."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import DrevoError, InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file in the same folder that takes the place of a file when all of it is on the disk.

    Until then the file is as it was, also where the disk is full or the process ends. Links are followed, and mode
    and owner stay. A pipe or a device, such as /dev/stdout, is written to itself. Raises OSError.
    """
    real = Path(os.path.realpath(path))
    try:
        before: os.stat_result | None = real.stat()
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        yield real
        return
    if before is not None and not os.access(real, os.W_OK):  # which renaming would pass over
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    part = real.with_name(f".{secrets.token_hex(8)}{real.suffix}")
    try:
        part.open("xb").close()
        yield part
        with part.open("r+b") as written:
            os.fsync(written.fileno())
        if before is not None:
            with suppress(OSError, AttributeError):  # only the superuser gives files away; Windows has no owners
                os.chown(part, before.st_uid, before.st_gid)
            shutil.copymode(real, part)
        os.replace(part, real)
    finally:
        part.unlink(missing_ok=True)


def write_whole(what: str, path: str | Path, content: str | bytes) -> Path:
    """Writes a file, whole or not at all, into a folder that is made where there is none; its path."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise InputError(
                f"{what}: {str(file)!r} is a folder, pipe or device and no file to replace; remove it"
            )
        with replacing(file) as part:
            part.write_bytes(content if isinstance(content, bytes) else content.encode())
    except DrevoError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"{what}: {str(file)!r} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from None
    return file


@contextmanager
def saving(what: str, path: Any, endings: Collection[str]) -> Iterator[Path]:
    """The temporary file to write `what` to, which takes the place of the path (see `replacing`).

    The path ends with one of `endings`; InputError where it cannot be written.
    """
    file = ready(what, path, endings)
    try:
        with replacing(file) as part:
            yield part
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
