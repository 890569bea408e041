"""What leaves the process: derivatives, constrained dynamics, linear models and laws, by gcc and on a Cortex-M."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import Array, worst
from test_emit import compiled
from test_export import RUN
from test_linearise import at_rest, four_bar
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.constraint.closing import hold
from drevo.constraint.program import constrained_derivative
from drevo.control import kalman, lqr, schedule, stabilise, track, trim
from drevo.documents.languages.table import LANGUAGES
from drevo.simulate import Control

FLAGS = "-std=c99 -Wall -Wextra -Werror -pedantic -O1"
EXACT = 1e-13


def called(library: ctypes.CDLL, name: str, inputs: list[Any], sizes: list[int]) -> list[Array]:
    """What a function of pointers writes."""
    given = [np.ascontiguousarray(x, float).ravel() for x in inputs]
    out = [np.full(n, np.nan) for n in sizes]
    getattr(library, name)(*(x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *out)))
    return out


def calls_in(text: str) -> set[str]:
    """Functions that a C text calls or declares."""
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(\w+)\s*\(", plain)) - {"if", "void", "double"}


# -- a linkage: constrained dynamics, linear model, regulator --------------------------------------------------


@cache
def linkage() -> tuple[Any, Any, Array, Array, Array]:
    r, held = four_bar()
    q, v = at_rest(r, held)
    return r, held, q, v, trim(r, q, constraints=held, actuated=["bar0_joint"]).tau


@pytest.mark.needs("gcc")
def test_a_four_bar_as_c(tmp_path: Path) -> None:
    """Constrained dynamics, their derivatives, linear model, regulator, filter and stabilising law: 1e-13."""
    r, held, q, v, tau = linkage()
    L = r.linearise(q, v, tau, constraints=held, actuated=["bar0_joint"])
    law, seen = lqr(L, 1.0, 1.0), kalman(L, 0.1, 0.1).estimator
    keeping = stabilise(r, held, stiffness=100.0, damping=20.0)
    texts = {
        "constrained_dynamics": drevo.write_out(r, "constrained_dynamics", constraints=held),
        "dconstrained_dynamics_dq": drevo.write_out(r, "constrained_dynamics", constraints=held, wrt="q"),
        "linear_model": L.write_out(),
        "law": law.write_out(),
        "filter": seen.write_out("filter"),
        "keeping": keeping.write_out("keeping"),
    }
    for name, d in texts.items():
        assert calls_in(d.c()) <= {
            name,
            "sin",
            "cos",
            "sqrt",
            "rint",
            "fabs",
            f"{name}_turned",
        }  # and no allocation
        assert sum(d.counts.values()) > 0 and d.about.totals in " ".join(d.c().split())
    assert L.counts == texts["linear_model"].counts and keeping.counts == texts["keeping"].counts
    library = compiled("\n".join(d.c() for d in texts.values()), tmp_path, FLAGS)
    q, v = hold(r, q + 0.05, np.array([0.3, -0.2, 0.1]), constraints=held)
    now = r.constrained_dynamics(q, v, tau, constraints=held)
    a, N = called(library, "constrained_dynamics", [q, v, tau], [3, 2])
    assert worst(a, now.a) <= EXACT and worst(N, now.reactions) <= EXACT
    there = r.linearise(q, v, tau, constraints=held)
    da, dN = called(library, "dconstrained_dynamics_dq", [q, v, tau], [9, 6])
    assert worst(da.reshape(3, 3), there.A[3:, :3]) <= EXACT
    assert worst(dN.reshape(2, 3), there.reactions_state[:, :3]) <= EXACT
    x, u = np.linspace(-1, 1, 6), np.array([0.7])
    dx, y = called(library, "linear_model", [x, u], [6, 6])
    assert worst(dx, L.A @ x + L.B @ u) <= EXACT and worst(y, x) <= EXACT
    (effort,) = called(library, "law", [[0.0], q, v], [3])
    assert worst(effort, law(0.0, q, v)) <= EXACT
    (effort,) = called(library, "keeping", [[0.0], q, v], [3])
    assert worst(effort, keeping(0.0, q, v)) <= EXACT
    e, given = np.array([0.1, 0.2]), np.linspace(0, 1, 7)
    assert worst(called(library, "filter", [e, given], [2, 6])[0], seen.A @ e + seen.B @ given) <= EXACT


@pytest.mark.needs("gcc")
def test_tracking_a_linkage_as_c(tmp_path: Path) -> None:
    """At rest the gains are those of a finite horizon; in motion the law and its table are one C file."""
    r, held, q, v, tau = linkage()
    given: dict[str, Any] = {"constraints": held, "actuated": ["bar0_joint"]}
    still, none, dt = np.tile(q, (6, 1)), np.zeros((6, 3)), 0.02
    law = track(r, dt, still, none, none, 2.0, 0.1, 7.0, **given)
    model = r.linearise(q, v, tau, **given).discretised(dt)
    assert (
        worst(law.K, lqr(model, 2.0 * dt, 0.1 * dt, 5, 7.0).K) <= 1e-9
        and worst(law.tau, np.tile(tau, (6, 1))) <= 1e-9
    )
    way, rates = hold(r, q + np.linspace(0.0, 0.2, 6)[:, None], np.ones((6, 3)), constraints=held)
    a = r.constrained_dynamics(way, rates, none, constraints=held).a
    law = track(r, dt, way, rates, a, 2.0, 0.1, **given)
    text = law.c("follow")
    assert calls_in(text) <= {"follow", "follow_between", "sin", "cos", "sqrt"} and sum(law.counts.values()) > 0
    library = compiled(text, tmp_path, FLAGS)
    for t in (-1.0, 0.0, 0.013, 0.05, 0.1, 3.0):
        (effort,) = called(library, "follow", [[t], q, v + 0.1], [3])
        assert worst(effort, law(t, q, v + 0.1)) <= EXACT
    assert worst(law(0.04, way[2], rates[2]), law.tau[2]) <= EXACT and not law.tau[:, 1:].any()
    for change, told in (((way + 0.1, rates, a), "does not|do not"), ((way, rates, a + 0.1), "do not agree")):
        with pytest.raises(drevo.NumericsError, match=f"track: .*({told})"):
            track(r, dt, *change, 1.0, 1.0, **given)


def test_rows_that_depend() -> None:
    """A linkage of the robot's own, whose pin has a row too many; feet with more rows than a body has freedoms."""
    for r, feet in ((drevo.load("four-bar"), None), *on_feet()):
        d = drevo.write_out(r, "constrained_dynamics", contacts=feet)
        rng = np.random.default_rng(3)
        q = r.assemble(r.integrate(r.neutral(), 0.1 * rng.normal(size=r.nv)), contacts=feet)
        q, v = hold(r, q, rng.normal(size=r.nv), contacts=feet)
        tau = rng.normal(size=r.nv)
        now = r.constrained_dynamics(q, v, tau, contacts=feet)
        a, N = d.evaluate(q=q, v=v, tau=tau)
        assert now.rank < len(N) and worst(a, now.a) <= 1e-11 and worst(N, now.reactions) <= 1e-11
        with pytest.raises(drevo.TraceError, match="rows of the constraints depend on each other"):
            constrained_derivative(r, "q", contacts=feet)


