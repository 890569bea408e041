"""Compiled functions: the same bits on every path, and a sentence for everything that cannot be computed."""

from __future__ import annotations

import ctypes
import math
import pickle
import threading
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from drevo.emit import llvm, llvm_entry, objects
from drevo.emit.llvm_math import limit
from drevo.emit.lower import lower
from drevo.errors import DrevoWarning, EmitError, InputError, NumericsError
from drevo.graph.evaluate import evaluate
from drevo.graph.node import Graph
from drevo.graph.program import Input, Output, Parameter, Program
from drevo.runtime import native
from drevo.runtime.build import Built, build, describe
from drevo.runtime.function import Function, Spec, obtain

LANES = native.host().bytes // 8
BATCHES = (1, LANES - 1, LANES, LANES + 1, 1000)


def every_op(wide: int = 3) -> Program:
    """A program with every operation, every kind of output and a quaternion."""
    g = Graph()
    q = [g.input(f"q[{i}]") for i in range(4)]
    v = [g.input(f"v[{i}]") for i in range(wide)]
    mass, length = g.parameter("mass"), g.parameter("length")
    s, c = (v[0] + v[1]).sin(), (v[0] + v[1]).cos()
    lone = v[2 % wide].cos()
    inertia = mass * length * length
    x = s * q[0] - c * q[1] + 2 * v[1] * inertia
    y = (x / (3.0 + c)) - q[2] * q[3] * lone
    root = (y * y + 1.0 + mass / length).sqrt()
    minus = -(root * x + y)
    vector = [x, -y, root, minus, 0.0, 1.5, -2.5, v[0], -v[1], mass, x, x * y - root, 2 * root]
    matrix = [root, x, 0.0, x, y, 0.0, 0.0, 0.0, minus]
    return Program(
        "every_op", g,
        (Input("q", (4,), tuple(e.edge >> 1 for e in q)), Input("v", (wide,), tuple(e.edge >> 1 for e in v))),
        (Parameter("mass", mass.edge >> 1, 1.25), Parameter("length", length.edge >> 1, 0.7)),
        (Output("f", (len(vector),), tuple(g.edge(e) for e in vector)),
         Output("H", (3, 3), tuple(g.edge(e) for e in matrix)),
         Output("T", (), (g.edge(x * x),))),
        units=(tuple(e.edge >> 1 for e in q),), meta={"robot": "none"},
    )  # fmt: skip


def arm(n: int = 9) -> Program:
    """One output vector, more columns than lanes."""
    g = Graph()
    q, v = ([g.input(f"{s}[{i}]") for i in range(n)] for s in "qv")
    total, out = 0.25 * q[0], []
    for a, b in zip(q, v):
        total = total * a.cos() + b * a.sin() + b * total
        out.append(total - 0.5 * b)
    ports = tuple(Input(s, (n,), tuple(e.edge >> 1 for e in x)) for s, x in (("q", q), ("v", v)))
    return Program("arm", g, ports, (), (Output("tau", (n,), tuple(g.edge(e) for e in out)),))


@cache
def make(kind: str = "every", **options: object) -> Function:
    program = arm() if kind == "arm" else every_op()
    return obtain(kind, lambda: program, Spec(**options), cache=False)  # type: ignore[arg-type]


