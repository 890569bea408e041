"""Trajectory: t, q, v, a of one motion, checked; from files, waypoints and simulations."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.collection import acting_in
from ..documents.pictures.picture import Figure, Pictured
from ..errors import InputError, shown
from ..io.files import saving
from ..io.given import Array, finite, flag, numbers, whole
from ..io.packages import frame
from ..io.reprs import result
from ..mechanics.configuration import require_unit_quaternions
from ..model.draft import expect_robot
from ..robot.face import Robot
from ..simulate.arguments import checked_law
from ..simulate.table import over_time

STENCIL = 5  # points of a derivative that a file leaves out: its error is of the fourth order in their distance
MAX_LEG_ROWS = 1_000_000  # rows of one leg between waypoints
UNREADABLE = (OSError, ValueError, MemoryError)
IGNORED = ("energy", "drift")  # columns of a simulation's table that are no state, and beginnings of others
IGNORED_KINDS = ("N:", "tau:", "reference:", "error:")


@result
class Trajectory(Pictured):
    """t (n,) s rising, q (n, nq), v and a (n, nv) of a robot; InputError says what is wrong with them."""

    robot: Robot
    t: Array
    q: Array
    v: Array
    a: Array

    def __post_init__(self) -> None:
        expect_robot(self.robot, "a trajectory")
        sizes = {"t": (), "q": (self.robot.nq,), "v": (self.robot.nv,), "a": (self.robot.nv,)}
        for name, size in sizes.items():
            x = finite(f"trajectory: {name}", getattr(self, name), error=InputError).copy()
            object.__setattr__(self, name, x)
            if x.ndim == 0 or x.shape != (len(self.t), *size) or not len(self.t):
                want = f"(n, {size[0]})" if size else "(n,), n of 1 or more"
                raise InputError(f"trajectory: {name} has shape {x.shape}; robot {self.robot.name!r} needs {want}")
        fall = np.diff(self.t) <= 0.0
        if fall.any():
            k = int(np.argmax(fall))
            raise InputError(
                f"trajectory: time does not rise from row {k} ({self.t[k]:g} s) to row {k + 1} ({self.t[k + 1]:g} "
                "s); each row must come later than the one before"
            )
        require_unit_quaternions(self.robot.model, "trajectory", self.q, InputError)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<Trajectory of {self.robot.name!r}: {len(self)} rows from {self.t[0]:g} to {self.t[-1]:g} s>"

    # -- where it comes from ------------------------------------------------------------------------------------

    @staticmethod
    def of(
        robot: Robot, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None
    ) -> Trajectory:
        """From arrays. v and a that are not given are derivatives over five neighbours, of the fourth order; the
        better they are, the better the loads."""
        still = _still(robot, t)
        plain = Trajectory(robot, t, q, still if v is None else v, still if a is None else a)  # type: ignore[arg-type]
        if v is not None and a is not None:
            return plain
        if len(plain) < STENCIL:
            raise InputError(
                f"trajectory: {len(plain)} rows without v or a; give both, or {STENCIL} rows or more to "
                "differentiate, or join them as waypoints"
            )
        rate = plain.v if v is not None else _rates(robot, plain.t, plain.q)
        return Trajectory(robot, plain.t, plain.q, rate, plain.a if a is not None else _derivative(plain.t, rate))

    @staticmethod
    def read(robot: Robot, path: str | Path, waypoints: bool = False) -> Trajectory:
        """From .npz (t, q and, if they are there, v, a) or .csv with a header: t, q:JOINT, v:JOINT, a:JOINT;
        joints of several coordinates q:JOINT[0], ... The tables of `drevo simulate` are read.
        waypoints: the rows are stops, joined as by `through`."""
        expect_robot(robot, "a trajectory")
        if not isinstance(path, (str, PathLike)):
            raise InputError(f"a trajectory is read from a path, not {shown(path)}")
        file, joined = Path(path), flag("waypoints", waypoints)
        if file.suffix.lower() not in (".npz", ".csv"):
            raise InputError(f"a trajectory is read from .npz or .csv, not {str(path)!r}")
        if not file.is_file():
            raise InputError(f"the trajectory file {str(path)!r} does not exist")
        arrays = _from_npz(file) if file.suffix.lower() == ".npz" else _from_csv(robot, file)
        if joined:
            return Trajectory.through(robot, arrays["q"], arrays["t"])
        return Trajectory.of(robot, arrays["t"], arrays["q"], arrays.get("v"), arrays.get("a"))

    @staticmethod
    def through(robot: Robot, waypoints: ArrayLike, times: ArrayLike, rows: int = 101) -> Trajectory:
        """From waypoint (m, nq) to waypoint at `times` (m,), at rest in each: q = q_k + s(x) (q_k+1 - q_k) with
        the quintic s = 10 x^3 - 15 x^4 + 6 x^5, also on quaternions. rows: of each leg."""
        stops = Trajectory(robot, times, waypoints, _still(robot, times), _still(robot, times))  # type: ignore[arg-type]
        if len(stops) < 2:
            raise InputError(f"a trajectory goes through 2 waypoints or more, not {len(stops)}")
        rows = whole("rows of a leg", rows, 2, MAX_LEG_ROWS)
        t, q, v, a = [stops.t[:1]], [stops.q[:1]], [stops.v[:1]], [stops.a[:1]]
        for k in range(len(stops) - 1):
            T, displacement = stops.t[k + 1] - stops.t[k], robot.difference(stops.q[k], stops.q[k + 1])
            x = np.linspace(0.0, 1.0, rows)[1:, None]
            t.append(stops.t[k] + T * x[:, 0])
            q.append(robot.integrate(stops.q[k], (x**3 * (10.0 - 15.0 * x + 6.0 * x * x)) * displacement))
            v.append(30.0 * (x * (1.0 - x)) ** 2 / T * displacement)
            a.append(60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / T**2 * displacement)
        return Trajectory(robot, *(np.concatenate(x) for x in (t, q, v, a)))

    @staticmethod
    def simulated(table: Any, tau: Any = None) -> Trajectory:
        """The trajectory of a simulation's table, under its contacts and constraints.

        tau: the efforts that drove it: None, constants (nv,), one row a record (n, nv), or the law or function
        (t, q, v) that was simulated."""
        if not hasattr(table, "under"):
            raise InputError(f"a simulated trajectory takes the table that simulate gives, not {shown(table)}")
        robot, under = table.robot, table.under
        if table.q.ndim != 2:
            raise InputError(
                f"a trajectory is one motion, and this table a batch of {table.q.shape[1:-1]}: take one row"
            )
        t, q, v = table.t, table.q, table.v
        if callable(tau):
            law = checked_law(robot, tau, ())
            tau = np.concatenate([law(*row) for row in zip(t.tolist(), q[:, None], v[:, None])])
        force = np.zeros(robot.nv) if tau is None else finite("tau", tau, (..., robot.nv))
        if force.shape not in ((robot.nv,), v.shape):
            raise InputError(f"tau has shape {force.shape}; it is ({robot.nv},), or {v.shape}, one row a record")
        force = np.broadcast_to(force, v.shape) + acting_in(robot, q, v, table.passive)
        if under is None:
            return Trajectory(robot, t, q, v, robot.forward_dynamics(q, v, force))
        terms = partial(under.terms, t[:, None])
        return Trajectory(robot, t, q, v, under.solved(terms, q[:, None], v[:, None], force[:, None]).a[:, 0])

    def to_pandas(self) -> Any:
        """t, q, v and a by joint as a pandas.DataFrame, a row for every time; needs pandas."""
        return frame(self._columns())

    def _columns(self) -> dict[str, Array]:
        table = {"t": self.t}
        for kind, x in (("q", self.q), ("v", self.v), ("a", self.a)):
            table |= dict(zip(columns(self.robot, kind), x.T))
        return table

    def figure(self) -> Figure:
        """Coordinates, rates and accelerations over time."""
        kinds = (("q", "coordinates", ""), ("v", "rates", "/s"), ("a", "accelerations", "/s^2"))
        table = self._columns()
        panels = [
            panel
            for kind, title, per in kinds
            for panel in over_time(self.robot.model, kind, title, (f"rad{per}", f"m{per}"), self.t, table)
        ]
        return Figure(f"{self.robot.name}: a trajectory", panels, abscissa="t, s")

    # -- and where it goes --------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """As .npz or .csv, which `read` takes back."""
        with saving("a trajectory", path, (".npz", ".csv")) as file:
            if file.suffix.lower() == ".npz":
                np.savez(file, t=self.t, q=self.q, v=self.v, a=self.a)
                return
            heads = ["t", *(name for kind in "qva" for name in columns(self.robot, kind))]
            write_csv(file, heads, np.column_stack([self.t, self.q, self.v, self.a]))


def columns(robot: Robot, kind: str) -> list[str]:
    """Names of the columns of q, v or a: q:JOINT, or q:JOINT[k] where the joint has several."""
    return [f"{kind}:{joint}{i}" for joint, i in robot.model.freedoms(kind)]


def write_csv(path: Path, heads: Sequence[str], rows: Array) -> None:
    """A table with a header line; numbers as short as they can be read back exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows.tolist())