def on_feet() -> list[Any]:
    b = drevo.Builder("stool")
    b.body("seat", joint="free", mass=3.0, com=(0.01, 0, 0.2), inertia=np.diag([0.1, 0.2, 0.25]))
    b.body("arm", "seat", axis=(0, 1, 0), mass=0.5, com=(0.2, 0, 0), inertia=np.eye(3) * 0.01)
    corners = [{"link": "seat", "point": (x, y, 0.0), "rows": 3} for x, y in ((0.1, 0), (-0.1, 0.1), (-0.1, -0.1))]
    return [(b.robot(), corners)]


@pytest.mark.parametrize(
    "wrt", ["q", *(pytest.param(x, marks=pytest.mark.nightly) for x in ("v", "tau")), ("q", "v")]
)
def test_derivatives_under_constraints(wrt: Any) -> None:
    """As kernels: those of the linear model, the second order by differences; feedback, time, a free base."""
    from drevo import constraint

    b = drevo.Builder("hung")
    b.body(
        "base",
        joint="free" if wrt == "tau" else "revolute",
        mass=1.0,
        com=(0.1, 0.2, 0.3),
        inertia=np.diag([0.1, 0.2, 0.25]),
    )
    b.body("arm", "base", axis=(1, 0, 0), origin=(0, 0.1, 0.3), mass=1.0, com=(0, 0, 0.3), inertia=np.eye(3) * 0.1)
    r = b.robot()
    n, rng = r.nv, np.random.default_rng(4)
    held = [constraint.point_on_plane("arm", (0.1, 0, 0.2), (0.3, 0.5, 1), (0.1, -0.4, 0.2), 0.3, -0.2, 0.7)]
    given: dict[str, Any] = {"constraints": held, "stabilise": (3.0, 8.0)}
    q, v, tau, t = r.random(rng), rng.normal(size=n), rng.normal(size=n), 0.3
    f = constrained_derivative(r, wrt, **given)
    da, dN = f(q, v, tau, [t])
    if not isinstance(wrt, str):
        g = constrained_derivative(r, "q", **given)
        expected = [slopes_of(lambda e, k=k: g(q, v + e, tau, [t])[k], n) for k in (0, 1)]
        assert worst(da, expected[0]) <= 1e-6 and worst(dN, expected[1]) <= 1e-6
        return
    L = r.linearise(q, v, tau, t=t, actuated=r.joint_names, **given)
    k = "qv".find(wrt)
    wanted = (
        (L.B[n:], L.reactions_input)
        if k < 0
        else (L.A[n:, k * n : k * n + n], L.reactions_state[:, k * n : k * n + n])
    )
    assert worst(da, wanted[0]) <= 1e-10 and worst(dN, wanted[1]) <= 1e-10


