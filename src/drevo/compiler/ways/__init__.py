"""Ways to compute one state, or a large robot, other than straight-line code."""
