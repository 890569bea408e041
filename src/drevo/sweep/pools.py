"""Pools that compute shards: in this process, in processes of joblib, on a cluster of Ray, or by any executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from typing import Any

from ..io.packages import package

ManifestRow = dict[str, Any]
Work = Callable[[int], ManifestRow]
POOLS = ("serial", "joblib", "ray")
AHEAD = 2  # shards under way for each worker: the next begins as one ends


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
    found: Iterator[ManifestRow] = parallel(joblib.delayed(work)(k) for k in todo)
    return found


def _by_ray(work: Work, todo: Sequence[int], workers: int) -> Iterator[ManifestRow]:
    ray = package("ray", "the pool 'ray'", "drevo[cluster]")
    own = not ray.is_initialized()
    if own:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        remote, shared = ray.remote(_called), ray.put(work)
        waiting, left = list[Any](), deque(todo)
        while left or waiting:
            while left and len(waiting) < AHEAD * workers:
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
        while left and len(waiting) < AHEAD * workers:
            waiting.add(pool.submit(work, left.popleft()))
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (job.result() for job in done)
