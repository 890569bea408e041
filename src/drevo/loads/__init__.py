"""Loads and accuracy: Zaremba's program package. Sections of links, drives over a cycle, errors of the tool."""

from ..io.given import asked_all
from .consistency import Agreement, Consistency, consistency
from .cycle import Drives, Envelope, drives, envelope
from .diagrams import diagrams
from .external import AppliedForce
from .masses import Distribution, distribution, read_solids
from .sections import COMPONENTS, SectionLoads, SectionMotion, inertial_loads, section_loads, section_motion
from .solids import Solid, box, capsule, cylinder, mesh, point, rod, sphere
from .span import Span, span_of
from .stresses import Profile, Stresses
from .tool import Accuracy, MonteCarlo, Spring, accuracy, beam
from .trajectory import Trajectory

__all__ = [
    "COMPONENTS",
    "Accuracy",
    "Agreement",
    "AppliedForce",
    "Consistency",
    "Distribution",
    "Drives",
    "Envelope",
    "MonteCarlo",
    "Profile",
    "SectionLoads",
    "SectionMotion",
    "Solid",
    "Span",
    "Spring",
    "Stresses",
    "Trajectory",
    "accuracy",
    "beam",
    "box",
    "capsule",
    "consistency",
    "cylinder",
    "diagrams",
    "distribution",
    "drives",
    "envelope",
    "inertial_loads",
    "mesh",
    "point",
    "read_solids",
    "rod",
    "section_loads",
    "section_motion",
    "span_of",
    "sphere",
]

asked_all(__name__)
