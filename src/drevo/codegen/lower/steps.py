"""The steps of a kernel: operations of a machine without registers, in the order of the algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.ops import BINARY, OPS

FMA, SINCOS, GUARD, TURN, CHOOSE = range(len(OPS), len(OPS) + 5)  # beside the operations of the graph

# (op, to, a, b, c): operands are edges (2 * value + sign); FMA is a * b + c.
# CHOOSE is b where a > 0, else c.
# SINCOS: sin goes to `to`, cos to the *value* b; a is the argument. GUARD: pivot a and its scale b; makes nothing.
# TURN: the angle a * b, an input and a constant, less whole turns where it is large.
Step = tuple[int, int, int, int, int]
# angles reach up to 2 to this power: then rounding leaves r within 2^-10 of its bounds, and n * part is exact
ANGLE_BITS = {("double", True): 40, ("float", True): 20, ("double", False): 20, ("float", False): 11}
_THREE, _TWO = (FMA, CHOOSE), (*BINARY, GUARD, TURN)
_END = [5 if op in _THREE else 4 if op in _TWO else 3 for op in range(CHOOSE + 1)]  # of the operands in a step


def operands(step: Step) -> tuple[int, ...]:
    """The operand edges of a step."""
    return step[2 : _END[step[0]]]


def step_results(step: Step) -> tuple[int, ...]:
    """The values that a step makes."""
    op = step[0]
    if op <= FMA:
        return (step[1],)
    return () if op == GUARD else (step[1], step[3]) if op == SINCOS else (step[1],)


def makers(steps: Sequence[Step]) -> dict[int, int]:
    """Value -> position of the step that makes it."""
    return {v: k for k, step in enumerate(steps) for v in step_results(step)}


def largest_angle(scalar: str, fma: bool) -> float:
    """The largest angle whose sine is still right; above it the result is NaN, never garbage."""
    return 2.0 ** ANGLE_BITS[scalar, fma] * (1.0 - 2.0 ** (-53 if scalar == "double" else -24))
