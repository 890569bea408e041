"""The last fall-back: the reference evaluator behind the interface of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.evaluate import evaluate
from ..graph.program import Program

Array = np.ndarray[Any, Any]


class Reference:
    """One array operation per node, on (B, n) arrays; used where no machine code can be made."""

    def __init__(
        self, program: Program, pattern: Sequence[Sequence[Sequence[int]]] | None, parameters: bool
    ) -> None:
        self.program, self.pattern = program, pattern
        self.parameters = parameters and bool(program.parameters)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Fills the outputs, all arrays (B, n)."""
        p = self.program
        given = {x.name: a.reshape(len(a), *x.shape) for x, a in zip(p.inputs, inputs)}
        values: Any = {x.name: inputs[-1][:, k] for k, x in enumerate(p.parameters)} if self.parameters else None
        with np.errstate(all="ignore"):  # the caller tests for finiteness
            found = evaluate(p, given, values, outputs[0].dtype.type)
        for k, (o, target) in enumerate(zip(p.outputs, outputs)):
            value = found[o.name]
            if self.pattern is not None:
                every: tuple[Any, ...] = (slice(None),)
                value = value[every + tuple(list(i) for i in self.pattern[k])]
            target[...] = value.reshape(target.shape)
