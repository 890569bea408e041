"""write_out and export, for everything that has a program: quantities, derivatives, constrained dynamics, laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..compiler.pages.derivation import Derivation
from ..errors import InputError, shown
from ..io.given import asked, flag, short_text, spelled_out
from ..model.quantities import ExportOptions, LinkOptions

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Unpack

    from ..codegen.graph.program import Program
    from ..compiler.export import Exported
    from ..constraint.kinds import Constraint, Contact
    from ..model.description import Model
    from ..model.dynamics import Described

CONSTRAINED, BRANCHES = "constrained_dynamics", "inverse_kinematics"


@asked
@spelled_out(LinkOptions)
def write_out(
    robot: Described | Model,
    name: str,
    *,
    wrt: str | Sequence[str] = (),
    contacts: Sequence[Contact | Mapping[str, Any]] | None = None,
    constraints: Sequence[Constraint] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    at: ArrayLike | None = None,
    formalism: str = "auto",
    symbols: str | Sequence[str] | None = None,
    objective: str = "add+mul",
    sequence: str | None = None,
    mode: str | None = None,
    passive: bool = False,
    symmetric: bool | str | float | Sequence[str] = "auto",
    merge_equal: bool = False,
    limits: bool = False,
    given: Mapping[str, float | None] | None = None,
    **options: Unpack[LinkOptions],
) -> Derivation:
    """The written-out equations of a quantity, a Derivation: .latex(), .markdown(), .html(), .python(), .c(), ...

    name: a quantity of the catalogue, "lagrange_equations", with inertia, centrifugal, Coriolis, gyroscopic and
    gravity terms separate, or "constrained_dynamics": accelerations and reactions under contacts, constraints and
    the robot's own loops, with feedback by stabilise=(damping, stiffness); at: a configuration where the rows
    that are independent are chosen. "inverse_kinematics" of a link=: its closed form, all branches and which of
    them are real; limits and given, {joint: value or None}, are those of `Robot.closed_form`.
    wrt: a derivative of it: names of "q" (on the tangent space), "v", "a", "tau", an axis each, or "t".
    symbols: which parameters stay symbols: None (all are numbers), "all", or names and patterns such as "*.mass",
    "link2.com"; each is a parameter of its own, and `.parameters` has their values by name.
    merge_equal: equal lengths, and equal moments of symmetric links, are one symbol; the document says which.
    formalism: "auto" takes the one with the fewest operations under `objective`
    ("mul" | "add+mul" | "fma" | "add+mul+trig").
    sequence: "paper" is the path of the paper itself, by vectors and matrices first; of Telegin's mass matrix
    there are "reuse" and "merged" (amplitude and phase) too. Derivatives of the mass matrix, gravity, bias and
    inverse dynamics are so written by "zaremba", as are kinetic energy, pose, velocity, acceleration and Jacobian
    of a link; constrained dynamics by "zaremba" or "kovalchuk".
    mode: the approximation of the kinetic energy by formalism="alyushin": "A", "B" or "C" take polar moments as
    constant, which is not exact; the document says so, with the error at sample states. None is exact.
    passive: with the damping, dry friction and springs of the joints in.
    symmetric: bodies that are symmetric about their hinge (wheels, rotors, flanges) need not turn: "auto", those
    that are to rounding (symbols are, if merge_equal); False, none; names of links, an asymmetry, or
    True for 1e-6, take others for it and warn of what that changes.
    link, relative_to, frame, kind, axes, damping, terms: where the quantity takes them.
    Placement angles within 1e-9 rad of a quarter turn are taken as quarter turns.
    Raises InputError (no robot, no names), TraceError (a quantity, formalism or option that there is not).
    """
    from ..compiler.pages.write_out import quantity_equations, written_program

    under = {"contacts": contacts, "constraints": constraints, "stabilise": stabilise, "at": at}
    plain: dict[str, Any] = {
        "formalism": formalism, "symbols": symbols, "objective": objective, "sequence": sequence, "mode": mode,
        "symmetric": symmetric, "merge_equal": merge_equal,
    }  # fmt: skip
    special, details = has_own_program(name, wrt), {**options, **_branch_options(name, limits, given)}
    if special and sequence == "paper" and name != BRANCHES:
        if unfit := [k for k in ("objective", "mode", "symmetric") if plain[k] not in (None, "add+mul", "auto")]:
            raise InputError(f"write_out: {unfit[0]} does not go with sequence='paper'")
        return page_of_program(robot, name, wrt, {**under, "passive": passive}, details, plain)
    if not special:
        if unfit := [k for k, x in under.items() if x is not None]:
            raise InputError(f"write_out: {unfit[0]} belongs to {CONSTRAINED}, not to {name!r:.60}")
        return quantity_equations(robot, name, **plain, passive=passive, **options)
    usual = {"formalism": "auto", "objective": "add+mul", "symmetric": "auto", "merge_equal": False}
    if unfit := [k for k, x in plain.items() if x != usual.get(k)]:
        raise InputError(f"write_out: {unfit[0]} belongs to quantities, not to {CONSTRAINED} or to derivatives")
    return written_program(program_of(robot, name, wrt, {**under, "passive": passive}, details), robot)


def _branch_options(name: Any, limits: bool, given: Mapping[str, float | None] | None) -> dict[str, Any]:
    """The options of inverse kinematics in closed form; InputError where something else is wanted."""
    if not isinstance(given, Mapping) and given is not None:
        raise InputError(f"{BRANCHES}: given is {shown(given)}; it must be {{joint: value or None}}")
    limits = flag(f"{BRANCHES}: limits", limits)
    if isinstance(name, str) and name == BRANCHES:
        return {"limits": limits, **(given or {})}
    if limits or given:
        raise InputError(f"{'limits' if limits else 'given'} belongs to {BRANCHES}, not to {shown(name)}")
    return {}


def page_of_program(
    robot: Any, name: str, wrt: str | Sequence[str], under: Mapping[str, Any], options: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Derivation:  # fmt: skip
    """A derivative or constrained dynamics by its paper's own path, compared with the program of the plain way."""
    from ..compiler.differentiate import derivative_page
    from ..compiler.pages.write_out import page_by_lines, written_program
    from ..constraint.program import Constrained
    from ..model.draft import axes_in, model_of

    plain = written_program(program_of(robot, name, wrt, under, options), robot)
    model, formalism = model_of(robot, "write_out"), given["formalism"]
    if name == CONSTRAINED:
        if has_own_program("", wrt):
            raise InputError(f"write_out: {CONSTRAINED} by sequence='paper' takes no wrt")
        page = partial(Constrained.of(robot, **under).page, formalism)
    else:
        page = partial(derivative_page, model, name, axes_in(wrt, "write_out: wrt"), formalism)
    return page_by_lines(page, model, given["symbols"], given["merge_equal"], plain)


