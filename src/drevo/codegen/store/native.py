"""Machine code in this process: the host, LLVM, the objects' layout, and the builtin that Python calls.

llvmlite is imported at the first use.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p, py_object
from functools import lru_cache
from importlib import import_module
from math import prod
from types import BuiltinFunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ...errors import EmitError
from ..entry.layout import ENTRY_TABLE, ObjectLayout, names_after
from . import image, processor
from .memo import LOCK

_FASTCALL_KEYWORDS = 0x82
_ABI = (0x1000009, 0x2000000)  # NumPy's array struct is the same in both
_ARRAYS = {"PyArray_New": 93, "PyArray_Return": 76, "PyArray_SetBaseObject": 282}  # places in NumPy's table
_ARRAY_TYPE_PLACE, _ABI_PLACE = 2, 0
CACHE_LINE_BYTES = 64  # bytes of a cache line, where working memory and large results begin
_FLOATS = c_int(0x9875)  # as Microsoft's library has it


def line_array(shape: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """An array of no known numbers that begins with a line of the cache, within the memory of another."""
    size = np.dtype(dtype).itemsize * (shape if isinstance(shape, int) else prod(shape))
    raw = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    skip = -raw.__array_interface__["data"][0] % CACHE_LINE_BYTES
    found: np.ndarray[Any, Any] = raw[skip : skip + size].view(dtype)
    return found.reshape(shape)


class Host(NamedTuple):
    """The machine that code is made for."""

    triple: str
    cpu: str
    features: str
    bytes: int  # of a vector register
    fma: bool
    splat: bool
    version: str
    control: str = ""  # see Target

    @property
    def permutes(self) -> bool:
        return "avx512f" in processor.extensions(self.features)

    @property
    def key(self) -> str:
        return "|".join([self.triple, self.cpu, self.features, self.version, processor.asked_level()])


@lru_cache(maxsize=1)
def host() -> Host:
    """The present machine; its features decide width and arithmetic, or the level that is asked for."""
    import llvmlite
    import llvmlite.binding as llvm

    triple = llvm.get_process_triple()
    has = dict(llvm.get_host_cpu_features())
    features = ",".join(sorted(("+" if on else "-") + name for name, on in has.items()))
    x86 = triple.startswith(("x86_64", "amd64"))
    size = 64 if has.get("avx512f") else 32 if has.get("avx") else 16
    arm = triple.startswith(("aarch64", "arm64"))
    fma, control = (
        bool(has.get("fma") or has.get("fma4")) if x86 else arm,
        "mxcsr" if x86 else "fpcr" if arm else "",
    )
    version = f"llvmlite {llvmlite.__version__} llvm {llvm.llvm_version_info}"
    splat = llvm.llvm_version_info[0] >= 19
    own = Host(triple, llvm.get_host_cpu_name(), features, size, fma, splat, version, control)
    level = processor.chosen_level(arm, has)
    if level is None:
        return own
    made = own._replace(bytes=level.bytes, fma=level.fma)
    features = ",".join(f"+{x}" for x in level.needs)
    return made._replace(cpu=level.cpu, features=features) if level.cpu else made


@lru_cache(maxsize=1)
def machine() -> str:
    """A text of what code depends on in this machine; where the system tells it, LLVM is not asked, nor loaded."""
    import llvmlite

    if not image.supported():
        return host().key
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        first = file.read(8192).split("\n\n")[0].splitlines()
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags")
    lines = [line for line in first if line.split("\t")[0].split(":")[0].strip() in wanted]
    parts = [f"llvmlite {llvmlite.__version__}", processor.asked_level(), *lines]
    return "|".join(parts) if len(lines) == len(wanted) else host().key


# -- LLVM ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()  # the loader needs it too
    if sys.platform == "win32":
        for name, address in _windows_symbols().items():
            llvm.add_symbol(name, address)
    return _new_machine()


def _windows_symbols() -> dict[str, int]:
    """Symbols that objects for Windows want: the probe of large stack frames, a mark of floating point."""
    system: Any = ctypes.WinDLL("ntdll")  # type: ignore[attr-defined,unused-ignore]
    probe = ctypes.cast(system["__chkstk"], c_void_p).value
    return {"__chkstk": int(probe or 0), "_fltused": ctypes.addressof(_FLOATS)}


def _new_machine() -> Any:
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(host().triple)
    # constants within reach of one instruction: the loader of our own keeps an object in one piece
    model = "small" if image.supported() else "jitdefault"
    return target.create_target_machine(
        cpu=host().cpu, features=host().features, opt=2, reloc="pic", codemodel=model
    )


@lru_cache(maxsize=1)
def keep_order() -> None:
    """The machine scheduler would undo the order of the steps; and chains of thousands of stores, as of one stage,
    take time by their square if they are merged whole. Process-wide, so only when something compiles."""
    import llvmlite.binding as llvm

    for option in ("-enable-misched=false", "-combiner-tokenfactor-inline-limit=16"):
        llvm.set_option("", option)


def inliner(machine: Any) -> Callable[[Any], None]:
    """A pass over a module that inlines calls and puts variables of `llvm.plain`, which are written on the stack,
    into registers. To be kept, for LLVM's builders are never freed."""
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_global_dead_code_eliminate_pass()
    return lambda module: passes.run(module, builder)


