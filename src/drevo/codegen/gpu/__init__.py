"""Functions on graphics processors, and operators of XLA."""
