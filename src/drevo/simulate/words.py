"""What a job of the engine holds, eight bytes each, and why a job may stop."""

from __future__ import annotations

# y, e: state and what its update rounded off; Y, K, Z: stage, rates, new rates; P: state put on its constraints;
# gap: what is left of them in units of CLOSED; watch: what must stay below 1 as long as they are independent
WORDS = (
    "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "Z_q", "Z_v", "a_q", "a_v", "b_q", "b_v", "c",
    "tau", "tau_step", "t", "t0", "h", "k", "stages", "sweeps", "count", "every", "records",
    "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions", "quaternion_count",
    "size_q", "arena", "strides", "pointers", "scratch", "status", "best", "code",
    "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
    "given", "P_q", "P_v", "gap", "watch", "n_gap", "n_watch",
)  # fmt: skip
DOUBLES = ("t0", "h", "rtol", "atol", "t_end")
INTEGERS = (
    "tau_step", "k", "stages", "sweeps", "count", "every", "records", "to_q_step", "to_v_step", "pad_q", "pad_v",
    "n_q", "n_v", "quaternion_count", "size_q", "code", "rejected", "n_gap", "n_watch",
)  # fmt: skip

# codes of a job that stopped
NOT_FINITE, UNSETTLED, TOO_SMALL, DEPENDENT, OPEN = 1, 2, 3, 4, 5


def get(*words: str) -> str:
    """LLVM text: %word of every word, from %job."""
    return "".join(
        f"  %at_{w} = getelementptr i64, ptr %job, i64 {WORDS.index(w)}\n  %{w} = load {_type(w)}, ptr %at_{w}\n"
        for w in words
    )


def _type(word: str) -> str:
    return "double" if word in DOUBLES else "i64" if word in INTEGERS else "ptr"


__all__ = ["DEPENDENT", "DOUBLES", "INTEGERS", "NOT_FINITE", "OPEN", "TOO_SMALL", "UNSETTLED", "WORDS", "get"]
