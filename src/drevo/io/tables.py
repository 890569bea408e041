"""Results as tables of pandas, which is imported where one is asked for."""

from __future__ import annotations

from typing import Any

from .packages import package


def frame(data: Any) -> Any:
    """A pandas.DataFrame of a list of rows, or of columns by name. Raises InputError where pandas is missing."""
    return package("pandas", "to_pandas").DataFrame(data)
