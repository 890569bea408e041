"""Recipe: what is wanted of a model, checked; and the program that computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InputError, one_of
from ..io.given import flag, short_text
from ..model.description import Model
from ..model.draft import names_in
from ..model.quantities import CATALOGUE, names_of, options_of, takes_forces
from ..model.regularity import require_masses

if TYPE_CHECKING:
    from ..codegen.graph.program import Program

TANGENTS = ("joints", "numbers")
PRODUCTS = ("vjp", "jvp", "value_and_vjp", "value_and_jvp")
MAX_REGROUPED_NODES = 10_000  # beyond it the search takes longer than what it finds saves


@dataclass(frozen=True)
class Recipe:
    """All that a program depends on besides the model. options: link, frame, kind; without: levers not pulled."""

    quantity: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    formalism: str = "auto"
    external: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    passive: bool = False
    product: tuple[str, ...] = ()
    tangents: str = "joints"
    without: tuple[str, ...] = ()

    @staticmethod
    def of(
        model: Model,
        quantity: str | Sequence[str],
        *,
        parameters: str | Sequence[str] = (),
        formalism: str = "auto",
        external: str | Sequence[str] = (),
        passive: bool = False,
        product: str | Sequence[str] = (),
        tangents: str = "joints",
        without: tuple[str, ...] = (),
        options: Mapping[str, Any],
    ) -> Recipe:
        """The recipe of a call, its arguments checked. Raises InputError, TraceError, ModelError."""
        wanted = names_of(quantity)
        for name in wanted:
            if not CATALOGUE[name].kinematic:
                require_masses(model, name)
        kinds = names_in(product, "compile: product")
        frames = one_of("compile: tangents", tangents, TANGENTS, InputError)
        return Recipe(
            wanted, names_in(parameters, "compile: parameters"), short_text("compile: formalism", formalism),
            names_in(external, "compile: f_ext"),
            options_of(wanted, options, [l.name for l in model.links]),
            flag("compile: passive", passive) and takes_forces(wanted),
            tuple(one_of("compile: product", k, PRODUCTS, InputError) for k in kinds),
            frames if kinds else TANGENTS[0], without,
        )  # fmt: skip

    @property
    def takes_parameters(self) -> bool:
        """True if parameters are the last argument; those of products stand after the state."""
        return bool(self.parameters) and not self.product

    def program(self, model: Model) -> Program:
        """The program that is compiled; nothing of this runs when the cache is warm."""
        from ..codegen.graph import levers
        from ..mechanics.tree import build_tree

        # sums are regrouped after their derivatives are made: these look for rotations as they were traced
        late = ("regroup",) if self.product and self.formalism == "auto" else ()
        with levers.without(*self.without, *late):
            program = self._quantities(model)
        tree = build_tree(model)
        if self.product:
            from .products import product_program

            program = product_program(program, tree, self.product, self.tangents == "numbers")
            with levers.without(*self.without):
                program = self._regrouped(program)
        return program

    def _regrouped(self, program: Program) -> Program:
        from ..codegen.graph import regroup

        if self.formalism == "auto" and len(program.order()) <= MAX_REGROUPED_NODES:
            return regroup.regrouped(program, early=True, names=False)
        return program

    def _quantities(self, model: Model) -> Program:
        from ..mechanics.tree import build_tree
        from .compile_cost import require_affordable, require_regular
        from .formalisms import candidates
        from .trace import trace

        require_affordable(model, self.quantity)
        if any(CATALOGUE[x].inverse for x in self.quantity):
            require_regular(model)
        traced: dict[str, Any] = {
            "parameters": self.parameters, "compiled": True, "external": self.external, "options": self.options,
            "passive": self.passive,
        }  # fmt: skip
        if self.formalism not in ("auto", "newton_euler"):
            from .compete import compete

            return compete(model, self.quantity, formalism=self.formalism, **traced).program
        (best,) = candidates(build_tree(model), self.quantity, self.formalism, self.external)
        program = trace(model, self.quantity, **traced, compute=best.compute, meta={"formalism": best.formalism})
        return self._regrouped(program)
