"""Sequences as texts: a module for each language."""
