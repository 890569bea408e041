"""After a failed check: which row, which number, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import NumericsError
from ..graph.evaluate import evaluate_edges
from ..graph.program import PIVOT_FLOOR, Program
from ..store.build import Manifest

Array = np.ndarray[Any, Any]
UNIT_TOLERANCE = 2e-6  # of |q|^2, as in the compiled check
_HUGE = (1e75, 1e9)  # in double, in single precision: the fourth power is at the end of all numbers
_SINGULAR = {  # by output
    "Lambda": "the task is singular there, the link cannot move in all six directions; what moves is in "
    "inverse_operational_inertia",
    "q1": "the motion grows beyond all numbers there, or the mass matrix is singular: a smaller dt, softer drives",
}


_RULES_OF_CONTACT = (  # of parameters by how their names begin
    ("friction", np.less, "a coefficient of friction is 0 or more"),
    ("size", np.less_equal, "a size of a geom is positive"),
)
PIVOT_ROWS = 1024  # of which the pivots are looked at together


class Pivot(NamedTuple):
    """The pivot at a joint, relative to what it is left of; beside: joints that are nearly as bad."""

    row: int
    joint: str
    ratio: float
    lost: bool
    beside: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """joint 'a', beside 'b' and 'c'."""
        *most, last = map(repr, self.beside or ("",))
        beside = f", beside {', '.join(most)}{' and ' * bool(most)}{last} which are nearly so"
        return f"joint {self.joint!r}" + beside * bool(self.beside)


Weakest = Callable[[Sequence[Array]], "Pivot | None"]  # by inputs (B, n)


def report(
    m: Manifest, inputs: Sequence[Array], outputs: Sequence[Array], rows: bool, weakest: Weakest | None = None
) -> None:
    """Raises NumericsError for the first bad row; returns if the numbers are in order after all."""
    ins = [x if rows else x.T for x in inputs]
    outs = finite_results(m, outputs, rows)
    many = len(outs[0]) > 1 if outs else False
    sentence = _not_finite_input(m, ins, many) or _quaternion(m, ins, many) or _of_contact(m, ins, many)
    finite = all(np.isfinite(x).all() for x in outs)
    if not sentence and weakest is not None:
        with np.errstate(all="ignore"):
            sentence = _pivot(m, weakest(ins), finite, many)
    sentence = sentence or _output(m, ins, outs, many)
    if sentence:
        raise NumericsError(f"{m.name}: {sentence}")


def finite_results(m: Manifest, outputs: Sequence[Array], rows: bool) -> list[Array]:
    """Results (B, n) that must be finite: less those that may be NaN in places."""
    partial = m.meta.get("partial", ())
    return [(x if rows else x.T)[:, : 0 if name in partial else None] for x, (name, _) in zip(outputs, m.outputs)]


def weakest(program: Program, ins: Sequence[Array]) -> Pivot | None:
    """The first guard that fails, or the one nearest to it; of a row the outermost joint. None without guards."""
    found: list[Pivot] = []
    joints = [g.joint for g in program.guards]
    for start in range(0, len(ins[0]), PIVOT_ROWS) if program.guards else ():
        ratio = _ratios(program, [x[start : start + PIVOT_ROWS] for x in ins])
        pivot = first_lost(ratio, joints, start)
        if (
            pivot.lost and np.isnan(ratio[pivot.row - start]).any()
        ):  # a pivot of 0: only more digits show what is behind
            precise = _ratios(program, [x[pivot.row, None].astype(np.longdouble) for x in ins])[0]
            pivot = pivot._replace(beside=_near(precise, joints, pivot.joint, ratio.dtype))
        found.append(pivot)
        if pivot.lost:
            break
    return min(found, key=lambda p: (not p.lost, p.ratio), default=None)


def _ratios(program: Program, ins: Sequence[Array]) -> Array:
    """Pivots relative to their scales, (B, guards), in the precision of the inputs."""
    kind = ins[0].dtype.type
    given = len(ins) > len(program.inputs)
    leaves = {p.node: ins[-1][:, k] if given else kind(p.value) for k, p in enumerate(program.parameters)}
    leaves |= {n: x[:, k] for port, x in zip(program.inputs, ins) for k, n in enumerate(port.nodes)}
    values = evaluate_edges(program.graph, [e for g in program.guards for e in g[:2]], leaves, kind)
    return np.stack([np.broadcast_to(p / s, len(ins[0])) for p, s in zip(values[::2], values[1::2])], 1)


def first_lost(ratio: Array, joints: Sequence[str], start: int = 0) -> Pivot:
    """Finds the first lost pivot, or the least, among pivots relative to their scales, (B, n)."""
    lost = ~(ratio > PIVOT_FLOOR[ratio.dtype.itemsize])
    at = int(lost.argmax()) if lost.any() else int(ratio.argmin())
    r, k = divmod(at, len(joints))
    near = _near(ratio[r], joints, joints[k], ratio.dtype)
    return Pivot(start + r, joints[k], float(ratio[r, k]), bool(lost[r, k]), near)


def _near(ratio: Array, joints: Sequence[str], but: str, dtype: Any) -> tuple[str, ...]:
    """The other joints whose pivots have lost half of the digits of dtype or more."""
    few = np.sqrt(PIVOT_FLOOR[np.dtype(dtype).itemsize])
    return tuple(dict.fromkeys(joint for joint, x in zip(joints, ratio) if x < few and joint != but))


def _pivot(m: Manifest, found: Pivot | None, finite: bool, many: bool) -> str | None:
    """Sentence on the pivot that the kernel's test found; where results are not finite only if that is why."""
    if found is None or np.isnan(found.ratio) or not (found.lost or finite):
        return None
    if "guard" in m.meta:
        return str(m.meta["guard"]).format(row=_row(found.row, many))
    return (
        f"the mass matrix is singular to working precision at {found.place}{_row(found.row, many)}: "
        f"{abs(found.ratio):.1e} of the inertia that it moves is left to it, so no digit of the result would be "
        "right; leave this configuration, or give the bodies beside the joint inertia"
    )


