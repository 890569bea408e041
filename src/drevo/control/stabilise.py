"""Control that makes a robot keep f(q, t) = 0 and return to it: Zaremba (3.1)-(3.5), corrected.

    tau = h - M { Gamma^+ (gamma + G1 f' + G0 f) - (1 - Gamma^+ Gamma) w }                                  (3.1)

Gamma^+ is the Moore-Penrose inverse, so any number of rows is allowed. Where Gamma has full row rank the outputs
obey f'' + G1 f' + G0 f = 0 (3.5); redundant rows need scalar gains for it, and the free motion is that of w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constraints import Kinematics, Rows
from ..algorithms.inertia_matrix import Factors, SingularError
from ..algorithms.inverse_dynamics import inverse_dynamics
from ..constrained import RANK, constraint_terms
from ..constraint import Constraint, Weld, all_rows, collect
from ..errors import InputError
from ..graph.node import Graph
from ..graph.program import Input, Output, Program
from ..io.brief import brief
from ..mechanics.scalar import Scalar, dot
from ..mechanics.tree import Tree, build_tree

if TYPE_CHECKING:
    from ..robot import Robot
    from ..runtime.function import Function

Array = np.ndarray[Any, Any]
THIN = 1e-6  # a pivot this far below its diagonal leaves 10 digits of a Gram matrix: singular values take over
Wish = Callable[[Any, Any, Any], Any]


@brief
@dataclass(frozen=True, eq=False)
class Stabiliser:
    """The law (3.1): efforts from (t, q, v), leading batch dimensions allowed; one compiled kernel.

    Where Gamma has lost rank, or nearly, the kernel's factors have no digits: there singular values take over.
    `over_scalars` is the law for drevo.simulate.Control, which compiles it into the motion; it needs full rank
    all the way.
    """

    robot: Robot
    constraints: tuple[Constraint, ...]
    gamma0: Array
    gamma1: Array
    wish: ArrayLike | Wish | None = None

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        x, u = np.asarray(q, float), np.asarray(v, float)
        w = np.broadcast_to(self.wished(t, x, u), u.shape)
        if self.compiled is None:
            return self.by_singular_values(t, x, u, w)
        tau, pivots, diagonal = self.compiled(x, u, w, np.array([float(t)]))
        thin = ~np.all(pivots > THIN * diagonal, axis=-1)
        if np.any(thin):
            tau[thin] = self.by_singular_values(t, x[thin], u[thin], w[thin])
        return np.asarray(tau)

    def wished(self, t: Any, q: Any, v: Any) -> Any:
        """The accelerations w of (3.1) for the motion that the constraint leaves."""
        if self.wish is None:
            return np.zeros(self.robot.nv)
        return self.wish(t, q, v) if callable(self.wish) else np.asarray(self.wish, float)

    def over_scalars(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """tau over scalars; the wish, if it is a function, is given arrays of them."""
        w = self.wished(t, np.array(q, object), np.array(v, object))
        return law(build_tree(self.robot.model), self, t, q, v, list(w))[0]

    def by_singular_values(self, t: float, q: Array, v: Array, w: Array) -> Array:
        """tau where Gamma may have any rank."""
        c = constraint_terms(self.robot, self.constraints, q, v, t)
        feedback = c.gamma + _times(self.gamma1, c.rate) + _times(self.gamma0, c.value)
        back = np.linalg.pinv(c.jacobian, rcond=RANK)
        a = w - _times(back, feedback + _times(c.jacobian, w))  # (3.3)
        return np.asarray(self.robot.inverse_dynamics(q, v, a))

    @cached_property
    def compiled(self) -> Function | None:
        """(q, v, w, t) -> tau, and the pivots of Gamma Gamma^T or Gamma^T Gamma with its diagonal; None where they
        are structurally singular."""
        from ..runtime.function import Spec, obtain

        try:
            program = law_program(self)
        except SingularError:
            return None
        return obtain("", lambda: program, Spec(check=False), cache=False)  # singular rows are seen to above


def law(
    tree: Tree, s: Stabiliser, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], w: Sequence[Scalar]
) -> tuple[list[Scalar], Factors, list[Scalar]]:
    """tau of (3.1), and the factors of Gamma Gamma^T (m <= n) or Gamma^T Gamma with its diagonal."""
    rows = all_rows(s.constraints, Kinematics(tree, q, v), t)
    G, columns = rows.jacobian, [list(c) for c in zip(*rows.jacobian)]
    error = [dot(row, w) + x for row, x in zip(G, outputs_wanted(s, rows))]
    wide = len(G) <= tree.nv
    product = [
        [dot(x, y) for y in (G if wide else columns)[: i + 1]] for i, x in enumerate(G if wide else columns)
    ]
    factors = Factors([dict(enumerate(row)) for row in product], range(len(product)))
    if wide:  # Gamma^+ = Gamma^T (Gamma Gamma^T)^-1
        y = factors.solve(error)
        back = [dot(c, y) for c in columns]
    else:  # Gamma^+ = (Gamma^T Gamma)^-1 Gamma^T
        back = factors.solve([dot(c, error) for c in columns])
    a = [x - y for x, y in zip(w, back)]  # (3.3)
    return inverse_dynamics(tree, q, v, a), factors, [row[-1] for row in product]


def outputs_wanted(s: Stabiliser, rows: Rows) -> list[Scalar]:
    """gamma + G1 f' + G0 f."""
    return [
        b + dot([float(x) for x in g1], rows.rate) + dot([float(x) for x in g0], rows.value)
        for b, g1, g0 in zip(rows.bias, s.gamma1, s.gamma0)
    ]


