"""The call for one sample, with the interface that all kernels share."""

from __future__ import annotations

from .ir import I32, PTR, VOID, Module
from .target import Target, flush_subnormals

STACK = 1 << 15  # bytes of scratch that one sample may take from the stack


def add_single(m: Module, ports: int, target: Target, scratch: int) -> None:
    """i32 @single(pointers, room): 1 if a check failed. Pointers to inputs, then outputs; room: of `scratch` bytes
    on a cache line, where they are more than STACK."""
    f = m.function("single", I32, public=True, pointers=PTR, room=PTR)
    room = f.room if scratch > STACK else f.alloca("<8 x i64>", -(-scratch // 64))
    status = f.alloca(target.scalar)
    status.store(f.zero(target.scalar))
    restore = flush_subnormals(f, target)
    f.call(VOID, "one", *(f.pointers.at(k, PTR).load(PTR) for k in range(ports)), room, status)
    restore()
    f.ret(status.load(target.scalar).is_nan().cast("zext", I32))