def _row(r: int, many: bool) -> str:
    return f" in row {r}" if many else ""


def _entry(name: str, shape: tuple[int, ...], k: int) -> str:
    index = ", ".join(str(i) for i in np.unravel_index(k, shape)) if shape else ""
    return f"{name}[{index}]" if index else name


def _first(arrays: Sequence[Array]) -> tuple[int, int, int] | None:
    """Row, column and array of the first value that is not finite."""
    hits = []
    for i, bad in enumerate(~np.isfinite(x) for x in arrays):
        if bad.any():
            r = int(bad.any(axis=1).argmax())
            hits.append((r, int(bad[r].argmax()), i))
    return min(hits, default=None)


def _not_finite_input(m: Manifest, ins: Sequence[Array], many: bool) -> str | None:
    hit = _first(ins)
    if hit is None:
        return None
    r, k, i = hit
    name, shape = m.inputs[i]
    return f"{_entry(name, shape, k)}{_row(r, many)} is {float(ins[i][r, k])}: inputs must be finite"


def bad_quaternion(m: Manifest, ins: Sequence[Array]) -> tuple[int, int] | None:
    """Row and number of the first quaternion that is not of unit length."""
    hits = []
    for u, (i, columns) in enumerate(m.units):
        with np.errstate(over="ignore"):
            square = (ins[i][:, list(columns)].astype(np.float64) ** 2).sum(axis=1)
        wrong = ~(np.abs(square - 1.0) <= UNIT_TOLERANCE)
        if wrong.any():
            hits.append((int(wrong.argmax()), u))
    return min(hits) if hits else None


def _quaternion(m: Manifest, ins: Sequence[Array], many: bool) -> str | None:
    hit = bad_quaternion(m, ins)
    if hit is None:
        return None
    r, u = hit
    i, columns = m.units[u]
    value = ins[i][r, list(columns)].astype(np.float64)
    where = f"{m.inputs[i][0]}[{columns[0]}:{columns[-1] + 1}]"
    with np.errstate(over="ignore"):
        size = float(np.sqrt((value**2).sum()))
    return f"the quaternion {where}{_row(r, many)} has length {size:.9g}; it must be 1 to 1e-6: normalise it"


def _of_contact(m: Manifest, ins: Sequence[Array], many: bool) -> str | None:
    """The first friction, among the parameters, that is below zero, or size of a geom that is not above it."""
    given = [x for x, (name, _) in zip(ins, m.inputs) if name == "parameters"]
    for kind, beyond, rule in _RULES_OF_CONTACT:
        at = [k for k, (name, _) in enumerate(m.parameters) if name.split(".")[0] == kind]
        below = np.argwhere(beyond(given[0][:, at], 0.0)).tolist() if at and given else []
        if below:
            r, k = below[0][0], at[below[0][1]]
            name, value = m.parameters[k][0], float(given[0][r, k])
            return f"{name}, parameters[{k}]{_row(r, many)}, is {value:g}: {rule}"
    return None


def _output(m: Manifest, ins: Sequence[Array], outs: Sequence[Array], many: bool) -> str | None:
    hit = _first(outs)
    if hit is None:
        return None
    r, k, i = hit
    name, shape = m.outputs[i]
    entry = _entry(name, shape, k)
    if m.pattern is not None:
        entry = f"{name}[{', '.join(str(axis[k]) for axis in m.pattern[i])}]"
    singular = "the mass matrix or another divisor is singular there"
    if joints := m.meta.get("by_formula"):
        singular += f", or the formula of joint {' or '.join(map(repr, joints[:4]))} has no value"
    why = _too_large(m, ins, r) or m.meta.get("undefined") or _SINGULAR.get(name, singular)
    return f"{entry}{_row(r, many)} is {float(outs[i][r, k])}: {why}"


def _too_large(m: Manifest, ins: Sequence[Array], r: int) -> str | None:
    """The largest input of a row, where angles of that size have no sine or its powers are beyond all numbers."""
    sizes = [(float(np.abs(x[r]).max()), int(np.abs(x[r]).argmax()), i) for i, x in enumerate(ins) if x.shape[1]]
    for largest, k, i in sorted(sizes, reverse=True):
        name, shape = m.inputs[i]
        said = f"{_entry(name, shape, k)} is as large as {largest:.3g}"
        single = ins[i].dtype == np.float32
        if name == "q" and largest > 2.0 ** (20 if single else 40):
            return f"{said}, and angles are limited to 2^40, in float32 to 2^20"
        if largest > _HUGE[single]:
            return f"{said}, and what is computed from it is beyond the largest number"
    return None
