"""A sweep from its plan to its result: which shards are missing, who computes them, how they come together."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, ModelError, one_of, warn_caller
from ..io.files import read_regular_file, write_whole
from ..io.given import flag, whole
from ..io.packages import VERSION, package
from ..io.reprs import brief
from .plan import Array, Plan, read_plan
from .shards import (
    ManifestRow,
    Prepared,
    combine,
    compiled_plan,
    manifest_row,
    packed,
    read_shard,
    run_shard,
    shard_name,
)

POOL_KINDS = ("serial", "joblib", "ray")
SHARDS_AHEAD = 2  # shards under way for each worker: the next begins as one ends
Work = Callable[[int], ManifestRow]
MANIFEST, RESULT = "manifest.jsonl", "result.npz"
MAX_MANIFEST_BYTES = 2**30  # bytes of a manifest


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
    resume: shards that are there and whole are kept; without it a folder that holds a sweep is refused.
    progress: called with the shards done, and all. Results are the same to the bit for any pool and number of
    workers, and after any interruption. Raises InputError, NumericsError, what `compile` raises.
    """
    found = plan if isinstance(plan, Plan) else read_plan(plan)
    workers = whole("sweep: workers", workers, 1, 4096)
    if not isinstance(pool, Executor):
        one_of("sweep: pool", pool, POOL_KINDS, InputError)
    p = compiled_plan(found)
    place = _folder(folder)
    done = _begun(p, place, flag("sweep: resume", resume))
    total = p.plan.shards
    todo = [k for k in range(total) if k not in done]
    for row in rows_of(pool, partial(_shard, found, str(place)), todo, workers):
        done[row["shard"]] = row["sha256"]
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


def _begun(p: Prepared, place: Path, resume: bool) -> dict[int, str]:
    """The shards that are there and whole, by their digests. Where no manifest names the plan one is begun."""
    file = place / MANIFEST
    if not file.exists():
        _write_manifest(p, place, [])
        return {}
    if not resume:
        raise InputError(
            f"sweep: {str(place)!r} holds a sweep; go on with it by resume (--resume), or name another"
        )
    first, *rows = map(_read, _contents(file).split(b"\n"))
    if "plan" not in first:
        raise InputError(
            f"sweep: the manifest {str(file)!r} is damaged: its first line names no plan; name another folder, or "
            "delete this one"
        )
    if first["plan"] != p.digest:
        raise InputError(
            f"sweep: {str(place)!r} holds a sweep of another plan, robot or version of Drevo; name another folder"
        )
    for left in (place / "shards").glob(".*"):  # by workers that were killed while they wrote
        left.unlink(missing_ok=True)
    return _kept(p, place, {row["shard"]: row.get("sha256") for row in rows if "shard" in row})


def _kept(p: Prepared, place: Path, digests: Mapping[int, object]) -> dict[int, str]:
    """The shards that are there and whole; a warning for those that are not, digests: of those in the manifest."""
    done, bad = dict[int, str](), list[str]()
    for k in range(p.plan.shards):
        if k not in digests and not (place / shard_name(k)).exists():
            continue
        try:
            done[k] = read_shard(p, k, place, digests.get(k)).sha256
        except InputError as error:
            bad.append(str(error))
    if bad:
        warn_caller(f"{bad[0]}; it is computed again" + f", with {len(bad) - 1} more" * (len(bad) > 1))
    return done


def _contents(file: Path) -> bytes:
    try:
        return read_regular_file(str(file), MAX_MANIFEST_BYTES)
    except ModelError as error:
        raise InputError(f"sweep: the manifest {str(file)!r}: {error}") from None


def _read(line: bytes) -> ManifestRow:
    """A line of the manifest, {} where it is torn or damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and type(found.get("shard", 0)) is int else {}


def _write_manifest(p: Prepared, place: Path, rows: Sequence[ManifestRow]) -> None:
    """Writes the list of the shards that are done."""
    head = {"drevo": VERSION, "plan": p.digest, "samples": p.plan.samples, "shards": p.plan.shards}
    write_whole("sweep", place / MANIFEST, "".join(json.dumps(x) + "\n" for x in (head, *rows)))


def _joined(p: Prepared, place: Path, digests: Sequence[str]) -> Swept:
    """All shards in their order, into the result."""
    total: dict[str, Array] = {}
    for k, digest in enumerate(digests):
        try:
            total = combine(total, read_shard(p, k, place, digest).arrays)
        except InputError as error:
            raise InputError(f"{error}; go on by resume (--resume), which computes it again") from None
    _write_manifest(p, place, [manifest_row(p, k, digest) for k, digest in enumerate(digests)])
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


# -- who computes the shards ---------------------------------------------------------------------------------


def rows_of(pool: str | Executor, work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    """The rows of the manifest, as they are done."""
    if isinstance(pool, Executor):
        return _by_executor(pool, work, todo, workers)
    return {"serial": _serial, "joblib": _by_joblib, "ray": _by_ray}[pool](work, todo, workers)


def _serial(work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    return map(work, todo)


def _by_joblib(work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    joblib = package("joblib", "the pool 'joblib'")
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    rows: Iterator[ManifestRow] = parallel(joblib.delayed(work)(k) for k in todo)
    return rows


def _by_ray(work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    ray = package("ray", "the pool 'ray'", "drevo[cluster]")
    own = not ray.is_initialized()
    if own:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        remote, shared = ray.remote(_called), ray.put(work)
        waiting, left = list[Any](), deque(todo)
        while left or waiting:
            while left and len(waiting) < SHARDS_AHEAD * workers:
                waiting.append(remote.remote(shared, left.popleft()))
            done, waiting = ray.wait(waiting)
            yield from map(ray.get, done)
    finally:
        if own:
            ray.shutdown()


def _called(work: Work, k: int) -> ManifestRow:
    return work(k)


def _by_executor(pool: Executor, work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    waiting, left = set[Any](), deque(todo)
    while left or waiting:
        while left and len(waiting) < SHARDS_AHEAD * workers:
            waiting.add(pool.submit(work, left.popleft()))
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (job.result() for job in done)
