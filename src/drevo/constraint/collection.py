"""A set of constraints: gathered and checked against a robot, named row by row, its rows one after the other.

The passive forces of any robot, in the place of efforts: dampers, dry friction, springs, tendons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.store.memo import memoised
from ..compiler.compile import Options, compile_quantity
from ..compiler.ways.rolled import is_large
from ..errors import InputError, shown
from ..io.given import Array
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.constraints import NO_ROWS, ConstraintRows, Kinematics
from ..mechanics.algorithms.passive import passive_on_arrays
from ..mechanics.scalar import Scalar
from ..model.description import JointCoupling, Loop, Model
from ..model.dynamics import Dynamics
from .kinds import Constraint, Contact, Distance, Gear, JointClosure, PointToPoint, TendonLength, Weld
from .values import ContactFields, contact_fields, list_given

CONTACT_KEYS = ("link", "point", "rows", "anchor", "rotation")  # of a contact


def collect(
    model: Model, contacts: Sequence[Contact | Mapping[str, Any]] | None, constraints: Sequence[Constraint] | None
) -> tuple[Constraint, ...]:
    """Contacts, then constraints, then the model's own loops; every name checked against the model."""
    return made(model, gathered(model, contacts, constraints))


def gathered(
    model: Model, contacts: Sequence[Contact | Mapping[str, Any]] | None, constraints: Sequence[Constraint] | None
) -> list[Constraint | ContactFields]:
    """Contacts as fields, constraints and the model's own loops, with names not yet checked against the model."""
    given = list_given("contacts", contacts, "contact")
    try:
        listed: list[Any] = [contact_fields(**c) if type(c) is dict else _contact(c) for c in given]
    except TypeError:  # of keys
        listed = [_contact(c) for c in given]
    for c in list_given("constraints", constraints, "constraint"):
        if not isinstance(c, Constraint):
            raise InputError(f"constraints: {shown(c)} is none; make it with drevo.constraint")
        listed.append(c.traced([x.name for x in model.links], model.nq))
    return [*listed, *_own(model)] if model.closed else listed


def made(model: Model, found: Sequence[Constraint | ContactFields]) -> tuple[Constraint, ...]:
    """Makes constraints of what was gathered, every name checked."""
    out = tuple([Contact(*c) if isinstance(c, tuple) else c for c in found])
    for c in out:
        c.require_names(model)
    return out


def _contact(given: Contact | Mapping[str, Any]) -> Contact | ContactFields:
    if isinstance(given, Contact):
        return given
    if not isinstance(given, Mapping) or not {"link", "point"} <= set(given):
        raise InputError(f'contact {shown(given)}: give {{"link": name, "point": (x, y, z), "rows": 3 or 6}}')
    for key in given:
        if key not in CONTACT_KEYS:
            raise InputError(
                f"contact of {given['link']!r}: {key!r} is not known; keys are {', '.join(CONTACT_KEYS)}"
            )
    return contact_fields(**given)


def _own(model: Model) -> list[Constraint]:
    """A model's loops and couplings."""
    tendons = {tendon.name: tendon for tendon in model.tendons}
    return [
        *map(_loop, model.loops),
        *map(_coupled, model.couplings),
        *[TendonLength(tendons[x.tendon], tendons.get(x.driver), x.coefficients) for x in model.tendon_couplings],
    ]


def _loop(loop: Loop) -> Constraint:
    if loop.kind == "weld":
        return Weld(loop.link_a, loop.point_a, loop.link_b, loop.point_b, loop.rotation)
    if loop.kind == "rod":
        return Distance(loop.link_a, loop.point_a, loop.link_b, loop.point_b, loop.length)
    if loop.axis_a and loop.axis_b:
        return JointClosure(
            loop.kind,
            loop.link_a,
            loop.point_a,
            loop.axis_a,
            loop.link_b,
            loop.point_b,
            loop.axis_b,
            loop.rotation,
        )
    return PointToPoint(loop.link_a, loop.point_a, loop.link_b, loop.point_b)


def _coupled(x: JointCoupling) -> Constraint:
    offset, ratio, *higher = (*x.coefficients, 0.0)
    return Gear(x.joint, x.driver, ratio, offset, tuple(higher))


def labels(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """A name for each row, for messages: contact(foot)[0], ..., of the next one like it contact(foot)#2[0], ..."""
    out: list[str] = []
    seen: dict[str, int] = {}
    for c in constraints:
        name = c.label
        seen[name] = seen.get(name, 0) + 1
        name += f"#{seen[name]}" if seen[name] > 1 else ""
        out += [f"{name}[{r}]" for r in range(c.size)]
    return tuple(out)


def all_rows(constraints: Sequence[Constraint], k: Kinematics, t: Scalar) -> ConstraintRows:
    """The rows of a set, one after the other."""
    total = NO_ROWS
    for c in constraints:
        total = total + c.rows(k, t)
    return total


def acting_in(robot: Dynamics, q: Array, v: Array, wanted: bool = True) -> Array | float:
    """The passive forces in joints and tendons, (..., nv), or 0 where there are none or they are not wanted."""
    if not wanted or not has_passive(robot.model):
        return 0.0
    return memoised(robot, "acting_in", lambda: _made(robot.model))(q, v)


def _made(model: Model) -> Callable[[Array, Array], Array]:
    """Machine code where joints are many; of few the arithmetic is done sooner than compiled."""
    return (
        compile_quantity(model, "passive", Options(check=False)) if is_large(model) else passive_on_arrays(model)
    )
