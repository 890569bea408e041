"""The rolled form: the step of one body is traced once per kind of joint, and a compiled loop does all bodies.

For large trees: time and memory O(n), and the code does not depend on n. The steps are the algorithms' own
source, on a tree of one body whose numbers are read from a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ....codegen.call.rolled import Sizes, function_of
from ....codegen.lower.loops import BLOCK_BODIES, MIN_LONG_BODIES, Rolled, solve_scratch
from ....codegen.store.build import Spec
from ....errors import TraceError
from ....io.given import lent
from ....mechanics.algorithms.task_space import immobile
from ....mechanics.body_table import BodyTable, body_table
from ....model.description import Joint, Model
from ....model.quantities import CATALOGUE
from ...compile_cost import REGULARITY_TRIES, SINGULAR_PIVOT, refuse_singular
from .. import (
    MAX_BLOCKED_BODIES,
    MAX_BLOCKED_SCALARS,
    MAX_STRAIGHT_BODIES,
    MAX_STRAIGHT_FREEDOMS,
    MIN_LOOP_BODIES,
)
from . import dynamics, inverses, kinematics, matrices
from .dynamics import SweepShape
from .step import TURNING, WORLD_ROTATION_NUMBERS, Kind, table_width
from .tables import Tables, kinds_of, quaternions_of

if TYPE_CHECKING:
    from ....codegen.call.diagnose import Pivot
    from ....codegen.call.function import Extra, Function

Array = np.ndarray[Any, Any]
BLOCKED = ("inverse_dynamics", "bias", "gravity", "forward_dynamics")  # tiles of long trees, block by block
SHAPES: dict[str, SweepShape] = {
    **dynamics.DYNAMICS_SHAPES,
    **kinematics.KINEMATICS_SHAPES,
    **matrices.MATRIX_SHAPES,
    **inverses.INVERSE_SHAPES,
}
ROLLED_QUANTITIES = tuple(name for name in SHAPES if name in CATALOGUE)
ROLLED_STATE = {
    "pivots": ("q",),
    "inwards": ("q", "x"),
    "outwards": ("q", "x"),
    "motion": ("q", "v", "tau"),
}  # of what is not in the catalogue
ROLLED_RESULTS: dict[str, tuple[tuple[str, tuple[int | str, ...]], ...]] = {
    "pivots": (("ratio", ("nv",)),),
    **dict.fromkeys(("inwards", "outwards"), (("y", ("nv",)),)),
    "motion": (("dq", ("nq",)), ("a", ("nv",))),
}


def rolled_program(
    quantity: str, kinds: Sequence[Kind], loaded: bool = False, options: Mapping[str, str] | None = None
) -> Rolled:
    """The loops of a quantity over bodies of these kinds; loaded: with external wrenches."""
    shape, results = SHAPES[quantity], ROLLED_RESULTS.get(quantity) or CATALOGUE[quantity].outputs
    fixed = tuple(_size(s) for _, s in results)
    return Rolled(
        _loops(quantity, kinds, loaded, options or {}), _state(quantity),
        shape.first + loaded * WORLD_ROTATION_NUMBERS, max(map(table_width, kinds)),
        any(k[0] in TURNING for k in kinds), loaded, shape.tiled, fixed, shape.zeroed,
    )  # fmt: skip


def _by_blocks(rolled: Rolled, quantity: str, kinds: Sequence[Kind]) -> Rolled:
    """The loops of a tile of a long tree."""
    loops = dynamics.forward(kinds, False, blocked=True) if quantity == "forward_dynamics" else rolled.loops
    return rolled._replace(loops=loops, slot=SHAPES[quantity].slot)


def _size(shape: Sequence[int | str]) -> int:
    """The number of entries of a result, 0 where the model decides it."""
    return 0 if "nv" in shape or "nq" in shape or "links" in shape else prod(int(s) for s in shape)


def _loops(quantity: str, kinds: Sequence[Kind], loaded: bool, options: Mapping[str, str]) -> Any:
    if quantity == "pivots":
        return dynamics.pivots(kinds)
    if quantity in ("forward_dynamics", "motion"):
        return dynamics.forward(kinds, loaded, quantity == "motion")
    if quantity == "joint_wrenches":
        return dynamics.wrenches(kinds, loaded, options["frame"])
    if quantity == "passive":
        return dynamics.joint_forces(kinds)
    if quantity in dynamics.DYNAMICS_SHAPES:
        return dynamics.inverse(kinds, quantity, loaded)
    if quantity in kinematics.ORDERS:
        return kinematics.link_kinematics(kinds, quantity, options)
    if quantity in inverses.INVERSE_SHAPES:
        return _inverses(quantity, kinds, options)
    if quantity in matrices.MATRIX_SHAPES:
        made = {"mass_matrix": matrices.mass_matrix, "coriolis_matrix": matrices.coriolis_matrix}
        return made.get(quantity, matrices.derivatives)(kinds)
    whole = {"poses": kinematics.poses, "kinetic_energy": kinematics.kinetic_energy}
    return whole[quantity](kinds) if quantity in whole else kinematics.sums(kinds, quantity)


def _inverses(quantity: str, kinds: Sequence[Kind], options: Mapping[str, str]) -> Any:
    if quantity == "inverse_mass_matrix":
        return inverses.inverse_mass_matrix(kinds)
    if quantity == "forward_dynamics_derivatives":
        return inverses.forward_derivatives(kinds)
    if quantity in ("inwards", "outwards"):
        return inverses.factor(kinds, quantity)
    return inverses.operational(kinds, quantity, options["frame"])


def _inverts(quantity: str) -> bool:
    """True if the quantity needs a regular M."""
    return CATALOGUE[quantity].inverse if quantity in CATALOGUE else quantity in inverses.INVERSE_SHAPES


def _state(quantity: str) -> tuple[str, ...]:
    return ROLLED_STATE.get(quantity) or CATALOGUE[quantity].state


def is_large(model: Model, smallest: int = MAX_STRAIGHT_BODIES) -> bool:
    """True if the code of this robot is a loop over the bodies."""
    if model.nv <= max(smallest, MIN_LOOP_BODIES):  # bodies are fewer, where nothing follows another
        return False
    known = Tables.known(model)
    if known is not None:
        return len(known.columns) > max(smallest, MIN_LOOP_BODIES)
    sizes = (j.sizes for j in model.joints)
    count = sum(nv if nq == nv else 1 for nq, nv in sizes)  # a quaternion is one body's
    return count > max(smallest, MIN_LOOP_BODIES) and not any(map(_unlooped, model.joints))


def _unlooped(j: Joint) -> bool:
    """True if loops lack what j does: follow another, a formula, a rotor's spin, w x A v of a free armature."""
    d = j.dynamics
    return bool(j.mimic or j.formula or (d and (d.rotor or (j.kind == "free" and d.armature))))


