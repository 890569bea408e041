"""The cache of compiled code on disk: it can change only the time, never a result.

Entry: magic, format version, SHA-256 of the key, payload length, payload, a digest of all before. Whatever does
not match is a miss and is deleted. Written to a temporary file, synced, renamed.

What is read here will be executed, so nobody else may have written it: the directory is private to this user,
below directories where nobody else can replace it, and everything is reached through its descriptor. The digest
is keyed with a secret file in it, so what this user's Drevo did not write there never passes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

MAGIC = b"DREVOKC\n"
VERSION = 2
_HEAD = struct.Struct("<8sI32sQ")
_CHECK = 32  # bytes of the digest and of the secret
_SECRET = "secret"
LARGEST = 1 << 30  # bytes of one entry
ROOM = 2 << 30  # bytes of all entries; the oldest go first
SHARE = 64  # of the room: what a process writes before it looks again whether there is room
_STALE = 3600.0  # seconds after which a temporary file has lost its writer
_WINDOWS = sys.platform == "win32"  # its profile directories are private, and it has no descriptors of directories
_BINARY: int = getattr(os, "O_BINARY", 0)
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NONE = (OSError, RuntimeError, ValueError)  # no home, no permission, a file in the way, NUL in the name
_PASSED: int = getattr(os, "O_PATH", os.O_RDONLY) | _NO_LINK  # a directory on the way need not be readable


def base_directory() -> Path:
    """The directory of caches on this platform; DREVO_CACHE_DIR overrides it."""
    given = os.environ.get("DREVO_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "drevo" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "drevo"
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given and os.path.isabs(given) else Path.home() / ".cache") / "drevo"


class Folder(NamedTuple):
    """The directory of entries: its path, and the descriptor its files are reached by; -1 where there are none."""

    path: str
    descriptor: int

    @property
    def at(self) -> int | None:
        return None if self.descriptor < 0 else self.descriptor

    def place(self, name: str) -> str:
        return os.path.join(self.path, name) if self.at is None else name

    def opened(self, name: str, flags: int) -> int:
        return os.open(self.place(name), flags | _NO_LINK | _BINARY, 0o600, dir_fd=self.at)

    def load(self, name: str) -> bytes:
        """A file of this user that nobody else can write."""
        with os.fdopen(self.opened(name, os.O_RDONLY), "rb") as file:
            seen = os.fstat(file.fileno())
            if not stat.S_ISREG(seen.st_mode) or not (_WINDOWS or _mine(seen, 0o022)):
                raise PermissionError(f"{name} is not this user's own")
            return file.read(min(seen.st_size, LARGEST) + 1)  # room for what there is

    def remove(self, name: str) -> None:
        with suppress(OSError):  # another process may have taken it
            os.unlink(self.place(name), dir_fd=self.at)

    def store(self, name: str, data: bytes) -> None:
        """Whole or not at all."""
        temporary = f"tmp-{os.urandom(8).hex()}"
        try:
            with os.fdopen(self.opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self.place(temporary), self.place(name), src_dir_fd=self.at, dst_dir_fd=self.at)
        finally:
            self.remove(temporary)

    def entries(self) -> list[os.DirEntry[str]]:
        return list(os.scandir(self.path if self.at is None else self.at))


def _mine(seen: os.stat_result, others: int) -> bool:
    """Owned by this user, and of what others may do nothing in `others`."""
    return seen.st_uid == os.getuid() and not seen.st_mode & others


def _passable(seen: os.stat_result) -> bool:
    """A directory on the way: nobody but root and this user can replace what is in it."""
    if seen.st_uid not in (0, os.getuid()):
        return False
    own_group = seen.st_gid == os.getgid() == os.getuid()  # of this user alone, by convention
    return not seen.st_mode & (0o002 if own_group else 0o022) or bool(seen.st_mode & stat.S_ISVTX)


@contextmanager
def _folder() -> Iterator[Folder]:
    """The directory of entries, made if need be; OSError, RuntimeError, ValueError if there cannot be one."""
    path = os.path.join(os.path.realpath(base_directory()), f"objects-{VERSION}")
    if _WINDOWS:
        os.makedirs(path, exist_ok=True)
        yield Folder(path, -1)
        return
    descriptor = os.open("/", _PASSED)
    try:
        *way, last = path.split("/")[1:]
        for name in way:
            _enter(descriptor, name, _PASSED)
        _enter(descriptor, last, os.O_RDONLY | _NO_LINK)
        if not _mine(os.fstat(descriptor), 0o077):
            raise PermissionError(f"{path} is not private")
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _enter(outer: int, name: str, flags: int) -> None:
    """From a directory into one in it, made if need be; the descriptor stays the same."""
    if not _passable(os.fstat(outer)):
        raise PermissionError(f"above {name} others can replace it")
    try:
        inner = os.open(name, flags | os.O_DIRECTORY, dir_fd=outer)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=outer)
        inner = os.open(name, flags | os.O_DIRECTORY, dir_fd=outer)
    os.dup2(inner, outer, inheritable=False)
    os.close(inner)


def directory() -> Path | None:
    """The private directory of entries, made if need be; None if there cannot be one."""
    with suppress(*_NONE), _folder() as folder:
        return Path(folder.path)
    return None


def digest(key: str) -> bytes:
    """The name of an entry."""
    return hashlib.sha256(key.encode()).digest()


def _secret(folder: Folder, make: bool = False) -> bytes:
    """The secret key of the digests of this directory."""
    with suppress(FileNotFoundError):
        found = folder.load(_SECRET)
        if len(found) == _CHECK:
            return found
        folder.remove(_SECRET)
    if not make:
        raise FileNotFoundError(_SECRET)
    folder.store(_SECRET, os.urandom(_CHECK))  # of two at once the later stays; entries of the other are misses
    return folder.load(_SECRET)


def _seal(body: bytes | memoryview, secret: bytes) -> bytes:
    return hashlib.blake2b(body, key=secret, digest_size=_CHECK).digest()


def read_entry(key: str) -> bytes | None:
    """The payload of a key, or None; a damaged entry is deleted."""
    name = digest(key)
    file = f"{name.hex()}.bin"
    with suppress(*_NONE, MemoryError), _folder() as folder:
        data, payload = folder.load(file), None
        with suppress(FileNotFoundError):
            payload = _unpack(data, name, _secret(folder))
        if payload is None:
            folder.remove(file)
        return payload
    return None


def _unpack(data: bytes, name: bytes, secret: bytes) -> bytes | None:
    if not _HEAD.size + _CHECK <= len(data) <= LARGEST:
        return None
    magic, version, echo, length = _HEAD.unpack_from(data)
    if (magic, version, echo) != (MAGIC, VERSION, name) or length != len(data) - _HEAD.size - _CHECK:
        return None
    if _seal(memoryview(data)[:-_CHECK], secret) != data[-_CHECK:]:
        return None
    return data[_HEAD.size : -_CHECK]


_unseen: list[int] = []  # sizes of what this process wrote since it last looked


def write_entry(key: str, payload: bytes) -> bool:
    """Stores a payload; False if the disk would not have it."""
    if len(payload) > LARGEST - 256:
        return False
    name = digest(key)
    body = _HEAD.pack(MAGIC, VERSION, name, len(payload)) + payload
    with suppress(*_NONE), _folder() as folder:  # full, read-only, gone
        folder.store(f"{name.hex()}.bin", body + _seal(body, _secret(folder, make=True)))
        if not _unseen or sum(_unseen) > ROOM // SHARE:  # a look costs a call to the system for every entry
            _unseen.clear()
            with suppress(OSError):
                _evict(folder)
        _unseen.append(len(body))
        return True
    return False


def writable() -> Path | None:
    """The directory of entries if one can be written there now, else None."""
    with suppress(*_NONE), _folder() as folder:
        folder.store("probe", bytes(4096))
        folder.remove("probe")
        return Path(folder.path)
    return None


def _evict(folder: Folder) -> None:
    """Drops orphans of dead writers, and the oldest entries beyond the room."""
    now, kept = time.time(), []
    for item in folder.entries():
        with suppress(OSError):  # another process may have taken it
            seen = item.stat(follow_symlinks=False)
            if item.name.startswith("tmp-") and now - seen.st_mtime > _STALE:
                folder.remove(item.name)
            elif item.name.endswith(".bin"):
                kept.append((seen.st_mtime, seen.st_size, item.name))
    total = sum(size for _, size, _ in kept)
    for _, size, name in sorted(kept):
        if total <= ROOM:
            return
        folder.remove(name)
        total -= size


def clear() -> int:
    """Deletes every entry; gives how many."""
    with suppress(*_NONE), _folder() as folder:
        names = [item.name for item in folder.entries() if item.name.endswith(".bin")]
        for name in names:
            folder.remove(name)
        return len(names)
    return 0
