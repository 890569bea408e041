"""Functions of JAX and PyTorch: NumPy's bits, and derivatives that their own checkers accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import strategies
import tolerances as tol
from reference import largest

import drevo
from drevo.errors import InputError, NumericsError

Array = np.ndarray
QUANTITIES = {"inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "kinetic_energy": 2, "poses": 1}


def state(robot: drevo.Robot, *lead: int) -> list[Array]:
    rng = np.random.default_rng(0)
    return [robot.random(rng, *lead), *rng.uniform(-1.0, 1.0, (2, *lead, robot.nv))]


TOUCHING = """<mujoco><worldbody><body name="trunk" pos="0 0 .12"><freejoint/><geom size=".1" mass="1"/>
 <body name="leg" pos=".1 0 0"><joint name="hip" type="ball" damping=".2" armature=".01"/>
  <geom pos=".1 0 -.1" size=".03" density="500"/></body></body></worldbody></mujoco>"""
STEPS = [{"law": "soft", "parameters": ["leg.mass", "friction"]}, {"law": "coulomb", "friction": 0.5}]


def touching(**how: Any) -> tuple[drevo.Robot, list[Array]]:
    """A floating robot with a ball joint that slides on a ball and a leg; its state, efforts and parameters."""
    robot = drevo.load(TOUCHING)
    q = robot.integrate(robot.neutral(), np.array([0, 0, -0.0203, 0.01, 0.02, 0, 0, -0.3, 0]))
    v, tau = 0.2 * np.random.default_rng(1).uniform(-1.0, 1.0, (2, robot.nv))
    f = drevo.compile(robot, "step", dt=2e-3, **how)
    x = [q, v, tau, *([np.array([p for _, p in f.parameters])] if f.parameters else [])]
    found = f(*x)
    assert found.residual < 1e-9 and (np.abs(found.forces[:, 2]) > 0.1).sum() > 1, found
    return robot, x


def unit(np: Any, join: Any, q: Any) -> Any:
    """q of `touching` with its quaternions made unit."""
    parts = (q[..., 3:7], q[..., 7:])
    return join([q[..., :3], *(x / np.sqrt((x * x).sum(-1))[..., None] for x in parts)], -1)


@pytest.fixture
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch


# -- JAX -------------------------------------------------------------------------------------------------------


@pytest.mark.needs("jax")
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_jax_has_the_bits_and_both_modes(jax: Any, quantity: str) -> None:
    from jax.test_util import check_grads

    robot = drevo.load("scara")
    x = state(robot, 20)[: QUANTITIES[quantity]]
    f, g = drevo.jax.function(robot, quantity), drevo.compile(robot, quantity)
    wanted = g(*x)
    assert np.array_equal(f(*x), wanted)
    assert np.array_equal(jax.jit(jax.vmap(f))(*x), wanted)
    assert np.array_equal(jax.jit(f)(*(y[0] for y in x)), g(*(y[0] for y in x)))  # by the code for one
    assert np.array_equal(jax.vmap(f, (0, *[None] * (len(x) - 1)))(x[0], *(y[0] for y in x[1:])),
                          g(x[0], *(y[0] for y in x[1:])))  # fmt: skip
    check_grads(f, tuple(y[0] for y in x), order=1, modes=("fwd", "rev"))


@pytest.mark.needs("jax")
def test_jax_differentiates_to_any_order(jax: Any) -> None:
    """Jacobians by both modes are Drevo's matrices; second derivatives are symmetric, and those of the modes."""
    robot = drevo.load("puma560")
    q, v, a = state(robot)
    f = drevo.jax.function(robot, "inverse_dynamics")
    matrices = drevo.compile(robot, "inverse_dynamics_derivatives")(q, v, a)
    for mode in (jax.jacfwd, jax.jacrev):
        for found, wanted in zip(mode(f, (0, 1, 2))(q, v, a), matrices):
            assert largest(found - wanted) <= tol.DYNAMICS * largest(matrices[0])
    power = lambda q: (f(q, v, a) * v).sum()  # noqa: E731
    H = jax.hessian(power)(q)
    assert largest(H - H.T) <= tol.DYNAMICS * largest(H)
    assert largest(H - jax.jacrev(jax.jacrev(power))(q)) <= tol.DYNAMICS * largest(H)


