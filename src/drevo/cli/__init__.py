"""The command line of Drevo."""
