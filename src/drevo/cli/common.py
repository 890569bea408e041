"""Helpers of the verbs: loading, refusals as one sentence, tables, progress. Imports nothing heavy by itself."""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from ..io.files import PICTURES, ready

if TYPE_CHECKING:
    from ..robot.face import Robot

P = ParamSpec("P")
T = TypeVar("T")

ELSEWHERE = {"strict=True": "drevo check --strict"}  # options that another verb has
PIPED = 240  # columns that a table may take: its cells are never folded
REFUSED_EXIT = 2  # the exit code of what was refused; 1 is for a check that failed
MAX_BATCH = 10_000_000  # states of a batch at most: what a desk's memory holds
STATE = "joint=value, ... (name[k] of a joint with several), or all numbers; by default "
OUTPUTS = ("output", "export", "to")  # arguments of verbs that name a file to write
MAX_LISTED_PROBLEMS = 10  # problems of one file that are listed


def option(about: str, *names: str, **more: Any) -> Any:
    """An option of a verb, by default named like its argument; `about` is what its help says."""
    return typer.Option(*names, help=about, **more)


def _robots(begun: str) -> list[str]:
    """Names of robots and files that begin so, for the shell's completion."""
    from ..io.installed import names
    from ..model.loaders import SUFFIXES
    from ..robots import EMBEDDED

    folder = Path(begun).parent if os.sep in begun else Path(".")
    entries = (
        [x for x in folder.iterdir() if x.is_dir() or x.suffix.lower() in SUFFIXES] if folder.is_dir() else []
    )
    files = [f"{x}{os.sep}" if x.is_dir() else str(x) for x in entries]
    return sorted(x for x in {*EMBEDDED, *names(), *files} if x.startswith(begun))


RobotName = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A robot file (.urdf, .xml, .sdf, .toml, .json) or an embedded robot's name.",
        autocompletion=_robots,
    ),
]
Base = Annotated[str, option("What the robot stands on: fixed, floating or trunk.")]
Gravity = Annotated[str | None, option("Three numbers, m/s^2, in place of the file's.")]
Json = Annotated[bool, option("Print JSON instead of text.", "--json")]


def guarded(verb: Callable[P, T]) -> Callable[P, T]:
    """Turns what a user can cause into one sentence on stderr and the exit code 2."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        from ..errors import DrevoError

        try:
            with _patience(), _warnings_as_lines(verb):
                for path in (kwargs.get(name) for name in OUTPUTS):
                    if isinstance(path, Path) and path.name:
                        path.parent.mkdir(parents=True, exist_ok=True)
                result = verb(*args, **kwargs)
                sys.stdout.flush()  # a reader that has gone is met here
                return result
        except BrokenPipeError:  # as of `drevo ... | head`: nobody reads on, and nothing is wrong
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
        except (DrevoError, MemoryError) as error:
            print(f"drevo: {_by_options(verb, said(error)) or 'there is not enough memory'}", file=sys.stderr)
        except OSError as error:
            file = f"{error.filename}: " if error.filename else ""
            print(f"drevo: {file}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        raise typer.Exit(REFUSED_EXIT)

    return run


class _Until:
    """A stream that tells before something is first written to it."""

    def __init__(self, stream: Any, tell: Callable[[], None]) -> None:
        self._stream, self._tell = stream, tell

    def write(self, text: str) -> int:
        self._tell()
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _patience() -> Iterator[None]:
    """Shows the elapsed time on a terminal's stderr, from one second without output until the first output."""
    if not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield
        return
    out, err, done, start = sys.stdout, sys.stderr, threading.Event(), time.monotonic()

    def wait() -> None:
        shown = False
        while not done.wait(1.0):
            shown = True
            err.write(f"\rworking, {time.monotonic() - start:.0f} s")
            err.flush()
        if shown:
            err.write("\r\x1b[K")
            err.flush()

    waiting = threading.Thread(target=wait, daemon=True)

    def end() -> None:
        done.set()
        if threading.current_thread() is not waiting:
            waiting.join()

    sys.stdout, sys.stderr = _Until(out, end), _Until(err, end)
    waiting.start()
    try:
        yield
    finally:
        end()
        sys.stdout, sys.stderr = out, err