@pytest.mark.needs("jax")
def test_jax_parameters_quaternions_and_types(jax: Any) -> None:
    robot = drevo.Robot(strategies.all_kinds("floating"))
    q, v, a = state(robot)
    f = drevo.jax.function(robot, "inverse_dynamics", parameters=["*.mass"])
    values = drevo.compile(robot, "inverse_dynamics", parameters=["*.mass"]).parameters
    p = np.array([x for _, x in values])
    slope = jax.grad(lambda p: f(q, v, a, p).sum())(p)
    wanted = [(f(q, v, a, p + e) - f(q, v, a, p)).sum() for e in np.eye(len(p))]  # linear in each mass
    assert largest(slope - np.array(wanted)) <= 1e3 * tol.SAME * largest(np.array(wanted))
    longer = np.where((np.arange(len(q)) >= 3) & (np.arange(len(q)) < 7), q, 0.0)  # the base's quaternion
    along = jax.jvp(lambda q: f(q, v, a, p), (q,), (longer,))[1]
    assert largest(along) <= tol.DYNAMICS * largest(f(q, v, a, p))
    single = drevo.jax.function(drevo.load("scara"), "gravity", dtype="float32")(np.zeros((3, 4)))
    assert single.dtype == np.float32
    assert f(*(np.zeros((0, n)) for n in (robot.nq, robot.nv, robot.nv, len(p)))).shape == (0, robot.nv)


@pytest.mark.needs("jax")
@pytest.mark.parametrize("how", STEPS, ids=lambda x: x["law"])
def test_jax_goes_through_steps_of_a_free_base(jax: Any, how: dict[str, Any]) -> None:
    """Three steps that touch, in both modes; one of single precision; robots that differ in what touches."""
    from jax.test_util import check_grads

    jnp, (robot, x) = jax.numpy, touching(**how)
    f, value = drevo.jax.function(robot, "step", dt=2e-3, **how), drevo.compile(robot, "step", dt=2e-3, **how)(*x)
    assert all(map(np.array_equal, f(*x), value[:2])) and all(map(np.array_equal, jax.jit(f)(*x), value[:2]))

    def chain(q: Any, v: Any, *more: Any) -> Any:
        start = unit(jnp, jnp.concatenate, q), v
        return jax.lax.scan(lambda at, _: (tuple(f(*at, *more)), None), start, length=3)[0]

    check_grads(jax.jit(chain), tuple(x), order=1, atol=1e-3, rtol=1e-3)
    three = drevo.jax.function(robot, "step", dt=2e-3, repeat=3, **how)
    for found, wanted in zip(jax.jacrev(three)(*x), jax.jacrev(chain)(*x)):
        assert largest(found - wanted) <= 1e-9 * largest(wanted)
    single = drevo.jax.function(robot, "step", dt=2e-3, dtype="float32", **how)
    both = (f, x[0]), (single, x[0].astype("float32"))
    slopes = [jax.jit(jax.grad(lambda q, g=g: g(q, *x[1:])[1].sum()))(q) for g, q in both]
    assert slopes[1].dtype == np.float32 and largest(slopes[0] - slopes[1]) <= 1e-5 * largest(slopes[0])
    ghost = drevo.load(TOUCHING.replace('size=".1"', 'size=".1" contype="0" conaffinity="0"'))
    assert largest(drevo.jax.function(ghost, "step", dt=2e-3, **how)(*x)[1] - value[1]) > 1e-3  # code of its own
    with pytest.raises(InputError, match="derivatives of a step are of first order"):
        jax.hessian(lambda q: f(q, *x[1:])[1].sum())(x[0])
    with pytest.raises(InputError, match="a step gives q1 and v1, which have gradients; leave out last"):
        drevo.jax.function(robot, "step", dt=2e-3, last=True)


