"""Steps under the exact law out of a Model: what may touch, the joints, and one compiled function."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.runtime.function import Function
from ..compiler.request import requested
from ..errors import InputError
from ..io.given import finite, leading, number, positive, seconds
from ..mechanics.algorithms.delassus import ContactSlot, MoreauStep
from ..model.description import Model
from ..model.dynamics import Described
from .derivatives import StepDerivatives, step_derivatives
from .ground import Uneven, ground_of
from .moreau import TouchingRobot, joint_rows
from .moreau_kernel import moreau_program
from .pairs import Interaction, contact_candidates, with_ground
from .solve import TOLERANCE

MOST_PLACES = 24  # of contacts: each is coupled with every other one


def exact_robot(
    model: Model, dt: float, ground: object, friction: float | None = None, restitution: float = 0.0
) -> TouchingRobot:
    """What a step of `dt` seconds is made for. friction: in place of that of the geoms."""
    if model.closed:
        raise InputError(
            f"robot {model.name!r} has loops or couplings, which law='coulomb' does not know; take them out, "
            "or simulate with constraints and without ground"
        )
    mu = None if friction is None else number("friction", friction, "a number from 0", lambda x: 0.0 <= x < 1e6)
    bounce = number("restitution", restitution, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    stepping = MoreauStep(seconds("dt", dt), bounce)
    places = contact_candidates(model, ground)
    if len(places) > MOST_PLACES:
        raise InputError(
            f"robot {model.name!r} has {len(places)} places of contact; law='coulomb' couples each with all "
            f"others and takes {MOST_PLACES} at most: leave the geometry that matters, or take law='soft'"
        )
    slots = [ContactSlot(x.bodies, x.touch, _friction(x.interaction, mu)) for x in places]
    standing = with_ground(model, ground_of(ground))
    return TouchingRobot(standing, tuple(slots), joint_rows(model), stepping)


def _friction(own: Interaction, given: float | None) -> float:
    return 0.0 if own.condim == 1 else own.friction[0] if given is None else given


def exact_step(
    robot: Described | Model,
    dt: float,
    ground: object,
    friction: float | None = None,
    restitution: float = 0.0,
    tolerance: float = TOLERANCE,
) -> Function:
    """A step by Moreau and Jean under Coulomb's law: f(q, v, tau) -> (q1, v1, forces (slots, 3), residual).

    ground: "plane", `drevo.ground.grid`, `drevo.ground.function`, or None for the planes of the model. forces: N,
    in world axes, on the second body of each place of contact. residual: m/s, up to `tolerance` where the step has
    converged: docs/contact.md.
    """
    model = robot if isinstance(robot, Model) else robot.model
    what = exact_robot(model, dt, ground, friction, restitution)
    least = positive("tolerance", tolerance, " of m/s")
    surface = ground.key if isinstance(ground, Uneven) else ground
    asked: tuple[Any, ...] = ("step", "coulomb", float(dt), surface, friction, float(restitution), least)
    return requested(robot, asked, partial(moreau_program, what, least))


def exact_step_derivatives(
    robot: Described | Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    ground: object,
    friction: float | None = None,
    restitution: float = 0.0,
) -> StepDerivatives:
    """Of q1 and v1 of such a step by q, v and tau, (..., 2 nv, nv) each; of q1 and by q tangents.

    Open, sticking and sliding contacts, free, held and bounded joints stay so: `contact.derivatives` says what is
    taken where they just change.
    """
    model = robot if isinstance(robot, Model) else robot.model
    what = exact_robot(model, dt, ground, friction, restitution)
    x, u, w = finite("q", q, (..., model.nq)), finite("v", v, (..., model.nv)), finite("tau", tau, (..., model.nv))
    lead = leading("derivatives of a step", q=x, v=u, tau=w)
    rows = [np.broadcast_to(y, (*lead, y.shape[-1])).reshape(-1, y.shape[-1]) for y in (x, u, w)]
    found = step_derivatives(what, rows[0], rows[1], rows[2])
    by_q, by_v, by_tau = (y.reshape(*lead, *y.shape[1:]) for y in found[:3])
    return StepDerivatives(by_q, by_v, by_tau, found.impulses)