def forces_by_joint(model: Model) -> bool:
    """Passive forces act in single joints only, not along tendons or against weights."""
    return not any(t.pulls for t in model.tendons) and not any(link.gravcomp for link in model.links)


def rolled_function(
    model: Model,
    quantity: str,
    spec: Spec,
    *,
    external: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    extra: Extra | None = None,
    cache: bool = True,
    smallest: int = MAX_STRAIGHT_BODIES,
    passive: bool = False,
) -> Function | None:
    """The rolled Function of a model, or None where straight-line code is the right form.

    None: up to `smallest` bodies, mimic joints, another quantity, layout or option than this form has.
    The code is kept under the kinds of joints. external: links that take a wrench.
    passive: with what acts in the joints.
    Raises ModelError where M is found singular.
    """
    if (options or {}).get("relative_to"):
        return None
    if not _has_form(quantity, spec) or (external and not _takes_wrenches(model, quantity, external)):
        return None
    wide = quantity in (*matrices.MATRIX_SHAPES, *inverses.INVERSE_SHAPES) and model.nv > MAX_STRAIGHT_FREEDOMS
    if not is_large(model, 0 if wide else smallest):
        return None
    acts = passive or quantity == "passive"
    if acts and not forces_by_joint(model):
        return None
    tables = Tables.acting(model) if acts else Tables.of(model)
    if _inverts(quantity):
        require_regular_rolled(model, cache)
    if quantity == "center_of_mass" and not tables.columns.numbers[:, 12].any():
        return None  # there is none, as tracing says
    return _made(model, tables, quantity, spec, external, options or {}, extra, cache)


def _has_form(quantity: str, spec: Spec) -> bool:
    plain = spec.layout == "rows" and not spec.packed and not spec.parameters
    return plain and quantity in (*ROLLED_QUANTITIES, *ROLLED_STATE)


def _takes_wrenches(model: Model, quantity: str, links: Sequence[str]) -> bool:
    """If not, tracing says what is wrong."""
    return CATALOGUE[quantity].external and {l.name for l in model.links}.issuperset(links)


def _made(
    model: Model,
    tables: Tables,
    quantity: str,
    spec: Spec,
    loads: Sequence[str],
    options: Mapping[str, str],
    extra: Extra | None,
    cache: bool,
) -> Function:
    sizes, request, data = prepare(tables, quantity, loads, options)
    if quantity == "operational_inertia" and tables.freedoms_above(data.first) < 6:
        raise immobile(options["link"])
    _require_room(model, sizes)
    columns, kinds = tables.columns, tables.kinds
    about = {"robot": model.name, "quantity": quantity, "formalism": "newton_euler", "how": "bodies"}
    units = tuple((0, tuple(range(at, at + 4))) for at in quaternions_of(columns))

    def weakest(ins: Sequence[Array]) -> Pivot | None:
        return _weakest(model, ins[0], cache) if _inverts(quantity) else None

    return function_of(
        sizes, lambda: rolled_program(quantity, kinds, bool(loads), options), data, spec, request=request,
        meta=about, units=units, extra=extra, weakest=weakest, cache=cache,
        blocked=lambda rolled: _by_blocks(rolled, quantity, kinds),
    )  # fmt: skip


