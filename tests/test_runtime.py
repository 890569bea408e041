"""Compiled functions: the same bits on every path, by every build, in every thread."""

from __future__ import annotations

import ctypes
import math
import pickle
import threading

import numpy as np
import pytest
from program_cases import BATCHES, HOST, X, arm, bits, every_op, flat, make, state, variant

from drevo.codegen.call.function import Function, Spec, obtain
from drevo.codegen.entry import entry as llvm_entry
from drevo.codegen.entry import layout as objects
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.codegen.llvm import module as llvm
from drevo.codegen.lower.lower import lower
from drevo.codegen.lower.steps import largest_angle
from drevo.codegen.store import native
from drevo.codegen.store.build import target_of
from drevo.errors import EmitError, NumericsError

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
    again = pickle.loads(pickle.dumps(r))  # noqa: S301
    assert isinstance(again, tuple) and again._fields == r._fields and bits(again.f) == bits(r.f)
    assert "H=" in repr(r)


@pytest.mark.parametrize("count", BATCHES)
def test_parts_of_a_batch_have_the_same_bits(count: int) -> None:
    q, v = state(1000)
    whole = flat(make()(q, v), 1000)
    assert bits(flat(make()(q[-count:], v[-count:]), count)) == bits(whole[-count:])


VARIANTS = {
    "two lanes": HOST._replace(lanes=2),
    "four lanes": HOST._replace(lanes=4),
    "chunks": HOST._replace(chunk=5),
    "tiny chunks": HOST._replace(chunk=1),
    "no splat": HOST._replace(splat=False),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("kind", ["every", "arm"])
def test_bits_do_not_depend_on_width_or_chunks(name: str, kind: str) -> None:
    program = arm() if kind == "arm" else every_op()
    f = variant(program, VARIANTS[name])
    q, v = state(37) if kind == "every" else np.random.default_rng(1).normal(size=(2, 37, 9))
    assert bits(flat(f(q, v), 37)) == bits(flat(make(kind)(q, v), 37))
    assert bits(flat(f(q[5], v[5]), 1)) == bits(flat(make(kind)(q[5], v[5]), 1))


def test_without_fma() -> None:
    f, (q, v) = variant(every_op(), HOST._replace(fma=False)), state(50)
    want = evaluate(every_op(), {"q": q, "v": v})
    np.testing.assert_allclose(flat(f(q, v), 50), flat(tuple(want.values()), 50), rtol=0, atol=1e-14)


def test_without_the_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    q, v = state(21)
    want = flat(make()(q, v), 21)
    monkeypatch.setattr(native, "layout", lambda: None)
    plain = obtain("x", every_op, Spec(), cache=False)
    assert plain.backend == "ctypes" and bits(flat(plain(q, v), 21)) == bits(want)


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> bytes:
        raise EmitError("LLVM refused the generated code: no reason")

    q, v = state(3)
    make()(q, v)  # with its entry
    monkeypatch.setattr(native, "compile_text", fail)
    with pytest.raises(EmitError, match="no reason"):
        obtain("x", every_op, Spec(), cache=False)(q, v)


def test_layout_of_objects_is_verified() -> None:
    found = native.layout()
    assert found is not None
    assert not native._as_seen(objects.ObjectLayout(found.base + 8, found.type), np.zeros(3))


def test_results_with_names_where_a_tuple_holds_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found, (q, v) = native.layout(), state(3)
    assert found is not None and found.bare == (tuple.__basicsize__ == object.__basicsize__ + 8)
    want = make()(q, v)
    monkeypatch.setattr(native, "layout", lambda: found._replace(bare=False))
    got = obtain("x", every_op, Spec(), cache=False)(q, v)
    assert type(got).__name__ == type(want).__name__ and got._fields == want._fields
    assert bits(flat(got, 3)) == bits(flat(want, 3))


# -- threads -----------------------------------------------------------------------------------------------


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.codegen.call import function

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
    if fma and not HOST.fma:
        pytest.skip("this processor has no multiply-adds")
    scalar = "double" if dtype == "float64" else "float"
    f = trig(dtype, target_of(Spec(dtype=dtype, check=False))._replace(fma=fma))
    top = largest_angle(scalar, fma)
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


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_below_the_least_normal_one_are_zero_in_kernels_alone(dtype: str) -> None:
    """They would take a hundred times as long: one sample and batches, of every layout and on every way."""
    g = Graph()
    x, y = g.input("x"), g.input("y")
    ports = tuple(Input(n, (1,), (e.edge >> 1,)) for n, e in (("x", x), ("y", y)))
    program = Program("product", g, ports, (), (Output("z", (1,), (g.edge(x * y),)),))
    least = float(np.finfo(dtype).tiny)
    pairs = np.array([[0.5 * least, 1.0], [least, 0.5], [least**0.5, 0.5 * least**0.5], [least, 1.0]], dtype)
    columns = np.tile(pairs, (10, 1))
    for layout in ("rows", "batch_last"):
        f = obtain("product", lambda: program, Spec(dtype=dtype, layout=layout), cache=False)
        given = [z[:, None] if layout == "rows" else z[None] for z in columns.T.copy()]
        ways = [np.ravel(f(*given)), np.ravel(f.general(given, {})), [f(*row[:, None])[0] for row in columns]]
        for found in ways:
            assert np.array_equal(found, np.tile(np.array([0, 0, 0, least], dtype), 10))
    assert (pairs[1] * np.array([0.5, 1.0], dtype)).all()  # outside nothing has changed


# -- data about the code -----------------------------------------------------------------------------------


def test_what_a_function_says() -> None:
    f = make(packed=True)
    assert [n for n, _ in f.inputs] == ["q", "v"] and f.counts["trig"] == 3
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
        low, target = lower(every_op()), HOST._replace(chunk=7)
        made = llvm.emit_parts(low, target, "rows")
        shape = llvm_entry.entry_shape(low.inputs, low.outputs, "double", True, True, made.scalar_scratch)
        texts.add(
            (llvm_entry.entry_text(shape, objects.ObjectLayout()), *(text() for text in made.texts.values()))
        )
    (found,) = texts
    assert all(native.compile_text(ir)[:4] for ir in found)
    with pytest.raises(EmitError, match="LLVM refused"):
        native.compile_text("define nonsense")


def test_code_is_freed_with_its_function() -> None:
    import gc
    import weakref

    f = obtain("gone", arm, Spec(), cache=False)
    code = weakref.ref(f.code)
    entry = f.fast
    del f
    gc.collect()
    assert code() is not None and entry(X, X).shape == (4, 9)  # type: ignore[misc]
    del entry
    gc.collect()
    assert code() is None


assert ctypes.sizeof(ctypes.c_void_p) == 8
