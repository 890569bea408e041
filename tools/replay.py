"""Process replay: what Drevo makes of some fifty robots, as digests, so that two states of the code compare.

    python tools/replay.py record FILE [--few] [--jobs N]      with PYTHONPATH on the sources that are meant
    python tools/replay.py compare BEFORE AFTER                exit code 1 where something differs

A record holds a digest of the LLVM text of every kernel (instructions in their order, whatever names values,
labels and arguments have), of every written-out document with its operation counts, and of the bits of what calls,
motions, streams and constrained motions return. Only public calls are used,
and LLVM's own door, so that the inside may be moved at will. Both records must come from one machine: kernels are
made for it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import drevo

EMBEDDED = (
    "three-link", "two-arm-planar", "two-arm-spatial", "rod-chain", "screw-arm", "biped",
    "puma560", "stanford", "rx90", "scara", "four-bar", "stewart",
)  # fmt: skip
FILES = (
    "panda_description/urdf/panda.urdf", "xarm_description/urdf/xarm7.urdf",
    "kinova_description/robots/kinova.urdf", "ur_description/urdf/ur5_robot.urdf",
    "double_pendulum_description/urdf/double_pendulum.urdf", "z1_description/urdf/z1.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
)  # fmt: skip
WALKERS = (  # on a free base
    "solo_description/robots/solo12.urdf", "go2_description/urdf/go2.urdf", "a1_description/urdf/a1.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf", "hyq_description/robots/hyq_no_sensors.urdf",
    "bolt_description/robots/bolt.urdf", "icub_description/robots/icub_reduced.urdf",
    "talos_data/robots/talos_reduced.urdf", "g1_description/urdf/g1_29dof_rev_1_0.urdf",
)  # fmt: skip
KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "spherical", "free")
TREES = 16  # random ones, by their seeds
CHAINS = (30, 90)  # bodies: the second one takes the loop over the bodies
SMALL = 12  # freedoms: up to it every variant is made, beyond it the plain kernels and documents
FORMALISMS = (
    "newton_euler", "telegin", "khalil", "planar", "articulated_body", "vereshchagin", "kovalchuk", "alyushin",
    "zaremba",
)  # fmt: skip
TEXTS = ("latex", "markdown", "html", "python", "c", "cuda", "matlab")
VARIANTS: tuple[dict[str, Any], ...] = (
    {}, {"layout": "batch_last"}, {"dtype": "float32"}, {"packed": True},
    {"layout": "batch_last", "packed": True, "dtype": "float32"}, {"parameters": ("*.mass",)}, {"check": False},
)  # fmt: skip


PARTS = ("single", "drive")  # of the code of a Function, each compiled at its first need


class Made(BaseException):
    """Ends a compilation as soon as its text is known; no `except Exception` may swallow it."""


# -- robots ---------------------------------------------------------------------------------------------------


def tree(seed: int) -> Any:
    """A random tree of a few bodies, every kind of joint, by the public Builder."""
    rng = np.random.default_rng(seed)
    builder = drevo.Builder(f"tree-{seed}", gravity=tuple(rng.normal(size=3)))
    names = ["world"]
    for k in range(int(rng.integers(2, 7))):
        kind = "free" if k == 0 and seed % 3 == 0 else str(rng.choice(KINDS[:-1]))
        root = rng.normal(size=(3, 3))
        axis = rng.normal(size=3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)]
        second = {"axis2": np.cross(axis, [0.3, -0.5, 0.8])} if kind == "universal" else {}
        lead = {"lead": 0.1} if kind == "helical" else {}
        builder.body(
            f"link{k}", parent=names[max(0, len(names) - 1 - int(rng.integers(3)))] if k else "world",
            joint=kind, axis=axis, origin=rng.normal(size=3) * (rng.random(3) < 0.7),
            rpy=rng.normal(size=3) * (seed % 2),
            mass=float(rng.uniform(0.5, 3.0)), com=rng.normal(size=3) * (rng.random(3) < 0.7),
            inertia=root @ root.T + np.eye(3), **second, **lead,
        )  # fmt: skip
        names.append(f"link{k}")
    return builder.robot()


def robots() -> dict[str, Callable[[], Any]]:
    """Name -> how it is made."""
    made: dict[str, Callable[[], Any]] = {n: lambda n=n: drevo.load(n) for n in EMBEDDED}
    for name, base in product(("screw-arm", "biped"), ("floating", "trunk")):
        made[f"{name}, {base}"] = lambda name=name, base=base: drevo.load(name, base=base)
    made |= {f"tree-{s}": lambda s=s: tree(s) for s in range(TREES)}
    made |= {f"chain-{n}": lambda n=n: drevo.robots.rod_chain(n=n) for n in CHAINS}
    for path in _found(FILES):
        made[path.stem] = lambda path=path: drevo.load(path)
    for path in _found(WALKERS):
        made[path.stem] = lambda path=path: drevo.load(path, base="floating")
    return made


def _found(files: Sequence[str]) -> list[Path]:
    """Those of the package example-robot-data that are installed."""
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        return []
    folder = Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    return [folder / f for f in files if (folder / f).exists()]


# -- what is recorded -------------------------------------------------------------------------------------------


def digest(*things: Any) -> str:
    """Twelve hexadecimal digits of arrays, texts and plain values."""
    found = hashlib.sha256()
    for x in things:
        found.update(
            x.encode() if isinstance(x, str) else repr(x).encode() if not isinstance(x, np.ndarray) else b""
        )
        if isinstance(x, np.ndarray):
            found.update(repr((x.dtype.str, x.shape)).encode() + np.ascontiguousarray(x).tobytes())
    return found.hexdigest()[:12]


_SPLAT = re.compile(r"<(\w+) ([^,<> ]+)(?:, \1 \2)+>")
_ZERO = re.compile(r"splat \((?:double|float) 0x0{16}\)|splat \(i\d+ 0\)")
_LOCAL = re.compile(r"%[\w.]+")


def canonical(text: str) -> str:
    """An LLVM text without what LLVM does not see: functions in the order of their names, values and labels
    numbered in order of appearance, equal lanes spelt alike, no declarations, chains of blocks as one."""
    functions, others = [], []
    for part in re.split(r"^(?=define |declare |@|!)", text, flags=re.MULTILINE):
        if part.startswith("define "):
            functions.append(_numbered(part[: part.index("\n}")]))
        elif part.strip() and not part.startswith("declare "):
            others.append(part.strip())
    return "\n".join(sorted(functions) + sorted(others))


def _numbered(function: str) -> str:
    function = _ZERO.sub("zeroinitializer", _SPLAT.sub(r"splat (\1 \2)", function))
    numbers: dict[str, str] = {}
    return _LOCAL.sub(lambda x: numbers.setdefault(x[0], f"%{len(numbers)}"), _chained(function))


def _chained(function: str) -> str:
    """Blocks that only their predecessor jumps to are part of it."""
    entered = Counter(re.findall(r"label %([\w.]+)", function))
    out, block, same = [], "first", dict[str, str]()
    for line in filter(None, function.splitlines()):
        if not line.endswith(":"):
            out.append(line)
            continue
        label, before = line[:-1], out[-1].strip()
        if before == f"br label %{label}" and entered[label] == 1:
            out.pop()
        elif not before.endswith("{"):
            block = label
            out.append(f"%{label}:")
        same[f"%{label}"] = f"%{block}"
    return re.sub(r"%[\w.]+", lambda x: same.get(x[0], x[0]), "\n".join(out))


def outcome(call: Callable[[], str]) -> str:
    """What a case gives; a refusal is a result too, and its sentence is kept."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:160]}"


