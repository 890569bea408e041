"""Shared by bridges to systems with derivatives: a quantity, and products of its derivatives, of any order.

Each is a compiled Function of arrays (.., n). Products of products are functions of the same kind, so that one
rule serves all orders: the derivative of f along x is the "jvp" of f, its transpose the "vjp". Tangents and
cotangents have the sizes of what they belong to, quaternions four: `tangents="numbers"` of `drevo.compile`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.call.arguments import NamedShape, by_name
from ..codegen.call.function import Function
from ..codegen.gpu.cuda import CudaFunction
from ..codegen.store.key import request
from ..errors import InputError
from ..ground import ground_of
from ..io.given import whole
from ..model.draft import model_of
from ..model.dynamics import Described
from ..robot.compiling import compile

Kinds = tuple[str, ...]
STEP_STATE = ("q1", "v1")  # the results of a step that have derivatives


class Products:
    """The Functions of a robot's quantity by their kinds: () is the quantity, ("jvp",) its first product.

    dtype: of the arrays outside; a step computes in double precision whatever it is. repeat: steps of one call,
    each with products of its own.
    """

    def __init__(
        self, who: str, robot: Described, quantity: str, parameters: str | Sequence[str], dtype: str, options: Any
    ) -> None:
        model_of(robot, who)
        if not isinstance(quantity, str):
            raise InputError(f"{who}: quantity must be one name, not {type(quantity).__name__}")
        self.robot, self.quantity, self.parameters = robot, quantity, parameters
        self.dtype, self.options, self.repeat = dtype, dict(options), 1
        if quantity == "step":
            self.repeat = whole("step: repeat", self.options.pop("repeat", 1), use=": steps of one call")
            if self.options.get("last"):
                raise InputError(f"{who}: a step gives q1 and v1, which have gradients; leave out last")
            if "ground" in self.options:  # the same one for all products
                self.options["ground"] = ground_of(self.options["ground"])
        self.made: dict[tuple[Kinds, str], Any] = {}
        self.found: dict[Kinds, Any] = {}  # of `registered`
        self.value = self.function(())
        names = [name for name, _ in self.value.outputs]
        self.count = len(STEP_STATE) if quantity == "step" else len(names)  # of results that have derivatives

    def __call__(self, bound: Callable[..., list[Any]], arrays: Sequence[Any]) -> list[Any]:
        """The results that have derivatives. bound: computes the results of kinds from arrays."""
        given = list(arrays)
        for _ in range(self.repeat):
            found = bound(self, (), given)[: self.count]
            given[: self.count] = found if self.repeat > 1 else []
        return found

    def ports(self, kinds: Kinds) -> tuple[tuple[NamedShape, ...], tuple[NamedShape, ...]]:
        """Inputs and outputs of these kinds, told without compiling."""
        inputs, outputs = self.value.inputs, self.value.outputs
        outputs = outputs[: self.count] if kinds else outputs
        for kind in kinds:
            inputs, outputs = (inputs + inputs, outputs) if kind == "jvp" else (inputs + outputs, inputs)
        return inputs, outputs

    def function(self, kinds: Kinds) -> Function:
        """The Function of these kinds, compiled at its first use."""
        found: Function = self._compiled(kinds, "cpu")
        return found

    def on_gpu(self, kinds: Kinds) -> CudaFunction:
        """The CudaFunction of these kinds, for NVIDIA's GPUs. Raises EmitError where there is none."""
        found: CudaFunction = self._compiled(kinds, "cuda")
        return found

    def _compiled(self, kinds: Kinds, target: str) -> Any:
        if (kinds, target) not in self.made:
            self.made[kinds, target] = compile(
                self.robot, self.quantity, parameters=self.parameters, product=kinds, tangents="numbers",
                target=target, dtype="float64" if self.quantity == "step" else self.dtype, **self.options,
            )  # fmt: skip
        return self.made[kinds, target]

    def given(
        self, values: Sequence[Any], array: Callable[[Any], Any], stack: Callable[[list[Any]], Any]
    ) -> list[Any]:
        """Arguments as arrays of a library; parameters that are named in a mapping as one of them."""

        def stacked(named: list[Any]) -> Any:
            return stack([array(x) for x in named])

        f = self.value
        return [
            by_name(f.name, f.parameters, x, stacked) if isinstance(x, Mapping) and f.parameters else array(x)
            for x in values
        ]

    def registered(self, kinds: Kinds, table: dict[str, Any], new: Callable[[Products, Kinds, str], Any]) -> Any:
        """The object `new` makes of these kinds and their name, once in a process: systems take a name once."""
        if kinds not in self.found:
            asked = self.quantity, self.value.parameters, self.dtype, dict(sorted(self.options.items())), kinds
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
