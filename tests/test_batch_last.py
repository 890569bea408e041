"""Batch-last arrays wherever they lie: a tile more, never another bit nor a number outside the result."""

from __future__ import annotations

import weakref
from itertools import product
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.codegen.entry.entry import ALIGNED_RESULT_BYTES
from drevo.codegen.llvm.ports import BEYOND, CACHE_LINE_BYTES, STAGED
from drevo.codegen.llvm.rows import FOLD
from drevo.errors import NumericsError

Array = np.ndarray[Any, Any]


def laid(x: Array, offset: int, margin: int) -> tuple[Array, Array]:
    """A copy that begins `offset` items into a cache line, and all that is around it."""
    line = 64 // x.itemsize
    wide = -(-(x.shape[1] + margin) // line) * line  # rows of whole lines
    room = np.full(wide * x.shape[0] + 3 * line, 7.0, x.dtype)
    first = (-room.ctypes.data // x.itemsize) % line + line + offset
    view = room[first : first + wide * x.shape[0]].reshape(x.shape[0], wide)[:, : x.shape[1]]
    view[...] = x
    return view, room


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_place_in_a_cache_line(dtype: str) -> None:
    f = drevo.compile(drevo.load("stanford"), "poses", layout="batch_last", packed=True, dtype=dtype)
    rng, lanes = np.random.default_rng(0), f.manifest.lanes
    for count, offset in product((lanes, 8 * lanes - 1, 8 * lanes, 8 * lanes + 1, 11 * lanes - 3), range(lanes)):
        q = rng.normal(size=(6, count)).astype(dtype)
        want = np.stack([f(np.ascontiguousarray(x)) for x in q.T], axis=1)
        given, _ = laid(q, (3 * offset) % lanes, 0)
        out, room = laid(np.zeros_like(want), offset, lanes)
        assert f(given, out=out) is out and np.array_equal(out, want)
        out[...] = 7.0
        assert (room == 7.0).all()


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_large_results_begin_with_a_cache_line(layout: str) -> None:
    """Whichever way computes them; each keeps its memory, and gives it back when it is gone."""
    f = drevo.compile(drevo.load("stanford"), ["poses", "mass_matrix"], layout=layout, packed=True)
    q = np.random.default_rng(3).normal(size=(6, 100))
    q = q if layout == "batch_last" else np.ascontiguousarray(q.T)
    want = [x.copy() for x in f.general((q,), {})]
    for found in (f.general((q,), {}), f(q), f.fast(q), f.fast(q)):
        for x, right in zip(found, want):
            assert x.ctypes.data % CACHE_LINE_BYTES == 0 and x.nbytes >= ALIGNED_RESULT_BYTES
            assert np.array_equal(x, right) and x.flags.c_contiguous and x.flags.writeable
    one = f.fast(q)[0]
    home = weakref.ref(one.base)
    again = [f.fast(q) for _ in range(3)]
    assert np.array_equal(one, want[0]) and len({x.ctypes.data for x, _ in again} | {one.ctypes.data}) == 4
    del one
    assert home() is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("packed", [True, False])
def test_rows_that_fold_and_results_that_no_cache_holds(dtype: str, packed: bool) -> None:
    """Over the stage: the same bits as of few samples, wherever the result begins, and nothing beside it."""
    names = ["poses", "mass_matrix"]
    f = drevo.compile(drevo.load("stanford"), names, layout="batch_last", packed=packed, dtype=dtype)
    rng, fold = np.random.default_rng(1), FOLD // f.dtype.itemsize
    sizes = [len(x) for x in f(np.zeros((6, 1), dtype))]
    large = BEYOND // f.dtype.itemsize // max(sizes)
    assert max(sizes) > STAGED
    for count, offset in product((fold, 3 * fold, large + 1, -(-large // 64) * 64), (0, 2, 5)):
        q = rng.normal(size=(6, count)).astype(dtype)
        want = [np.concatenate(x, axis=1) for x in zip(*(f(x) for x in np.array_split(q, count // 50, axis=1)))]
        rooms = [np.full(n * count + 64, 7.0, dtype) for n in sizes]
        out = tuple(r[16 + offset : 16 + offset + n * count].reshape(n, count) for r, n in zip(rooms, sizes))
        f(q, out=out)
        for x, right, room in zip(out, want, rooms):
            assert np.array_equal(x, right)
            x[...] = 7.0
            assert (room == 7.0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_no_cache_holds(dtype: str) -> None:
    names = ["poses", "gravity", "kinetic_energy"]
    f = drevo.compile(drevo.load("stanford"), names, packed=True, dtype=dtype)
    rng = np.random.default_rng(2)
    shapes = [x.shape[1:] for x in f(np.zeros((1, 6), dtype), np.zeros((1, 6), dtype))]
    sizes = [int(np.prod(x)) for x in shapes]
    least = BEYOND // f.dtype.itemsize // sizes[0]  # of the poses; gravity stays where it is
    for count, offset in product((least + 1, least + 77), (0, 1, 6)):
        q, v = rng.normal(size=(2, count, 6)).astype(dtype)
        want = [
            np.concatenate(x) for x in zip(*(f(*x) for x in zip(np.array_split(q, 60), np.array_split(v, 60))))
        ]
        rooms = [np.full(n * count + 64, 7.0, dtype) for n in sizes]
        out = tuple(
            r[16 + offset : 16 + offset + n * count].reshape(count, *s) for r, n, s in zip(rooms, sizes, shapes)
        )
        f(q, v, out=out, threads=1 + offset % 2)
        for x, right, room in zip(out, want, rooms):
            assert np.array_equal(x, right)
            x[...] = 7.0
            assert (room == 7.0).all()


def test_a_bad_sample_of_a_staged_run_is_named() -> None:
    f = drevo.compile(drevo.load("stanford"), "poses", layout="batch_last")
    q = np.zeros((6, 1024))
    q[2, 700] = np.nan
    with pytest.raises(drevo.NumericsError, match="700"):
        f(q)


SETS: tuple[list[str], ...] = (
    ["poses", "mass_matrix", "gravity"],
    ["inverse_dynamics", "mass_matrix", "kinetic_energy", "momentum"],
    ["forward_dynamics", "inverse_mass_matrix"],
    ["inverse_dynamics_derivatives"],
)


@pytest.mark.parametrize("names", SETS, ids=lambda x: x[0])
@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_everything_that_is_not_finite_is_found(names: list[str], layout: str) -> None:
    """Results that enter others are not tested themselves: what is not finite in them shows in the others."""
    robot, rng = drevo.load("scara"), np.random.default_rng(0)
    sure, loose = (drevo.compile(robot, names, layout=layout, check=check) for check in (True, False))
    seen = {True: 0, False: 0}
    for count in (1, 19):
        for _ in range(100):
            args = [rng.normal(size=(robot.nq, count)) for _ in sure.inputs]
            x = args[rng.integers(len(args))]
            x[rng.integers(robot.nq), rng.integers(count)] = rng.choice(
                [np.nan, -np.inf, 1e13, 1e60, 1e154, 1e200, 1e300]
            )
            args = [x if count > 1 else x[:, 0].copy() for x in args]
            args = [np.ascontiguousarray(x.T) for x in args] if layout == "rows" else args
            want = loose(*args)
            fine = all(np.isfinite(x).all() for x in want)
            seen[fine] += 1
            if fine:
                assert all(np.array_equal(x, y) for x, y in zip(sure(*args), want, strict=True))
                continue
            with pytest.raises(drevo.NumericsError):
                sure(*args)
    assert min(seen.values()) > 0


def test_two_tiles_at_once_are_the_bits_of_one_sample_at_a_time() -> None:
    """Wherever the pairs of tiles begin and end, with angles of many turns; and a refusal names its sample."""
    robot, rng, most = drevo.load("three-link"), np.random.default_rng(4), 125
    f, one = (drevo.compile(robot, "forward_dynamics", layout=x) for x in ("batch_last", "rows"))
    q, v, tau = rng.normal(size=(3, most, robot.nv))
    q[5::7, 1] += 1e7
    want = np.stack([one(*x) for x in zip(q, v, tau)]).T
    for count in (15, 16, 95, 96, 97, 103, 104, 111, 112, most):
        for shift in range(0, 8, 3):  # where in a line of the cache the rows begin
            out = np.empty((robot.nv, most + 11))[:, shift : shift + count]
            f(*(np.ascontiguousarray(x[:count].T) for x in (q, v, tau)), out=out)
            assert out.tobytes() == np.ascontiguousarray(want[:, :count]).tobytes()
    for bad in (0, 7, 8, 15, 20, 97, 124):
        wrong = v.T.copy()
        wrong[0, bad] = np.nan
        with pytest.raises(NumericsError, match=rf"{bad}\b"):
            f(q.T.copy(), wrong, tau.T.copy())
