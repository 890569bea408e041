"""Tables of sections that a window or a live page draws along the links: `drevo.loads.diagrams`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import DrevoError, InputError
from ..io.given import Array, whole
from ..model.description import Link, Model
from ..model.draft import model_of
from ..robot.view.panels import LinkSections
from .masses import UNIFORM, GivenDistribution
from .sections import Cut, attached, cut_link
from .shapes import ROLES, solids_of
from .span import LEAST_SPAN

SECTIONS_OF_LINK = 13  # sections of a link


def diagrams(
    robot: Any, sections: int = SECTIONS_OF_LINK, distribution: GivenDistribution = "auto"
) -> tuple[LinkSections, ...]:
    """Section loads in the links at rest, N, Q, T and M along each, as `robot.view(loads=...)` draws them.

    Links without length, or with an inertia that no body has, are left out, and so is the base that stands. Raises
    InputError for a robot with closed loops, whose loads at rest depend on its drives.
    """
    model = model_of(robot, "diagrams")
    whole("diagrams: sections", sections, 2, 1000)
    if model.closed:
        raise InputError(f"diagrams are of open chains, and robot {model.name!r} has loops; use section_loads")
    moved = {j.child for j in model.joints}
    return tuple(
        table
        for link in model.links
        if link.name in moved
        for table in _table(model, link, sections, distribution)
    )


def _on_shapes(model: Model, link: Link, cut: Cut, sections: int) -> Array:
    """Sections between the joints and where the shapes end: a box of the same inertia may be longer."""
    ends = [0.0, *(cut.span.along(j.origin) for j in model.joints if j.parent == link.name)]
    for role in ROLES if cut.mass.about == UNIFORM else ():
        if shapes := solids_of(model, link, role):
            reach = [x.reach(cut.span.direction) for x in shapes.solids]
            ends += [y - float(cut.span.start @ cut.span.direction) for x in reach for y in x]
            low, high = max(min(ends), -cut.span.back), min(max(ends), cut.span.length)
            inside = cut.s[(cut.s > low) & (cut.s < high)]
            return np.unique([*np.linspace(low, high, sections), *inside]) if high - low > LEAST_SPAN else cut.s
    return cut.s


def _table(model: Model, link: Link, sections: int, given: GivenDistribution) -> Iterator[LinkSections]:
    """Yields a link's cut with the moments of what lies beyond each section; none without mass or length."""
    hung = attached(model, link.name)
    if not (link.inertial and link.inertial.mass) and not hung:
        return
    try:
        cut = cut_link(model, link.name, sections, None, given)
        cut = cut_link(model, link.name, _on_shapes(model, link, cut, sections), cut.span, cut.mass)
    except DrevoError:  # no length, or no body
        return
    parts = cut.parts[:, 3, [3, 0, 1, 2]]
    children = {}
    for x in hung:
        beyond = cut.beyond(np.asarray(cut.span.along(x.place)))
        parts = parts + beyond[:, None] * x.P[3, [3, 0, 1, 2]]
        children.update(dict.fromkeys(x.moving, beyond))
    yield LinkSections(link.name, cut.span.points(cut.s), cut.span.rotation, parts, children)
