"""Calls of compiled functions with whatever people pass: the right numbers or one clear sentence, never a crash.

Every call is made three ways: by the C-level entry, by ctypes without it, and by a plain reading of the rules that
calls the function one sample at a time. All must agree, to the bit and to the letter.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drevo
from drevo.codegen.call import selftest
from drevo.codegen.call.function import Function
from drevo.errors import DrevoError, DrevoWarning, InputError, NumericsError

Array = np.ndarray[Any, Any]
LARGE = 1e9  # beyond it a result may be refused as not finite

SUBJECTS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "one vector": ("puma560", "fixed", "inverse_dynamics", {}),
    "batch-last": ("puma560", "fixed", "inverse_dynamics", {"layout": "batch_last"}),
    "one argument, a matrix, float32": ("puma560", "fixed", "mass_matrix", {"dtype": "float32"}),
    "a number": ("stanford", "fixed", "kinetic_energy", {}),
    "quaternions": ("biped", "floating", "bias", {}),
    "several results": ("three-link", "fixed", ["mass_matrix", "bias"], {}),
    "packed, batch-last": ("puma560", "fixed", "mass_matrix", {"layout": "batch_last", "packed": True}),
    "several, packed, batch-last": (
        "three-link",
        "fixed",
        ["mass_matrix", "bias", "kinetic_energy"],
        {"layout": "batch_last", "packed": True},
    ),
}


@cache
def made(name: str, way: str) -> Function:
    robot, base, quantity, options = SUBJECTS[name]
    with mock.patch.dict(os.environ, DREVO_CALLS=way):
        return drevo.compile(drevo.load(robot, base=base), quantity, **options)


# -- what is passed ------------------------------------------------------------------------------------------


def values(name: str, port: int, shape: tuple[int, ...], rng: np.random.Generator, last: bool) -> Array:
    """Numbers of a shape; where it fits, quaternions of unit length."""
    f = made(name, "native")
    x = rng.normal(size=shape)
    for i, columns in f.manifest.units:
        axis = 0 if last else -1
        if i == port and x.ndim and x.shape[axis] > max(columns):
            turned = np.moveaxis(x, axis, -1)
            part = turned[..., list(columns)]
            turned[..., list(columns)] = part / np.linalg.norm(part, axis=-1, keepdims=True)
    return x


def frozen(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def apart(x: Array) -> Array:
    room = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1) if x.ndim else (), 7.0)
    view = room[..., 1::2] if x.ndim else room
    view[...] = x
    return view


def unaligned(x: Array) -> Array:
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    raw[...] = x
    return raw


CLOTHES: dict[str, Callable[[Array], Any]] = {
    "plain": lambda x: x,
    "fortran": np.asfortranarray,
    "frozen": frozen,
    "apart": apart,
    "unaligned": unaligned,
    "backward": lambda x: x[::-1].copy()[::-1] if x.ndim else x,
    "mirrored": lambda x: x[..., ::-1].copy()[..., ::-1] if x.ndim else x,
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.tolist()) if x.ndim else float(x),
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "longdouble": lambda x: x.astype(np.longdouble),
    "big": lambda x: x.astype(">f8"),
    "integers": lambda x: np.round(x).astype(np.int32),
    "flags": lambda x: x > 0,
    "unsigned": lambda x: np.abs(np.round(x)).astype(np.uint8),
    "masked": lambda x: np.ma.masked_array(x, mask=x > 1e9),
    "subclass": lambda x: x.view(type("Own", (np.ndarray,), {})),
    "complex": lambda x: x.astype(complex),
    "objects": lambda x: x.astype(object),
    "text": lambda x: x.astype(str),
    "bytes": lambda x: x.astype("S8"),
    "dates": lambda x: np.round(x).astype("datetime64[s]"),
    "records": lambda x: np.zeros(x.shape, [("a", float)]),
    "nothing": lambda x: None,
    "a word": lambda x: "q",
    "a dictionary": lambda x: {"q": x},
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "nan": lambda x: spoiled(x, np.nan),
    "infinity": lambda x: spoiled(x, -np.inf),
    "huge": lambda x: spoiled(x, 1e300),
}
USUAL = ("plain",) * 12


def spoiled(x: Array, value: float) -> Array:
    x = x.copy()
    if x.size:
        x[np.unravel_index(x.size // 2, x.shape)] = value
    return x


def shapes(size: tuple[int, ...], last: bool) -> list[tuple[int, ...]]:
    if last:
        n = int(np.prod(size))
        return [(n, 3), (n, 3), (n, 3), (n,), (n, 0), (n, 1), (n, 20), (3, n), (n + 1, 3), (n, 2, 2), ()]
    (n,) = size
    return [(n,), (n,), (3, n), (3, n), (3, n), (0, n), (1, n), (20, n), (2, 3, n), (2, 0, n), (1, 3, n),
            (n, 3), (n + 1,), (3, n - 1), (), (0,), (4, n)]  # fmt: skip


@st.composite
def calls(draw: Any, name: str) -> tuple[list[Any], dict[str, Any]]:
    """Arguments and keywords."""
    f, rng = made(name, "native"), np.random.default_rng(draw(st.integers(0, 99)))
    last = f.layout == "batch_last"
    common = draw(st.sampled_from(shapes(f.inputs[0][1], last)))
    args = []
    for port, (_, size) in enumerate(f.inputs):
        own = draw(st.sampled_from(shapes(size, last)))
        shape = own if draw(st.integers(0, 9)) == 0 else resized(common, f.inputs[0][1], size, last)
        clothes = CLOTHES[draw(st.sampled_from((*USUAL, *CLOTHES)))]
        args.append(clothes(values(name, port, shape, rng, last)))
    if draw(st.integers(0, 19)) == 0:
        args = args[:-1] if draw(st.booleans()) else [*args, 1.5]
    kwargs: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        kwargs["threads"] = draw(st.sampled_from([1, 2, 3, 0, -1, 1.0, True, "2", None, np.int64(2)]))
    if draw(st.integers(0, 30)) == 0:
        kwargs[draw(st.sampled_from(["qq", "q", "tau", "Out"]))] = args[0] if args else 0.0
    return args, kwargs


def resized(shape: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...], last: bool) -> tuple[int, ...]:
    """The same batch for an argument of another size."""
    m, n = int(np.prod(old)), int(np.prod(new))
    return tuple(
        s - m + n if i == (0 if last else len(shape) - 1) and s >= m - 1 else s for i, s in enumerate(shape)
    )


# -- what should come of it ----------------------------------------------------------------------------------


def plainly(f: Function, args: list[Any]) -> list[Array] | type[DrevoError] | None:
    """Results sample by sample, or the error; None where both are right."""
    last, xs = f.layout == "batch_last", []
    if len(args) != len(f.inputs):
        return InputError
    for x, (_, size) in zip(args, f.inputs):
        try:
            a = np.asarray(x)
        except ValueError:
            return InputError
        if a.dtype.kind not in "fiub":
            return InputError
        n = int(np.prod(size))
        if last and a.ndim not in (1, 2):
            return InputError
        if not a.ndim or a.shape[0 if last else -1] != n:
            return InputError
        with np.errstate(over="ignore"):
            xs.append(np.moveaxis(a, 0, -1).astype(f.dtype) if last else a.astype(f.dtype))
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in xs))
    except ValueError:
        return InputError
    flat = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in xs]
    count = len(flat[0])
    if not all(np.isfinite(x).all() for x in flat) or (count and not units_are_one(f, flat)):
        return NumericsError if count else results(f, [], lead)
    if count and max(float(np.abs(x).max(initial=0.0)) for x in flat) > LARGE:
        return None
    rows = [f(*(np.ascontiguousarray(x[k]) for x in flat)) for k in range(count)]
    return results(f, rows, lead)


def units_are_one(f: Function, flat: list[Array]) -> bool:
    squares = [(flat[i][:, list(c)].astype(float) ** 2).sum(axis=1) for i, c in f.manifest.units]
    return all((np.abs(s - 1.0) <= 2e-6).all() for s in squares)


def results(f: Function, rows: list[Any], lead: tuple[int, ...]) -> list[Array]:
    out = []
    for k, (_, shape) in enumerate(f.outputs):
        tail = shape if f.layout == "rows" else (int(np.prod(shape)),)
        parts = [np.asarray(r[k] if len(f.outputs) > 1 else r) for r in rows]
        x = np.array(parts, f.dtype).reshape((*lead, *tail))
        out.append(x if f.layout == "rows" else np.moveaxis(x, -1, 0))
    return out


def answer(f: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Arrays, or the type and the sentence of the error."""
    try:
        found = f(*args, **kwargs)
    except DrevoError as error:
        text = str(error)
        assert text == text.strip() and "\n" not in text and len(text) < 400, text
        return type(error), text
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return bool(a == b)
    return all(x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b))


