"""The machine code that the Python interpreter calls."""
