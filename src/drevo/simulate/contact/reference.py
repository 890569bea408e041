"""A step under the soft law on arrays, stage by stage: what the compiled one is, where there is no compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen.graph.evaluate import evaluate_edges
from .newton import ITERATIONS, TRIALS
from .stages import HERE, Evaluation

Array = np.ndarray[Any, Any]


class Reference:
    """The blocks of a batch, (size, B), and the calls over them: every slot in every state, for D is 0 where it
    does not touch."""

    def __init__(self, e: Evaluation, count: int) -> None:
        self.e, self.slots = e, range(len(e.contacts))
        sizes = e.sizes | {"q1": e.tree.nq, "v1": e.nv}
        self.blocks = {name: np.zeros((size, count)) for name, size in sizes.items()}

    def call(self, stage: str, here: str = "") -> None:
        part = self.e.parts[stage]
        names = [*(p.name for p in part.inputs), *(p.name for p in part.outputs)]
        places = {name: _place(name, here) for name in names}
        leaves: dict[int, Any] = {}
        for port in part.inputs:
            block, first = places[port.name]
            leaves |= {n: self.blocks[block][first + k] for k, n in enumerate(port.nodes)}
        leaves |= {p.node: self.blocks["parameters"][k] for k, p in enumerate(part.parameters)}
        made = evaluate_edges(part.graph, part.output_edges, leaves)
        values = iter([np.array(x) for x in made])  # of what is handed on the block may change
        done = [(*places[o.name], [next(values) for _ in o.edges]) for o in part.outputs]
        for block, first, found in done:
            for k, x in enumerate(found, first):
                self.blocks[block][k] = x

    def each(self, stage: str) -> None:
        for k in self.slots:
            self.call(f"{stage}_{self.e.records[k].kind}", f"slot_{k}")

    def some(self, block: str) -> bool:
        return bool((self.blocks[block] > 0.0).any())

    def forward(self, warm: bool) -> None:
        """Accelerations at Q, V."""
        self.call("dynamics")
        for k in self.slots:
            self.call(f"slot_{k}", f"slot_{k}")
            self.blocks[f"slot_{k}"][self.e.records[k].piece] = -1.0
        if not warm:
            self.call("start")
        for name, x in (("pieces", -1.0), ("live", 1.0), ("alpha", 0.0 if warm else 1.0)):
            self.blocks[name][:] = x
        for _ in range(ITERATIONS):
            self.call("gradient")
            self.each("touch")
            self.call("finish")
            if not self.some("live"):
                break
            wide = "_crossing" if any(self.e.crossing) else ""
            self.call(f"inertia{wide}")
            self.each("hessian")
            self.call(f"solve{wide}")
            self.each("along")
            for _ in range(TRIALS):
                self.call("slope")
                self.each("bend")
                self.call("trial")
                if not self.some("open"):
                    break
            self.call("move")
        self.each("force")
        self.call("judge")

    def step(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """q, v, tau as (B, n) -> q1, v1, forces (B, 3 slots), residual (B, 1)."""
        for name, x in given.items():
            self.blocks[name] = np.array(x.T, float)
        with np.errstate(all="ignore"):
            self.call("begin")
            for n in range(self.e.problem.repeat):
                self.call("again")
                for k, stage in enumerate(self.e.stages):
                    self.forward(n + k > 0)
                    self.call(stage)
        at = [(f"slot_{k}", self.e.records[k].size) for k in self.slots]
        forces = [self.blocks[block][i : i + 3] for block, i in at]
        out = {name: self.blocks[name].T for name in ("q1", "v1", "residual", "Q", "V", "r")}
        return out | {"forces": np.concatenate([*forces, np.zeros((0, given["q"].shape[0]))]).T}


def fill_step(e: Evaluation, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Results (B, n) from arguments, by the order of both in a step."""
    found = Reference(e, len(inputs[0])).step(dict(zip(("q", "v", "tau", "parameters"), inputs)))
    for name, x in zip(("q1", "v1", "forces", "residual", "Q", "V", "r"), outputs):
        x[...] = found[name].reshape(x.shape)


def _place(port: str, here: str) -> tuple[str, int]:
    block, _, first = port.rstrip("]").partition("[")
    return here if block == HERE else block, int(first or 0)
