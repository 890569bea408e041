"""The parts of a body and its joint, as given to a builder: each checked, as the model holds it.

Poses of custom joints as a user gives them: text, numbers, or a function, which is traced into text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.ops import ADD, CONST, DIV, INPUT, MUL, OPS, UNLESS, WHEN
from ..errors import InputError, ModelError, one_of, shown
from ..io.given import number
from ..io.xml import ANY, MAX_MASS
from ..kinematics.points import welded
from ..model import values
from ..model.description import (
    IDENTITY,
    JOINT_SIZES,
    ORIGIN,
    Inertial,
    JointDynamics,
    Limit,
    Link,
    Mat3,
    Mimic,
    Model,
    PoseFormula,
    Shape,
    TendonJoint,
    Vec3,
)
from ..model.draft import Draft, did_you_mean
from ..model.formula import MAX_COORDINATES, POSE_STEPS, coordinate_names
from ..model.rotations import from_rpy, shift_tensor
from ..model.validation import KIND_NAMES, finish
from ..model.values import checked, scalar

_checked = partial(values.checked, ModelError)
Numbers = Any  # anything that holds numbers: tuples, lists, numpy arrays
ZERO_TENSOR: Mat3 = (ORIGIN, ORIGIN, ORIGIN)


def given_shares(label: str, joints: Mapping[str, float] | None) -> tuple[TendonJoint, ...]:
    """The coefficient of each joint in the length of a tendon, checked."""
    if joints is not None and not isinstance(joints, Mapping):
        raise ModelError(f"{label}: joints is a mapping of names to metres a radian or metre, not {shown(joints)}")
    given = (joints or {}).items()
    return tuple(
        TendonJoint(_checked(label, "joint", values.name, j), _checked(label, "coefficient", values.scalar, c))
        for j, c in given
    )


def check_shape(label: str, shape: object) -> None:
    if not isinstance(shape, Shape):
        raise ModelError(f"{label}: a shape is a drevo.model.description.Shape, not {shown(shape)}")
    _checked(label, "size of a shape", values.sequence, shape.size)
    _checked(label, "origin of a shape", values.vector, shape.origin)
    _checked(label, "rotation of a shape", values.rotation, shape.rotation)


def given_kind(label: str, kind: str) -> str:
    if not isinstance(kind, str) or kind not in KIND_NAMES:
        raise ModelError(
            f"{label}: the joint is of unknown type {kind!r}{did_you_mean(str(kind), KIND_NAMES)}; known are "
            f"{', '.join(JOINT_SIZES)}"
        )
    return KIND_NAMES[kind]


def _inertial(label: str, mass: float, com: Numbers, inertia: Numbers, inertia_at: str) -> Inertial | None:
    one_of(f"{label}: inertia_at", inertia_at, ("com", "joint"), ModelError)
    m = _checked(label, "mass", lambda value: values.scalar(value, MAX_MASS), mass)
    c = _checked(label, "com", values.vector, com)
    flat = isinstance(inertia, (list, tuple)) and all(isinstance(x, (int, float)) for x in inertia)
    if flat or getattr(inertia, "shape", ()) == (3,):
        raise ModelError(
            f"{label}: inertia is the 3x3 tensor, not {shown(inertia)}; of principal moments, np.diag(..)"
        )
    tensor = ZERO_TENSOR if inertia is None else _checked(label, "inertia", values.tensor, inertia)
    if inertia_at == "joint" and inertia is not None:
        tensor = shift_tensor(tensor, -m, c)
    return Inertial(m, c, tensor) if m or any(map(any, tensor)) else None


def given_link(label: str, name: str, *given: Any) -> Link:
    """mass, com, inertia, inertia_at, gravcomp."""
    *body, gravcomp = given
    part = _checked(label, "gravcomp", lambda x: values.scalar(x, ANY), gravcomp)
    return Link(name, _inertial(label, *body), gravcomp=part)


def with_body(model: Model, link: str, mass: float, point: Numbers, inertia: Numbers, name: str) -> Model:
    """The model with one more link that is welded to another, judged as a body of a file is."""
    verb = "with_payload"
    names = [x.name for x in model.links]
    carrier = one_of(f"{verb}: link", link, names, InputError)
    taken = [*names, *(x.name.removesuffix("_weld") for x in model.joints)]
    kg = number(f"{verb}: mass", mass, f"a mass above 0 kg, up to {MAX_MASS:g}", lambda x: 0.0 < x <= MAX_MASS)
    if _checked(verb, "name", values.name, name) in taken:
        raise InputError(f"{verb}: the robot has a part {name!r}; give another name=")
    place = _checked(verb, "point", values.vector, point)
    body = Link(name, _inertial(verb, kg, ORIGIN, inertia, "com"))
    finish(Draft(model.name, [body]))  # which raises or warns if it is no real body
    return welded(model, carrier, body, place)


def given_rotation(label: str, rotation: Numbers, rpy: Numbers) -> Mat3:
    if rotation is not None and rpy is not None:
        raise ModelError(f"{label}: both rotation and rpy are given; give one of them")
    if rpy is not None:
        angles: Vec3 = _checked(label, "rpy", values.vector, rpy)
        return from_rpy(*angles) if any(angles) else IDENTITY
    return IDENTITY if rotation is None else _checked(label, "rotation", values.rotation, rotation)


def given_placement(
    label: str, origin: Numbers, rotation: Numbers, rpy: Numbers, axis: Numbers, axis2: Numbers
) -> tuple[Vec3, Mat3, Vec3, Vec3 | None]:
    return (
        _checked(label, "origin", values.vector, origin),
        given_rotation(label, rotation, rpy),
        _checked(label, "axis", values.vector, axis),
        None if axis2 is None else _checked(label, "axis2", values.vector, axis2),
    )


def given_lead(label: str, kind: str, lead: float | None) -> float:
    if KIND_NAMES[kind] != "helical":
        return 0.0
    if lead is None:
        raise ModelError(
            f"{label}: a helical joint needs its lead, the advance in metres per revolution: give lead=..."
        )
    return _checked(label, "lead", values.scalar, lead)


def given_limit(label: str, limit: Limit | Sequence[float] | None) -> Limit | None:
    """Bounds; an infinite one is none."""
    if limit is None:
        return None
    if isinstance(limit, Limit):
        return Limit(*(_bound(label, x) for x in (limit.lower, limit.upper, limit.velocity, limit.effort)))
    bounds = limit.tolist() if hasattr(limit, "tolist") else limit
    if not isinstance(bounds, (tuple, list)):
        raise ModelError(
            f"{label}: limit {shown(limit)} is not a list of numbers; give (lower, upper), or a Limit"
        )
    if len(bounds) != 2:
        raise ModelError(f"{label}: limit has {len(bounds)} numbers; give (lower, upper), or a Limit")
    return Limit(_bound(label, bounds[0]), _bound(label, bounds[1]))


def _bound(label: str, value: object) -> float | None:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    return _checked(label, "limit", lambda x: values.scalar(x, ANY), value)


def given_dynamics(label: str, whole: JointDynamics | None, rotor: Any, *given: float) -> JointDynamics | None:
    """The passive dynamics of the joint and its rotor, checked; None for nothing."""
    names = ("armature", "damping", "friction", "stiffness", "reference")
    parts: dict[str, Any] = {
        n: _checked(label, n, lambda x: values.scalar(x, ANY), x) for n, x in zip(names, given)
    }
    if rotor is not None:
        parts |= _rotor(label, rotor)
    if whole is not None and any(parts.values()):
        raise ModelError(
            f"{label}: both dynamics and {', '.join(n for n in parts if parts[n])} are given; give one"
        )
    if whole is not None and not isinstance(whole, JointDynamics):
        raise ModelError(f"{label}: dynamics is a drevo.model.description.JointDynamics, not {shown(whole)}")
    terms = JointDynamics(**parts) if whole is None else whole
    return None if terms == JointDynamics() else terms


def _rotor(label: str, given: Any) -> dict[str, Any]:
    """Fields of a rotor: inertia, gear ratio and axis, checked."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise ModelError(f"{label}: rotor is (inertia, gear ratio), or with an axis besides, not {shown(given)}")
    numbers = [_checked(label, "rotor", lambda x: values.scalar(x, ANY), x) for x in given[:2]]
    axis = _checked(label, "the rotor's axis", values.vector, given[2]) if len(given) == 3 else None
    return {"rotor": numbers[0], "gear": numbers[1], "rotor_axis": axis}


