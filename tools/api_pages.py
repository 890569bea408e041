"""The reference of the API as pages for Sphinx: every public name with its signature and its docstring.

python tools/api_pages.py FOLDER
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

# page -> what it is about; each lists the names of its module's __all__
MODULES = {
    "drevo": "Robots, their quantities, equations and files",
    "drevo.simulate": "Motions",
    "drevo.constraint": "Constraints",
    "drevo.control": "Linear models and control",
    "drevo.loads": "Loads and accuracy",
    "drevo.tasks": "Inverse kinematics",
    "drevo.walking": "Walking",
    "drevo.doctor": "The doctor",
    "drevo.particles": "Motions of particles",
    "drevo.papers": "The five papers made anew",
    "drevo.dh": "Denavit and Hartenberg",
    "drevo.robots": "Embedded robots",
    "drevo.ros2": "Packages for ROS 2",
    "drevo.ground": "Uneven ground",
    "drevo.envs": "Environments to learn in",
    "drevo.streaming": "Streams",
    "drevo.sweep": "Sweeps",
    "drevo.jax": "JAX",
    "drevo.torch": "PyTorch",
    "drevo.casadi": "CasADi",
}
TASKS = {  # what a user wants -> names, at the head of the reference
    "a robot from a file, a name, Python, a table": "load Builder from_dh",
    "torques, mass matrix, gravity": "Robot.inverse_dynamics Robot.mass_matrix Robot.bias Robot.gravity",
    "accelerations": "Robot.forward_dynamics Robot.constrained_dynamics Robot.under",
    "poses, velocities, Jacobians": "Robot.pose Robot.velocity Robot.jacobian",
    "inverse kinematics": "Robot.inverse_kinematics Robot.closed_form tasks.solve_ik",
    "inverse kinematics along a path": "Robot.inverse_kinematics_path tasks.compile_ik",
    "derivatives": "Robot.inverse_dynamics_derivatives Robot.forward_dynamics_derivatives Robot.derivative",
    "one function for millions of states": "compile",
    "equations as text or code": "write_out Derivation",
    "a motion": "Robot.simulate simulate.Table",
    "a linear model, a controller": "Robot.linearise control.trim control.lqr control.pd control.computed_torque",
    "a trajectory that is optimal": "control.optimise",
    "distances, collisions": "Robot.distance Robot.distance_jacobian",
    "loads of drives and links": "loads.drives loads.envelope",
    "learning": "envs.make envs.Env torch.function jax.function",
    "another processor, an FMU, Simulink": "export",
    "a file that is doubtful": "doctor.check",
}
_MARKS = re.compile(r"([\\*_\[\]<>$|#{}~])")
_TYPED = re.compile(r"((?:^[ ]*(?:>>>|\.\.\.) .*\n?)+)", re.MULTILINE)
_CODE = re.compile(r"(`+[^`\n]+`+)")


class Entry(NamedTuple):
    """A public name: where it is called from, what it is, how it is called, what is said of it."""

    name: str
    kind: str  # function, class, method, property, attribute, data
    signature: str
    text: str


def public(module: str) -> list[str]:
    """The names that a module lists, without those of modules."""
    made = import_module(module)
    listed = getattr(made, "__all__", None)
    names = listed if listed is not None else [n for n, x in vars(made).items() if _own(made, n, x)]
    return [n for n in sorted(names) if not isinstance(getattr(made, n), ModuleType)]


def _own(module: ModuleType, name: str, x: Any) -> bool:
    return not name.startswith("_") and getattr(x, "__module__", "") == module.__name__ and callable(x)


def entries(module: str) -> Iterator[Entry]:
    """Everything that a page of the reference says, classes before their members."""
    made = import_module(module)
    for name in public(module):
        x = getattr(made, name)
        if inspect.isclass(x):
            yield from _class(f"{module}.{name}", x)
        elif callable(x):
            yield Entry(f"{module}.{name}", "function", signature(x), inspect.getdoc(x) or "")
        else:
            yield Entry(f"{module}.{name}", "data", "", f"{type(x).__name__}: {shown(x)}")


def _class(name: str, x: type) -> Iterator[Entry]:
    error = issubclass(x, Exception)
    yield Entry(name, "exception" if error else "class", "" if error else signature(x), inspect.getdoc(x) or "")
    if is_dataclass(x):
        named = [f.name for f in fields(x) if not f.name.startswith("_")]
        for field in named:
            yield Entry(f"{name}.{field}", "attribute", "", "")
    for member, value in members(x):
        text = inspect.getdoc(value) or ""
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            yield Entry(f"{name}.{member}", "property", "", text)
        else:
            yield Entry(f"{name}.{member}", "method", signature(getattr(x, member)), text)


def members(x: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, its own and those of bases of this package."""
    seen: set[str] = set()
    for base in x.__mro__:
        if not base.__module__.startswith("drevo"):
            continue
        for name, value in vars(base).items():
            raw = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            kinds = (
                callable(getattr(x, name, None))
                or isinstance(raw, property)
                or type(raw).__name__ == "cached_property"
            )
            if not name.startswith("_") and name not in seen and kinds and not inspect.isclass(raw):
                seen.add(name)
                yield name, raw


