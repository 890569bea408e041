"""stream: a quantity over as many random states as you like, in memory that does not grow.

States come from a counter-based generator inside the compiled loop, results are summed where they are made: only
their sums, squares and extremes come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .codegen.call.arguments import in_memory
from .codegen.call.function import Function
from .codegen.call.stream import RandomSource, Worker, combined, reduced
from .errors import InputError, NumericsError, shown
from .io.given import Array, asked_all, spelled_out, whole
from .io.reprs import brief
from .mechanics import configuration
from .model.description import Model
from .model.draft import model_of
from .model.quantities import StreamOptions
from .robot.compiling import compile
from .robot.face import Robot

if TYPE_CHECKING:
    from typing_extensions import Unpack

Ranges = Mapping[str, Any]
MAX_STREAM_SAMPLES = 2**62  # samples: their numbers fit in 64 bits with a sign
SEARCHED_SAMPLES = 4096  # samples evaluated at a time when one that failed is sought
_FIXED_OPTIONS = ("dtype", "layout", "packed", "target")


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Sums, least and largest values of one result over all samples; arrays have the shape of the result."""

    samples: int
    sum: Array
    sum_of_squares: Array
    min: Array
    max: Array

    @property
    def mean(self) -> Array:
        """The mean of every number of the result, in its shape."""
        return np.asarray(self.sum / self.samples)

    @property
    def std(self) -> Array:
        """Standard deviation over the samples, from the two sums."""
        return np.asarray(np.sqrt(np.maximum(0.0, self.sum_of_squares / self.samples - self.mean**2)))


@spelled_out(StreamOptions)
def stream(
    robot: Robot | Model,
    quantity: str | Sequence[str],
    samples: int,
    *,
    seed: int = 0,
    first: int = 0,
    ranges: Ranges | None = None,
    threads: int = 1,
    **options: Unpack[StreamOptions],
) -> Statistics | dict[str, Statistics]:
    """Statistics of a quantity over random states; of several results (a list of quantities): one for each name.

    Sample k takes the numbers k n, .., k n + n - 1 of SplitMix64 (Steele, Lea, Flood 2014) with the seed, n being
    the scalars of all arguments: the upper 52 bits as a fraction of [0, 1), then least value + fraction * width.
    So samples first, .., first + samples - 1 of a seed are always the same, and a stream may be cut into parts.
    Quaternions are uniform on the rotations (Shoemake 1992). `inputs` gives the same samples as arrays.
    ranges: argument -> half-width, or (least, greatest), each a number or one per scalar. By default q is inside
    its limits where they are finite, else +-pi or +-1 m; all else +-1.
    threads: results do not depend on them, bit for bit. options: as of `compile`. float64.
    Raises InputError, NumericsError (a result that is not finite, by its sample), EmitError.
    """
    samples = whole("stream: samples", samples, 1, MAX_STREAM_SAMPLES)
    first = whole("stream: first", first, 0, MAX_STREAM_SAMPLES - samples)
    threads = whole("stream: threads", threads, 1, 1024)
    function, source = prepared(robot, quantity, seed, ranges, options)
    total = None
    for sums, bad, start, count in reduced(Worker(function, source), first, samples, threads):
        if bad:
            _tell(function, source, start, count)
        total = combined(total, sums)
    assert total is not None
    found = dict(_split(function, samples, total))
    return found if len(found) > 1 else next(iter(found.values()))


@spelled_out(StreamOptions)
def inputs(
    robot: Robot | Model,
    quantity: str | Sequence[str],
    samples: int,
    *,
    seed: int = 0,
    first: int = 0,
    ranges: Ranges | None = None,
    **options: Unpack[StreamOptions],
) -> dict[str, Array]:
    """The arguments of samples of `stream`, (samples, *shape) each; to the bit, quaternions to 1e-15."""
    samples = whole("stream: samples", samples, 1, MAX_STREAM_SAMPLES)
    first = whole("stream: first", first, 0, MAX_STREAM_SAMPLES - samples)
    function, source = prepared(robot, quantity, seed, ranges, options)
    with in_memory("inputs"):
        parts = _ports(function, source.inputs(first, samples))
        return {n: x.T.reshape(samples, *shape) for (n, shape), x in zip(function.inputs, parts)}


