"""What bridges to systems with derivatives share: a quantity, and products of its derivatives, of any order.

Each is a compiled Function of arrays (.., n). Products of products are functions of the same kind, so that one
rule serves all orders: the derivative of f along x is the "jvp" of f, its transpose the "vjp".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ...codegen.runtime.cuda import CudaFunction
from ...codegen.runtime.function import Function
from ...codegen.runtime.key import request
from ...compiler.compile import compile
from ...errors import InputError
from ...model.dynamics import Described
from ...model.messages import model_of

Kinds = tuple[str, ...]


class Products:
    """The Functions of a robot's quantity by their kinds: () is the quantity, ("jvp",) its first product."""

    def __init__(
        self, who: str, robot: Described, quantity: str, parameters: str | Sequence[str], dtype: str, options: Any
    ) -> None:
        model_of(robot, who)
        if not isinstance(quantity, str):
            raise InputError(f"{who}: quantity must be one name, not {type(quantity).__name__}")
        self.robot, self.quantity, self.parameters = robot, quantity, parameters
        self.dtype, self.options = dtype, options
        self.made: dict[tuple[Kinds, str], Any] = {}
        self.found: dict[Kinds, Any] = {}  # of `registered`
        self.value = self.function(())

    def function(self, kinds: Kinds) -> Function:
        """The Function of these kinds, compiled at its first use."""
        found: Function = self._compiled(kinds, "cpu")
        return found

    def on_gpu(self, kinds: Kinds) -> CudaFunction:
        """The same on NVIDIA's GPUs. Raises EmitError where there is none."""
        found: CudaFunction = self._compiled(kinds, "cuda")
        return found

    def _compiled(self, kinds: Kinds, target: str) -> Any:
        if (kinds, target) not in self.made:
            self.made[kinds, target] = compile(
                self.robot, self.quantity, parameters=self.parameters, dtype=self.dtype, product=kinds,
                tangents="numbers", target=target, **self.options,
            )  # fmt: skip
        return self.made[kinds, target]

    def registered(self, kinds: Kinds, table: dict[str, Any], new: Callable[[Products, Kinds, str], Any]) -> Any:
        """What `new` makes of these kinds and a name of their own, once in a process: systems take a name once."""
        if kinds not in self.found:
            asked = repr((self.quantity, self.parameters, self.dtype, sorted(self.options.items()), kinds))
            digest = hashlib.sha256(request(self.robot.model, asked).encode()).hexdigest()[:24]
            name = f"{self.quantity}_{digest}"
            if name not in table:
                table[name] = new(self, kinds, name)
            self.found[kinds] = table[name]
        return self.found[kinds]


def require_arguments(f: Function, given: Sequence[Any]) -> None:
    """As many as the function takes, each with its own last axes."""
    names = ", ".join(name for name, _ in f.inputs)
    if len(given) != len(f.inputs):
        raise InputError(f"{f.name}({names}) takes {len(f.inputs)} arrays, not {len(given)}")
    for x, (name, shape) in zip(given, f.inputs):
        if tuple(x.shape[len(x.shape) - len(shape) :]) != shape:
            raise InputError(f"{f.name}: {name} has shape {tuple(x.shape)}; its last axis has {shape[0]} numbers")
