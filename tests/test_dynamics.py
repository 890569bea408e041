"""Consumers take whatever has the methods of a robot's dynamics: here Pinocchio stands in the robot's place."""

from collections import Counter

import numpy as np
import pytest
from oracles import pinocchio_of

import drevo.robots as robots
from drevo.constraint.closing import hold
from drevo.constraint.dynamics import constrained_dynamics, impact
from drevo.constraint.inverse import constrained_inverse_dynamics
from drevo.control import linearise, track
from drevo.mechanics import configuration
from drevo.simulate import simulate


class Standing:
    """The protocol on Pinocchio's numbers, which take one state at a time. It counts what it is asked."""

    def __init__(self, model):
        self.model, self.name, self.nq, self.nv = model, model.name, model.nq, model.nv
        self.oracle, self.asked = pinocchio_of(model), Counter()

    def _each(self, what, *given):
        self.asked[what] += 1
        given = [np.asarray(x, float) for x in given]
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        rows = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in given]
        found = np.array([getattr(self.oracle, what)(*row) for row in zip(*rows)])
        return found.reshape(*lead, *found.shape[1:])

    def mass_matrix(self, q):
        return self._each("mass_matrix", q)

    def bias(self, q, v):
        return self._each("bias", q, v)

    def inverse_dynamics(self, q, v, a):
        return self._each("inverse_dynamics", q, v, a)

    def forward_dynamics(self, q, v, tau):
        return self._each("forward_dynamics", q, v, tau)

    def inverse_dynamics_derivatives(self, q, v, a):
        return *self.oracle.inverse_dynamics_derivatives(q, v, a), self.mass_matrix(q)

    def kinetic_energy(self, q, v):
        return self._each("kinetic_energy", q, v)

    def potential_energy(self, q):
        return self._each("potential_energy", q)

    def integrate(self, q, dv):
        return configuration.integrate(self.model, np.asarray(q), np.asarray(dv))

    def difference(self, q0, q1):
        return configuration.difference(self.model, np.asarray(q0), np.asarray(q1))


@pytest.fixture(params=[robots.puma560, robots.biped], ids=["fixed base", "floating base"])
def pair(request):
    """A robot, Pinocchio in its place, three states with efforts, and a point held of its last joint."""
    robot = request.param()
    q = robot.random(np.random.default_rng(1), 3)
    v, tau = np.random.default_rng(2).normal(size=(2, 3, robot.nv))
    held = [{"link": robot.model.moving_joints[-1].child, "point": (0.0, 0.02, 0.05)}]
    return robot, Standing(robot.model), q, v, tau, held


def close(found, expected):
    shown = getattr(expected, "shown", None) or getattr(expected, "__dataclass_fields__", None)
    for name in shown or vars(expected):
        x, y = getattr(found, name), getattr(expected, name)
        if isinstance(y, np.ndarray):
            np.testing.assert_allclose(
                x, y, rtol=1e-7, atol=1e-9 * (1.0 + np.abs(y).max(initial=0.0)), err_msg=name
            )


def test_constraints_take_an_oracle(pair):
    robot, standing, q, v, tau, held = pair
    a = constrained_dynamics(robot, q, v, tau, contacts=held).a
    for ask, given in (
        (constrained_dynamics, (q, v, tau)),
        (constrained_inverse_dynamics, (q, v, a)),
        (impact, (q, v)),
    ):
        close(ask(standing, *given, contacts=held), ask(robot, *given, contacts=held))
    for x, y in zip(hold(standing, q, v, contacts=held), hold(robot, q, v, contacts=held)):
        np.testing.assert_allclose(x, y, atol=1e-9)
    assert all(standing.asked[x] for x in ("mass_matrix", "bias", "inverse_dynamics"))


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_motion_under_a_law_of_python_takes_an_oracle(pair, method):
    robot, standing, q, _, _, held = pair
    for extra in ({}, {"contacts": held}):
        tables = [
            simulate(x, q[0], tau=lambda t, q, v: -1e-3 * v, duration=0.02, dt=2e-3, method=method, **extra)
            for x in (standing, robot)
        ]
        close(*tables)
        np.testing.assert_allclose(*(x.energy for x in tables), rtol=1e-9)
    assert all(standing.asked[x] for x in ("forward_dynamics", "mass_matrix", "kinetic_energy"))


def test_control_takes_an_oracle(pair):
    robot, standing, q, v, tau, held = pair
    for extra in ({}, {"contacts": held}):
        close(*(linearise(x, q[0], v[0], tau[0], **extra) for x in (standing, robot)))
    way = robot.integrate(q[:1], np.linspace(0.0, 0.1, 4)[:, None] * v[0])
    rates, none = np.tile(v[0], (4, 1)), np.zeros((4, robot.nv))
    weights = np.eye(2 * robot.nv), np.eye(robot.nv)
    trackers = [track(x, 0.1, way, rates, none, *weights) for x in (standing, robot)]
    close(*trackers)
    np.testing.assert_allclose(*(x(0.15, q[0], v[0]) for x in trackers), rtol=1e-7)
