"""Robots from Denavit-Hartenberg tables, standard or modified, with auxiliary frames where bodies branch."""

from __future__ import annotations

from ..io.given import asked_all
from .building import Constants, builder, from_dh, place_standard
from .reading import CONVENTIONS, Table, table

__all__ = ["CONVENTIONS", "Constants", "Table", "builder", "from_dh", "place_standard", "table"]

asked_all(__name__)