def given_mimic(label: str, mimic: Mimic | Sequence[Any] | str | None) -> Mimic | None:
    if mimic is None or isinstance(mimic, Mimic):
        return mimic
    given = (mimic,) if isinstance(mimic, str) else tuple(mimic) if isinstance(mimic, (tuple, list)) else ()
    joint, *ratio = given or ("",)
    if not given or len(ratio) > 2:
        raise ModelError(f"{label}: mimic is a joint's name, or (name, multiplier, offset)")
    numbers = [_checked(label, "mimic", values.scalar, part) for part in ratio]
    return Mimic(_checked(label, "mimic", values.name, joint), *numbers)


GivenPose = Mapping[str, Any] | Callable[[list[Any]], Mapping[str, Any]]
MAX_INLINE_CHARACTERS = 60  # characters: what is used once and is shorter stands where it is used


def formula_of(label: str, pose: GivenPose | None, coordinates: int) -> PoseFormula | None:
    """The formula of a custom joint, or None where no pose is given."""
    if pose is None:
        return None
    coordinates = checked(ModelError, label, "coordinates", _count, coordinates)
    if callable(pose):
        return _traced(label, pose, coordinates)
    if not isinstance(pose, Mapping):
        raise ModelError(f"{label}: pose is {{name: formula}} with names such as x and pitch, or a function of q")
    return PoseFormula(coordinates, tuple((str(name), _text(label, name, x)) for name, x in pose.items()))