@pytest.mark.needs("jax")
def test_jax_refusals(jax: Any) -> None:
    f = drevo.jax.function(drevo.load("scara"), "bias")
    with pytest.raises(InputError, match=r"bias\(q, v\) takes 2 arrays, not 1"):
        f(np.zeros(4))
    with pytest.raises(InputError, match="bias: q has shape"):
        f(np.zeros(3), np.zeros(4))
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="bias: a result is not finite"):
        jax.block_until_ready(f(np.full(4, np.nan), np.zeros(4)))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InputError, match="jax_enable_x64"):
        drevo.jax.function(drevo.load("scara"), "bias")


# -- PyTorch ---------------------------------------------------------------------------------------------------


@pytest.mark.needs("torch")
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_torch_has_the_bits_and_gradients(torch: Any, quantity: str) -> None:
    robot = drevo.load("scara")
    x = state(robot, 20)[: QUANTITIES[quantity]]
    f, wanted = drevo.torch.function(robot, quantity), drevo.compile(robot, quantity)(*x)
    given = [torch.from_numpy(y) for y in x]
    assert np.array_equal(f(*given), wanted)
    alone = [y[0].clone().requires_grad_() for y in given]
    assert np.array_equal(f(*(y[:1].requires_grad_() for y in given)).detach(), wanted[:1])
    assert torch.autograd.gradcheck(f, alone)
    batch = torch.func.vmap(f, (0, *[None] * (len(x) - 1)))(given[0], *(y[0] for y in given[1:]))
    assert np.array_equal(batch, f(given[0], *(y[0] for y in given[1:])))


@pytest.mark.needs("torch")
def test_torch_differentiates_twice_and_compiles(torch: Any) -> None:
    robot = drevo.load("scara")
    f = drevo.torch.function(robot, "inverse_dynamics")
    x = [torch.from_numpy(y).requires_grad_() for y in state(robot)]
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
    from drevo import torch as bridge

    (name, *_) = bridge._DEFINED
    operator = getattr(torch.ops.drevo, name).default
    n = len(operator._schema.arguments)
    if n == 3:
        assert set(torch.library.opcheck(operator, tuple(x)).values()) == {"SUCCESS"}
    whole = torch.compile(f, fullgraph=True, backend="aot_eager")
    assert torch.equal(whole(*x), f(*x))
    whole(*x).sum().backward()
    matrices = drevo.compile(robot, "inverse_dynamics_derivatives")(*(y.detach().numpy() for y in x))
    assert largest(x[0].grad.numpy() - matrices[0].sum(0)) <= tol.DYNAMICS * largest(matrices[0])
    q, v, a = (y.detach() for y in x)
    for mode in (torch.func.jacfwd, torch.func.jacrev):
        assert largest(mode(f)(q, v, a).numpy() - matrices[0]) <= tol.DYNAMICS * largest(matrices[0])


@pytest.mark.needs("torch")
@pytest.mark.parametrize("how", STEPS, ids=lambda x: x["law"])
def test_torch_goes_through_steps_of_a_free_base(torch: Any, how: dict[str, Any]) -> None:
    robot, x = touching(**how)
    f = drevo.torch.function(robot, "step", dt=2e-3, **how)
    given = [torch.from_numpy(y).requires_grad_() for y in x]

    def chain(q: Any, v: Any, *more: Any) -> Any:
        q = unit(torch, torch.cat, q)
        for _ in range(3):
            q, v = f(q, v, *more)
        return q, v

    assert torch.autograd.gradcheck(chain, given, atol=1e-3, rtol=1e-3, check_forward_ad=True)
    three = drevo.torch.function(robot, "step", dt=2e-3, repeat=3, **how)
    single = drevo.torch.function(robot, "step", dt=2e-3, repeat=3, dtype="float32", **how)
    slopes = [torch.autograd.grad(g(*given)[1].sum(), given[0])[0] for g in (chain, three, single)]
    assert largest((slopes[0] - slopes[1]).numpy()) <= 1e-9 * largest(slopes[0].numpy())
    assert largest((slopes[0] - slopes[2]).numpy()) <= 1e-5 * largest(slopes[0].numpy())
    whole = torch.compile(f, fullgraph=True, backend="aot_eager")
    assert all(map(torch.equal, whole(*given), f(*given)))


