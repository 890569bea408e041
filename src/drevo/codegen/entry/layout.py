"""Layouts on which compiled code and the process that loads it agree; small, since every warm start reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# the slots of @table in the object code, filled after loading
ENTRY_TABLE = ("ndarray", "dtype", "slow", "none", "out", "threshold", "results", "tuple", "dict", "builtin",
         "loaded", "PyArray_New", "PyArray_Return", "PyArray_SetBaseObject", "PyObject_Vectorcall",
         "PyObject_VectorcallDict", "PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef",
         "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyMem_RawMalloc",
         "PyMem_RawFree", "PyErr_Clear", "PyType_GenericAlloc", "PyDict_Size", "PyDict_Next",
         "PyDict_GetItem", "single", "drive", "room", "arena")  # fmt: skip
PAGED = 4 << 20  # bytes of an arena from which it is left to NumPy, which asks for large pages
FORCES = "f_ext"  # the argument that is a dictionary of links and wrenches


def names_after(inputs: Iterable[str]) -> list[str]:
    """The argument names whose addresses stand in @table after the slots of TABLE: the inputs, then f_ext."""
    return [*inputs, FORCES]


class ObjectLayout(NamedTuple):
    """Byte offsets of CPython objects: `base` is object.__basicsize__, `type` that of ob_type.

    bare: a tuple is its size and its items, so that one with names can be filled where it lies.
    """

    base: int = 16
    type: int = 8
    bare: bool = True
