"""The files that a description names: plain ones, inside the folders that it may read, and bounded.

Files that a user names, written whole or not at all; what the system refuses is one sentence.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DrevoError, InputError, ModelError
from .xml import MAX_XML_BYTES, too_many_bytes

MAX_TOTAL = 96 * 2**20  # bytes of all files that one description names
MAX_FILES = 2000
PICTURES = (".svg", ".png", ".pdf")  # endings of pictures, the last two by Matplotlib
INSTALLED = ("site-packages", "dist-packages")
PROJECT_MARKS = ("package.xml", "pyproject.toml", "setup.py", ".git")  # what stands in the folder of a project

_PACKAGE_NAME = re.compile(rb"<name>([^<]{1,200})</name>")


@contextmanager
def regular_file(path: str) -> Iterator[BinaryIO]:
    """A plain file, open for reading; ModelError for what is none or cannot be read."""
    try:
        # a pipe or a device would block or never end, also one that takes the place of a file at this moment
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise ModelError(f"not a file but {kind}; name a file")
        with open(handle, "rb") as file:
            yield file
    except DrevoError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot be read ({why}); give a file that can") from None


def read_head(path: str, count: int) -> bytes:
    """The first bytes of a plain file."""
    with regular_file(path) as file:
        return file.read(count)


def read_regular_file(path: str, most: int) -> bytes:
    """The bytes of a plain file, refused where there are more than `most`."""
    with regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else b""
        if max(size, len(data)) > most:
            raise ModelError(too_many_bytes(max(size, len(data)), most))
        return data


class Files:
    """The files that a description may open beside itself.

    `folder` is that of its file, "" for a text without one. It may read the `roots` that are declared; without
    any, the package or project that its file is part of; without one, its folder and the folders beside it.
    Links are followed first: what counts is where a file stands in the end.
    """

    def __init__(self, source: str = "", roots: Iterable[str] = (), hulls: int = 0) -> None:
        """hulls: how many support points a mesh has that touches; 0: it does not, and is not opened for that."""
        self.hulls = hulls
        self.folder = os.path.dirname(os.path.abspath(source)) if source else ""
        self.roots = [os.path.realpath(root) for root in roots]
        self.beside = ""  # folders in this one may be read
        if self.folder and not self.roots:
            real = os.path.dirname(os.path.realpath(source))
            package = _package(self.folder) or _package(real)
            self.roots = [os.path.realpath(package)] if package else [os.path.realpath(self.folder), real]
            self.beside = "" if package else _private(os.path.dirname(real))
        self.left, self.count = MAX_TOTAL, 0

    def find(self, name: str, folders: Iterable[str]) -> str:
        """The path of a file, looked for in several folders. ModelError where there is none that may be read."""
        if not name.strip() or "\0" in name:
            raise ModelError("names no file; give its name")
        known = [folder for folder in folders if folder] or self.roots
        if not known and not os.path.isabs(name):
            raise ModelError(f"names the file {name!r}, but a text stands in no folder; declare one (roots=[...])")
        paths = [os.path.normpath(os.path.join(folder, name)) for folder in known or [""]]
        path = next(filter(os.path.lexists, paths), paths[0])
        if not self.may(os.path.realpath(path)):
            within = f"outside of {self.roots[0]}" if self.roots else "nowhere"
            raise ModelError(
                f"the file {name!r} stands {within}, where this description may read; declare its folder "
                "(drevo.load(..., roots=[...]))"
            )
        if not os.path.exists(path):
            raise ModelError(f"the file {name!r} does not exist in {os.path.dirname(paths[0])}; correct its name")
        return path

    def may(self, path: str) -> bool:
        """True if a path without links lies where the description may read."""
        folder = os.path.dirname(path)
        return any(_under(path, root) for root in self.roots) or (
            bool(self.beside) and folder != self.beside and _under(folder, self.beside)
        )

    def read(self, path: str, most: int, weight: int = 1) -> bytes:
        """The bytes of a file that `find` found, as far as the bounds of all files together allow.

        weight: how often a byte counts; text takes longer to read than numbers.
        """
        self.count += 1
        data = read_regular_file(os.path.realpath(path), min(most, self.left // weight))
        self.left -= weight * len(data)
        if self.count > MAX_FILES:
            raise ModelError(f"more than {MAX_FILES} files are named; a robot description needs fewer")
        return data


def package_name(folder: str) -> str:
    """The name of the package in a folder's package.xml; "" where there is none."""
    path = os.path.join(folder, "package.xml")
    if not os.path.isfile(path):
        return ""
    match = _PACKAGE_NAME.search(read_regular_file(path, MAX_XML_BYTES))
    return match[1].decode("utf-8", "replace").strip() if match else ""


def _under(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _package(folder: str) -> str:
    """The folder of the installed package or of the project that a folder belongs to; "" where it is in none."""
    top = ""
    while (above := os.path.dirname(folder)) != folder and os.path.dirname(above) != above:
        if os.path.basename(above) in INSTALLED:
            return folder
        marked = any(os.path.lexists(os.path.join(folder, mark)) for mark in PROJECT_MARKS)
        python = os.path.exists(os.path.join(folder, "__init__.py"))
        if python or (marked and not top):
            top = folder
        elif top and not python:
            return top
        folder = above
    return top


def _private(folder: str) -> str:
    """A folder that is neither near the top of the disk nor open to everyone; "" for others."""
    try:
        shared = os.stat(folder).st_mode & stat.S_IWOTH
    except OSError:
        return ""
    return "" if shared or os.path.dirname(os.path.dirname(folder)) == os.path.dirname(folder) else folder


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


def write_whole(title: str, path: str | Path, content: str | bytes) -> Path:
    """Writes a file, whole or not at all, into a folder that is made where there is none; its path."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            raise InputError(
                f"{title}: {str(file)!r} is a folder, pipe or device and no file to replace; remove it"
            )
        with replacing(file) as part:
            part.write_bytes(content if isinstance(content, bytes) else content.encode())
    except DrevoError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"{title}: {str(file)!r} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from None
    return file


@contextmanager
def saving(title: str, path: Any, endings: Collection[str]) -> Iterator[Path]:
    """The temporary file to write `title` to, which takes the place of the path (see `replacing`).

    The path ends with one of `endings`; InputError where it cannot be written.
    """
    file = ready(title, path, endings)
    try:
        with replacing(file) as part:
            yield part
    except OSError as error:
        raise InputError(
            f"{title} cannot be saved as {str(file)!r}: {(error.strerror or str(error)).lower()}"
        ) from None


def ready(title: str, path: Any, endings: Collection[str]) -> Path:
    """A path in a folder that exists, whose ending is one of those that `title` can be saved as."""
    try:
        file = Path(path)
    except TypeError:
        raise InputError(f"{title} is saved to a path, not to {type(path).__name__}") from None
    if file.suffix.lower() not in endings or "\0" in str(file):
        drawn = title == "a table" and file.suffix.lower() in PICTURES
        kinds = " or ".join(", ".join(endings).rsplit(", ", 1))
        raise InputError(
            f"{title} is saved as {kinds}, not as {str(path)!r}" + "; .plot(path) saves a picture" * drawn
        )
    if not file.parent.is_dir():
        raise InputError(f"{title} cannot be saved as {str(file)!r}: there is no folder {str(file.parent)!r}")
    return file
