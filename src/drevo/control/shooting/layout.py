"""The data of a trajectory's machine code: the record of a knot, the fields of the whole, 8 bytes each."""

from __future__ import annotations

from typing import NamedTuple

from ...codegen.lower.loops import FieldLayout

SPARE = 8  # numbers behind the gains, which whole vectors may write over
_NAMES = (
    "knots", "first", "lanes", "dt", "ureg", "xreg", "open", "gain", "bend", "work",
    "A", "A_step", "B", "B_step", "H", "H_step", "R", "R_step", "U", "U_step", "T_q", "T_v", "T_step", "final",
    "record", "record_step", "path", "q", "v", "u", "cost", "alpha", "arena", "pointers", "strides",
)  # fmt: skip
_DOUBLES = ("dt", "ureg", "xreg", "gain", "bend")
_INTEGERS = (
    "knots", "first", "lanes", "open", "A_step", "B_step", "H_step", "R_step", "U_step", "T_step", "record_step",
)  # fmt: skip
KNOT_STATE = FieldLayout(_NAMES, _DOUBLES, _INTEGERS)


class KnotRecord(NamedTuple):
    """The layout of the numbers of a knot: the gains K (m, 2 n), the step k of the inputs, the gap to the next
    knot, the point of the reference, bounds of the inputs, time and step."""

    nq: int
    n: int
    m: int

    @property
    def parts(self) -> dict[str, slice]:
        n, m = self.n, self.m
        sizes = {
            "K": 2 * n * m, "spare": SPARE, "k": m, "gap": 2 * n, "q": self.nq, "v": n, "u": m,
            "low": m, "high": m, "time": 1, "dt": 1,
        }  # fmt: skip
        out, at = {}, 0
        for name, size in sizes.items():
            out[name] = slice(at, at := at + size)
        return out

    @property
    def size(self) -> int:
        return int(self.parts["dt"].stop)
