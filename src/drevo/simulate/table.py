"""Table: a motion as columns, with its energy; to npz, CSV and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..constraint.collection import acting_in
from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, nearest
from ..io.files import saving
from ..io.given import Array, finite, number
from ..io.packages import frame
from ..io.reprs import result
from ..model.description import Model
from ..model.dynamics import Dynamics
from .constraints import HeldConstraints

Dense = Callable[[float], tuple[Array, Array]]
NumericLaw = Callable[[float, Array, Array], Array]
STATES_AT_A_TIME = 4096  # states whose reactions are found at a time


@result
class Occurrence:
    """An event that happened: which one (its name), when, and the state then."""

    name: str
    t: float
    q: Array
    v: Array


@dataclass(frozen=True, eq=False)
class Table(Pictured):
    """t (n,) s; q (n, ..., nq), v and efforts (n, ..., nv); method, steps and passive say how they came about.

    contact_forces (n, ..., places, 3) N, residual (n, ...), act (n, ..., na) and sensors, (n, ..., k) by name: of
    a motion on a ground, see `simulate_touching`.
    reference (n, nq): what `beside` put beside it.
    energy: T + V, J, (n, ...). drift: energy less what it was at the start; useful where nothing drives or brakes.
    """

    robot: Dynamics
    t: Array
    q: Array
    v: Array
    method: str
    steps: int
    rejected: int = 0
    events: tuple[Occurrence, ...] = ()
    under: HeldConstraints | None = field(default=None, repr=False)
    passive: bool = False
    drive: NumericLaw | None = field(default=None, repr=False)
    driven: Array | None = field(default=None, repr=False)
    dense: Dense | None = field(default=None, repr=False)
    contact_forces: Array | None = field(default=None, repr=False)
    residual: Array | None = field(default=None, repr=False)
    act: Array | None = field(default=None, repr=False)
    sensors: Mapping[str, Array] = field(default_factory=dict, repr=False)
    reference: Array | None = field(default=None, repr=False)

    if not TYPE_CHECKING:  # a type checker knows all the names there are

        def __getattr__(self, name: str) -> Any:
            near = nearest(name, dir(type(self)) + list(self.__dataclass_fields__))
            raise AttributeError(f"a Table has no {name!r}" + (f"; did you mean {near!r}?" if near else ""))

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        way = f"{self.steps} steps of {self.method}"
        return f"<Table {self.robot.name!r}: {len(self)} records to {self.t[-1]:g} s, {way}>"

    def __getstate__(self) -> dict[str, Any]:
        """Without what gives times between the records: that is machine code."""
        kept = {**self.__dict__, "dense": None, "drive": None}
        if self.drive is not None:
            kept["driven"] = self.efforts
            if self.under is not None:
                kept["reactions"] = self.reactions
        return kept

    def at(self, t: float) -> tuple[Array, Array]:
        """(q, v) at any time of the motion, by a shorter step of its own method, so of the same order."""
        if self.dense is None:
            raise InputError(
                "this table is of a motion on a ground, or was read from a pickle: it knows its records only"
            )
        first, last = self.t[[0, -1]]
        rule = f"a time of the motion, which goes from {first:g} to {last:g} s"
        q, v = self.dense(number("t", t, rule, lambda x: first <= x <= last))
        return q.reshape(self.q.shape[1:]), v.reshape(self.v.shape[1:])

    @cached_property
    def efforts(self) -> Array:
        """Torques and forces of the joints at the records, (n, ..., nv), N m or N: those that begin there."""
        if self.driven is not None:
            return self.driven
        return self._driven().reshape(self.v.shape)

    def _driven(self) -> Array:
        if self.driven is not None:
            return self.driven.reshape(len(self.t), -1, self.robot.nv)
        if self.drive is None:
            raise InputError("the efforts of this motion were not kept: it comes from a pickle, or in pieces")
        return np.stack([self.drive(float(t), *state) for t, *state in zip(self.t, *self._flat())])

    def beside(self, reference: Any) -> Table:
        """The motion with a reference in its columns and picture, and the errors from it.

        reference: a configuration (nq,), one for each record (n, nq), or a function of time that gives one. Of one
        motion. Raises InputError.
        """
        if self.q.ndim != 2:
            raise InputError(f"beside takes one motion, and this is a batch of {self.q.shape[1:-1]}")
        given = [reference(t) for t in self.t.tolist()] if callable(reference) else reference
        rows = finite("beside: reference", given, (..., self.robot.nq), InputError)
        if rows.shape not in (self.q.shape[1:], self.q.shape):
            raise InputError(f"beside: reference has shape {rows.shape}; it is {self.q.shape}, one row a record")
        return replace(self, reference=np.broadcast_to(rows, self.q.shape))

    @property
    def errors(self) -> Array:
        """Differences from q to the reference, (n, nv), rad or m; of quaternions on the tangent space."""
        if self.reference is None:
            raise InputError("this motion has no reference: motion.beside(reference).errors")
        return np.asarray(self.robot.difference(self.q, self.reference))

    # -- contacts and constraints ---------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows of contacts, constraints and loops."""
        return self.under.names if self.under else ()

    @cached_property
    def gaps(self) -> tuple[Array, Array]:
        """f and f' of every row at the records, (n, ..., rows); m or rad, and per second."""
        shape = (*self.q.shape[:-1], len(self.rows))
        if self.under is None:
            return np.zeros(shape), np.zeros(shape)
        c = self.under.terms(self.t[:, None], *self._flat())
        return c.value.reshape(shape), c.rate.reshape(shape)

    @property
    def constraint_drift(self) -> float:
        """The largest |f| of the records, their distance from the contacts and constraints, m or rad."""
        return float(np.abs(self.gaps[0]).max(initial=0.0))

    @property
    def constraint_rate_drift(self) -> float:
        """The largest |f'| of the records, m/s or rad/s."""
        return float(np.abs(self.gaps[1]).max(initial=0.0))

    @cached_property
    def reactions(self) -> Array:
        """N of every row at the records, (n, ..., rows), N or N m, acting on the robot; least where rows depend.

        With efforts held over steps, those of the step that begins at the record.
        """
        if self.under is None or not self.q.size:
            return np.zeros((*self.q.shape[:-1], len(self.rows)))
        if self.drive is None:
            raise InputError("this table was read back from a pickle and its reactions were not kept")
        q, v = self._flat()
        tau = self._driven() + acting_in(self.robot, q, v, self.passive)
        parts = []
        step = max(1, STATES_AT_A_TIME // q.shape[1])
        for k in range(0, len(q), step):
            some = slice(k, k + step)
            terms = partial(self.under.terms, self.t[some, None])
            parts.append(self.under.solved(terms, q[some], v[some], tau[some]).reactions)
        return np.concatenate(parts).reshape(*self.q.shape[:-1], len(self.rows))

    def _flat(self) -> tuple[Array, Array]:
        """q and v with the batch as one dimension."""
        return tuple(x.reshape(len(self), -1, x.shape[-1]) for x in (self.q, self.v))  # type: ignore[return-value]

    # -- energy ---------------------------------------------------------------------------------------------

    @cached_property
    def energy(self) -> Array:
        """T + V, J."""
        total: Array = self.robot.kinetic_energy(self.q, self.v) + self.robot.potential_energy(self.q)
        return np.asarray(total)

    @property
    def drift(self) -> Array:
        """Energy less what it was at the start, J."""
        return np.asarray(self.energy - self.energy[0])

    @property
    def energy_drift(self) -> float:
        """The largest |drift|, J."""
        return float(np.abs(self.drift).max(initial=0.0))

    def columns(self) -> dict[str, Array]:
        """Name -> (n,): t, q and v by joint, energy, drift, reactions, efforts of what drives; of one motion."""
        if self.q.ndim != 2:
            raise InputError(
                f"columns are of one motion, and this is a batch of {self.q.shape[1:-1]}: save it as .npz"
            )
        out = {"t": self.t} | self._named("q", self.q) | self._named("v", self.v)
        out |= {"energy": self.energy, "drift": self.drift}
        out |= {f"N:{name}": self.reactions[:, k] for k, name in enumerate(self.rows)}
        if self._is_driven():
            out |= self._named("tau", self.efforts)
        if self.reference is not None:
            out |= self._named("q", self.reference, "reference") | self._named("error", self.errors)
        return out

    def _named(self, kind: str, x: Array, label: str = "") -> dict[str, Array]:
        """Columns by joint of coordinates, or of rates and their like."""
        names = self.robot.model.freedoms("q" if kind == "q" else "v")
        return {f"{label or kind}:{joint}{i}": x[:, k] for k, (joint, i) in enumerate(names)}

    def _is_driven(self) -> bool:
        """True where efforts are known and not all zero."""
        return (self.drive is not None or self.driven is not None) and bool(self.efforts.any())

    def to_pandas(self) -> Any:
        """`columns` as a pandas.DataFrame, a row for every record of one motion; needs pandas."""
        return frame(self.columns())

    def figure(self) -> Figure:
        """Coordinates, rates, efforts of what drives, errors from a reference, energy, reactions."""
        columns = self.columns()
        shown = [("q", "coordinates", ("rad", "m")), ("v", "rates", ("rad/s", "m/s"))]
        shown += [("tau", "efforts", ("N m", "N"))] * self._is_driven()
        shown += [("error", "errors", ("rad", "m"))] * (self.reference is not None)
        panels = [panel for row in shown for panel in over_time(self.robot.model, *row, self.t, columns)]
        energy = [Curve("T + V", self.t, self.energy), Curve("its change", self.t, self.drift)]
        panels.append(Panel("energy", energy, unit="J"))
        if self.rows:
            curves = [Curve(name, self.t, columns[f"N:{name}"]) for name in self.rows]
            panels.append(Panel("reactions", curves, unit="N or N m"))
        return Figure(repr(self)[1:-1], panels, abscissa="t, s")

    def save(self, path: str | Path) -> None:
        """By the ending: .npz (any shape), .csv or .parquet (one motion; Parquet needs pyarrow)."""
        writers = {".npz": self._npz, ".csv": self._csv, ".parquet": self._parquet}
        with saving("a table", path, writers) as file:
            writers[file.suffix.lower()](file)

    def _npz(self, path: Path) -> None:
        more: dict[str, Any] = {"reactions": self.reactions, "rows": np.array(self.rows)} if self.rows else {}
        np.savez(path, t=self.t, q=self.q, v=self.v, energy=self.energy, drift=self.drift, **more)

    def _csv(self, path: Path) -> None:
        columns = self.columns()
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(",".join(_quoted(n) for n in columns) + "\n")
            for row in zip(*(x.tolist() for x in columns.values())):
                file.write(",".join(map(repr, row)) + "\n")

    def _parquet(self, path: Path) -> None:
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install pyarrow, or save as .npz or .csv") from None
        parquet.write_table(arrow.table(self.columns()), path)


def over_time(
    model: Model, kind: str, title: str, units: tuple[str, str], t: Array, columns: Mapping[str, Array]
) -> list[Panel]:
    """Panels of the columns kind:JOINT: of what turns, of what slides, of quaternions; references of q."""
    names = [joint + i for joint, i in model.freedoms(kind)]
    of = model.units_of(*units, kind="q" if kind == "q" else "v")
    curves_of = {
        u: [Curve(n, t, columns[f"{kind}:{n}"]) for n, x in zip(names, of) if x == u] for u in (*units, "")
    }
    for curves in curves_of.values() if kind == "q" else ():
        beside = ((f"{c.name}, reference", columns.get(f"reference:{c.name}")) for c in list(curves))
        curves += [Curve(name, t, x) for name, x in beside if x is not None]
    return [Panel(f"{title}, {u or 'quaternions'}", curves, unit=u) for u, curves in curves_of.items() if curves]


def _quoted(name: str) -> str:
    """A CSV field."""
    text = name.replace('"', '""')
    return f'"{text}"' if any(c in name for c in ',"\n\r') else name
