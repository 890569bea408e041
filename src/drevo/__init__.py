"""Drevo compiles the dynamics of tree-structured robots: closed-form equations, machine-speed functions."""

from __future__ import annotations

from time import time as _time
from typing import TYPE_CHECKING, Any

from .errors import (
    DrevoError,
    DrevoWarning,
    EmitError,
    InputError,
    ModelError,
    NumericsError,
    TraceError,
)
from .runtime import lock as _lock  # noqa: F401 - before the first late import: a fork waits for those under way

__version__ = "0.1.0"
_LOADED = _time()  # sources that change later are not what this process runs

# public name -> module that defines it; nothing is imported before it is used
_LAZY = {
    "Builder": "builder",
    "Derivation": "derivation",
    "Robot": "robot",
    "check_formulas": "design.formulas",
    "clip": "mechanics.scalar",
    "compile": "compiler",
    "conditions": "design.conditions",
    "cos": "mechanics.scalar",
    "from_dh": "dh",
    "load": "loading",
    "maximum": "mechanics.scalar",
    "minimum": "mechanics.scalar",
    "rigid_body_energy": "formalisms.alyushin",
    "sin": "mechanics.scalar",
    "sqrt": "mechanics.scalar",
    "stream": "streaming",
    "where": "mechanics.scalar",
    "write_out": "written",
}
_MODULES = ("constraint", "control", "dh", "loads", "robots")

if TYPE_CHECKING:
    from . import constraint, control, dh, loads, robots
    from .builder import Builder
    from .compiler import compile
    from .derivation import Derivation
    from .design.conditions import conditions
    from .design.formulas import check_formulas
    from .dh import from_dh
    from .formalisms.alyushin import rigid_body_energy
    from .loading import load
    from .mechanics.scalar import clip, cos, maximum, minimum, sin, sqrt, where
    from .robot import Robot
    from .streaming import stream
    from .written import write_out


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'drevo' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY, *_MODULES])


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
    "check_formulas",
    "clip",
    "compile",
    "conditions",
    "constraint",
    "control",
    "cos",
    "dh",
    "from_dh",
    "load",
    "loads",
    "maximum",
    "minimum",
    "rigid_body_energy",
    "robots",
    "sin",
    "sqrt",
    "stream",
    "where",
    "write_out",
]
