"""How long code written out body by body would be: what would take minutes to compile is refused beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .errors import TraceError
from .model.description import Model

AFFORDABLE = 1_000_000  # operations
A_SECOND = 5_000  # operations compiled in a second
LOOPS = (
    "inverse and forward dynamics, mass_matrix, coriolis_matrix, inverse_dynamics_derivatives, energies, "
    "momentum, poses and links one by one"
)
_ROUGH = {  # operations per body, per pair of coupled freedoms, and per pair for each freedom of its branch
    "forward_dynamics": (240.0, 0.0, 0.0),
    "mass_matrix": (90.0, 8.0, 0.0),
    "inverse_mass_matrix": (90.0, 8.0, 2.0),
    "coriolis_matrix": (100.0, 50.0, 0.0),
    "operational_inertia": (120.0, 10.0, 1.5),
    "inverse_operational_inertia": (120.0, 10.0, 1.5),
    "inverse_dynamics_derivatives": (100.0, 75.0, 0.0),
    "forward_dynamics_derivatives": (100.0, 75.0, 10.0),
}
_LINEAR = (110.0, 0.0, 0.0)


class Branch(NamedTuple):
    """What hangs on one joint of the ground: joints, freedoms, and pairs of freedoms on one path."""

    joints: int
    freedoms: int
    pairs: int


def branches(model: Model) -> list[Branch]:
    """Branches that do not meet."""
    depth, top = {model.root: 0}, {model.root: ""}
    found: dict[str, Branch] = {}
    for j in model.joints:  # parents before their children
        above, home = depth.get(j.parent, 0), top.get(j.parent) or j.name
        depth[j.child], top[j.child] = above + j.nv, home
        b = found.get(home, Branch(0, 0, 0))
        found[home] = Branch(b.joints + 1, b.freedoms + j.nv, b.pairs + j.nv * above + j.nv * (j.nv + 1) // 2)
    return list(found.values())


def operations(model: Model, quantity: str) -> float:
    """A rough count."""
    body, pair, column = _ROUGH.get(quantity, _LINEAR)
    return sum(b.joints * body + b.pairs * (pair + column * b.freedoms) for b in branches(model))


def require_affordable(model: Model, quantities: Sequence[str]) -> None:
    """Raises TraceError, with the cost, where code would take minutes to compile."""
    total = sum(operations(model, x) for x in quantities)
    if total > AFFORDABLE:
        raise TraceError(
            f"{', '.join(quantities)} of {model.name!r} would be about {total:.1e} operations written out, "
            f"{_duration(total / A_SECOND)} of compiling: large trees have {LOOPS} by a loop over the bodies, "
            "each asked for alone, in rows, without parameters and mimic joints"
        )


def _duration(seconds: float) -> str:
    for name, size in (("years", 3.2e7), ("days", 86400.0), ("hours", 3600.0)):
        if seconds > size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds / 60.0:.3g} minutes"


__all__ = ["AFFORDABLE", "operations", "require_affordable"]
