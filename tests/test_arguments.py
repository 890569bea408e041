"""What a compiled function takes and fills, and a sentence for everything that cannot be computed."""

from __future__ import annotations

import gc
import math
import pickle
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from program_cases import LANES, X, arm, bits, flat, make, state

import drevo
from drevo import streaming
from drevo.codegen.call.function import Function, Spec, obtain
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Program
from drevo.errors import DrevoError, InputError, NumericsError

# -- arguments ---------------------------------------------------------------------------------------------


def views(x: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers in other clothes."""
    count, n = x.shape
    wide = np.zeros((count, n + 5))
    wide[:, 2 : 2 + n] = x
    apart = np.zeros((3 * count, n))
    apart[::3] = x
    odd = np.zeros(count * n * 8 + 1, np.uint8)[1:].view(np.float64).reshape(count, n)
    odd[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "wide": wide[:, 2 : 2 + n], "apart": apart[::3], "fortran": np.asfortranarray(x), "frozen": frozen,
        "backward": x[::-1].copy()[::-1], "mirrored": x[:, ::-1].copy()[:, ::-1], "big": x.astype(">f8"),
        "unaligned": odd, "list": x.tolist(), "matrix": x.view(np.ndarray), "long": x.astype(np.longdouble),
    }  # fmt: skip


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("count", [2, LANES + 3])
def test_any_strides(layout: str, count: int) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, count, 9))
    if layout == "batch_last":
        q, v = q.T.copy(), v.T.copy()
    want = bits(f(q, v))
    for name, x in views(q).items():
        assert bits(f(x, v)) == want, name
        assert bits(f(v=v, q=x)) == want, name


def test_broadcasting() -> None:
    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 6, 9))
    want = np.stack([f(q[k], v[0]) for k in range(6)])
    assert bits(f(q, v[0])) == bits(want) == bits(f(q, v[:1]))
    assert bits(f(q, np.broadcast_to(v[0], (6, 9)))) == bits(want)
    assert f(q.reshape(2, 3, 9), v[:3]).shape == (2, 3, 9)
    assert bits(f(q.reshape(2, 3, 9), v[0]).reshape(6, 9)) == bits(want)
    assert f(q[:, None], v[None]).shape == (6, 6, 9)


def test_empty_batches() -> None:
    f = make("arm")
    assert f(np.zeros((0, 9)), np.zeros((0, 9))).shape == (0, 9)
    assert f(np.zeros((0, 9)), np.zeros(9)).shape == (0, 9)
    assert f(np.zeros((3, 0, 9)), np.zeros(9)).shape == (3, 0, 9)
    assert make("arm", layout="batch_last")(np.zeros((9, 0)), np.zeros((9, 0))).shape == (9, 0)


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_out(layout: str) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, 20, 9))
    q, v = (q, v) if layout == "rows" else (q.T.copy(), v.T.copy())
    want = f(q, v)
    room = np.full((q.shape[0] * 2, q.shape[1] + 3), np.nan)
    outs = [np.empty_like(want), np.empty_like(want, order="F"), room[::2, 1:-2], np.empty(want.shape, ">f8")]
    for out in outs:
        assert f(q, v, out) is out and bits(out.astype(float)) == bits(want)
        assert f(q, v, out=out) is out and f(q, v=v, out=out) is out
    assert np.isnan(room[1::2]).all() and np.isnan(room[:, 0]).all() and np.isnan(room[:, -2:]).all()
    assert bits(f(q, v, None)) == bits(want) == bits(f(q, v, out=None))
    single = np.empty(9, np.float32)
    one = f(q[0], v[0], out=single) if layout == "rows" else f(q[:, 0], v[:, 0], out=single)
    assert one is single


def test_one_thread_by_name_meets_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 20, 9))
    want, out = f(q, v), np.empty((20, 9))

    def refuse(*_: object) -> None:
        raise AssertionError("the call was taken by Python")

    monkeypatch.setattr(Function, "general", refuse)
    assert bits(f(q, v, threads=1)) == bits(want) == bits(f(q, v=v, out=out, threads=1))
    for many in (2, True, 1.0):
        with pytest.raises(AssertionError):
            f(q, v, threads=many)


def test_out_over_an_input() -> None:
    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 20, 9))
    want = f(q, v)
    for k in range(2):
        x = [q.copy(), v.copy()]
        assert bits(f(*x, out=x[k])) == bits(want)
        assert bits(f(*[y[3].copy() for y in (q, v)])) == bits(want[3])
    shared = np.concatenate([q, np.zeros((1, 9))])
    assert bits(f(shared[:-1], v, shared[1:])) == bits(want)
    one = q[0].copy()
    assert bits(f(one, v[0], one)) == bits(want[0])
    columns = np.hstack([q, np.zeros((20, 9))])
    assert bits(f(columns[:, :9], v, columns[:, 9:])) == bits(want)


def test_several_outs() -> None:
    f, (q, v) = make(), state(5)
    want = f(q, v)
    outs = tuple(np.empty_like(x) for x in want)
    got = f(q, v, out=outs)
    assert all(x is y for x, y in zip(got, outs)) and bits(flat(got, 5)) == bits(flat(want, 5))


def test_overlapping_outs_are_refused() -> None:
    f, (q, v) = make(), state(5)
    outs = [np.empty_like(x) for x in f(q, v)]
    outs[2] = outs[0][:, 0]
    with pytest.raises(InputError, match="two of the arrays in out overlap"):
        f(q, v, out=outs)
    with pytest.raises(InputError, match="out must be 3 arrays"):
        f(q, v, out=outs[:2])


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_nothing_to_compute(layout: str) -> None:
    g = Graph()
    x = g.input("x")
    ports = (Input("q", (0,), ()), Input("x", (1,), (x.edge >> 1,)))
    outputs = (Output("M", (0, 0), ()), Output("two", (2,), (g.edge(2.0), g.edge(0.0))))
    f = obtain("n", lambda: Program("none", g, ports, (), outputs), Spec(layout=layout), cache=False)
    shape = ((5, 0), (5, 1)) if layout == "rows" else ((0, 5), (1, 5))
    m, two = f(*(np.zeros(s) for s in shape))
    assert m.shape == ((5, 0, 0) if layout == "rows" else (0, 5))
    assert (two == (np.array([2.0, 0.0]) if layout == "rows" else np.array([[2.0], [0.0]]))).all()
    assert f(np.zeros(0), np.zeros(1)).two.tolist() == [2.0, 0.0]
    h = obtain("c", lambda: Program("c", g, (), (), outputs[1:]), Spec(layout=layout), cache=False)
    assert h().tolist() == [2.0, 0.0] and h(out=np.ones(2)).tolist() == [2.0, 0.0]


WRONG = [
    (lambda f: f(X), "missing 'v'"),
    (lambda f: f(), "missing 'q', 'v'"),
    (lambda f: f(X, X, X, 1, 5), "at most 4"),
    (lambda f: f(X, X, q=X), "'q' twice"),
    (lambda f: f(X, X, speed=1), "no argument 'speed'"),
    (lambda f: f(X[:, :8], X), r"q has shape \(4, 8\); it must be \(..., 9\)"),
    (lambda f: f(X, 1.0), r"v has shape \(\)"),
    (lambda f: f(X[:3], X), "do not agree"),
    (lambda f: f(X * 1j, X), "q must hold real numbers, it holds values of type complex128"),
    (lambda f: f(X, None), "v must hold real numbers, it holds None"),
    (lambda f: f("arm", X), "q must hold real"),
    (lambda f: f([[1, 2], [3]], X), "q is no array|q must hold"),
    (lambda f: f(X, X, out=[1]), "out must be a NumPy array, not list"),
    (lambda f: f(X, X, out=np.zeros(9)), r"out has shape \(9,\); the result has shape \(4, 9\)"),
    (lambda f: f(X, X, out=np.zeros((4, 9), int)), "out must hold floating-point"),
    (lambda f: f(X, X, out=views(X)["frozen"]), "read-only"),
    (lambda f: f(X, X, threads=0), "threads"),
    (lambda f: f(X, X, threads="all"), "threads"),
]


@pytest.mark.parametrize("call, sentence", WRONG)
def test_wrong_arguments(call: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(make("arm"))  # type: ignore[operator]


def test_wrong_spec() -> None:
    with pytest.raises(InputError, match="dtype"):
        Spec(dtype="float16")
    with pytest.raises(InputError, match="layout"):
        Spec(layout="columns")


def test_extra_keywords_go_to_the_hook() -> None:
    f = obtain("e", arm, Spec(), cache=False, extra=lambda args, kwargs: (len(args), sorted(kwargs)))
    assert f(X, X, f_ext={}) == (2, ["f_ext"]) and f.fast(X, X, f_ext=1) == (2, ["f_ext"])  # type: ignore[misc]
    assert f(X, X).shape == (4, 9)


def test_pickling_needs_a_recipe() -> None:
    f = obtain("e", arm, Spec(), cache=False)
    with pytest.raises(TypeError, match=r"drevo\.compile"):
        pickle.dumps(f)
    f.recipe = partial(Fraction, 1, 2)
    assert pickle.loads(pickle.dumps(f)) == Fraction(1, 2)  # noqa: S301


# -- nothing wrong is silent -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("where", [0, 7, 19])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_not_finite(layout: str, where: int, value: float) -> None:
    f, (q, v) = make("arm", layout=layout), np.random.default_rng(1).normal(size=(2, 20, 9))
    q[where, 4] = value
    given = (q, v) if layout == "rows" else (q.T.copy(), v.T.copy())
    with pytest.raises(NumericsError, match=f"arm: (q|tau).4.* in row {where} is"):
        f(*given)
    with pytest.raises(NumericsError, match=r"arm: (q|tau).4. is"):
        f(q[where], v[where])
    out = np.empty_like(given[0])
    with pytest.raises(NumericsError):
        f(*given, out=out)
    loose = make("arm", layout=layout, check=False)
    assert not np.isfinite(loose(*given)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quaternions_must_be_unit(dtype: str) -> None:
    f, (q, v) = make(dtype=dtype), state(20, 3, dtype)
    f(q * (1 + 5e-7), v)
    q[11] *= 1 + 2e-6
    with pytest.raises(NumericsError, match=r"the quaternion q\[0:4\] in row 11 has length 1.00000"):
        f(q, v)
    with pytest.raises(NumericsError, match=r"q\[0:4\] has length 1.00000"):
        f(q[11], v[11])
    q[3] = np.nan
    with pytest.raises(NumericsError, match=r"q\[0\] in row 3 is nan"):
        f(q, v)


def test_a_bad_call_leaves_no_reference() -> None:
    import sys

    f, (q, v) = make("arm"), np.full((2, 9), np.nan)
    before = sys.getrefcount(q), sys.getrefcount(f.fast)
    for _ in range(50):
        with pytest.raises(NumericsError):
            f.fast(q, v)  # type: ignore[misc]
    del _
    assert abs(sys.getrefcount(q) - before[0]) <= 2 and abs(sys.getrefcount(f.fast) - before[1]) <= 2


def test_calls_leak_nothing() -> None:
    import sys

    f, (q, v) = make("arm"), np.random.default_rng(1).normal(size=(2, 20, 9))
    out = np.empty_like(q)
    counts = [sys.getrefcount(x) for x in (q, v, out)]
    for _ in range(1000):
        f(q, v, out)
        f(q, v, out=out)
        r = f(q, v)
    alone = sys.getrefcount(np.empty(9))
    assert sys.getrefcount(r) == alone + 1
    assert {sys.getrefcount(f(q[0], v[0])) for _ in range(1000)} == {alone}
    assert [sys.getrefcount(x) for x in (q, v, out)] == counts


def test_results_of_many_threads_are_their_own() -> None:
    f, (q, v) = make(), state(8)
    want = [bits(flat(f(a, b), 1)) for a, b in zip(q, v)]

    def work(k: int) -> bool:
        held = []
        for turn in range(2000):
            held.append(f(q[k], v[k]))
            if bits(flat(held[-1], 1)) != want[k] or bits(flat(held[0], 1)) != want[k]:
                return False
            if turn % 3 == k % 3:
                held.clear()
                held.append(f(q[k], v[k]))
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_arrays_that_are_kept_end_with_their_function() -> None:
    f = obtain("short", arm, Spec(), cache=False)
    x = f(X[0], X[0])
    weak = weakref.ref(f), weakref.ref(x)
    del f, x
    gc.collect()
    assert [w() for w in weak] == [None, None]


# -- arguments in any order, wrenches ------------------------------------------------------------------------


def test_names_lists_and_tuples_come_to_the_same_bits() -> None:
    """Whatever the entry sorts itself, and whatever it leaves to Python, in every mixture."""
    f, (q, v) = make(), state(1)
    q, v = q[0], v[0]
    want = bits(flat(f(q, v), 1))
    outs = [np.empty_like(x) for x in f(q, v)]
    calls: list[Callable[[], object]] = [
        lambda: f(q=q, v=v), lambda: f(v=v, q=q), lambda: f(q, v=v), lambda: f(q, v=v, out=None),
        lambda: f(**{"".join("q"): q, "".join(["v"]): v}), lambda: f(q.tolist(), v), lambda: f(q, tuple(v)),
        lambda: f(q.tolist(), v.tolist(), outs), lambda: f(v=v.tolist(), q=q, out=tuple(outs)),
        lambda: f(out=outs, v=v, q=tuple(q)), lambda: f(q, v, out=outs), lambda: f(v=v, q=q, threads=1),
        lambda: f(q, v=v.astype(">f8")), lambda: f(q, v=v[::-1].copy()[::-1], out=outs),
    ]  # fmt: skip
    for call in calls:
        assert bits(flat(call(), 1)) == want


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lists_of_any_numbers_are_those_of_numpy(dtype: str, layout: str) -> None:
    """What is read without Python, and what is left to NumPy."""
    f = make("arm", dtype=dtype, layout=layout)
    q = np.linspace(-1.0, 1.0, 9).tolist()
    rows: list[list[object]] = [
        q, [0, 1, -1, 2, 2**52, -(2**52), 3, 0.1, -1.0], [2**53 + 1, *q[1:]], [np.float64(0.3), *q[1:]],
        [True, *q[1:]], [1e-320, *q[1:]], [q[0], 0.1 + 2**-54, *q[2:]],
    ]  # fmt: skip
    for row in rows:
        want = bits(f(np.array(q, dtype), np.array(row, dtype)))
        for kind in (list, tuple):
            assert bits(f(q, kind(row))) == bits(f(np.array(q, dtype), kind(row))) == want
            assert bits(f(v=kind(row), q=q)) == bits(f(q, kind(row), np.empty(9, dtype))) == want
    if layout == "rows":
        batch = bits(f(np.array([q, q], dtype), np.array(q, dtype)))
        assert bits(f([q, q], q)) == bits(f(([*q], tuple(q)), q)) == batch
    for wrong in (
        [10**400, *q[1:]],
        [2**64, *q[1:]],
        [None, *q[1:]],
        q[1:],
        [math.nan, *q[1:]],
        [math.inf, *q[1:]],
    ):
        said = set()
        for x in (q, np.array(q, dtype)):
            with pytest.raises(DrevoError, match=r"^arm: v") as error:
                f(x, wrong)
            said.add(str(error.value))
        assert len(said) == 1


def test_lists_leave_no_references() -> None:
    f, number = make("arm"), 0.123456789
    q, v = [number] * 9, (1.0,) * 9
    f(q, v)
    before = [sys.getrefcount(x) for x in (number, q, v)]
    held = [f(q, v) for _ in range(20)]
    assert [sys.getrefcount(x) for x in (number, q, v)] == before
    assert len({bits(x) for x in held}) == 1


@pytest.mark.parametrize("call, sentence", [
    (lambda f, x: f(x), "is missing 'v'"), (lambda f, x: f(v=x), "is missing 'q'"), (lambda f, x: f(), "missing"),
    (lambda f, x: f(x, q=x), "was given 'q' twice"), (lambda f, x: f(x, x, v=x), "was given 'v' twice"),
    (lambda f, x: f(x, x, None, out=None), "was given 'out' twice"), (lambda f, x: f(q=x, v=x, w=x), "argument"),
    (lambda f, x: f(x, x, None, 1, 1), "takes at most 4"), (lambda f, x: f(q=x, v=["a"]), "v must hold real numb"),
    (lambda f, x: f(x, v=[1.0, 2.0]), r"v has shape \(2,\)"), (lambda f, x: f([[1], [2, 3]], x), "q is no array"),
    (lambda f, x: f(q=x, v=x, f_ext={}), "takes no argument 'f_ext'"),
])  # fmt: skip
def test_names_that_are_wrong(call: Callable[..., object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(make("arm"), X[0])


def test_wrenches_go_straight_to_the_code_of_their_links() -> None:
    """f_ext by name: the function of those links, made once; its wrenches in any form, any number of links."""
    r = drevo.load("two-arm-spatial")
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 5, r.nv))
    links = r.link_names[1:4]
    for count in (0, 1, 3):
        used = links[:count]
        f = drevo.compile(r.model, "inverse_dynamics", f_ext=sorted(used))
        w = {k: rng.normal(size=(5, 6)) for k in used}
        want = f(q, v, a, *(w[k] for k in sorted(used)))
        one = {k: x[0].tolist() for k, x in w.items()}
        alone = f(q[0], v[0], a[0], *(one[k] for k in sorted(used)))
        for k in range(50):
            if k == 1:
                sizes = [sys.getrefcount(x) for x in (q, v, a, *w.values(), *w)]
            for given in (w, dict(reversed(w.items()))):
                assert bits(r.inverse_dynamics(q, v, a, f_ext=given)) == bits(want)
                out = np.empty_like(want)
                assert r.inverse_dynamics(q, a=a, f_ext=given, v=v, out=out) is out and bits(out) == bits(want)
            assert bits(r.inverse_dynamics(q[0], v[0], a[0], f_ext=one)) == bits(alone)
        assert [sys.getrefcount(x) for x in (q, v, a, *w.values(), *w)] == sizes
    many = {k: np.ones(6) for k in [*r.link_names[1:]] * 3}
    many |= {"".join(k): x for k, x in many.items()}
    assert len(r.inverse_dynamics(q, v, a, f_ext=many)) == 5
    for wrong, sentence in (
        ({"x": q}, "link 'x' is not in the robot"), (5, "f_ext is a dictionary of links and wrenches, not int"),
        ({links[0]: np.ones(5)}, r"f_ext:.* has shape \(5,\)"), ({links[0]: [np.nan] * 6}, "f_ext:.* is nan"),
        ({1: q}, "f_ext: links must be a name or a list"),
    ):  # fmt: skip
        with pytest.raises(DrevoError, match=sentence):
            r.inverse_dynamics(q, v, a, f_ext=wrong)
    with pytest.raises(InputError, match="inverse_dynamics takes no argument 'forces'; it takes f_ext"):
        r.inverse_dynamics(q, v, a, forces={})


def test_calls_of_a_link_find_what_was_made() -> None:
    """Every option by position and by name; what is no link is refused each time; methods pickle."""
    r = drevo.load("puma560")
    q, v, a = np.random.default_rng(0).normal(size=(3, r.nv))
    for name, state_, more in (
        ("pose", (q,), {}), ("jacobian", (q,), {"frame": "world"}), ("operational_inertia", (q,), {}),
        ("inverse_operational_inertia", (q,), {}), ("velocity", (q, v), {"frame": "world"}),
        ("acceleration", (q, v, a), {"frame": "local", "kind": "spatial"}),
    ):  # fmt: skip
        want = drevo.compile(r, name, link="link6", **more)(*state_)
        method = getattr(r, name)
        for _ in range(2):
            assert bits(method(*state_, "link6", *more.values())) == bits(want)
            assert bits(method(*state_, link=np.str_("link6"), **more)) == bits(want)
            out = np.empty_like(want)
            assert method(*state_, link="link6", out=out, **more) is out and bits(out) == bits(want)
            for wrong in (None, 3, [], q, "link7"):
                with pytest.raises(DrevoError, match=f"{name}.* link"):
                    method(*state_, wrong)
            if more:
                with pytest.raises(DrevoError, match=f"{name}: frame .* is not known"):
                    method(*state_, "link6", "sideways")
        again = pickle.loads(pickle.dumps(method))  # noqa: S301
        assert bits(again(*state_, link="link6", **more)) == bits(want)
    assert bits(r.joint_wrenches(q, v, a, None, "local")) == bits(r.joint_wrenches(q, v, a, frame="local"))


# -- a Robot's own calls -----------------------------------------------------------------------------------

ROBOT_CALLS = [
    (lambda r, q: drevo.compile(r, ["mass_matrix", "gravity", None]), "quantity None is not known"),
    (lambda r, q: drevo.compile(r, lambda: 1), "quantity <function .*<lambda>> is not known"),
    (
        lambda r, q: drevo.check_formulas(r, None),
        "check_formulas: the formulas are None",
    ),
    (lambda r, q: r.random(5), "random: rng must be a generator .*, not 5; how many is said by shape="),
    (lambda r, q: r.random(rng="x"), "random: rng must be a generator"),
    (lambda r, q: r.random(shape=2.5), "random: shape must be whole numbers from 0, not 2.5"),
    (lambda r, q: r.random(shape=(2, -1)), "random: shape must be whole numbers from 0"),
    (lambda r, q: r.random(shape=2**64), "random: there is no memory for this batch"),
    (lambda r, q: r.integrate(q, "x"), "integrate: dv must hold real numbers, it holds values of type <U1"),
    (lambda r, q: r.integrate(q, q * 1j), "integrate: dv must hold real numbers, it holds values of type complex"),
    (lambda r, q: r.integrate([object()] * 3, q), "integrate: q must hold real numbers"),
    (lambda r, q: r.integrate(np.zeros((2, 3)), np.zeros((4, 3))), r"do not agree: q \(2,\), dv \(4,\)"),
    (lambda r, q: r.difference(q, [[1], [2, 3]]), "difference: q1 is no array of numbers"),
    (lambda r, q: r.difference(q, q[:2]), r"difference: q1 has shape \(2,\); its last dimension must be 3"),
    (lambda r, q: r.pose(q), "pose is of one link: say which by link="),
    (lambda r, q: r.jacobian(q, frame="local"), "jacobian is of one link: say which by link="),
    (
        lambda r, q: r.pose(q, q),
        r"pose: link must be the name of a link, not array.*the order is pose\(q, ..., link\)",
    ),
    (lambda r, q: drevo.compile(r, "pose", wrt="q"), "pose is of one link: say which by link="),
    (
        lambda r, q: drevo.compile(r, "mass_matrix", wrt=2),
        "derivative of mass_matrix: wrt must be a name or a list",
    ),
    (lambda r, q: drevo.compile(r, "mass_matrix", wrt=("q", 2)), "wrt must be a name or a list"),
    (lambda r, q: r.inverse_dynamics(q, q, q, f_ext={1: q, "a": q}), "f_ext: links must be a name or a list"),
    (lambda r, q: drevo.compile(r, "mass_matrix", parameters=[1]), "parameters must be a name or a list of names"),
    (lambda r, q: drevo.compile(r, "mass_matrix", f_ext=3), "f_ext must be a name or a list of names"),
    (lambda r, q: drevo.compile(r, "mass_matrix", packed=q), "packed is array.*; it must be True or False"),
    (lambda r, q: drevo.Robot("puma560"), "Robot takes a robot, as .*, not 'puma560'"),
    (
        lambda r, q: drevo.compile("puma560", "bias"),
        "compile takes a robot, as .*, not 'puma560'",
    ),
    (lambda r, q: drevo.stream(None, "bias", 10), "stream takes a robot, as .*, not None"),
    (
        lambda r, q: drevo.conditions("puma560", constant="mass_matrix"),
        "conditions takes a robot, as .*, not 'puma560'",
    ),
    (
        lambda r, q: drevo.check_formulas(3, "H_11 = 0"),
        "check_formulas takes a robot, as .*, not 3",
    ),
]


@pytest.mark.parametrize("call, sentence", ROBOT_CALLS)
def test_wrong_calls_of_a_robot(call: object, sentence: str) -> None:
    with pytest.raises(DrevoError, match=sentence):
        call(drevo.load("three-link"), np.zeros(3))  # type: ignore[operator]


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_batches_that_no_memory_holds(layout: str) -> None:
    f, several = make("arm", layout=layout), make("every", layout=layout)
    q, v = state(1)
    for count in (10**13, 2**45):
        x = np.broadcast_to(X[0], (count, 9)) if layout == "rows" else np.broadcast_to(X[0][:, None], (9, count))
        for call in (lambda x=x: f(x, x), lambda x=x: f(x, v=x)):
            with pytest.raises(InputError, match="there is no memory for this batch"):
                call()
        rows = [np.broadcast_to(y, (count, y.shape[1])) for y in (q, v)]
        with pytest.raises(InputError, match="there is no memory for this batch, compute it in parts"):
            several(*(rows if layout == "rows" else [y.T for y in rows]))


def test_no_door_takes_a_batch_that_no_memory_holds() -> None:
    """2^51 rows by strides of zero, and none of 2^57: every method says so in a sentence."""
    robot, z = drevo.load("puma560"), np.zeros(6)
    none = np.zeros((2**57, 0, 6))
    many = np.broadcast_to(z, (2**31, 2**20, 6))
    calls: list[Callable[[], object]] = [
        lambda: robot.mass_matrix(many),
        lambda: robot.poses(many),
        lambda: robot.integrate(many, z),
        lambda: robot.difference(z, many),
        lambda: robot.constrained_dynamics(many, z, z),
        lambda: robot.mass_matrix(none),
        *(lambda m=m: robot.simulate(none, none, duration=0.1, dt=0.01, method=m) for m in ("rk4", "dop853")),
        lambda: streaming.inputs(robot, "gravity", 2**53),
        lambda: robot.random(shape=(2**64, 0)),
        lambda: drevo.envs.make("Hopper-v5", num_envs=2**64),
    ]
    for call in calls:
        with pytest.raises(InputError, match="there is no memory for this batch"):
            call()


def test_values_beside_the_state() -> None:
    """Numbers that are none, tolerances of any method, chains without end."""
    body = ((0, 0, 0), np.eye(3), np.eye(3), (0, 0, 0), (0, 0, 0))
    robot, z = drevo.load("puma560"), np.zeros(6)
    calls: list[Callable[[], object]] = [
        lambda: drevo.rigid_body_energy("x", *body),  # type: ignore[arg-type]
        lambda: drevo.rigid_body_energy(1.0, "x", *body[1:]),
        lambda: robot.simulate(z, z, None, duration=0.1, rtol="x"),
        lambda: robot.simulate(z, z, None, duration=0.1, rtol=1e-20),
        lambda: drevo.robots.rod_chain(n=10**9),
    ]
    for call in calls:
        with pytest.raises(DrevoError):
            call()