def state(count: int, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q.astype(dtype), rng.normal(size=(count, 3)).astype(dtype)


def flat(result: object, count: int, last: bool = False) -> np.ndarray:
    parts = result if isinstance(result, tuple) else (result,)
    turned = [np.asarray(x).T if last else np.asarray(x) for x in parts]
    return np.concatenate([x.reshape(count, -1) for x in turned], axis=1)


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


# -- the same numbers on every path ------------------------------------------------------------------------


def test_the_builtin_is_there() -> None:
    f = make()
    assert f.backend == "native" and f.fast is not None and f.fast.__name__ == "every_op"
    assert f.fast.__text_signature__ == "(q, v, out=None, threads=1)"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("parameters", [False, True])
def test_every_op_against_the_reference(dtype: str, layout: str, packed: bool, parameters: bool) -> None:
    f = make(dtype=dtype, layout=layout, packed=packed, parameters=parameters)
    program, last = every_op(), layout == "batch_last"
    for count in BATCHES:
        q, v = state(count, count, dtype)
        extra = [np.tile(np.array([1.5, 0.5], dtype), (count, 1))] if parameters else []
        given = [x.T.copy() if last else x for x in (q, v, *extra)]
        values = {"mass": 1.5, "length": 0.5} if parameters else None
        want = evaluate(program, {"q": q, "v": v}, values)  # type: ignore[arg-type]
        if packed:
            want = {n: w[(slice(None), *p)] for (n, w), p in zip(want.items(), f.pattern)}
        result = f(*given)
        expected = flat(tuple(want.values()), count)
        np.testing.assert_allclose(
            flat(result, count, last), expected, rtol=0, atol=1e-13 if dtype[-1] == "4" else 2e-4
        )
        for k in range(0, count, 97):
            single = f(q[k], v[k], *(x[k] for x in extra))
            assert bits(flat(single, 1)) == bits(flat(result, count, last)[k : k + 1])


def test_result_names_and_shapes() -> None:
    f, (q, v) = make(), state(6)
    r = f(q.reshape(2, 3, 4), v[:3])
    assert r.f.shape == (2, 3, 13) and r.H.shape == (2, 3, 3, 3) and r.T.shape == (2, 3)
    assert isinstance(f(q[0], v[0]).T, float) and isinstance(f(list(q[0]), v[0]).T, float)
    assert type(pickle.loads(pickle.dumps(r))) is tuple  # noqa: S301
    assert "H=" in repr(r)


@pytest.mark.parametrize("count", BATCHES)
def test_parts_of_a_batch_have_the_same_bits(count: int) -> None:
    q, v = state(1000)
    whole = flat(make()(q, v), 1000)
    assert bits(flat(make()(q[-count:], v[-count:]), count)) == bits(whole[-count:])


VARIANTS = {
    "two lanes": llvm.Target(lanes=2),
    "four lanes": llvm.Target(lanes=4),
    "chunks": llvm.Target(lanes=LANES, chunk=5),
    "tiny chunks": llvm.Target(lanes=LANES, chunk=1),
    "no splat": llvm.Target(lanes=LANES, splat=False),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("kind", ["every", "arm"])
def test_bits_do_not_depend_on_width_or_chunks(name: str, kind: str) -> None:
    program = arm() if kind == "arm" else every_op()
    f = variant(program, VARIANTS[name])
    q, v = state(37) if kind == "every" else np.random.default_rng(1).normal(size=(2, 37, 9))
    assert bits(flat(f(q, v), 37)) == bits(flat(make(kind)(q, v), 37))
    assert bits(flat(f(q[5], v[5]), 1)) == bits(flat(make(kind)(q[5], v[5]), 1))


def variant(program: Program, target: llvm.Target, **options: object) -> Function:
    spec = Spec(**options)  # type: ignore[arg-type]
    manifest, obj = build(program, spec, target)
    return Function(Built(manifest, native.Code(obj)), spec)


def test_order_changes_no_bit() -> None:
    q, v = state(20)
    want = bits(flat(make()(q, v), 20))
    for order in ("create", "column", "greedy"):
        assert bits(flat(make(order=order)(q, v), 20)) == want


def test_without_fma() -> None:
    f, (q, v) = variant(every_op(), llvm.Target(lanes=LANES, fma=False)), state(50)
    want = evaluate(every_op(), {"q": q, "v": v})
    np.testing.assert_allclose(flat(f(q, v), 50), flat(tuple(want.values()), 50), rtol=0, atol=1e-14)


def test_without_the_builtin_and_without_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    q, v = state(21)
    want = flat(make()(q, v), 21)
    reference = Function(Built(describe(every_op(), Spec()), None, every_op()), Spec())
    assert reference.backend == "reference"
    np.testing.assert_allclose(flat(reference(q, v), 21), want, rtol=0, atol=1e-14)
    with pytest.raises(NumericsError, match="in row 4"):
        q2 = q.copy()
        q2[4] *= 1.1
        reference(q2, v)
    monkeypatch.setattr(native, "layout", lambda: None)
    plain = obtain("x", every_op, Spec(), cache=False)
    assert plain.backend == "ctypes" and bits(flat(plain(q, v), 21)) == bits(want)


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> bytes:
        raise EmitError("LLVM refused the generated code: no reason")

    (q, v), p = state(3), np.array([1.5, 0.5])
    want = make(parameters=True, packed=True)
    monkeypatch.setattr(native, "compile_text", fail)
    with pytest.warns(DrevoWarning, match="without machine code"):
        f = obtain("x", every_op, Spec(parameters=True, packed=True), cache=False)
    assert f.backend == "reference"
    np.testing.assert_allclose(flat(f(q, v, p), 3), flat(want(q, v, p), 3), rtol=0, atol=1e-14)


def test_layout_of_objects_is_verified() -> None:
    found = native.layout()
    assert found is not None
    assert not native._as_seen(objects.Layout(found.base + 8, found.type), np.zeros(3))


# -- arguments ---------------------------------------------------------------------------------------------


def views(x: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers in other clothes."""
    count, n = x.shape
    wide = np.zeros((count, n + 5))
    wide[:, 2 : 2 + n] = x
    apart = np.zeros((3 * count, n))
    apart[::3] = x
    odd = np.zeros(count * n * 8 + 1, np.uint8)[1:].view(np.float64).reshape(count, n)
    odd[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "wide": wide[:, 2 : 2 + n], "apart": apart[::3], "fortran": np.asfortranarray(x), "frozen": frozen,
        "backward": x[::-1].copy()[::-1], "mirrored": x[:, ::-1].copy()[:, ::-1], "big": x.astype(">f8"),
        "unaligned": odd, "list": x.tolist(), "matrix": x.view(np.ndarray), "long": x.astype(np.longdouble),
    }  # fmt: skip


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("count", [2, LANES + 3])
def test_any_strides(layout: str, count: int) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, count, 9))
    if layout == "batch_last":
        q, v = q.T.copy(), v.T.copy()
    want = bits(f(q, v))
    for name, x in views(q).items():
        assert bits(f(x, v)) == want, name
        assert bits(f(v=v, q=x)) == want, name


def test_broadcasting() -> None:
    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 6, 9))
    want = np.stack([f(q[k], v[0]) for k in range(6)])
    assert bits(f(q, v[0])) == bits(want) == bits(f(q, v[:1]))
    assert bits(f(q, np.broadcast_to(v[0], (6, 9)))) == bits(want)
    assert f(q.reshape(2, 3, 9), v[:3]).shape == (2, 3, 9)
    assert bits(f(q.reshape(2, 3, 9), v[0]).reshape(6, 9)) == bits(want)
    assert f(q[:, None], v[None]).shape == (6, 6, 9)


def test_empty_batches() -> None:
    f = make("arm")
    assert f(np.zeros((0, 9)), np.zeros((0, 9))).shape == (0, 9)
    assert f(np.zeros((0, 9)), np.zeros(9)).shape == (0, 9)
    assert f(np.zeros((3, 0, 9)), np.zeros(9)).shape == (3, 0, 9)
    assert make("arm", layout="batch_last")(np.zeros((9, 0)), np.zeros((9, 0))).shape == (9, 0)


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_out(layout: str) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, 20, 9))
    q, v = (q, v) if layout == "rows" else (q.T.copy(), v.T.copy())
    want = f(q, v)
    room = np.full((q.shape[0] * 2, q.shape[1] + 3), np.nan)
    outs = [np.empty_like(want), np.empty_like(want, order="F"), room[::2, 1:-2], np.empty(want.shape, ">f8")]
    for out in outs:
        assert f(q, v, out) is out and bits(out.astype(float)) == bits(want)
        assert f(q, v, out=out) is out and f(q, v=v, out=out) is out
    assert np.isnan(room[1::2]).all() and np.isnan(room[:, 0]).all() and np.isnan(room[:, -2:]).all()
    assert bits(f(q, v, None)) == bits(want) == bits(f(q, v, out=None))
    single = np.empty(9, np.float32)
    one = f(q[0], v[0], out=single) if layout == "rows" else f(q[:, 0], v[:, 0], out=single)
    assert one is single


def test_out_over_an_input() -> None:
    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 20, 9))
    want = f(q, v)
    for k in range(2):
        x = [q.copy(), v.copy()]
        assert bits(f(*x, out=x[k])) == bits(want)
        assert bits(f(*[y[3].copy() for y in (q, v)])) == bits(want[3])
    shared = np.concatenate([q, np.zeros((1, 9))])
    assert bits(f(shared[:-1], v, shared[1:])) == bits(want)
    one = q[0].copy()
    assert bits(f(one, v[0], one)) == bits(want[0])
    columns = np.hstack([q, np.zeros((20, 9))])
    assert bits(f(columns[:, :9], v, columns[:, 9:])) == bits(want)


def test_several_outs() -> None:
    f, (q, v) = make(), state(5)
    want = f(q, v)
    outs = tuple(np.empty_like(x) for x in want)
    got = f(q, v, out=outs)
    assert all(x is y for x, y in zip(got, outs)) and bits(flat(got, 5)) == bits(flat(want, 5))


def test_overlapping_outs_are_refused() -> None:
    f, (q, v) = make(), state(5)
    outs = [np.empty_like(x) for x in f(q, v)]
    outs[2] = outs[0][:, 0]
    with pytest.raises(InputError, match="two of the arrays in out overlap"):
        f(q, v, out=outs)
    with pytest.raises(InputError, match="out must be 3 arrays"):
        f(q, v, out=outs[:2])


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_nothing_to_compute(layout: str) -> None:
    g = Graph()
    x = g.input("x")
    ports = (Input("q", (0,), ()), Input("x", (1,), (x.edge >> 1,)))
    outputs = (Output("M", (0, 0), ()), Output("two", (2,), (g.edge(2.0), g.edge(0.0))))
    f = obtain("n", lambda: Program("none", g, ports, (), outputs), Spec(layout=layout), cache=False)
    shape = ((5, 0), (5, 1)) if layout == "rows" else ((0, 5), (1, 5))
    m, two = f(*(np.zeros(s) for s in shape))
    assert m.shape == ((5, 0, 0) if layout == "rows" else (0, 5))
    assert (two == (np.array([2.0, 0.0]) if layout == "rows" else np.array([[2.0], [0.0]]))).all()
    assert f(np.zeros(0), np.zeros(1)).two.tolist() == [2.0, 0.0]
    h = obtain("c", lambda: Program("c", g, (), (), outputs[1:]), Spec(layout=layout), cache=False)
    assert h().tolist() == [2.0, 0.0] and h(out=np.ones(2)).tolist() == [2.0, 0.0]


X = np.zeros((4, 9))
WRONG = [
    (lambda f: f(X), "missing 'v'"),
    (lambda f: f(), "missing 'q', 'v'"),
    (lambda f: f(X, X, X, 1, 5), "at most 4"),
    (lambda f: f(X, X, q=X), "'q' twice"),
    (lambda f: f(X, X, speed=1), "no argument 'speed'"),
    (lambda f: f(X[:, :8], X), r"q has shape \(4, 8\); it must be \(..., 9\)"),
    (lambda f: f(X, 1.0), r"v has shape \(\)"),
    (lambda f: f(X[:3], X), "do not agree"),
    (lambda f: f(X * 1j, X), "q must hold real numbers, it holds values of type complex128"),
    (lambda f: f(X, None), "v must hold real numbers, it holds None"),
    (lambda f: f("arm", X), "q must hold real"),
    (lambda f: f([[1, 2], [3]], X), "q is no array|q must hold"),
    (lambda f: f(X, X, out=[1]), "out must be a NumPy array, not list"),
    (lambda f: f(X, X, out=np.zeros(9)), r"out has shape \(9,\); the result has shape \(4, 9\)"),
    (lambda f: f(X, X, out=np.zeros((4, 9), int)), "out must hold floating-point"),
    (lambda f: f(X, X, out=views(X)["frozen"]), "read-only"),
    (lambda f: f(X, X, threads=0), "threads"),
    (lambda f: f(X, X, threads="all"), "threads"),
]


@pytest.mark.parametrize("call, sentence", WRONG)
def test_wrong_arguments(call: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(make("arm"))  # type: ignore[operator]


def test_wrong_spec() -> None:
    with pytest.raises(InputError, match="dtype"):
        Spec(dtype="float16")
    with pytest.raises(InputError, match="layout"):
        Spec(layout="columns")
    with pytest.raises(EmitError, match="order"):
        lower(arm(), order="best")  # type: ignore[arg-type]


def test_extra_keywords_go_to_the_hook() -> None:
    f = obtain("e", arm, Spec(), cache=False, extra=lambda args, kwargs: (len(args), sorted(kwargs)))
    assert f(X, X, f_ext={}) == (2, ["f_ext"]) and f.fast(X, X, f_ext=1) == (2, ["f_ext"])  # type: ignore[misc]
    assert f(X, X).shape == (4, 9)


def test_pickling_needs_a_recipe() -> None:
    f = obtain("e", arm, Spec(), cache=False)
    with pytest.raises(TypeError, match=r"drevo\.compile"):
        pickle.dumps(f)
    f.recipe = (Fraction, (1, 2))
    assert pickle.loads(pickle.dumps(f)) == Fraction(1, 2)  # noqa: S301


# -- nothing wrong is silent -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("where", [0, 7, 19])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_not_finite(layout: str, where: int, value: float) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, 20, 9))
    q[where, 4] = value
    given = (q, v) if layout == "rows" else (q.T.copy(), v.T.copy())
    with pytest.raises(NumericsError, match=f"arm: (q|tau).4.* in row {where} is"):
        f(*given)
    with pytest.raises(NumericsError, match=r"arm: (q|tau).4. is"):
        f(q[where], v[where])
    out = np.empty_like(given[0])
    with pytest.raises(NumericsError):
        f(*given, out=out)
    loose = make("arm", layout=layout, check=False)
    assert not np.isfinite(loose(*given)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quaternions_must_be_unit(dtype: str) -> None:
    f, (q, v) = make(dtype=dtype), state(20, 3, dtype)
    f(q * (1 + 5e-7), v)
    q[11] *= 1 + 2e-6
    with pytest.raises(NumericsError, match=r"the quaternion q\[0:4\] in row 11 has length 1.00000"):
        f(q, v)
    with pytest.raises(NumericsError, match=r"q\[0:4\] has length 1.00000"):
        f(q[11], v[11])
    q[3] = np.nan
    with pytest.raises(NumericsError, match=r"q\[0\] in row 3 is nan"):
        f(q, v)


def test_a_bad_call_leaves_no_reference() -> None:
    import sys

    f, (q, v) = make("arm"), np.full((2, 9), np.nan)
    before = sys.getrefcount(q), sys.getrefcount(f.fast)
    for _ in range(50):
        with pytest.raises(NumericsError):
            f.fast(q, v)  # type: ignore[misc]
    del _
    assert abs(sys.getrefcount(q) - before[0]) <= 2 and abs(sys.getrefcount(f.fast) - before[1]) <= 2


def test_calls_leak_nothing() -> None:
    import sys

    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 20, 9))
    out = np.empty_like(q)
    counts = [sys.getrefcount(x) for x in (q, v, out)]
    for _ in range(1000):
        f(q, v, out)
        f(q, v, out=out)
        r = f(q, v)
    assert sys.getrefcount(r) == 2
    assert [sys.getrefcount(x) for x in (q, v, out)] == counts


# -- threads -----------------------------------------------------------------------------------------------


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.runtime import function

    monkeypatch.setattr(function, "_THREADED", 0.0)
    for layout in ("rows", "batch_last"):
        f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, 5003, 9))
        q, v = (q, v) if layout == "rows" else (q.T.copy(), v.T.copy())
        assert bits(f(q, v, threads=3)) == bits(f(q, v))
    q[4, 4000] = np.nan
    with pytest.raises(NumericsError, match="row 4000"):
        f(q, v, threads=3)


def test_many_threads_call_and_compile() -> None:
    q, v = np.random.default_rng(1).normal(size=(2, 300, 9))
    want, seen = bits(make("arm")(q, v)), []

    def work(k: int) -> None:
        f = make("arm") if k % 2 else obtain(f"t{k}", arm, Spec(), cache=False)
        seen.extend(bits(f(q, v)) == want for _ in range(30))

    jobs = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for j in jobs:
        j.start()
    for j in jobs:
        j.join()
    assert len(seen) == 180 and all(seen)


# -- sin and cos -------------------------------------------------------------------------------------------


def trig(dtype: str, target: llvm.Target | None = None) -> Function:
    g = Graph()
    x = g.input("x")
    program = Program(
        "trig",
        g,
        (Input("x", (1,), (x.edge >> 1,)),),
        (),
        (Output("y", (2,), (g.edge(x.sin()), g.edge(x.cos()))),),
    )
    spec = Spec(dtype=dtype, check=False)
    return (
        obtain("trig", lambda: program, spec, cache=False)
        if target is None
        else variant(program, target, **spec_of(spec))
    )


def spec_of(spec: Spec) -> dict[str, object]:
    return {"dtype": spec.dtype, "check": spec.check}


@pytest.mark.parametrize("dtype, fma, tolerance", [
    ("float64", True, 2e-16), ("float64", False, 2e-16), ("float32", True, 1.3e-7), ("float32", False, 1.3e-7),
])  # fmt: skip
def test_sin_and_cos(dtype: str, fma: bool, tolerance: float) -> None:
    scalar = "double" if dtype == "float64" else "float"
    f = trig(dtype, llvm.Target(scalar, LANES * (1 if dtype == "float64" else 2), fma, check=False))
    top = limit(scalar, fma)
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-r, r, 3000) for r in (0.8, 10.0, 1e4, top)] + [np.arange(-99, 99) * math.pi / 2]
    )
    x = x[np.abs(x) <= top].astype(dtype)
    y = f(x[:, None])
    exact = x.astype(np.longdouble)
    assert np.abs(y[:, 0] - np.sin(exact)).max() < tolerance and np.abs(y[:, 1] - np.cos(exact)).max() < tolerance
    assert np.isnan(
        f(np.array([[np.nextafter(top, np.inf, dtype=dtype)], [1e30], [np.nan], [np.inf]], dtype))
    ).all()
    assert bits(np.stack([f(x[k : k + 1]) for k in range(0, len(x), 50)])) == bits(y[::50])


# -- data about the code -----------------------------------------------------------------------------------


def test_what_a_function_says() -> None:
    f = make(packed=True)
    assert [n for n, _ in f.inputs] == ["q", "v"] and f.counts["trig"] == 3 and f.live[0] > 3
    rows, columns = f.pattern[1]
    assert list(zip(rows.tolist(), columns.tolist())) == [(0, 0), (1, 0), (1, 1), (2, 2)]
    assert f.outputs[0] == ("f", (12,)) and f.meta["robot"] == "none"


def test_parameters_without_values_are_folded() -> None:
    low = lower(every_op())
    assert [p.name for p in low.inputs] == ["q", "v"]
    assert [p.name for p in lower(every_op(), parameters=True).inputs] == ["q", "v", "parameters"]


def test_impossible_parameters_are_refused() -> None:
    p = every_op()
    zero = tuple(Parameter(x.name, x.node, 0.0) for x in p.parameters)
    broken = Program(p.name, p.graph, p.inputs, zero, p.outputs)
    with pytest.raises(EmitError, match="parameters alone became"):
        obtain("z", lambda: broken, Spec(), cache=False)


def test_the_text_is_a_valid_module_and_always_the_same() -> None:
    texts = set()
    for _ in range(2):
        low, target = lower(every_op()), llvm.Target(chunk=7)

        def entry(room: llvm.Arena, scratch: int, low: object = low, target: llvm.Target = target) -> str:
            return llvm_entry.entry(low, target, room, scratch, "rows", objects.Layout())  # type: ignore[arg-type]

        texts.add(llvm.emit(low, target, "rows", entry).ir)
    (ir,) = texts
    assert native.compile_text(ir, verify=True)[:4]
    with pytest.raises(EmitError, match="LLVM refused"):
        native.compile_text("define nonsense")


def test_code_is_freed_with_its_function() -> None:
    import gc
    import weakref

    f = obtain("gone", arm, Spec(), cache=False)
    code = weakref.ref(f._code)
    entry = f.fast
    del f
    gc.collect()
    assert code() is not None and entry(X, X).shape == (4, 9)  # type: ignore[misc]
    del entry
    gc.collect()
    assert code() is None


assert ctypes.sizeof(ctypes.c_void_p) == 8
