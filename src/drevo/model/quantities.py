"""The one catalogue of quantities: arguments, results, options. Data only: a warm start traces nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from numpy.typing import ArrayLike

from ..errors import TraceError, UnknownNameError, one_of, shown
from .draft import did_you_mean

FRAMES = ("local_world_aligned", "local", "world")
TASK_AXES = ("x", "y", "z", "rx", "ry", "rz")  # along which a link moves, about which it turns
TASK_TERMS = ("pose", "J", "Jdot_v", "Lambda", "mu", "p", "Jbar", "N")  # of operational_space


class Quantity(NamedTuple):
    """A quantity that can be computed for a robot.

    state: arguments in call order. outputs: names and shapes, a size a number, "nv", "links" (those that move) or
    "axes" (those of the option).
    invariant: unchanged under the inertia gauge, so a formalism may regroup parameters.
    options: of link, relative_to, frame, kind, axes, damping, terms those that apply. external: takes wrenches on
    links. forces: may have the passive forces in.
    inverse: needs M to be regular. kinematic: needs no inertia at all. open_tree: what closes a robot changes it,
    and `robot.under` has that.
    """

    name: str
    state: tuple[str, ...]
    outputs: tuple[tuple[str, tuple[int | str, ...]], ...]
    about: str
    invariant: bool = False
    options: tuple[str, ...] = ()
    external: bool = False
    inverse: bool = False
    forces: bool = False
    kinematic: bool = False
    open_tree: bool = False

    def chosen(self, options: Mapping[str, str]) -> Quantity:
        """The quantity with the outputs that its options choose, as many rows as there are axes."""
        if "terms" not in self.options:
            return self
        size: dict[int | str, int | str] = {"axes": len(options["axes"].split())}
        outputs = {name: tuple(size.get(s, s) for s in shape) for name, shape in self.outputs}
        return self._replace(outputs=tuple((name, outputs[name]) for name in options["terms"].split()))


# -- options by name, as they stand in the signatures of what takes them ---------------------------------------


class LinkOptions(TypedDict, total=False):
    """Options of quantities that take them (`Quantity.options`): of which link, in which axes, which terms."""

    link: str
    relative_to: str
    frame: str
    kind: str
    axes: str | Sequence[str]
    damping: float
    terms: str | Sequence[str]


class DerivativeOptions(LinkOptions, total=False):
    """Options of derivatives, with those of constrained dynamics."""

    method: str
    budget: float
    contacts: Any
    constraints: Any
    stabilise: tuple[ArrayLike, ArrayLike]
    at: ArrayLike


class StepOptions(TypedDict, total=False):
    """Options of the quantity "step"."""

    dt: float
    ground: object
    law: str
    repeat: int
    friction: float
    restitution: float
    touching: Sequence[str]
    last: bool
    controls: bool
    sensors: bool | str | Sequence[str]


class CompileOptions(DerivativeOptions, StepOptions, total=False):
    """Options of derivatives and steps."""


class FunctionOptions(LinkOptions, total=False):
    """Options of a compiled quantity, less those of the arrays that it takes."""

    formalism: str
    f_ext: str | Sequence[str]
    check: bool
    cache: bool
    passive: bool
    symmetric: bool | str | float | Sequence[str]


class BridgeOptions(FunctionOptions, StepOptions, total=False):
    """Options of functions for PyTorch and JAX, of quantities and steps."""

    method: str


class StreamOptions(FunctionOptions, total=False):
    """Options of streams."""

    parameters: str | Sequence[str]
    product: str | Sequence[str]
    tangents: str
    wrt: str | Sequence[str]
    method: str
    budget: float


class EquationOptions(LinkOptions, total=False):
    """Options of a quantity that is written out."""

    formalism: str
    symbols: str | Sequence[str]
    objective: str
    sequence: str
    mode: str
    passive: bool
    symmetric: bool | str | float | Sequence[str]
    merge_equal: bool


class ExportOptions(EquationOptions, total=False):
    """Options of what is exported."""

    parameters: str | Sequence[str]
    f_ext: str | Sequence[str]
    product: str | Sequence[str]
    q0: ArrayLike
    limits: bool
    given: Mapping[str, float | None]


# -- the catalogue ---------------------------------------------------------------------------------------------

_PAIR: tuple[int | str, ...] = ("nv", "nv")
_CATALOGUE_ROWS = (
    Quantity("inverse_dynamics", ("q", "v", "a"), (("tau", ("nv",)),),
             "tau = M a + h, N m or N; gravity is in", invariant=True, external=True, forces=True, open_tree=True),
    Quantity("forward_dynamics", ("q", "v", "tau"), (("a", ("nv",)),),
             "a = M^-1 (tau - h), rad/s^2 or m/s^2", invariant=True, external=True, inverse=True, forces=True,
             open_tree=True),
    Quantity("mass_matrix", ("q",), (("M", _PAIR),),
             "M(q), kg m^2, kg m or kg; symmetric, entries across branches exactly 0", invariant=True,
             open_tree=True),
    Quantity("inertia_product", ("q", "x"), (("y", ("nv",)),),
             "y = M(q) x in O(n), N m or N for x in rad/s^2 or m/s^2; no matrix is formed", invariant=True,
             open_tree=True),
    Quantity("inverse_mass_matrix", ("q",), (("Minv", _PAIR),),
             "M(q)^-1, 1/(kg m^2), 1/(kg m) or 1/kg", invariant=True, inverse=True, open_tree=True),
    Quantity("bias", ("q", "v"), (("h", ("nv",)),), "h = C v + g, N m or N", invariant=True, external=True,
             forces=True, open_tree=True),
    Quantity("gravity", ("q",), (("g", ("nv",)),), "g(q), N m or N: what holds the robot at rest", invariant=True,
             open_tree=True),
    Quantity("passive", ("q", "v"), (("p", ("nv",)),),
             "p(q, v), N m or N: what dampers, dry friction and springs exert on the joints"),
    Quantity("coriolis_matrix", ("q", "v"), (("C", _PAIR),),
             "C(q, v) from the Christoffel symbols, N m s or N s: C v = h - g, dM/dt - 2 C is skew",
             open_tree=True),
    Quantity("kinetic_energy", ("q", "v"), (("T", ()),), "T, J", invariant=True),
    Quantity("potential_energy", ("q",), (("V", ()),), "V, J; zero at the world origin, moving bodies only"),
    Quantity("center_of_mass", ("q",), (("c", (3,)),), "centre of mass of the moving bodies, m, world axes"),
    Quantity("momentum", ("q", "v"), (("l", (6,)),),
             "linear momentum, kg m/s, then angular momentum about the centre of mass, kg m^2/s, world axes"),
    Quantity("pose", ("q",), (("T", (4, 4)),), "homogeneous pose, world from link",
             options=("link", "relative_to"), kinematic=True),
    Quantity("poses", ("q",), (("T", ("links", 4, 4)),),
             "homogeneous pose of every moving link, world from link, rows as in robot.moving_links",
             kinematic=True),
    Quantity("jacobian", ("q",), (("J", (6, "nv")),), "J v = velocity of the link's frame, linear first",
             options=("link", "frame", "relative_to"), kinematic=True),
    Quantity("operational_inertia", ("q",), (("Lambda", (6, 6)),),
             "(J M^-1 J^T)^-1 of a link, linear first; refused where the link cannot move in all six directions",
             options=("link", "frame"), inverse=True, open_tree=True),
    Quantity("inverse_operational_inertia", ("q",), (("Lambdainv", (6, 6)),), "J M^-1 J^T of a link, linear first",
             options=("link", "frame"), inverse=True, open_tree=True),
    Quantity("velocity", ("q", "v"), (("V", (6,)),), "velocity of the link's frame, linear first",
             options=("link", "frame", "relative_to"), kinematic=True),
    Quantity("acceleration", ("q", "v", "a"), (("A", (6,)),),
             "acceleration of the link's frame, linear first, without gravity",
             options=("link", "frame", "kind", "relative_to"), kinematic=True),
    Quantity("center_of_mass_jacobian", ("q",), (("J", (3, "nv")),),
             "J v = velocity of the centre of mass of the moving bodies, world axes"),
    Quantity("centroidal_momentum_matrix", ("q",), (("A", (6, "nv")),),
             "A v = momentum: linear, then angular about the centre of mass, world axes"),
    Quantity("centroidal_momentum_bias", ("q", "v"), (("b", (6,)),),
             "(dA/dt) v, N and N m: rate of the momentum where accelerations are zero, world axes"),
    Quantity("jacobian_bias", ("q", "v"), (("b", (6,)),),
             "(dJ/dt) v of the jacobian in the same frame, m/s^2 and rad/s^2", options=("link", "frame"),
             kinematic=True),
    Quantity("manipulability", ("q",), (("w", ()),),
             "sqrt(det(J J^T)) of the rows of the axes, of J^T J where the joints are fewer",
             options=("link", "frame", "axes"), kinematic=True, open_tree=True),
    Quantity("operational_space", ("q", "v"),
             (("pose", (4, 4)), ("J", ("axes", "nv")), ("Jdot_v", ("axes",)), ("Lambda", ("axes", "axes")),
              ("mu", ("axes",)), ("p", ("axes",)), ("Jbar", ("nv", "axes")), ("N", _PAIR)),
             "Lambda x'' + mu + p = F of a link along the axes, Jbar = M^-1 J^T Lambda, N = 1 - Jbar J",
             options=("link", "frame", "axes", "damping", "terms"), inverse=True, open_tree=True),
    Quantity("regressor", ("q", "v", "a"), (("Y", ("nv", "links", 10)),),
             "tau = Y pi, pi = robot.inertial_parameters, ten of every moving link; rotors are not in",
             open_tree=True),
    Quantity("power_balance", ("q", "v", "a"), (("P", ("nv",)), ("Wk", ("links",)), ("Wp", ("links",))),
             "power of every drive, rates of kinetic and potential energy of every moving link, W",
             open_tree=True),
    Quantity("joint_power", ("q", "v", "a"), (("We", ("links",)),),
             "power of the parent's wrench on every moving link, W", open_tree=True),
    Quantity("joint_wrenches", ("q", "v", "a"), (("W", ("links", 6)),),
             "force and moment of the parent on every moving link, about the link's origin",
             options=("frame",), external=True, open_tree=True),
    Quantity("inverse_dynamics_derivatives", ("q", "v", "a"),
             (("dtau_dq", _PAIR), ("dtau_dv", _PAIR), ("M", _PAIR)),
             "dtau/dq, dtau/dv and dtau/da = M of inverse dynamics, on the tangent space", invariant=True,
             forces=True, open_tree=True),
    Quantity("forward_dynamics_derivatives", ("q", "v", "tau"),
             (("da_dq", _PAIR), ("da_dv", _PAIR), ("Minv", _PAIR)),
             "da/dq, da/dv and da/dtau = M^-1 of forward dynamics, on the tangent space", invariant=True,
             inverse=True, forces=True, open_tree=True),
)  # fmt: skip
_ARGUMENTS = {
    "q": "coordinates, (..., nq), rad or m; quaternions x y z w of unit length",
    "v": "velocities, (..., nv), rad/s or m/s",
    "a": "accelerations, (..., nv), rad/s^2 or m/s^2",
    "tau": "efforts of the joints, (..., nv), N m or N",
    "x": "any vector of the joints, (..., nv)",
}
CATALOGUE: dict[str, Quantity] = {x.name: x for x in _CATALOGUE_ROWS}
ALIASES = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}
OPTION_DEFAULTS = {"frame": FRAMES[0], "kind": "classical", "axes": " ".join(TASK_AXES), "damping": "0.0"}
OPTION_DEFAULTS["terms"] = " ".join(TASK_TERMS)
OPTION_VALUES: dict[str, tuple[str, ...]] = {"frame": FRAMES, "kind": ("classical", "spatial")}


def explained(x: Quantity) -> str:
    """The docstring of a quantity's method: shapes and units of its arguments and results."""
    shapes = [
        f"{name} (..., {', '.join(map(str, shape))})" if shape else f"{name} (...)" for name, shape in x.outputs
    ]
    forces = "{link: (..., 6)}, force (N) and moment (N m) on the link at its origin, world axes"
    lines = [
        f"{x.about}.\n",
        *(f"{s}: {_ARGUMENTS[s]}" for s in x.state),
        *([f"f_ext: {forces}"] if x.external else []),
        *(["passive: True has the passive forces in, M a + h = tau + p(q, v)"] if x.external and x.forces else []),
        f"out: {'a tuple of arrays' if len(shapes) > 1 else 'an array'} for the result, which is then returned",
        "threads: how many share a large batch\n",
        f"Gives {', '.join(shapes)}. Leading dimensions are batches and broadcast.",
        "Raises InputError (shapes, types), NumericsError (the row that is not finite).",
    ]
    return "\n".join(lines)