def slopes_of(f: Any, n: int, h: float = 1e-6) -> Array:
    return np.stack([(f(e) - f(-e)) / (2 * h) for e in np.eye(n) * h], -1)


# -- every language, every kind ------------------------------------------------------------------------------


def test_derivatives_are_written_out(tmp_path: Path) -> None:
    """Numbers of the texts are those of the compiled derivative; every language has one."""
    r = drevo.load("scara")
    for name, wrt in (("mass_matrix", ("q", "q")), ("inverse_dynamics", ("q",)), ("bias", ("t",))):
        d, f = drevo.write_out(r, name, wrt=wrt), drevo.compile(r, name, wrt=wrt)
        state = [np.linspace(-1, 1, r.nv) * (k + 1) for k in range(len(f.inputs))]
        assert worst(d.evaluate(*state), f(*state)) <= EXACT
    assert all(len(d.text(language)) > 500 for language in LANGUAGES)
    assert drevo.export(r, "mass_matrix", "cortex-m4f", wrt="q", dtype="float32", folder=tmp_path).size > 100


def test_a_schedule_leaves() -> None:
    """Gains over a grid: the law between its nodes, compiled, read back from its text, and on a moving command."""
    from test_control import acrobot

    r = acrobot()
    s = schedule(r, {"lower_joint": np.linspace(-0.3, 0.3, 5)}, 1.0, 0.01, actuated=["lower_joint"])
    assert s.poles.real.max() < 0.0 and s.K.shape == (5, 1, 4)
    q, tau, K = s.at([0.12])
    assert q[1] == pytest.approx(0.12) and worst(K, 0.2 * s.K[2] + 0.8 * s.K[3]) <= EXACT
    x, v = q + np.array([0.01, -0.02]), np.array([0.1, 0.2])
    law = s.law([0.12])
    expected = tau - np.r_[0.0, K @ np.r_[x - q, v]]
    d = s.write_out()
    assert worst(law(0.0, x, v), expected) <= EXACT and d.counts["choices"] > 0
    assert worst(d.evaluate(s=[0.12], q=x, v=v), expected) <= EXACT
    text: dict[str, Any] = {}
    exec(d.python(), text)
    assert worst(np.array(text["schedule"]([0.12], list(x), list(v))), expected) <= EXACT
    moving = s.law(lambda t: [0.1 * drevo.sin(0.2 * t)])
    table = r.simulate(s.at([0.0])[0], np.zeros(2), Control(moving), duration=20.0, every=1000)
    assert abs(table.q[-1, 1] - 0.1 * np.sin(4.0)) < 0.04
    for grid, told in (
        ({}, "grid must be"),
        ({"elbow": [0, 1]}, "no joint of one coordinate"),
        ({"lower_joint": [1, 0]}, "rising"),
        ({"lower_joint": [0.0]}, "two or more"),
        ({"lower_joint": [0.2, 0.3]}, "at the node lower_joint = 0.2: "),
    ):
        with pytest.raises(drevo.DrevoError, match=told):
            schedule(r, grid, 1.0, 1.0, actuated=[])


