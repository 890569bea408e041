"""Robots: the face that users call, and what makes them from files, tables and Python."""

from .face import Robot

__all__ = ["Robot"]
