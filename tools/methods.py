"""Writes src/drevo/robot/methods.py, the typed, documented methods of a Robot, from the catalogue of quantities.

python tools/methods.py
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from drevo.model.quantities import ALIASES, CATALOGUE, Quantity, explained

FILE = Path(__file__).parents[1] / "src" / "drevo" / "robot" / "methods.py"
WIDTH = 115
HEAD = '''"""The quantities as typed methods. Written by tools/methods.py from the catalogue: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.runtime.method import compiled

Array = np.ndarray[Any, Any]
Forces = Mapping[str, ArrayLike]
'''

ABOUT = '''    """One method for each quantity that needs no more than the state."""

    _compiled: Callable[[str], Callable[..., Any]]

    def _call(self, name: str, state: tuple[ArrayLike, ...], out: Any, threads: int, f_ext: Any = None) -> Any:
        """The quantity where the method is called on the class: `Robot.gravity(robot, q)`."""
        given = {k: x for k, x in (("out", out), ("f_ext", f_ext)) if x is not None}
        return self._compiled(name)(*state, threads=threads, **given)'''


def text() -> str:
    """The whole file."""
    plain = [x for x in CATALOGUE.values() if not x.options]
    results = "".join(result(x) for x in plain if len(x.outputs) > 1)
    methods = [method(x.name, x) for x in plain]
    methods += [method(alias, CATALOGUE[name]) for alias, name in ALIASES.items()]
    return f"{HEAD}\nif TYPE_CHECKING:\n{results}\n\nclass Methods:\n{ABOUT}\n\n" + "\n".join(methods)


def result(x: Quantity) -> str:
    """The type of several results."""
    fields = "".join(f"        {name}: Array\n" for name, _ in x.outputs)
    return f"\n    class {title(x)}(NamedTuple):\n{fields}"


def title(x: Quantity) -> str:
    return x.name.title().replace("_", "")


def method(name: str, x: Quantity) -> str:
    """A method with its docstring; of an alias with the name that it stands for."""
    kind = title(x) if len(x.outputs) > 1 else "Array"
    outs = f"tuple[{', '.join(['Array'] * len(x.outputs))}]" if len(x.outputs) > 1 else "Array"
    given = ["self", *(f"{s}: ArrayLike" for s in x.state), f"out: {outs} | None = None", "threads: int = 1"]
    given += ["*", "f_ext: Forces | None = None"] if x.external else []
    line = f"    def {name}({', '.join(given)}) -> {kind}:"
    if len(line) > WIDTH:
        rows = [", ".join(given)] if len(", ".join(given)) <= WIDTH - 8 else [f"{x}," for x in given]
        line = "\n".join([f"    def {name}(", *(f"        {row}" for row in rows), f"    ) -> {kind}:"])
    told = f"{x.name}: the same." if name != x.name else explained(x)
    doc = [y for row in told.split("\n") for y in (textwrap.wrap(row, WIDTH - 8) or [""])]
    first, *rest = doc
    body = "\n".join(f"        {y}" if y else "" for y in rest)
    end = f'"""{first}\n{body}\n        """' if rest else f'"""{first}"""'
    state = f"({', '.join(x.state)}{',' if len(x.state) == 1 else ''})"
    passed = [f'"{name}"', state, "out", "threads", *(["f_ext"] if x.external else [])]
    call = f"        found: {kind} = self._call({', '.join(passed)})\n        return found\n"
    return f"    @compiled\n{line}\n        {end}\n{call}"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