@asked
@spelled_out(ExportOptions)
def export(
    what: Any,
    quantity: str | Sequence[str],
    target: str,
    *,
    wrt: str | Sequence[str] = (),
    contacts: Sequence[Contact | Mapping[str, Any]] | None = None,
    constraints: Sequence[Constraint] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    at: ArrayLike | None = None,
    dtype: str = "float64",
    folder: str | Path = ".",
    name: str = "",
    **options: Unpack[ExportOptions],
) -> Exported:
    """Writes a quantity for another processor into a folder: nothing else has to be installed for it.

    what: a robot, and quantity, wrt, contacts, at (nq,), ... as `write_out` takes them; or a linear model, an
    observer's estimator, a law of `drevo.control` or a schedule, and quantity is the name of the function.
    target: "fmu" (FMI 3.0, model exchange and co-simulation) and "simulink" (an S-function in C) hold the robot
    that moves under torques: quantity "forward_dynamics", or what a law, which is then inside, and its torques are
    added; options parameters (by default "*.mass"), passive (True), q0 (at the start). "c": one C file. Others:
    "cortex-m4f", "cortex-m7", "aarch64", "riscv64", "windows", "macos" (object files, with a header and an
    example in C), "wasm" (a module, with a loader and an example in JavaScript), "ptx" (for NVIDIA's driver).
    name: of the function; by default robot_quantity, in C the quantity's own. parameters, formalism, f_ext,
    passive, product and those of links: as `drevo.compile` takes them; a C file takes the options of `write_out`.
    The functions are of pointers only, call nothing and allocate nothing: NAME computes one sample, NAME_batch n
    samples row by row; of WebAssembly NAME_columns several at once. They check nothing: angles beyond the limit
    that the header states give NaN. Raises InputError, EmitError, TraceError.
    """
    from ..compiler.export import export_program, export_quantity
    from ..plant import PLANT_TARGETS, export_plant

    under: dict[str, Any] = {"contacts": contacts, "constraints": constraints, "stabilise": stabilise, "at": at}
    given: dict[str, Any] = {**options}
    programmed = callable(getattr(what, "program", None))
    quantities = not programmed and not has_own_program(quantity, wrt)
    if short_text("export: target", target) in PLANT_TARGETS or programmed or quantities:
        of = f"a {type(what).__name__}" if programmed else f"{quantity!r:.60}"
        unfit = [*(k for k, x in under.items() if x is not None), *(["wrt"] if wrt else [])]
        if unfit := [*unfit, *(given if programmed and target not in PLANT_TARGETS else ())]:
            raise InputError(f"export of {of} takes no {unfit[0]!r}")
    where: dict[str, Any] = {"dtype": short_text("export: dtype", dtype), "folder": folder}
    if target in PLANT_TARGETS:
        return export_plant(what, quantity, target, name=name, **where, **given)
    if target == "c":
        return _export_c(what, quantity, name, where, {"wrt": wrt, **under, **given})
    if quantities:
        return export_quantity(what, quantity, target, name=name, **where, **given)
    if not isinstance(quantity, str):
        raise InputError(f"export: one name is needed here, not {quantity!r:.60}")
    if programmed:
        program, called = what.program(quantity), name or quantity
    else:
        under["passive"] = given.pop("passive", False)
        given |= _branch_options(quantity, given.pop("limits", False), given.pop("given", None))
        program = program_of(what, quantity, wrt, under, given)
        called = name or f"{what.name}_{program.name}"
    robot = getattr(getattr(what, "robot", what), "model", None)
    return export_program(program, target, called, robot, **where)


