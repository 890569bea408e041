"""Texts that go with an object file for another processor: a header of C, and an example that calls it."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.lower.lower import Lowered, Port
from .languages.code import comment
from .sequence.names import identifier

SCALARS = {"double": ("double", "Float64Array"), "float": ("float", "Float32Array")}


def port_names(low: Lowered) -> list[str]:
    """Names of the arguments in C, inputs before outputs; an output may be named like an input."""
    names: list[str] = []
    for p in (*low.inputs, *low.outputs):
        name = identifier(p.name)
        names.append(name if name not in names else f"{name}_out")
    return names


def c_header(name: str, low: Lowered, scalar: str, count: str, about: Sequence[str]) -> str:
    """Declarations of NAME and NAME_batch, with the shapes of their arguments."""
    given = _declared(low, scalar)
    guard = f"{name.upper()}_H"
    shapes = [f"{x}: {_shape(p)}" for x, p in zip(port_names(low), (*low.inputs, *low.outputs))]
    notes = [*about, *shapes, f"{name}_batch: n samples one after another, row by row."]
    return "\n".join(
        [
            "/*", *(f" * {comment(line)}" for line in notes), " */",
            f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>",
            "#ifdef __cplusplus", 'extern "C" {', "#endif",
            f"void {name}({', '.join(given)});",
            f"void {name}_batch({', '.join(given)}, {count} n);",
            "#ifdef __cplusplus", "}", "#endif", "#endif", "",
        ]
    )  # fmt: skip


def c_example(name: str, low: Lowered, scalar: str, state: Sequence[Sequence[float]]) -> str:
    """A main that computes one sample and prints it."""
    names, given = port_names(low), len(low.inputs)
    made = [f"static {scalar} {x}[] = {{{', '.join(map(repr, row))}}};" for x, row in zip(names, state)]
    made += [f"static {scalar} {x}[{p.size}];" for x, p in zip(names[given:], low.outputs)]
    shown = [
        f'    for (int k = 0; k < {p.size}; ++k) printf("{x}[%d] = %.9g\\n", k, (double){x}[k]);'
        for x, p in zip(names[given:], low.outputs)
    ]
    return "\n".join(
        ["#include <stdio.h>", f'#include "{name}.h"', "", *made, "", "int main(void)", "{",
         f"    {name}({', '.join(names)});", *shown, "    return 0;", "}", ""]
    )  # fmt: skip


def _declared(low: Lowered, scalar: str) -> list[str]:
    kinds = ["const "] * len(low.inputs) + [""] * len(low.outputs)
    return [f"{kind}{scalar} *{x}" for kind, x in zip(kinds, port_names(low))]


def _shape(p: Port) -> str:
    return f"{p.name}, {' x '.join(map(str, p.shape))}" if p.shape else p.name


LOADER = """\
// await load(bytes, rows) gives {inputs, outputs, run, batch, columns}: typed arrays on the module's memory.
// run() computes the first row, batch(n) the first n rows; for columns(n) the arrays hold, for every number of an
// input or output, `rows` samples side by side.
const NAME = '@NAME', INPUTS = [@INPUTS], OUTPUTS = [@OUTPUTS], Type = @TYPE, LANES = @LANES;
export async function load(bytes, rows = LANES) {
  rows = Math.ceil(Math.max(rows, LANES) / LANES) * LANES;
  const size = Type.BYTES_PER_ELEMENT, top = 1024, ends = [top];  // the first kilobyte is the stack's
  for (const n of [...INPUTS, ...OUTPUTS]) ends.push(Math.ceil((ends.at(-1) + n * rows * size) / 16) * 16);
  const memory = new WebAssembly.Memory({initial: Math.ceil(ends.at(-1) / 65536)});
  const stack = new WebAssembly.Global({value: 'i32', mutable: true}, top);
  const env = {__linear_memory: memory, __stack_pointer: stack};
  const {instance} = await WebAssembly.instantiate(bytes, {env});
  const at = ends.slice(0, -1), f = instance.exports;
  const views = [...INPUTS, ...OUTPUTS].map((n, i) => new Type(memory.buffer, ends[i], n * rows));
  return {
    rows, inputs: views.slice(0, INPUTS.length), outputs: views.slice(INPUTS.length), run: () => f[NAME](...at),
    batch: (n = rows) => f[NAME + '_batch'](...at, n),
    columns: (n = rows) => f[NAME + '_columns'](...at, rows * size, n),
  };
}
"""


def wasm_loader(name: str, low: Lowered, scalar: str, lanes: int) -> str:
    """JavaScript that loads the module."""
    sizes = [", ".join(str(p.size) for p in ports) for ports in (low.inputs, low.outputs)]
    text = LOADER.replace("@NAME", name).replace("@INPUTS", sizes[0]).replace("@OUTPUTS", sizes[1])
    return text.replace("@TYPE", SCALARS[scalar][1]).replace("@LANES", str(lanes))


def wasm_example(name: str, low: Lowered, state: Sequence[Sequence[float]]) -> str:
    """A script for node that computes one sample."""
    rows = "\n".join(f"m.inputs[{i}].set({[float(x) for x in row]});" for i, row in enumerate(state))
    return f"""\
import {{readFile}} from 'node:fs/promises';
import {{load}} from './{name}.mjs';
const m = await load(await readFile(new URL('./{name}.wasm', import.meta.url)));
{rows}
m.run();
console.log(m.outputs.map((x, i) => Array.from(x.slice(0, [{", ".join(str(p.size) for p in low.outputs)}][i]))));
"""
