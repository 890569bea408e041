"""Steps under the exact law out of a Model: what may touch, the joints, and one compiled function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....codegen.call.function import Function, Spec
from ....codegen.store.build import Ahead
from ....compiler.compile_cost import seconds_of_exact_step
from ....compiler.request import requested
from ....errors import InputError, NumericsError, one_of, warn_caller
from ....ground import LEVEL, Deciding, Height, Uneven, ground_of
from ....io.given import finite, leading, number, seconds
from ....mechanics.algorithms.delassus import ContactSlot, MoreauStep
from ....model.description import Model
from ....model.dynamics import Described
from ...pairs import ContactCandidate, contact_candidates, with_ground
from ...products import exact_product_program, require_one_product
from ...request import StepRequest
from .derivatives import StepDerivatives, step_derivatives
from .implicit import UNDEFINED
from .kernel import moreau_program
from .moreau import TouchingRobot, joint_rows

MOST_PLACES = 24  # of contacts: each is coupled with every other one


def exact_robot(
    model: Model,
    dt: float,
    ground: object,
    friction: float | None = None,
    restitution: float = 0.0,
    touching: Sequence[str] | None = None,
) -> TouchingRobot:
    """The TouchingRobot for which a step of `dt` seconds is made. friction: in place of that of the geoms.
    touching: the links or geoms that may touch, where not all may."""
    if model.closed:
        raise InputError(
            f"robot {model.name!r} has loops or couplings, which law='coulomb' does not know; take them out, "
            "or simulate with constraints and without ground"
        )
    mu = None if friction is None else number("friction", friction, "a number from 0", lambda x: 0.0 <= x < 1e6)
    bounce = number("restitution", restitution, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    stepping = MoreauStep(seconds("dt", dt), bounce)
    floor = ground_of(ground)
    places = _places(model, contact_candidates(model, floor), touching)
    slots = [ContactSlot(x.bodies, x.touch, _friction(x, mu), _deciding(x, mu)) for x in places]
    standing = with_ground(model, floor)
    uneven = floor if isinstance(floor, Uneven) else LEVEL
    return TouchingRobot(standing, tuple(slots), joint_rows(model), stepping, floor=uneven)


def _places(
    model: Model, found: Sequence[ContactCandidate], touching: Sequence[str] | None
) -> Sequence[ContactCandidate]:
    """Those of the links or geoms that are named; of too many the spheres, as feet mostly are, with a warning."""
    if touching is not None:
        known = {name for x in found for geom in x.geoms for name in (geom.name, geom.link)}
        wanted = {
            one_of("touching", name, sorted(known) or ["nothing that touches"], InputError) for name in touching
        }
        found = [x for x in found if any(wanted & {geom.name, geom.link} for geom in x.geoms)]
    if len(found) <= MOST_PLACES:
        return found
    balls = [x for x in found if x.geoms[1].kind == "sphere"] if touching is None else []
    what = (
        f"robot {model.name!r} has {len(found)} places of contact, and law='coulomb' couples {MOST_PLACES} at most"
    )
    if not 0 < len(balls) <= MOST_PLACES:
        raise InputError(f"{what}: name the links that matter, touching=[..], or take law='soft'")
    links = ", ".join(dict.fromkeys(x.geoms[1].link for x in balls))
    warn_caller(f"{what}: only the spheres of {links} touch; name others by touching=[..]")
    return balls


def _friction(x: ContactCandidate, given: float | None) -> float | Height:
    own = x.interaction
    if own.condim > 1 and x.ground and x.ground.friction:
        return x.ground.friction
    return 0.0 if own.condim == 1 else own.friction[0] if given is None else given


def _deciding(x: ContactCandidate, given: float | None) -> Deciding:
    by = x.interaction.by
    return by if given is None else tuple((name, given) for name, _ in by)


def exact_step(robot: Any, model: Model, r: StepRequest, spec: Spec) -> Function:
    """The step that `contact.step.compile_step` has been asked for."""
    if r.last:
        raise InputError("step: last is for law='soft'; of the exact law forces and residual tell all")
    what = exact_robot(model, r.dt, r.ground, r.friction, r.restitution, r.touching)
    require_one_product(r.product, r.repeat == 1, r.numbers)
    if r.product and r.parameters:
        raise InputError("step: products by parameters are for law='soft'; leave out one of the two")
    places, joints = 3 * len(what.slots), len(what.joints)
    rows = (
        [places + joints] if r.product else [places + sum(x.friction > 0.0 for x in what.joints), places + joints]
    )
    ahead = Ahead(f"step of {model.name!r}", lambda: seconds_of_exact_step(model, rows, bool(r.product)))
    if r.product:
        made = partial(exact_product_program, what, r.product[0], r.numbers)
        return requested(robot, ("step", r), made, spec=spec, ahead=ahead)
    program = partial(moreau_program, replace(what, parameters=r.parameters), repeat=r.repeat)
    return requested(robot, ("step", r), program, spec=replace(spec, parameters=bool(r.parameters)), ahead=ahead)


def exact_step_derivatives(
    robot: Described | Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    ground: object,
    friction: float | None = None,
    restitution: float = 0.0,
    touching: Sequence[str] | None = None,
) -> StepDerivatives:
    """Derivatives of q1 and v1 of a step by q, v and tau, (..., 2 nv, nv) each; of q1 and by q on tangents.

    Open, sticking and sliding contacts, free, held and bounded joints stay so: `contact.derivatives` says what is
    taken where they just change. Raises InputError, NumericsError where a step has no derivatives.
    """
    model = robot if isinstance(robot, Model) else robot.model
    what = exact_robot(model, dt, ground, friction, restitution, touching)
    x, u, w = finite("q", q, (..., model.nq)), finite("v", v, (..., model.nv)), finite("tau", tau, (..., model.nv))
    lead = leading("derivatives of a step", q=x, v=u, tau=w)
    rows = [np.broadcast_to(y, (*lead, y.shape[-1])).reshape(-1, y.shape[-1]) for y in (x, u, w)]
    found = step_derivatives(what, rows[0], rows[1], rows[2])
    if (bad := np.isnan(found.by_v).any((1, 2))).any():
        raise NumericsError(f"derivatives of a step: in row {int(bad.argmax())} there are none: {UNDEFINED}")
    by_q, by_v, by_tau = (y.reshape(*lead, *y.shape[1:]) for y in found[:3])
    return StepDerivatives(by_q, by_v, by_tau, found.impulses)
