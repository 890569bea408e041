"""Contact: what touches, and the laws by which it holds."""
