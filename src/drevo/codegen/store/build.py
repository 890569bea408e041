"""From a Program to loadable code with a manifest, through the cache."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import EmitError, InputError, one_of, warn_caller
from ...io.given import flag
from ..entry.layout import ObjectLayout
from . import cache, native
from .key import key
from .memo import LOCK, persisted

if TYPE_CHECKING:
    from ..graph.program import Program
    from ..llvm.module import Entry
    from ..llvm.ports import Target
    from ..lower.lower import Lowered

DTYPES = {"float64": "double", "float32": "float"}
LAYOUTS = ("rows", "batch_last")
NODES_A_SECOND, STAGED_NODES_A_SECOND = 14_000, 21_000  # of a program, and of one in stages, made into code
TEXT_A_SECOND = 1_200_000  # bytes of LLVM text made into code
PROMPT_SECONDS = 2.0  # s: what takes longer to compile is said before it begins
_LENGTH_FIELD = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Spec:
    """Options of a compiled function. check: results are tested for finiteness and quaternions for unit length.

    single: with a kernel for one sample, which takes as long to make as that for many.
    """

    dtype: str = "float64"
    layout: str = "rows"
    packed: bool = False
    parameters: bool = False
    check: bool = True
    single: bool = True

    def __post_init__(self) -> None:
        for name in ("packed", "parameters", "check"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        one_of("dtype", self.dtype, DTYPES, InputError)
        one_of("layout", self.layout, LAYOUTS, InputError)


class Manifest(NamedTuple):
    """Description of a function; stored with its code as JSON. units: (input, four positions)."""

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    pattern: tuple[tuple[tuple[int, ...], ...], ...] | None
    units: tuple[tuple[int, tuple[int, ...]], ...]
    counts: dict[str, int]
    steps: int
    arena: int  # bytes of working memory
    scratch: int  # bytes that one sample needs besides its arguments
    lanes: int
    parameters: tuple[tuple[str, float], ...]
    meta: dict[str, Any]
    guards: int = 0  # pivots that are tested

    def text(self) -> str:
        return json.dumps(self._asdict(), default=str, sort_keys=True)


def _tuples(x: Any) -> Any:
    return tuple(_tuples(y) for y in x) if isinstance(x, list) else x


def parse_manifest(text: str) -> Manifest:
    """The inverse of `Manifest.text`."""
    return Manifest(**{k: _tuples(v) for k, v in json.loads(text).items()})


class FunctionFace:
    """Description of a compiled function, on any processor, and how it is pickled."""

    def __init__(self, manifest: Manifest, spec: Spec) -> None:
        m = self.manifest = manifest
        self.spec, self.name, self.inputs, self.outputs = spec, m.name, m.inputs, m.outputs
        self.dtype, self.layout, self.packed = np.dtype(spec.dtype), spec.layout, spec.packed
        self.counts, self.meta, self.parameters = m.counts, m.meta, m.parameters
        self.recipe: Callable[[], Any] | None = None  # how a pickle makes it again
        self.sensors: Mapping[str, slice] = {}  # of a step, where the readings of each stand in `sensordata`
        self._sizes = [prod(s) for _, s in m.outputs]

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise TypeError(f"{self.name}: this function was not made by drevo.compile and cannot be pickled")
        return self.recipe, ()

    @property
    def how(self) -> str:
        """One word that says how this robot's function is computed, one of:

        "straight": every operation written out; "solved": straight, then a dense solve by loops; "bodies": a loop
        over the bodies; "stages": straight pieces between loops; "interpreted": by NumPy. docs/speed.md says why
        each is chosen.
        """
        return "interpreted" if getattr(self, "code", self) is None else str(self.meta.get("how", "straight"))

    @property
    def _signature(self) -> str:
        """The function's name, its arguments and results with their shapes, and the type of the numbers."""
        ins, outs = (", ".join(f"{n}{list(s)}" for n, s in ports) for ports in (self.inputs, self.outputs))
        return f"{self.name}({ins}) -> {outs}, {self.dtype}"

    @property
    def pattern(self) -> Any:
        """Index arrays of the stored entries of a packed function; one per output if there are several."""
        if self.manifest.pattern is None:
            return None
        arrays = [tuple(np.array(i, dtype=np.intp) for i in p) for p in self.manifest.pattern]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)