@lru_cache(maxsize=1)
def _inliner() -> Callable[[Any], None]:
    return inliner(_machine())


def compile_text(ir: str) -> bytes:
    """Object code of a module; no middle end but for plain functions: the graph is folded and shared already."""
    import llvmlite.binding as llvm

    with LOCK:
        machine = _machine()
        keep_order()
        try:
            module = llvm.parse_assembly(ir)
            module.verify()
            if " alwaysinline" in ir:
                _inliner()(module)
            processor.require_instructions(module, host().triple, host().features)
            return bytes(machine.emit_object(module))
        except RuntimeError as error:
            raise EmitError(f"LLVM refused the generated code: {error}") from error


class Loaded:
    """Object code in memory, which lives as long as this.

    One loader for a process: objects made for ours have 32-bit distances, which LLVM's, that puts sections
    apart, may not reach. Raises EmitError.
    """

    def __init__(self, obj: bytes) -> None:
        self._image = _image(obj) if image.supported() else None
        if self._image is None:
            self._engine = _engine(obj)

    def address(self, name: str, data: bool = False) -> int:
        """The address of a function, or with `data` of a variable; 0 if there is none."""
        if self._image is not None:
            return self._image.address(name)
        with LOCK:
            find = self._engine.get_global_value_address if data else self._engine.get_function_address
            return int(find(name))

    def fill(self, words: Sequence[int | None]) -> Any:
        """Puts addresses into @table, which is given as an array of ctypes."""
        found = (c_void_p * len(words)).from_address(self.address("table", data=True))
        found[:] = words  # type: ignore[call-overload]
        return found


def _image(obj: bytes) -> image.Image:
    try:
        return image.Image(obj)
    except (OSError, ValueError) as error:
        raise EmitError(f"LLVM's object cannot be loaded ({error}); DREVO_LOADER=llvm has LLVM load it") from error


def _engine(obj: bytes) -> Any:
    import llvmlite.binding as llvm

    with LOCK:
        _machine()
        # the engine owns its machine, so it gets one of its own
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(obj))
        engine.finalize_object()
        return engine


