"""From a request to a program: which formalism, traced, searched for the fewest operations, written out."""
