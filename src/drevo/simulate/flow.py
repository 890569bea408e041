"""The right-hand side of the motion: (q, v, tau, t) -> (dq/dt, a), traced once and built beside the engine.

Quaternions are integrated as four numbers whose rate is q w / 2, with the forces taken at q / |q|: that field is
smooth and keeps |q|, so every tableau has its full order on it, and each step ends on a unit quaternion.
"""

from __future__ import annotations

import ctypes
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..check import require_regular
from ..compiler import digest, stamp
from ..errors import DrevoWarning, EmitError, InputError
from ..formalisms.quick import quick
from ..graph.node import Graph
from ..graph.program import Input, Output, Program
from ..mechanics.configuration import slices
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, sqrt
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.description import Joint, Model
from ..runtime import cache, native
from ..runtime.build import Spec, full_key
from ..trace import COMPUTE, GraphContext
from . import engine
from .control import Control

Array = np.ndarray[Any, Any]
Rates = Callable[[float, Array, Array], tuple[Array, Array]]
_HEAD = struct.Struct("<QQ")
_HALF = 0.5


# -- the program --------------------------------------------------------------------------------------------


def derivative(model: Model, control: Control | None, driven: bool) -> Program:
    """dq/dt and the accelerations; efforts are a law of control, an input, their sum, or nothing."""
    graph = Graph()
    tree = build_tree(model, context=GraphContext(graph))
    compute, prepare = quick(build_tree(model), "forward_dynamics", False)
    tree = prepare(tree) if prepare else tree
    sizes = {"q": model.nq, "v": model.nv, "tau": model.nv if driven else 0, "t": 1 if control else 0}
    given = {name: [graph.input(f"{name}[{i}]") for i in range(n)] for name, n in sizes.items()}
    q, v, tau = _united(model, given["q"]), given["v"], _efforts(model, control, given)
    a = (compute or COMPUTE["forward_dynamics"])(tree, q, v, tau)
    rates = _rates(model, given["q"], q, v)
    inputs = tuple(Input(n, (len(x),), tuple(e.edge >> 1 for e in x)) for n, x in given.items())
    outputs = tuple(Output(n, (len(x),), tuple(graph.edge(e) for e in x)) for n, x in (("dq", rates), ("a", a)))
    return Program("motion", graph, inputs, (), outputs, meta={"robot": model.name})


def _efforts(model: Model, control: Control | None, given: dict[str, list[Any]]) -> list[Scalar]:
    held = given["tau"] or [0.0] * model.nv
    if control is None:
        return held
    law = list(control(given["t"][0], given["q"], given["v"]))
    if len(law) != model.nv:
        raise InputError(f"the control law gives {len(law)} efforts; {model.name} has {model.nv} freedoms")
    return [x + y for x, y in zip(held, law)]


def _united(model: Model, q: Sequence[Scalar]) -> list[Scalar]:
    """q with its quaternions made unit."""
    out = list(q)
    for k in quaternions(model):
        size = 1.0 / sqrt(_dot(q[k : k + 4], q[k : k + 4]))
        out[k : k + 4] = [x * size for x in q[k : k + 4]]
    return out


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = a[0] * b[0]
    for x, y in zip(a[1:], b[1:]):
        total = total + x * y
    return total


def quaternions(model: Model) -> tuple[int, ...]:
    """Where in q the quaternions begin."""
    return tuple(s.stop - 4 for j, s, _ in slices(model) if j.nq >= 4)


