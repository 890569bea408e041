"""The last fall-back: the reference evaluator behind the interface of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import EmitError
from ..graph.evaluate import evaluate
from ..graph.program import Program

Array = np.ndarray[Any, Any]


def fill(
    program: Program,
    pattern: Sequence[Sequence[Sequence[int]]] | None,
    parameters: bool,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
) -> None:
    """Fills the outputs, all arrays (B, n): one array operation per node."""
    if program.stages is not None:
        raise EmitError(f"{program.name} needs machine code, which cannot be made here: see drevo doctor")
    given = {x.name: a.reshape(len(a), *x.shape) for x, a in zip(program.inputs, inputs)}
    values: Any = {x.name: inputs[-1][:, k] for k, x in enumerate(program.parameters)} if parameters else None
    with np.errstate(all="ignore"):  # the caller tests for finiteness
        found = evaluate(program, given, values, outputs[0].dtype.type)
    for k, (o, target) in enumerate(zip(program.outputs, outputs)):  # hidden ones come last
        value = found[o.name]
        if pattern is not None:
            every: tuple[Any, ...] = (slice(None),)
            value = value[every + tuple(list(i) for i in pattern[k])]
        target[...] = value.reshape(target.shape)
    if program.tail is not None:
        program.tail.fill(outputs, [found[o.name] for o in program.outputs[-program.tail.hidden :]])
