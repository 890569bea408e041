"""Poses of joints as text: formulas in the syntax of Python, read into a tree that is walked; nothing is executed.

d = "sqrt(0.04 + 0.01 * cos(q))"        a name for what follows
x = "0.1 * d", pitch = "q + atan2(sin(q), 2)"
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from .description import PoseFormula, Vec3

# what a pose is made of, parent side first: its elementary joint
POSE_STEPS: dict[str, tuple[str, Vec3]] = {
    "x": ("prismatic", (1.0, 0.0, 0.0)),
    "y": ("prismatic", (0.0, 1.0, 0.0)),
    "z": ("prismatic", (0.0, 0.0, 1.0)),
    "yaw": ("revolute", (0.0, 0.0, 1.0)),
    "pitch": ("revolute", (0.0, 1.0, 0.0)),
    "roll": ("revolute", (1.0, 0.0, 0.0)),
}
ARITIES = {"sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "sqrt": 1, "atan2": 2, "where": 3}
MAX_COORDINATES = 6
MAX_FORMULA_LENGTH, MAX_FORMULA_DEPTH, MAX_FORMULA_POWER, MAX_FORMULA_PARTS = 4000, 100, 16, 1000
GRID = {1: 32, 2: 8, 3: 5, 4: 3, 5: 3, 6: 3}  # where formulas are tried, along each coordinate
Functions = Mapping[str, Callable[..., Any]]
_OF_NUMBERS: Functions = {
    **{name: getattr(math, name) for name in ARITIES if name != "where"},
    "where": lambda condition, a, b: a if condition else b,
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_ORDERINGS = ([ast.Gt], [ast.Lt])


def coordinate_names(count: int) -> list[str]:
    """The names of the coordinates of a joint in formulas."""
    return ["q"] if count == 1 else [f"q{k + 1}" for k in range(count)]


def steps_of(formula: PoseFormula) -> list[str]:
    """The steps x, y, z, yaw, pitch, roll that a pose has, in the order of the chain."""
    given = {name for name, _ in formula.pose}
    return [step for step in POSE_STEPS if step in given]


def step_values(formula: PoseFormula, q: Sequence[Any], functions: Functions) -> list[Any]:
    """The values of the steps over any kind of scalar; functions: what is meant by the names of FUNCTIONS."""
    known: dict[str, Any] = {"pi": math.pi, **dict(zip(coordinate_names(formula.coordinates), q))}
    for name, text in formula.pose:
        known[name] = _value(_parsed(text), known, functions)
    return [known[step] for step in steps_of(formula)]


def faults(formula: PoseFormula) -> Iterator[str]:
    """The faults of a formula, each the middle of a sentence."""
    if not 1 <= formula.coordinates <= MAX_COORDINATES:
        yield f"has a formula of {formula.coordinates} coordinates; it may have 1 to {MAX_COORDINATES}"
        return
    if len(formula.pose) > MAX_FORMULA_PARTS:
        yield f"has a formula of {len(formula.pose)} parts; it may have {MAX_FORMULA_PARTS}"
        return
    names = coordinate_names(formula.coordinates)
    needs: dict[str, set[str]] = {name: {name} for name in names} | {"pi": set()}  # the coordinates behind a name
    for name, text in formula.pose:
        if name in needs or name in ARITIES or not name.isidentifier():
            yield f"has a formula for {name!r}, which is taken or no name; call it something else"
            return
        try:
            used = _names(_parsed(text))
            if unknown := sorted(used - set(needs)):
                known = ", ".join([*needs, *ARITIES])
                raise ValueError(f"{unknown[0]!r} is not known there; known are {known}")
        except ValueError as error:
            yield f"has the formula {name} = {text[:80]!r}: {error}"
            return
        needs[name] = set().union(*(needs[other] for other in used))
    steps = steps_of(formula)
    if idle := sorted(set(names) - set().union(*(needs[step] for step in steps))):
        yield (
            f"has a formula in which {idle[0]} moves nothing; use it in one of {', '.join(POSE_STEPS)} "
            "(metres and radians), or leave it out"
        )


def faults_of_values(formula: PoseFormula, low: float, high: float) -> str:
    """Why a formula without `faults` gives no motion between two bounds of its coordinates; or ""."""
    n, names = formula.coordinates, coordinate_names(formula.coordinates)
    grid = [low + (high - low) * (k + 0.5) / GRID[n] for k in range(GRID[n])]
    rank = 0
    for q in product(grid, repeat=n):
        try:
            at = [step_values(formula, [x + h * (i == k) for i, x in enumerate(q)], _OF_NUMBERS)
                  for k in range(n) for h in (0.0, 1e-6)]  # fmt: skip
            G = np.array(at[1::2]) - np.array(at[::2])
        except (ArithmeticError, ValueError):  # as the functions of numbers say it
            G = np.array([[math.nan]])
        if not np.isfinite(G).all():
            where = ", ".join(f"{name} = {x:.3g}" for name, x in zip(names, q))
            return f"has a formula without a value at {where}; give it limits within which it has one"
        rank = max(rank, int(np.linalg.matrix_rank(G, tol=1e-9)))
    if rank == n:
        return ""
    return f"has a formula of {n} coordinates that moves it in {rank} independent ways; leave {n - rank} out"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    """The expression; ValueError where it is none of ours."""
    if len(text) > MAX_FORMULA_LENGTH:
        raise ValueError(f"it is longer than {MAX_FORMULA_LENGTH} characters; name its parts")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("it is not a formula; write it as in Python, such as 0.1 * sin(q)**2") from None
    _require_ours(node)
    return node


def _require_ours(top: ast.expr) -> None:
    """ModelError for a formula that has more than arithmetic and known functions, or is too deep."""
    level: list[ast.AST] = [top]
    for _ in range(MAX_FORMULA_DEPTH):
        for node in level:
            if fault := _fault(node):
                raise ValueError(fault)
        level = [part for node in level for part in _parts(node)]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_FORMULA_DEPTH} deep; name its parts")


def _parts(node: ast.AST) -> list[ast.expr]:
    """The operands of a node that is one of ours; of where, what it compares and what it chooses from."""
    if isinstance(node, ast.BinOp):
        return [node.left] if isinstance(node.op, ast.Pow) else [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if not isinstance(node, ast.Call):
        return []
    condition, *rest = node.args
    return [condition.left, *condition.comparators, *rest] if isinstance(condition, ast.Compare) else node.args


def _fault(node: ast.AST) -> str:
    """Why a node is none of a formula, or ""."""
    if isinstance(node, ast.Constant):
        return "" if _is_number(node.value) else f"{str(node.value)[:20]!r} is no finite number"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right
        whole = isinstance(power, ast.Constant) and type(power.value) is int
        if whole and 1 <= power.value <= MAX_FORMULA_POWER:  # type: ignore[attr-defined]
            return ""
        return f"a power is a whole number from 1 to {MAX_FORMULA_POWER}; sqrt and / give others"
    if isinstance(node, ast.Call):
        return _fault_of_call(node)
    known = isinstance(node, ast.Name) or (
        isinstance(node, (ast.BinOp, ast.UnaryOp)) and type(node.op) in (*_ARITHMETIC, ast.USub, ast.UAdd)
    )
    if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Compare)):
        return "it branches; write where(condition, a, b), smooth to the second derivative"
    return "" if known else "it has more than numbers, names, + - * / ** and functions"


def _fault_of_call(node: ast.Call) -> str:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in ARITIES:
        return f"{name or 'what it calls'!r} is no function here; known are {', '.join(ARITIES)}"
    if node.keywords or len(node.args) != ARITIES[name] or any(isinstance(x, ast.Starred) for x in node.args):
        return f"{name} takes {ARITIES[name]} argument{'s' * (ARITIES[name] > 1)}"
    if name == "where" and not (isinstance(x := node.args[0], ast.Compare) and [*map(type, x.ops)] in _ORDERINGS):
        return "where chooses by a comparison such as q > 1"
    return ""


def _is_number(value: object) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def _names(node: ast.expr) -> set[str]:
    names = {node.id} if isinstance(node, ast.Name) else set()
    return names.union(*map(_names, _parts(node)))


def _value(node: ast.expr, names: Mapping[str, Any], functions: Functions) -> Any:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return names[node.id]
    x = [_value(part, names, functions) for part in _parts(node)]
    if isinstance(node, ast.UnaryOp):
        return -x[0] if isinstance(node.op, ast.USub) else x[0]
    if isinstance(node, ast.Call):
        if isinstance(condition := node.args[0], ast.Compare):
            x[:2] = [x[0] > x[1] if isinstance(condition.ops[0], ast.Gt) else x[0] < x[1]]
        return functions[node.func.id](*x)  # type: ignore[attr-defined]
    assert isinstance(node, ast.BinOp)
    if isinstance(node.op, ast.Pow):
        out = x[0]
        for _ in range(node.right.value - 1):  # type: ignore[attr-defined]
            out = out * x[0]
        return out
    return _ARITHMETIC[type(node.op)](*x)