class Tape:
    """The texts that reach LLVM."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self.seen: list[str] = []
        self.stop = False
        parse = llvm.parse_assembly

        def recorded(text: str, *args: Any, **given: Any) -> Any:
            entry = self.stop and "@entry(" in text and "@drive(" not in text
            if entry or not text:  # what Python calls, the same for all arrays of these shapes; a loader's module
                return parse(text, *args, **given)
            self.seen.append(digest(canonical(text)))
            if self.stop:
                raise Made
            return parse(text, *args, **given)

        llvm.parse_assembly = recorded

    def text_of(self, call: Callable[[], Any]) -> str:
        """The digest of the texts of a function: of one sample, of a batch, or what it compiles at once; without
        their machine code."""
        self.seen.clear()
        self.stop = True
        made: list[Any] = []
        try:
            for step in (lambda: made.append(call()), *(lambda p=p: made[0].code.find(p) for p in PARTS)):
                with suppress(Made):
                    step()
                if not made:
                    break
        finally:
            self.stop = False
        return digest(*self.seen) if self.seen else "nothing compiled"

    def results_of(self, call: Callable[[], Any]) -> str:
        """The digest of the results of a call, and of every text that it compiled."""
        self.seen.clear()
        result = digest(*numbers(call()))
        return f"{result} by {digest(*self.seen)}"


def numbers(x: Any) -> Iterator[Any]:
    """The arrays in a result, however deep."""
    if isinstance(x, (np.ndarray, float, int, str)) or x is None:
        yield np.asarray(x) if isinstance(x, (float, int)) else x
    elif isinstance(x, dict):
        for value in x.values():
            yield from numbers(value)
    elif isinstance(x, (tuple, list)):
        for value in x:
            yield from numbers(value)
    else:
        raise TypeError(f"a result of type {type(x).__name__} has no known fields here")


Cases = Iterator[tuple[str, Callable[[], Any]]]
THREE = ("mass_matrix", "inverse_dynamics", "forward_dynamics")
DERIVATIVES = (
    ("mass_matrix", ("q",)), ("mass_matrix", ("q", "q")), ("inverse_dynamics", ("q", "v")),
    ("inverse_dynamics", ("t",)), ("pose", ("q",)),
)  # fmt: skip


def kernels(robot: Any) -> Cases:
    """Every kernel: quantity, layout, type, formalism, options."""
    from drevo.model.quantities import CATALOGUE

    made = partial(drevo.compile, robot, cache=False)
    small = robot.nv <= SMALL
    for name, quantity in CATALOGUE.items():
        link = {"link": robot.link_names[-1]} if "link" in quantity.options else {}
        for variant in VARIANTS if small else VARIANTS[:1]:
            yield f"{name} {variant}", partial(made, name, **link, **variant)
        if quantity.external and small:
            yield f"{name} under a wrench", partial(made, name, f_ext=robot.link_names[-1:])
    for name, formalism in product(THREE, FORMALISMS if small else ()):
        yield f"{name} by {formalism}", partial(made, name, formalism=formalism)
    yield "two at once", partial(made, ["mass_matrix", "bias"])
    for name, wrt in DERIVATIVES:
        link = {"link": robot.link_names[-1]} if name == "pose" else {}
        if small and robot.nv ** len(wrt) < 100:
            yield f"d {name} / {wrt}", partial(drevo.compile, robot, name, wrt=wrt, packed=True, **link)


def documents(robot: Any) -> Cases:
    """Every written-out document, with its counts."""
    small = robot.nv <= SMALL
    for name, symbols in product(THREE, (None, "all") if small else (None,)):
        yield (
            f"write_out {name} {symbols}",
            partial(written, robot, name, symbols, TEXTS if small else ("python", "c")),
        )


def written(robot: Any, name: str, symbols: str | None, texts: Sequence[str]) -> str:
    """Formalism, products and sums, and a digest of each text."""
    d = drevo.write_out(robot, name, symbols=symbols)
    return f"{d.formalism} {d.counts['mul']}/{d.counts['add']} { {t: digest(getattr(d, t)()) for t in texts} }"


def results(robot: Any) -> Cases:
    """Numbers to the bit: calls, motions, streams, constrained motion."""
    rng = np.random.default_rng(7)
    link = robot.link_names[-1]
    q = robot.random(rng, 21)
    v, a = rng.normal(size=(2, 21, robot.nv))
    one = (q[0], 0.1 * v[0], a[0])
    yield "integrate", partial(robot.integrate, q, v)
    yield "difference", partial(robot.difference, q, q[::-1].copy())
    for name, state in (("mass_matrix", (q,)), ("inverse_dynamics", (q, v, a)), ("kinetic_energy", (q, v))):
        yield f"{name} of a batch", partial(getattr(robot, name), *state)
    yield "inverse_dynamics under a wrench", partial(robot.inverse_dynamics, *one, f_ext={link: np.ones(6)})
    if robot.nv > SMALL:
        return
    touch = {"contacts": [{"link": link, "point": (0.1, 0.0, 0.05), "rows": 3}]}
    fields = attrgetter("a", "reactions", "rank", "jacobian", "gamma")
    yield "constrained_dynamics", lambda: fields(robot.constrained_dynamics(*one, **touch))
    yield "impact", lambda: robot.impact(*one[:2], **touch).v
    yield "linearise", lambda: attrgetter("A", "B")(robot.linearise(*one))
    yield "stream", lambda: attrgetter("sum", "min", "max")(drevo.stream(robot, "kinetic_energy", 5000))
    run = attrgetter("t", "q", "v")
    for method, step in (("rk4", 1e-3), ("semi_implicit_euler", 1e-3), ("gauss4", 1e-3), ("dop853", None)):
        yield (
            f"simulate by {method}",
            lambda m=method, h=step: run(robot.simulate(*one[:2], duration=0.02, method=m, dt=h)),
        )
    yield "simulate in contact", lambda: run(robot.simulate(*one[:2], duration=0.01, dt=1e-3, **touch))


def record_one(name: str) -> dict[str, str]:
    """All cases of one robot."""
    warnings.simplefilter("ignore")
    tape = Tape()
    try:
        robot = robots()[name]()
    except drevo.DrevoError as error:
        return {name: str(error)}
    found = {f"{name}: {what}": outcome(partial(tape.text_of, call)) for what, call in kernels(robot)}
    found |= {f"{name}: {what}": outcome(call) for what, call in documents(robot)}
    return found | {f"{name}: {what}": outcome(partial(tape.results_of, call)) for what, call in results(robot)}


def record(few: bool, jobs: int) -> dict[str, str]:
    """All robots, each in a process of its own with an empty cache."""
    names = list(robots())
    names = names[:: len(names) // 6] if few else names
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DREVO_CACHE_DIR"] = folder
        with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
            found: dict[str, str] = {}
            for part in pool.imap_unordered(record_one, names, chunksize=1):
                found |= part
                print(f"{len(found):6} cases", end="\r", file=sys.stderr)
    return dict(sorted(found.items()))


def compare(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """A line per difference."""
    keys = sorted({*before, *after})
    return [
        f"{k}: {before.get(k, 'not there')} -> {after.get(k, 'not there')}"
        for k in keys
        if before.get(k) != after.get(k)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--few", action="store_true", help="six of the robots")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.what == "record":
        found = record(given.few, given.jobs)
        given.files[0].write_text(json.dumps(found, indent=0), encoding="utf-8")
        print(f"{len(found)} cases in {given.files[0]}")
        return 0
    before, after = (json.loads(f.read_text(encoding="utf-8")) for f in given.files)
    lines = compare(before, after)
    print("\n".join(lines), f"\n{len(lines)} of {len(after)} cases differ")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
