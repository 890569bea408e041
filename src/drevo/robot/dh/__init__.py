"""Robots from Denavit-Hartenberg tables, standard or modified, with auxiliary frames where bodies branch."""

from __future__ import annotations

from .building import CONVENTIONS, Constants, builder, from_dh, place_standard
from .reading import Table, table

__all__ = ["CONVENTIONS", "Constants", "Table", "builder", "from_dh", "place_standard", "table"]
