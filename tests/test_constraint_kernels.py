"""Constrained motion in machine code beside the same on arrays: every kind of constraint, any rank, one state and
batches, numbers that change, what is kept of earlier calls."""

from __future__ import annotations

import ctypes
import pickle
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from strategies import all_kinds, state
from test_constraints import every_constraint
from tolerances import ACCELERATIONS, SAME

import drevo
import drevo.constraint.kernels as programs
from drevo.codegen.llvm.dense.ranked import Ranked, padded, ranked_room
from drevo.codegen.llvm.ir import I64, PTR, Module
from drevo.codegen.store import native
from drevo.constraint import collection, inverse
from drevo.constraint import values as constraint
from drevo.constraint.checks import feedback
from drevo.constraint.dynamics import accelerations
from drevo.constraint.numbers import Numbered, pattern_of, with_numbers
from drevo.constraint.prepared import prepared_set
from drevo.constraint.solve import RANK_TOLERANCE, RankSplit, factor_of, matvec
from drevo.constraint.terms import constraint_terms, held_at
from drevo.robot.face import Robot

Array = np.ndarray[Any, Any]
CORNERS = ((0.1, 0.05, -0.05), (0.1, -0.05, -0.05), (-0.1, 0.05, -0.05), (-0.1, -0.05, -0.05))


def on_arrays(r: Robot, q: Array, v: Array, tau: Array, gains: Any = None, **given: Any) -> Any:
    """The same by NumPy's singular values."""
    found = collection.collect(r.model, given.get("contacts"), given.get("constraints"))
    terms, names = partial(constraint_terms, r, found, t=given.get("t", 0.0)), collection.labels(found)
    return accelerations(r, q, v, tau, terms, names, given.get("f_ext"), gains and feedback(gains, len(names)))


def assert_same(mine: Any, right: Any, tolerance: float = ACCELERATIONS) -> None:
    for name in ("a", "reactions"):
        x, y = getattr(mine, name), getattr(right, name)
        assert np.abs(x - y).max(initial=0.0) <= tolerance * max(1.0, np.abs(y).max(initial=0.0)), name
    assert np.array_equal(mine.rank, right.rank)
    for name in ("jacobian", "gamma", "value", "rate"):
        x, y = getattr(mine, name), getattr(right, name)
        assert x.shape == y.shape and np.array_equal(x, y), name


@pytest.mark.parametrize(("base", "few"), [("floating", (1, 2, 5, 6)), ("fixed", (7,)), ("fixed", (3, 8))])
def test_every_kind_of_constraint(base: str, few: tuple[int, ...]) -> None:
    """With a contact, of a robot with joints of every kind: as on arrays, and a batch has its rows' bits."""
    r = Robot(all_kinds(base))
    q, v, tau = (np.array(x) for x in zip(*(state(r.model, k) for k in range(11))))
    contacts = [{"link": r.link_names[-3], "point": (0.1, 0.2, 0.3), "anchor": (1.0, 2.0, 3.0)}]
    given = {"contacts": contacts, "constraints": [every_constraint(r)[k] for k in few], "t": 0.4}
    mine = r.constrained_dynamics(q, v, tau, **given)
    assert_same(mine, on_arrays(r, q, v, tau, **given), 1e-11)
    for k in (0, 10):
        one = r.constrained_dynamics(q[k], v[k], tau[k], **given)
        assert np.array_equal(one.a, mine.a[k]) and np.array_equal(one.reactions, mine.reactions[k])


@pytest.fixture(scope="module")
def biped() -> Robot:
    return drevo.load("biped", base="floating")


