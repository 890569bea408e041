"""Motion under contacts, constraints and loops: accelerations, reactions, impacts, states put on constraints."""

from .dynamics import assemble, constrained_dynamics, hold, impact
from .inverse import constrained_inverse_dynamics
from .terms import constraint_terms

__all__ = [
    "assemble",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "constraint_terms",
    "hold",
    "impact",
]
