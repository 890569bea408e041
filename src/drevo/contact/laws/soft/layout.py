"""Constraint rows of a group as they are packed, and where the numbers of a contact stand in its block."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ....mechanics.scalar import Vector
from ...convex.clipping import PLACE_NUMBERS
from ...packing import Packed, of
from .law import RowGroup


class PackedRows(NamedTuple):
    """A group packed: the rates that move it, its Jacobian B by these, ref (aref), D, the axes of a contact.

    mu: where friction is a parameter, mu0 of the group and its mu. point: of a place, where that is told.
    """

    group: RowGroup
    rates: tuple[int, ...]
    B: list[list[Packed]]
    ref: list[Packed]
    D: list[Packed]
    axes: list[Packed] = []
    mu: list[Packed] = []
    point: list[Packed] = []

    def law(self, block: Vector) -> RowGroup:
        """The group of rows with its coefficients of friction, read from the block that has its numbers."""
        mu = [of(block, x) for x in self.mu]
        return replace(self.group, mu=tuple(mu[1:]), mu0=mu[0]) if mu else self.group


class SlotLayout(NamedTuple):
    """The offsets of the parts of a slot's block; kind: of the stages that it shares with slots alike.

    size: where the force along the world's axes stands. place: distance and point, of what is searched for the
    normal. slip: what the pass after the law keeps. end: rows, rate by rate, of pairs in loops.
    """

    kind: int
    S: int
    f: int
    y: int
    z: int
    piece: int
    gap: int
    size: int
    place: int
    slip: int
    end: int


def slot_layout(kind: int, pack: int, m: int, slip: int = 0) -> SlotLayout:
    """The layout of a block that begins with so many values, of a group of m rows, with `slip_numbers`."""
    S = pack
    f = S + m * (m + 1) // 2
    size = f + 3 * m + 2
    at = size + 3, size + 3 + PLACE_NUMBERS, size + 3 + PLACE_NUMBERS + slip
    return SlotLayout(kind, S, f, f + m, f + 2 * m, f + 3 * m, f + 3 * m + 1, size, *at)


def slip_numbers(n: int, nv: int) -> int:
    """Numbers that the pass after the law keeps of n tangents: their rows, what they move, how they meet, and of
    each the slip, the change of its force and its bound."""
    return n * (2 * nv + n + 3)