@pytest.mark.needs("torch")
def test_learned_inertias_start_where_the_robot_is(torch: Any) -> None:
    """Log-Cholesky there and back, and every parameter has a gradient; whatever the numbers, a body can be so."""
    robot = drevo.Robot(strategies.all_kinds("floating"))
    learned = drevo.torch.Inertias(robot)
    f = drevo.torch.function(learned.robot, "inverse_dynamics", parameters=learned.names)
    x = state(robot)
    wanted = robot.inverse_dynamics(*x)
    found = f(*map(torch.from_numpy, x), learned())
    assert largest(found.detach().numpy() - wanted) <= tol.DYNAMICS * largest(wanted)
    found.sum().backward()
    assert (learned.logarithms.grad != 0).all()
    with torch.no_grad():
        learned.logarithms += torch.randn_like(learned.logarithms)
        made = dict(zip(learned.names, learned().tolist()))
    for link in {n.split(".")[0] for n in made}:
        I = np.array([[made[f"{link}.inertia.{''.join(sorted(p + r))}"] for p in "xyz"] for r in "xyz"])
        low, mid, high = np.linalg.eigvalsh(I)
        assert made[f"{link}.mass"] > 0 and low > 0 and high < low + mid


@pytest.mark.needs("torch")
def test_torch_refusals(torch: Any) -> None:
    f = drevo.torch.function(drevo.load("scara"), "bias")
    zero = torch.zeros(4, dtype=torch.float64)
    with pytest.raises(InputError, match=r"bias\(q, v\) takes 2 arrays, not 1"):
        f(zero)
    with pytest.raises(NumericsError, match=r"bias: q\[0\] is nan"):
        f(zero * torch.nan, zero)
    with pytest.raises(InputError, match="complex"):
        f(zero * 1j, zero)
    with pytest.raises(InputError, match="link 'nobody' has no mass"):
        drevo.torch.Inertias(drevo.load("scara"), ["nobody"])


# -- CasADi ----------------------------------------------------------------------------------------------------


@pytest.mark.needs("casadi")
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("quantity", [*QUANTITIES, "forward_dynamics_derivatives"])
def test_casadi_has_the_values(quantity: str, base: str) -> None:
    robot = drevo.Robot(strategies.all_kinds(base))
    g = drevo.compile(robot, quantity)
    x = state(robot)[: len(g.inputs)]
    wanted = g(*x)
    found = drevo.casadi.function(robot, quantity)(*x)
    for y, z in zip(found if len(g.outputs) > 1 else [found], wanted if len(g.outputs) > 1 else [wanted]):
        made = np.array(y.full()).reshape(np.shape(z))
        assert largest(made - z) <= tol.SAME * 10 * largest(z)


@pytest.mark.needs("casadi")
def test_casadi_differentiates_and_keeps_zeros() -> None:
    casadi = pytest.importorskip("casadi")
    robot = drevo.load("puma560")
    f = drevo.casadi.function(robot, "inverse_dynamics", parameters=["*.mass"])
    q, v, a = state(robot)
    p = np.array([y for _, y in drevo.compile(robot, "inverse_dynamics", parameters=["*.mass"]).parameters])
    symbols = [casadi.SX.sym(n, k) for n, k in (("q", 6), ("v", 6), ("a", 6), ("p", len(p)))]
    J = casadi.Function("J", symbols, [casadi.jacobian(f(*symbols), symbols[0])])(q, v, a, p)
    wanted = drevo.compile(robot, "inverse_dynamics_derivatives")(q, v, a)[0]
    assert largest(J.full() - wanted) <= tol.DYNAMICS * largest(wanted)
    assert J.nnz() < 36  # gravity and the first joint
    M = drevo.casadi.function(drevo.load("biped"), "mass_matrix")
    assert M.nnz_out() < M.numel_out()
    assert M.name_in() == ["q"] and f.name_in() == ["q", "v", "a", "parameters"]
