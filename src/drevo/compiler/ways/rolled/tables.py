"""A model as the data of the loops: a table of numbers and one of integers, shared by all its functions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ....codegen.call.rolled import Data
from ....codegen.lower.loops import BLOCK_BODIES, BODY_INTEGERS
from ....mechanics.acting import ACTING_FIELDS, Acting, acting
from ....mechanics.body_table import ALL_BODY_NUMBERS, BODY_KINDS, BODY_NUMBERS, BodyTable, along_z, body_table
from ....mechanics.loose import loose_rates
from ....mechanics.spatial import EYE
from ....model.description import QUATERNIONS, Model
from .dynamics import SweepShape
from .step import ALL, PIVOT_TEST_NUMBERS, RESTS, WORLD_ROTATION_NUMBERS, Kind

Array = np.ndarray[Any, Any]
_IDENTITY_NUMBERS = [x for row in EYE for x in row]
NUMBERS_OF_LINKS = {"poses": 16, "joint_wrenches": 6}  # quantities of all links that move, so many numbers of each
MAX_CODED_KINDS = (
    6  # kinds of joints that have code of their own; of more, each takes a few tenths of a second to compile
)
_LATEST: list[tuple[Model, Tables]] = []  # one call per link must not read the model again


class Tables:
    """The columns of a model, and the tables of quantities made from them."""

    def __init__(self, model: Model) -> None:
        self.columns = with_runs(body_table(model))
        self.kinds, self.number = kinds_of(self.columns)
        if len(self.kinds) > MAX_CODED_KINDS:
            self.columns = along_z(self.columns)
            self.kinds, self.number = kinds_of(self.columns)
        if len(self.kinds) > MAX_CODED_KINDS:  # a general rotation serves for none
            self.columns = replace(self.columns, parallel=np.zeros(len(self.columns), bool))
            self.kinds, self.number = kinds_of(self.columns)
        self.links = [j.child for j in model.moving_joints]
        self.moving = self.links
        self._integers: dict[Any, tuple[Array, int]] = {}
        self._acting: Tables | None = None

    @staticmethod
    def known(model: Model) -> Tables | None:
        """Those of the model that was asked for last."""
        latest = _LATEST[:1]
        return latest[0][1] if latest and latest[0][0] is model else None

    @staticmethod
    def of(model: Model) -> Tables:
        found = Tables.known(model)
        if found is None:
            found = Tables(model)
            _LATEST[:] = [(model, found)]
        return found

    @staticmethod
    def acting(model: Model) -> Tables:
        """Those of the model with its passive forces, where it has any."""
        plain = Tables.of(model)
        if plain._acting is None:
            plain._acting, forces = copy(plain), acting(model)
            acts = tuple(a for a in ACTING_FIELDS if any(getattr(f, a) for f in forces))
            plain._acting.kinds = [(*kind[:5], acts) for kind in plain.kinds]
            if acts:
                plain._acting.columns = with_joint_forces(plain.columns, forces)
        return plain._acting

    def data(self, quantity: str, shape: SweepShape, loads: Sequence[str], link: str | None) -> Data:
        """The constant data of one function. loads: links that take a wrench; link: where a walk begins."""
        width = NUMBERS_OF_LINKS.get(quantity, 0)
        links = self.moving if width else []
        first, ground = -1, np.zeros(shape.first)
        if shape.gravity >= 0:
            ground[shape.gravity : shape.gravity + 3] = [-x for x in self.columns.gravity]
        if shape.pose >= 0:
            ground[shape.pose : shape.pose + 9] = _IDENTITY_NUMBERS
        if link is not None:
            at = self.columns.frame(link)
            first, ground[shape.link : shape.link + 12] = at.body, [*(x for row in at.R for x in row), *at.p]
        if loads:
            ground = np.concatenate([_IDENTITY_NUMBERS, ground])
        key = (shape, *loads, width)
        if key not in self._integers:
            self._integers[key] = self._places(shape, loads, links, width)
        integers, slots = self._integers[key]
        way = self._last_freedom(first) if shape.pairs and first >= 0 else -1
        return Data(
            ground, self.numbers([*loads, *links]), integers, slots, first, way, int(self.kept().max() + 1)
        )

    def numbers(self, rows: Sequence[str]) -> Array:
        """24 numbers per body, then as many per row, of which R and p count."""
        if not rows:
            return self.columns.numbers
        more, frames = (
            np.zeros((len(rows), self.columns.numbers.shape[1])),
            [self.columns.frame(link) for link in rows],
        )
        more[:, :9] = [[x for row in f.R for x in row] for f in frames]
        more[:, 9:12] = [f.p for f in frames]
        return np.concatenate([self.columns.numbers, more])

    def _places(
        self, shape: SweepShape, loads: Sequence[str], moving: Sequence[str], width: int
    ) -> tuple[Array, int]:
        """Integers per body and per row, and the scalars of all slots.

        A row is a wrench on a link (kind 0), a link that moves (kind 1), whose place among the wrenches or in the
        result is its v, or a freedom.
        """
        c, first = self.columns, shape.slot + WORLD_ROTATION_NUMBERS * bool(loads)
        size = first + shape.per_rate * c.widths[1] + (0 if c.loose is None else PIVOT_TEST_NUMBERS * c.loose)
        ends = shape.first + first - shape.slot + np.cumsum(size)
        slots = ends - size
        parent = np.where(c.parent >= 0, slots[c.parent], 0)
        bodies = np.stack([self.number, parent, slots, c.q, c.v, c.parent, self.kept()], 1)
        links = [
            (kind, 0, slots[b] if b >= 0 else 0, 0, each * i, -1, -1)
            for kind, each, rows in ((0, 6, loads), (1, width, moving))
            for i, b in enumerate(c.frame(link).body for link in rows)
        ]
        more = self._freedoms(slots + first, shape.per_rate) if shape.pairs else links
        found = np.concatenate([bodies, np.array(more, np.int64).reshape(-1, len(BODY_INTEGERS))])
        return np.ascontiguousarray(found.astype(np.int32)), int(ends[-1])

    def kept(self) -> Array:
        """The numbers of the bodies with a child in a later block among them; -1 of others."""
        c, found = self.columns, np.zeros(len(self.columns), bool)
        far = (c.parent >= 0) & (c.parent // BLOCK_BODIES != np.arange(len(c)) // BLOCK_BODIES)
        found[c.parent[far]] = True
        return np.where(found, np.cumsum(found) - 1, -1)

    def _freedoms(self, slots: Array, width: int) -> Array:
        """Rows of freedoms, in the order of the bodies: slot (the body's first stands in `slots`), number, and the
        freedom above. The q of row k says how many rows hold the rates 0 to k."""
        c, counts = self.columns, self.columns.widths[1]
        starts = len(c) + np.cumsum(counts) - counts
        body = np.repeat(np.arange(len(c)), counts)
        within = np.arange(len(body)) - np.repeat(starts - len(c), counts)
        last = np.where(c.parent >= 0, (starts + counts - 1)[c.parent], -1)
        above = np.where(within > 0, np.arange(len(body)) + len(c) - 1, last[body])
        none, rates = np.zeros_like(body), c.v[body] + within
        rows = (
            np.maximum.accumulate(np.argsort(rates)) + 1
        )  # by rate: so many of the first hold it and those before
        return np.stack([none, none, slots[body] + width * within, rows, rates, above, none - 1], 1)

    def freedoms_above(self, body: int) -> int:
        """On the path from a body to the ground."""
        count, counts = 0, self.columns.widths[1]
        while body >= 0:
            count += int(counts[body])
            body = int(self.columns.parent[body])
        return count

    def _last_freedom(self, body: int) -> int:
        """The row of the freedom next to a body."""
        return int(len(self.columns) + self.columns.widths[1][: body + 1].sum() - 1)


def kinds_of(columns: BodyTable) -> tuple[list[Kind], Array]:
    """The kinds present, in a fixed order: they are what the code depends on; and the kind of every body."""
    run = np.zeros(len(columns), np.int64)
    if columns.loose is not None:
        within = columns.loose & columns.loose[columns.parent] & (columns.parent >= 0)
        run = columns.loose * (1 + within * columns.widths[1][columns.parent])
    codes, number = np.unique(
        36 * run + 6 * columns.kind + 2 * columns.axis + columns.parallel, return_inverse=True
    )
    kinds: list[Kind] = [
        (BODY_KINDS[c % 36 // 6], int(c % 6 // 2), bool(c % 2), columns.geared, int(c // 36), ()) for c in codes
    ]
    return kinds, number


def with_runs(c: BodyTable) -> BodyTable:
    """The table with the weights of loose rates, where there are any."""
    found = loose_rates(c)
    if not found:
        return c
    numbers = np.hstack([c.numbers[:, : BODY_NUMBERS + 1], np.zeros((len(c), ALL_BODY_NUMBERS))])[
        :, :ALL_BODY_NUMBERS
    ]
    loose = np.zeros(len(c), bool)
    for i, (v, width) in enumerate(zip(c.v, c.widths[1])):
        for k in range(width):
            if v + k in found:
                loose[i], numbers[i, BODY_NUMBERS + 1 + k] = True, found[v + k].weight
    return replace(c, numbers=numbers, loose=loose)


def with_joint_forces(c: BodyTable, forces: Sequence[Acting]) -> BodyTable:
    """The table with what acts in the joints of the bodies."""
    rates = np.zeros((c.nv, ALL - ALL_BODY_NUMBERS))
    for f in forces:
        rest = f.rest if f.kind in QUATERNIONS else ()
        rates[f.v : f.v + f.n] = [*(getattr(f, a) for a in ACTING_FIELDS), *rest, *[0.0] * (RESTS - len(rest))]
    held = np.hstack([c.numbers, np.zeros((len(c), ALL_BODY_NUMBERS - c.numbers.shape[1])), rates[c.v]])
    return replace(c, numbers=np.ascontiguousarray(held))


def quaternions_of(columns: BodyTable) -> list[int]:
    """The indices in q at which the quaternions start."""
    wide = columns.widths[0]
    found: list[int] = (columns.q + wide - 4)[wide >= 4].tolist()
    return found