def _export_c(thing: Any, quantity: Any, name: str, where: Mapping[str, Any], given: dict[str, Any]) -> Exported:
    """One C file, of what has a program of its own or of a quantity."""
    from ..compiler.export import export_c

    if where["dtype"] != "float64":
        raise InputError(f"export: C is written in float64, not {where['dtype']!r:.40}")
    if callable(getattr(thing, "program", None)):
        return export_c(thing.write_out(name or quantity), name or quantity, where["folder"])
    given["symbols"] = given.pop("parameters", None)
    called = name or "_".join(
        [getattr(thing, "name", ""), *([quantity] if isinstance(quantity, str) else quantity)]
    )
    return export_c(write_out(thing, quantity, **given), called, where["folder"], name)


def has_own_program(name: Any, wrt: Any) -> bool:
    """True if the quantity with its `wrt` needs a program of its own: it is none of the catalogue's by itself."""
    special = isinstance(name, str) and name in (CONSTRAINED, BRANCHES)
    return special or not isinstance(wrt, (tuple, list)) or bool(wrt)


def program_of(
    robot: Any, name: str, wrt: str | Sequence[str], under: Mapping[str, Any], options: Mapping[str, Any]
) -> Program:
    """The program of a derivative, of constrained dynamics and theirs, or of inverse kinematics in closed form."""
    from ..model.draft import axes_in, model_of

    if isinstance(name, str) and name == CONSTRAINED:
        from ..constraint.program import Constrained, constrained_axes

        if options:
            raise InputError(f"{CONSTRAINED} takes no {next(iter(options))!r}")
        axes = constrained_axes(robot, wrt) if has_own_program("", wrt) else ()
        return Constrained.of(robot, **under).program(axes)
    if isinstance(name, str) and name == BRANCHES:
        from ..kinematics.closed.closed_form import written_branches

        if unfit := [*(k for k, x in under.items() if x), *(["wrt"] if has_own_program("", wrt) else [])]:
            raise InputError(f"{BRANCHES} takes no {unfit[0]!r}")
        return written_branches(model_of(robot, "write_out"), **options)
    from ..compiler.differentiate import written_derivative

    if unfit := [k for k, x in under.items() if x is not None and x is not False]:
        raise InputError(f"the derivative of {name}: {unfit[0]} is not taken here")
    return written_derivative(model_of(robot, "write_out"), name, axes_in(wrt, "write_out: wrt"), options)
