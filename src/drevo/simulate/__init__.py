"""Motion in time: integrators as values, one compiled engine for all of them, results as a table."""

from ..io.given import asked_all
from .control import Control, damping
from .integrators import DOP853, GAUSS4, GAUSS6, METHODS, MIDPOINT, RK4, SEMI_IMPLICIT_EULER, Integrator
from .run import Event, simulate
from .table import Table

__all__ = [
    "DOP853",
    "GAUSS4",
    "GAUSS6",
    "METHODS",
    "MIDPOINT",
    "RK4",
    "SEMI_IMPLICIT_EULER",
    "Control",
    "Event",
    "Integrator",
    "Table",
    "damping",
    "simulate",
]

asked_all(__name__)