class Code(Loaded):
    """The object code of a Function: its entry, the table that this reads, and `single` and `drive`.

    later: makes the objects of those two that are not in this one, each at its first need.
    """

    def __init__(self, obj: bytes, later: Mapping[str, Callable[[], bytes]] | None = None) -> None:
        super().__init__(obj)
        self.entry_address = self.address("entry")
        self.table_address = self.address("table", data=True)
        self._later, self._parts, self._calls = dict(later or {}), dict[str, Loaded](), dict[str, Any]()

    def has(self, name: str) -> bool:
        return name in self._later or name in self._parts or self.address(name) != 0

    def find(self, name: str) -> int:
        """The address of `single` or `drive`, which are made now if they are not yet."""
        if name in self._later:
            with LOCK:
                if name in self._later:
                    self._parts[name] = Loaded(self._later[name]())
                    del self._later[name]
        return self._parts.get(name, self).address(name)

    def publish(self, name: str, whether: bool = True) -> None:
        """Lets the entry call one of the two, or no longer."""
        place = c_void_p.from_address(self.table_address + ENTRY_TABLE.index(name) * ctypes.sizeof(c_void_p))
        place.value = self.find(name) if whether else None

    @property
    def drive_address(self) -> int:
        return self.find("drive")

    def drive(self, pointers: list[int], strides: list[int], count: int, arena: int, whole: int) -> int:
        """Runs a part of a batch of `whole` samples without the GIL; 1 if a check failed."""
        n = len(pointers)
        call = self._call("drive", c_void_p, c_void_p, c_int64, c_void_p, c_int64)
        return int(call((c_void_p * n)(*pointers), (c_int64 * n)(*strides), count, arena, whole))

    def single(self, pointers: list[int], room: int) -> int:
        """Runs one sample, with room for its scratch."""
        return int(self._call("single", c_void_p, c_void_p)((c_void_p * len(pointers))(*pointers), room))

    def _call(self, name: str, *given: Any) -> Any:
        if name not in self._calls:
            self._calls[name] = ctypes.CFUNCTYPE(c_int32, *given)(self.find(name))
        return self._calls[name]


# -- the interpreter's objects ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _array_api() -> Any:
    """NumPy's table of C functions."""
    try:
        umath = import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        umath = import_module("numpy.core._multiarray_umath")
    capsule = umath._ARRAY_API
    get = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return ctypes.cast(get(capsule, None), POINTER(c_void_p))


