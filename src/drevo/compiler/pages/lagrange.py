"""The Lagrange equations of the second kind as a document, every kind of term apart.

sum_j H_ij a_j + centrifugal_i + Coriolis_i + gravity_i = tau_i, from Telegin's elements and their derivatives;
the gyroscopic terms are the part of the second and third that does no work.

The kinetic energy as Alyushin 2022 prints it, with constant polar moments: written out, labelled not exact.

The document shows, beside what the formulas give, the exact value and the error at sample states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...codegen.graph.evaluate import evaluate
from ...documents.sources import SOURCES
from ...errors import TraceError, one_of
from ...mechanics.algorithms.energy import kinetic_energy as exact_energy
from ...mechanics.configuration import random
from ...mechanics.formalisms import alyushin, alyushin_page
from ...mechanics.formalisms.telegin import SEQUENCES
from ...mechanics.formalisms.telegin_lagrange import equations
from ...mechanics.scalar import Vector
from ...mechanics.tree import Tree, plain_tree
from ...model.description import Model
from ...model.quantities import Quantity
from ..trace import trace
from .derivation import Derivation, write_out_program
from .telegin_inputs import described

SNAP = 1e-9  # rad, as in write_out
CHECKED_STATES = 32
TERMS = Quantity(
    "lagrange_equations",
    ("q", "v"),
    (("H", ("nv", "nv")), *((n, ("nv",)) for n in ("centrifugal", "coriolis", "gyroscopic", "gravity"))),
    "the Lagrange equations of the second kind: inertia matrix, then every kind of term apart",
)


def terms(tree: Tree, q: Vector, v: Vector) -> tuple[Any, ...]:
    """The matrix and the terms of every equation."""
    e = equations(tree, q, v)
    return e.inertia, e.centrifugal, e.coriolis, e.gyroscopic, e.gravity


def lagrange_equations(model: Model, patterns: Sequence[str], merge_equal: bool = False) -> Derivation:
    """H, centrifugal (v_i^2), Coriolis (v_i v_j), gyroscopic and gravity terms, written out."""
    plain_tree(model, TERMS.name)
    program = trace(
        model, TERMS, parameters=patterns, compute=terms, snap=SNAP, meta={"formalism": "telegin"},
        merge_equal=merge_equal,
    )  # fmt: skip
    derivation = write_out_program(described(program, model, patterns, merge_equal))
    return derivation.with_checks(check_rows(model, derivation))


def check_rows(model: Model, derivation: Derivation) -> list[tuple[str, float, int]]:
    """H against the mass matrix, the sum of the terms against the bias, gyroscopic power against nothing."""
    rng = np.random.default_rng(0)
    q, v = random(model, rng, (CHECKED_STATES,)), rng.normal(size=(CHECKED_STATES, model.nv))
    H, centrifugal, coriolis, gyroscopic, gravity = derivation.evaluate(q=q, v=v)
    M = evaluate(trace(model, "mass_matrix", snap=SNAP), {"q": q})["M"]
    h = evaluate(trace(model, "bias", snap=SNAP), {"q": q, "v": v})["h"]
    size = float(np.max(np.abs(centrifugal) + np.abs(coriolis) + np.abs(gravity), initial=0.0)) or 1.0
    sums = float(np.max(np.abs(centrifugal + coriolis + gravity - h), initial=0.0)) / size
    power = float(np.max(np.abs(np.sum(gyroscopic * v, -1)), initial=0.0)) / size
    matrix = float(np.max(np.abs(H - M), initial=0.0)) / (float(np.max(np.abs(M), initial=0.0)) or 1.0)
    return [
        ("H against the plain mass matrix, relative to the largest value", matrix, CHECKED_STATES),
        ("centrifugal + Coriolis + gravity against the plain bias", sums, CHECKED_STATES),
        ("power of the gyroscopic terms, which do no work", power, CHECKED_STATES),
    ]


Array = np.ndarray[Any, Any]
MAX_PRINTED_STATES = 5  # of them in the document


def inexact_energy(
    model: Model,
    quantity: str,
    formalism: str,
    mode: str,
    parameters: Sequence[str] = (),
    merge_equal: bool = False,
    sequence: str | None = None,
) -> Derivation:
    """The Derivation of a mode "A", "B" or "C" of the kinetic energy; TraceError, InputError for another.

    sequence: "paper" is the path of the paper itself.
    """
    alyushin.known_mode(mode)
    if quantity != "kinetic_energy" or formalism not in ("auto", "alyushin"):
        raise TraceError(f"mode {mode!r} belongs to kinetic_energy by alyushin, not to {quantity} by {formalism}")
    if sequence not in (None, "paper"):
        one_of("sequence", sequence, SEQUENCES)
        raise TraceError(f"sequence {sequence!r} belongs to mass_matrix by telegin, not to mode {mode!r}")
    compute = partial(alyushin.kinetic_energy, mode=mode)
    written = partial(alyushin_page.kinetic_energy, mode=mode) if sequence else compute
    tree = plain_tree(model, f"mode {mode!r}")
    rng = np.random.default_rng(0)
    q, v = random(model, rng, (CHECKED_STATES,)), rng.normal(size=(CHECKED_STATES, model.nv))
    by_mode, exact = (_over(f, tree, q, v) for f in (compute, exact_energy))
    about = {
        "formalism": f"alyushin, mode {mode}, not exact",
        "references": SOURCES["alyushin"].text,
        "assumptions": _said(mode, q, v, by_mode, exact),
    }
    program = trace(
        model, quantity, parameters=parameters, compute=written, snap=SNAP, meta=about, merge_equal=merge_equal
    )
    derivation = write_out_program(described(program, model, parameters, merge_equal))
    by_lines = derivation.evaluate(q=q, v=v)
    scale = float(np.abs(exact).max(initial=0.0)) or 1.0
    rows = (
        (f"written out, against mode {mode} on numbers, relative to the largest value", by_lines - by_mode),
        (f"mode {mode}, not exact, against the exact value, relative to the largest value", by_mode - exact),
    )
    return derivation.with_checks(
        [(what, float(np.abs(x).max(initial=0.0)) / scale, CHECKED_STATES) for what, x in rows]
    )


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
    for k in range(min(MAX_PRINTED_STATES, len(q))):
        error = by_mode[k] - exact[k]
        part = f" ({100.0 * error / exact[k]:+.1f} %)" if exact[k] else ""
        lines.append(
            f"At q = ({_listed(q[k])}), v = ({_listed(v[k])}): mode {mode} gives {by_mode[k]:.6g} J, exact is "
            f"{exact[k]:.6g} J, error {error:+.3g} J{part}."
        )
    return tuple(lines)


def _listed(x: Array) -> str:
    return ", ".join(f"{e:.4g}" for e in x)