def law_program(s: Stabiliser) -> Program:
    """The law with inputs q, v, w, t."""
    graph, model = Graph(), s.robot.model
    tree = build_tree(model)
    sizes = {"q": model.nq, "v": model.nv, "w": model.nv, "t": 1}
    state: dict[str, list[Any]] = {n: [graph.input(f"{n}[{i}]") for i in range(k)] for n, k in sizes.items()}
    inputs = tuple(Input(n, (k,), tuple(x.edge >> 1 for x in state[n])) for n, k in sizes.items())
    tau, factors, diagonal = law(tree, s, state["t"][0], state["q"], state["v"], state["w"])
    parts = (("tau", tau), ("pivots", factors.pivots), ("diagonal", diagonal))
    outputs = tuple(Output(n, (len(x),), tuple(graph.edge(e) for e in x)) for n, x in parts)
    starts = [b.q + b.nq - 4 for b in tree.bodies if b.nq >= 4]
    units = tuple(tuple(x.edge >> 1 for x in state["q"][k : k + 4]) for k in starts)
    about = {"robot": model.name, "quantity": "stabilising control", "formalism": "newton_euler"}
    return Program("stabilise", graph, inputs, (), outputs, {}, (), units, meta=about)


def stabilise(
    robot: Robot,
    constraint: Constraint | Sequence[Constraint],
    gamma0: ArrayLike,
    gamma1: ArrayLike,
    v: ArrayLike | Wish | None = None,
) -> Stabiliser:
    """The control law tau = law(t, q, v) of (3.1): all joints driven, leading batch dimensions allowed.

    gamma0, gamma1: numbers, one per row, or matrices; f'' + gamma1 f' + gamma0 f = 0 must die out.
    v: accelerations wished for, (nv,) or a callable (t, q, v); the constraint keeps what it needs of them.
    f = q - q_p(t) gives the computed torque. Raises InputError.
    """
    given = list(constraint) if isinstance(constraint, Sequence) else [constraint]
    if not given:
        raise InputError("stabilise: there is no constraint; give at least one")
    if robot.model.loops:
        raise InputError(f"stabilise: robot {robot.name!r} has loops; the law (3.1) is for open trees")
    found = collect(robot.model, None, given)
    for c in found:
        if isinstance(c, Weld) and c.rotation is None:
            raise InputError(
                f"stabilise: the weld of {c.link_a!r} and {c.link_b!r} has no rotation to keep; give rotation="
            )
    m = sum(c.size for c in found)
    G0, G1 = gain("gamma0", gamma0, m), gain("gamma1", gamma1, m)
    refuse_unstable(G0, G1)
    return Stabiliser(robot, found, G0, G1, v)


def gain(name: str, given: ArrayLike, m: int) -> Array:
    """A gain as a matrix (m, m)."""
    g = np.asarray(given, float)
    if g.ndim < 2 and g.shape in ((), (m,)):
        return np.diag(np.broadcast_to(g, (m,)))
    if g.shape != (m, m):
        raise InputError(f"stabilise: {name} has shape {g.shape}; {m} rows take a number, ({m},) or ({m}, {m})")
    return g


def refuse_unstable(G0: Array, G1: Array) -> None:
    """[[0, 1], [-G0, -G1]] must be Hurwitz."""
    m = len(G0)
    poles = np.linalg.eigvals(np.block([[np.zeros((m, m)), np.eye(m)], [-G0, -G1]]))
    worst = poles[np.argmax(poles.real)]
    if not worst.real < 0.0:
        raise InputError(
            f"stabilise: the gains are not Hurwitz: f'' + gamma1 f' + gamma0 f = 0 has the pole {worst:.3g}, "
            "which does not decay; take both gains positive definite"
        )


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


__all__ = ["Stabiliser", "Wish", "gain", "law", "law_program", "refuse_unstable", "stabilise"]
