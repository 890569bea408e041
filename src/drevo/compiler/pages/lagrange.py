"""The Lagrange equations of the second kind as a document, every kind of term apart.

sum_j H_ij a_j + centrifugal_i + Coriolis_i + gravity_i = tau_i, from Telegin's elements and their derivatives;
the gyroscopic terms are the part of the second and third that does no work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.graph.evaluate import evaluate
from ...mechanics.configuration import random
from ...mechanics.formalisms.telegin_lagrange import equations
from ...mechanics.scalar import Vector
from ...mechanics.tree import Tree, plain_tree
from ...model.description import Model
from ...model.quantities import Quantity
from ..trace import trace
from .derivation import Derivation, write_out_program
from .telegin_inputs import described

SNAP = 1e-9  # rad, as in write_out
STATES = 32
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
    q, v = random(model, rng, (STATES,)), rng.normal(size=(STATES, model.nv))
    H, centrifugal, coriolis, gyroscopic, gravity = derivation.evaluate(q=q, v=v)
    M = evaluate(trace(model, "mass_matrix", snap=SNAP), {"q": q})["M"]
    h = evaluate(trace(model, "bias", snap=SNAP), {"q": q, "v": v})["h"]
    size = float(np.max(np.abs(centrifugal) + np.abs(coriolis) + np.abs(gravity), initial=0.0)) or 1.0
    sums = float(np.max(np.abs(centrifugal + coriolis + gravity - h), initial=0.0)) / size
    power = float(np.max(np.abs(np.sum(gyroscopic * v, -1)), initial=0.0)) / size
    matrix = float(np.max(np.abs(H - M), initial=0.0)) / (float(np.max(np.abs(M), initial=0.0)) or 1.0)
    return [
        ("H against the plain mass matrix, relative to the largest value", matrix, STATES),
        ("centrifugal + Coriolis + gravity against the plain bias", sums, STATES),
        ("power of the gyroscopic terms, which do no work", power, STATES),
    ]
