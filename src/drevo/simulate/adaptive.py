"""Step lengths from embedded error estimates: Hairer, Norsett, Wanner 1993, II.4 and, of DOP853, II.10."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..codegen.lower.motion import COMPILED_ORDER, FIRST_STEP, GROW, MIN_STEP_ULPS, SAFETY, SHRINK, TOO_SMALL
from ..errors import NumericsError
from .compiled_motion import CompiledMotion
from .state import EngineState

Array = np.ndarray[Any, Any]
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
