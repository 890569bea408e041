"""One step of a robot that touches, as a Function: state in, state out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from ..codegen.call.function import Function, Spec
from ..codegen.graph.program import Program
from ..codegen.store.build import Ahead
from ..compiler.compile_cost import seconds_of_exact_step, seconds_of_soft_step
from ..compiler.recipe import TANGENTS
from ..compiler.trace import requested
from ..errors import InputError, one_of, warn_caller
from ..ground import Uneven, ground_of
from ..io.given import asked, flag, number, seconds, whole
from ..mechanics.acting import without_passive
from ..mechanics.algorithms.actuators import control_ranges
from ..mechanics.algorithms.sensors import HELD_SENSORS, felt_zones
from ..model.description import Model
from ..model.draft import listed, model_of, names_in
from ..model.dynamics import Described
from ..model.regularity import require_masses
from .laws.exact.derivative import ExactDerivative
from .laws.exact.kernel import moreau_program
from .laws.exact.many import MultiplierEvaluation, MultiplierLoops, many_places_problem
from .laws.exact.problem import exact_robot
from .laws.soft.derivative import SoftDerivative
from .laws.soft.law import LAW_SIZES, PENALTY_LAWS, RowGroup, require_slope
from .laws.soft.problem import soft_problem
from .laws.soft.program import step_program, takes_loops
from .laws.soft.stages import SoftProblem
from .pairs import warn_of_untouched
from .parameters import numbers_of_model
from .products import mark_of, prefix_of, require_one_product, step_product_program
from .signals import reading_slices, sensors_named

_SOFT_METHODS = ("euler", "implicitfast", "rk4")  # the usual one first
STEP_METHODS = {"soft": _SOFT_METHODS, "coulomb": ("moreau",)} | dict.fromkeys(PENALTY_LAWS, _SOFT_METHODS)
_ADDED_LAWS = set[str]()  # by users, in this process


@dataclass(frozen=True)
class StepRequest:
    """The options of `compile_step`, checked; with the model all that a step's program depends on."""

    law: str
    method: str
    dt: float
    ground: Uneven | str | None
    repeat: int = 1
    friction: float | None = None
    restitution: float = 0.0
    touching: tuple[str, ...] | None = None
    last: bool = False
    product: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    numbers: bool = False  # tangents of q in products are of size nq
    controls: bool = False
    sensors: tuple[str, ...] = ()