def quantity(name: str) -> Quantity:
    """A quantity by its name or alias."""
    known = one_of("quantity", name, (*CATALOGUE, *ALIASES))
    return CATALOGUE[ALIASES.get(known, known)]


def names_of(quantities: str | Sequence[str]) -> tuple[str, ...]:
    """Names without aliases, of one quantity or several."""
    many: Sequence[Any] = quantities if isinstance(quantities, (list, tuple)) else [quantities]
    if not many:
        raise TraceError("no quantity is asked for: name one, such as 'inverse_dynamics'")
    return tuple(quantity(n).name for n in many)


KEYWORDS = ("layout", "dtype", "packed", "parameters", "product", "passive", "formalism", "symbols", "wrt")


def options_of(names: Sequence[str], given: Mapping[str, Any], links: Iterable[str]) -> dict[str, str]:
    """Options of the quantities, checked and completed with their defaults."""
    takes = list(dict.fromkeys(o for n in names for o in quantity(n).options))
    for o in given:
        if o not in takes:
            which = f"; it takes {', '.join(takes)}" if takes else ""
            raise UnknownNameError(
                f"{names[0]} takes no option {o!r}{did_you_mean(o, (*takes, *KEYWORDS))}{which}"
            )
    takes = [o for o in takes if o != "relative_to" or given.get(o) is not None]  # without it the world
    return {o: _option(names[0], o, given.get(o, OPTION_DEFAULTS.get(o)), links) for o in takes}


