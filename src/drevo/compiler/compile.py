"""The facade from a robot to a Function: trace, reduce, emit, build; and the recipe to pickle it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..codegen.call.function import Function, Spec
from ..codegen.store.build import Ahead
from ..codegen.store.key import request
from ..errors import EmitError, InputError, one_of
from ..io.asked import asked
from ..io.given import flag
from ..model.description import Model
from ..model.dynamics import Described
from ..model.messages import model_of, names_in
from ..model.quantities import CATALOGUE, names_of, options_of, takes_forces
from ..model.regularity import require_masses
from .request import requested

if TYPE_CHECKING:
    from ..codegen.graph.program import Program


@asked
def compile(
    robot: Described | Model,
    quantity: str | Sequence[str],
    *,
    dtype: str = "float64",
    target: str = "cpu",
    parameters: str | Sequence[str] = (),
    layout: str = "rows",
    packed: bool = False,
    formalism: str = "auto",
    external: str | Sequence[str] = (),
    check: bool = True,
    cache: bool = True,
    passive: bool = False,
    product: str | Sequence[str] = (),
    tangents: str = "joints",
    symmetric: bool | str | float | Sequence[str] = "auto",
    **options: Any,
) -> Function:
    """A compiled Function of one quantity, or of several that share their work.

    quantity: a name in `drevo.model.quantities.CATALOGUE`, or a list of them: then f returns a tuple.
    dtype: "float64" | "float32". target: "cpu", or "cuda" for arrays on a GPU of NVIDIA's, one sample a thread:
    see `drevo.codegen.gpu.cuda.CudaFunction`. Nothing is checked there.
    layout: "rows", arguments (..., nq) and results (..., *shape); or "batch_last", (nq, B) and (size, B).
    packed: structural non-zeros only (of a symmetric matrix the lower triangle); `f.pattern` says which.
    parameters: names or patterns of model scalars ("*.mass", "hand.com") that become a last argument, its numbers
    in the order of this list, those of a pattern in the order of `robot.link_names`: `f.parameters` tells. A
    mapping of names to numbers is taken there too, {"hand.mass": 2.0}; the others have the robot's values.
    external: links that take a wrench; each adds an argument "f_ext:LINK".
    check: results are tested for finiteness and quaternions for unit length; NumericsError names the row.
    passive: M a + h = tau + p(q, v) with the damping, dry friction and springs of the joints in.
    product: of the derivative by all arguments with a vector, which costs some two or three calls and forms no
    matrix. "vjp": f(*state, [parameters], *w) gives the cotangents of the arguments, J^T w, for w of the shapes of
    the results; "jvp": f(*state, [parameters], *x) gives J x. Tangents of q are of size nv, in the frames of the
    joints; with tangents="numbers" of size nq, where q holds quaternions those of f of q made unit.
    "value_and_vjp", "value_and_jvp": the results before them. ("vjp", "jvp"): one of the other, here second
    derivatives times a vector.
    symmetric: bodies that are symmetric about their hinge (wheels, rotors, flanges) need not turn: "auto", those
    that are to rounding; False, none; names of links, an asymmetry, or True for 1e-6,
    take others for it and warn of what that changes.
    options: link, frame, kind, where the quantity takes them.
    "step" is no quantity but a step of a Robot on a ground, with options of its own: see
    `drevo.contact.step.compile_step`.
    Raises TraceError, EmitError, InputError.
    """
    own = model_of(robot, "compile")
    one_of("compile: target", target, TARGETS, EmitError)
    if isinstance(quantity, str) and quantity == "step":
        plain = (dtype, target, layout, packed, formalism, external, passive) == PLAIN
        own_options = {"parameters": parameters, "product": product, "tangents": tangents}
        return _step(robot, plain, Spec(check=check), {**options, **own_options})
    model, more = (own, {}) if isinstance(symmetric, str) and symmetric == "auto" else _taken(own, symmetric)
    robot = robot if model is own else model
    recipe = recipe_of(model, quantity, parameters, formalism, external, passive, product, options) | more
    if one_of("compile: tangents", tangents, TANGENTS, InputError) != "joints" and product:
        recipe["tangents"] = tangents
    last = bool(recipe["parameters"]) and "product" not in recipe
    spec = Spec(dtype=dtype, layout=layout, packed=packed, parameters=last, check=check)
    loadable = all(CATALOGUE[w].external for w in recipe["quantity"])
    hook = None if external or product or robot is model or not loadable else _Forces(robot, recipe, spec)
    asked, program, cost = (*sorted(recipe.items()),), partial(make_program, model, **recipe), _cost(model, recipe)
    if target == "cuda":
        function: Any = _on_gpu(model, asked, program, spec, cache)
    else:
        function = _rolled(model, recipe, spec, hook, cache)
        function = function or requested(model, asked, program, spec=spec, lasting=cache, extra=hook, ahead=cost)
    made: dict[str, Any] = {"dtype": dtype, "layout": layout, "packed": spec.packed, "check": spec.check}
    function.recipe = partial(compile, model, **_again(recipe), **made, target=target)
    return function  # type: ignore[no-any-return]  # one on a GPU is called alike, and is no Function


def _cost(model: Model, recipe: Mapping[str, Any]) -> Ahead:
    def seconds() -> float:
        from .compile_cost import seconds_written  # late: it would slow every warm start

        return seconds_written(model, recipe["quantity"], "product" in recipe)

    return Ahead(f"{', '.join(recipe['quantity'])} of {model.name!r}", seconds)


def _on_gpu(model: Model, asked: Sequence[object], program: Any, spec: Spec, cache: bool) -> Any:
    from ..codegen.gpu.cuda import obtain_cuda

    return obtain_cuda(request(model, *asked), program, spec, cache)


PLAIN = ("float64", "cpu", "rows", False, "auto", (), False)  # what a step is compiled with


def _step(robot: Any, plain: bool, spec: Spec, options: Mapping[str, Any]) -> Function:
    """The robot knows the way, for contact stands upon this room."""
    if not hasattr(robot, "step_function"):
        raise InputError("compile: a step is one of a Robot: give what drevo.load returns")
    if not plain:
        raise InputError(
            "compile: a step takes dt, ground, law, method, repeat, friction, parameters, product, tangents and "
            "check alone"
        )
    found: Function = robot.step_function(spec=spec, **options)
    return found


def _again(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as what `compile` takes."""
    plain = {k: x for k, x in recipe.items() if k not in ("options", "without")}
    return {**plain, **recipe["options"], "symmetric": "without" not in recipe and "auto"}


