"""Compiled Functions of quantities: what is asked of a robot, checked, then machine code made or read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..codegen.call.function import Function, Spec
from ..codegen.store.build import Ahead
from ..codegen.store.key import request
from ..errors import EmitError, InputError, one_of
from ..io.given import flag
from ..model.description import Model
from ..model.draft import model_of, names_in
from ..model.dynamics import Described
from ..model.quantities import CATALOGUE
from .recipe import Recipe
from .trace import requested
from .ways.choice import function_by_bodies

TARGETS = ("cpu", "cuda")


@dataclass(frozen=True)
class Options:
    """The options of a compiled quantity, as `drevo.compile` documents them. details: link, frame, kind."""

    dtype: str = "float64"
    target: str = "cpu"
    parameters: str | Sequence[str] = ()
    layout: str = "rows"
    packed: bool = False
    formalism: str = "auto"
    f_ext: str | Sequence[str] = ()
    check: bool = True
    cache: bool = True
    passive: bool | None = None  # False for a quantity
    product: str | Sequence[str] = ()
    tangents: str = "joints"
    symmetric: bool | str | float | Sequence[str] = "auto"
    details: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, model: Model, quantity: str | Sequence[str], without: tuple[str, ...] = ()) -> Recipe:
        """The recipe of a quantity with these options, checked."""
        return Recipe.of(
            model, quantity, parameters=self.parameters, formalism=self.formalism, external=self.f_ext,
            passive=False if self.passive is None else self.passive, product=self.product, tangents=self.tangents,
            without=without, options=self.details,
        )  # fmt: skip


USUAL_OPTIONS = Options()


def compile_quantity(
    robot: Described | Model, quantity: str | Sequence[str], options: Options = USUAL_OPTIONS
) -> Function:
    """The Function of a quantity, or of several that share their work: see `drevo.compile`."""
    whole = model_of(robot, "compile")
    one_of("compile: target", options.target, TARGETS, EmitError)
    model, without = whole, ()  # type: tuple[Model, tuple[str, ...]]
    if not (isinstance(options.symmetric, str) and options.symmetric == "auto"):
        from .pages.symmetry import symmetrised

        model, allowed, _ = symmetrised(whole, options.symmetric)
        without = () if allowed else ("wheels",)
        robot = robot if model is whole else model
        options = replace(options, symmetric="auto" if allowed else False)
    recipe = options.recipe(model, quantity, without)
    spec = Spec(
        dtype=options.dtype, layout=options.layout, packed=options.packed, parameters=recipe.takes_parameters,
        check=options.check,
    )  # fmt: skip
    loadable = all(CATALOGUE[name].external for name in recipe.quantity)
    plain = not (recipe.external or recipe.product or robot is model) and loadable
    forces = _Forces(robot, recipe, options) if plain else None
    program = partial(recipe.program, model)
    function: Any
    if options.target == "cuda":
        from ..codegen.gpu.cuda import obtain_cuda

        function = obtain_cuda(request(model, recipe), program, spec, options.cache)
    else:
        function = function_by_bodies(model, recipe, spec, forces, options.cache)
        cost = Ahead(f"{', '.join(recipe.quantity)} of {model.name!r}", partial(_seconds, model, recipe))
        function = function or requested(
            robot, (recipe,), program, spec=spec, lasting=options.cache, extra=forces, ahead=cost
        )
    function.recipe = partial(compile_quantity, model, recipe.quantity, options)
    return function  # type: ignore[no-any-return]  # one on a GPU is called alike, and is no Function


def _seconds(model: Model, recipe: Recipe) -> float:
    from .compile_cost import seconds_written  # late: it would slow every warm start

    return seconds_written(model, recipe.quantity, bool(recipe.product))


class _Forces:
    """Handles calls with f_ext={link: wrench} and passive=: by functions of those links, each made once.

    known: by links in the order in which calls give them, one by itself, what the entry calls without Python.
    """

    def __init__(self, robot: Any, recipe: Recipe, options: Options) -> None:
        self.robot, self.recipe, self.options = robot, recipe, options
        self.states = tuple(dict.fromkeys(s for name in recipe.quantity for s in CATALOGUE[name].state))
        self.functions: dict[tuple[tuple[str, ...], bool], Function] = {}
        self.known: dict[str | tuple[str, ...], Callable[..., Any]] = {}

    def function(self, links: tuple[str, ...], passive: bool) -> Function:
        if (links, passive) not in self.functions:
            options = replace(self.options, f_ext=links, passive=passive, target="cpu")
            f = self.functions[links, passive] = compile_quantity(self.robot, self.recipe.quantity, options)
            if f.fast is not None and not self.recipe.parameters and passive == self.recipe.passive:
                self.known[links if len(links) != 1 else links[0]] = f.fast
        return self.functions[links, passive]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self.recipe.quantity[0]
        known = {*self.states, "parameters", "out", "threads", "f_ext", "passive"}
        if unknown := ", ".join(repr(k) for k in kwargs if k not in known):
            raise InputError(f"{name} takes no argument {unknown}; it takes f_ext, passive, out and threads")
        passive = flag(f"{name}: passive", kwargs.pop("passive", self.recipe.passive))
        forces = kwargs.pop("f_ext", None)
        forces = {} if forces is None else forces
        if not isinstance(forces, Mapping):
            raise InputError(f"f_ext is a dictionary of links and wrenches, not {type(forces).__name__}")
        links = tuple(sorted(names_in(list(forces), "f_ext: links")))
        f, wrenches, n = self.function(links, passive), [forces[k] for k in links], len(self.states)
        if len(args) >= n:  # they come between the state and the parameters
            return f(*args[:n], *wrenches, *args[n:], **kwargs)
        return f(*args, **{f"f_ext:{k}": w for k, w in zip(links, wrenches)}, **kwargs)
