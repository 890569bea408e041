"""LLVM text of kernels, loops and drivers."""
