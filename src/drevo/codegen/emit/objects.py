"""What compiled code and the process that loads it agree on; small, since every warm start reads it."""

from __future__ import annotations

from typing import NamedTuple

# the slots of @table in the object code, filled after loading
TABLE = ("ndarray", "dtype", "slow", "none", "out", "threshold", "results", "tuple",
         "PyArray_New", "PyArray_Return", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread",
         "Py_IncRef", "Py_DecRef", "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem",
         "PyMem_RawMalloc", "PyMem_RawFree", "PyErr_Clear", "PyType_GenericAlloc")  # fmt: skip


class ObjectLayout(NamedTuple):
    """Byte offsets of CPython objects: `base` is object.__basicsize__, `type` that of ob_type.

    bare: a tuple is its size and its items, so that one with names can be filled where it lies.
    """

    base: int = 16
    type: int = 8
    bare: bool = True
