"""Linear models, regulators and control laws."""

from __future__ import annotations

from ..io.given import asked_all
from .closed_loop import closed_loop
from .controllers import computed_torque, gravity_compensation, pd, pid
from .drives import DrivenMotion, DrivenRobot, ElectricDrive, HydraulicServo
from .linear_kernels import Linearisation, Reduced
from .linearise import linearise
from .model import LinearModel, Modes
from .observe import Observer, kalman, lqg, observer
from .optimise import OptimalMotion, optimise
from .reach import LostMotion, Reach, controllability, observability
from .regulate import Regulator, lqr
from .responses import FrequencyResponse, PoleZeroMap, StepResponse
from .schedule import Schedule, ScheduledLaw, schedule
from .stabilise import Stabiliser, stabilise
from .task_space_calls import admittance, hybrid, impedance, operational_space
from .tracking import Tracker, track, tracking_lqr
from .trim import Trim, trim

__all__ = [
    "DrivenMotion",
    "DrivenRobot",
    "ElectricDrive",
    "FrequencyResponse",
    "HydraulicServo",
    "LinearModel",
    "Linearisation",
    "LostMotion",
    "Modes",
    "Observer",
    "OptimalMotion",
    "PoleZeroMap",
    "Reach",
    "Reduced",
    "Regulator",
    "Schedule",
    "ScheduledLaw",
    "Stabiliser",
    "StepResponse",
    "Tracker",
    "Trim",
    "admittance",
    "closed_loop",
    "computed_torque",
    "controllability",
    "gravity_compensation",
    "hybrid",
    "impedance",
    "kalman",
    "linearise",
    "lqg",
    "lqr",
    "observability",
    "observer",
    "operational_space",
    "optimise",
    "pd",
    "pid",
    "schedule",
    "stabilise",
    "track",
    "tracking_lqr",
    "trim",
]

asked_all(__name__)
