"""The cache of compiled code on disk: it can change only the time, never a result.

Entry: magic, format version, SHA-256 of the key, payload length, payload, a digest of all before. Whatever does
not match is a miss and is deleted. Written to a temporary file, synced, renamed.

What is read here will be executed, so nobody else may have written it: files and their directory belong to this
user alone, and nobody but root and this user can replace a directory above it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

MAGIC = b"DREVOKC\n"
CACHE_FORMAT = 3
_ENTRY_HEAD = struct.Struct("<8sI32sQ")
_CHECK = 32  # bytes of the digest
LARGEST = 1 << 30  # bytes of one entry
MAX_CACHE_BYTES = 2 << 30  # bytes of all entries; the oldest go first
ROOM_CHECKS = 64  # of the room: what a process writes before it looks again whether there is room
_STALE = 3600.0  # seconds after which a temporary file has lost its writer
_ON_WINDOWS = sys.platform == "win32"  # its profile directories are private
_OPEN_FLAGS: int = sum(getattr(os, x, 0) for x in ("O_BINARY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"))
_NO_FOLDER_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
)  # no home, no permission, a file in the way, NUL in the name


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


def _folder() -> Path:
    """The directory of entries, made if need be; OSError, RuntimeError, ValueError if there cannot be one."""
    path = Path(os.path.realpath(base_directory()), f"objects-{CACHE_FORMAT}")
    if _ON_WINDOWS:
        path.mkdir(parents=True, exist_ok=True)
        return path
    for place in (*reversed(path.parents), path):
        try:
            seen = place.lstat()
        except FileNotFoundError:
            with suppress(FileExistsError):
                place.mkdir(0o700)
            seen = place.lstat()
        if not stat.S_ISDIR(seen.st_mode) or not (_mine(seen, 0o077) if place == path else _passable(seen)):
            raise PermissionError(f"{place} is not private, or others can replace what is in it")
    return path


def _mine(seen: os.stat_result, others: int) -> bool:
    """Owned by this user, and of what others may do nothing in `others`."""
    return seen.st_uid == os.getuid() and not seen.st_mode & others


def _passable(seen: os.stat_result) -> bool:
    """A directory on the way: nobody but root and this user can replace what is in it."""
    if seen.st_uid not in (0, os.getuid()):
        return False
    own_group = seen.st_gid == os.getgid() == os.getuid()  # of this user alone, by convention
    return not seen.st_mode & (0o002 if own_group else 0o022) or bool(seen.st_mode & stat.S_ISVTX)


def _load(file: Path) -> bytes:
    """A file of this user that nobody else can write."""
    with os.fdopen(os.open(file, os.O_RDONLY | _OPEN_FLAGS), "rb") as opened:
        seen = os.fstat(opened.fileno())
        if not stat.S_ISREG(seen.st_mode) or not (_ON_WINDOWS or _mine(seen, 0o022)):
            raise PermissionError(f"{file} is not this user's own")
        return opened.read(min(seen.st_size, LARGEST) + 1)  # room for what there is


def _store(file: Path, data: bytes) -> None:
    """Whole or not at all."""
    temporary = file.with_name(f"tmp-{os.urandom(8).hex()}")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600), "wb"
        ) as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, file)
    finally:
        _remove(temporary)


def _remove(file: Path) -> None:
    with suppress(OSError):  # another process may have taken it
        file.unlink()


def directory() -> Path | None:
    """The private directory of entries, made if need be; None if there cannot be one."""
    with suppress(*_NO_FOLDER_ERRORS):
        return _folder()
    return None


def digest(key: str) -> bytes:
    """The name of an entry."""
    return hashlib.sha256(key.encode()).digest()


def read_entry(key: str) -> bytes | None:
    """The payload of a key, or None; a damaged entry is deleted."""
    name = digest(key)
    with suppress(*_NO_FOLDER_ERRORS, MemoryError):
        file = _folder() / f"{name.hex()}.bin"
        payload = _unpack(_load(file), name)
        if payload is None:
            _remove(file)
        return payload
    return None


def _unpack(data: bytes, name: bytes) -> bytes | None:
    if not _ENTRY_HEAD.size + _CHECK <= len(data) <= LARGEST:
        return None
    magic, version, echo, length = _ENTRY_HEAD.unpack_from(data)
    if (magic, version, echo) != (MAGIC, CACHE_FORMAT, name) or length != len(data) - _ENTRY_HEAD.size - _CHECK:
        return None
    if hashlib.blake2b(memoryview(data)[:-_CHECK], digest_size=_CHECK).digest() != data[-_CHECK:]:
        return None
    return data[_ENTRY_HEAD.size : -_CHECK]


_unseen: list[int] = []  # sizes of what this process wrote since it last looked


def write_entry(key: str, payload: bytes) -> bool:
    """Stores a payload; False if the disk would not have it."""
    if len(payload) > LARGEST - 256:
        return False
    name = digest(key)
    body = _ENTRY_HEAD.pack(MAGIC, CACHE_FORMAT, name, len(payload)) + payload
    with suppress(*_NO_FOLDER_ERRORS):  # full, read-only, gone
        folder = _folder()
        _store(folder / f"{name.hex()}.bin", body + hashlib.blake2b(body, digest_size=_CHECK).digest())
        if (
            not _unseen or sum(_unseen) > MAX_CACHE_BYTES // ROOM_CHECKS
        ):  # a look costs a call to the system for every entry
            _unseen.clear()
            with suppress(OSError):
                _evict(folder)
        _unseen.append(len(body))
        return True
    return False


def writable() -> Path | None:
    """The directory of entries if one can be written there now, else None."""
    with suppress(*_NO_FOLDER_ERRORS):
        folder = _folder()
        _store(folder / "probe", bytes(4096))
        _remove(folder / "probe")
        return folder
    return None


def _evict(folder: Path) -> None:
    """Drops orphans of dead writers, and the oldest entries beyond the room."""
    now, kept = time.time(), []
    for item in os.scandir(folder):
        with suppress(OSError):  # another process may have taken it
            seen = item.stat(follow_symlinks=False)
            if item.name.startswith("tmp-") and now - seen.st_mtime > _STALE:
                _remove(Path(item))
            elif item.name.endswith(".bin"):
                kept.append((seen.st_mtime, seen.st_size, item.path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if total <= MAX_CACHE_BYTES:
            return
        _remove(Path(path))
        total -= size


def clear() -> int:
    """Deletes every entry; gives how many."""
    with suppress(*_NO_FOLDER_ERRORS):
        files = list(_folder().glob("*.bin"))
        for file in files:
            _remove(file)
        return len(files)
    return 0
