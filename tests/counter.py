"""Counts operations in a written-out Python text, independently of the library that wrote it.

The rules are those that Drevo prints beside its counts; the text may hold assignments of + - * / sin cos only.
"""

from __future__ import annotations

import ast
from collections import Counter

KINDS = ("add", "mul", "div", "trig", "angle_sums")


class Tally(ast.NodeVisitor):
    """Counts one function: operations, and which names were used inside and outside sines and cosines."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.inside: set[str] = set()
        self.outside: set[str] = set()
        self.sums: dict[str, int] = {}
        self.angle = False

    def visit_Name(self, node: ast.Name) -> None:
        (self.inside if self.angle else self.outside).add(node.id)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not is_constant(node):
            self.found[self._kind(node)] += 1
        self.generic_visit(node)

    def _kind(self, node: ast.BinOp) -> str:
        if isinstance(node.op, ast.Mult):
            unit = any(isinstance(x, ast.Constant) and abs(x.value) == 1 for x in (node.left, node.right))
            return "free" if unit else "mul"
        if isinstance(node.op, ast.Div):
            return "div"
        assert isinstance(node.op, (ast.Add, ast.Sub)), ast.dump(node)
        return "angle_sums" if self.angle else "add"

    def visit_Call(self, node: ast.Call) -> None:
        assert isinstance(node.func, ast.Name) and node.func.id in ("sin", "cos", "sqrt"), ast.dump(node)
        if node.func.id == "sqrt":
            self.visit(node.args[0])
            return
        self.found["trig"] += 1
        before, self.angle = self.angle, True
        self.visit(node.args[0])
        self.angle = before

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        assert self.angle
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        before = self.found["add"]
        self.visit(node.value)
        target = node.targets[0]
        if isinstance(target, ast.Name) and is_sum(node.value):
            self.sums[target.id] = self.found["add"] - before

    def counts(self) -> dict[str, int]:
        """A sum whose name is used in sines and cosines only is an angle sum."""
        moved = sum(n for name, n in self.sums.items() if name in self.inside and name not in self.outside)
        out = {kind: self.found[kind] for kind in KINDS}
        return {**out, "add": out["add"] - moved, "angle_sums": out["angle_sums"] + moved}


def is_constant(node: ast.AST) -> bool:
    """No name in it."""
    return not any(isinstance(n, (ast.Name, ast.Call)) for n in ast.walk(node))


def is_sum(node: ast.AST) -> bool:
    """Names and numbers under + and - only."""
    allowed = (ast.BinOp, ast.Add, ast.Sub, ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
    return isinstance(node, ast.BinOp) and all(isinstance(n, allowed) for n in ast.walk(node))


def count(text: str) -> dict[str, int]:
    """Operations of the longest function of a module."""
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    tally = Tally()
    for statement in max(functions, key=lambda f: (f.end_lineno or 0) - f.lineno).body:
        tally.visit(statement)
    return tally.counts()
