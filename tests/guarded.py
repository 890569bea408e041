"""Memory between two pages that nobody may touch: what reads or writes beyond an array ends the process.

`python guarded.py NAME` runs the function of that name, whose faults are then not the test's own.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from math import prod
from typing import Any

import numpy as np
import program_cases as cases

import drevo
from drevo.codegen.call.function import Function
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Program
from drevo.codegen.llvm import driver as llvm_driver
from drevo.codegen.llvm import rows as llvm_columns
from drevo.codegen.store import native
from drevo.codegen.store.build import LAYOUTS, Spec, target_of
from drevo.constraint.kinds import Contact
from drevo.control import linearise
from drevo.model.quantities import CATALOGUE

PAGE, LINE, MARK = mmap.PAGESIZE, 64, 0xA5
_LIBC = ctypes.CDLL(None, use_errno=True)
_PROTECT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(("mprotect", _LIBC))


class Guarded:
    """A block of `size` bytes that ends where a forbidden page begins, or, `first`, begins where one ends.

    align: of its address; what lies around it on its own pages keeps a mark.
    """

    def __init__(self, size: int, first: bool, align: int = 8) -> None:
        room = -(-max(1, size) // PAGE) * PAGE
        self.memory = mmap.mmap(-1, room + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for page in (base, base + PAGE + room):
            if _PROTECT(page, PAGE, 0):
                raise OSError(ctypes.get_errno(), "no page can be forbidden")
        ctypes.memset(base + PAGE, MARK, room)
        self.start, self.size = 0 if first else room - -(-size // align) * align, size
        self.address = base + PAGE + self.start

    @property
    def all(self) -> Any:
        return np.frombuffer(self.memory, np.uint8, len(self.memory) - 2 * PAGE, PAGE)

    def array(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> Any:
        return np.ndarray(shape, dtype, self.all, self.start, strides)

    def kept(self) -> bool:
        """Whether nothing around it was written."""
        return bool((self.all[: self.start] == MARK).all() and (self.all[self.start + self.size :] == MARK).all())


# -- kernels ------------------------------------------------------------------------------------------------


def batch(f: Function, inputs: Sequence[Any], first: bool, gap: int) -> list[bytes]:
    """Results of the batch kernel, which has its arrays and its working memory between forbidden pages.

    gap: numbers between rows; they, too, must stay as they are.
    """
    rows, item = f.layout == "rows", f.dtype.itemsize
    count = inputs[0].shape[0 if rows else 1]
    blocks, arrays = list[Guarded](), list[Any]()
    for n in (prod(s) for _, s in (*f.inputs, *f.outputs)):
        shape = (count, n) if rows else (n, count)
        step = shape[1] + gap
        blocks.append(Guarded(max(0, shape[0] * step - gap) * item, first))  # a packed result may be empty
        arrays.append(blocks[-1].array(shape, f.dtype, (step * item, item) if prod(shape) else None))
    for x, given in zip(arrays, inputs):
        x[...] = given
    before, arena = [b.all.copy() for b in blocks], Guarded(f.manifest.arena, first, LINE)
    strides = [x.strides[0] for x in arrays]
    f.code.drive([b.address for b in blocks], strides, count, arena.address, count)  # type: ignore[union-attr]
    assert arena.kept(), "beside the working memory"
    for k, (block, old, x) in enumerate(zip(blocks, before, arrays)):
        if k >= len(inputs):
            np.ndarray(x.shape, x.dtype, old, block.start, x.strides if x.size else None)[...] = x
        assert (old == block.all).all(), "beside the results"
    return [x.tobytes() for x in arrays[len(inputs) :]]


def single(f: Function, inputs: Sequence[Any], first: bool) -> list[bytes]:
    """The same of the kernel for one sample."""
    blocks = [Guarded(prod(s) * f.dtype.itemsize, first) for _, s in (*f.inputs, *f.outputs)]
    arrays = [b.array((b.size // f.dtype.itemsize,), f.dtype) for b in blocks]
    for x, given in zip(arrays, inputs):
        x[...] = given.reshape(-1)
    room = Guarded(f.manifest.scratch, first, LINE)
    f.code.single([b.address for b in blocks], room.address)  # type: ignore[union-attr]
    assert room.kept() and all(b.kept() for b in blocks), "beside the results"
    return [x.tobytes() for x in arrays[len(inputs) :]]


def samples(f: Function, count: int) -> list[Any]:
    """Arguments of a batch in the layout of the function; quaternions of unit length."""
    rng = np.random.default_rng(count)
    found = [rng.uniform(-1.0, 1.0, (count, prod(s))) for _, s in f.inputs]
    for i, columns in f.manifest.units:
        found[i][:, columns] /= np.linalg.norm(found[i][:, columns], axis=1, keepdims=True)
    return [np.ascontiguousarray(x if f.layout == "rows" else x.T, f.dtype) for x in found]


def check(f: Function, counts: Sequence[int] = ()) -> None:
    """One sample, and batches of every remainder: everywhere the same bits, and nothing beside them."""
    told, w = f"{f!r}, {f.layout}", f.manifest.lanes
    if f.code.has("single"):  # type: ignore[union-attr]
        one = samples(f, 1)
        assert single(f, one, True) == single(f, one, False), told
    for count in counts or range(1, 2 * w + 2):
        given = samples(f, count)
        print(told, count, flush=True)  # what is said last is at fault
        made = [batch(f, given, *how) for how in product((True, False), (0, 3))]
        assert all(x == made[0] for x in made), told


def wide() -> Program:
    """A long result beside one that is a single number."""
    g = Graph()
    x = [g.input(f"x[{i}]") for i in range(3)]
    long = [x[0] * (k + 1.0) + x[1] for k in range(300)]
    outputs = (Output("y", (300,), tuple(g.edge(e) for e in long)), Output("s", (), (g.edge(x[1] * x[2]),)))
    return Program("wide", g, (Input("x", (3,), tuple(e.edge >> 1 for e in x)),), (), outputs)


def programs(dtype: str) -> None:
    """Small programs at two widths, and results that are taken for more than the caches hold."""
    for program, layout in product((cases.every_op(), wide()), LAYOUTS):
        beyond, given = program.name == "wide", {"dtype": dtype, "layout": layout}
        llvm_driver.BEYOND = llvm_columns.BEYOND = 0 if beyond else 1 << 40
        target = target_of(Spec(dtype=dtype))
        for lanes in (target.lanes, target.lanes // 2):
            f = cases.variant(program, target._replace(lanes=lanes), parameters=not beyond, **given)
            check(f, [*range(1, 2 * lanes + 2), 32 * lanes + 1] if beyond else ())


def robots(name: str = "biped", base: str = "floating") -> None:
    """Every quantity in every form, of a tree with quaternions."""
    robot = drevo.load(name, base=base)
    for q, x in CATALOGUE.items():
        link = {"link": robot.moving_links[-1]} if "link" in x.options else {}
        for layout, dtype, packed in product(LAYOUTS, ("float64", "float32"), (False, True)):
            check(drevo.compile(robot, q, layout=layout, dtype=dtype, packed=packed, cache=False, **link))


# -- everything that NumPy and the entry ask memory for ------------------------------------------------------


class _Allocator(ctypes.Structure):
    """PyDataMem_Handler of NumPy's C-API."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]  # fmt: skip


