"""A motion as machine code: its right-hand side and the engine in one module, kept on disk."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..codegen.call.rolled import RolledCode, loops_of
from ..codegen.graph.program import Program
from ..codegen.llvm.motion import add_engine, rolled_motion_text
from ..codegen.store import native
from ..codegen.store.build import Spec, machine_code, target_of
from ..codegen.store.key import key, request
from ..codegen.store.memo import persisted
from ..compiler.compile_cost import require_regular
from ..compiler.tracer import TracedFunction
from ..compiler.ways.rolled import (
    Tables,
    forces_by_joint,
    is_large,
    prepare,
    require_regular_rolled,
    rolled_program,
)
from ..model.description import Model
from .motion import Rule, motion_program

Array = np.ndarray[Any, Any]


class CompiledMotion:
    """A derivative and its engine, loaded. `integrate` and `integrate_adaptive` run it from a state.

    large: the derivative is a loop over the bodies, whose efforts are always an input.
    """

    def __init__(self, model: Model, law: TracedFunction | None, driven: bool, rule: Rule | None = None) -> None:
        self.model, self.rule = model, rule
        self.large = law is None and rule is None and is_large(model) and forces_by_joint(model)
        if self.large:
            (self._code, self.arena), self.scratch = _rolled_motion(model), 0
        else:
            asked = request(model, "motion", driven, rule, law)
            make = partial(_program, model, law, driven, rule)
            made, self._code = machine_code(asked, make, Spec(), True, add_engine)
            self.arena, self.scratch = made.arena, made.scratch
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._integrate, self._integrate_adaptive = (
            kind(self._code.address(n)) for n in ("integrate", "integrate_adaptive")
        )

    def integrate(self, state: Array) -> int:
        """Steps of one length, without the GIL; the number of records that were made."""
        return int(self._integrate(state.ctypes.data))

    def integrate_adaptive(self, state: Array) -> int:
        """Steps of adaptive length, one record each, without the GIL; the number of records that were made."""
        return int(self._integrate_adaptive(state.ctypes.data))


def _rolled_motion(model: Model) -> tuple[native.Code, int]:
    """The engine with the loops that it calls, and the bytes of the arena. Efforts are always an input."""
    require_regular_rolled(model)
    spec, tables = Spec(), Tables.acting(model)
    sizes, request, data = prepare(tables, "motion", (), {})
    loops = loops_of(request, lambda: rolled_program("motion", tables.kinds), spec, True)
    text = persisted(
        key("engine over loops", spec), True, lambda: native.compile_text(rolled_motion_text(target_of(spec)))
    )
    code = RolledCode(text, loops, data, spec.dtype, sizes)
    return code, sizes.arena(target_of(spec).lanes, 8)


def _program(model: Model, law: TracedFunction | None, driven: bool, rule: Rule | None) -> Program:
    require_regular(model)
    return motion_program(model, law, driven, rule)


def owners(model: Model) -> Iterator[tuple[str, slice, slice]]:
    """Joint names with their parts of q and v, for messages."""
    return ((j.name, sq, sv) for j, sq, sv in model.slices())
