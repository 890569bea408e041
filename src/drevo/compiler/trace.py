"""From a model, a quantity and a choice of symbols to a Program.

The door to compiled code: what is asked of a model, the program that answers it, and the memo of a robot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..codegen.call.function import Extra, Function, Plain, Spec, obtain
from ..codegen.graph.node import Expr
from ..codegen.graph.program import Program
from ..codegen.store.build import Ahead
from ..codegen.store.key import key_text, request
from ..codegen.store.memo import memoised
from ..documents.letters import LETTERS_OF_RESULTS
from ..errors import TraceError
from ..mechanics.algorithms.kinematics import moving_links
from ..mechanics.algorithms.passive import with_forces
from ..mechanics.rotation import ZERO_DIFFERENCE
from ..mechanics.tree import Tree
from ..model.description import IDENTITY, Model
from ..model.draft import did_you_mean
from ..model.dynamics import Described
from ..model.quantities import CATALOGUE, Quantity, names_of, options_of, quantity
from ..model.regularity import require_masses
from ..model.rotations import to_rpy
from ..model.validation import NO_AXIS
from .formalisms import common_algorithm
from .search import Compute
from .tracer import ParameterSymbols, Tracer

STEPS_NOTE = "gamma_i is the coordinate of a step of a joint by formula, G_i its derivative by the joint's own."


def trace(
    model: Model,
    name: str | Sequence[str] | Quantity,
    *,
    parameters: Sequence[str] = (),
    compiled: bool = False,
    external: Sequence[str] = (),
    compute: Compute | Mapping[str, Compute] | None = None,
    prepare: Callable[[Tree], Tree] | None = None,
    snap: float = ZERO_DIFFERENCE,
    options: Mapping[str, Any] | None = None,
    passive: bool = False,
    meta: Mapping[str, object] | None = None,
    merge_equal: bool = False,
) -> Program:
    """The program of one quantity, or of several that share their work.

    parameters: names or patterns of model scalars that stay symbols ("*" is all of them).
    merge_equal: those that are equal by value are one symbol. compiled: for machine code, pivots of M are guarded.
    external: links with a wrench (force, moment at the link's origin, world axes) as an input "f_ext:LINK".
    compute, prepare: a formalism's own algorithm (or those of some of the quantities, by name) and what it does
    to the tree before. passive: with the forces that act in the joints.
    """
    wanted = _wanted(model, name)
    listed = [x.name for x in wanted]
    title, acting = "_".join(listed), passive or "passive" in listed
    t = Tracer(
        title, model, parameters=parameters, compiled=compiled, snap=snap, prepare=prepare, acting=acting,
        merge_equal=merge_equal,
    )  # fmt: skip
    names = dict.fromkeys(s for x in wanted for s in x.state)
    state = dict(zip(names, t.state(*names)))
    forces = {"external": _forces(t, wanted, external)} if external else {}
    chosen = _options(wanted, options, t.tree)
    often = Counter(name for x in wanted for name, _ in x.outputs)
    for x in wanted:
        run = _algorithm(x.name, compute, passive)
        given = {k: chosen[k] for k in x.options if k in chosen}
        result = run(t.tree, *(state[s] for s in x.state), **given, **forces)
        _declare(t, x.chosen(given), result, often)
    about, own = _about(t, title) | dict(meta or {}), (meta or {}).get("assumptions", ())
    said = list(own) if isinstance(own, (list, tuple)) else [own]
    said += assumptions(model, t.symbols) if parameters and not compiled else []
    return t.program(named=True, **about | {"assumptions": (*said, *t.context.assumed)})


def in_letters(paper: str, x: Quantity) -> Quantity:
    """A quantity whose result has the letter of a paper."""
    letter = LETTERS_OF_RESULTS.get(paper, {}).get(x.name, "")
    return x._replace(outputs=((letter, x.outputs[0][1]),)) if letter else x


def _wanted(model: Model, name: str | Sequence[str] | Quantity) -> list[Quantity]:
    wanted = [name] if isinstance(name, Quantity) else [quantity(n) for n in names_of(name)]
    for x in wanted:
        if not x.kinematic:
            require_masses(model, x.name)
    return wanted


def _about(t: Tracer, title: str) -> dict[str, object]:
    """The facts that a document states."""
    about: dict[str, object] = {"quantity": title, "formalism": "newton_euler"}
    if t.tree.formulas:
        t.context.assume(STEPS_NOTE)
    if t.context.notes:
        about["notes"] = dict(t.context.notes)
    if t.context.lines:
        about["lines"] = tuple(t.context.lines)
    return about


def _options(wanted: Sequence[Quantity], given: Mapping[str, Any] | None, tree: Tree) -> dict[str, str]:
    """Those of the quantities that the catalogue knows."""
    listed = [x.name for x in wanted if x.name in CATALOGUE]
    return options_of(listed, given or {}, tree.frames) if listed else {}


def _algorithm(name: str, compute: Compute | Mapping[str, Compute] | None, passive: bool) -> Compute:
    own = compute.get(name) if isinstance(compute, Mapping) else compute
    run = own or common_algorithm(name)
    return with_forces(name, run) if passive else run


def _declare(t: Tracer, x: Quantity, result: Any, often: Mapping[str, int]) -> None:
    """The results of a quantity; those of one name, as T of poses and of the kinetic energy, by the quantity's."""
    own = x.name if len(x.outputs) == 1 else f"{x.name}_{{}}"
    for (name, shape), value in zip(x.outputs, result if len(x.outputs) > 1 else (result,)):
        t.output(name if often[name] == 1 else own.format(name), value, output_shape(t.tree, shape))


def _forces(t: Tracer, wanted: Sequence[Quantity], external: Sequence[str]) -> dict[str, list[Expr]]:
    forces = {}
    for link in external:
        if link not in t.tree.frames:
            hint = did_you_mean(str(link), t.tree.frames)
            raise TraceError(
                f"f_ext: link {link!r} is not in the robot{hint}; links are {', '.join(t.tree.frames)}"
            )
        if not all(x.external for x in wanted):
            raise TraceError(f"{wanted[0].name} takes no external wrenches")
        forces[link] = t.input(f"f_ext:{link}", 6)
    return forces


def output_shape(tree: Tree, shape: Sequence[int | str]) -> tuple[int, ...]:
    """The shape of an output of the catalogue, in numbers."""
    known = {"nv": tree.nv, "links": len(moving_links(tree))}
    return tuple(known[s] if isinstance(s, str) else s for s in shape)


def requested(
    robot: Described | Model,
    asked: tuple[object, ...],
    program: Callable[[], Program],
    *,
    spec: Spec | None = None,
    lasting: bool = True,
    shared: bool = False,
    extra: Extra | None = None,
    plain: Plain | None = None,
    ahead: Ahead | None = None,
) -> Function:
    """The Function of what `program` gives, made once for a robot; a Model remembers nothing.

    asked: what is wanted, a name first; it must tell all that the program depends on beside the model. lasting:
    it is kept on disk. shared: it depends on what is asked alone, so robots share it.
    extra, plain, ahead: see `obtain`.
    """
    how, wanted = spec or Spec(), key_text(asked)
    model = robot if isinstance(robot, Model) else robot.model

    def make() -> Function:
        text = wanted if shared else request(model, wanted)
        return obtain(text, program, how, extra=extra, plain=plain, cache=lasting, ahead=ahead)

    return make() if robot is model else memoised(robot, (wanted, how), make)


TENSOR_ENTRIES = (("xx", 0, 0), ("xy", 0, 1), ("xz", 0, 2), ("yy", 1, 1), ("yz", 1, 2), ("zz", 2, 2))


def assumptions(model: Model, symbols: ParameterSymbols) -> list[str]:
    """The sentences of a page whose parameters are symbols."""
    zeros: dict[str, list[str]] = {}
    for name, x in _scalars(model):
        if not x and symbols.wanted(name):
            owner, entry = name.rsplit(".", 1)
            zeros.setdefault(owner, []).append(entry)
    listed = "; ".join(f"{owner} {' '.join(entries)}" for owner, entries in zeros.items())
    said = [f"Zero in this robot, and left out: {listed}."] if zeros else []
    turned = "; ".join(_turned(model))
    said += [f"Directions are numbers (turns: roll, pitch, yaw): {turned}."] if turned else []
    return said + [f"{name} = {of}: equal in this robot, one symbol." for name, of in symbols.merged.items()]


def _scalars(model: Model) -> Iterator[tuple[str, float]]:
    """Lengths, moments and gravity by their names."""
    for link in model.links:
        if link.inertial is not None:
            yield from ((f"{link.name}.com.{a}", x) for a, x in zip("xyz", link.inertial.com))
            tensor = link.inertial.tensor
            yield from ((f"{link.name}.inertia.{a}", tensor[i][j]) for a, i, j in TENSOR_ENTRIES)
    for joint in model.joints:
        yield from ((f"{joint.name}.origin.{a}", x) for a, x in zip("xyz", joint.origin))
    yield from ((f"gravity.{a}", x) for a, x in zip("xyz", model.gravity))


def _turned(model: Model) -> Iterator[str]:
    """Axes of joints and turns of frames, in degrees."""
    for joint in model.joints:
        parts = [f"axis {_listed(x)}" for x in (joint.axis, joint.axis2) if x and joint.kind not in NO_AXIS]
        turns = ((joint.rotation, "turned by"), (joint.child_rotation, "link turned by"))
        parts += [f"{word} {_listed(map(math.degrees, to_rpy(R)), '°')}" for R, word in turns if R != IDENTITY]
        if parts:
            yield f"{joint.name} {', '.join(parts)}"


def _listed(numbers: Iterable[float], unit: str = "") -> str:
    return f"({', '.join(f'{x + 0.0:.6g}{unit}' for x in numbers)})"
