"""The motion of a large tree: the engine as it is, over a right-hand side that is a loop over the bodies."""

from __future__ import annotations

from ..codegen.call.rolled import RolledCode, loops_of
from ..codegen.llvm.bodies.rolled_driver import loaded
from ..codegen.llvm.ir import I32, I64, PTR, VOID, IRFunction, Module, Value
from ..codegen.lower.lower import Lowered, Port
from ..codegen.store import native
from ..codegen.store.build import Spec, target_of
from ..codegen.store.key import key
from ..codegen.store.memo import persisted
from ..compiler.ways.rolled import Tables, prepare, require_regular_rolled, rolled_program
from ..model.description import Model
from . import engine

_PORTS = ("q", "v", "tau", "t", "to_q", "to_v")  # of the engine; the loops have no t
_TAKEN = (0, 1, 2, 4, 5)


def rolled_motion(model: Model) -> tuple[native.Code, int]:
    """The engine with the loops that it calls, and the bytes of the arena. Efforts are always an input."""
    require_regular_rolled(model)
    spec, tables = Spec(), Tables.acting(model)
    sizes, request, data = prepare(tables, "motion", (), {})
    loops = loops_of(request, lambda: rolled_program("motion", tables.kinds), spec, True)
    text = persisted(key("engine over loops", spec), True, lambda: native.compile_text(_text(spec)))
    code = RolledCode(text, loops, data, spec.dtype, sizes)
    return code, sizes.arena(target_of(spec).lanes, 8)


def _text(spec: Spec) -> str:
    """Sizes are fields of the state, so one module serves all large robots."""
    target, m = target_of(spec), Module()
    ports = tuple(Port(name, (int(name != "t"),)) for name in _PORTS)
    low = Lowered((), ports[:4], ports[4:], {}, {}, ((), ()), (), None, (0, 0.0))
    f = m.function("one", q=PTR, v=PTR, tau=PTR, t=PTR, to_q=PTR, to_v=PTR, scratch=PTR, status=PTR)
    m.words("rolled", 3)  # as RolledCode fills it
    f.call(VOID, loaded(f, 0), loaded(f, 2), *(getattr(f, _PORTS[k]) for k in _TAKEN), f.status)
    f.ret()
    f = m.function("drive", I32, pointers=PTR, strides=PTR, count=I64, arena=PTR, all=I64)
    taken = [_without_t(f, f.pointers, PTR), _without_t(f, f.strides, I64)]
    f.ret(f.call(I32, loaded(f, 1), loaded(f, 2), *taken, f.count, f.arena, f.all))
    engine.add_engine(m, low, target)
    return m.text()


def _without_t(f: IRFunction, entries: Value, kind: str) -> Value:
    taken = f.alloca(kind, len(_TAKEN))
    for to, k in enumerate(_TAKEN):
        taken.at(to, kind).store(entries.at(k, kind).load(kind))
    return taken
