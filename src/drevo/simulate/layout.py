"""The fields of the engine's state, eight bytes each, and the codes of a motion that stopped."""

from __future__ import annotations

from typing import ClassVar

from ..codegen.llvm.ir import F64, I64, PTR, IRFunction, Value

# y, e: state and what its update rounded off; Y, K, Z: stage, rates, new rates; P: state put on its constraints;
# gap: what is left of them in units of CLOSED; watch: what must stay below 1 as long as they are independent;
# rows: SAMPLE numbers of each sample while something is iterated, see `steps`
FIELDS = (
    "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "Z_q", "Z_v", "a_q", "a_v", "b_q", "b_v", "c",
    "tau", "tau_step", "t", "t0", "h", "k", "stages", "sweeps", "count", "every", "records",
    "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions", "quaternion_count",
    "size_q", "size_v", "rows", "arena", "strides", "pointers", "scratch", "status", "best", "code",
    "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
    "given", "P_q", "P_v", "gap", "watch", "size_gap", "size_watch",
)  # fmt: skip
DOUBLES = ("t0", "h", "rtol", "atol", "t_end")
INTEGERS = (
    "tau_step", "k", "stages", "sweeps", "count", "every", "records", "to_q_step", "to_v_step", "pad_q", "pad_v",
    "n_q", "n_v", "quaternion_count", "size_q", "size_v", "code", "rejected", "size_gap", "size_watch",
)  # fmt: skip

SAMPLE, DONE = 2, -1.0  # numbers of a sample; the first of them where it is done
# codes of a motion that stopped
NOT_FINITE, UNSETTLED, TOO_SMALL, DEPENDENT, OPEN = 1, 2, 3, 4, 5


class Fields:
    """The fields of a function's argument `state`, as values: read once, at its start. `at`: where one stands."""

    names: ClassVar[tuple[str, ...]] = FIELDS
    doubles: ClassVar[tuple[str, ...]] = DOUBLES
    integers: ClassVar[tuple[str, ...]] = INTEGERS
    _f: IRFunction

    def __init__(self, f: IRFunction) -> None:
        self.__dict__["_f"] = f

    def __getattr__(self, field: str) -> Value:
        kind = F64 if field in self.doubles else I64 if field in self.integers else PTR
        value: Value = self._f.let(kind, f"load {kind}, ptr {self.at(field).text}", first=True)
        self.__dict__[field] = value
        return value

    def at(self, field: str) -> Value:
        """The address of a field."""
        if field not in self.names:
            raise AttributeError(field)
        place = f"getelementptr i64, ptr {self._f.state.text}, i64 {self.names.index(field)}"
        return self._f.let(PTR, place, first=True)
