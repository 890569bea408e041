"""Vectors and matrices of descriptions, as nested tuples."""

from __future__ import annotations

Vec3 = tuple[float, float, float]
Mat3 = tuple[Vec3, Vec3, Vec3]

IDENTITY: Mat3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ORIGIN: Vec3 = (0.0, 0.0, 0.0)
