"""Compares the mass, centre and inertia of a description's shapes with those that it gives its links."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DrevoError
from ..io.given import Array, number
from ..io.packages import frame
from ..io.reprs import result
from ..model.description import Inertial, Link, Model
from ..model.draft import model_of
from .masses import pseudo_inertia
from .shapes import ROLES, solids_of
from .solids import total_pseudo_inertia

DENSITIES = 200.0, 20_000.0  # kg/m^3 of what links are made of, housings with air in them too


@result
class Agreement:
    """Compares the solids of one link's shapes with its inertia, at the density [kg/m^3] that makes their mass the
    link's: how far their centre of mass is from the link's [m], and by what part of the largest moment their
    inertia about it differs.

    about: the shapes; "" and `fault` where there are none that can be cut. agrees: all three to the tolerance.
    """

    link: str
    about: str
    density: float = 0.0
    centre: float = 0.0
    inertia: float = 0.0
    agrees: bool = False
    fault: str = ""


@result
class Consistency:
    """`Agreement` of every link with mass, for each role of shapes that it has."""

    links: tuple[Agreement, ...]
    tolerance: float

    def rows(self) -> list[dict[str, Any]]:
        """A row for each: link, shapes, density, centre, inertia, agrees, fault."""
        names = ("link", "about", "density", "centre", "inertia", "agrees", "fault")
        return [{name: getattr(x, name) for name in names} for x in self.links]

    def to_pandas(self) -> Any:
        """`rows` as a pandas.DataFrame; needs pandas."""
        return frame(self.rows())


def consistency(robot: Any, tolerance: float = 0.1) -> Consistency:
    """Masses, centres and inertias of the solids that the shapes of a robot's links make, against its links'.

    tolerance: of the centre as a part of the link's radius of gyration, of the inertia as a part of its largest
    moment; the density lies between 200 and 20,000 kg/m^3. Shapes of a role are taken together, and as full.
    Raises InputError.
    """
    model = model_of(robot, "consistency")
    limit = number("consistency: tolerance", tolerance, "a positive number", lambda x: 0.0 < x < np.inf)
    agreements = [
        _agreement(model, link, link.inertial, role, limit)
        for link in model.links
        if link.inertial and link.inertial.mass > 0.0
        for role in ROLES
        if any(x.role == role for x in link.shapes)
    ]
    return Consistency(tuple(agreements), limit)


def _agreement(model: Model, link: Link, body: Inertial, role: str, limit: float) -> Agreement:
    try:
        solids = solids_of(model, link, role)
    except DrevoError as error:
        return Agreement(link.name, "", fault=str(error))
    if solids is None:
        return Agreement(link.name, "", fault=f"{role} shapes without volume")
    P, wanted = total_pseudo_inertia(solids.solids), pseudo_inertia(body)
    density = body.mass / P[3, 3]
    by_shapes, given = (_about_centre(x) for x in (P * density, wanted))
    scale = float(np.linalg.norm(given, 2))
    away = float(np.linalg.norm(P[:3, 3] / P[3, 3] - body.com))
    inertia = float(np.linalg.norm(by_shapes - given, 2)) / scale if scale else np.inf
    near = away <= limit * np.sqrt(scale / body.mass) and inertia <= limit
    agrees = bool(near and DENSITIES[0] <= density <= DENSITIES[1])
    return Agreement(link.name, solids.about, float(density), away, inertia, agrees)


def _about_centre(P: Array) -> Array:
    """The tensor of inertia about the centre of mass."""
    S = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
    return np.asarray(np.trace(S) * np.eye(3) - S)
