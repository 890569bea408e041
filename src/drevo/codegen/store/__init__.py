"""Compiled code: how it is keyed, built, loaded and kept on disk."""
