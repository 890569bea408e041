"""To which branch of the tree each input of a program belongs: machine code puts its steps in order by it."""

from __future__ import annotations

from dataclasses import replace

from ..codegen.graph.program import BranchPath, Input, Program
from ..mechanics.tree import Tree
from ..mechanics.tree_indices import branch_paths


def with_branches(program: Program, tree: Tree) -> Program:
    """The program with `branches`, where the tree has any."""
    of = branch_paths(tree.parents)
    if len({*of}) < 2:
        return program
    link = {name: of[frame.body] for name, frame in tree.frames.items() if frame.body >= 0}
    q, v = [()] * tree.nq, [()] * tree.nv  # type: tuple[list[BranchPath], list[BranchPath]]
    for b, branch in zip(tree.bodies, of):
        q[b.q : b.q + b.nq] = [branch] * b.nq
        v[b.v : b.v + b.nv] = [branch] * b.nv
    owned = [link.get(p.name.partition(".")[0], ()) for p in program.parameters]

    def places(x: Input) -> list[BranchPath]:
        if x.name == "parameters":
            return owned
        if x.name.startswith("f_ext:"):
            return [link.get(x.name.partition(":")[2], ())] * x.size
        return q if x.name == "q" else v if x.size == tree.nv else []

    return replace(program, branches={x.name: places(x) for x in program.inputs})