def _still(robot: Robot, times: ArrayLike) -> Array:
    expect_robot(robot, "a trajectory")
    return np.zeros((numbers("trajectory: t", times).size, robot.nv))


def _from_npz(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in ("t", "q", "v", "a") if name in file}
            names = list(file)
    except (*UNREADABLE, AttributeError, EOFError, KeyError, NotImplementedError, BadZipFile, zlib.error) as error:
        raise InputError(f"the trajectory file {str(path)!r} is no readable .npz: {error}") from None
    lost = [name for name in ("t", "q") if name not in arrays]
    if lost:
        raise InputError(
            f"the trajectory file {str(path)!r} lacks {' and '.join(lost)}; it holds {', '.join(names)}"
        )
    return arrays


def _from_csv(robot: Robot, path: Path) -> dict[str, Array]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [row for row in csv.reader(file) if row]
    except (*UNREADABLE, csv.Error) as error:
        raise InputError(f"the trajectory file {str(path)!r} is no readable .csv: {error}") from None
    if len(lines) < 2:
        raise InputError(f"the trajectory file {str(path)!r} has {len(lines)} lines; a header and rows are needed")
    heads = [x.strip() for x in lines[0]]
    wanted = {kind: columns(robot, kind) for kind in "qva"}
    _require_columns(robot, path, heads, wanted)
    table = np.array([_numbers(path, heads, k, row) for k, row in enumerate(lines[1:], 2)])
    groups = {"t": ["t"], **{kind: names for kind, names in wanted.items() if names and names[0] in heads}}
    out = {kind: table[:, [heads.index(name) for name in names]] for kind, names in groups.items()}
    return {**out, "t": out["t"][:, 0]}


