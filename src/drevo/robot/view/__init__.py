"""Robots to look at: pages that are alive, and a window in the browser."""