@contextmanager
def _warnings_as_lines(verb: Callable[..., Any]) -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {_by_options(verb, said(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _by_options(verb: Callable[..., Any], sentence: str) -> str:
    """A sentence of the library with its options as the command line has them: --lossy for lossy=True."""
    taken = inspect.signature(verb).parameters
    flags = {name for name, p in taken.items() if p.default is False}

    def told(match: re.Match[str]) -> str:
        return f"--{match[1]}" if match[1] in flags else ELSEWHERE.get(match[0], match[0])

    return re.sub(r"\b(\w+)=True\b", told, sentence)


def said(message: object) -> str:
    """A sentence on one line; the problems of a file each on a line of its own, the first of them."""
    lines = [" ".join(line.split()) for line in str(message).splitlines()]
    more = [f"and {len(lines) - 1 - MAX_LISTED_PROBLEMS} more"] if len(lines) > 1 + MAX_LISTED_PROBLEMS else []
    return "\n  ".join([*lines[: 1 + MAX_LISTED_PROBLEMS], *more])


def load_robot(robot: str, base: str = "fixed", strict: bool = False) -> Robot:
    """A Robot by path or name."""
    from ..robots.loading import load as load_robot

    return load_robot(robot, base=base, strict=strict)


def under_gravity(robot: Robot, given: str | None) -> Robot:
    """The robot under the gravity that --gravity gives, if it does."""
    from dataclasses import replace

    g = numbers_in("--gravity", given, 3)
    return robot if g is None else type(robot)(replace(robot.model, gravity=(g[0], g[1], g[2])))


def words_in(text: str | None) -> list[str]:
    """Words with commas between them."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def given_in(text: str) -> dict[str, float | None]:
    """Coordinates of joints, of words such as joint7=0.4, or joint7 for an argument, with commas between them."""
    from ..errors import InputError

    parts = (word.partition("=") for word in words_in(text))
    try:
        return {name.strip(): float(x) if equals else None for name, equals, x in parts}
    except ValueError:
        raise InputError(f"--given {text!r} is no list such as joint7=0.4, with commas between them") from None


def numbers_in(option: str, text: str | None, count: int | None = None) -> list[float] | None:
    """Numbers with commas between them, as many as `count` says; None where the option is not given."""
    from ..errors import InputError

    if text is None:
        return None
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is no list of numbers with commas between them") from None
    if count is not None and len(numbers) != count:
        raise InputError(f"{option} has {len(numbers)} numbers; this robot needs {count}")
    return numbers


def vector_in(robot: Robot, name: str, text: str | None) -> Any:
    """A vector of the state from its text, JOINT=VALUE,... or all numbers; by default neutral or 0."""
    import numpy as np

    from ..errors import InputError, one_of

    kind = "q" if name in ("q", "q0") else "v"
    vector = robot.neutral() if kind == "q" else np.zeros(robot.nv)
    if text is None:
        return vector
    if "=" not in text:
        return np.array(numbers_in(f"--{name}", text, len(vector)))
    places = {joint + index: k for k, (joint, index) in enumerate(robot.model.freedoms(kind))}
    said_before: set[str] = set()
    for part in filter(None, re.split(r"[,\s]+", text)):
        joint, _, number = part.partition("=")
        one_of(f"--{name}: coordinate", joint, places, InputError)
        if joint in said_before:
            raise InputError(f"--{name}: {joint} is given twice")
        said_before.add(joint)
        vector[places[joint]] = (numbers_in(f"--{name} {joint}", number, 1) or [0.0])[0]
    return vector


PLOT = "Sketch the result in the terminal; a picture is saved with -o FILE.svg."


def ready_for(kind: str, path: Path | None, endings: Sequence[str]) -> None:
    """Refuses a file that such a thing cannot be saved as, before the work begins."""
    if path is not None:
        ready(kind, path, endings)


def save_result(result: Any, path: Path | None) -> None:
    """Saves a result as a table or, by the ending of the path, as its picture; without a path nothing."""
    if path is not None:
        (result.plot if path.suffix.lower() in PICTURES else result.save)(path)


def print_picture(result: Any, plot: bool, saved: Path | None) -> None:
    """With --plot the first panel of a result's picture in characters; the file that it was saved to."""
    if plot:
        from ..documents.pictures.sketch import sketch

        print(sketch(result.figure()))
    if saved is not None:
        print(f"saved {saved}")


def print_json(data: Any) -> None:
    """JSON on stdout."""
    print(json.dumps(data, indent=1, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> None:
    """A table on stdout; the first `left` columns are text."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for k, column in enumerate(columns):
        grid.add_column(column, justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*("" if cell is None else str(cell) for cell in row))
    if sys.stdout.isatty():
        Console(highlight=False, markup=False, width=PIPED).print(grid)  # rows wrap; cells would fold into pieces
        return
    text = io.StringIO()
    Console(file=text, highlight=False, markup=False, width=PIPED).print(grid)
    print("\n".join(line.rstrip() for line in text.getvalue().rstrip().split("\n")))


@contextmanager
def progress(total: int, title: str) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr where a person looks; calls of the result say what is done next."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(title), total=total)
        first = True

        def step(text: str) -> None:
            nonlocal first
            bar.update(task, description=escape(f"{title}: {text}"), advance=0 if first else 1)
            first = False

        yield step


@contextmanager
def progress_portion(title: str, doing: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr for work that tells which part of it, 0 to 1, is done."""
    seen = 0
    with progress(100, title) as step:

        def part(x: float) -> None:
            nonlocal seen
            while seen < 100 * x:
                seen += 1
                step(doing)

        yield part