def _require_columns(robot: Robot, path: Path, heads: list[str], wanted: dict[str, list[str]]) -> None:
    known = ["t", *IGNORED, *(name for names in wanted.values() for name in names)]
    stray = [x for x in heads if x not in known and not x.startswith(IGNORED_KINDS)]
    lost = [name for name in ("t", *wanted["q"]) if name not in heads]
    for kind in "va":  # all of a kind, or none
        present = [name for name in wanted[kind] if name in heads]
        lost += [name for name in wanted[kind] if present and name not in heads]
    twice = [x for x in dict.fromkeys(heads) if heads.count(x) > 1]
    for names, fault in ((lost, "lacks the columns"), (stray, "has the unknown columns"), (twice, "gives twice")):
        if names:
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            raise InputError(
                f"the trajectory file {str(path)!r} {fault} {shown}; of robot {robot.name!r} it has t, "
                f"{', '.join(wanted['q'][:3])}, ... and, if known, v:JOINT and a:JOINT"
            )


def _numbers(path: Path, heads: list[str], line: int, row: list[str]) -> list[float]:
    if len(row) != len(heads):
        raise InputError(
            f"the trajectory file {str(path)!r} has {len(row)} cells in line {line}, {len(heads)} columns"
        )
    try:
        return [float(x) for x in row]
    except ValueError as error:
        raise InputError(f"the trajectory file {str(path)!r}, line {line}: {error}") from None


# -- derivatives that a file leaves out -----------------------------------------------------------------------


def _rates(robot: Robot, t: Array, q: Array) -> Array:
    """v in the tangent space of each row: the derivative of difference(q_k, q) at q_k."""
    w, near = _stencils(t)
    steps = robot.difference(q[:, None, :], q[near])
    return np.asarray((w[..., None] * steps).sum(axis=1))


def _derivative(t: Array, x: Array) -> Array:
    w, near = _stencils(t)
    return np.asarray((w[..., None] * x[near]).sum(axis=1))


def _stencils(t: Array) -> tuple[Array, Array]:
    """Weights and rows (n, 5) of the derivative at each time: exact for polynomials of the fourth degree."""
    first = np.clip(np.arange(len(t)) - STENCIL // 2, 0, len(t) - STENCIL)
    near = first[:, None] + np.arange(STENCIL)
    unit = (t[near[:, -1]] - t[near[:, 0]])[:, None]
    powers = ((t[near] - t[:, None]) / unit)[:, None, :] ** np.arange(STENCIL)[:, None]
    slope = np.zeros((len(t), STENCIL, 1))
    slope[:, 1] = 1.0
    try:
        return np.linalg.solve(powers, slope)[..., 0] / unit, near
    except np.linalg.LinAlgError:
        raise InputError("trajectory: the times lie too unevenly to differentiate; give v and a") from None