def _count(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not 1 <= int(given) <= MAX_COORDINATES:
        raise ValueError(f"is a whole number from 1 to {MAX_COORDINATES}, not {shown(given)}")
    return int(given)


def _text(label: str, name: Any, x: Any) -> str:
    """A number or a name as the text of a formula."""
    if isinstance(x, str):
        return x
    try:
        return repr(scalar(x))
    except ValueError as error:
        raise ModelError(f"{label}: {name} of its pose {error}; give text or a number") from None


def _traced(label: str, pose: Callable[[list[Any]], Any], coordinates: int) -> PoseFormula:
    """Traces a function from a list of scalars to a pose, and gives its formulas as text."""
    from ..compiler.tracer import Tracer, nodes_of
    from ..constraint.functions import call_traced

    t = Tracer("pose")
    q = t.input("q", coordinates)
    try:
        pose_given = call_traced("its pose", lambda: pose(list(q)))
    except InputError as error:
        raise ModelError(f"{label}: {error}") from None
    if not isinstance(pose_given, Mapping) or not set(pose_given) <= set(POSE_STEPS):
        raise ModelError(
            f"{label}: the function of its pose gives {{name: value}} with names of {', '.join(POSE_STEPS)}"
        )
    for name, x in pose_given.items():
        if not isinstance(x, Expr):
            _text(label, name, x)
    edges = {name: t.graph.edge(x) for name, x in pose_given.items()}
    called = dict(zip(nodes_of(q), coordinate_names(coordinates)))
    return PoseFormula(coordinates, tuple(statements(t.graph, edges, called)))


def statements(graph: Graph, edges: Mapping[str, int], called: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Name and formula of all that is used twice or is long, then of the steps. called: the coordinates' nodes."""
    live = graph.live(edges.values())
    uses = [e >> 1 for n in live if graph.op[n] > INPUT for e in graph.operands(n)] + [
        e >> 1 for e in edges.values()
    ]
    text = dict(called)
    count = 0

    def of(e: int) -> str:
        return f"(-{text[e >> 1]})" if e & 1 else text[e >> 1]

    for n in live:
        op = graph.op[n]
        if op == CONST:
            text[n] = repr(graph.constants[graph.a[n]])
        elif op > INPUT:
            written = _written(op, [of(e) for e in graph.operands(n)])
            if uses.count(n) > 1 or len(written) > MAX_INLINE_CHARACTERS:
                count += 1
                yield f"t{count}", written
                written = f"t{count}"
            text[n] = written
    for name, e in edges.items():
        yield name, of(e)


def _written(op: int, x: list[str]) -> str:
    if op in (ADD, MUL, DIV):
        return f"({x[0]} {'+*/'[(ADD, MUL, DIV).index(op)]} {x[1]})"
    if op in (WHEN, UNLESS):
        return f"where({x[0]} > 0, {', '.join((x[1], '0') if op == WHEN else ('0', x[1]))})"
    return f"{OPS[op].name}({', '.join(x)})"