def recipe_of(
    model: Model,
    quantity: str | Sequence[str],
    parameters: str | Sequence[str],
    formalism: str,
    external: str | Sequence[str],
    passive: bool,
    product: str | Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """The arguments of `make_program` after the model, checked, from what a user asks of it."""
    wanted = names_of(quantity)
    for name in wanted:
        if not CATALOGUE[name].kinematic:
            require_masses(model, name)
    recipe: dict[str, Any] = {
        "quantity": wanted, "parameters": names_in(parameters, "compile: parameters"), "formalism": formalism,
        "external": names_in(external, "compile: external"),
        "options": options_of(wanted, options, [l.name for l in model.links]),
    }  # fmt: skip
    if flag("compile: passive", passive):
        recipe["passive"] = takes_forces(wanted)
    kinds = names_in(product, "compile: product")
    if kinds:
        recipe["product"] = tuple(one_of("compile: product", k, PRODUCTS, InputError) for k in kinds)
    return recipe


def _taken(model: Model, symmetric: Any) -> tuple[Model, dict[str, Any]]:
    """The robot with the symmetry that was asked for; and in the recipe, the lever that is off where none was."""
    from .pages.symmetry import symmetrised

    changed, allowed, _ = symmetrised(model, symmetric)
    return changed, {} if allowed else {"without": ("wheels",)}


TARGETS = ("cpu", "cuda")
TANGENTS = ("joints", "numbers")
PRODUCTS = ("vjp", "jvp", "value_and_vjp", "value_and_jvp")
PUSHED = ("inverse_dynamics", "bias", "forward_dynamics")  # with passive forces in the loops, too
LARGE = 20  # joints, each at most three bodies: up to it no tree has the 60 bodies that a loop is for
REGROUP = 10_000  # nodes: beyond it sections that do the same work may be told apart by what they share
SHORT = 24_800  # rough operations of M: below it up to 80 bodies written out have a kernel for one state, and win
DEEP = 15  # mean depth: beyond it even fewer bodies than 60 are accelerated faster by a loop


def _rolled(
    model: Model, recipe: Mapping[str, Any], spec: Spec, hook: Callable[..., Any] | None, cache: bool
) -> Function | None:
    """A loop over the bodies for large trees, whose code does not grow with them; None where it is not the way."""
    plain = recipe["formalism"] in ("auto", "newton_euler")
    if (
        len(model.joints) <= LARGE
        or len(recipe["quantity"]) != 1
        or not plain
        or "product" in recipe
        or ("passive" in recipe and recipe["quantity"][0] not in PUSHED)
    ):
        return None
    from .compile_cost import operations
    from .ways.rolled import rolled_function  # late: it would slow every warm start

    (name,) = recipe["quantity"]
    smallest = LARGE if name == "forward_dynamics" and _mean_depth(model) > DEEP else 60
    if name == "mass_matrix" and operations(model, name) * (1.0 + _oblique(model)) < SHORT:
        smallest = 80
    return rolled_function(
        model,
        name,
        spec,
        external=recipe["external"],
        options=recipe["options"],
        extra=hook,
        cache=cache,
        smallest=smallest,
        passive="passive" in recipe,
    )


def _oblique(model: Model) -> float:
    """The share of joints that turn their frames about no axis of coordinates: their pairs cost twice as much."""
    numbers = [(*j.axis, *j.rotation[0], *j.rotation[1], *j.rotation[2]) for j in model.joints]
    return sum(any(abs(y - round(y)) > 1e-6 for y in x) for x in numbers) / max(1, len(numbers))


def _mean_depth(model: Model) -> float:
    depth = {model.root: 0}
    for j in model.joints:
        depth[j.child] = depth[j.parent] + (j.kind != "fixed")
    return sum(depth.values()) / max(1, len(depth))


def make_program(
    model: Model,
    quantity: Sequence[str],
    parameters: Sequence[str],
    formalism: str,
    external: Sequence[str],
    options: Mapping[str, Any],
    passive: bool = False,
    product: Sequence[str] = (),
    tangents: str = "joints",
    without: Sequence[str] = (),
) -> Program:
    """The program that is compiled; nothing of this runs when the cache is warm. without: levers that are off."""
    from ..codegen.graph import levers
    from ..mechanics.tree import build_tree
    from .branches import with_branches

    # sums are regrouped after their derivatives are made: these look for rotations as they were traced
    with levers.without(*without, *(("regroup",) if product and formalism == "auto" else ())):
        program = _quantities(model, quantity, parameters, formalism, external, options, passive)
    tree = build_tree(model)
    if product:
        from .products import product_program

        program = product_program(program, tree, product, tangents == "numbers")
        with levers.without(*without):
            program = _regrouped(program, formalism)
    return with_branches(program, tree)


def _regrouped(program: Program, formalism: str) -> Program:
    from ..codegen.graph import regroup

    if formalism == "auto" and len(program.order()) <= REGROUP:
        return regroup.regrouped(program, early=True, names=False)
    return program


def _quantities(
    model: Model,
    quantity: Sequence[str],
    parameters: Sequence[str],
    formalism: str,
    external: Sequence[str],
    options: Mapping[str, Any],
    passive: bool,
) -> Program:
    from ..codegen.graph import verify
    from ..mechanics.tree import build_tree
    from .compile_cost import require_affordable
    from .formalisms import candidates
    from .pivots import require_regular
    from .trace import trace

    require_affordable(model, quantity)
    if any(CATALOGUE[x].inverse for x in quantity):
        require_regular(model)
    given: dict[str, Any] = {
        "parameters": parameters, "compiled": True, "external": external, "options": options, "passive": passive,
    }  # fmt: skip
    if formalism not in ("auto", "newton_euler"):
        from .compete import compete

        return compete(model, quantity, formalism=formalism, **given).program
    (candidate,) = candidates(build_tree(model), quantity, formalism, external)
    program = trace(model, quantity, **given, compute=candidate.compute, meta={"formalism": candidate.formalism})
    program = _regrouped(program, formalism)
    if formalism == "auto" and not (parameters or external or passive):
        program = replace(program, across=partial(_across, model, quantity))
    if verify.level() >= 1:
        verify.legal(program)
    if verify.level() >= 2 and candidate.formalism != "newton_euler":
        verify.require_twins(program, trace(model, quantity, **given))
    return program


def _across(model: Model, quantity: Sequence[str], short: bool) -> Any:
    """The plan that computes one state faster than the equations of a batch; None where there is none.

    short: these would do for one state.
    """
    from .ways.across import QUANTITIES, plan_across
    from .ways.solved import solved_program

    if len(quantity) != 1 or quantity[0] not in QUANTITIES:
        return None
    if short:
        return solved_program(model) if quantity[0] == QUANTITIES[1] else None
    return plan_across(model, quantity[0])


class _Forces:
    """Handles calls with f_ext={link: wrench} and passive=: by functions of those links, each made once.

    known: by links in the order in which calls give them, one by itself, what the entry calls without Python.
    """

    def __init__(self, robot: Any, recipe: dict[str, Any], spec: Spec) -> None:
        self.robot, self.recipe, self.spec = robot, recipe, spec
        self.states = tuple(dict.fromkeys(s for w in recipe["quantity"] for s in CATALOGUE[w].state))
        self.made: dict[tuple[tuple[str, ...], bool], Function] = {}
        self.known: dict[str | tuple[str, ...], Callable[..., Any]] = {}

    def function(self, links: tuple[str, ...], passive: bool) -> Function:
        if (links, passive) not in self.made:
            recipe, spec = self.recipe, self.spec
            made = compile(
                self.robot, recipe["quantity"], external=links, parameters=recipe["parameters"], passive=passive,
                formalism=recipe["formalism"], dtype=spec.dtype, layout=spec.layout, packed=spec.packed,
                check=spec.check, symmetric="without" not in recipe and "auto", **recipe["options"],
            )  # fmt: skip
            self.made[links, passive] = made
            if made.fast is not None and not recipe["parameters"] and passive == ("passive" in recipe):
                self.known[links if len(links) != 1 else links[0]] = made.fast
        return self.made[links, passive]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self.recipe["quantity"][0]
        known = {*self.states, "parameters", "out", "threads", "f_ext", "passive"}
        if unknown := ", ".join(repr(k) for k in kwargs if k not in known):
            raise InputError(f"{name} takes no argument {unknown}; it takes f_ext, passive, out and threads")
        passive = flag(f"{name}: passive", kwargs.pop("passive", "passive" in self.recipe))
        forces = kwargs.pop("f_ext", None)
        forces = {} if forces is None else forces
        if not isinstance(forces, Mapping):
            raise InputError(f"f_ext is a dictionary of links and wrenches, not {type(forces).__name__}")
        links = tuple(sorted(names_in(list(forces), "f_ext: links")))
        f, wrenches, n = self.function(links, passive), [forces[k] for k in links], len(self.states)
        if len(args) >= n:  # they come between the state and the parameters
            return f(*args[:n], *wrenches, *args[n:], **kwargs)
        return f(*args, **{f"f_ext:{k}": w for k, w in zip(links, wrenches)}, **kwargs)
