"""Robots as plants of other simulators: torques in, motion out; an FMU, or an S-function of Simulink."""

from .export import PLANT_TARGETS, export_plant

__all__ = ["PLANT_TARGETS", "export_plant"]
