"""The state of the engine: its arrays, and the twin of the engine in Python for laws that cannot be compiled.

Step lengths from embedded error estimates: Hairer, Norsett, Wanner 1993, II.4 and, of DOP853, II.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..codegen.lower.loops import (
    COMPILED_ORDER,
    FIRST_STEP,
    GROW,
    MIN_STEP_ULPS,
    MOTION_STATE,
    NOT_FINITE,
    SAFETY,
    SAMPLE_NUMBERS,
    SETTLED,
    SHRINK,
    TOO_SMALL,
    UNSETTLED,
)
from ..errors import NumericsError
from ..model.description import Model
from .integrators import Integrator
from .motion import CompiledMotion, StateRates, quaternions

Array = np.ndarray[Any, Any]
SWEEPS = 60  # of an implicit method's iteration
_PAD = 8  # doubles: the widest vector


def _aligned_zeros(n: int) -> Array:
    """Zeros on a cache line."""
    raw = np.zeros(n + 8)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip : skip + n]


class EngineState:
    """`count` robots on their way. q, v: where they are now, (count, nq) and (count, nv), to be written freely.

    Rates of the last step's stages are in k_q, k_v, (stages, count, n).
    """

    def __init__(
        self, model: Model, rates: CompiledMotion | StateRates, method: Integrator, count: int, step: float
    ) -> None:
        self.model, self.rates, self.method, self.count, self.h = model, rates, method, count, step
        self.t0, self.k, self.code = 0.0, 0, 0
        self.after: Callable[[float, Array, Array], tuple[Array, Array]] | None = None  # every step, in Python
        self.given: Array | None = None  # (count, n): what the rule of the motion reads of the start
        self.tau: Array | None = None  # (steps, count, nv), held over each step; (1, ...) is a constant
        if isinstance(rates, CompiledMotion) and rates.large:
            self.tau = np.zeros((1, count, model.nv))
        self.fields = np.zeros(len(MOTION_STATE.names), np.int64)
        self._arrays: dict[str, Array] = {}
        s, pads = method.stages, [-(-count * n // _PAD) * _PAD for n in (model.nq, model.nv)]
        for part, pad in zip("qv", pads):
            for name in ("", "e_", "Y_", "Z_"):
                self._set_array(f"{name}{part}", _aligned_zeros(pad + _PAD))
            self._set_array(f"K_{part}", _aligned_zeros(s * pad + _PAD))
            self._set_integer(f"pad_{part}", pad)
        self._tableau()
        views = [self._arrays[n][: count * size] for n, size in (("q", model.nq), ("v", model.nv))]
        self.q, self.v = (x.reshape(count, n) for x, n in zip(views, (model.nq, model.nv)))
        self.e_q, self.e_v = self._arrays["e_q"], self._arrays["e_v"]
        self.k_q, self.k_v = (
            self._arrays[f"K_{p}"][: s * pad].reshape(s, pad)[:, : count * n].reshape(s, count, n)
            for p, pad, n in zip("qv", pads, (model.nq, model.nv))
        )
        self._fixed()

    def _set_integer(self, field: str, value: int) -> None:
        self.fields[MOTION_STATE.place(field)] = value

    def _set_double(self, field: str, value: float) -> None:
        self.fields.view(np.float64)[MOTION_STATE.place(field)] = value

    def _set_array(self, field: str, x: Array) -> None:
        self._arrays[field] = x
        self._set_integer(field, x.ctypes.data)

    def _tableau(self) -> None:
        m = self.method
        self._set_array("a_v", np.array(m.rows, float))
        self._set_array("b_v", np.array(m.weights, float))
        self._set_array("a_q", np.array(m.q_rows or m.rows, float))
        self._set_array("b_q", np.array(m.q_weights or m.weights, float))
        self._set_array("c", np.array(m.nodes, float))
        none = (0.0,) * m.stages
        for field, row in zip(("e_5", "e_3"), (*m.errors, none, none)):
            self._set_array(field, np.array(row, float))
        self._set_integer("stages", m.stages)
        self._set_integer("sweeps", SWEEPS if m.implicit else 0)

    def _fixed(self) -> None:
        """Sets the fields that no integration changes."""
        nq, nv = self.model.nq, self.model.nv
        starts = np.array([*quaternions(self.model), 0], np.int64)
        self._set_array("quaternions", starts)
        self._set_integer("quaternion_count", len(starts) - 1)
        self._set_array("t", np.zeros(8))
        self._set_array("best", np.zeros(8))
        self._set_array("status", np.zeros(8))
        self._set_array("pointers", np.zeros(16, np.int64))
        rule = self.rates.rule if isinstance(self.rates, CompiledMotion) else None
        rows = (sum(rule.given),) if rule else ()
        back = (nq, nv, rule.gaps, rule.watched) if rule else ()
        self._set_array("strides", 8 * np.array([nq, nv, nv, 0, *rows, nq, nv, *back], np.int64))
        for field, size in zip(("P_q", "P_v", "gap", "watch"), back):
            self._set_array(field, _aligned_zeros(self.count * size + _PAD))
        self._set_array("rows", np.zeros(self.count * SAMPLE_NUMBERS))
        sizes = zip(("size_q", "size_v", "size_gap", "size_watch"), (nq, nv, *back[2:]))
        for field, value in (("count", self.count), *sizes):
            self._set_integer(field, value)
        self._set_integer("n_q", self.count * nq)
        self._set_integer("n_v", self.count * nv)
        if isinstance(self.rates, CompiledMotion):
            self._set_array("arena", _aligned_zeros(self.rates.arena // 8 + 64))
            self._set_array("scratch", _aligned_zeros(self.rates.scratch // 8 + 8))

    def integrate(self, to_q: Array, to_v: Array, every: int = 1) -> int:
        """Makes len(to_q) records (records, count, n), one each `every` steps; how many came out well."""
        self.code = 0
        if not isinstance(self.rates, CompiledMotion):
            return self._integrate_in_python(self.rates, to_q, to_v, every)
        self._set_double("t0", self.t0)
        self._set_double("h", self.h)
        for field, value in (("k", self.k), ("every", every), ("records", len(to_q)), ("code", 0)):
            self._set_integer(field, value)
        for field, x in (("to_q", to_q), ("to_v", to_v)):
            self._set_integer(field, x.__array_interface__["data"][0])
            self._set_integer(f"{field}_step", x.strides[0])
        if self.tau is not None:
            stride = self.tau.strides[0] if len(self.tau) > 1 else 0
            self._set_integer("tau", self.tau.__array_interface__["data"][0] + self.k * stride)
            self._set_integer("tau_step", stride)
        self._lend_start()
        done = self.rates.integrate(self.fields)
        self.k = int(self.fields[MOTION_STATE.place("k")])
        self.code = int(self.fields[MOTION_STATE.place("code")])
        return done

    def integrate_adaptive(
        self, to_t: Array, to_q: Array, to_v: Array, end: float, rtol: float, atol: float
    ) -> tuple[int, int]:
        """Accepted steps of adaptive length, a record each, to the end or until len(to_t) of them; and those
        that were refused. t0 and h go on from call to call."""
        assert isinstance(self.rates, CompiledMotion)
        for field, x in (("t0", self.t0), ("h", self.h), ("t_end", end), ("rtol", rtol), ("atol", atol)):
            self._set_double(field, x)
        for field, k in (("records", len(to_t)), ("code", 0), ("rejected", 0)):
            self._set_integer(field, k)
        for field, a in (("to_t", to_t), ("to_q", to_q), ("to_v", to_v)):
            self._set_integer(field, a.ctypes.data)
        self._set_integer("to_q_step", to_q.strides[0])
        self._set_integer("to_v_step", to_v.strides[0])
        if self.tau is not None:
            self._set_integer("tau", self.tau.ctypes.data)
        self._lend_start()
        done = self.rates.integrate_adaptive(self.fields)
        real, at = self.fields.view(np.float64), MOTION_STATE.place
        self.t0, self.h = float(real[at("t0")]), float(real[at("h")])
        self.code = int(self.fields[at("code")])
        return done, int(self.fields[at("rejected")])

    def _lend_start(self) -> None:
        if self.given is not None:
            self._set_array("given", np.ascontiguousarray(self.given))

    # -- the same in Python ---------------------------------------------------------------------------------

    def _integrate_in_python(self, rates: StateRates, to_q: Array, to_v: Array, every: int) -> int:
        with np.errstate(all="ignore"):
            for r in range(len(to_q)):
                for _ in range(every):
                    self.code = self._step(rates)
                    if self.code:
                        return r
                to_q[r], to_v[r] = self.q, self.v
        return len(to_q)

    def _step(self, rates: StateRates) -> int:
        """One step; 0, or why not."""
        now, implicit = self.t0 + self.k * self.h, self.method.implicit
        last, going = np.zeros(self.count), np.ones(self.count, bool)
        for sweep in range(SWEEPS if implicit else 1):
            change, size = self._stages(rates, now, going)
            if not np.isfinite(size).all():
                return NOT_FINITE
            ended = (change >= last) | (sweep == SWEEPS - 1)
            going &= ~((sweep > 1) & ended & (change <= SETTLED * size)) & (change != 0.0)
            if not going.any():
                break
            last = change
        if implicit and going.any():
            return UNSETTLED
        self._finish_step()
        return 0

    def _stages(self, rates: StateRates, now: float, going: Array) -> tuple[Array, Array]:
        """Every stage of the samples that go on once; of each the largest change of a rate, the largest rate."""
        m, a_q, a_v = self.method, self._arrays["a_q"], self._arrays["a_v"]
        change, size = np.zeros((2, self.count))
        for s in range(m.stages):
            n = m.stages if m.implicit else s
            q = self.q + self.h * _weighted(a_q[s, :n], self.k_q)
            v = self.v + self.h * _weighted(a_v[s, :n], self.k_v)
            for k, new in zip((self.k_q, self.k_v), rates(now + m.nodes[s] * self.h, q, v)):
                change = np.maximum(change, np.abs(new - k[s]).max(-1, initial=0.0))
                size = np.maximum(size, np.abs(new).max(-1, initial=0.0))
                k[s] = np.where(going[:, None], new, k[s])
        return change, size

    def _finish_step(self) -> None:
        for y, e, k, b in ((self.q, self.e_q, self.k_q, "b_q"), (self.v, self.e_v, self.k_v, "b_v")):
            rest = e[: y.size].reshape(y.shape)
            increment = self.h * _weighted(self._arrays[b], k) + rest
            new = y + increment
            rest[...] = increment - (new - y)
            y[...] = new
        for s in quaternions(self.model):
            self.q[:, s : s + 4] /= np.linalg.norm(self.q[:, s : s + 4], axis=-1, keepdims=True)
        self.k += 1
        if self.after is not None:
            self.q[...], self.v[...] = self.after(self.t0 + self.k * self.h, self.q, self.v)


def _weighted(row: Array, k: Array) -> Array:
    """The sum over the stages, one after the other whatever the size of the batch."""
    return sum((w * x for w, x in zip(row, k)), np.zeros(k.shape[1:]))


TimedState = tuple[float, Array, Array]  # t, q (count, nq), v (count, nv)
RECORDS = 64  # steps of a call of the machine code


class Adaptive:
    """Accepted steps of a motion. rtol, atol: of every coordinate and rate, the worst sample of a batch decides.

    stopped: the sentence for a motion that cannot go on.
    """

    def __init__(
        self, state: EngineState, end: float, rtol: float, atol: float, stopped: Callable[[], str]
    ) -> None:
        self.state, self.end, self.rtol, self.atol, self.stopped = state, end, rtol, atol, stopped
        self.steps = self.rejected = 0
        self.errors = np.array(state.method.errors)

    def nodes(self) -> Iterator[TimedState]:
        """The accepted steps: t, q, v."""
        state = self.state
        if isinstance(state.rates, CompiledMotion) and state.count == 1 and state.method.order == COMPILED_ORDER:
            yield from self._compiled()
        else:
            for t in self._in_python():
                yield t, state.q.copy(), state.v.copy()

    def _compiled(self) -> Iterator[TimedState]:
        """Accepted steps of one motion by a method of order 8, compiled: no Python between the steps."""
        state = self.state
        state.t0, state.h = 0.0, min(FIRST_STEP, self.end)
        while state.t0 < self.end:
            t, q, v = (np.empty((RECORDS, *shape)) for shape in ((), state.q.shape, state.v.shape))
            done, rejected = state.integrate_adaptive(t, q, v, self.end, self.rtol, self.atol)
            self.rejected += rejected
            for k in range(done):
                self.steps += 1
                yield float(t[k]), q[k], v[k]
            if state.code:
                raise NumericsError(self.stopped())

    def _in_python(self) -> Iterator[float]:
        """Times of the accepted steps; `state` is that at each."""
        t, h = 0.0, min(FIRST_STEP, self.end)
        while t < self.end:
            rest = self.end - t
            # the last two steps are equal rather than one full and one tiny
            h = rest if h >= rest else min(h, max(0.5 * rest, h * 0.5)) if 2.0 * h > rest else h
            taken, factor = self._try(t, h)
            if taken:
                t = self.end if h == rest else t + h
                yield t
            elif h <= MIN_STEP_ULPS * np.spacing(max(t, FIRST_STEP)):
                self.state.t0, self.state.k, self.state.code = t, 0, TOO_SMALL
                raise NumericsError(self.stopped())
            h *= factor

    def _try(self, t: float, h: float) -> tuple[bool, float]:
        """Tries a step of h: True if it was good, and the factor to multiply h by."""
        state = self.state
        before = [x.copy() for x in (state.q, state.v, state.e_q, state.e_v)]
        state.t0, state.k, state.h = t, 0, h
        none = np.empty((1, *state.q.shape)), np.empty((1, *state.v.shape))
        good = state.integrate(*none) == 1
        error = self._error(before[0], before[1]) if good else np.inf
        if error <= 1.0:
            self.steps += 1
            grown = GROW if error == 0.0 else SAFETY * error ** (-1.0 / state.method.order)
            return True, float(min(GROW, max(SHRINK, grown)))
        for x, old in zip((state.q, state.v, state.e_q, state.e_v), before):
            x[...] = old
        self.rejected += 1
        if not good:  # rates of a failed trial are no first guess for anything
            state.k_q[...] = state.k_v[...] = 0.0
        return False, float(max(SHRINK, SAFETY * error ** (-1.0 / state.method.order))) if good else SHRINK

    def _error(self, q: Array, v: Array) -> float:
        """The norm of the estimate over its tolerance; 1 is just right."""
        state = self.state
        parts = []
        for old, new, k in ((q, state.q, state.k_q), (v, state.v, state.k_v)):
            scale = self.atol + self.rtol * np.maximum(np.abs(old), np.abs(new))
            parts.append(np.tensordot(self.errors, k, 1) / scale)
        square = (np.concatenate(parts, -1) ** 2).mean(-1)  # (estimates, count)
        if len(square) == 1:
            return float(abs(state.h) * np.sqrt(square[0]).max(initial=0.0))
        fifth, third = square[0], square[1]
        below = np.sqrt(fifth + 0.01 * third)
        return float(abs(state.h) * (fifth / np.where(below == 0.0, 1.0, below)).max(initial=0.0))
