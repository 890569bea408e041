"""The plan of a sweep: read from a file or a dictionary, every value checked.

The samples of a sweep: each is a function of its number alone, so that any worker makes the same.

Arguments lie side by side, scalars by samples. Random numbers are those of `drevo.stream`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.call.function import Function
from ..codegen.call.stream import RandomSource
from ..codegen.store.key import request
from ..errors import DrevoError, InputError, ModelError, one_of, shown
from ..io.files import read_regular_file
from ..io.given import finite, flag, number, whole
from ..io.packages import VERSION
from ..model.quantities import quantity
from ..robot.face import Robot
from ..robots.loading import load

SAMPLINGS = ("random", "grid", "table")
MEASURES = ("none", "absolute", "manipulability")
MAX_SWEEP_SAMPLES = 2**53  # samples: a double holds their numbers
MAX_PLAN_BYTES = 2**20  # bytes of a plan
LARGEST_TABLE = 2**34  # bytes
EXAMPLE = """\
# drevo sweep plan.toml -o out
robot = "puma560"              # a name, or a file beside this one
quantity = "inverse_dynamics"
samples = 1_000_000
seed = 1
shard = 262_144                # samples that are computed, and kept, together
method = "random"              # or "grid" (counts below), "table" (rows of a .npy or .csv file)
measure = "absolute"           # of every result: "none", "absolute"; of a jacobian "manipulability"
locate = true                  # also which samples had the least and the greatest values

[ranges]                       # least and greatest value, one for all or one per joint; q: its limits
v = [-2.0, 2.0]
a = [-5.0, 5.0]

# [grid]                       # how many values of each
# q = [9, 9, 9, 1, 1, 1]
# [options]                    # of the quantity
# link = "link6"
# [histogram]                  # how often the results came into boxes: of a pose the places that are reached
# entries = [3, 7, 11]
# lower = [-1.0, -1.0, -1.0]
# upper = [1.0, 1.0, 1.0]
# bins = [50, 50, 50]
"""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Boxes between lower and upper, `bins` of each of the entries of the results."""

    entries: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep. robot: a Robot; grid: argument -> counts; table: a file of rows, all arguments side by side."""

    robot: Robot
    quantity: str
    samples: int = 0
    seed: int = 0
    shard: int = 2**18
    method: str = "random"
    measure: str = "none"
    locate: bool = False
    ranges: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    table: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    histogram: Histogram | None = None

    @property
    def shards(self) -> int:
        """The number of shards: parts that the samples are computed in."""
        return -(-self.samples // self.shard)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that the results depend on, to the last bit of every number."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("robot", "table")}
        text = canonical_text(told | {"histogram": self.histogram and asdict(self.histogram), "drevo": VERSION})
        found = hashlib.sha256(request(self.robot.model, text).encode())
        if self.table:
            found.update(hashlib.sha256(table_bytes(self.table)).digest())
        return found.hexdigest()


def canonical_text(value: Any) -> str:
    """A text that two values share only where they have the same kind and shape, and are equal to the bit."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{canonical_text(k)}: {canonical_text(x)}' for k, x in value.items()))}}}"
    if isinstance(value, (list, tuple, range)):
        return f"[{', '.join(map(canonical_text, value))}]"
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return f"{value.dtype.str}{value.shape}{value.tobytes().hex()}"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise InputError(f"sweep: the plan holds {shown(value)}; it takes numbers, text, lists, tables and arrays")


def table_bytes(path: str) -> bytes:
    """A table's file, which is a plain one."""
    try:
        return read_regular_file(path, LARGEST_TABLE)
    except ModelError as error:
        raise InputError(f"sweep: table {path!r}: {error}") from None


def read_plan(source: str | Path | Mapping[str, Any]) -> Plan:
    """A plan from a TOML file or a dictionary; InputError with the key that is wrong."""
    if isinstance(source, Mapping):
        return _plan(dict(source), Path())
    if not isinstance(source, (str, Path)):
        raise InputError(f"a sweep is planned by a file or a dictionary, not by {shown(source)}")
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = read_regular_file(str(source), MAX_PLAN_BYTES).decode()
        return _plan(toml.loads(text), Path(source).parent)
    except ModelError as error:
        raise InputError(f"sweep: the plan {str(source)!r}: {error}") from None
    except DrevoError:
        raise
    except ValueError as error:  # no text, or no TOML
        raise InputError(f"sweep: the plan {str(source)!r} is no TOML: {error}") from None


