"""Sequence -> C99 that needs nothing but math.h.

Sequence -> CUDA C++: one thread a sample, kernels for both layouts of a batch.
"""

from __future__ import annotations

import re

from ...errors import EmitError, one_of
from ..about import About, header
from ..sequence.layout import FEW_TURNS, period_texts
from ..sequence.layout import NOTE as TURNED
from ..sequence.sequence import CHOICES, Sequence
from .code import arguments_of, assignments, code_style, comment, entries, unpacked

_C_LAYOUT = "Arrays of double, row-major; what a function writes must not overlap what it reads."
COMMENT = "/* {} */"


def c(sequence: Sequence, facts: About) -> str:
    """void NAME(const double *q, ..., [const double *constants,] double *out), and NAME_prologue with symbols."""
    lines = comment_block(header(facts, sequence, _C_LAYOUT))
    lines += ["", "#include <math.h>", "", *helpers(sequence, "static ")]
    if sequence.symbols:
        lines += [*prologue(sequence), ""]
    arguments = [f"const double *{a}" for a in arguments_of(sequence)]
    arguments += [f"double *{o}" for o in outputs_of(sequence)]
    name = sequence.identifiers[sequence.function]
    return "\n".join([*lines, f"void {name}({', '.join(arguments)})", "{", *c_statements(sequence, "{}"), "}", ""])


def comment_block(lines: list[str]) -> list[str]:
    return ["/*", *(f" * {comment(line)}".rstrip() for line in lines), " */"]


def outputs_of(sequence: Sequence) -> list[str]:
    """Identifiers of what it writes: out, or out_NAME for each of several."""
    if len(sequence.results) == 1:
        return ["out"]
    return [f"out_{sequence.identifiers[r.name]}" for r in sequence.results]


def helpers(sequence: Sequence, qualifiers: str) -> list[str]:
    """The C functions that the statements call: choices, and double NAME_turned(double x) for each period."""
    lines = [
        f"{qualifiers}double {name}(double c, double x) {{ return c {CHOICES[name]} 0.0 ? x : 0.0; }}"
        for name in sequence.choices
    ]
    lines += [""] if lines else []
    for factor, name in sequence.periods.items():
        rate, products = period_texts(factor)
        lines += [
            COMMENT.format(TURNED),
            f"{qualifiers}double {name}(double x)",
            "{",
            f"    const double n = rint({rate});",
            f"    if (fabs(n) > {FEW_TURNS!r}) {{",
            *(f"        x -= {product};" for product in products),
            "    }",
            "    return x;",
            "}",
            "",
        ]
    return lines


def prologue(sequence: Sequence, qualifiers: str = "") -> list[str]:
    """void NAME_prologue(const double *parameters, double *constants)."""
    name, style = sequence.identifiers, code_style(sequence)
    function = f"{name[sequence.function]}_prologue"
    lines = [f"{qualifiers}void {function}(const double *parameters, double *constants)", "{"]
    lines += [f"    const double {name[s.name]} = parameters[{k}]; {COMMENT.format(comment(s.meaning))}"
              for k, (s, used) in enumerate(zip(sequence.symbols, sequence.used)) if used]  # fmt: skip
    lines += assignments(sequence.prologue, style, "    const double {} = {};", "    " + COMMENT)
    lines += ["    (void)parameters;", "    (void)constants;"]
    lines += [f"    constants[{k}] = {name[constant]};" for k, constant in enumerate(sequence.constants)]
    return [*lines, "}"]


def c_statements(sequence: Sequence, index: str) -> list[str]:
    """The statements of the main function; `index` makes a place in a sample's array of a number."""
    name, style = sequence.identifiers, code_style(sequence)
    lines = [f"    (void){a};" for a in arguments_of(sequence)]
    for p in sequence.inputs:
        lines += [f"    const double {x} = {text};" for x, text in unpacked(sequence, p, f"{{}}[{index}]", 0)]
    lines += [f"    const double {name[x]} = constants[{k}];" for k, x in enumerate(sequence.constants)]
    lines += assignments(sequence.main, style, "    const double {} = {};", "    " + COMMENT)
    for result, out in zip(sequence.results, outputs_of(sequence)):
        lines += [f"    {out}[{index.format(k)}] = {x};" for k, x in enumerate(entries(result, style))]
    return lines


_CUDA_LAYOUT = (
    "One thread computes one sample; n samples, in a grid-stride loop, so any grid will do. "
    "NAME_rows: arrays (n, size), a sample's values side by side. "
    "NAME_batch_last: arrays (size, n), the samples' values side by side, which is what memory likes. "
    "constants, if any, are shared by all samples: filled once by NAME_prologue on the host."
)

_C_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


def cuda(sequence: Sequence, facts: About, dtype: str = "float64") -> str:
    """Two extern "C" kernels, NAME_rows and NAME_batch_last, around one device function.

    dtype: "float32" computes and keeps arrays in float; large angles lose their turns in double all the same.
    """
    single = one_of("cuda: dtype", dtype, ("float64", "float32"), EmitError) == "float32"
    name = sequence.identifiers[sequence.function]
    layout = [part.strip().replace("NAME", name) + "." for part in _CUDA_LAYOUT.rstrip(".").split(". ")]
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
    return [
        _C_NUMBER.sub(r"\1f", re.sub(r"\bdouble\b", "float", code)) + mark + note for code, mark, note in parts
    ]


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
