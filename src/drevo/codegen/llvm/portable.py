"""One function of pointers, everything inlined, no call and no table left: what any processor's linker takes.

NAME(inputs.., outputs..) computes one sample; NAME_batch(.., n) samples one after another, row by row. With
lanes NAME_columns(.., step, n) computes as many samples at once, whose values lie side by side in rows `step`
bytes apart.
Nothing is checked: what is not finite stays so, and angles beyond the limit of `llvm_math` become NaN.
"""

from __future__ import annotations

from ..lower.lower import Lowered
from ..lower.split import split_functions
from .ir import I8, I32, I64, PTR, VOID, Module, Value
from .kernel import Kernel
from .ports import ALONE, column_ports, sample_ports
from .target import Target

WHOLE = 10**9  # steps: one function, which is inlined
THREAD = "llvm.nvvm.read.ptx.sreg"


def portable_text(low: Lowered, target: Target, name: str, index: str = I64, alone: bool = False) -> str:
    """LLVM text. index: the type of n and of step. alone: NAME without the others."""
    m, one = Module("alwaysinline"), target.of(1)
    split = split_functions(low, WHOLE)
    Kernel(low, target._replace(lanes=1), split, sample_ports(low, one)).add(m)
    ports = _ports(low)
    f = m.function(name, VOID, ports, public=True)
    f.call(VOID, "one", *f.arguments.values(), f.zero(PTR), f.zero(PTR))
    f.ret()
    if alone:
        return m.text()
    f = m.function(f"{name}_batch", VOID, ports | {"n": index}, public=True)
    with f.loop(_wide(f.n)) as s:
        rows = (f.arguments[x].at(s.i * p.size, one.type) for x, p in zip(ports, (*low.inputs, *low.outputs)))
        f.call(VOID, name, *rows)
    f.ret()
    if target.lanes > 1:
        _add_columns(m, low, target, name, index)
    return m.text()


def _add_columns(m: Module, low: Lowered, target: Target, name: str, index: str) -> None:
    """The last samples are computed with those before them, so rows have at least as many as there are lanes."""
    many = target.of(target.lanes)
    Kernel(low, target, split_functions(low, WHOLE), column_ports(low, many)._replace(fixed=True)).add(m)
    ports = _ports(low)
    given = ports | {"step": index, "n": index}
    f = m.function(f"{name}_columns", VOID, given, public=True)
    step, n = _wide(f.step), _wide(f.n)
    with f.loop(n, step=many.lanes) as s:
        last = n - many.lanes
        at = f.smaller(s.i, last)
        at = f.select(at < 0, f.const(I64, 0), at) * many.size
        pairs = [y for x in ports for y in (f.arguments[x].at(at, I8), step)]
        f.call(VOID, "many", *pairs, f.zero(PTR), f.zero(PTR))
    f.ret()


def ptx_text(low: Lowered, target: Target, name: str, rows: bool = False) -> str:
    """A kernel of NVIDIA's: thread i computes sample i; arrays (size, n), the samples side by side, or rows."""
    m, one = Module("alwaysinline"), target.of(1)
    Kernel(
        low, target._replace(lanes=1), split_functions(low, WHOLE), column_ports(low, one)._replace(fixed=True)
    ).add(m)
    ports = _ports(low)
    f = m.function(name, "ptx_kernel void", ports | {"n": I64}, public=True)
    block, size, thread = (f.call(I32, f"{THREAD}.{x}.x").cast("zext", I64) for x in ("ctaid", "ntid", "tid"))
    i = block * size + thread
    with f.when(i < f.n):
        step = f.const(I64, one.size) if rows else f.n * one.size
        sizes = [p.size if rows else 1 for p in (*low.inputs, *low.outputs)]
        pairs = [y for x, n in zip(ports, sizes) for y in (f.arguments[x].at(i * n, one.type), step)]
        f.call(VOID, "one", *pairs, f.zero(PTR), f.zero(PTR))
    f.put("ret void")
    return m.text()


def _ports(low: Lowered) -> dict[str, str]:
    names = [f"in{i}" for i in range(len(low.inputs))] + [f"out{i}" for i in range(len(low.outputs))]
    return dict.fromkeys(names, ALONE)


def _wide(n: Value) -> Value:
    return n if n.type == I64 else n.cast("sext", I64)
