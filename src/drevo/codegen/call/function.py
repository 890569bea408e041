"""Function: what the user calls. A builtin takes conforming arrays; this module takes everything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import is_, itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...io.given import numbers
from ...model.quantities import CATALOGUE, explained
from ..entry.layout import PAGED
from ..store import native
from ..store.build import Ahead, Built, FunctionFace, machine_code
from ..store.build import Spec as Spec
from ..store.memo import LOCK
from . import selftest
from .arguments import Array, BoundCall, NamedShape, bind, by_name, check_out, distinct, gather, in_memory
from .method import graph_among, on_graph

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from ..graph.program import Program
    from .diagnose import Weakest

Extra = Callable[[tuple[Any, ...], dict[str, Any]], Any]
REFUSED_ERRORS = (InputError, MemoryError, ValueError, TypeError, OverflowError, NotImplementedError)
_STEPS_PER_NS = 30.0  # of a batch; holds within some 20 %
_RELEASE = 5_000.0  # ns of work from which the GIL is given back
_THREADED = 500_000.0  # ns of work from which threads are worth their start
_THREAD_PIECE_NS = 200_000.0  # ns of work that a thread takes at a time


def obtain(
    request: str,
    make: Callable[[], Program],
    spec: Spec,
    *,
    extra: Extra | None = None,
    plain: Plain | None = None,
    cache: bool = True,
    ahead: Ahead | None = None,
) -> Function:
    """The function of a program, from the cache if it is there: then `make` is not called.

    request: any text that identifies what was asked (`key.request`); sources and machine are added here.
    extra: takes the calls with keywords that the function does not know, as (args, kwargs). plain: see `Plain`.
    ahead: see `machine_code`.
    """
    built, again = Built(*machine_code(request, make, spec, cache, ahead=ahead), make), lru_cache(1)(make)
    weakest = (lambda ins: _weakest(again(), ins)) if built.manifest.guards else None
    return Function(built, spec, extra, weakest, plain)


def _weakest(program: Program, ins: Sequence[Array]) -> Any:
    """After a failed check: the pivot that is nearest to none."""
    from . import diagnose

    return diagnose.weakest(program, ins)


class Plain(NamedTuple):
    """A function on arrays in NumPy: it judges arguments in its own words, and computes what compiled code cannot.

    check: arguments as arrays, or what is wrong with them. compute: from those to the results.
    """

    check: Callable[..., Sequence[Array]]
    compute: Callable[..., Any]


class Function(FunctionFace):
    """Compiled quantities: `f(*inputs, out=None, threads=1)`.

    Inputs are (..., *shape), leading dimensions broadcast, results (..., *shape); in batch-last layout inputs
    are (n, B) and results (size, B). Several outputs come as a tuple with names. `fast` is the builtin behind
    the call, or None; `code` the machine code, or None. Raises InputError, NumericsError.
    """

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    else:
        __slots__ = ("__call__",)  # the entry itself: a method in Python would cost more than the work of an arm

    def __init__(
        self,
        built: Built,
        spec: Spec,
        extra: Extra | None = None,
        weakest: Weakest | None = None,
        plain: Plain | None = None,
    ) -> None:
        m = built.manifest
        super().__init__(m, spec)
        self.extra, self._weakest, self.plain = extra, weakest, plain
        self.code = built.code
        self._known = {"out", "threads", *(n for n, _ in m.inputs)}
        self._again = built.again
        self._arenas: list[Array] = []  # one for each thread that ran at once
        self._made: set[str] = set()  # of the calls of the code
        names = tuple(n for n, _ in m.outputs)
        self._several = _several(m.name, names) if len(names) > 1 else None
        self.fast: Callable[..., Any] | None = None
        self.fast = self._builtin()
        self._enter(self.fast or self._slow())

    def __repr__(self) -> str:
        return f"<Function {self._signature}, {self.backend}>"

    def __reduce__(self) -> tuple[Any, ...]:
        again = super().__reduce__()
        self.prepare()  # once here, in place of once in every process that the pickle goes to
        return again

    @property
    def backend(self) -> str:
        """The way calls run: "native" (builtin), "ctypes" or "numpy"."""
        return "native" if self.fast else "ctypes" if self.code else "numpy"

    @property
    def nanoseconds(self) -> float:
        """A rough estimate of the time of one sample in a batch."""
        return self.manifest.steps * 8 / self.manifest.lanes / _STEPS_PER_NS

    # -- entries --------------------------------------------------------------------------------------------

    def _enter(self, entry: Callable[..., Any]) -> None:
        """Calls of the function are calls of `entry` from now on, whose signature is the function's."""
        setattr(self, "__call__", entry)  # noqa: B010
        self.__wrapped__ = entry

    def _slow(self) -> Callable[..., Any]:
        """A plain function: what the builtin calls for whatever is not a conforming array.

        What need only be put in order or made plain arrays goes back to the builtin, and so does a list of result
        arrays, as a tuple, which nobody can change meanwhile; what is in order and came here all the same never
        does.
        """
        n = len(self.inputs)

        def slow(*args: Any, **kwargs: Any) -> Any:
            fast = self.fast
            given = self._in_order(args, kwargs) if kwargs else list(args)
            if fast is None or given is None or not n <= len(given) <= n + 1:
                return self.general(args, kwargs)
            again = bool(kwargs)
            try:
                if not again:
                    given[:n] = [self._plain(x, port) for x, port in zip(given, self.inputs)]
                    if self._several and type(given[-1]) is list:
                        given[-1] = tuple(given[-1])
                    again = not all(map(is_, given, args))
            except REFUSED_ERRORS:  # as `general` says it
                return self.general(args, kwargs)
            return fast(*given) if again else self.general(args, kwargs)

        return slow

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """All inputs and `out` by position; None where something is missing, or more than one thread is asked
        for, or anything else."""
        kwargs = {n: x for n, x in kwargs.items() if n != "threads" or type(x) is not int or x != 1}
        names = [n for n, _ in self.inputs][len(args) :] + ["out"] * ("out" in kwargs)
        if len(args) > len(self.inputs) or kwargs.keys() != set(names):
            return None
        return [*args, *(kwargs[n] for n in names)]

    def _plain(self, x: Any, port: NamedShape) -> Array:
        """An argument as a plain array; the same object if it is one."""
        if self._is_plain(x):
            return x  # type: ignore[no-any-return]
        found = numbers(f"{self.name}: {port[0]}", x, dtype=self.dtype)
        return np.ascontiguousarray(found).reshape(found.shape)

    def _is_plain(self, x: Any) -> bool:
        return type(x) is np.ndarray and x.dtype is self.dtype and x.flags.c_contiguous and x.flags.aligned

    def _builtin(self) -> Callable[..., Any] | None:
        untrusted = False in selftest.passed.values()
        if self.code is None or selftest.wanted() != "native" or native.layout() is None or untrusted:
            return None
        names = ", ".join(n.replace(":", "_") for n, _ in self.inputs)
        known = CATALOGUE.get(self.name)
        about = f"{self.name} of {self.meta.get('robot', 'a program')}." + (
            f"\n\n{explained(known)}" if known else ""
        )
        more = ", *, f_ext=None" if self.extra is not None else ""
        doc = f"{self.name}({names}, out=None, threads=1{more})\n--\n\n{about}"
        threshold = max(1, int(_RELEASE / max(0.1, self.nanoseconds)))
        inputs, loaded = [n for n, _ in self.inputs], getattr(self.extra, "known", None)
        return native.builtin(
            self.code, self, self.name, doc, self._slow(), self.dtype, self._several, threshold, inputs, loaded,
            (self.manifest.scratch, self.manifest.arena),
        )  # fmt: skip

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call at all."""
        if graph := graph_among((*args, *kwargs.values())):
            values = bind(self.name, self.inputs, args, kwargs).values
            found = on_graph(graph, self.name, self.inputs, self.outputs, self._again, values)
            return self._several(found) if self._several else found[0]
        if kwargs and self.extra is not None and not self._known.issuperset(kwargs):
            return self.extra(args, dict(kwargs))
        with in_memory(self.name):
            return self._computed(self._numbered(bind(self.name, self.inputs, args, kwargs)))

    def _numbered(self, call: BoundCall) -> BoundCall:
        """The call with parameters that it names as an array of them."""
        values = {port[0]: x for port, x in zip(self.inputs, call.values)}
        given = values.get("parameters")
        if not self.parameters or not isinstance(given, Mapping):
            return call

        def stack(named: list[Any]) -> Array:
            pairs = zip(self.parameters, named)
            told = {k: numbers(f"{self.name}: {k}", x, dtype=self.dtype) for (k, _), x in pairs}
            try:
                return np.stack(np.broadcast_arrays(*told.values()), -1 if self.layout == "rows" else 0)
            except ValueError:
                shapes = ", ".join(f"{k} {x.shape}" for k, x in told.items())
                raise InputError(f"{self.name}: the shapes of its parameters do not agree: {shapes}") from None

        values["parameters"] = by_name(self.name, self.parameters, given, stack)
        return call._replace(values=tuple(values.values()))

    def _computed(self, call: BoundCall) -> Any:
        rows = self.layout == "rows"
        values = self.plain.check(*call.values) if self.plain else call.values
        batch = gather(self.name, self.inputs, values, self.dtype, rows)
        shapes = [(*batch.lead, *s) if rows else (n, *batch.lead) for (_, s), n in zip(self.outputs, self._sizes)]
        targets = self._targets(call, shapes)
        flat = [(batch.samples, n) if rows else (n, batch.samples) for n in self._sizes]
        made = [self._room(x, shape, batch.arrays) for x, shape in zip(targets, flat)]
        if batch.samples:
            self._checked_run(batch.arrays, made, batch.samples, call.threads)
        return self._result(made, shapes, targets)

    def _targets(self, call: BoundCall, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
        """The caller's result arrays, or None for each."""
        if call.out is None:
            return [None] * len(shapes)
        given = [call.out] if len(shapes) == 1 else call.out
        if not isinstance(given, (list, tuple)) or len(given) != len(shapes):
            raise InputError(f"{self.name}: out must be {len(shapes)} arrays, in a list or tuple")
        for x, shape in zip(given, shapes):
            check_out(self.name, x, shape)
        distinct(self.name, given)
        return list(given)

    def _room(self, target: Any, shape: tuple[int, int], inputs: Sequence[Array]) -> Array:
        """The array that receives a result: the caller's own if that is safe, so large ones are not copied."""
        if target is None or target.dtype != self.dtype or not target.dtype.isnative:
            return native.line_array(shape, self.dtype)
        plain = target.flags.c_contiguous and target.flags.aligned
        if not plain or any(np.may_share_memory(target, x) for x in inputs):
            return native.line_array(shape, self.dtype)
        view: Array = target.reshape(shape)
        return view

    def _result(self, made: Sequence[Array], shapes: Sequence[tuple[int, ...]], targets: Sequence[Any]) -> Any:
        done: list[Any] = []
        for x, shape, target in zip(made, shapes, targets):
            value = x.reshape(shape)
            if target is not None and value.__array_interface__["data"] != target.__array_interface__["data"]:
                np.copyto(target, value, casting="same_kind")
            done.append(value[()] if target is None else target)
        return done[0] if self._several is None else self._several(done)

    # -- running --------------------------------------------------------------------------------------------

    def _checked_run(self, inputs: Sequence[Array], outputs: Sequence[Array], count: int, threads: int) -> None:
        if not self._run(inputs, outputs, count, threads) or not self.spec.check:
            return
        if self.plain is not None:
            found = self.plain.compute(*inputs)
            for x, y in zip(outputs, found if self._several else (found,)):
                x[...] = y.reshape(x.shape)
        else:
            from . import diagnose

            diagnose.report(self.manifest, inputs, outputs, self.layout == "rows", self._weakest)

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array], count: int, threads: int) -> bool:
        """True if something is not finite or no unit quaternion."""
        if self.code is None:  # `plain` computes
            return True
        alone = count == 1 and self.code.has("single") and self._side_by_side(inputs, outputs)
        self._ready("single" if alone else "drive")
        if alone:
            return self._alone(inputs, outputs)
        threads = min(threads, count // (8 * self.manifest.lanes))
        if threads < 2 or count * self.nanoseconds < _THREADED:
            return self._part(inputs, outputs, 0, count, count)
        unit = 8 * self.manifest.lanes  # whole tiles, whole cache lines
        shares = min(count // unit, threads * max(1, int(count * self.nanoseconds / threads / _THREAD_PIECE_NS)))
        cuts = [count * k // shares // unit * unit for k in range(shares)] + [count]
        parts = iter([(a, b) for a, b in pairwise(cuts) if b > a])

        def work() -> bool:
            """Takes pieces as long as there are any: a core that others use too gets fewer of them."""
            return any([self._part(inputs, outputs, a, b, count) for a, b in parts])

        from concurrent.futures import wait

        jobs = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
        try:
            bad = work()
        finally:
            wait(jobs)  # nobody may still write when an error leaves this call
        return any([bad, *(j.result() for j in jobs)])

    def _side_by_side(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """True if the numbers of one sample lie side by side in memory: in batch-last layout each is a row."""
        return self.layout == "rows" or all(x.strides[0] == x.itemsize for x in (*inputs, *outputs))

    def _alone(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        assert self.code is not None
        work = native.line_array(self.manifest.scratch, np.uint8)
        return bool(self.code.single([address_of(x) for x in (*inputs, *outputs)], address_of(work)))

    def _ready(self, name: str) -> None:
        """Makes what computes one sample, "single", or a batch, "drive", at its first need. The entry may call it
        from then on if that passes its test."""
        if name in self._made:
            return
        with LOCK:
            code = self.code
            if code is None or name in self._made:
                return
            code.find(name)
            self._made.add(name)
            large = name == "drive" and self.manifest.arena > PAGED
            if self.fast is not None and not large:
                code.publish(name)
                if not selftest.trusted(self, self.fast, name):
                    self._without_entry()

    def prepare(self) -> None:
        """Makes all of its machine code now, which else is made at the first call that needs it: one sample, a
        batch."""
        for name in ("single", "drive"):
            if self.code is not None and self.code.has(name):
                self._ready(name)

    def _without_entry(self) -> None:
        assert self.code is not None
        for name in self._made:
            self.code.publish(name, False)
        self.fast = None
        self._enter(self._slow())

    def _part(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int, count: int) -> bool:
        """Samples start..stop of `count` through the driver."""
        assert self.code is not None
        arrays = [*inputs, *outputs]
        axis = 0 if self.layout == "rows" else 1
        pointers = [address_of(x) + start * x.strides[axis] for x in arrays]
        strides = [x.strides[0] for x in arrays]
        try:  # the pages of a new one are cleared, which takes longer than a step of a large robot
            arena = self._arenas.pop()
        except IndexError:
            arena = native.line_array(self.manifest.arena, np.uint8)
        failed = self.code.drive(pointers, strides, stop - start, address_of(arena), count)
        self._arenas.append(arena)
        return bool(failed)


def address_of(x: Array) -> int:
    """The address of an array's numbers."""
    return int(x.__array_interface__["data"][0])


@lru_cache(1024)
def _several(name: str, names: tuple[str, ...]) -> Any:
    """A tuple type whose fields are the outputs, of a function of that name."""
    fields: dict[str, Any] = {n: property(itemgetter(k)) for k, n in enumerate(names)}
    body = {"__slots__": (), "_fields": names, "__reduce__": lambda x: (_again, (name, names, tuple(x))), **fields}
    body["__repr__"] = lambda x: f"({', '.join(f'{n}={v!r}' for n, v in zip(names, x))})"
    return type(f"{name}_result", (tuple,), body)


def _again(name: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """A result out of its pickle."""
    return _several(name, names)(values)


# -- threads ------------------------------------------------------------------------------------------------

_POOLS: dict[int, ThreadPoolExecutor] = {}
_POOLS_LOCK = Lock()


def _pool(threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    with _POOLS_LOCK:
        if threads not in _POOLS:
            _POOLS[threads] = ThreadPoolExecutor(threads, thread_name_prefix="drevo")
        return _POOLS[threads]


def _forget_pools() -> None:
    """The threads of a pool do not survive a fork."""
    global _POOLS_LOCK
    _POOLS.clear()
    _POOLS_LOCK = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