KERNELS = {"single": "one sample", "drive": "batches"}  # kernel -> what it computes


class Objects(NamedTuple):
    """The code made of a program: the object of the entry, or of a whole module, and functions that write the
    LLVM text of `single` and of `drive` on the day that they are needed. title: of the function, for people."""

    entry: bytes
    texts: Mapping[str, Callable[[], str]]
    title: str

    def code(self, name: str = "") -> native.Code:
        """Loaded. name: the key under which the two are kept once they are made; empty: nowhere."""

        compiled: list[str] = []

        def object_of(part: str, text: Callable[[], str]) -> bytes:
            ir = text()
            if compiled:  # the time of the first kernel was told with that of its program
                _tell_cost(f"{self.title} for {KERNELS.get(part, part)}", len(ir) / TEXT_A_SECOND)
            compiled.append(part)
            return native.compile_text(ir)

        def made(part: str, text: Callable[[], str]) -> Callable[[], bytes]:
            return lambda: persisted(f"{name}\n{part}", bool(name), lambda: object_of(part, text))

        return native.Code(self.entry, {part: made(part, text) for part, text in self.texts.items()})


class Ahead(NamedTuple):
    """A request that may take long to compile: its name, for people, and an estimate of the seconds."""

    what: str
    seconds: Callable[[], float]


class Built(NamedTuple):
    """A manifest, its loaded code if there is any, and how the program is made."""

    manifest: Manifest
    code: native.Code | None
    again: Callable[[], Program] | None = None


def machine_code(
    request: str,
    make: Callable[[], Program],
    spec: Spec,
    use_cache: bool,
    entry: Entry | None = None,
    ahead: Ahead | None = None,
) -> tuple[Manifest, native.Code]:
    """The code of a program, from the cache or made now and stored.

    entry: see `build`. ahead: of what may take long, so that it is told before it begins.
    """
    name, begun = key(request, spec), partial(_begun, make, ahead)
    found = cache.read_entry(name) if use_cache else None
    if found is not None:
        built = _unpack(found, name, lru_cache(1)(lambda: build(begun(), spec)[1]))
        if built is not None:
            return built
    with LOCK:
        manifest, objects = build(begun(), spec, entry=entry, use_cache=use_cache)
        code = objects.code(name if use_cache else "")
        if use_cache:
            parts = (manifest.text().encode(), objects.entry, *(part.encode() for part in objects.texts))
            cache.write_entry(name, b"".join(_LENGTH_FIELD.pack(len(x)) + x for x in parts))
    return manifest, code


def _begun(make: Callable[[], Program], ahead: Ahead | None) -> Program:
    """The program of what is compiled now; long compiling is told before, or as soon as its cost is known."""
    announced = ahead is not None and _tell_cost(ahead.what, ahead.seconds())
    program = make()
    if not announced:
        staged = program.stages is not None
        nodes = program.stages.steps if staged else len(program.order())
        title = _title(program.name, program.meta)
        _tell_cost(title, nodes / (STAGED_NODES_A_SECOND if staged else NODES_A_SECOND))
    return program


def _title(name: str, meta: Mapping[str, Any]) -> str:
    """The name of a function and, where it is known, of its robot."""
    return name + (f" of {meta['robot']!r}" if "robot" in meta else "")


def _tell_cost(what: str, seconds: float) -> bool:
    """Warns of long compiling; right within a factor of 2 on one free core of a Xeon (Sapphire Rapids)."""
    if seconds > PROMPT_SECONDS:
        warn_caller(f"{what}: about {seconds:.0f} s of compiling, once: the code is kept")
    return seconds > PROMPT_SECONDS


def _unpack(payload: bytes, name: str, again: Callable[[], Objects]) -> tuple[Manifest, native.Code] | None:
    """again: makes what the cache has lost, or what no process has needed yet."""
    try:
        found, at = list[bytes](), 0
        while at < len(payload):
            (size,) = _LENGTH_FIELD.unpack_from(payload, at)
            at += _LENGTH_FIELD.size + size
            found.append(payload[at - size : at])
        manifest, entry, *parts = found
        names = [part.decode() for part in parts]
        texts = {part: lambda part=part: again().texts[part]() for part in names}
        about = parse_manifest(manifest.decode())
        return about, Objects(entry, texts, _title(about.name, about.meta)).code(name)
    except (ValueError, TypeError, AttributeError, struct.error, RuntimeError, EmitError):
        return None  # another format than we think


