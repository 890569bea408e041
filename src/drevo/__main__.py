"""`python -m drevo` is the command `drevo`."""

from .apps.cli.main import app

app(prog_name="drevo")
