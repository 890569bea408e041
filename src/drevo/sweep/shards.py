"""One shard: made from its number, reduced, and written in one step, so that it is there whole or not at all."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..codegen.call.function import Function
from ..codegen.call.stream import Worker
from ..errors import InputError, ModelError, NumericsError
from ..io.files import read_regular_file, write_whole
from ..streaming import prepared
from .plan import Array, Histogram, Plan, Sampler, sampler_of

ManifestRow = dict[str, Any]
REDUCED_SAMPLES = 2**14  # samples computed and reduced at a time
MAX_SHARD_BYTES = 2**32  # bytes of a shard's file
SUM_COLUMNS = ("sum", "sum_of_squares", "min", "max")


class Prepared(NamedTuple):
    """A plan with its function, and how many samples it has. worker: where all is one compiled loop."""

    plan: Plan
    digest: str
    function: Function
    sampler: Sampler
    worker: Worker | None
    outputs: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def entries(self) -> int:
        return sum(prod(shape) for _, shape in self.outputs)


_PREPARED: dict[str, Prepared] = {}  # the last plan, by its digest


def compiled_plan(plan: Plan) -> Prepared:
    """Compiled, or found in the cache; once in a process."""
    digest = plan.digest
    if (p := _PREPARED.get(digest)) is None:
        p = _prepared(plan, digest)
        _PREPARED.clear()
        _PREPARED[digest] = p
    return p


def _prepared(plan: Plan, digest: str) -> Prepared:
    function, source = prepared(plan.robot, plan.quantity, plan.seed, plan.ranges, plan.options)
    samples, sampler = sampler_of(plan, function, source)
    if samples < 1:
        raise InputError("sweep: the plan has no samples")
    outputs = function.outputs
    if plan.measure == "manipulability":
        if plan.quantity != "jacobian":
            raise InputError(f"sweep: manipulability is a measure of a jacobian, not of {plan.quantity}")
        outputs = (("manipulability", ()),)
    plain = plan.method == "random" and plan.measure == "none" and not plan.locate and plan.histogram is None
    worker = Worker(function, source) if plain else None
    made = Prepared(replace(plan, samples=samples), digest, function, sampler, worker, outputs)
    if plan.histogram and max(plan.histogram.entries) >= made.entries:
        raise InputError(f"sweep: histogram names entry {max(plan.histogram.entries)} of {made.entries} results")
    return made


def run_shard(plan: Plan, number: int, folder: str | Path) -> ManifestRow:
    """Computes one shard into FOLDER/shards and gives its row of the manifest; any number of times, alike.

    Raises NumericsError with the sample that has no finite result, InputError where the file cannot be written.
    """
    p = compiled_plan(plan)
    first = number * plan.shard
    count = min(plan.shard, p.plan.samples - first)
    mark = {"plan": np.array(p.digest), "shard": np.array(number)}
    content = packed(mark | _reduced(p, first, count))
    write_whole("sweep", Path(folder) / shard_name(number), content)
    return manifest_row(p, number, hashlib.sha256(content).hexdigest())


def manifest_row(p: Prepared, number: int, digest: str) -> ManifestRow:
    """The row of a shard in the manifest."""
    first = number * p.plan.shard
    count = min(p.plan.shard, p.plan.samples - first)
    return {"shard": number, "first": first, "samples": count, "file": shard_name(number), "sha256": digest}


def shard_name(number: int) -> str:
    """The file of a shard within the folder of its sweep."""
    return f"shards/{number:08d}.npz"


class Shard(NamedTuple):
    """The arrays of a shard's file, and the digest of the file."""

    arrays: dict[str, Array]
    sha256: str


