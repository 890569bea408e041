"""Derivations: quantities written out for people."""
