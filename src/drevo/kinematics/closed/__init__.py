"""Inverse kinematics in closed form: arms that are recognised, by the subproblems of Paden and Kahan."""
