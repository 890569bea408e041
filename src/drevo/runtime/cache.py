"""The cache of compiled code on disk: it can change only the time, never a result.

Entry: magic, format version, SHA-256 of the key, payload length, payload, SHA-256 of all before. Whatever does
not match is a miss and is deleted. Written to a temporary file, synced, renamed. Used only in a directory that
is private to this user, since what is read here will be executed.
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
VERSION = 1
_HEAD = struct.Struct("<8sI32sQ")
_CHECK = 32
LARGEST = 1 << 30  # bytes of one entry
ROOM = 2 << 30  # bytes of all entries; the oldest go first
_STALE = 3600.0  # seconds after which a temporary file has lost its writer


def base_directory() -> Path:
    """Where caches live on this platform; DREVO_CACHE_DIR overrides."""
    given = os.environ.get("DREVO_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "drevo" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "drevo"
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given and os.path.isabs(given) else Path.home() / ".cache") / "drevo"


def directory() -> Path | None:
    """The private directory of entries, made if need be; None if there cannot be one."""
    try:
        path = base_directory() / f"objects-{VERSION}"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        return path if _private(path) else None
    except (OSError, RuntimeError, ValueError):  # no home, no permission, a file in the way, NUL in the name
        return None


def _private(path: Path) -> bool:
    """A real directory of this user that nobody else can enter."""
    seen = os.lstat(path)
    if not stat.S_ISDIR(seen.st_mode):
        return False
    return sys.platform == "win32" or (seen.st_uid == os.getuid() and not seen.st_mode & 0o077)


def digest(key: str) -> bytes:
    """The name of an entry."""
    return hashlib.sha256(key.encode()).digest()


def read(key: str) -> bytes | None:
    """The payload of a key, or None; a damaged entry is deleted."""
    where = directory()
    if where is None:
        return None
    name = digest(key)
    path = where / f"{name.hex()}.bin"
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, MemoryError):
        return None
    payload = _unpack(data, name)
    if payload is None:
        delete(path)
    return payload


def _unpack(data: bytes, name: bytes) -> bytes | None:
    if not _HEAD.size + _CHECK <= len(data) <= LARGEST:
        return None
    magic, version, echo, length = _HEAD.unpack_from(data)
    if (magic, version, echo) != (MAGIC, VERSION, name) or length != len(data) - _HEAD.size - _CHECK:
        return None
    if hashlib.sha256(memoryview(data)[:-_CHECK]).digest() != data[-_CHECK:]:
        return None
    return data[_HEAD.size : -_CHECK]


def write(key: str, payload: bytes) -> bool:
    """Stores a payload; False if the disk would not have it."""
    where = directory()
    if where is None or len(payload) > LARGEST - 256:
        return False
    name = digest(key)
    body = _HEAD.pack(MAGIC, VERSION, name, len(payload)) + payload
    try:
        _replace(where, where / f"{name.hex()}.bin", body + hashlib.sha256(body).digest())
    except OSError:  # full, read-only, gone
        return False
    with suppress(OSError):
        _evict(where)
    return True


def _replace(where: Path, path: Path, data: bytes) -> None:
    import tempfile  # slow to import, and a warm start never writes

    handle, temporary = tempfile.mkstemp(prefix="tmp-", dir=where)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def writable() -> Path | None:
    """The directory of entries if one can be written there now, else None."""
    import tempfile

    where = directory()
    if where is None:
        return None
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            file.write(bytes(4096))
        return where
    except OSError:
        return None


def delete(path: Path) -> None:
    """Removes a file if it can be removed."""
    with suppress(OSError):
        path.unlink()


def _evict(where: Path) -> None:
    """Drops orphans of dead writers, and the oldest entries beyond the room."""
    now, kept = time.time(), []
    for item in os.scandir(where):
        with suppress(OSError):  # another process may have taken it
            seen = item.stat(follow_symlinks=False)
            if item.name.startswith("tmp-") and now - seen.st_mtime > _STALE:
                os.unlink(item.path)
            elif item.name.endswith(".bin"):
                kept.append((seen.st_mtime, seen.st_size, item.path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if total <= ROOM:
            return
        delete(Path(path))
        total -= size


def clear() -> int:
    """Deletes every entry; gives how many."""
    where = directory()
    paths = list(where.glob("*.bin")) if where else []
    for path in paths:
        delete(path)
    return len(paths)


__all__ = ["base_directory", "clear", "delete", "digest", "directory", "read", "writable", "write"]