def signature(x: Any) -> str:
    """How it is called, as it is written."""
    try:
        text = str(inspect.signature(x))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"<object object at [^>]*>|<factory>", "...", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are kept as text
    return text.replace("self, ", "", 1).replace("(self)", "()").removesuffix(" -> None")


def shown(x: Any) -> str:
    """A constant, on one line."""
    text = " ".join(repr(x).split())
    return text if len(text) <= 200 else text[:197] + "..."


def markdown(text: str) -> str:
    """A docstring as Markdown: nothing in it is a mark but names between backticks, and what is typed at >>>."""
    typed = _TYPED.split(text)
    return "".join(f"\n\n```text\n{x.strip()}\n```\n" if k % 2 else _plain(x) for k, x in enumerate(typed))


def _plain(text: str) -> str:
    parts = _CODE.split(text)
    escaped = [part if k % 2 else _MARKS.sub(r"\\\1", part) for k, part in enumerate(parts)]
    lines = "".join(escaped).splitlines()
    return "\n".join(re.sub(r"^(\s*\d*)([-+.)])(\s)", r"\1\\\2\3", line) for line in lines)


def page(module: str) -> str:
    """One page: the module's own words, then its names."""
    made = import_module(module)
    first = markdown(inspect.getdoc(made) or "")
    parts = [f"# {module}: {MODULES[module]}", "", first, ""]
    for entry in entries(module):
        fence = "::::" if entry.kind in ("class", "exception") else ":::"
        what = f"{entry.name}{entry.signature if entry.kind in ('function', 'class', 'method') else ''}"
        parts += [f"{fence}{{py:{entry.kind}}} {what}", "", markdown(entry.text), "", fence, ""]
    return "\n".join(parts)


def write(folder: Path) -> None:
    """All pages and the page that lists them."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("drevo*.md"):
        if old.stem not in MODULES:
            old.unlink()
    listed = []
    for module in MODULES:
        try:
            text = page(module)
        except ImportError as error:
            text = f"# {module}: {MODULES[module]}\n\nNot documented here: {error}\n"
        _keep(folder / f"{module}.md", text)
        listed.append(module)
    tasks = [
        f"| {task} | {', '.join(f'{{py:obj}}`drevo.{name}`' for name in names.split())} |"
        for task, names in TASKS.items()
    ]
    table = ["| you want | names |", "|---|---|", *tasks, ""]
    index = "\n".join(["# Reference", "", *table, ":::{toctree}", ":maxdepth: 1", "", *listed, ":::", ""])
    _keep(folder / "index.md", index)


def _keep(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
