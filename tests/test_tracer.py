"""Programs are declared in one way, by the Tracer."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.codegen.call.function import Spec, obtain
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.tracer import Tracer
from drevo.errors import NumericsError, TraceError
from drevo.mechanics.scalar import dot

SOURCES = Path(drevo.__file__).parent


def test_tracer_declares_inputs_and_outputs_in_order() -> None:
    model = drevo.load("three-link").model
    t = Tracer("power", model)
    q, v, tau = t.state("q", "v", "tau")
    t.output("P", [dot(tau, v)])
    t.output("pairs", [[a, b] for a, b in zip(q, v)], (model.nv, 2))
    t.output("half", 0.5 * v[0], ())
    program = t.program(quantity="power")
    assert [(p.name, p.shape) for p in program.inputs] == [(s, (model.nv,)) for s in ("q", "v", "tau")]
    assert [(p.name, p.shape) for p in program.outputs] == [("P", (1,)), ("pairs", (model.nv, 2)), ("half", ())]
    assert program.meta == {"robot": model.name, "quantity": "power"}
    x = np.random.default_rng(0).normal(size=(3, model.nv))
    found = evaluate(program, dict(zip(("q", "v", "tau"), x)))
    np.testing.assert_allclose(found["P"], [x[1] @ x[2]])
    np.testing.assert_array_equal(found["pairs"], x[:2].T)
    assert found["half"] == 0.5 * x[1, 0]


def test_tracer_state_wants_unit_quaternions() -> None:
    b = drevo.Builder("ball")
    b.body("arm", joint="spherical", mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]))
    robot = b.robot()
    t = Tracer("first", robot.model)
    (q,) = t.state("q")
    t.output("x", q[:1])
    f = obtain("", t.program, Spec(), cache=False)
    rest = robot.neutral()
    f(rest)
    with pytest.raises(NumericsError, match="quaternion"):
        f(2.0 * rest + 1.0)


def test_tracer_names_a_pattern_that_meets_nothing() -> None:
    with pytest.raises(TraceError, match="'nobody'"):
        Tracer("empty", drevo.load("three-link").model, parameters=("nobody",))


def test_programs_begin_in_one_place() -> None:
    """Inputs of a graph are made, and a Program is filled, by the Tracer and by what copies a whole Program."""
    makers = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and (
            getattr(node.func, "id", "") == "Program"
            or (getattr(node.func, "attr", "") == "input" and "raph" in ast.unparse(node.func))
        )
    }
    assert makers <= {"compiler/tracer.py", "codegen/graph/rebuild.py"}, makers
