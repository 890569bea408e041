"""Data of compiled motions on which machine code and Python agree: the fields of the engine's state, codes of
motions that stopped, and the numbers by which iterations end and steps are chosen.
"""

from __future__ import annotations

from .loops import FieldLayout

# y, e: state and what its update rounded off; Y, K, Z: stage, rates, new rates; P: state put on its constraints;
# gap: what is left of them in units of CLOSED; watch: what must stay below 1 as long as they are independent;
# rows: SAMPLE_NUMBERS of each sample while something is iterated, see `llvm.motion`
_MOTION_NAMES = (
    "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "Z_q", "Z_v", "a_q", "a_v", "b_q", "b_v", "c",
    "tau", "tau_step", "t", "t0", "h", "k", "stages", "sweeps", "count", "every", "records",
    "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions", "quaternion_count",
    "size_q", "size_v", "rows", "arena", "strides", "pointers", "scratch", "status", "best", "code",
    "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
    "given", "P_q", "P_v", "gap", "watch", "size_gap", "size_watch",
)  # fmt: skip
_DOUBLES = ("t0", "h", "rtol", "atol", "t_end")
_INTEGERS = (
    "tau_step", "k", "stages", "sweeps", "count", "every", "records", "to_q_step", "to_v_step", "pad_q", "pad_v",
    "n_q", "n_v", "quaternion_count", "size_q", "size_v", "code", "rejected", "size_gap", "size_watch",
)  # fmt: skip

MOTION_STATE = FieldLayout(_MOTION_NAMES, _DOUBLES, _INTEGERS)

SAMPLE_NUMBERS, SAMPLE_DONE = 2, -1.0  # numbers of a sample; the first of them where it is done
# codes of a motion that stopped
NOT_FINITE, UNSETTLED, TOO_SMALL, DEPENDENT, OPEN = 1, 2, 3, 4, 5

SETTLED = 1e-10  # of the largest rate: below it an iteration that no longer gains has converged
SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0  # of the choice of the next step
FIRST_STEP = 1e-3  # s: the first guess of a step
MIN_STEP_ULPS = 64.0  # units of the last place of t: below it a step is none
COMPILED_ORDER = 8  # the exponent 1/8 is three square roots; methods of other orders go on in Python