def biped_states(r: Robot, count: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(3)
    q = r.integrate(np.tile(r.neutral(), (count, 1)), 0.3 * rng.normal(size=(count, r.nv)))
    return q, rng.normal(size=(count, r.nv)), 10.0 * rng.normal(size=(count, r.nv))


def test_rows_that_depend_on_each_other(biped: Robot) -> None:
    """Four corners of a foot: 12 rows of rank 6, in a batch of 19; least norm, and bits of each row alone."""
    q, v, tau = biped_states(biped, 19)
    given = {"contacts": [{"link": "right_foot", "point": p} for p in CORNERS]}
    v = biped.impact(q, v, **given).v  # rates that all corners share
    mine = biped.constrained_dynamics(q, v, tau, **given)
    assert (mine.rank == 6).all()
    assert_same(mine, on_arrays(biped, q, v, tau, **given), 1e-11)
    one = biped.constrained_dynamics(q[18], v[18], tau[18], **given)
    assert np.array_equal(one.a, mine.a[18]) and np.array_equal(one.reactions, mine.reactions[18])
    assert one.rank == 6
    struck = biped.impact(q, v + 0.1, restitution=0.3, **given)
    c = constraint_terms(biped, collection.collect(biped.model, given["contacts"], None), q, v + 0.1)
    s = RankSplit.of(factor_of(biped, q), c.jacobian)
    after, _ = s.solve(matvec(biped.mass_matrix(q), v + 0.1), 0.3 * c.rate)
    assert np.abs(struck.v - after).max() <= 1e-11 * np.abs(after).max()


def test_rows_of_a_batch(biped: Robot) -> None:
    """Rows side by side, apart, turned round, one for all, more or fewer than a tile: the bits of each alone, and
    the states that results keep."""
    q, v, tau = biped_states(biped, 40)
    feet = prepared_set(biped, [{"link": f"{side}_foot", "point": CORNERS[0]} for side in ("right", "left")], None)
    time = np.zeros(1)

    def rows(x: Array, how: slice, count: int) -> Array:
        return np.asarray(x[how][:count])

    for count in (2, 8, 19):
        for hows in (
            (slice(None),) * 3,
            (slice(None, None, 2),) * 3,
            (slice(None, None, -1), slice(None), slice(2, None)),
        ):
            given = [rows(x, how, count) for x, how in zip((q, v, tau), hows)]
            a, held = feet.form.motion(*given, time, *feet.numbers)
            assert all(np.array_equal(x, y) for x, y in zip(feet.state_in(held), given))
            for k in (0, count - 1):
                one = feet.form.motion(*(x[k] for x in given), time, *feet.numbers)
                assert np.array_equal(a[k], one[0]) and np.array_equal(held[k], one[1])
        given = [q[:count], np.broadcast_to(v[3], (count, biped.nv)), tau[:count]]
        a, held = feet.form.motion(*given, time, *feet.numbers)
        assert all(np.array_equal(x, y) for x, y in zip(feet.state_in(held), given))
        assert np.array_equal(a[count - 1], feet.form.motion(*(x[-1] for x in given), time, *feet.numbers)[0])


@pytest.mark.parametrize("gains", [(np.full(6, 20.0), 100.0), (20.0 * np.eye(6), 100.0)])
def test_feedback(biped: Robot, gains: Any) -> None:
    """Gains are arguments: numbers, one for each row, matrices."""
    q, v, tau = biped_states(biped, 3)
    feet = [{"link": "left_foot", "point": (0, 0, 0), "rows": 6, "anchor": (0, 0, 0.1)}]
    mine = biped.constrained_dynamics(q, v, tau, contacts=feet, stabilise=gains)
    assert_same(mine, on_arrays(biped, q, v, tau, gains, contacts=feet), 1e-11)
    pushed = {"f_ext": {"left_foot": (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)}}
    assert_same(
        biped.constrained_dynamics(q, v, tau, contacts=feet, **pushed),
        on_arrays(biped, q, v, tau, contacts=feet, **pushed), 1e-11,
    )  # fmt: skip


@pytest.mark.parametrize("angle", [1.0, 1e-1, 1e-3, 1e-5, 1e-8, 5e-9, 3e-9, 2e-9, 1e-9, 3e-10, 1e-11, 0.0])
def test_rows_that_nearly_depend(angle: float) -> None:
    """Rank and results as by singular values, whatever the angle between two normals is.

    Of W both drop the same direction, so that a differs by cond(W) times the rounding (Wedin 1973).
    """
    r = drevo.load("puma560")
    q, v, tau = np.random.default_rng(1).normal(size=(3, 6))
    planes = [
        constraint.point_on_plane("link6", (0, 0, 0), n, offset=d)
        for n, d in (((0.3, 0.5, 1.0), 0.2), ((0.3 + angle, 0.5 - 0.5 * angle, 1.0), 0.2), ((1, 0, 0), 0.1))
    ]
    mine, right = r.constrained_dynamics(q, 0 * v, tau, constraints=planes, stabilise=(20.0, 100.0)), None
    right = on_arrays(r, q, 0 * v, tau, (20.0, 100.0), constraints=planes)
    assert mine.rank == right.rank
    s = np.linalg.svd(factor_of(r, q).inwards(right.jacobian), compute_uv=False)
    cond = s[0] / s[mine.rank - 1]
    assert np.abs(mine.a - right.a).max() <= SAME * cond * np.abs(right.a).max()


def test_numbers_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets that differ in points, normals and offsets share their code."""
    r = drevo.load("three-link")
    q, v, tau = np.random.default_rng(0).normal(size=(3, 3))

    def plane(k: float) -> list[Any]:
        return [constraint.point_on_plane("link3", (k, 0.1, 0.0), (k, 1.0, 0.2), (0, 0, k), k, 0.3 * k)]

    r.constrained_dynamics(q, v, tau, constraints=plane(0.1))
    monkeypatch.setattr(programs, "accelerations_program", None)
    for k in (0.2, -0.3, 1.0):
        mine = r.constrained_dynamics(q, v, tau, constraints=plane(k), t=0.5)
        assert_same(mine, on_arrays(r, q, v, tau, constraints=plane(k), t=0.5))


def test_sets_of_one_form() -> None:
    """Other numbers, however they are given, in every call: as of a robot that never saw the form. What is wrong
    with them is said in the same words."""
    r = drevo.load("puma560")
    q, v, tau = np.random.default_rng(1).normal(size=(3, 6))
    calls = {
        "constrained_dynamics": ((q, v, tau), {}, ("a", "reactions", "jacobian")),
        "impact": ((q, v), {"restitution": 0.5}, ("v", "impulses")),
        "linearise": ((q, v, tau), {}, ("A", "B", "reactions")),
    }
    for k, kind in enumerate((tuple, list, np.array)):
        given = {"link": "link6", "point": kind((0.1, 0.01 * k, 0.0)), "anchor": (0, 0, k)}
        others = [given], [given], [constraint.contact(**given)]
        for name, (states, how, parts) in calls.items():
            made = [getattr(x, name)(*states, contacts=s, **how) for x, s in zip((r, r, Robot(r.model)), others)]
            for part in parts:
                x, y, z = (getattr(found, part) for found in made)
                assert np.array_equal(x, y) and np.array_equal(x, z), (name, part)
    values = prepared_set(r, None, [constraint.contact(**given)])  # as one of the constraints
    sets = [prepared_set(r, [given | {"anchor": (0.0, 0.0, k)}], None) for k in range(5)]
    assert all(s.form is values.form for s in sets)
    for wrong, words in (
        ({"point": (0.0, np.nan, 0.0)}, "point nan is not finite"), ({"point": (0.0, 1e9, 0.0)}, "point 1e.09"),
        ({"point": (0.0, "a", 0.0)}, "point 'a' is not a number"), ({"anchor": (0, 0)}, "anchor .* 2 numbers, 3"),
        ({"rotation": np.eye(3) * 1.01}, "rotation .* not a rotation"), ({"rotation": -np.eye(3)}, "reflection"),
        ({"rows": True}, "rows is True; it must be 3"), ({"link": "link66"}, "did you mean 'link6'"),
    ):  # fmt: skip
        for name, (states, how, _) in calls.items():
            with pytest.raises(drevo.InputError, match=words):
                getattr(r, name)(*states, contacts=[given | wrong], **how)


def test_welds_as_at_a_configuration() -> None:
    """Whatever was asked before, the orientation is that of this configuration, which is checked."""
    r = drevo.load("puma560")
    for at, x in (((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.1), ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.2), ((1.0,) * 6, 0.2)):
        A, B = (r.pose(at, link)[:3, :3] for link in ("link6", "link2"))
        ends = "link6", (x, 0.0, 0.1), "link2", (0.0, 0.3, 0.0)
        how: list[dict[str, Any]] = [{"at": at}, {"rotation": A.T @ B}]
        (mine,), (right,) = (prepared_set(r, None, [constraint.weld(*ends, **x)]).numbers for x in how)
        assert np.abs(mine - right).max() < SAME
    with pytest.raises(drevo.InputError, match="at: q has shape"):
        prepared_set(r, None, [constraint.weld(*ends, at=(1.0,) * 5)])


def test_sets_are_taken_apart_and_put_together() -> None:
    r = Robot(all_kinds("floating"))
    feet = [{"link": r.link_names[-1], "point": (0.1, 0.2, 0.3), "rows": 6, "anchor": (1, 2, 3)}]
    found = collection.collect(r.model, feet, every_constraint(r))
    signature, numbers = Numbered.of(found)
    assert with_numbers(pattern_of(found), numbers) == found
    moved = with_numbers(found, [x + 1.0 for x in numbers])
    assert Numbered.of(moved).signature == signature and pattern_of(moved) == pattern_of(found)
    assert hash(signature) != hash(Numbered.of(found[1:]).signature)


def test_what_is_given_may_change_between_calls(biped: Robot) -> None:
    """Lists, dictionaries and arrays that are written to are seen, and so are results of earlier states kept."""
    q, v, tau = (x[0] for x in biped_states(biped, 1))
    point = np.zeros(3)
    for where in (point, [0.0, 0.0, 0.0]):
        feet: list[dict[str, Any]] = [{"link": "right_foot", "point": where}]
        first = biped.constrained_dynamics(q, v, tau, contacts=feet)
        at = first.jacobian.copy()
        where[2] = -0.2
        second = biped.constrained_dynamics(q, v, tau, contacts=feet)
        assert_same(second, on_arrays(biped, q, v, tau, contacts=feet))
        feet[0]["link"] = "left_foot"
        assert_same(
            biped.constrained_dynamics(q, v, tau, contacts=feet), on_arrays(biped, q, v, tau, contacts=feet)
        )
        assert np.array_equal(first.jacobian, at) and not np.array_equal(second.jacobian, at)
    x = q.copy()
    result = biped.constrained_dynamics(x, v, tau, contacts=feet)
    x[:3] += 1.0
    x[7:] = 0.0
    assert_same(result, on_arrays(biped, q, v, tau, contacts=feet))
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert np.array_equal(again.a, result.a) and np.array_equal(again.jacobian, result.jacobian)
    with pytest.raises(AttributeError):
        result.a = 0.0


def test_calls_that_come_again(biped: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets and options in turn, by name, of lists, as functions and methods: the same bits; changes are seen."""
    r = drevo.Robot(biped.model)
    q, v, tau = (x[0] for x in biped_states(r, 1))
    sets = [[{"link": "right_foot", "point": (0.0, 0.01 * k, 0.0)}] for k in range(6)]
    right = [on_arrays(r, q, v, tau, contacts=s) for s in sets]
    for contacts, x in zip(sets, right):
        found = r.constrained_dynamics(q, v, tau, contacts=contacts)
        assert_same(found, x)
        for other in (
            r.constrained_dynamics(tau=tau, contacts=contacts, v=v, q=q),
            r.constrained_dynamics(q.tolist(), tuple(v), tau, contacts=contacts, constraints=None),
            drevo.constraint.constrained_dynamics(r, q, v, tau, contacts=contacts, passive=False),
            r.under(contacts).dynamics(q, v, tau),
            r.under(sets[0]).moved(contacts[0]["point"]).dynamics(q, v, tau),
        ):  # fmt: skip
            assert np.array_equal(found.a, other.a) and np.array_equal(found.reactions, other.reactions)
    gains: list[Any] = [(20.0, 100.0), (1.0, 1.0), ([3.0] * 3, np.eye(3).tolist()), (2.0, 100.0)]
    fed = [r.constrained_dynamics(q, v, tau, contacts=sets[0], stabilise=g).a for g in gains]
    for g, x in zip(gains * 2, fed * 2):
        assert np.array_equal(r.constrained_dynamics(q, v, tau, contacts=sets[0], stabilise=g).a, x)
    for e in (0.3, 0.7, 0.3, 0.0):
        struck = [r.impact(q, v, contacts=sets[1], restitution=e) for _ in range(2)]
        G = struck[0].jacobian
        assert np.abs(G @ (struck[0].v + e * v)).max() < 1e-10 and np.array_equal(struck[0].v, struck[1].v)
    foot = sets[0][0]
    for change in (
        lambda: foot.update(point=(0.0, 0.0, 0.1)), lambda: foot.update(rows=6), lambda: foot.pop("rows"),
        lambda: sets[0].append(dict(foot, link="left_foot")), lambda: sets[0].reverse(), lambda: sets[0].pop(),
    ):  # fmt: skip
        r.constrained_dynamics(q, v, tau, contacts=sets[0])
        change()
        assert_same(r.constrained_dynamics(q, v, tau, contacts=sets[0]), on_arrays(r, q, v, tau, contacts=sets[0]))
    method = pickle.loads(pickle.dumps(r.constrained_dynamics))  # noqa: S301
    assert np.array_equal(
        method(q, v, tau, contacts=sets[0]).a, r.constrained_dynamics(q, v, tau, contacts=sets[0]).a
    )
    monkeypatch.setenv("DREVO_CALLS", "ctypes")
    assert np.array_equal(drevo.Robot(r.model).constrained_dynamics(q, v, tau, contacts=sets[5]).a, found.a)


def test_places_that_hold(biped: Robot) -> None:
    """What a configuration says of contacts and welds is computed on arrays at first, then compiled: the same."""
    q, _, _ = biped_states(biped, 3)
    feet = [{"link": "right_foot", "point": (0.1, 0.0, -0.05), "rows": rows} for rows in (3, 6)]
    weld = constraint.Weld("left_foot", (0.0, 0.1, 0.0), "torso", (0.2, 0.0, 0.0))
    found = collection.collect(biped.model, feet, [weld])
    first, *others = (held_at(biped, found, x) for x in (q, q, q[0]))
    assert first.shape == (3, 3 + 12 + 9)
    for x, y in zip(others, (first, first[0])):
        assert x.shape == y.shape and np.abs(x - y).max() < SAME


def test_what_calls_refuse(biped: Robot) -> None:
    """The same sentences at every call; nothing is held that the caller let go."""
    r, feet = drevo.Robot(biped.model), [{"link": "right_foot", "point": (0.0, 0.0, 0.0)}]
    q, v, tau = (x[0] for x in biped_states(r, 1))
    calls = (("constrained_dynamics", (q, v, tau)), ("impact", (q, v)), ("linearise", (q, v, tau)))
    for name, given in calls:
        for _ in range(3):
            call = getattr(r, name)
            for args, named, words in (
                (given[:-1], {}, "is missing"), ((*given, feet, None, 1, 2, 3, 4, 5, 6, 7, 8, 9), {}, "position"),
                (given, {"contact": feet}, "did you mean 'contacts'"), (given, {"q": q}, "'q' twice"),
                ((q[1:], *given[1:]), {}, "q has shape"), ((q * np.nan, *given[1:]), {}, "finite"),
                (("far", *given[1:]), {}, "q"), (given, {"contacts": [{"link": "foot"}]}, "foot"),
            ):  # fmt: skip
                with pytest.raises(drevo.DrevoError, match=words):
                    call(*args, **named)
            call(*given, contacts=feet)
        held = [sys.getrefcount(x) for x in (*given, feet, None)]
        for _ in range(50):
            getattr(r, name)(*given, contacts=feet)
        assert all(abs(sys.getrefcount(x) - n) < 20 for x, n in zip((*given, feet, None), held))


@pytest.mark.parametrize("contacts", [None, [{"link": "b", "point": (1.0, 0.0, 0.0), "rows": 3}]])
@pytest.mark.parametrize("turn", [0.0, 1e-9])
def test_lost_pivots(contacts: Any, turn: float) -> None:
    """A point mass on two massless rods in one line: nothing resists what leaves it where it is."""
    rods = drevo.Builder("rods")
    rods.body("a", "world", joint="revolute", axis=(0, 0, 1))
    rods.body("b", "a", joint="revolute", axis=(0, 0, 1), origin=(1, 0, 0), mass=1.0, com=(1, 0, 0))
    r = rods.robot()
    q, v, tau = np.array([[0.2, 0.3], [0.2, turn]]), np.zeros((2, 2)), np.ones((2, 2))
    assert np.isfinite(r.constrained_dynamics(q[:1], v[:1], tau[:1], contacts=contacts).a).all()
    with pytest.raises(drevo.NumericsError, match=r"mass matrix is singular .* in row 1 .* at joint"):
        r.constrained_dynamics(q, v, tau, contacts=contacts)


@pytest.mark.parametrize("rows", [6, 3])
def test_efforts_and_reactions_of_a_motion(biped: Robot, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two feet, and four corners of theirs: as on arrays, one state and batches; what violates them is refused.

    Both ways are backward stable: they differ by eps times the condition of the rows, which is some hundreds.
    """
    points = [(0.0, 0.0, 0.0)] if rows == 6 else CORNERS[::3]  # opposite ones: twelve rows of rank ten
    given: dict[str, Any] = {
        "contacts": [{"link": f"{s}_foot", "point": p, "rows": rows} for s in ("left", "right") for p in points]
    }
    q, v, tau = biped_states(biped, 11)
    v, tau = biped.impact(q, v, **given).v, tau * ([0] * 6 + [1] * (biped.nv - 6))
    a = biped.constrained_dynamics(q, v, tau, **given).a
    made = [biped.constrained_inverse_dynamics(q, v, a, **given) for _ in range(2)]
    one = biped.constrained_inverse_dynamics(q[8], v[8], a[8], **given)
    monkeypatch.setattr(inverse, "efforts_function", lambda *_: None)
    right = drevo.Robot(biped.model).constrained_inverse_dynamics(q, v, a, **given)
    for mine in made:
        for name in ("tau", "reactions", "jacobian", "gamma"):
            x, y = getattr(mine, name), getattr(right, name)
            assert np.abs(x - y).max() <= 1e-11 * max(1.0, np.abs(y).max()), name
            assert np.array_equal(getattr(one, name), x[8])
    assert (made[0].tau[:, :6] == 0.0).all()
    with pytest.raises(drevo.NumericsError, match="violates the constraints in row"):
        biped.constrained_inverse_dynamics(q, v, a + 1.0, **given)
    with pytest.raises(drevo.NumericsError, match="is not actuated and needs"):
        biped.constrained_inverse_dynamics(q, v, 0 * a, actuated=["left_knee"])


def decomposed(W: Array, b: Array) -> tuple[int, dict[str, Array], float]:
    """Rank, W^+ b, (W W^T)^+ b and what no x meets, with its largest magnitude, by machine code."""
    (m, n), module = W.shape, Module()
    f = module.function("run", I64, public=True, room=PTR, b=PTR, x=PTR, N=PTR, rest=PTR)
    made = Ranked(f, m, n, f.room)
    found = made.decompose(RANK_TOLERANCE)
    made.solve(found, f.b, f.x, f.N)
    f.rest.at(padded(m)).store(made.lost(found, f.b, f.rest))
    f.ret(found)
    code = native.Code(native.compile_text(module.text()))
    rows, b8, x, N = np.zeros((m, padded(n))), np.zeros(padded(m)), np.zeros(padded(n)), np.zeros(padded(m))
    rows[:, :n], b8[:m], rest = W, b, np.zeros(padded(m) + 1)
    room = np.concatenate([rows.ravel(), np.zeros(ranked_room(m, n))])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)
    rank = kind(code.address("run"))(*(y.ctypes.data for y in (room, b8, x, N, rest)))
    return rank, {"x": x[:n], "N": N[:m], "rest": rest[:m]}, rest[-1]


SHAPES = [(12, 18, 12), (12, 18, 6), (24, 18, 12), (3, 3, 2), (5, 1, 1), (4, 7, 0), (1, 40, 1)]


@pytest.mark.parametrize(("m", "n", "rank"), SHAPES)
def test_orthogonal_decomposition(m: int, n: int, rank: int) -> None:
    """Of rows of very different lengths, as by singular values."""
    rng = np.random.default_rng(m + n)
    W = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) * np.exp(rng.normal(size=(m, 1)))
    b = rng.normal(size=m)
    found, mine, most = decomposed(W, b)
    assert found == rank
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    kept = s > RANK_TOLERANCE * s.max(initial=0.0)
    U, s, Vt = U[:, kept], s[kept], Vt[kept]
    right = {"x": Vt.T @ (U.T @ b / s), "N": U @ (U.T @ b / s**2), "rest": b - U @ (U.T @ b)}
    cond = float(s.max(initial=1.0) / s.min(initial=1.0))
    for name, x in mine.items():
        size = max(1.0, np.abs(right[name]).max(initial=0.0))
        assert np.abs(x - right[name]).max(initial=0.0) <= SAME * cond**2 * size, name
    assert most == np.abs(mine["rest"]).max()


@pytest.mark.parametrize("spread", [0.0, 2.0, 12.0])
@pytest.mark.parametrize("share", [0.999, 1.001])
@pytest.mark.parametrize(("m", "n"), [(12, 18), (24, 10), (2, 3), (9, 9)])
def test_rank_by_singular_values(m: int, n: int, share: float, spread: float) -> None:
    """A singular value just above and just below the threshold counts and does not, whatever the others are."""
    rng, r = np.random.default_rng(m), min(m, n)
    U, V = (np.linalg.qr(rng.normal(size=(k, r)))[0] for k in (m, n))
    s = np.sort(10.0 ** -rng.uniform(0, spread, r))[::-1]
    s[0], s[-1] = 1.0, RANK_TOLERANCE * share
    W, b = U * s @ V.T, rng.normal(size=m)
    found, mine, _ = decomposed(W, b)
    kept = s > RANK_TOLERANCE
    assert found == kept.sum()
    x = V[:, kept] @ (U[:, kept].T @ b / s[kept])
    cond = 1.0 / s[kept].min()
    assert np.abs(mine["x"] - x).max() <= SAME * cond * max(1.0, np.abs(x).max())


@pytest.mark.parametrize("share", [0.7, 1.4])
@pytest.mark.parametrize(("n", "c"), [(24, 0.6), (60, 0.2)])
def test_rank_where_pivots_do_not_tell(n: int, c: float, share: float) -> None:
    """Of Kahan's matrix the last pivot is up to thousands of times the least singular value."""
    R = np.diag((1 - c * c) ** (0.5 * np.arange(n))) @ (np.eye(n) - c * np.triu(np.ones((n, n)), 1))
    s = np.linalg.svd(R, compute_uv=False)
    W = R.T * np.r_[np.ones(n - 1), share * RANK_TOLERANCE * s[0] / s[-1]][:, None]
    s = np.linalg.svd(W, compute_uv=False)
    assert decomposed(W, np.ones(n))[0] == (s > RANK_TOLERANCE * s[0]).sum()
