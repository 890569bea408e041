"""Inverse kinematics of whole robots: numeric, from any pose, within limits."""
