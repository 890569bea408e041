"""The kinetic energy as Alyushin 2022 prints it, with constant polar moments: written out, labelled not exact.

The document shows, beside what the formulas give, the exact value and the error at sample states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...documents.sources import SOURCES
from ...errors import TraceError
from ...mechanics.algorithms.energy import kinetic_energy as exact_energy
from ...mechanics.configuration import random
from ...mechanics.formalisms import alyushin
from ...mechanics.tree import plain_tree
from ...model.description import Model
from ..trace import trace
from .derivation import Derivation, write_out_program

Array = np.ndarray[Any, Any]
STATES = 32  # of the checks
SHOWN = 5  # of them in the document


def inexact_energy(
    model: Model,
    quantity: str,
    formalism: str,
    mode: str,
    parameters: Sequence[str] = (),
    merge_equal: bool = False,
) -> Derivation:
    """The Derivation of a mode "A", "B" or "C" of the kinetic energy; TraceError, InputError for another."""
    alyushin.known_mode(mode)
    if quantity != "kinetic_energy" or formalism not in ("auto", "alyushin"):
        raise TraceError(f"mode {mode!r} belongs to kinetic_energy by alyushin, not to {quantity} by {formalism}")
    compute = partial(alyushin.kinetic_energy, mode=mode)
    tree = plain_tree(model, f"mode {mode!r}")
    rng = np.random.default_rng(0)
    q, v = random(model, rng, (STATES,)), rng.normal(size=(STATES, model.nv))
    by_mode, exact = (_over(f, tree, q, v) for f in (compute, exact_energy))
    about = {
        "formalism": f"alyushin, mode {mode}, not exact",
        "references": SOURCES["alyushin"].text,
        "assumptions": _said(mode, q, v, by_mode, exact),
    }
    program = trace(model, quantity, parameters=parameters, compute=compute, meta=about, merge_equal=merge_equal)
    derivation = write_out_program(program)
    written = derivation.evaluate(q=q, v=v)
    scale = float(np.abs(exact).max(initial=0.0)) or 1.0
    rows = (
        (f"written out, against mode {mode} on numbers, relative to the largest value", written - by_mode),
        (f"mode {mode}, not exact, against the exact value, relative to the largest value", by_mode - exact),
    )
    return derivation.with_checks([(what, float(np.abs(x).max(initial=0.0)) / scale, STATES) for what, x in rows])


def _over(compute: Any, tree: Any, q: Array, v: Array) -> Array:
    """All states at once."""
    found = compute(tree, list(np.ascontiguousarray(q.T)), list(np.ascontiguousarray(v.T)))
    return np.array(np.broadcast_to(found, len(q)))


def _said(mode: str, q: Array, v: Array, by_mode: Array, exact: Array) -> tuple[str, ...]:
    """A sentence on the mode, and a line for each sample state."""
    lines = [
        f"Not exact: mode {mode} of the paper, {alyushin.MODES[mode]}. Polar moments are constant only for one "
        "rotation about its own axis, or equal moments; the exact energy takes current ones."
    ]
    for k in range(min(SHOWN, len(q))):
        error = by_mode[k] - exact[k]
        part = f" ({100.0 * error / exact[k]:+.1f} %)" if exact[k] else ""
        lines.append(
            f"At q = ({_listed(q[k])}), v = ({_listed(v[k])}): mode {mode} gives {by_mode[k]:.6g} J, exact is "
            f"{exact[k]:.6g} J, error {error:+.3g} J{part}."
        )
    return tuple(lines)


def _listed(x: Array) -> str:
    return ", ".join(f"{e:.4g}" for e in x)
