"""From a graph of expressions to machine code and texts; knows no robots."""
