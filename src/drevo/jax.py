"""Compiled quantities as functions of JAX: jit, vmap into the kernel, both modes of differentiation, any order.

The value, the products of its derivatives and the products of those are primitives of JAX, lowered to custom
calls of XLA: no Python runs in a compiled program. The rule of each is the next: the derivative of f along x is
its "jvp", whose transpose by the tangents is its "vjp".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bridges.products import Kinds, Products, require_arguments
from .codegen.gpu import xla
from .codegen.store.build import DTYPES
from .errors import InputError, one_of
from .io.given import spelled_out
from .io.packages import package
from .model.dynamics import Described
from .model.quantities import BridgeOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

_REGISTERED: dict[str, Any] = {}  # primitives by their names: XLA takes a name once in a process


@spelled_out(BridgeOptions)
def function(
    robot: Described,
    quantity: str,
    parameters: str | Sequence[str] = (),
    *,
    dtype: str = "float64",
    **options: Unpack[BridgeOptions],
) -> Callable[..., Any]:
    """f(*state, [parameters]) of JAX arrays (.., n), leading axes broadcast; several results come as a tuple.

    A step gives (q1, v1), which have gradients of first order.
    quantity, parameters, options: as `drevo.compile` takes them. Values are those of the NumPy Function to the
    bit. dtype: "float64", which wants `jax_enable_x64`, or "float32". Gradients by quaternions in q are those of
    the quaternions made unit. Runs on the CPU, where what is not finite is an error of XLA's. Raises InputError,
    EmitError.
    """
    jax = _jax()
    one_of("jax.function: dtype", dtype, DTYPES, InputError)
    if dtype == "float64" and not jax.config.jax_enable_x64:
        raise InputError(
            "jax.function: JAX computes with 32 bits unless told otherwise: call "
            'jax.config.update("jax_enable_x64", True) at the start, or take dtype="float32"'
        )
    made = Products("jax.function", robot, quantity, parameters, dtype, options)
    name, jnp = made.value.name, jax.numpy

    def as_array(x: Any) -> Any:
        return jnp.asarray(x, dtype)

    def f(*given: Any) -> Any:
        arrays = made.given(given, as_array, lambda named: jnp.stack(jnp.broadcast_arrays(*named), -1))
        require_arguments(made.value, arrays)
        out = made(_bound, arrays)
        return out[0] if len(out) == 1 else tuple(out)

    f.__name__ = f.__qualname__ = name
    f.parameters = made.value.parameters  # type: ignore[attr-defined]
    f.__doc__ = f"{name}({', '.join(x for x, _ in made.value.inputs)}) of {made.robot.model.name}, arrays of JAX."
    return f


def _jax() -> Any:
    jax, jaxlib = package("jax", "drevo.jax", "drevo[jax]"), package("jaxlib", "drevo.jax", "drevo[jax]")
    xla.require_known(str(Path(jaxlib.__file__).parent / "include"), jaxlib.__version__)
    return jax


def _bound(made: Products, kinds: Kinds, arrays: Sequence[Any]) -> list[Any]:
    """The results of a primitive for arrays whose leading axes are made alike."""
    import jax.numpy as jnp

    inputs, _ = made.ports(kinds)
    lead = jnp.broadcast_shapes(*(x.shape[: x.ndim - len(s)] for x, (_, s) in zip(arrays, inputs)))
    alike = [jnp.broadcast_to(x, (*lead, *s)) for x, (_, s) in zip(arrays, inputs)]
    found: list[Any] = _primitive(made, kinds).bind(*alike)
    return found


def _primitive(made: Products, kinds: Kinds) -> Any:
    """The primitive of these kinds, with all its rules, registered once in a process."""
    return made.registered(kinds, _REGISTERED, _new_primitive)


def _new_primitive(made: Products, kinds: Kinds, name: str) -> Any:
    """A primitive whose Function is compiled with the first call of it by XLA: no "jvp" that is transposed."""
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    (inputs, outputs), name = made.ports(kinds), f"drevo_{name}"
    p = Primitive(name)
    p.multiple_results = True
    p.def_impl(jax.jit(lambda *args: p.bind(*args)))

    def shapes(*avals: Any) -> list[Any]:
        lead = avals[0].shape[: avals[0].ndim - len(inputs[0][1])] if avals else ()
        return [jax.core.ShapedArray((*lead, *shape), made.dtype) for _, shape in outputs]

    p.def_abstract_eval(shapes)

    @cache
    def handler() -> xla.Handler:
        handler = xla.Handler(made.function(kinds))
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.function), platform="cpu")
        return handler

    def lowered(context: Any, *args: Any) -> Any:
        called = handler()
        if context.avals_in[0].ndim == len(inputs[0][1]):
            called.prepare_single()
        return _call(made.function(kinds).dtype, name, context, args)

    mlir.register_lowering(p, lowered, platform="cpu")
    ad.primitive_jvps[p] = partial(_along, made, kinds)
    batching.primitive_batchers[p] = partial(_mapped, made, kinds)
    if kinds and kinds[-1] == "jvp":
        ad.primitive_transposes[p] = partial(_transposed, made, kinds)
    return p


def _call(dtype: Any, name: str, context: Any, args: Sequence[Any]) -> Any:
    """The custom call, in the function's type: arrays of another one are converted before and after it."""
    import jax
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    def converted(values: Sequence[Any], kind: Any) -> list[Any]:
        return [stablehlo.convert(ir.RankedTensorType.get(x.type.shape, kind), x) for x in values]

    lowering, (first, *_) = jax.ffi.ffi_lowering(name), context.avals_in
    if first.dtype == dtype:
        return lowering(context, *args)
    ends = ([jax.core.ShapedArray(x.shape, dtype) for x in y] for y in (context.avals_in, context.avals_out))
    inside = context.replace(**dict(zip(("avals_in", "avals_out"), ends)))
    return converted(lowering(inside, *converted(args, ir.F64Type.get())), ir.F32Type.get())


def _along(made: Products, kinds: Kinds, given: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The results, and their rates along the tangents."""
    import jax.numpy as jnp
    from jax.interpreters import ad

    rates = [ad.instantiate_zeros(t) for t in tangents]
    found, moved = _bound(made, kinds, given), _bound(made, (*kinds, "jvp"), [*given, *rates])
    return found, moved + [jnp.zeros_like(x) for x in found[len(moved) :]]  # which nobody is given


def _transposed(made: Products, kinds: Kinds, cotangents: Sequence[Any], *given: Any) -> list[Any]:
    """The cotangents of the tangents of a "jvp": the arguments of what it is the product of are known."""
    from jax.interpreters import ad

    known = len(made.ports(kinds[:-1])[0])
    weights = [ad.instantiate_zeros(w) for w in cotangents]
    found = _bound(made, (*kinds[:-1], "vjp"), [*given[:known], *weights])
    return [None] * known + found


def _mapped(
    made: Products, kinds: Kinds, given: Sequence[Any], axes: Sequence[Any]
) -> tuple[list[Any], list[int]]:
    """One more leading axis for all, the first."""
    import jax.numpy as jnp

    size = next(x.shape[a] for x, a in zip(given, axes) if a is not None)
    moved = [
        jnp.broadcast_to(x, (size, *x.shape)) if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(given, axes)
    ]
    found = _primitive(made, kinds).bind(*moved)
    return found, [0] * len(found)