def read_shard(p: Prepared, number: int, folder: str | Path, digest: object = None) -> Shard:
    """A shard from its file; InputError unless it is whole, says inside that it is this shard, and has the digest
    that is known of it, if any."""
    file = str(Path(folder) / shard_name(number))
    try:
        data = read_regular_file(file, MAX_SHARD_BYTES)
    except ModelError as error:
        raise InputError(f"sweep: the shard {file!r}: {str(error).partition(';')[0]}") from None
    sha256 = hashlib.sha256(data).hexdigest()
    if digest is not None and digest != sha256:
        raise InputError(f"sweep: the shard {file!r} is not the one that was computed")
    try:
        with np.load(io.BytesIO(data)) as archive:
            parts = {name: archive[name] for name in archive.files}
    except Exception as error:  # an archive that this package has not written fails in many ways
        raise InputError(f"sweep: the shard {file!r} is no readable .npz: {error}") from None
    if (str(parts.pop("plan", "")), str(parts.pop("shard", ""))) != (p.digest, str(number)):
        raise InputError(f"sweep: {file!r} is not shard {number} of this plan")
    return Shard(parts, sha256)


def packed(arrays: dict[str, Array]) -> bytes:
    """As .npz; the same arrays give the same bytes."""
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _reduced(p: Prepared, first: int, count: int) -> dict[str, Array]:
    """The sums, squares, least and greatest values of every result over a shard, and what else the plan wants."""
    total: dict[str, Array] = {}
    for at, size in _pieces(first, count, p):
        part = _of_worker(p, at, size) if p.worker else _of_arrays(p, at, size)
        total = combine(total, part)
    return total


def _pieces(first: int, count: int, p: Prepared) -> Iterator[tuple[int, int]]:
    size = 2**18 if p.worker else REDUCED_SAMPLES
    return ((k, min(size, first + count - k)) for k in range(first, first + count, size))


def _of_worker(p: Prepared, first: int, count: int) -> dict[str, Array]:
    assert p.worker is not None
    sums, bad = p.worker.block(first, count)
    if bad:
        _of_arrays(p, first, count)  # which says where
        raise NumericsError(f"{p.function.name}: a result of samples {first} to {first + count} is not finite")
    return dict(zip(SUM_COLUMNS, np.ascontiguousarray(sums.T)))


def _of_arrays(p: Prepared, first: int, count: int) -> dict[str, Array]:
    inputs = p.sampler(first, count)
    sizes = np.cumsum([prod(shape) for _, shape in p.function.inputs])[:-1]
    try:
        found = p.function(*np.split(inputs, sizes))
    except NumericsError as error:
        raise NumericsError(f"{error}; row 0 is sample {first} of the sweep") from None
    y = np.concatenate(found if isinstance(found, tuple) else (found,))
    y = _measured(p, y)
    out = {"sum": y.sum(1), "sum_of_squares": (y * y).sum(1), "min": y.min(1), "max": y.max(1)}
    if p.plan.locate:
        out |= {"at_min": first + y.argmin(1), "at_max": first + y.argmax(1)}
    if p.plan.histogram:
        out["histogram"] = _counted(p.plan.histogram, y)
    return out


def _measured(p: Prepared, y: Array) -> Array:
    """(results, samples) as the plan measures them."""
    if p.plan.measure == "absolute":
        return np.asarray(np.abs(y))
    if p.plan.measure == "manipulability":  # Yoshikawa 1985
        J = y.reshape(6, -1, y.shape[1]).transpose(2, 0, 1)
        return np.asarray(np.sqrt(np.maximum(np.linalg.det(J @ J.transpose(0, 2, 1)), 0.0))[None])
    return y


def _counted(h: Histogram, y: Array) -> Array:
    edges = [np.linspace(low, up, n + 1) for low, up, n in zip(h.lower, h.upper, h.bins)]
    found: Array = np.histogramdd(y[list(h.entries)].T, edges)[0]
    return found.astype(np.int64)


def combine(a: dict[str, Array], b: dict[str, Array]) -> dict[str, Array]:
    """Two parts that follow one another."""
    if not a:
        return b
    out: dict[str, Array] = {k: a[k] + b[k] for k in ("sum", "sum_of_squares", "histogram") if k in a}
    for k, less in (("min", np.less), ("max", np.greater)):
        taken = less(b[k], a[k])
        out[k] = np.where(taken, b[k], a[k])
        if f"at_{k}" in a:
            out[f"at_{k}"] = np.where(taken, b[f"at_{k}"], a[f"at_{k}"])
    return out
