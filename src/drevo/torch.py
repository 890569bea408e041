"""Compiled quantities as functions of PyTorch: operators of torch.library, differentiable to any order.

Tensors are computed where they stand, on the CPU or a GPU of NVIDIA's, there on torch's stream. Where nobody asks
for derivatives, maps or compilation a call on the CPU goes straight to machine code; else to an operator, whose
gradient is the operator of its "vjp", and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .bridges.inertias import Inertias as Inertias
from .bridges.products import Kinds, Products, require_arguments
from .codegen.store.build import DTYPES
from .documents.sequence.names import identifier
from .errors import InputError, one_of
from .io.given import spelled_out
from .io.packages import package
from .model.dynamics import Described
from .model.quantities import BridgeOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEVICE_TYPES = ("cpu", "cuda", "meta")
_DEFINED: dict[str, Any] = {}  # operators by their names: torch takes a name once in a process


@spelled_out(BridgeOptions)
def function(
    robot: Described,
    quantity: str,
    parameters: str | Sequence[str] = (),
    *,
    dtype: str = "float64",
    **options: Unpack[BridgeOptions],
) -> Callable[..., Any]:
    """f(*state, [parameters]) of tensors (.., n) of one device, leading axes broadcast; several results: a tuple.

    A step gives (q1, v1), which have gradients of first order.
    quantity, parameters, options: as `drevo.compile` takes them. Values are those of the NumPy Function to the
    bit. Real tensors of another type are converted to `dtype`. Gradients by quaternions in q are those of the
    quaternions made unit. Works under autograd, torch.func.vmap and torch.compile(fullgraph=True).
    On a GPU nothing is checked: what is not finite stays so. Raises InputError, NumericsError, EmitError.
    """
    torch = package("torch", "drevo.torch", "drevo[torch]")
    one_of("torch.function: dtype", dtype, DTYPES, InputError)
    products = Products("torch.function", robot, quantity, parameters, dtype, options)
    direct, several, count = products.value, products.count > 1, len(products.value.inputs)
    compiling, tensor, from_numpy = torch.compiler.is_compiling, torch.Tensor, torch.from_numpy
    scalar = not products.value.outputs[0][1]

    def f(*given: Any) -> Any:
        if not compiling() and not several and not scalar and len(given) == count:
            try:  # a tensor that wants gradients, is mapped, or lies elsewhere gives no array
                arrays = [x.numpy() for x in given]
            except (AttributeError, RuntimeError, TypeError):
                pass
            else:
                return from_numpy((direct.fast or direct)(*arrays))
        tensors = products.given(given, as_tensor, lambda named: torch.stack(torch.broadcast_tensors(*named), -1))
        values = products(_bound, _converted(products, tensors))
        return tuple(values) if several else values[0]

    def as_tensor(x: Any) -> Any:
        return x if isinstance(x, tensor) else torch.as_tensor(x)

    f.__name__ = f.__qualname__ = products.value.name
    f.parameters = products.value.parameters  # type: ignore[attr-defined]
    return f


def _converted(products: Products, given: Sequence[Any]) -> list[Any]:
    """Real tensors of one device, of the type and the sizes that the function takes."""
    import torch

    name = products.value.name
    for x in given:
        if x.is_complex():
            raise InputError(f"{name}: complex tensors have no place here; give their real parts")
        if x.device.type not in DEVICE_TYPES:
            raise InputError(
                f"{name}: a tensor lies on {x.device}; the function runs on the CPU and on GPUs of NVIDIA's: call "
                ".cpu() on it"
            )
    places = {str(x.device) for x in given}
    if len(places) > 1:
        raise InputError(f"{name}: the tensors lie on {' and '.join(sorted(places))}; put all on one device")
    require_arguments(products.value, given)
    kind = getattr(torch, products.dtype)
    return [x.to(kind) for x in given]


def _bound(products: Products, kinds: Kinds, given: Sequence[Any]) -> list[Any]:
    """The results of an operator for tensors whose leading axes are made alike."""
    import torch

    inputs, outputs = products.ports(kinds)
    lead = torch.broadcast_shapes(*(x.shape[: x.dim() - len(s)] for x, (_, s) in zip(given, inputs)))
    applied, operator = _operators(products, kinds)
    call = operator if torch.compiler.is_compiling() else applied  # which knows torch.func, and Dynamo does not it
    values = call(*(x.expand((*lead, *s)) for x, (_, s) in zip(given, inputs)))
    return [values] if len(outputs) == 1 else list(values)


def _operators(products: Products, kinds: Kinds) -> tuple[Any, Any]:
    """The operator of these kinds, inside a function of autograd and by itself, defined once in a process."""
    values: tuple[Any, Any] = products.registered(kinds, _DEFINED, _new_operator)
    return values


def _new_operator(products: Products, kinds: Kinds, name: str) -> tuple[Any, Any]:
    import torch

    rules = _Rules(products, kinds)
    names = [f"Tensor {identifier(n)}_{k}" for k, (n, _) in enumerate(rules.inputs)]
    results = ["Tensor"] * len(rules.shapes)
    schema = f"({', '.join(names)}) -> {results[0] if rules.one else '(' + ', '.join(results) + ')'}"
    operator = torch.library.custom_op(
        f"drevo::{name}", rules.compute, mutates_args=(), schema=schema, device_types="cpu"
    )
    operator.register_kernel("cuda", rules.launch)
    applied = rules.function(operator)
    operator.register_fake(rules.fake)
    operator.register_autograd(applied.backward, setup_context=rules.keep)
    operator.register_vmap(applied.vmap)
    return applied.apply, operator


class _Rules:
    """The rules that torch needs of an operator: kernels, shapes, derivatives, batching."""

    def __init__(self, products: Products, kinds: Kinds) -> None:
        self.made, self.kinds, (self.inputs, outputs) = products, kinds, products.ports(kinds)
        self.one, self.shapes = len(outputs) == 1, [shape for _, shape in outputs]
        self.count = products.count if not kinds else len(outputs)  # of those that have derivatives

    def lead(self, x: Any) -> tuple[int, ...]:
        """The leading axes, of the first argument."""
        return tuple(x.shape[: x.dim() - len(self.inputs[0][1])])

    def compute(self, *given: Any) -> Any:
        import torch

        values = self.made.function(self.kinds)(*(x.detach().numpy() for x in given))
        tensors = [torch.from_numpy(np.asarray(x)).to(given[0].dtype) for x in ([values] if self.one else values)]
        return tensors[0] if self.one else tuple(tensors)

    def launch(self, *given: Any) -> Any:
        """On torch's stream of a GPU, to which its allocator gives memory too."""
        import torch

        dense = [x.detach().contiguous() for x in given]
        f, stream = self.made.on_gpu(self.kinds), torch.cuda.current_stream(dense[0].device)
        return f(*dense, out=self.fake(*dense), stream=stream)

    def fake(self, *given: Any) -> Any:
        tensors = [given[0].new_empty((*self.lead(given[0]), *s)) for s in self.shapes]
        return tensors[0] if self.one else tuple(tensors)

    def keep(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.lead = self.lead(inputs[0])

    def along(self, kind: str, given: Sequence[Any], vectors: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
        """A product with vectors, zeros where there are none; shapes: theirs."""
        full = [given[0].new_zeros(s) if w is None else w for w, s in zip(vectors, shapes)]
        return _bound(self.made, (*self.kinds, kind), [*given, *full])

    def function(self, operator: Any) -> Any:
        """The operator as a function of autograd, which torch.func knows."""
        import torch

        rules = self

        class Applied(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(*given: Any) -> Any:
                return operator(*given)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                rules.keep(ctx, inputs, output)
                ctx.save_for_forward(*inputs)

            @staticmethod
            def backward(ctx: Any, *weights: Any) -> Any:
                shapes = [(*ctx.lead, *s) for s in rules.shapes[: rules.count]]
                return tuple(rules.along("vjp", ctx.saved_tensors, weights, shapes))

            @staticmethod
            def jvp(ctx: Any, *tangents: Any) -> Any:
                given = ctx.saved_tensors
                values = rules.along("jvp", given, tangents, [x.shape for x in given])
                values += [given[0].new_zeros((*ctx.lead, *s)) for s in rules.shapes[rules.count :]]
                return values[0] if rules.one else tuple(values)

            @staticmethod
            def vmap(info: Any, axes: Sequence[Any], *given: Any) -> Any:
                size = info.batch_size
                moved = [x.expand((size, *x.shape)) if a is None else x.movedim(a, 0) for x, a in zip(given, axes)]
                return Applied.apply(*moved), 0 if rules.one else (0,) * len(rules.shapes)

        return Applied
