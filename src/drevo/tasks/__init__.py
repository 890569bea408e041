"""Differential inverse kinematics: stacks of tasks under limits, each stack one compiled kernel.

A task is an error and its costs, a limit a bound of rates; `solve_ik` gives the rates of one step, `compile_ik` a
function of (q, targets) that computes thousands at once. `solve_id` serves the same tasks by torques and contact
forces. The words are those of pink and mink.
"""

from __future__ import annotations

from ..io.given import asked_all
from .dynamics import IdStep, solve_id
from .kinds import (
    ComTask,
    DampingTask,
    FrameTask,
    JointVelocityTask,
    ManipulabilityTask,
    PostureTask,
    RelativeFrameTask,
)
from .limits import AccelerationLimit, CollisionLimit, ConfigurationLimit, VelocityLimit
from .solve import CompiledStack, IkStep, compile_ik, solve_ik

__all__ = [
    "AccelerationLimit",
    "CollisionLimit",
    "ComTask",
    "CompiledStack",
    "ConfigurationLimit",
    "DampingTask",
    "FrameTask",
    "IdStep",
    "IkStep",
    "JointVelocityTask",
    "ManipulabilityTask",
    "PostureTask",
    "RelativeFrameTask",
    "VelocityLimit",
    "compile_ik",
    "solve_id",
    "solve_ik",
]

asked_all(__name__)
