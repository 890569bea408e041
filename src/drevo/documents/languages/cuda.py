"""Sequence -> CUDA C++: one thread a sample, kernels for both layouts of a batch."""

from __future__ import annotations

import re

from ...errors import EmitError, one_of
from ..about import About, header
from ..sequence.sequence import Sequence
from .c import c_statements, comment_block, helpers, outputs_of, prologue
from .code import arguments_of

_LAYOUT = (
    "One thread computes one sample; n samples, in a grid-stride loop, so any grid will do. "
    "NAME_rows: arrays (n, size), a sample's values side by side. "
    "NAME_batch_last: arrays (size, n), the samples' values side by side, which is what memory likes. "
    "constants, if any, are shared by all samples: filled once by NAME_prologue on the host."
)

_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


def cuda(sequence: Sequence, facts: About, dtype: str = "float64") -> str:
    """Two extern "C" kernels, NAME_rows and NAME_batch_last, around one device function.

    dtype: "float32" computes and keeps arrays in float; large angles lose their turns in double all the same.
    """
    single = one_of("cuda: dtype", dtype, ("float64", "float32"), EmitError) == "float32"
    name = sequence.identifiers[sequence.function]
    layout = [part.strip().replace("NAME", name) + "." for part in _LAYOUT.rstrip(".").split(". ")]
    lines = comment_block([*header(facts, sequence, layout[0]), "", *layout[1:]])
    if sequence.symbols:
        head, *body = prologue(sequence, 'extern "C" __host__ __device__ ')
        lines += ["", head.replace("double *constants", "float *constants") if single else head, *body]
    arguments = ", ".join([*(f"const double *{a}" for a in arguments_of(sequence)),
                           *(f"double *{o}" for o in outputs_of(sequence))])  # fmt: skip
    lines += ["", *helpers(sequence, "static __device__ __forceinline__ ")]
    kernels = [f"static __device__ __forceinline__ void {name}_sample({arguments}, long long step)"]
    kernels += ["{", "    (void)step;", *c_statements(sequence, "{} * step"), "}"]
    kernels += _kernel(sequence, f"{name}_rows", arguments, rows=True)
    kernels += _kernel(sequence, f"{name}_batch_last", arguments, rows=False)
    return "\n".join([*lines, *(_single(kernels) if single else kernels), ""])


def _single(lines: list[str]) -> list[str]:
    """In float, numbers too; comments stay."""
    parts = (line.partition("/*") for line in lines)
    return [_NUMBER.sub(r"\1f", re.sub(r"\bdouble\b", "float", code)) + mark + note for code, mark, note in parts]


def _kernel(sequence: Sequence, kernel: str, arguments: str, rows: bool) -> list[str]:
    sizes = [len(p.scalars) for p in sequence.inputs]
    pointers = list(zip(arguments_of(sequence), sizes))
    pointers += list(zip(outputs_of(sequence), (len(r.entries) for r in sequence.results)))
    passed = [f"{a} + {f'i * {size}' if rows else 'i'}" for a, size in pointers]
    if sequence.symbols:
        passed.insert(len(sizes), "constants")
    function = sequence.identifiers[sequence.function]
    return [
        "",
        f'extern "C" __global__ void {kernel}({arguments}, long long n)',
        "{",
        "    const long long stride = (long long)blockDim.x * gridDim.x;",
        "    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)",
        f"        {function}_sample({', '.join(passed)}, {'1' if rows else 'n'});",
        "}",
    ]
