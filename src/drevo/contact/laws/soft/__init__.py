"""MuJoCo's soft law of contact."""
