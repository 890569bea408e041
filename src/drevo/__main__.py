"""`python -m drevo` is the command `drevo`."""

from .cli.main import app

app(prog_name="drevo")
