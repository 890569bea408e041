"""Packages that Drevo can do without until they are needed.

Results as tables of pandas, which is imported where one is asked for.

The Drevo that this process runs: its version, where its sources stand, and since when they are loaded.
"""

from __future__ import annotations

import os
from importlib import import_module
from time import time
from typing import Any

from ..errors import InputError


def package(module: str, purpose: str, name: str = "") -> Any:
    """An optional package's module. Raises InputError: what needs it, and how to get it (as `name`)."""
    try:
        return import_module(module)
    except ImportError as error:
        name = name or module.split(".")[0]
        raise InputError(
            f"{purpose} needs the package {name}, which is not installed: pip install {name}"
        ) from error


def frame(data: Any) -> Any:
    """A pandas.DataFrame of a list of rows, or of columns by name. Raises InputError where pandas is missing."""
    return package("pandas", "to_pandas").DataFrame(data)


VERSION = "0.1.0"
FOLDER = os.path.dirname(os.path.dirname(__file__))  # of the package
PROCESS_START = time()  # sources that change later are not what this process runs