FUZZED = settings(
    max_examples=int(os.environ.get("DREVO_FUZZ", "150")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("name", SUBJECTS)
def test_any_arguments(name: str) -> None:
    f, plain = made(name, "native"), made(name, "ctypes")
    assert f.backend == "native" and plain.backend == "ctypes"

    @FUZZED
    @given(calls(name))
    def check(call: tuple[list[Any], dict[str, Any]]) -> None:
        args, kwargs = call
        with np.errstate(all="ignore"):
            found = answer(f, args, kwargs)
            assert same(found, answer(plain, args, kwargs))
            want = plainly(f, args) if kwargs.keys() <= {"threads"} else InputError
        threads = kwargs.get("threads", 1)
        if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool) or threads < 1:
            want = InputError
        if want is NumericsError and isinstance(found, list):  # no result depends on the number that is none
            with np.errstate(all="ignore"):
                finite = [np.nan_to_num(np.asarray(x).astype(f.dtype), posinf=1.0, neginf=1.0) for x in args]
            want = plainly(f, finite)
        if isinstance(want, type):
            assert isinstance(found, tuple) and found[0] is want, (found, want)
        elif want is None and isinstance(found, tuple):
            assert found[0] is NumericsError
        elif want is None:
            assert all(np.isfinite(x).all() for x in found)
        else:
            assert isinstance(found, list) and same(found, want)

    check()


# -- out -----------------------------------------------------------------------------------------------------


def over(x: Array, shape: tuple[int, ...], shift: int) -> Array | None:
    """A result array that shares memory with an argument."""
    flat = x.reshape(-1)[max(0, shift) :]
    size = int(np.prod(shape))
    return flat[:size].reshape(shape) if x.flags.c_contiguous and flat.size >= size else None


OUTS: dict[str, Callable[[Array, Any], Any]] = {
    "fresh": lambda w, x: np.empty_like(w),
    "fortran": lambda w, x: np.empty(w.shape, w.dtype, order="F"),
    "apart": lambda w, x: apart(np.zeros(w.shape, w.dtype)),
    "backward": lambda w, x: np.empty(w.shape, w.dtype)[::-1] if w.ndim else np.empty(w.shape, w.dtype),
    "unaligned": lambda w, x: unaligned(np.zeros(w.shape, w.dtype)),
    "single": lambda w, x: np.empty(w.shape, np.float32),
    "big": lambda w, x: np.empty(w.shape, ">f8"),
    "over an argument": lambda w, x: over(x, w.shape, 0),
    "over the end of an argument": lambda w, x: over(x, w.shape, 3),
    "frozen": lambda w, x: frozen(np.zeros(w.shape, w.dtype)),
    "too long": lambda w, x: np.empty((*w.shape, 1), w.dtype),
    "integers": lambda w, x: np.empty(w.shape, int),
    "complex": lambda w, x: np.empty(w.shape, complex),
    "objects": lambda w, x: np.empty(w.shape, object),
    "a list": lambda w, x: w.tolist(),
    "a number": lambda w, x: 1.0,
    "broadcast": lambda w, x: np.broadcast_to(np.zeros((), w.dtype), w.shape),
}
WRONG = ("frozen", "too long", "integers", "complex", "objects", "a list", "a number", "broadcast")


def arguments(name: str, f: Function, count: int | None) -> list[Array]:
    """Plain arguments of one state or a batch."""
    last, rng = f.layout == "batch_last", np.random.default_rng(5)
    lead = () if count is None else (count,)
    shapes = [(*size, *lead) if last else (*lead, *size) for _, size in f.inputs]
    return [values(name, k, shape, rng, last).astype(f.dtype) for k, shape in enumerate(shapes)]


@pytest.mark.parametrize("kind", OUTS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_any_out(name: str, kind: str) -> None:
    """One array of a kind, the others plain, in a tuple or a list where there are several."""
    for way, count in product(selftest.CALL_METHODS, (None, 0, 1, 3, 17)):
        f = made(name, way)
        want = f(*arguments(name, f, count))
        wants = list(want) if isinstance(want, tuple) else [np.asarray(want)]
        for place, hold in product(range(len(wants)), (tuple, list)):
            args = arguments(name, f, count)
            outs: list[Any] = [np.empty(w.shape, w.dtype) for w in wants]
            outs[place] = OUTS[kind](wants[place], args[-1])
            if outs[place] is None:
                continue
            out = hold(outs) if len(outs) > 1 else outs[0]
            if kind in WRONG:
                with pytest.raises(InputError, match=r"\bout\b"):
                    f(*args, out=out)
                continue
            found = f(*args, out=out)
            found = list(found) if len(outs) > 1 else [found]
            assert all(x is y for x, y in zip(found, outs, strict=True))
            assert all(np.array_equal(x, w.astype(x.dtype)) for x, w in zip(outs, wants))


HANDED: dict[str, Callable[[list[Array]], Any]] = {
    "a tuple": tuple,
    "a list": list,
    "a tuple of its own": type("Own", (tuple,), {}),
    "a list of its own": type("Own", (list,), {}),
    "a generator": iter,
    "the function's own": lambda x: x,
    "a dictionary": lambda x: dict(enumerate(x)),
    "too few": lambda x: tuple(x[:-1]),
    "too many": lambda x: (*x, x[0]),
    "turned round": lambda x: tuple(x[::-1]),
    "one array": lambda x: x[0],
    "with nothing in it": lambda x: (*x[:-1], None),
    "the same twice": lambda x: (x[0], x[0], *x[2:]),
    "overlapping by one": lambda x: overlapping(x, 1),
    "side by side": lambda x: overlapping(x, 0),
    "interleaved": lambda x: overlapping(x, 0, axis=-1),
    "none at all": lambda x: (),
}


def overlapping(outs: list[Array], shared: int, axis: int = 0) -> tuple[Array, ...]:
    """The second result begins some entries before the first one ends, or beside it in the same rows."""
    a, b = outs[:2]
    if axis:
        if a.ndim < 2 or a.shape[:-1] != b.shape[:-1]:
            return tuple(outs)
        room = np.empty((*a.shape[:-1], a.shape[-1] + b.shape[-1]), a.dtype)
        return (room[..., : a.shape[-1]], room[..., a.shape[-1] :], *outs[2:])
    shared = min(shared, a.size, b.size)
    flat = np.empty(a.size + b.size - shared, a.dtype)
    return (flat[: a.size].reshape(a.shape), flat[a.size - shared :].reshape(b.shape), *outs[2:])


@pytest.mark.parametrize("handed", HANDED)
@pytest.mark.parametrize("name", [n for n in SUBJECTS if n.startswith("several")])
def test_any_handing_over_of_several(name: str, handed: str) -> None:
    """With and without the entry the same arrays are filled, or the same sentence said."""
    for count, keyword in product((None, 0, 1, 3, 17), (True, False)):
        seen = []
        for way in selftest.CALL_METHODS:
            f = made(name, way)
            args = arguments(name, f, count)
            want = f(*args)
            outs = [np.full(w.shape, 7.0, w.dtype) for w in want]
            out = type(want)(outs) if handed == "the function's own" else HANDED[handed](outs)
            found = answer(f, args if keyword else [*args, out], {"out": out} if keyword else {})
            if isinstance(found, list):
                assert all(x is y for x, y in zip(found, out, strict=True))
                assert same(found, list(want))
            seen.append(found)
        assert same(*seen)


def test_results_that_share_memory_are_refused() -> None:
    f = made("several results", "native")
    q = np.zeros(3)
    room = np.empty(12)
    with pytest.raises(InputError, match="overlap"):
        f(q, q, out=(room[:9].reshape(3, 3), room[8:11]))
    outs = (room[:9].reshape(3, 3), room[9:])
    assert f(q, q, out=outs)[1] is outs[1]


# -- the way of calls ----------------------------------------------------------------------------------------


def test_an_unknown_way_is_refused() -> None:
    with mock.patch.dict(os.environ, DREVO_CALLS="telegraph"), pytest.raises(InputError, match="native, ctypes"):
        drevo.compile(drevo.load("three-link"), "bias")


def test_an_entry_that_fails_its_test_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of one case is spoiled: the function says so once and goes by ctypes, with the same numbers."""
    f = made("one vector", "native")
    assert all(selftest.same(f, f.fast, *case) for case in selftest.cases(f))  # type: ignore[arg-type]
    monkeypatch.setattr(selftest, "same", lambda *_: False)
    monkeypatch.setattr(selftest, "passed", {})
    x = np.random.default_rng(0).normal(size=(3, 5, 6))
    right, robot = f(*x).tobytes(), drevo.load("puma560")
    other = drevo.compile(robot, "inverse_dynamics")
    held = other.fast
    with pytest.warns(DrevoWarning, match="did not pass its self-test"):
        assert other(*x).tobytes() == right
    assert other.backend == "ctypes" and held is not None and other.fast is None
    assert held(*x).tobytes() == other(*x).tobytes() == right
    assert drevo.compile(robot, "bias").backend == "ctypes"
