"""Trajectory optimisation by multiple shooting: costs, kernels, sweeps, the solver."""
