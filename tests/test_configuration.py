"""The configuration manifold: integrate and difference are each other's inverse, at every size of step."""

from __future__ import annotations

import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

import drevo
from drevo.compiler import products as compiled
from drevo.mechanics import configuration, manifold
from drevo.mechanics.configuration import difference, integrate, random
from drevo.mechanics.jet import Jet
from drevo.model.description import Inertial, Joint, Limit, Link, Model

BODY = Inertial(1.0, (0.1, 0.2, 0.3), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
KINDS = ("free", "spherical", "planar", "universal", "cylindrical", "prismatic", "revolute")


def model(kinds: tuple[str, ...] = KINDS) -> Model:
    """One joint of every kind in a chain."""
    links = [Link("world"), *(Link(k, BODY) for k in kinds)]
    joints = [
        Joint(f"{k}_joint", k, links[i].name, k, axis2=(0.0, 1.0, 0.0) if k == "universal" else None)
        for i, k in enumerate(kinds)
    ]
    return Model("kinds", tuple(links), tuple(joints))


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.05, 0.11, 0.5, 1.5])
def test_difference_undoes_integrate(size: float) -> None:
    """difference(q, integrate(q, dv)) = dv for rotations below pi."""
    rng = np.random.default_rng(1)
    m = model()
    q = random(m, rng, (50,))
    dv = rng.uniform(-1.0, 1.0, (50, m.nv)) * size
    back = difference(m, q, integrate(m, q, dv))
    assert np.max(np.abs(back - dv)) <= 1e-14 * (1.0 + size) * 10


def test_quaternions_stay_unit() -> None:
    """10,000 steps do not drift off the sphere."""
    rng = np.random.default_rng(2)
    r = drevo.Robot(model(KINDS[:2]))
    q = r.neutral()
    for k in range(10_000):
        q = r.integrate(q, rng.normal(size=r.nv)) if k % 50 else integrate(r.model, q, rng.normal(size=r.nv))
    assert abs(np.linalg.norm(q[3:7]) - 1.0) <= 4e-16 and abs(np.linalg.norm(q[7:11]) - 1.0) <= 4e-16


def test_random_respects_limits_and_shapes() -> None:
    """Finite limits bound the samples; leading shape is kept; quaternions are unit."""
    bounded = Joint("j", "revolute", "world", "a", limit=Limit(-0.1, 0.2))
    m = Model("m", (Link("world"), Link("a", BODY)), (bounded,))
    q = random(m, np.random.default_rng(0), (1000,))
    assert q.shape == (1000, 1) and q.min() >= -0.1 and q.max() <= 0.2
    q = random(model(), np.random.default_rng(0), (3, 4))
    assert q.shape == (3, 4, model().nq)
    assert np.allclose(np.linalg.norm(q[..., 3:7], axis=-1), 1.0, atol=1e-15)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_random_draws_joint_by_joint(shape: tuple[int, ...]) -> None:
    """The numbers of a seed: uniform ones for each joint in turn, then normal ones where it holds a quaternion."""
    r, ours, theirs = drevo.Robot(model()), np.random.default_rng(7), np.random.default_rng(7)
    low, high = configuration.bounds(r.model)
    for _ in range(3):
        want = np.empty((*shape, r.nq))
        for j, sq, _ in r.model.slices():
            want[..., sq] = theirs.uniform(low[sq], high[sq], (*shape, j.nq))
            if j.turns:
                x = theirs.normal(size=(*shape, 4))
                want[..., sq.stop - 4 : sq.stop] = x / np.linalg.norm(x, axis=-1, keepdims=True)
        assert np.abs(r.random(ours, shape) - want).max() < 1e-15
    q = r.neutral()
    q[:] = 3.0
    assert np.abs(r.neutral()).sum() == 2.0 and r.neutral()[6] == r.neutral()[10] == 1.0


# -- exponential and logarithm over scalars -----------------------------------------------------------------------

SIZES = (0.0, 1e-160, 1e-9, 1e-4, 0.03, 0.3, 0.32, 1.0, 2.0, 3.0)  # rad; 0.316 is where series end
BODY_RATES = ((7, slice(0, 7), slice(0, 6)),)


def hat(m: np.ndarray) -> np.ndarray:
    """A twist as a matrix of se(3)."""
    x, y, z = m[3:]
    return np.array([[0, -z, y, m[0]], [z, 0, -x, m[1]], [-y, x, 0, m[2]], [0, 0, 0, 0]])


def dense(entries: Any, n: int = 6) -> np.ndarray:
    out = np.zeros((n, n))
    for at, x in entries.items():
        out[at] = x
    return out


def placed(q: list[Any]) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = np.array(manifold.from_quaternion(*q[3:]))
    T[:3, 3] = q[:3]
    return T


