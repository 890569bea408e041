"""The doctor: what is wrong or suspicious about a robot's description, and how to mend it."""

from ..io.given import asked_all
from .findings import Finding, Findings
from .repair import check

__all__ = ["Finding", "Findings", "check"]

asked_all(__name__)
