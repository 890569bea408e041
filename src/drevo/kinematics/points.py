"""Points of a link in the place of its origin: a link without mass is welded there, which nothing else sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from ..codegen.store.memo import memoised
from ..errors import InputError
from ..io.given import finite
from ..model.description import Joint, Link, Model, Vec3

AnyRobot = TypeVar("AnyRobot")


def welded(model: Model, carrier: str, link: Link, place: Vec3) -> Model:
    """The model with one more link, welded at a place of another, in its axes."""
    weld = Joint(f"{link.name}_weld", "fixed", carrier, link.name, origin=place)
    return replace(model, links=(*model.links, link), joints=(*model.joints, weld))


def at_point(verb: str, robot: AnyRobot, link: Any, point: ArrayLike | None) -> tuple[AnyRobot, Any]:
    """The robot with a frame at a point (3,) of a link, m, in its axes, and that frame's name; or both as given.

    Nothing is changed for a link that the robot does not have, or None: the caller refuses it. InputError for
    what is not a point.
    """
    if point is None or link is None:
        return robot, link
    place = tuple(finite(f"{verb}: point", point, (3,), InputError).tolist())
    model: Model = getattr(robot, "model")  # noqa: B009
    if not isinstance(link, str):
        raise InputError(f"{verb}: point is one of a single link; weld frames for several: robot.with_payload")
    if link not in {x.name for x in model.links}:
        return robot, link
    name = f"{link} at {place}"
    kind: Any = next(
        (k for k in type(robot).__mro__ if "_of_model" in vars(k)), type(robot)
    )  # of a rerooted one too
    return memoised(robot, ("point", name), lambda: kind(welded(model, link, Link(name), place))), name