@partial(asked, name="step")
def compile_step(
    robot: Described | Model, *, dt: float, ground: object = "plane", law: str = "soft", method: str | None = None,
    repeat: int = 1, friction: float | None = None, restitution: float = 0.0,
    touching: Sequence[str] | None = None, last: bool = False, parameters: str | Sequence[str] = (),
    product: str | Sequence[str] = (), tangents: str = "joints", passive: bool = True, controls: bool = False,
    sensors: bool | str | Sequence[str] = (), spec: Spec | None = None,
) -> Function:  # fmt: skip
    """f(q, v, tau) -> (q1, v1, forces, residual): the state after dt; batches and threads as in every Function.

    ground: None for the planes of the model itself, "plane" for z = 0 where it has none, `drevo.ground.grid` or
    `drevo.ground.function`. law: "soft" is MuJoCo's, "coulomb" the exact one: docs/contact.md. method: of the soft
    law "euler" (implicit damping), "implicitfast", "rk4"; of the exact one "moreau", with `restitution`. touching:
    links or geoms that may touch under the exact law, where not all may.
    repeat: so many steps of dt in one call, with the efforts held. friction: of sliding, in place of the model's.
    forces: (places, 3) N, on the second body of each place where the robot may touch, in world axes, from the last
    evaluation. residual: by how much velocities may be off, m/s or rad/s, the largest of all evaluations
    (docs/contact.md), up to 1e-9 where a step has converged.
    last: under the soft law three results more, the state of the last evaluation and what constraints exert there:
    Q, V, r (nv,).
    parameters: names or patterns of numbers of the model, as `drevo.compile` takes them, that become a last
    argument, by sample; "ground" too, the heights of a grid or the numbers of `drevo.ground.function`, and of
    sliding "friction", at all places that have any, or "friction.GEOM" of geoms by name or pattern, of which a
    place takes the larger; "size.GEOM.K" size K of a geom, m, "size.GEOM" all that it has. Masses and inertias
    stay unless they are parameters too; the soft law's inverse weights follow these. "LINK.pose" is where a link
    of motion capture stands: its place and a quaternion w x y z.
    product: of the derivatives of q1 and v1 with a vector, of one step of "euler", "implicitfast" or "moreau".
    "vjp": f(q, v, tau, [parameters], q1_bar, v1_bar) gives the cotangents of the arguments; "jvp":
    f(q, v, tau, [parameters], q_dot, v_dot, tau_dot, [parameters_dot]) gives q1_dot, v1_dot; "value_and_vjp" and
    "value_and_jvp" the results of the step before them; "jacobian": f(q, v, tau, [parameters]) gives by_q, by_v,
    by_tau, [by_parameters] (2 nv, n), rows of q1 before those of v1. Of q and q1 all are of size nv, in the frames
    of the joints; of products with tangents="numbers" of size nq, as `drevo.compile` has it. What touches, sticks
    or slides, and which limits hold, stays as it is; under the exact law a step that has not converged has none.
    controls: True takes controls of the model's actuators (nu,) in the place of tau, and activations where some
    have any, f(q, v, ctrl, act) -> (q1, v1, forces, residual, .., act1); in products too. sensors: names of the
    model's, or True for all: what they read of the evaluation that begins the step, a last result `sensordata`,
    of which `f.sensors` tells the parts by name: docs/signals.md.
    passive: False leaves out the damping, dry friction and springs of the joints, tendons and weights taken away.
    Raises InputError; calls raise NumericsError. A DrevoWarning says what has no rule and passes through others.
    """
    model = model_of(robot, "step")
    if not flag("step: passive", passive):
        robot = model = without_passive(model)
    require_masses(model, "step")
    one_of("step: law", law, LAWS, InputError)
    floor = ground_of(ground)
    if law != "coulomb":
        warn_of_untouched(model, floor)
    step, times = seconds("step: dt", dt), whole("step: repeat", repeat, use=": steps of one call")
    if friction is not None:
        friction = number("step: friction", friction, "a coefficient, 0 or more", lambda x: 0.0 <= x < math.inf)
    bounce = number("step: restitution", restitution, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    way = one_of("step: method", STEP_METHODS[law][0] if method is None else method, STEP_METHODS[law], InputError)
    if method is None and (of_file := model.stepping.integrator.lower()) in STEP_METHODS[law] and of_file != way:
        warn_caller(
            f"step of {model.name!r}: its file has the integrator {model.stepping.integrator}, and a step without "
            f"method= is of {way}: say method={of_file!r} for the file's, or method={way!r}"
        )
    names = None if touching is None else names_in(touching, "step: touching")
    request = StepRequest(
        law, way, step, floor, times, friction, bounce, names, flag("step: last", last),
        names_in(product, "step: product"), names_in(parameters, "step: parameters"),
        one_of("step: tangents", tangents, TANGENTS, InputError) == "numbers" and bool(product),
        flag("step: controls", controls), _sensor_names(model, sensors),
    )  # fmt: skip
    _require_signals(model, request)
    function = LAWS[law](robot, model, request, spec or Spec())
    function.recipe = partial(
        compile_step, model, dt=step, ground=floor, law=law, method=way, repeat=times, friction=friction,
        restitution=bounce, touching=names, last=last, parameters=request.parameters, product=request.product,
        tangents=tangents, controls=controls, sensors=request.sensors, spec=spec,
    )  # fmt: skip
    function.sensors = reading_slices(model, request.sensors)
    return function


def _sensor_names(model: Model, asked: bool | str | Sequence[str]) -> tuple[str, ...]:
    """The names of sensors that are read, all for True."""
    known = [x.name for x in model.sensors]
    if isinstance(asked, bool):
        return tuple(known) if asked else ()
    wanted = names_in(asked, "step: sensors")
    rest = known or ["nothing that measures"]
    return tuple(dict.fromkeys(one_of("step: sensors", x, rest, InputError) for x in wanted))


def _require_signals(model: Model, r: StepRequest) -> None:
    """InputError where controls drive nothing, sensors know not what they would read, or derivatives are asked for
    with either."""
    if r.controls and not control_ranges(model):
        raise InputError(
            f"step: robot {model.name!r} has no actuators that are read, so that controls drive nothing; give "
            "efforts, without controls=True"
        )
    if r.sensors and r.product:
        raise InputError("step: products are of states; leave out product, or sensors")
    asked = sensors_named(model, r.sensors)
    if not r.controls and (of := [x.name for x in asked if x.kind == "jointactuatorfrc"]):
        raise InputError(f"step: {listed(of)} read forces of actuators; give controls=True, or leave them out")
    held = [x.name for x in asked if x.kind in HELD_SENSORS]
    driven = {x.tendon for x in model.actuators if r.controls} | {x.tendon for x in model.tendon_couplings}
    bounded = {x.name for x in model.tendons if x.lower is not None or x.upper is not None}
    strung = [x for x in model.tendons if x.segments and (x.pulls or x.name in driven | bounded)]
    if held and (model.loops or strung):
        why = "loops are closed" if model.loops else f"tendon {strung[0].name!r} pulls at links"
        raise InputError(
            f"step: {listed(held)} read what holds links, which is not known of robot {model.name!r}, whose "
            f"{why}; leave them out of sensors"
        )
    if held and (weighed := numbers_of_model(r.parameters)):
        raise InputError(
            f"step: {listed(held)} read what holds links of the model's masses; leave them out, or the parameters "
            f"{listed(weighed)}"
        )


def _exact(robot: Any, model: Model, r: StepRequest, spec: Spec) -> Function:
    if r.last:
        raise InputError("step: last is for law='soft'; of the exact law forces and residual tell all")
    plain, given = not (r.product or r.touching), (model, r.ground, r.dt, r.repeat, r.friction, r.restitution)
    many = many_places_problem(*given, r.parameters) if plain else None
    spec = replace(spec, parameters=bool(r.parameters))
    if many:
        many = _read(many, r)
        warn_of_untouched(model, r.ground)
        build = partial(step_program, many, MultiplierEvaluation, MultiplierLoops)
        ahead = Ahead(f"step of {model.name!r}", lambda: seconds_of_soft_step(model, [], ""))
        return requested(robot, ("step", r), build, spec=spec, ahead=ahead)
    what = exact_robot(model, r.dt, r.ground, r.friction, r.restitution, r.touching, True)
    warn_of_untouched(model, r.ground, searched=what.whole)
    require_one_product(r.product, r.repeat == 1, r.numbers)
    if r.product and r.parameters:
        raise InputError("step: products by parameters are for law='soft'; leave out one of the two")

    places = 3 * len(what.slots)
    rows = [places + sum(x.friction > 0.0 for x in what.joints)]
    if any(x.lower > -math.inf or x.upper < math.inf for x in what.joints):
        rows = [*([] if r.product else rows), places + len(what.joints)]
    ahead = Ahead(f"step of {model.name!r}", lambda: seconds_of_exact_step(model, rows, bool(r.product)))

    def program() -> Program:
        if not r.product:
            sensors = sensors_named(model, r.sensors)
            asked = replace(what, parameters=r.parameters, controls=r.controls, sensors=sensors)
            return moreau_program(asked, repeat=r.repeat)
        kind, asked = r.product[0], replace(what, controls=r.controls)
        return step_product_program(ExactDerivative(asked, mark_of(kind), r.numbers, prefix_of(kind)), kind)

    return requested(robot, ("step", r), program, spec=spec, ahead=ahead)


def _soft(robot: Any, model: Model, r: StepRequest, spec: Spec) -> Function:
    if r.restitution:
        raise InputError(
            "step: the soft law has no restitution, but solref: give law='coulomb', or softer contacts"
        )
    if r.touching is not None:
        raise InputError("step: touching is for law='coulomb'; the soft law skips what does not touch")
    if r.parameters and r.method == "implicitfast":
        raise InputError("step: implicitfast takes no parameters; euler and rk4 do")

    product = r.product[0] if r.product else ""

    @cache
    def stated() -> SoftProblem:
        problem = soft_problem(model, r.ground, r.dt, r.method, r.repeat, r.friction, r.law, apart=bool(product))
        return _read(replace(problem, last=r.last, parameters=r.parameters), r)

    def program() -> Program:
        if not product:
            return step_program(stated())
        return step_product_program(SoftDerivative(stated(), mark_of(product), r.numbers), product)

    ahead = Ahead(f"step of {model.name!r}", lambda: soft_step_cost(stated(), product))

    require_one_product(
        r.product, r.method != "rk4" and r.repeat == 1 and not r.last, r.numbers, bool(model.stepping.noslip)
    )
    spec = replace(spec, parameters=bool(r.parameters) and not r.product)
    if r.law in PENALTY_LAWS and model.stepping.noslip:
        raise InputError(f"step: noslip_iterations of a file are for law='soft', not {r.law!r}; set them to 0")
    return requested(robot, ("step", r), program, spec=spec, lasting=r.law not in _ADDED_LAWS, ahead=ahead)


def _read(problem: SoftProblem, r: StepRequest) -> SoftProblem:
    """With the controls and sensors of a request."""
    sensors = sensors_named(problem.model, r.sensors)
    touches = bool(felt_zones(problem.model, sensors))
    return replace(problem, controls=r.controls, sensors=sensors, touches=touches)


def soft_step_cost(problem: SoftProblem, product: str = "") -> float:
    """An estimate of the seconds that compiling a step will take."""
    looped = takes_loops(problem) and not product
    slots = [(x.group.size, x.links, x.near is not None) for x in problem.slots if not looped]
    return seconds_of_soft_step(problem.model, slots, product)


LAWS: dict[str, Callable[..., Function]] = {"soft": _soft, "coulomb": _exact} | dict.fromkeys(PENALTY_LAWS, _soft)


def add_law(name: str, group: type[RowGroup]) -> None:
    """Gives a law of contacts a name by which steps and motions take it, in this process.

    group: forces and Hessian of the rows of a contact, in the place of MuJoCo's cones: docs/new-contact-law.md.
    Raises InputError where the Hessian is not minus the slope of the forces. A law of that name that was added
    before is replaced.
    """
    if name in LAWS and name not in _ADDED_LAWS:
        raise InputError(f"add_law: there is a law {name!r}; give another name")
    for size in LAW_SIZES:
        require_slope(f"add_law: {name!r}", group(size, (0.9,) * (size - 1), 0.6 if size > 1 else 0.0))
    PENALTY_LAWS[name], LAWS[name], STEP_METHODS[name] = group, _soft, _SOFT_METHODS
    _ADDED_LAWS.add(name)
