"""A sweep from its plan to its result: which shards are missing, who computes them, how they come together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelError, one_of, warn_caller
from ..io.files import read_regular_file
from ..io.given import flag, whole
from ..io.reprs import brief
from ..io.saving import write_whole
from ..io.version import VERSION
from .plan import Plan, read_plan
from .pools import POOLS, ManifestRow, rows_of
from .sampling import Array
from .shards import Prepared, combine, compiled_plan, packed, read_shard, run_shard

MANIFEST, RESULT = "manifest.jsonl", "result.npz"
LONGEST = 2**30  # bytes of a manifest


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """Over all samples; arrays have the shapes of the results, by their names.

    at_min, at_max: the samples of the least and greatest values, where the plan locates them.
    """

    samples: int
    mean: dict[str, Array]
    std: dict[str, Array]
    min: dict[str, Array]
    max: dict[str, Array]
    at_min: dict[str, Array]
    at_max: dict[str, Array]
    histogram: Array | None
    files: tuple[Path, ...]


def run(
    plan: Plan | str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    pool: str | Executor = "serial",
    workers: int = 1,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Swept:
    """Runs a sweep into a folder: manifest.jsonl, shards/, and at the end result.npz.

    plan: a Plan, a file or a dictionary (`drevo sweep --example` prints one). pool: "serial", "joblib", "ray" (a
    cluster that is running, else one on this machine), or an Executor, such as Dask's. workers: how many compute.
    resume: shards that are there, by their digests, are kept; without it a folder that holds a sweep is refused.
    progress: called with the shards done, and all. Results are the same to the bit for any pool and number of
    workers, and after any interruption. Raises InputError, NumericsError, what `compile` raises.
    """
    found = plan if isinstance(plan, Plan) else read_plan(plan)
    workers = whole("sweep: workers", workers, 1, 4096)
    if not isinstance(pool, Executor):
        one_of("sweep: pool", pool, POOLS, InputError)
    p = compiled_plan(found)
    place = _folder(folder)
    done = _begun(p, place, flag("sweep: resume", resume))
    total = p.plan.shards
    todo = [k for k in range(total) if k not in done]
    with open(place / MANIFEST, "a", encoding="utf-8") as manifest:
        for row in rows_of(pool, partial(_shard, found, str(place)), todo, workers):
            _append(manifest, row)
            done[row["shard"]] = row
            if progress:
                progress(len(done), total)
    return _joined(p, place, [done[k] for k in range(total)])


def _shard(plan: Plan, folder: str, number: int) -> ManifestRow:
    return run_shard(plan, number, folder)


def _folder(given: str | Path) -> Path:
    try:
        place = Path(given)
        (place / "shards").mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"sweep: {str(given)!r} is no folder to write to: {error}") from None
    return place


def _begun(p: Prepared, place: Path, resume: bool) -> dict[int, ManifestRow]:
    """The rows of the shards that are there and whole; a new manifest where there is none."""
    head = {"drevo": VERSION, "plan": p.digest, "samples": p.plan.samples, "shards": p.plan.shards}
    file = place / MANIFEST
    if not file.exists():
        write_whole("sweep", file, (json.dumps(head) + "\n").encode())
        return {}
    if not resume:
        raise InputError(
            f"sweep: {str(place)!r} holds a sweep; go on with it by resume (--resume), or name another"
        )
    first, *lines = _contents(file).split(b"\n")
    if "plan" not in (told := _read(first)):
        raise InputError(
            f"sweep: the manifest {str(file)!r} is damaged: its first line names no plan; name another folder, or "
            "delete this one"
        )
    if told["plan"] != p.digest:
        raise InputError(
            f"sweep: {str(place)!r} holds a sweep of another plan, robot or version of Drevo; name another folder"
        )
    for left in (place / "shards").glob(".*"):  # by workers that were killed while they wrote
        left.unlink(missing_ok=True)
    if not lines or lines[-1]:  # an interrupted line: the next begins on its own
        with open(file, "ab") as out:
            out.write(b"\n")
    return _kept(p, place, map(_read, lines))


def _kept(p: Prepared, place: Path, rows: Iterable[ManifestRow]) -> dict[int, ManifestRow]:
    """The rows whose shards are there and whole; a warning for those that are not."""
    done, bad = dict[int, ManifestRow](), list[str]()
    for k, row in {row["shard"]: row for row in rows if row.get("shard") in range(p.plan.shards)}.items():
        try:
            read_shard(p, k, place, row.get("sha256", ""))
            done[k] = row
        except InputError as error:
            bad.append(str(error))
    if bad:
        warn_caller(f"{bad[0]}; it is computed again" + f", with {len(bad) - 1} more" * (len(bad) > 1))
    return done


def _contents(file: Path) -> bytes:
    try:
        return read_regular_file(str(file), LONGEST)
    except ModelError as error:
        raise InputError(f"sweep: the manifest {str(file)!r}: {error}") from None


def _read(line: bytes) -> ManifestRow:
    """A line of the manifest, {} where it is torn or damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and type(found.get("shard", 0)) is int else {}


def _append(manifest: Any, row: ManifestRow) -> None:
    try:
        manifest.write(json.dumps(row) + "\n")
        manifest.flush()
        os.fsync(manifest.fileno())
    except OSError as error:
        raise InputError(f"sweep: the manifest cannot be written: {error.strerror or error}") from None


def _joined(p: Prepared, place: Path, rows: list[ManifestRow]) -> Swept:
    """All shards in their order, into the result."""
    total: dict[str, Array] = {}
    for k, row in enumerate(rows):
        try:
            total = combine(total, read_shard(p, k, place, row["sha256"]))
        except InputError as error:
            raise InputError(f"{error}; go on by resume (--resume), which computes it again") from None
    n = p.plan.samples
    mean = total["sum"] / n
    spread = np.sqrt(np.maximum(0.0, total["sum_of_squares"] / n - mean**2))
    content = {"samples": np.array(n), **total, "mean": mean, "std": spread}
    write_whole("sweep", place / RESULT, packed(content))
    parts = {
        k: _named(p, content[k]) if k in content else {} for k in ("mean", "std", "min", "max", "at_min", "at_max")
    }
    files = (place / RESULT, place / MANIFEST)
    return Swept(n, **parts, histogram=total.get("histogram"), files=files)


def _named(p: Prepared, flat: Array) -> dict[str, Array]:
    found, at = {}, 0
    for name, shape in p.outputs:
        size = int(np.prod(shape, dtype=int))
        found[name] = flat[at : at + size].reshape(shape)
        at += size
    return found