def takes_forces(wanted: Sequence[str]) -> bool:
    """True; TraceError where a quantity has no passive forces to be in."""
    for name in wanted:
        if not CATALOGUE[name].forces:
            able = ", ".join(x for x, row in CATALOGUE.items() if row.forces)
            raise TraceError(f"{name} has no place for passive forces; these do: {able}")
    return True


def _option(name: str, option: str, value: Any, links: Iterable[str]) -> str:
    if option == "damping":
        return repr(_damping(name, value))
    if option == "axes":
        return " ".join(task_axes(name, value))
    if option == "terms":
        wanted = _some(name, option, value, TASK_TERMS)
        return " ".join(x for x in TASK_TERMS if x in wanted)
    allowed = list(links) if option in ("link", "relative_to") else list(OPTION_VALUES[option])
    if value is None:
        raise TraceError(f"{name} is of one link: say which by {option}=; links are {', '.join(allowed[:40])}")
    return one_of(f"{name}: {option}", value, allowed)


def task_axes(name: str, value: Any) -> list[str]:
    """Names of axes, from a text such as "x y rz" or "xy" or from a sequence; in their own order, each once."""
    spelled = isinstance(value, str) and set(value) <= set("xyz")
    return _some(name, "axes", list(value) if spelled else value, TASK_AXES)


def _some(name: str, option: str, value: Any, allowed: Sequence[str]) -> list[str]:
    """Some of the allowed names, each once, of a text or a sequence."""
    listed = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not listed or len(set(map(str, listed))) < len(listed):
        raise TraceError(f"{name}: {option} are some of {', '.join(allowed)}, each once, not {shown(value)}")
    return [one_of(f"{name}: {option}:", x, allowed) for x in listed]


def _damping(name: str, value: Any) -> float:
    try:
        damping = float(value)
    except (TypeError, ValueError):
        damping = -1.0
    if not 0.0 <= damping < 1e6:
        raise TraceError(f"{name}: damping is a number from 0 on, not {shown(value)}")
    return damping
