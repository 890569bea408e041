"""Motion under contacts, constraints and loops: accelerations, reactions, impacts, states put on constraints.

What applications need of it stands here; the modules below are its own.
"""

from .closing import assemble, hold
from .closures import JointClosure
from .collection import collect, labels
from .dynamics import constrained_dynamics, impact
from .inverse import constrained_inverse_dynamics
from .passive import acting_in
from .prepared import Contacts
from .results import ConstrainedEfforts, ConstrainedMotion, Impact
from .solve import RANK, matvec
from .terms import ConstraintTerms, constraint_terms

__all__ = [
    "RANK",
    "ConstrainedEfforts",
    "ConstrainedMotion",
    "ConstraintTerms",
    "Contacts",
    "Impact",
    "JointClosure",
    "acting_in",
    "assemble",
    "collect",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "constraint_terms",
    "hold",
    "impact",
    "labels",
    "matvec",
]
