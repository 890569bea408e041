"""The doctor: what is wrong or suspicious about a robot's description, and how to mend it."""

from ..io.asked import asked_all
from .examine import check
from .findings import Finding, Findings

__all__ = ["Finding", "Findings", "check"]

asked_all(__name__)
