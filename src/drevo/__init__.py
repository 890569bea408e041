"""Drevo compiles the dynamics of tree-structured robots: closed-form equations, machine-speed functions."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any
from warnings import warn

from .codegen.runtime import lock as _lock  # noqa: F401 - before the first late import: a fork waits for those under way
from .errors import (
    DrevoError,
    DrevoWarning,
    EmitError,
    InputError,
    ModelError,
    NumericsError,
    TraceError,
)
from .io import version as _edition

__version__ = _edition.VERSION

# public name -> module that defines it; nothing is imported before it is used
_LAZY = {
    "Builder": "robot.builder",
    "Derivation": "compiler.derivation",
    "Robot": "robot",
    "check": "apps.doctor",
    "check_formulas": "apps.design.formulas",
    "cite": "apps.cite",
    "clip": "mechanics.scalar",
    "compile": "compiler.compile",
    "conditions": "apps.design.conditions",
    "cos": "mechanics.scalar",
    "export": "robot.writing",
    "from_dh": "robot.dh",
    "load": "robot.loading",
    "maximum": "mechanics.scalar",
    "minimum": "mechanics.scalar",
    "rigid_body_energy": "mechanics.formalisms.alyushin",
    "sin": "mechanics.scalar",
    "sqrt": "mechanics.scalar",
    "stream": "apps.streaming",
    "where": "mechanics.scalar",
    "write_out": "robot.writing",
}
# public module -> where it stands; `import drevo.loads` and `from drevo.loads import ..` find it too
_MODULES = {
    "casadi": "apps.bridges.casadi_functions",
    "constraint": "constrained.constraint",
    "control": "control",
    "design": "apps.design",
    "dh": "robot.dh",
    "doctor": "apps.doctor",
    "envs": "apps.envs",
    "ground": "simulate.contact.ground",
    "jax": "apps.bridges.jax_functions",
    "loads": "apps.loads",
    "robots": "robot.embedded",
    "simulate": "simulate",
    "streaming": "apps.streaming",
    "sweep": "apps.sweep",
    "torch": "apps.bridges.torch_functions",
    "walking": "apps.walking",
}
# modules that the documentation named before they moved: they are found, with a warning
_MOVED = {
    "builder": "robot.builder",
    "cli": "apps.cli",
    "differentiate": "compiler.differentiate",
    "emit": "codegen.emit",
    "formalisms": "mechanics.formalisms",
    "loading": "robot.loading",
    "picture": "compiler.drawing",
    "compiler.picture": "compiler.drawing",
    "topology": "robot.topology",
}

if TYPE_CHECKING:
    from types import ModuleType

    from . import control, simulate
    from .apps import design, doctor, envs, loads, streaming, walking
    from .apps.cite import cite
    from .apps.design.conditions import conditions
    from .apps.design.formulas import check_formulas
    from .apps.doctor import check
    from .apps.streaming import stream
    from .compiler.compile import compile
    from .compiler.derivation import Derivation
    from .constrained import constraint
    from .mechanics.formalisms.alyushin import rigid_body_energy
    from .mechanics.scalar import clip, cos, maximum, minimum, sin, sqrt, where
    from .robot import Robot, dh
    from .robot import embedded as robots
    from .robot.builder import Builder
    from .robot.dh import from_dh
    from .robot.loading import load
    from .robot.writing import export, write_out
    from .simulate.contact import ground


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    else:
        from .errors import nearest

        near = nearest(name, [*_LAZY, *_MODULES])
        hint = f"; did you mean {near!r}?" if near and not name.startswith("_") else ""
        raise AttributeError(f"module 'drevo' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


class _Elsewhere:
    """Finds modules of this package by names under which they do not stand: importlib's finder and loader."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        head, inner = name.partition(".")[2], ""
        while head and head not in (_MODULES | _MOVED):
            head, _, last = head.rpartition(".")
            inner = f".{last}{inner}"
        if not name.startswith("drevo.") or not head:
            return None
        real = f"{__name__}.{(_MODULES | _MOVED)[head]}{inner}"
        return None if real == name else ModuleSpec(name, _Elsewhere, loader_state=real)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """The module itself takes the place of the empty one that the import system made."""
        spec = module.__spec__
        assert spec is not None
        if any(f"{spec.name}.".startswith(f"drevo.{old}.") for old in _MOVED):
            warn(f"{spec.name} has moved to {spec.loader_state}", DeprecationWarning, stacklevel=2)
        sys.modules[spec.name] = import_module(str(spec.loader_state))


sys.meta_path.insert(0, _Elsewhere)  # before the finder of files, which would load inner modules twice


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
    "check",
    "check_formulas",
    "cite",
    "clip",
    "compile",
    "conditions",
    "constraint",
    "control",
    "cos",
    "design",
    "dh",
    "doctor",
    "envs",
    "export",
    "from_dh",
    "ground",
    "load",
    "loads",
    "maximum",
    "minimum",
    "rigid_body_energy",
    "robots",
    "simulate",
    "sin",
    "sqrt",
    "stream",
    "streaming",
    "walking",
    "where",
    "write_out",
]
