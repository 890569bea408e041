"""What the bridges to JAX and PyTorch share."""
