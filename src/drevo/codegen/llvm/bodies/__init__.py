"""Loops over bodies, freedoms and limbs as LLVM text."""
