"""Conditions on inertia parameters, robots that meet them, and formulas of publications judged."""