@pytest.mark.parametrize("size", SIZES)
def test_motions_are_exponentials_of_matrices(size: float) -> None:
    """Of free joints: expm of the twist; the Jacobian by dv its derivative, by q the adjoint; their inverses."""
    rng = np.random.default_rng(3)
    origin = [0.0] * 6 + [1.0]
    for _ in range(5):
        m = rng.normal(size=6)
        m[3:] *= size / np.linalg.norm(m[3:])
        q = [float(x) for x in manifold.exp_free(origin, m)]
        E = expm(hat(m))
        assert np.abs(placed(q) - E).max() < 1e-14
        assert np.abs(np.array(manifold.log_free(origin, q)) - m).max() < 4e-15
        by_q, by_v = (dense(x) for x in manifold.exponential_rates(BODY_RATES, origin, m))
        by_0, by_1 = (dense(x) for x in manifold.logarithm_rates(BODY_RATES, origin, q))
        for k, e in enumerate(np.eye(6)):
            rate = np.linalg.inv(E) @ expm_frechet(hat(m), hat(e), compute_expm=False)
            moved = np.linalg.inv(E) @ hat(e) @ E
            assert np.abs(hat(by_v[:, k]) - rate).max() < 1e-13 and np.abs(hat(by_q[:, k]) - moved).max() < 1e-13
        assert np.abs(by_1 @ by_v - np.eye(6)).max() < 1e-12 and np.abs(by_0 + by_1 @ by_q).max() < 1e-12


def test_logarithms_know_no_length_and_go_the_shorter_way() -> None:
    """Quaternions may lack 1e-6; q and -q are one orientation; half a turn has an angle of pi."""
    rng = np.random.default_rng(4)
    for angle in (1e-9, 1e-3, 1.0, 3.1, np.pi):
        a, e = rng.normal(size=(2, 4))
        a, e = a / np.linalg.norm(a), e[:3] / np.linalg.norm(e[:3])
        b = np.array(manifold.exp_ball(a, e * angle))
        plain = np.array(manifold.log_ball(a, b))
        assert np.linalg.norm(plain) == pytest.approx(angle, rel=1e-14)
        for scaled in (b * (1 + 9e-7), -b):
            found = np.array(manifold.log_ball(a, scaled))
            assert np.abs(found - plain).max() < 1e-15 or angle == np.pi
        assert np.linalg.norm(manifold.exp_ball(a * (1 - 9e-7), e)) == pytest.approx(1.0, abs=4e-16)


def test_tabled_functions_are_those_that_they_stand_for() -> None:
    """h / sin h and (1 - h cot h) / (2 h)^2 of y = 1 - cos h, from 0 to a right angle, to the last bits."""
    mpmath.mp.dps = 40
    for k in range(1, 401):
        y = mpmath.mpf(k) / 400
        h = mpmath.acos(1 - y)
        assert manifold._polynomial(float(y), manifold._HALF_ANGLE_SERIES) == pytest.approx(
            float(h / mpmath.sin(h)), rel=4e-16
        )
        right = float((1 - h * mpmath.cot(h)) / (4 * h * h))
        assert manifold._polynomial(float(y), manifold._COTANGENT) == pytest.approx(right, rel=4e-16)


@pytest.mark.parametrize("size", (0.0, 1e-9, 0.1, 0.31, 0.32, 1.0))
def test_derivatives_along_a_path_are_right_at_rest_too(size: float) -> None:
    """Jets through exponential and logarithm: the body rate by its Jacobian, the second by differences of it."""
    w, d = size * np.array([0.6, 0.0, 0.8]), np.array([0.3, -0.5, 0.7])
    path = [Jet(a, b) for a, b in zip(w, d)]
    x, y, z, s = manifold.exp_ball([0.0, 0.0, 0.0, 1.0], path)
    q, rate, second = (np.array([getattr(e, part) for e in (x, y, z, s)]) for part in ("x", "d", "dd"))

    def body(w: np.ndarray) -> np.ndarray:
        J = manifold.exponential_rates(((4, slice(0, 4), slice(0, 3)),), (), w)[1]
        return dense(J, 3) @ d

    turned = 2.0 * np.array(manifold.multiply(manifold.conjugate(q), rate))
    assert np.abs(turned - [*body(w), 0.0]).max() < 1e-14
    more = 2.0 * np.array(manifold.multiply(manifold.conjugate(q), second))[:3]
    h = 1e-4
    assert np.abs(more - (body(w + h * d) - body(w - h * d)) / (2 * h)).max() < 1e-8
    back = manifold.log_ball([0.0, 0.0, 0.0, 1.0], (x, y, z, s))
    assert np.abs([b.x - a for a, b in zip(w, back)]).max() < 1e-15
    assert np.abs([b.d - a for a, b in zip(d, back)]).max() < 1e-13
    assert np.abs([b.dd for b in back]).max() < 1e-11


# -- the same as machine code -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def robot() -> drevo.Robot:
    return drevo.Robot(model())


CALLS = [(name, *row.given) for name, row in compiled.ON_MANIFOLD.items()]


