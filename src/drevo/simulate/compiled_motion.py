"""A motion as machine code: its right-hand side and the engine in one module, kept on disk."""

from __future__ import annotations

import ctypes
import struct
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..codegen.graph.program import Program
from ..codegen.runtime import native
from ..codegen.runtime.build import Spec
from ..codegen.runtime.kept import kept
from ..codegen.runtime.key import key, request
from ..compiler.check import require_regular
from ..compiler.rolled import is_large
from ..errors import DrevoWarning, EmitError
from ..mechanics.configuration import slices
from ..model.description import Model
from . import engine
from .control import Control, traced
from .motion import Rule, motion

Array = np.ndarray[Any, Any]
_HEAD = struct.Struct("<QQ")


class CompiledMotion:
    """A derivative and its engine, loaded. `integrate` and `integrate_adaptive` run it from a state.

    large: the derivative is a loop over the bodies, whose efforts are always an input.
    """

    def __init__(self, model: Model, control: Control | None, driven: bool, rule: Rule | None = None) -> None:
        self.model, self.rule = model, rule
        self.large = control is None and rule is None and is_large(model)
        if self.large:
            from .rolled_motion import rolled_motion

            (self._code, self.arena), self.scratch = rolled_motion(model), 0
        else:
            payload = _payload(model, control, driven, rule)
            self.arena, self.scratch = _HEAD.unpack_from(payload)
            self._code = native.Code(payload[_HEAD.size :])
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._integrate, self._integrate_adaptive = (
            kind(self._code.address(n)) for n in ("integrate", "integrate_adaptive")
        )

    def integrate(self, state: Array) -> int:
        """Steps of one length, without the GIL; the number of records that were made."""
        return int(self._integrate(state.ctypes.data))

    def integrate_adaptive(self, state: Array) -> int:
        """The same with steps of adaptive length, one record each."""
        return int(self._integrate_adaptive(state.ctypes.data))


def _payload(model: Model, control: Control | None, driven: bool, rule: Rule | None) -> bytes:
    """Sizes and object code; kept on disk where their text says all about them."""
    name = key(request(model, "motion", driven, rule, traced(model, control)), Spec())

    def make() -> bytes:
        require_regular(model)
        return _build(motion(model, control, driven, rule))

    return kept(name, rule is None or rule.lasting, make)


def _build(program: Program) -> bytes:
    from ..codegen.emit import llvm
    from ..codegen.emit.lower import lower

    host = native.host()
    target = llvm.Target("double", host.bytes // 8, host.fma, host.splat)
    low = lower(program, fma=target.fma)

    text = llvm.emit(low, target, "rows", lambda m, arena, scratch: engine.add_engine(m, low, target))
    return _HEAD.pack(text.arena.total, text.scalar_scratch) + native.compile_text(text.ir)


def compile_motion(
    model: Model, control: Control | None, driven: bool, rule: Rule | None = None
) -> CompiledMotion | None:
    """The compiled motion; None, with a warning, where LLVM is missing or fails."""
    try:
        return CompiledMotion(model, control, driven, rule)
    except (ImportError, OSError, EmitError) as error:
        if isinstance(error, EmitError) and not str(error).startswith("LLVM"):
            raise
        warnings.warn(f"motions run in Python, some hundred times slower: {error}", DrevoWarning, stacklevel=6)
        return None


def owners(model: Model) -> Iterator[tuple[str, slice, slice]]:
    """Joint names with their parts of q and v, for messages."""
    return ((j.name, sq, sv) for j, sq, sv in slices(model))


__all__ = ["CompiledMotion", "compile_motion", "owners"]