def _rates(model: Model, raw: Sequence[Scalar], unit: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    out: list[Scalar] = []
    for j, sq, sv in slices(model):
        out += _joint_rates(j, raw[sq], unit[sq], v[sv])
    return out


def _joint_rates(j: Joint, raw: Sequence[Scalar], unit: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    if j.nq < 4:
        return list(v)
    turning = _quaternion_rate(raw[-4:], v[-3:])
    if j.nq == 4:
        return turning
    return [*(from_quaternion(*unit[-4:]) @ Vec(*v[:3])), *turning]


def _quaternion_rate(q: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
    """q w / 2 with w in body axes; (x, y, z, w)."""
    x, y, z, s = (_HALF * e for e in q)
    a, b, c = w
    return [s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a, -(x * a + y * b + z * c)]


# -- machine code -------------------------------------------------------------------------------------------


class Flow:
    """A derivative and its engine, loaded. `march` runs a job."""

    def __init__(self, model: Model, control: Control | None, driven: bool) -> None:
        self.model, self.timed = model, control is not None
        payload = _payload(model, control, driven)
        self.arena, self.scratch = _HEAD.unpack_from(payload)
        self._code = native.Code(payload[_HEAD.size :])
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._march, self._pursue = (kind(self._code.engine.get_function_address(n)) for n in ("march", "pursue"))

    def march(self, words: Array) -> int:
        """Runs a job without the GIL; the number of records that were made."""
        return int(self._march(words.ctypes.data))

    def pursue(self, words: Array) -> int:
        """The same with steps of adaptive length, one record each."""
        return int(self._pursue(words.ctypes.data))


def _payload(model: Model, control: Control | None, driven: bool) -> bytes:
    """Sizes and object code; those without a law of the user's own are kept on disk."""
    spec = Spec()
    made = [os.stat(Path(__file__).parent / n).st_mtime_ns for n in ("flow.py", "engine.py", "pursuit.py")]
    name = full_key("\n".join([stamp(), digest(model), f"motion {driven} {made}"]), spec)
    found = cache.read(name) if control is None else None
    if found is not None and len(found) > _HEAD.size:
        return found
    require_regular(model)
    payload = _build(derivative(model, control, driven))
    if control is None:
        cache.write(name, payload)
    return payload


def _build(program: Program) -> bytes:
    from ..emit import llvm
    from ..emit.lower import lower

    host = native.host()
    target = llvm.Target("double", host.bytes // 8, host.fma, host.splat)
    low = lower(program, fma=target.fma)

    def more(room: llvm.Arena, scratch: int) -> str:
        return engine.march(low, target)

    text = llvm.emit(low, target, "rows", more)
    return _HEAD.pack(text.arena.total, text.scalar_scratch) + native.compile_text(text.ir)


def flow(model: Model, control: Control | None, driven: bool) -> Flow | None:
    """The compiled motion; None, with a warning, where LLVM is missing or fails."""
    try:
        return Flow(model, control, driven)
    except (ImportError, OSError, EmitError) as error:
        if isinstance(error, EmitError) and not str(error).startswith("LLVM"):
            raise
        warnings.warn(f"motions run in Python, some hundred times slower: {error}", DrevoWarning, stacklevel=4)
        return None


def numeric_rates(
    model: Model,
    efforts: Callable[[float, Array, Array], Array],
    forward: Callable[[float, Array, Array, Array], Array],
) -> Rates:
    """The same right-hand side on arrays: efforts(t, q, v), and accelerations forward(t, q, v, tau)."""

    def rates(t: float, q: Array, v: Array) -> tuple[Array, Array]:
        unit = q.copy()
        for k in quaternions(model):
            unit[:, k : k + 4] /= np.linalg.norm(unit[:, k : k + 4], axis=-1, keepdims=True)
        a = forward(t, unit, v, efforts(t, unit, v))
        columns = _rates(model, list(q.T), list(unit.T), list(v.T))
        return np.stack(np.broadcast_arrays(*columns), -1), a

    return rates


def owners(model: Model) -> Iterator[tuple[str, slice, slice]]:
    """Joint names with their parts of q and v, for messages."""
    return ((j.name, sq, sv) for j, sq, sv in slices(model))


__all__ = ["Flow", "Rates", "derivative", "flow", "numeric_rates", "owners", "quaternions"]
