"""The builder of LLVM text: what is written as loops and branches runs as such."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from drevo.codegen.llvm.ir import F64, I64, PTR, Module, literal
from drevo.codegen.llvm.math import Lanes, add_atan2, add_sincos
from drevo.codegen.store import native


def run(m: Module, name: str, result: type, *given: object) -> float:
    """Calls a function of a module: integers, floats and addresses."""
    kinds = [ctypes.c_double if isinstance(x, float) else ctypes.c_int64 for x in given]
    code = native.Code(native.compile_text(m.text()))
    return float(ctypes.CFUNCTYPE(result, *kinds)(code.address(name))(*given))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_a_loop_carries_its_values_and_may_not_run_at_all(n: int) -> None:
    m = Module()
    f = m.function("dot", F64, public=True, x=PTR, n=I64)
    with f.loop(f.n, total=f.zero(F64)) as s:
        x = f.x.at(s.i).load()
        s.total = s.total + x * x
    f.ret(s.total)
    x = np.arange(1.0, 8.0)
    assert run(m, "dot", ctypes.c_double, x.ctypes.data, n) == (x[:n] ** 2).sum()


@pytest.mark.parametrize("limit", [1.0, 10.0, 1e9])
def test_a_loop_without_end_is_left_with_the_values_of_that_moment(limit: float) -> None:
    m = Module()
    f = m.function("doublings", I64, public=True, limit=F64)
    with f.loop(x=f.const(F64, 1.0)) as s:
        s.leave(s.x >= f.limit)
        s.x = s.x * 2.0
    f.ret(s.x.cast("fptosi", I64))
    assert run(m, "doublings", ctypes.c_int64, limit) == 2 ** math.ceil(math.log2(limit))


@pytest.mark.parametrize(("x", "size"), [(-3.0, 3.0), (0.0, 0.0), (2.5, 2.5)])
def test_a_branch_may_return(x: float, size: float) -> None:
    m = Module()
    f = m.function("size", F64, public=True, x=F64)
    with f.when(f.x < 0.0):
        f.ret(f.zero(F64) - f.x)
    f.ret(f.x)
    assert run(m, "size", ctypes.c_double, x) == size


@pytest.mark.parametrize("x", [-3.0, 2.5])
def test_one_of_two_branches_gives_the_value(x: float) -> None:
    m = Module()
    f = m.function("size", F64, public=True, x=F64)
    f.ret(f.choose(f.x < 0.0, lambda: f.zero(F64) - f.x, lambda: f.x))
    assert run(m, "size", ctypes.c_double, x) == abs(x)


def test_what_does_not_hold_goes_to_a_label_that_stands_later() -> None:
    m = Module()
    f = m.function("checked", I64, public=True, x=I64)
    f.require(f.x > 0, "refused")
    f.ret(f.x)
    f.label("refused")
    f.ret(f.const(I64, -1))
    assert [run(m, "checked", ctypes.c_int64, x) for x in (5, -5)] == [5, -1]


def test_loops_nest_and_skip_by_a_condition_within() -> None:
    """The pairs i < j of a triangle, in steps of two outside."""
    m = Module()
    f = m.function("pairs", I64, public=True, n=I64)
    place = f.alloca(I64)
    place.store(f.zero(I64))
    with f.loop(f.n, step=2) as i, f.loop(f.n) as j, f.when(i.i < j.i):
        place.store(place.load(I64) + 1)
    f.ret(place.load(I64))
    assert run(m, "pairs", ctypes.c_int64, 9) == sum(i < j for i in range(0, 9, 2) for j in range(9))


def test_a_declaration_stands_once() -> None:
    m = Module()
    for _ in range(2):
        m.declare(F64, "llvm.sqrt.f64", F64)
    f = m.function("root", F64, public=True, x=F64)
    f.ret(f.call(F64, "llvm.sqrt.f64", f.x))
    assert m.text().count("declare") == 1
    assert run(m, "root", ctypes.c_double, 2.0) == math.sqrt(2.0)


def test_a_loop_takes_no_value_that_it_does_not_carry() -> None:
    f = Module().function("wrong", n=I64)
    with pytest.raises(AttributeError, match="does not carry total"), f.loop(f.n) as s:
        s.total = f.zero(F64)


def test_literals_are_exact() -> None:
    assert literal(0.1) == "0x3FB999999999999A"
    assert literal(0.1, "float") == "0x3FB99999A0000000"


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_counts_down_too(n: int) -> None:
    m = Module()
    f = m.function("digits", I64, public=True, n=I64)
    with f.loop(-1, start=f.n - 1, step=-1, x=f.zero(I64)) as s:
        s.x = s.x * 10 + s.i
    f.ret(s.x)
    assert run(m, "digits", ctypes.c_int64, n) == float("".join(map(str, reversed(range(n)))) or 0)


@pytest.mark.parametrize(("index", "value"), [(0, 10), (1, 20), (2, 30), (7, 10), (-1, 10)])
def test_a_switch_takes_one_branch_and_the_first_by_default(index: int, value: int) -> None:
    m = Module()
    f = m.function("pick", I64, public=True, index=I64)
    place = f.alloca(I64)
    f.switch(
        f.index, [lambda k=k: place.store(f.const(I64, k)) for k in (10, 20)] + [lambda: f.ret(f.const(I64, 30))]
    )
    f.ret(place.load(I64))
    assert run(m, "pick", ctypes.c_int64, index) == value


def test_several_values_are_returned_as_one_and_what_is_called_is_declared() -> None:
    m = Module()
    both = m.function("both", "{double, double}", x=F64)
    both.ret(both.struct(both.call(F64, "llvm.sqrt.f64", both.x), both.x * 10.0))
    f = m.function("sum", F64, public=True, x=F64)
    pair = f.call("{double, double}", "both", f.x)
    f.ret(pair.part(0) + pair.part(1))
    assert run(m, "sum", ctypes.c_double, 9.0) == 93.0


@pytest.mark.parametrize("scalar", ["double", "float"])
def test_sines_and_arctangents_stand_in_a_module_once_and_only_if_called(scalar: str) -> None:
    m, l = Module(), Lanes(scalar, 4)
    assert [f(m, l, True) for f in (add_sincos, add_atan2, add_sincos)] == ["sincos_4", "atan2_4", "sincos_4"]
    assert list(m.functions) == ["sincos_4", "atan2_4"]
    assert native.compile_text(m.text())
