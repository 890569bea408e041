"""Functions that users call: arrays in, arrays out."""
