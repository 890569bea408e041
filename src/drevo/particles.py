"""Motions of particles x(alpha, t) and their superposition: Alyushin 2022, (3)-(9) and (41)-(47).

alpha (..., 3) is where a particle is at the start, m, world axes; t (...) is the time, s. The superposition (7)
puts what the inner motion gives in place of alpha in the outer one: x(alpha, t) = x_ex(x_in(alpha, t), t). With
the outer motion's gradient F and angular velocity w_ex, v = v_ex + F v_in and a = a_ex + F a_in + 2 w_ex x F v_in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .compiler.tracer import Tracer, nodes_of
from .errors import InputError, NumericsError
from .io.given import Array, asked, asked_methods, callable_given, finite, numbers
from .mechanics.algorithms.kinematics import pose
from .mechanics.configuration import neutral, state
from .mechanics.jet import Jet, jet
from .mechanics.scalar import Scalar, Vector, cos, sin
from .mechanics.tree import build_tree
from .model.dynamics import Described
from .robot.parts import statements

__all__ = ["ParticleMotion", "link_particles", "sliding", "superposed", "turning"]


@asked_methods
class ParticleMotion:
    """A motion x(alpha, t) of all particles of a body: where they are, how fast, and how the body deforms.

    x: a function of three scalars and the time that gives three scalars, of + - * / and drevo.sin, cos, sqrt.
    """

    def __init__(self, x: Callable[[Vector, Scalar], Vector]) -> None:
        self.x = callable_given("ParticleMotion: x", x, "of alpha and t")

    def position(self, alpha: ArrayLike, t: ArrayLike) -> Array:
        """Places x(alpha, t), (..., 3), m."""
        return self._derivative(alpha, t, 0)

    def velocity(self, alpha: ArrayLike, t: ArrayLike) -> Array:
        """Velocities of the particles, (..., 3), m/s."""
        return self._derivative(alpha, t, 1)

    def acceleration(self, alpha: ArrayLike, t: ArrayLike) -> Array:
        """Accelerations of the particles, (..., 3), m/s^2, that of Coriolis in."""
        return self._derivative(alpha, t, 2)

    def gradient(self, alpha: ArrayLike, t: ArrayLike) -> Array:
        """F = dx/dalpha, (..., 3, 3), 1; of a rigid body its rotation."""
        at, moment = _places(alpha, t)
        columns = [self._values([Jet(x, float(i == k)) for i, x in enumerate(at)], moment) for k in range(3)]
        return _stacked([x.d for column in columns for x in column], moment.shape).reshape(
            *moment.shape, 3, 3
        ).swapaxes(-1, -2)  # fmt: skip

    def determinant(self, alpha: ArrayLike, t: ArrayLike) -> Array:
        """det F, (...), the volume of a particle by what it was: 1 where nothing deforms."""
        return np.asarray(np.linalg.det(self.gradient(alpha, t)))

    def after(self, inner: ParticleMotion) -> ParticleMotion:
        """The superposition (7): this motion carries what `inner` moves."""
        return ParticleMotion(lambda alpha, t: self.x(inner.x(alpha, t), t))

    def text(self) -> list[str]:
        """The motion written out: lines "name = formula" with x, y, z of alpha, beta, gamma and t last."""
        tracer = Tracer("particles")
        alpha, (t,) = tracer.input("alpha", 3), tracer.input("t", 1)
        edges = {n: tracer.graph.edge(x) for n, x in zip("xyz", self._called(list(alpha), t))}
        called = dict(zip(nodes_of([*alpha, t]), ("alpha", "beta", "gamma", "t")))
        return [f"{name} = {formula}" for name, formula in statements(tracer.graph, edges, called)]

    def _derivative(self, alpha: ArrayLike, t: ArrayLike, order: int) -> Array:
        at, moment = _places(alpha, t)
        values = self._values([Jet(x) for x in at], Jet(moment, 1.0))
        return _stacked([(x.x, x.d, x.dd)[order] for x in values], moment.shape)

    def _values(self, alpha: Vector, t: Scalar) -> list[Jet]:
        return [jet(x) for x in self._called(alpha, t)]

    def _called(self, alpha: Vector, t: Scalar) -> list[Scalar]:
        values = list(self.x(alpha, t))
        if len(values) != 3:
            raise InputError(f"a motion of particles gave {len(values)} numbers; x(alpha, t) gives [x, y, z]")
        return values


@asked
def superposed(*motions: ParticleMotion) -> ParticleMotion:
    """The superposition of motions, the innermost first: each next one carries what those before it move."""
    if not motions or not all(isinstance(x, ParticleMotion) for x in motions):
        raise InputError("superposed takes motions, as of drevo.particles.turning, the innermost first")
    return reduce(lambda inner, outer: outer.after(inner), motions)


@asked
def turning(
    axis: Sequence[float], angle: Callable[[Scalar], Scalar], through: Sequence[float] = (0.0, 0.0, 0.0)
) -> ParticleMotion:
    """A rotation by angle(t), rad, about an axis (3,) through a point (3,), m: (3), (5), (6)."""
    n, at = _unit("turning: axis", axis), finite("turning: through", through, (3,), InputError).tolist()
    callable_given("turning: angle", angle, "angle(t)")

    def x(alpha: Vector, t: Scalar) -> list[Scalar]:
        r, s, c = [a - p for a, p in zip(alpha, at)], sin(angle(t)), cos(angle(t))
        along = n[0] * r[0] + n[1] * r[1] + n[2] * r[2]
        cross = [n[i] * r[j] - n[j] * r[i] for i, j in ((1, 2), (2, 0), (0, 1))]
        return [p + c * a + s * b + (along * k) * (1.0 - c) for p, a, b, k in zip(at, r, cross, n)]

    return ParticleMotion(x)


@asked
def sliding(direction: Sequence[float], way: Callable[[Scalar], Scalar]) -> ParticleMotion:
    """A translation by way(t), m, along a direction (3,): (8). After a rotation about it, a screw (43)."""
    n = _unit("sliding: direction", direction)
    callable_given("sliding: way", way, "way(t)")
    return ParticleMotion(lambda alpha, t: [a + k * way(t) for a, k in zip(alpha, n)])


@asked
def link_particles(
    robot: Described, link: str, path: Callable[[Scalar], Vector], start: ArrayLike | None = None
) -> ParticleMotion:
    """The motion of the particles of a robot's link, (44)-(47), when q follows path(t), nq scalars.

    alpha is where a particle is in the configuration `start`, (nq,); the neutral one without it.
    """
    tree = build_tree(robot.model)
    (q0,) = state(robot.model, "link_particles: start", q=neutral(robot.model) if start is None else start)
    T0 = np.array([[float(x) for x in row] for row in pose(tree, q0.tolist(), link)])
    back = np.linalg.inv(T0).tolist()

    def x(alpha: Vector, t: Scalar) -> list[Scalar]:
        local = [row[0] * alpha[0] + row[1] * alpha[1] + row[2] * alpha[2] + row[3] for row in back[:3]]
        T = pose(tree, list(path(t)), link)
        return [row[0] * local[0] + row[1] * local[1] + row[2] * local[2] + row[3] for row in T[:3]]

    return ParticleMotion(x)


def _unit(argument: str, given: Sequence[float]) -> list[float]:
    axis = finite(argument, given, (3,), InputError)
    size = float(np.linalg.norm(axis))
    if size == 0.0:
        raise InputError(f"{argument} is zero; give the direction, such as (0, 0, 1)")
    return [float(x) for x in axis / size]


def _places(alpha: ArrayLike, t: ArrayLike) -> tuple[list[Array], Array]:
    """Three coordinates and the time, of one shape."""
    at, moment = numbers("alpha", alpha, (..., 3)), numbers("t", t)
    shape = np.broadcast_shapes(at.shape[:-1], moment.shape)
    return [np.broadcast_to(at[..., k], shape) for k in range(3)], np.broadcast_to(moment, shape)


def _stacked(values: Sequence[Any], shape: tuple[int, ...]) -> Array:
    out = np.stack([np.broadcast_to(np.asarray(x, float), shape) for x in values], -1)
    if not np.isfinite(out).all():
        raise NumericsError("a motion of particles is not finite there; give it times at which it is defined")
    return out