def _require_room(model: Model, sizes: Sizes) -> None:
    """Raises TraceError where the results of one state do not fit in memory."""
    size, available = 8.0 * sum(sizes.lengths), lent()
    if size > available:
        raise TraceError(
            f"{sizes.quantity} of {model.name!r} has {sum(sizes.lengths):.3g} entries, {size / 1e9:.3g} GB for "
            f"one state, and this machine lends {available / 1e9:.3g} GB: take what grows by the bodies only, "
            "such as inertia_product and forward_dynamics"
        )


def prepare(
    tables: Tables, quantity: str, loads: Sequence[str], options: Mapping[str, str]
) -> tuple[Sizes, str, Any]:
    """The sizes that an entry must know, the name of the code, and the model's data."""
    columns, shape = tables.columns, SHAPES[quantity]
    if columns.geared and quantity in matrices.ROTORS:
        shape = shape._replace(per_rate=shape.per_rate + 1)
    known = {"nq": columns.nq, "nv": columns.nv, "links": len(tables.moving)}
    results = tuple(
        (n, tuple(known[s] if isinstance(s, str) else s for s in x))
        for n, x in ROLLED_RESULTS.get(quantity) or CATALOGUE[quantity].outputs
    )
    data = tables.data(quantity, shape, loads, options.get("link"))
    sizes = Sizes(
        quantity, _state(quantity), results, columns.nq, columns.nv, len(columns), data.slots, tuple(loads),
        shape.tiled, solve_scratch(columns.nv) if shape.solves else 0,
    )  # fmt: skip
    room = shape.slot * (data.kept + 1 + BLOCK_BODIES) + 2 * columns.nq + shape.per_rate * columns.nv
    long = MIN_LONG_BODIES <= len(columns) <= MAX_BLOCKED_BODIES and data.kept * shape.slot <= MAX_BLOCKED_SCALARS
    if quantity in BLOCKED and long and not loads and columns.loose is None:
        sizes = sizes._replace(blocked=room)
    code = {k: v for k, v in options.items() if k != "link"}
    request = "\n".join(
        [
            "rolled",
            quantity,
            repr(tables.kinds),
            "loaded" if loads else "",
            repr(code),
            "blocked" if sizes.blocked else "",
        ]
    )
    return sizes, request, data


# -- whether M is regular -----------------------------------------------------------------------------------


def require_regular_rolled(model: Model, cache: bool = True) -> None:
    """Raises ModelError where M has no inverse at any of some configurations; O(n)."""
    spec, rng, best, name = Spec(check=False), np.random.default_rng(0), 0.0, ""
    tables = Tables.of(model)
    pivots = _made(model, tables, "pivots", spec, (), {}, None, cache)
    for _ in range(REGULARITY_TRIES):
        ratio = pivots(_anywhere(tables.columns, rng))
        bad = np.flatnonzero(~(ratio > SINGULAR_PIVOT))
        if not bad.size:
            return
        worst = int(bad[-1])  # the outermost: what lies further in is spoilt by it
        pivot = float(np.nan_to_num(ratio[worst], nan=0.0))
        if pivot >= best:
            best, name = pivot, [j.name for j in model.moving_joints for _ in range(j.nv)][worst]
    refuse_singular(model, best, name)


def _weakest(model: Model, q: Array, cache: bool) -> Pivot | None:
    """After a failed check: the pivot that is nearest to none, the joints from the last to the first."""
    from ....codegen.call.diagnose import first_lost

    pivots = _made(model, Tables.of(model), "pivots", Spec(check=False), (), {}, None, cache)
    joints = [j.name for j in model.moving_joints for _ in range(j.nv)]
    return first_lost(pivots(q.astype(float))[:, ::-1].astype(q.dtype), joints[::-1])


def _anywhere(columns: BodyTable, rng: np.random.Generator) -> Array:
    """A configuration, limits or not: whether M can be regular does not depend on them."""
    q = rng.uniform(-3.0, 3.0, columns.nq)
    for x in (q[at : at + 4] for at in quaternions_of(columns)):
        x /= np.linalg.norm(x)
    return q


__all__ = [
    "QUANTITIES", "Tables", "body_table", "forces_by_joint", "is_large", "kinds_of", "prepare",
    "require_regular_rolled", "rolled_function", "rolled_program",
]  # fmt: skip
