"""The laws of contact."""