def test_what_cannot_be_written_out() -> None:
    r, held, *_ = linkage()
    for given, told in (
        ({"constraints": held, "symbols": "all"}, "symbols belongs to quantities"),
        ({"name": "bias", "constraints": held}, "constraints belongs to constrained_dynamics"),
        ({"wrt": "x", "constraints": held}, "wrt holds 'x'"),
        ({"name": "mass_matrix", "wrt": ("v",)}, "does not depend on 'v'"),
        ({"at": [0.0], "constraints": held}, "last dimension must be 3"),
        ({"link": "bar0"}, "takes no 'link'"),
        ({"stabilise": (-1.0, 1.0), "constraints": held}, "does not decay"),
    ):
        with pytest.raises(drevo.DrevoError, match=told):
            drevo.write_out(r, **{"name": "constrained_dynamics", **given})
    with pytest.raises(drevo.TraceError, match=r"2.8e\+05 results to write out"):
        drevo.write_out(drevo.load("puma560"), "mass_matrix", wrt=("q",) * 5)
    with pytest.raises(drevo.TraceError, match="hours of compiling"):
        drevo.write_out(drevo.robots.rod_chain(300), "constrained_dynamics")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("scara lqr --dt 0.01", "scara_lqr, at every call 17 additions, 20 multiplications"),
        ("scara mass_matrix --wrt q --json", '"dmass_matrix_dq, at every call 0 additions, 2 multiplications'),
        ("four-bar constrained_dynamics", "94 multiplications"),
        pytest.param("scara kalman --dt 0.01", "at every call 36 additions", marks=pytest.mark.nightly),
        pytest.param("scara lqg", r"scara_lqg\.c", marks=pytest.mark.nightly),
        pytest.param("scara schedule --grid joint2=0,0.5,1", "6 choices", marks=pytest.mark.nightly),
        pytest.param("scara linear_model --q 0,0.1,0.2,0", "linear_model", marks=pytest.mark.nightly),
    ],
)
def test_the_command_line(words: str, told: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", *words.split(), "--target", "c", "-o", str(tmp_path)])
    assert done.exit_code == 0 and re.search(told, done.output.replace("\n", " ")), done.output
    (file,) = tmp_path.iterdir()
    assert "malloc" not in file.read_text() and "void " in file.read_text()


# -- on a controller -----------------------------------------------------------------------------------------


def cart() -> drevo.Robot:
    """A cart with two pendulums, one upon the other, upright at zero."""
    b = drevo.Builder("cart")
    b.body("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    for name, parent, z in (("lower", "cart", 0.0), ("upper", "lower", 0.5)):
        b.body(
            name, parent, axis=(0, 1, 0), origin=(0, 0, z), mass=0.2, com=(0, 0, 0.25), inertia=np.eye(3) * 0.004
        )
    return b.robot()


@pytest.mark.needs("arm-none-eabi-gcc", "qemu-system-arm")
def test_a_cortex_m4_holds_a_double_pendulum_for_a_minute(tmp_path: Path) -> None:
    """The regulator and the robot, both in single precision, 60 s at 200 Hz from 3 degrees off."""
    r, dt, inner = cart(), 0.005, 5
    L = r.linearise(np.zeros(3), np.zeros(3), np.zeros(3), actuated=["cart_joint"])
    law = lqr(L.discretised(dt), [1, 10, 10, 1, 1, 1], 0.1)
    made = drevo.export(law, "law", "cortex-m4f", dtype="float32", folder=tmp_path)
    assert made.instructions < 200 and 0 < made.cycles < 400 and "cycles" in str(made)
    drevo.export(r, "forward_dynamics", "cortex-m4f", dtype="float32", folder=tmp_path, name="plant")
    start = np.deg2rad([0.0, 3.0, -2.0])
    (tmp_path / "data.h").write_text(
        '#include "law.h"\n#include "plant.h"\ntypedef float REAL;\n#define NV 3\n'
        "#define LAW law\n#define PLANT plant\n"
        f"#define COUNT {round(60.0 / dt)}\n#define INNER {inner}\n#define STEP {dt / inner}f\n"
        f"#define START {{{', '.join(f'{x}f' for x in start)}}}\n"
    )
    line, run = RUN["cortex-m4f"]
    shutil.copy(Path(__file__).parent / "targets" / "plant.c", tmp_path)
    built = [*line.split(), "-O2", "-o", "run", "plant.c", "law.o", "plant.o", "-lgcc"]
    subprocess.run(built, cwd=tmp_path, check=True, capture_output=True)
    got = subprocess.run(run.split(), cwd=tmp_path, capture_output=True, text=True, timeout=100)
    words = [int(w, 16) for w in (got.stdout + got.stderr).split()]
    q = np.array(words, np.uint32).view(np.float32).reshape(-1, 3)
    assert (
        len(q) == 61 and np.abs(q).max() < 1.5 and np.abs(q[15:, 1:]).max() < 1e-3 and np.abs(q[-1]).max() < 1e-4
    )
