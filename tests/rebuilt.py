"""A model with other numbers, by the names of its parameters."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import strategies

from drevo.model.description import Joint, Link, Model


def rebuilt(model: Model, values: dict[str, float]) -> Model:
    """The model with other numbers, by the names of its parameters."""

    def vector(old: Any, name: str) -> Any:
        return tuple(values.get(f"{name}.{a}", x) for a, x in zip("xyz", old))

    def link(l: Link) -> Link:
        if l.inertial is None:
            return l
        tensor = [
            [values.get(f"{l.name}.inertia.{'xyz'[min(i, j)]}{'xyz'[max(i, j)]}", x) for j, x in enumerate(row)]
            for i, row in enumerate(l.inertial.tensor)
        ]
        mass = values.get(f"{l.name}.mass", l.inertial.mass)
        com = vector(l.inertial.com, f"{l.name}.com")
        return replace(
            l, inertial=replace(l.inertial, mass=mass, com=com, tensor=strategies.mat(np.array(tensor)))
        )

    def joint(j: Joint) -> Joint:
        names = [] if j.dynamics is None else [f.name for f in fields(j.dynamics)]
        own = {n: values[f"{j.name}.{n}"] for n in names if f"{j.name}.{n}" in values}
        return replace(
            j,
            origin=vector(j.origin, f"{j.name}.origin"),
            child_origin=vector(j.child_origin, f"{j.name}.child.origin"),
            lead=values.get(f"{j.name}.lead", j.lead),
            dynamics=j.dynamics and replace(j.dynamics, **own),
        )

    links, joints = tuple(map(link, model.links)), tuple(map(joint, model.joints))
    return replace(model, links=links, joints=joints, gravity=vector(model.gravity, "gravity"))
