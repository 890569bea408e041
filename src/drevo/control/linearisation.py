"""Linear models of a robot as values. What is asked for later is computed when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ..errors import NumericsError
from ..io.given import Array
from ..io.reprs import result
from ..model.dynamics import Dynamics
from .model import LinearModel

new, assign = object.__new__, object.__setattr__


class Source(Protocol):
    """The source of the fields of a linear model."""

    def fields_with(self, name: str, numbers: Array, time: Array) -> dict[str, Any]:
        """One of them, and others that come with it."""
        ...


@result
class Reduced(LinearModel):
    """The model on the motions that the constraints leave: dx = basis z, which is also its output. About rest it
    is exact; in motion the basis itself turns, and its rate is not in A."""

    basis: Array = field(kw_only=True)


@result
class Linearisation(LinearModel):
    """A (2 nv, 2 nv) and B (2 nv, driven rates) of the state (dq, dv); about q, v, tau, with accelerations a and
    reactions N there. A batch of states has leading dimensions in all of them.

    rank, condition: of the constraints, how many motions they take, and how well. reactions_state,
    reactions_input: dN = reactions_state dx + reactions_input dtau. driven: which rates the columns of B belong
    to, (nv,) of bool. basis: see `reduced`. off: why the state is none of the constraints' own, or "".
    """

    robot: Dynamics = field(kw_only=True, repr=False)
    q: Array = field(kw_only=True)
    v: Array = field(kw_only=True)
    tau: Array = field(kw_only=True)
    a: Array = field(kw_only=True)
    reactions: Array = field(kw_only=True)
    reactions_state: Array = field(kw_only=True)
    reactions_input: Array = field(kw_only=True)
    driven: Array = field(kw_only=True)
    rank: Any = field(kw_only=True)
    condition: Any = field(kw_only=True)
    basis: Array = field(kw_only=True)
    off: str = field(default="", kw_only=True, repr=False)

    __slots__ = ("_numbers", "_source", "_time")  # where fields are taken from, see `later`
    shared: ClassVar[tuple[str, ...]] = ("driven",)

    @staticmethod
    def later(source: Source, numbers: Array, time: Array) -> Linearisation:
        """A linear model whose fields are taken from what was found when they are first asked for."""
        made: Linearisation = new(Linearisation)
        assign(made, "_source", source)
        assign(made, "_numbers", numbers)
        assign(made, "_time", time)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def reduced(self) -> Reduced:
        """The model on the motions that the constraints leave; without constraints its basis is the identity.

        Raises NumericsError where the state does not keep the constraints.
        """
        if self.off:
            raise NumericsError(f"reduced: {self.off}")
        T, back = self.basis, np.linalg.pinv(self.basis)
        names = rate_names([(f"motion{i + 1}", "") for i in range(T.shape[-1] // 2)], "qv")
        return Reduced(
            back @ self.A @ T,
            back @ self.B,
            self.C @ T,
            self.D,
            self.dt,
            names,
            self.inputs,
            self.outputs,
            self.units,
            basis=T,
        )


class _Later:
    """A field of a `Linearisation.later`; what an instance has already goes before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: object = None) -> Any:
        source = getattr(model, "_source", None)
        if source is None:
            raise AttributeError(self.name)
        model.__dict__.update(source.fields_with(self.name, model._numbers, model._time))
        return model.__dict__[self.name]


for _name in [f.name for f in fields(Linearisation)]:
    setattr(Linearisation, _name, _Later(_name))


def rate_names(freedoms: Sequence[tuple[str, str]], parts: Sequence[str]) -> tuple[str, ...]:
    """joint.part[i] of all freedoms."""
    return tuple(f"{joint}.{part}{index}" for part in parts for joint, index in freedoms)
