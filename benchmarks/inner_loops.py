"""The peers' own C and C++ in bare loops, as child processes that answer one command a line.

Pinocchio comes twice, from one source: linked with the library of its wheel, and from the wheel's headers with
-O3 -march=native. The two do not share a process, since Eigen aligns differently in each. Eigen's headers are
those of pin's wheel or of CasADi's. Programs are kept in build/bench, by a digest of all that they depend on.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
PATIENCE = 900.0  # seconds for a compiler; -O3 on all of Pinocchio's joint types takes minutes, once
DEFINES = (
    "NDEBUG", "BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)  # fmt: skip


class Child:
    """A process that runs COUNT evaluations when told to and answers the nanoseconds."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        words, pipe = [str(x) for x in command], subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def ask(self, line: str) -> str:
        """The answer to a command."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.line()

    def line(self) -> str:
        """The next line that the process writes."""
        assert self.process.stdout
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args} died")
        if answer.startswith("failed"):
            raise RuntimeError(answer.strip())
        return answer

    def seconds(self, name: str, first: int, count: int) -> float:
        """How long `count` evaluations took."""
        return int(self.ask(f"{name} {first} {count}")) * 1e-9

    def show(self, name: str, k: int) -> np.ndarray[Any, Any]:
        """The result of state k."""
        return np.array(self.ask(f"show {name} {k}").split(), float)

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


# --- building ----------------------------------------------------------------------------------------------


def build() -> dict[str, Path | str]:
    """Programs by contender: "pin shipped", "pin native", "mujoco C"; or why one is missing. In parallel."""
    jobs = {name: _start(source, flags) for name, (source, flags) in recipes().items()}
    done: dict[str, Path | str] = {}
    for name, (path, process) in jobs.items():
        done[name] = _finish(path, process)
    return done


def recipes() -> dict[str, tuple[str, list[str]]]:
    cmeel = Path(str(distribution("pin").locate_file("cmeel.prefix")))
    eigens = (cmeel / "include/eigen3", Path(str(distribution("casadi").locate_file("casadi/include/eigen3"))))
    eigen = next((x for x in eigens if (x / "Eigen").is_dir()), eigens[-1])
    headers = [f"-I{cmeel / 'include'}", f"-isystem{eigen}", *(f"-D{x}" for x in DEFINES)]
    shipped = ["-O2", *headers, "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION", f"-L{cmeel / 'lib'}",
               "-lpinocchio_default", f"-Wl,-rpath,{cmeel / 'lib'}"]  # fmt: skip
    folder = Path(mujoco.__file__).parent
    library = next(iter(sorted(folder.glob("libmujoco.so*"))), folder / "libmujoco.so")
    own = ["-O2", f"-I{folder / 'include'}", str(library), f"-Wl,-rpath,{folder}"]
    return {
        "pin shipped": ("pin_inner_loop.cpp", shipped),
        "pin native": ("pin_inner_loop.cpp", ["-O3", "-march=native", "-w", *headers]),
        "mujoco C": ("mujoco_inner_loop.cpp", own),
    }


def program(source: str, flags: list[str]) -> Path:
    """Where a program is kept: everything that it depends on is in its name."""
    about = [pin.__version__, mujoco.__version__, *flags, (HERE / source).read_text()]
    about.append(subprocess.check_output(["g++", "-dumpfullversion", "-dumpmachine"], text=True))
    return BUILD / f"{Path(source).stem}_{hashlib.sha256(chr(10).join(about).encode()).hexdigest()[:12]}"


def _start(source: str, flags: list[str]) -> tuple[Path, Any]:
    """The program's path, and its compiler at work unless the program is there already."""
    try:
        path = program(source, flags)
    except OSError as error:
        return BUILD, error
    if path.exists():
        return path, None
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"compiling {source} {flags[0]}; this takes minutes, once", file=sys.stderr)
    command = ["g++", "-std=c++17", str(HERE / source), *flags, "-o", str(path)]
    return path, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def _finish(path: Path, process: Any) -> Path | str:
    if process is None:
        return path
    if isinstance(process, OSError):
        return f"no C++ compiler: {process}"
    try:
        _, words = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"its compiler took longer than {PATIENCE:.0f} s"
    error = next((line for line in words.splitlines() if "error" in line), "unknown")
    return path if process.returncode == 0 else f"its compiler failed: {error[:200]}"


# --- what the children read --------------------------------------------------------------------------------


def write_model(model: Any, path: Path) -> None:
    """Pinocchio's model as pin_inner_loop.cpp reads it."""
    lines = []
    for i in range(1, model.njoints):
        at, body = model.jointPlacements[i], model.inertias[i]
        numbers = [*at.rotation.ravel(), *at.translation, body.mass, *body.lever]
        numbers += [body.inertia[r, c] for r, c in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
        kind = model.joints[i].shortname()
        lines.append(" ".join([str(model.parents[i]), kind, *(repr(float(x)) for x in numbers)]))
    path.write_text("\n".join(lines) + "\n")


def write_states(states: Sequence[np.ndarray[Any, Any]], path: Path) -> None:
    """Rows of q, v, a, tau as raw doubles."""
    np.hstack(states).astype("<f8").tofile(path)