@lru_cache(maxsize=1)
def layout() -> ObjectLayout | None:
    """Offsets of CPython's and NumPy's objects, verified on live arrays; None means no fast entry here."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(c_void_p) != 8:
        return None
    try:
        free = bool(getattr(sys, "_is_gil_enabled", None)) and object.__basicsize__ == 32
        base = object.__basicsize__
        found = ObjectLayout(base, 24 if free else 8, tuple.__basicsize__ == base + 8)
        api = _array_api()
        version = ctypes.CFUNCTYPE(ctypes.c_uint)(api[_ABI_PLACE])()
        right = api[_ARRAY_TYPE_PLACE] == id(np.ndarray) and version in _ABI
        right = right and _name_of(len, found) == b"len"
        return found if right and all(_as_seen(found, x) for x in _samples()) else None
    except (AttributeError, ImportError, TypeError, ValueError):
        return None


def _name_of(builtin: object, found: ObjectLayout) -> bytes | None:
    """By its definition, where the entry of one function reads that of another."""
    definition = c_void_p.from_address(id(builtin) + found.base).value
    return c_char_p.from_address(definition).value if definition else None


def _samples() -> list[np.ndarray[Any, Any]]:
    """Arrays that differ in every field that the entry reads."""
    wide = np.zeros((6, 9))
    frozen = np.ones(5)
    frozen.flags.writeable = False
    return [np.zeros(3), wide[1:5, 2:7], wide[::-2], frozen, np.zeros((4, 2), np.float32), wide.T]


def _as_seen(found: ObjectLayout, x: np.ndarray[Any, Any]) -> bool:
    """Every field, read where the entry will read it."""
    at = id(x)

    def word(offset: int, kind: Any = c_int64) -> int:
        return int(kind.from_address(at + offset).value)

    b, n = found.base, x.ndim
    if word(found.type) != id(np.ndarray) or word(b) != x.ctypes.data or word(b + 40) != id(x.dtype):
        return False
    flags, first, second = word(b + 48, c_int32), word(b + 16), word(b + 24)
    same = bool(flags & 0x100) == x.flags.aligned and bool(flags & 0x400) == x.flags.writeable
    if not same or word(b + 8, c_int32) != n or not first or second != first + 8 * n:
        return False  # only pointers that everything else speaks for are followed
    dims, strides = ((c_int64 * n).from_address(at) for at in (first, second))
    return (tuple(dims), tuple(strides)) == (x.shape, x.strides)


_METHOD_RECORD = np.dtype(  # PyMethodDef
    [("name", np.uintp), ("meth", np.uintp), ("flags", np.intc), ("doc", np.uintp)], align=True
)


class Holder(NamedTuple):
    """Owns everything that a builtin points to; it is the builtin's self, by which it pickles.

    A builtin that ends reads its definition, when the garbage collector may have emptied its self: hence a tuple,
    an array and bytes, which it never empties, as it does objects of Python and of ctypes.
    """

    code: Loaded
    definition: np.ndarray[Any, Any]
    texts: tuple[bytes, bytes]  # name and docstring, which the definition points to
    owner: object
    kept: tuple[object, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.texts[0].decode(), self.owner)


def _opened(name: str, owner: Any) -> SimpleNamespace:
    """An object with a builtin as its attribute, by which this is unpickled."""
    return SimpleNamespace(**{name: owner.fast or owner})


def builtin(
    code: Code,
    owner: object,
    name: str,
    doc: str,
    slow: Callable[..., Any],
    dtype: np.dtype[Any],
    results: object,
    threshold: int,
    inputs: Iterable[str],
    loaded: Mapping[Any, Callable[..., Any]] | None,
    memory: tuple[int, int],
) -> Callable[..., Any]:
    """The entry of loaded code as a Python builtin of a Function; `slow` takes the calls that it does not.

    inputs: their names. loaded: by links the builtins that calls with wrenches on these go to; None where there
    are no such calls. memory: bytes that one sample and a batch work in.
    """
    out, *names = map(sys.intern, ("out", *names_after(inputs)))
    value = _functions() | {
        "ndarray": id(np.ndarray), "dtype": id(dtype), "slow": id(slow), "none": id(None), "out": id(out),
        "threshold": threshold, "results": id(results), "tuple": id(tuple), "dict": id(dict),
        "builtin": id(BuiltinFunctionType), "loaded": id(loaded),
        "single": 0, "drive": 0, "room": memory[0] + CACHE_LINE_BYTES, "arena": memory[1] + CACHE_LINE_BYTES,
    }  # fmt: skip
    words = [*(value[key] for key in ENTRY_TABLE), *map(id, names[:-1]), 0 if loaded is None else id(names[-1])]
    code.fill(words)
    return callable_of(code, owner, name, doc, slow, dtype, results, loaded, out, *names)


def callable_of(code: Loaded, owner: object, name: str, doc: str, *kept: object) -> Callable[..., Any]:
    """The `entry` of loaded code as a Python builtin, whose table is filled with addresses of what is `kept`."""
    texts = name.encode(), doc.encode()
    places = [ctypes.cast(c_char_p(x), c_void_p).value for x in texts]
    definition = np.array((places[0], code.address("entry"), _FASTCALL_KEYWORDS, places[1]), _METHOD_RECORD)
    holder = Holder(code, definition, texts, owner, kept)
    make = ctypes.PYFUNCTYPE(py_object, c_void_p, py_object, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))
    return make(definition.ctypes.data, holder, None)  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _functions() -> dict[str, int]:
    """Addresses of the C functions in the table."""
    return {name: symbol_address(name) for name in ENTRY_TABLE if name.startswith("Py")}


def symbol_address(name: str) -> int:
    """The address of a C function of the interpreter or of NumPy's array interface."""
    if name in _ARRAYS:
        return int(_array_api()[_ARRAYS[name]])
    pick = name
    if name == "PyObject_Vectorcall" and not hasattr(ctypes.pythonapi, name):
        pick = "_PyFunction_Vectorcall"  # CPython 3.10; right for plain functions only
    return int(ctypes.cast(getattr(ctypes.pythonapi, pick), c_void_p).value or 0)
