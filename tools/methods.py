"""Writes src/drevo/robot/methods.py, the typed, documented methods of a Robot, from the catalogue of quantities.

python tools/methods.py
"""

from __future__ import annotations

from pathlib import Path

from drevo.model.quantities import ALIASES, CATALOGUE, Quantity

FILE = Path(__file__).parents[1] / "src" / "drevo" / "robot" / "methods.py"
WIDTH = 115
HEAD = '''"""The quantities as typed methods. Written by tools/methods.py from the catalogue: do not edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.method import compiled

Array = np.ndarray[Any, Any]
Out = Array | None
Outs = tuple[Array, Array, Array] | None
Loads = Mapping[str, ArrayLike] | None
'''

ABOUT = '''    """One method for each quantity that needs only the state; `compiled` makes it, no body runs."""

    _compiled: Callable[[str], Callable[..., Any]]
'''


def text() -> str:
    """The whole file."""
    plain = [x for x in CATALOGUE.values() if not x.options]
    results = "".join(result(x) for x in plain if len(x.outputs) > 1)
    methods = [method(x.name, x) for x in plain]
    methods += [method(alias, CATALOGUE[name]) for alias, name in ALIASES.items()]
    return f"{HEAD}\nif TYPE_CHECKING:\n{results}\n\nclass Methods:\n{ABOUT}\n" + "\n".join(methods)


def result(x: Quantity) -> str:
    """The type of several results."""
    fields = "".join(f"        {name}: Array\n" for name, _ in x.outputs)
    return f"\n    class {title(x)}(NamedTuple):\n{fields}"


def title(x: Quantity) -> str:
    return x.name.title().replace("_", "")


def method(name: str, x: Quantity) -> str:
    """A method with its docstring; of an alias with the name that it stands for."""
    several = len(x.outputs) > 1
    kind = title(x) if several else "Array"
    given = [
        "self",
        *(f"{s}: ArrayLike" for s in x.state),
        f"out: {'Outs' if several else 'Out'} = None",
        "threads: int = 1",
    ]
    given += ["*", "f_ext: Loads = None", "passive: bool = False"] if x.external else []
    line = f"    def {name}({', '.join(given)}) -> {kind}:"
    if len(line) > WIDTH:
        rows = [", ".join(given)] if len(", ".join(given)) <= WIDTH - 8 else [f"{x}," for x in given]
        line = "\n".join([f"    def {name}(", *(f"        {row}" for row in rows), f"    ) -> {kind}:"])
    told = f"{x.name}: the same." if name != x.name else f"{x.about}."
    return f'    @compiled\n{line}\n        """{told}"""\n        raise NotImplementedError\n'


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
