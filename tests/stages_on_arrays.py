"""A step under the soft law on arrays, stage by stage: what compiled steps are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drevo.codegen.graph.evaluate import evaluate_edges
from drevo.codegen.lower.loops import CHOSEN_BLOCK, port_place
from drevo.contact.laws.soft.newton import MAX_NEWTON_STEPS, MAX_SEARCH_STEPS
from drevo.contact.laws.soft.stages import Evaluation

Array = np.ndarray[Any, Any]


class Reference:
    """The blocks of a batch, (size, B), and the calls over them: every slot in every state, for D is 0 where it
    does not touch."""

    def __init__(self, e: Evaluation, given: Mapping[str, Array]) -> None:
        """given: blocks by name, (B, n)."""
        self.e, self.slots, count = e, range(len(e.contacts)), len(given["q"])
        self.blocks = {name: np.zeros((size, count)) for name, size in e.sizes.items()}
        self.blocks |= {name: np.array(x.T, float) for name, x in given.items()}

    def call(self, stage: str, here: str = "", first: int = 0) -> None:
        """A stage; here: the block that it calls so, from its value `first` on."""
        part = self.e.parts[stage]
        names = [*(p.name for p in part.inputs), *(p.name for p in part.outputs)]
        places = {name: _place(name, here, first) for name in names}
        leaves: dict[int, Any] = {}
        for port in part.inputs:
            block, start = places[port.name]
            leaves |= {n: self.blocks[block][start + k] for k, n in enumerate(port.nodes)}
        leaves |= {p.node: self.blocks["parameters"][k] for k, p in enumerate(part.parameters)}
        made = evaluate_edges(part.graph, part.output_edges, leaves)
        values = iter([np.array(x) for x in made])  # of what is handed on the block may change
        done = [(*places[o.name], [next(values) for _ in o.edges]) for o in part.outputs]
        for block, start, found in done:
            for k, x in enumerate(found, start):
                self.blocks[block][k] = x

    def each(self, stage: str) -> None:
        for k in self.slots:
            self.call(f"{stage}_{self.e.records[k].kind}", f"slot_{k}")

    def some(self, block: str) -> bool:
        return bool((self.blocks[block] > 0.0).any())

    def forward(self, warm: bool) -> None:
        """Accelerations at Q, V, and what is told of them."""
        self.solved(warm)
        self.each("force")

    def solved(self, warm: bool) -> None:
        """Accelerations at Q, V."""
        self.call("dynamics")
        for k in self.slots:
            self.call(f"slot_{k}", f"slot_{k}")
            self.blocks[f"slot_{k}"][self.e.records[k].piece] = -1.0
        if not warm:
            self.call("start")
        for name, x in (("pieces", -1.0), ("live", 1.0), ("alpha", 0.0 if warm else 1.0)):
            self.blocks[name][:] = x
        for _ in range(MAX_NEWTON_STEPS):
            self.call("gradient")
            self.each("touch")
            self.call("finish")
            if not self.some("live"):
                break
            self.newton_step()
            self.call("aim")
            self.each("along")
            for _ in range(MAX_SEARCH_STEPS):
                self.call("slope")
                self.each("bend")
                self.call("trial")
                if not self.some("open"):
                    break
            self.call("move")
        self.call("judge")
        if self.some("doubt"):
            self.newton_step()
            self.call("weigh")
        if self.e.noslip:
            self.slip()

    def slip(self) -> None:
        """The pass after the law."""
        self.blocks["stiff"][:] = 0.0
        self.call("inertia")
        self.call("slip_begin")
        noslip, nv, contacts = self.e.noslip, self.e.nv, self.e.contacts
        self.each("ready")
        held = [("held", k * noslip.stride, 1, "hold") for k in range(len(noslip.held))]
        for k in (k for k in noslip.order if contacts[k].group.size > 1):
            kind = self.e.records[k].kind
            held.append((f"slot_{k}", self.e.records[k].slip, contacts[k].group.size - 1, f"slip_{kind}"))
        M = self.inertia()
        for block, at, n, _ in held:
            record = self.blocks[block][at:]
            T = record[: n * nv].reshape(n, nv, -1).transpose(2, 0, 1)
            Z = np.linalg.solve(M, T.transpose(0, 2, 1)).transpose(0, 2, 1)
            record[n * nv : 2 * n * nv] = Z.transpose(1, 2, 0).reshape(n * nv, -1)
            record[2 * n * nv :][: n * n] = (T @ Z.transpose(0, 2, 1)).transpose(1, 2, 0).reshape(n * n, -1)
        for _ in range(self.e.problem.model.stepping.noslip):
            for block, at, n, stage in held:
                record = self.blocks[block][at:]
                T, Z = (record[k * n * nv :][: n * nv].reshape(n, nv, -1) for k in range(2))
                slip = n * (2 * nv + n)
                record[slip : slip + n] = (T * self.blocks["a"]).sum(1)
                self.call(stage, block, at if block == "held" else 0)
                change = record[slip + n : slip + 2 * n]
                self.blocks["r"] += (T * change[:, None]).sum(0)
                self.blocks["a"] += (Z * change[:, None]).sum(0)
            self.call("slip_end")
            if not self.some("slipping"):
                break

    def inertia(self) -> Array:
        """M of the block H, (B, nv, nv)."""
        nv, newton = self.e.nv, self.e.newton
        M = np.zeros((self.blocks["H"].shape[1], nv, nv))
        for i, row in enumerate(newton.pattern):
            for j, entry in row.items():
                r, c = self.e.order[i], self.e.order[j]
                M[:, r, c] = M[:, c, r] = self.blocks["H"][entry]
        return M

    def newton_step(self) -> None:
        """p = -H^-1 g."""
        self.call("inertia")
        self.each("hessian")
        self.blocks["crosses"][:] = 1.0
        self.call("solve_crossing" if any(self.e.crossing) else "solve")

    def step(self) -> None:
        self.call("begin")
        for n in range(self.e.problem.repeat):
            for stage in ("again", *self.e.opening):
                self.call(stage)
            for k, stage in enumerate(self.e.stages):
                self.forward(n + k > 0)
                self.call(stage)

    def told(self, name: str) -> Array:
        """A result, (B, n)."""
        if name != "forces":
            return self.blocks[name].T
        at = [(f"slot_{k}", self.e.records[k].size) for k in self.slots]
        forces = [self.blocks[block][i : i + 3] for block, i in at]
        return np.concatenate([*forces, np.zeros((0, self.blocks["residual"].shape[1]))]).T


def _place(port: str, here: str, first: int) -> tuple[str, int]:
    place = port_place(port)
    return (here, first + place.first) if place.block == CHOSEN_BLOCK else (place.block, place.first)
