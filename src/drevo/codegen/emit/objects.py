"""What compiled code and the process that loads it agree on; small, since every warm start reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# the slots of @table in the object code, filled after loading
TABLE = ("ndarray", "dtype", "slow", "none", "out", "threshold", "results", "tuple", "dict", "builtin",
         "loaded", "PyArray_New", "PyArray_Return", "PyArray_SetBaseObject", "PyObject_Vectorcall",
         "PyObject_VectorcallDict", "PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef",
         "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyMem_RawMalloc",
         "PyMem_RawFree", "PyErr_Clear", "PyType_GenericAlloc", "PyDict_Size", "PyDict_Next",
         "PyDict_GetItem", "single", "drive", "room", "arena")  # fmt: skip
PAGED = 4 << 20  # bytes of an arena from which it is left to NumPy, which asks for large pages
FORCES = "f_ext"  # the argument that is a dictionary of links and wrenches


def names_after(inputs: Iterable[str]) -> list[str]:
    """Of whose names there are addresses after those of TABLE."""
    return [*inputs, FORCES]


SPARES = 2  # arrays kept of a result: one that the caller holds while he asks for the next, and one free
LARGEST = 1 << 16  # bytes of a result of which arrays are kept


def spares_after(words: int, sizes: Sequence[int], layout: ObjectLayout) -> tuple[list[range], int]:
    """After so many words of the table those of arrays kept of each result, by its bytes; and the words in all.

    None of empty and large ones, nor where reference counts are not one number at the start of an object.
    """
    found = []
    for size in sizes:
        kept = SPARES if 0 < size <= LARGEST and layout.base == 16 else 0
        found.append(range(words, words + kept))
        words += kept
    return found, words


# the same of calls that are known again; then the names of the arguments, the defaults of those that are no
# arrays, and what is remembered
RECALLED = ("slow", "refusals", "kind", "list", "none", "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef",
            "PyTuple_Size", "PyTuple_GetItem", "PyList_Size", "PyList_GetItem", "PyDict_Size", "PyDict_Next",
            "PyErr_Clear", "PyErr_ExceptionMatches", "PyObject_RichCompareBool",
            "PyType_GenericAlloc")  # fmt: skip
# the same of what copies or draws a configuration
DRAWN = ("slow", "ndarray", "dtype", "generator", "bit_generator", "lock", "acquire", "release", "capsule", "kind",
         "nq", "count", "runs", "low", "width", "random_standard_uniform_fill", "random_standard_normal_fill",
         "PyArray_New", "PyObject_Vectorcall", "PyObject_VectorcallMethod", "PyObject_GetAttr",
         "PyCapsule_GetPointer", "Py_IncRef", "Py_DecRef", "PyErr_Clear")  # fmt: skip
# the same of what makes arrays of lists; then the arrays that it fills, one for each input
LISTED = ("slow", "fast", "ndarray", "dtype", "list", "tuple", "float", "int", "count", "sizes", "PyArray_New",
          "PyObject_Vectorcall", "PyList_Size", "PyList_GetItem", "PyTuple_Size", "PyTuple_GetItem",
          "PyFloat_AsDouble", "PyErr_Occurred", "PyErr_Clear", "Py_IncRef", "Py_DecRef")  # fmt: skip
MOST = 16  # inputs of functions that take lists so
KEPT = 4  # calls of a method that are remembered


class ObjectLayout(NamedTuple):
    """Byte offsets of CPython objects: `base` is object.__basicsize__, `type` that of ob_type.

    bare: a tuple is its size and its items, so that one with names can be filled where it lies.
    """

    base: int = 16
    type: int = 8
    bare: bool = True
