"""Code shared by the bridges to JAX and PyTorch."""