def prepared(
    robot: Robot | Model, quantity: Any, seed: Any, ranges: Ranges | None, options: Mapping[str, Any]
) -> tuple[Function, RandomSource]:
    """The function, batch-last, and where its inputs come from."""
    whole("stream: seed", seed, -(2**63), 2**64 - 1)
    for o in _FIXED_OPTIONS:
        if o in options:
            raise InputError(f"stream takes no {o!r}: it computes in float64 and hands back no array of samples")
    model = model_of(robot, "stream")
    function = compile(robot, quantity, layout="batch_last", **options)
    if ranges is not None and not isinstance(ranges, Mapping):
        raise InputError(f"stream: ranges is {shown(ranges)}; give {{argument: range}}")
    given = dict(ranges or {})
    rows = [_range(function, model, n, prod(shape), given.pop(n, None)) for n, shape in function.inputs]
    if given:
        names = ", ".join(n for n, _ in function.inputs)
        raise InputError(f"{function.name} takes no {next(iter(given))!r}, which ranges name; it takes {names}")
    starts = np.cumsum([0, *(len(r) for r in rows)])
    columns = tuple(int(starts[i]) + where[0] for i, where in function.manifest.units)
    table = np.concatenate(rows) if rows else np.zeros((0, 2))
    for c in columns:
        table[c : c + 4] = (0.0, 1.0)
    return function, RandomSource(int(seed), table, columns)


def _range(function: Function, model: Model, name: str, size: int, given: Any) -> Array:
    """Least value and width of every scalar of an argument, (size, 2)."""
    if given is None and name == "parameters":
        return np.array([(value, 0.0) for _, value in function.parameters])
    if given is None:
        low, high = configuration.bounds(model) if name == "q" else (-np.ones(size), np.ones(size))
        return np.stack([low, high - low], axis=1)
    try:
        pair = given if isinstance(given, (tuple, list, np.ndarray)) else (-float(given), given)
        low, high = (np.broadcast_to(np.asarray(x, float), (size,)) for x in pair)
    except (TypeError, ValueError):
        raise InputError(
            f"stream: the range of {name} must be a number or (least, greatest), each a number or {size} of them"
        ) from None
    width = high - low
    if not (np.isfinite(low) & np.isfinite(width) & (width >= 0.0)).all():
        raise InputError(f"stream: the range of {name} must be finite, from the least value to the greatest")
    return np.stack([low, width], axis=1)


def _ports(function: Function, x: Array) -> list[Array]:
    sizes = [prod(shape) for _, shape in function.inputs]
    return np.split(x, np.cumsum(sizes)[:-1]) if sizes else []


def _split(function: Function, samples: int, total: Array) -> Iterator[tuple[str, Statistics]]:
    at = 0
    for name, shape in function.outputs:
        n = prod(shape)
        yield name, Statistics(samples, *(column.reshape(shape) for column in total[at : at + n].T))
        at += n


def _tell(function: Function, source: RandomSource, start: int, count: int) -> None:
    """Raises NumericsError for a sample of a block in which a check failed."""
    for k in range(start, start + count, SEARCHED_SAMPLES):
        size = min(SEARCHED_SAMPLES, start + count - k)
        try:
            function(*_ports(function, source.inputs(k, size)))
        except NumericsError as error:
            raise NumericsError(f"{error}; row 0 is sample {k} of the stream with seed {source.seed}") from None
    raise NumericsError(f"{function.name}: a result among the samples {start} to {start + count} is not finite")


__all__ = ["Statistics", "inputs", "stream"]

asked_all(__name__)
