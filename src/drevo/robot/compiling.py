"""`drevo.compile`: the one way from a robot to a compiled Function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ..codegen.call.function import Function, Spec
from ..codegen.call.method import compiled
from ..codegen.store.memo import memoised
from ..compiler.compile import Options, compile_quantity
from ..errors import InputError, warn_caller
from ..io.given import asked, spelled_out
from ..model.description import Model
from ..model.draft import did_you_mean, shorten
from ..model.dynamics import Described
from ..model.quantities import ALIASES, CATALOGUE, CompileOptions, LinkOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


def warn_open_tree(robot: Any, quantity: str | Sequence[str]) -> bool:
    """Warns, once for a robot, a user who asks one with loops for a quantity of its open tree.

    False where this package itself asks, which computes what closes a robot from its open tree: a user has yet to
    be warned.
    """
    names = [x for x in (quantity if isinstance(quantity, (list, tuple)) else [quantity]) if isinstance(x, str)]
    model, of_tree = getattr(robot, "model", None), {x for x, row in CATALOGUE.items() if row.open_tree}
    if not (isinstance(model, Model) and model.closed and of_tree.intersection(ALIASES.get(x, x) for x in names)):
        return True
    frame, wrappers = sys._getframe(1), (asked.__module__, compiled.__module__)
    while frame.f_back is not None:  # a user's call comes through the robot's face and what wraps its methods
        module = str(frame.f_globals.get("__name__"))
        if module not in wrappers and module.rpartition(".")[0] != __package__:
            break
        frame = frame.f_back
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return False
    closed = [f"{x.kind} of {x.link_a!r} and {x.link_b!r}" for x in model.loops]
    closed += [f"coupling of joint {x.joint!r}" for x in model.couplings]
    closed += [f"coupling of tendon {x.tendon!r}" for x in model.tendon_couplings]
    text = (
        f"{', '.join(names)} of {model.name!r} is that of its open tree, without what closes it "
        f"({shorten(closed, 2)}): "
        "robot.under().dynamics(q, v, tau) and robot.under().inverse_dynamics(q, v, a) have that, as simulate has"
    )
    memoised(robot, "warned of the open tree", lambda: warn_caller(text))
    return True


@asked
@spelled_out(CompileOptions)
def compile(
    robot: Described | Model,
    quantity: str | Sequence[str],
    *,
    wrt: str | Sequence[str] = (),
    dtype: str = "float64",
    target: str = "cpu",
    parameters: str | Sequence[str] = (),
    layout: str = "rows",
    packed: bool = False,
    formalism: str = "auto",
    f_ext: str | Sequence[str] = (),
    check: bool = True,
    cache: bool = True,
    passive: bool | None = None,
    product: str | Sequence[str] = (),
    tangents: str = "joints",
    symmetric: bool | str | float | Sequence[str] = "auto",
    **options: Unpack[CompileOptions],
) -> Function:
    """A compiled Function of one quantity, of several that share their work, of a derivative, or of a step.

    quantity: a name in `drevo.model.quantities.CATALOGUE`, or a list of them: then f returns a tuple.
    dtype: "float64" | "float32". target: "cpu", or "cuda" for arrays on a GPU of NVIDIA's, one sample a thread:
    see `drevo.codegen.gpu.cuda.CudaFunction`. Nothing is checked there.
    layout: "rows", arguments (..., nq) and results (..., *shape); or "batch_last", (nq, B) and (size, B).
    packed: structural non-zeros only (of a symmetric matrix the lower triangle); `f.pattern` says which.
    parameters: names or patterns of model scalars ("*.mass", "hand.com") that become a last argument, its numbers
    in the order of this list, those of a pattern in the order of `robot.link_names`: `f.parameters` tells. A
    mapping of names to numbers is taken there too, {"hand.mass": 2.0}; the others have the robot's values.
    f_ext: links that take a wrench; each adds an argument "f_ext:LINK".
    check: results are tested for finiteness and quaternions for unit length; NumericsError names the row.
    cache: the machine code is kept on disk for the next process.
    passive: with the damping, dry friction and springs of the joints in, M a + h = tau + p(q, v): by default
    equations leave them out, and a step has them.
    product: of the derivative by all arguments with a vector, which costs some two or three calls and forms no
    matrix. "vjp": f(*state, [parameters], *w) gives the cotangents of the arguments, J^T w, for w of the shapes of
    the results; "jvp": f(*state, [parameters], *x) gives J x. Tangents of q are of size nv, in the frames of the
    joints; with tangents="numbers" of size nq, where q holds quaternions those of f of q made unit.
    "value_and_vjp", "value_and_jvp": the results before them. ("vjp", "jvp"): one of the other, here second
    derivatives times a vector.
    symmetric: bodies that are symmetric about their hinge (wheels, rotors, flanges) need not turn: "auto", those
    that are to rounding; False, none; names of links, an asymmetry, or True for 1e-6,
    take others for it and warn of what that changes.
    link, frame, kind: where the quantity takes them. `f.how` says how the Function is computed.

    wrt: the derivative by these, one more trailing axis (nv) for each: ("q",), ("q", "v"), ...; on the tangent
    space, derivatives of M(q + d) in one d at d = 0. "t", ("t", "t"): along a motion, from q, v, a, j, s. Such a
    Function takes dtype, layout, packed, check, and method, budget, link, frame, kind:
    `drevo.compiler.differentiate.derivative`. "constrained_dynamics" with wrt, contacts= and constraints=:
    accelerations and reactions by q, v and tau, `drevo.constraint.program.constrained_derivative`.

    "step": f(q, v, tau) -> (q1, v1, forces, residual) of a Robot on a ground; it takes check, parameters, product
    and tangents, and dt, ground, law, method, repeat and others: `drevo.contact.step.compile_step`.
    Raises TraceError, EmitError, InputError, as for an option that what is compiled does not have.
    """
    given = Options(
        dtype, target, parameters, layout, packed, formalism, f_ext, check, cache, passive, product, tangents,
        symmetric, {**options},
    )  # fmt: skip
    derived = not (isinstance(wrt, (tuple, list)) and not wrt)
    if isinstance(quantity, str) and quantity == "step":
        return _step(robot, given, {"wrt": wrt} if derived else {})
    warn_open_tree(robot, quantity)
    if not derived:
        _chosen("a quantity", given, [f.name for f in fields(Options)[:-1]], OF_LINK)
        return compile_quantity(robot, quantity, given)
    asked_for: Any = quantity  # which is checked there, as the robot is
    if isinstance(asked_for, str) and asked_for == "constrained_dynamics":
        from ..constraint.program import Constrained, constrained_derivative

        names = _names(constrained_derivative, Constrained.of)
        more = _chosen("a derivative of constrained_dynamics", given, names)
        held: Any = robot
        return constrained_derivative(held, wrt, **more)
    from ..compiler.differentiate import derivative

    more = _chosen("a derivative", given, _names(derivative))
    return derivative(robot, asked_for, wrt, **more)


OF_LINK = tuple(LinkOptions.__annotations__)


def _step(robot: Any, given: Options, more: Mapping[str, Any]) -> Function:
    from ..contact.step import compile_step

    if isinstance(robot, Model):
        raise InputError("compile: a step is one of a Robot: give what drevo.load returns")
    asked_for = replace(given, details={**given.details, **more})
    chosen = _chosen("a step", asked_for, _names(compile_step), ("check",))
    return compile_step(robot, spec=Spec(check=chosen.pop("check", True)), **chosen)


def _names(*functions: Callable[..., Any]) -> list[str]:
    """The names of the options of functions, which take a robot and what is computed before them."""
    every = [p for f in functions for p in inspect.signature(f).parameters.values()]
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in every if p.kind in kinds and p.name not in ("robot", "quantity", "wrt", "spec")]


def _chosen(compiled: str, given: Options, options: Sequence[str], more: Sequence[str] = ()) -> dict[str, Any]:
    """The options that a caller chose, by name; InputError for one that what is compiled does not have."""
    values = {f.name: (getattr(given, f.name), f.default) for f in fields(Options)[:-1]}
    chosen = {k: x for k, (x, usual) in values.items() if not (type(x) is type(usual) and x == usual)}
    chosen |= given.details
    for name in chosen:
        if name not in (takes := [*options, *more]):
            near = did_you_mean(name, takes)
            raise InputError(f"compile: {compiled} takes no option {name!r}{near}; it takes {', '.join(takes)}")
    return chosen
