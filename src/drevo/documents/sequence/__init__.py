"""The sequence of statements that a person would write for a Program."""
