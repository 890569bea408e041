"""Dense algebra as LLVM text: products, factors, solves."""