def _plan(given: dict[str, Any], beside: Path) -> Plan:
    known = [f.name for f in fields(Plan)]
    for key in given:
        one_of("sweep: the plan's key", key, known, InputError)
    for key in ("robot", "quantity"):
        if key not in given:
            raise InputError(f"sweep: the plan lacks {key!r}; `drevo sweep --example` prints a plan")
    robot = given["robot"]
    if isinstance(robot, str):
        robot = load(beside / robot if (beside / robot).is_file() else robot)
    method = one_of("sweep: method", given.get("method", "random"), SAMPLINGS, InputError)
    grid = {k: _counts(f"sweep: grid of {k}", x) for k, x in _mapping("grid", given).items()}
    table = str(beside / given["table"]) if "table" in given else ""
    _require_means(method, given, grid, table)
    return Plan(
        robot=robot,
        quantity=quantity(given["quantity"]).name,
        samples=whole("sweep: samples", given["samples"], 1, MAX_SWEEP_SAMPLES) if "samples" in given else 0,
        seed=whole("sweep: seed", given.get("seed", 0), 0, 2**64 - 1),
        shard=whole("sweep: shard", given.get("shard", 2**18), 1, 2**32),
        method=method,
        measure=one_of("sweep: measure", given.get("measure", "none"), MEASURES, InputError),
        locate=flag("sweep: locate", given.get("locate", False)),
        ranges=_mapping("ranges", given),
        grid=grid,
        table=table,
        options=_mapping("options", given),
        histogram=_histogram(_mapping("histogram", given)) if "histogram" in given else None,
    )


def _require_means(method: str, given: Mapping[str, Any], grid: Mapping[str, Any], table: str) -> None:
    wants = {"random": "samples", "grid": "grid", "table": "table"}[method]
    if not {"samples": "samples" in given, "grid": grid, "table": table}[wants]:
        raise InputError(f"sweep: method {method!r} needs {wants!r} in the plan")
    for key in {"samples", "grid", "table"} - {wants}:
        if key in given:
            raise InputError(
                f"sweep: method {method!r} takes no {key!r}: {wants!r} says how many samples there are"
            )


def _mapping(key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    found = given.get(key, {})
    if not isinstance(found, Mapping):
        raise InputError(f"sweep: {key} is {shown(found)}; it must be a table of names and values")
    return dict(found)


def _counts(what: str, given: Any) -> tuple[int, ...]:
    many = given if isinstance(given, (list, tuple)) else [given]
    return tuple(whole(what, n, 1, 2**32) for n in many)


def _histogram(given: Mapping[str, Any]) -> Histogram:
    """A histogram of the plan, checked: entries, bounds and bins."""
    for key in ("entries", "lower", "upper", "bins"):
        if not isinstance(given.get(key), (list, tuple)):
            raise InputError(f"sweep: histogram lacks {key!r}, a list with one value for each entry")
    found = Histogram(
        tuple(whole("sweep: entries of histogram", k, 0) for k in given["entries"]),
        tuple(number("sweep: lower of histogram", x) for x in given["lower"]),
        tuple(number("sweep: upper of histogram", x) for x in given["upper"]),
        _counts("sweep: bins of histogram", given["bins"]),
    )
    sizes = {len(found.entries), len(found.lower), len(found.upper), len(found.bins)}
    if len(sizes) > 1 or any(low >= up for low, up in zip(found.lower, found.upper)):
        raise InputError(
            "sweep: entries, lower, upper and bins of histogram have one value each, lower below upper"
        )
    return found


Array = np.ndarray[Any, Any]
Sampler = Callable[[int, int], Array]  # first, count -> (scalars, count)


def sampler_of(plan: Plan, function: Function, source: RandomSource) -> tuple[int, Sampler]:
    """The number of samples, and the function that makes them."""
    if plan.method == "random":
        return plan.samples, source.inputs
    if plan.method == "grid":
        counts = _grid_counts(plan, function, source)
        return prod(counts), lambda first, count: _gridded(source, counts, first, count)
    rows = _rows(plan.table, len(source.ranges))
    return len(rows), lambda first, count: np.ascontiguousarray(rows[first : first + count].T)


def _grid_counts(plan: Plan, function: Function, source: RandomSource) -> list[int]:
    """The number of grid values of each scalar."""
    if source.columns:
        raise InputError("sweep: a grid has no place for quaternions; take method 'random' or 'table'")
    counts: list[int] = []
    given = dict(plan.grid)
    for name, shape in function.inputs:
        own, size = given.pop(name, (1,)), prod(shape)
        if len(own) not in (1, size):
            raise InputError(f"sweep: grid of {name} has {len(own)} counts; it needs 1 or {size}")
        counts += own * size if len(own) == 1 else own
    if given:
        raise InputError(f"sweep: {function.name} takes no {next(iter(given))!r}, which grid names")
    return counts


def _gridded(source: RandomSource, counts: Sequence[int], first: int, count: int) -> Array:
    """The last scalar runs fastest; one value lies in the middle of its range, more from end to end."""
    index, rows = np.arange(first, first + count), []
    for n, (least, width) in zip(reversed(counts), source.ranges[::-1]):
        index, k = np.divmod(index, n)
        rows.append(least + width * (k / (n - 1) if n > 1 else np.full(count, 0.5)))
    return np.stack(rows[::-1])


def _rows(path: str, size: int) -> Array:
    data = BytesIO(table_bytes(path))
    try:
        rows = np.load(data) if path.endswith(".npy") else np.loadtxt(data, delimiter=",", ndmin=2)
    except (ValueError, EOFError, MemoryError) as error:
        raise InputError(f"sweep: table {path!r} cannot be read: {error}") from None
    return finite(f"sweep: table {path!r}", rows, (None, size), InputError)