def target_of(spec: Spec) -> Target:
    """This machine, as the emitters know it."""
    from ..llvm.ports import Target

    host, scalar = native.host(), DTYPES[spec.dtype]
    lanes = host.bytes // (8 if scalar == "double" else 4)
    known = Target(scalar, lanes, host.fma, host.splat, spec.check)
    return known._replace(control=host.control, permutes=host.permutes)


def build(
    program: Program,
    spec: Spec,
    target: Target | None = None,
    entry: Entry | None = None,
    use_cache: bool = False,
) -> tuple[Manifest, Objects]:
    """Manifest and code. target: other than the host's own. entry: adds what calls the kernels, in place of what
    Python calls, all in one module; it has the one for a single sample if spec.single."""
    from ..llvm import module as llvm

    mine = target or target_of(spec)
    low = lowered_as(program, spec, mine.fma)
    if program.stages is not None:
        low, mine = low._replace(stages=program.stages), mine._replace(single=False)
    elif target is None:
        short = spec.single and len(low.steps) <= llvm.SINGLE
        mine = mine._replace(single=bool((entry and spec.single) or program.tail) or short)
    program = replace(program, meta={**program.meta, "how": _how(program)})
    if entry is not None:
        text = llvm.emit(low, mine, spec.layout, entry, program.tail)
        manifest = manifest_as(program, low, text.arena.total, text.scalar_scratch, mine.lanes)
        return manifest, Objects(native.compile_text(text.ir), {}, "")
    made = llvm.emit_parts(low, mine, spec.layout, program.tail)
    manifest = manifest_as(program, low, made.arena.total, made.scalar_scratch, mine.lanes)
    entry_object = _entry_of(manifest, spec, "single" in made.texts, use_cache)
    return manifest, Objects(entry_object, made.texts, _title(program.name, program.meta))


def _how(program: Program) -> str:
    """The word of `FunctionFace.how`."""
    if program.stages is not None:
        return "stages"
    return "straight" if program.tail is None else "solved"


def _entry_of(m: Manifest, spec: Spec, single: bool, use_cache: bool) -> bytes:
    """The object of what Python calls, the same for all functions of arrays of these shapes."""
    from ..entry.entry import entry_shape, entry_text

    shape = entry_shape(m.inputs, m.outputs, DTYPES[spec.dtype], spec.layout == "rows", single, m.scratch)
    name, objects = key(repr(shape), Spec()), native.layout() or ObjectLayout()
    if name not in _ENTRY_OBJECTS:
        made = persisted(name, use_cache, lambda: native.compile_text(entry_text(shape, objects)))
        _ENTRY_OBJECTS[name] = made
    return _ENTRY_OBJECTS[name]


_ENTRY_OBJECTS: dict[str, bytes] = {}  # some ten kilobytes each


def lowered_as(program: Program, spec: Spec, fma: bool) -> Lowered:
    from ..lower.lower import lower

    return lower(program, parameters=spec.parameters, packed=spec.packed, fma=fma)


def manifest_as(program: Program, low: Lowered, arena: int, scratch: int, lanes: int) -> Manifest:
    units = tuple((low.where[u[0]][0], tuple(low.where[n][1] for n in u)) for u in low.units)
    seen = low if program.tail is None else program.tail.seen(low)
    fresh = Manifest(
        program.name,
        tuple((p.name, p.shape) for p in low.inputs),
        tuple((p.name, p.shape) for p in seen.outputs),
        seen.pattern,
        units,
        dict(program.counts),
        len(low.steps) if program.stages is None else program.stages.steps,
        arena,
        scratch,
        lanes,
        tuple((p.name, p.value) for p in program.parameters),
        dict(program.meta),
        len(program.guards),
    )
    return parse_manifest(fresh.text())  # cold and warm alike
