"""Loads and accuracy: Zaremba's program package. Sections of links, drives over a cycle, errors of the tool."""

from ...io.asked import asked_all
from .cycle import Drives, Envelope, drives, envelope
from .masses import Distribution, distribution
from .sections import COMPONENTS, SectionLoads, SectionMotion, inertial_loads, section_loads, section_motion
from .solids import Solid, box, capsule, cylinder, point, rod, sphere
from .span import Span, span_of
from .tool import Accuracy, MonteCarlo, Spring, accuracy, beam
from .trajectory import Trajectory

__all__ = [
    "COMPONENTS",
    "Accuracy",
    "Distribution",
    "Drives",
    "Envelope",
    "MonteCarlo",
    "SectionLoads",
    "SectionMotion",
    "Solid",
    "Span",
    "Spring",
    "Trajectory",
    "accuracy",
    "beam",
    "box",
    "capsule",
    "cylinder",
    "distribution",
    "drives",
    "envelope",
    "inertial_loads",
    "point",
    "rod",
    "section_loads",
    "section_motion",
    "span_of",
    "sphere",
]

asked_all(__name__)