def arguments(r: drevo.Robot, names: tuple[str, ...], lead: tuple[int, ...] = (), seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [r.random(rng, lead) if n[0] == "q" else rng.normal(size=(*lead, r.nv)) for n in names]


def parts(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name, first, second", CALLS)
def test_compiled_motions_are_those_of_arrays(robot: drevo.Robot, name: str, first: str, second: str) -> None:
    """One state, rows, one beside many, lists, views, results given, threads, none at all: numbers and shapes."""
    one, many = (arguments(robot, (first, second), lead) for lead in ((), (37,)))
    f = getattr(robot, name)
    views = [np.repeat(x, 2, 0)[::2] for x in many]
    rows = arguments(robot, (first, second), (2, 3))
    cases = [one, many, [one[0], many[1]], [many[0], one[1]], views, rows, [x[:0] for x in many],
             [x.tolist() for x in one], [tuple(one[0]), one[1]]]  # fmt: skip
    for a, b in cases:
        expected = parts(getattr(configuration, name)(robot.model, np.asarray(a), np.asarray(b)))
        for got in (f(a, b), f(**{first: a, second: b}), f(a, b, threads=2)):
            assert all(
                np.shape(x) == np.shape(y) and np.allclose(x, y, 0, 2e-14) for x, y in zip(parts(got), expected)
            )
    out = tuple(np.zeros_like(x) for x in parts(f(*many)))
    f(*many, out=out if len(out) > 1 else out[0])
    assert all(np.array_equal(x, y) for x, y in zip(out, parts(f(*many))))
    assert np.array_equal(parts(f(*many))[0][5], parts(f(*(x[5] for x in many)))[0])
    if drevo.compile(robot, "gravity").fast is not None:
        again = pickle.loads(pickle.dumps(f))  # noqa: S301
        assert np.array_equal(parts(again(*one))[0], parts(f(*one))[0])


def test_motions_that_machine_code_cannot_compute(robot: drevo.Robot) -> None:
    """Turns beyond the reach of its sines come from NumPy; what no number holds is refused, in batches too."""
    (q, dv), (rows, _) = (arguments(robot, ("q", "dv"), lead) for lead in ((), (4,)))
    far = dv.copy()
    far[3:6] = 1e14 * np.array([0.6, 0.0, 0.8])
    found = robot.integrate(q, far)
    assert np.abs(np.linalg.norm(found[3:7]) - 1.0) < 1e-15
    assert np.array_equal(robot.integrate(rows, far)[2], robot.integrate(rows[2], far))
    last = np.arange(robot.nq) == robot.nq - 1
    for at, beyond, start in ((4, 1e200, 0.0), (4, 1.7e308, 0.0), (robot.nv - 1, 1.7e308, 1e308)):
        far = np.where(np.arange(robot.nv) == at, beyond, dv)
        for given in (q, rows):
            with pytest.raises(drevo.NumericsError, match=r"a motion of the size 1.* ends beyond the largest n"):
                robot.integrate(given + start * last, far)


@pytest.mark.parametrize("name, first, second", CALLS)
def test_motions_refuse_in_their_old_words(robot: drevo.Robot, name: str, first: str, second: str) -> None:
    """The sentences that NumPy's form has, whatever finds the fault: one state, rows, lists, wrong twice."""

    def refused(a: Any, b: Any, sentence: str) -> None:
        with pytest.raises(drevo.DrevoError, match=f"^{sentence}"):
            getattr(robot, name)(a, b)

    for lead, row in (((), ""), ((5,), " in row 3")):
        a, b = arguments(robot, (first, second), lead)
        at = "3, " if lead else ""
        wrong = a.copy()
        wrong[..., 3:7][(3,) if lead else ...] *= 2.0
        said = f"{name}: {first}: the quaternion of joint 'free_joint'{row} has length 2; it must be 1 to 1e-6"
        refused(wrong, b, said)
        refused(wrong.tolist(), b, said)
        for bad, word in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
            for place in (4,) if "_" in name else (1, 4, a.shape[-1] - 1):  # Jacobians read turns only
                wrong = a.copy()
                wrong[..., place][(3,) if lead else ...] = bad
                said = f"{name}: {first} holds a value that is not finite: {word} at index {at}{place}"
                refused(wrong, b, said)
                refused(wrong, "x", said)
        if second != "dv" or name == "integrate":
            continue
    a, b = arguments(robot, (first, second))
    refused("x", b, f"{name}: {first} must hold real numbers, it holds values of type <U1")
    refused(a, b * 1j, f"{name}: {second} must hold real numbers, it holds values of type complex")
    refused(a, b[:2], rf"{name}: {second} has shape \(2,\); its last dimension must be {len(b)}")
    refused(np.tile(a, (2, 1)), np.tile(b, (4, 1)), f"{name}: the leading .batch. dimensions do not agree")


def test_large_trees_are_moved_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "program", None)
    chain = drevo.robots.rod_chain(n=5000)
    q, dv = np.ones((2, 3, 5000))
    assert np.array_equal(chain.integrate(q, dv), q + dv) and not chain.difference(q, q).any()
    assert chain.integrate(q[0], dv, out=q) is q and (q == 2.0).all()
    with pytest.raises(drevo.NumericsError, match="integrate: q holds a value that is not finite"):
        chain.integrate(q * np.nan, dv)
