"""Drevo compiles the dynamics of tree-structured robots: closed-form equations, machine-speed functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .codegen.store import memo as _lock  # noqa: F401 - before the first late import: a fork waits for those under way
from .errors import (
    DrevoError,
    DrevoWarning,
    EmitError,
    InputError,
    ModelError,
    NumericsError,
    TraceError,
)
from .io import packages as _edition

__version__ = _edition.VERSION

# public name -> module that defines it; nothing is imported before it is used
_LAZY = {
    "Builder": "robot.builder",
    "Derivation": "compiler.pages.derivation",
    "Robot": "robot",
    "check": "doctor",
    "check_formulas": "design.formulas",
    "cite": "citation",
    "clip": "mechanics.scalar",
    "compile": "robot.compiling",
    "conditions": "design.conditions",
    "cos": "mechanics.scalar",
    "export": "robot.writing",
    "from_dh": "dh",
    "load": "robots.loading",
    "maximum": "mechanics.scalar",
    "minimum": "mechanics.scalar",
    "rigid_body_energy": "mechanics.formalisms.alyushin",
    "sin": "mechanics.scalar",
    "sqrt": "mechanics.scalar",
    "stream": "streaming",
    "where": "mechanics.scalar",
    "write_out": "robot.writing",
}
# public modules, imported when they are first used
_MODULES = (
    *("casadi", "constraint", "control", "design", "dh", "doctor", "envs", "ground", "jax", "loads", "robots"),
    *("papers", "particles", "ros2", "simulate", "streaming", "sweep", "tasks", "torch", "walking"),
)

if TYPE_CHECKING:
    from . import constraint as constraint
    from . import control as control
    from . import design as design
    from . import dh as dh
    from . import doctor as doctor
    from . import envs as envs
    from . import ground as ground
    from . import loads as loads
    from . import papers as papers
    from . import particles as particles
    from . import robots as robots
    from . import ros2 as ros2
    from . import simulate as simulate
    from . import streaming as streaming
    from . import tasks as tasks
    from . import walking as walking
    from .citation import cite
    from .compiler.pages.derivation import Derivation
    from .design.conditions import conditions
    from .design.formulas import check_formulas
    from .dh import from_dh
    from .doctor import check
    from .mechanics.formalisms.alyushin import rigid_body_energy
    from .mechanics.scalar import clip, cos, maximum, minimum, sin, sqrt, where
    from .robot import Robot
    from .robot.builder import Builder
    from .robot.compiling import compile
    from .robot.writing import export, write_out
    from .robots.loading import load
    from .streaming import stream


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        from difflib import get_close_matches

        near = get_close_matches(name, [*_LAZY, *_MODULES], 1)
        hint = f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""
        raise AttributeError(f"module 'drevo' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))])


__all__ = [
    "Builder",
    "Derivation",
    "DrevoError",
    "DrevoWarning",
    "EmitError",
    "InputError",
    "ModelError",
    "NumericsError",
    "Robot",
    "TraceError",
    "check",
    "check_formulas",
    "cite",
    "clip",
    "compile",
    "conditions",
    "cos",
    "export",
    "from_dh",
    "load",
    "maximum",
    "minimum",
    "rigid_body_energy",
    "sin",
    "sqrt",
    "stream",
    "where",
    "write_out",
]