class Memory:
    """Blocks between forbidden pages in place of malloc's, for as long as the process lives."""

    def __init__(self, first: bool) -> None:
        void, size, api = ctypes.c_void_p, ctypes.c_size_t, native._array_api()
        capsule = ctypes.PYFUNCTYPE(ctypes.py_object)(api[305])()
        get = ctypes.PYFUNCTYPE(void, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        handler = _Allocator.from_address(get(capsule, b"mem_handler"))
        self.first, self.live = first, dict[int, Guarded]()
        self.freed = ctypes.CFUNCTYPE(None, void, void, size)(handler.free)
        self.grown = ctypes.CFUNCTYPE(void, void, void, size)(handler.realloc)
        self.kept = {
            "malloc": ctypes.CFUNCTYPE(void, void, size)(lambda _, n: self.made(n, 0xCB)),
            "calloc": ctypes.CFUNCTYPE(void, void, size, size)(lambda _, n, each: self.made(n * each, 0)),
            "realloc": ctypes.CFUNCTYPE(void, void, void, size)(self.moved),
            "free": ctypes.CFUNCTYPE(None, void, void, size)(self.ended),
            "PyMem_RawMalloc": ctypes.CFUNCTYPE(void, size)(lambda n: self.made(n, 0xCB)),
            "PyMem_RawFree": ctypes.CFUNCTYPE(None, void)(lambda at: self.ended(None, at, 0)),
        }
        for name, call in self.kept.items():
            at = ctypes.cast(call, void).value or 0
            if name in native._functions():
                native._functions()[name] = at  # of the entry
            else:
                setattr(handler, name, at)

    def made(self, size: int, value: int) -> int:
        block = Guarded(size, self.first, 8 if size % 16 else 16)
        ctypes.memset(block.address, value, size)
        self.live[block.address] = block
        return block.address

    def ended(self, context: Any, at: int | None, size: int) -> None:
        if at and self.live.pop(at, None) is None:
            self.freed(context, at, size)

    def moved(self, context: Any, at: int | None, size: int) -> int:
        old = self.live.get(at or 0)
        if old is None:
            return int(self.grown(context, at, size))
        new = self.made(size, 0)
        ctypes.memmove(new, at, min(size, old.size))
        self.ended(context, at, 0)
        return new


def calls(first: str) -> None:
    """What Python calls, and what runs motions, steps, streams and trajectories."""
    memory = Memory(first == "first")
    robot, rng = drevo.load("biped", base="floating"), np.random.default_rng(0)
    for count in (1, 2, 7, 8, 9, 33):
        q, v = robot.random(rng, shape=count), rng.normal(size=(count, robot.nv))
        entry(robot, q, v)
    b, full = drevo.Builder("leg"), {"mass": 1.0, "com": (0.1, 0.0, -0.2), "inertia": np.eye(3)}
    b.body("trunk", joint="free", **full).body("thigh", "trunk", axis=(0, 1, 0), **full)
    motions(b.body("shin", "thigh", axis=(0, 1, 0), origin=(0.0, 0.0, -0.4), **full).robot())
    ball = drevo.load(BALL)
    for law in ("soft", "coulomb"):
        step = drevo.compile(ball, "step", dt=0.002, law=law, repeat=3)
        for count in (1, 3, 9):
            q, v = np.tile(ball.neutral(), (count, 1)), rng.normal(size=(count, 6))
            q[:, 2] = 0.1
            step(q, v, np.zeros((count, 6)))
    drevo.stream(robot, "inverse_dynamics", samples=1000, threads=2)
    assert memory.live


def entry(robot: Any, q: Any, v: Any) -> None:
    """Samples, batches, arrays of other kinds, results of the caller's."""
    f = drevo.compile(robot, ["inverse_dynamics", "mass_matrix", "kinetic_energy"])
    want = [x.tobytes() for x in f(q, v, v)]
    for x in (q, q.tolist(), np.asfortranarray(q), np.repeat(q, 2, 0)[::2], q.astype(np.longdouble)):
        assert [y.tobytes() for y in f(x, v, v)] == want
    outs = tuple(np.empty(x.shape) for x in f(q, v, v))
    assert [x.tobytes() for x in f(q, v, v, outs)] == want
    assert [x.tobytes() for x in f(q, v, v, threads=2)] == want
    for k in range(len(q)):
        assert f(q[k], v[k], v[k])[0].tobytes() == f(q, v, v)[0][k].tobytes()
    robot.inverse_dynamics(q, v, v, f_ext={robot.link_names[-1]: np.zeros(6)})
    robot.poses(q)
    with suppress(drevo.DrevoError):
        f(q[:, 1:], v, v)


def motions(robot: Any) -> None:
    q, zero = robot.neutral(), np.zeros(robot.nv)
    drevo.simulate.simulate(robot, q, duration=0.02, dt=0.005)
    drevo.simulate.simulate(robot, q, duration=0.02)
    contact = Contact(robot.link_names[-1], (0.0, 0.0, 0.1))
    drevo.simulate.simulate(robot, q, duration=0.02, dt=0.005, constraints=[contact])
    for _ in range(2):
        linearise(robot, robot.neutral(), zero, zero, contacts=[contact])


BALL = """<mujoco><worldbody>
 <body pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="2"/></body></worldbody></mujoco>"""

if __name__ == "__main__":
    faulthandler.enable()
    failed = 1
    try:
        {f.__name__: f for f in (programs, robots, calls)}[sys.argv[1]](*sys.argv[2:])
        failed = 0
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(failed)  # what is freed later has nobody to free it
