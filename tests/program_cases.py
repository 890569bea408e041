"""Small programs that are no robots, their states, and the Functions made of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from drevo.codegen.call.function import Function, Spec, obtain
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.codegen.llvm import module as llvm
from drevo.codegen.store import native
from drevo.codegen.store.build import Built, build, target_of

HOST = target_of(Spec())
LANES = native.host().bytes // 8
X = np.zeros((4, 9))
BATCHES = (1, LANES - 1, LANES, LANES + 1, 1000)


def every_op(wide: int = 3) -> Program:
    """A program with every operation, every kind of output and a quaternion."""
    g = Graph()
    q = [g.input(f"q[{i}]") for i in range(4)]
    v = [g.input(f"v[{i}]") for i in range(wide)]
    mass, length = g.parameter("mass"), g.parameter("length")
    s, c = (v[0] + v[1]).sin(), (v[0] + v[1]).cos()
    lone = v[2 % wide].cos()
    inertia = mass * length * length
    x = s * q[0] - c * q[1] + 2 * v[1] * inertia
    y = (x / (3.0 + c)) - q[2] * q[3] * lone + mass.atan2(length)
    root = (y * y + 1.0 + mass / length).sqrt()
    minus = -(root * x + y)
    vector = [x, -y, root, minus, 0.0, 1.5, -2.5, v[0], -v[1], mass, x, x * y - root, 2 * root]
    matrix = [root, x, 0.0, x, y, 0.0, 0.0, 0.0, minus]
    return Program(
        "every_op", g,
        (Input("q", (4,), tuple(e.edge >> 1 for e in q)), Input("v", (wide,), tuple(e.edge >> 1 for e in v))),
        (Parameter("mass", mass.edge >> 1, 1.25), Parameter("length", length.edge >> 1, 0.7)),
        (Output("f", (len(vector),), tuple(g.edge(e) for e in vector)),
         Output("H", (3, 3), tuple(g.edge(e) for e in matrix)),
         Output("T", (), (g.edge(x * x),))),
        units=(tuple(e.edge >> 1 for e in q),), meta={"robot": "none"},
    )  # fmt: skip


def arm(n: int = 9) -> Program:
    """One output vector, more columns than lanes."""
    g = Graph()
    q, v = ([g.input(f"{s}[{i}]") for i in range(n)] for s in "qv")
    total, out = 0.25 * q[0], []
    for a, b in zip(q, v):
        total = total * a.cos() + b * a.sin() + b * total
        out.append(total - 0.5 * b)
    ports = tuple(Input(s, (n,), tuple(e.edge >> 1 for e in x)) for s, x in (("q", q), ("v", v)))
    return Program("arm", g, ports, (), (Output("tau", (n,), tuple(g.edge(e) for e in out)),))


@cache
def make(kind: str = "every", **options: object) -> Function:
    program = arm() if kind == "arm" else every_op()
    return obtain(kind, lambda: program, Spec(**options), cache=False)  # type: ignore[arg-type]


def state(count: int, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q.astype(dtype), rng.normal(size=(count, 3)).astype(dtype)


def flat(result: object, count: int, last: bool = False) -> np.ndarray:
    parts = result if isinstance(result, tuple) else (result,)
    turned = [np.asarray(x).T if last else np.asarray(x) for x in parts]
    return np.concatenate([x.reshape(count, -1) for x in turned], axis=1)


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def variant(program: Program, target: llvm.Target, **options: object) -> Function:
    spec = Spec(**options)  # type: ignore[arg-type]
    manifest, objects = build(program, spec, target)
    return Function(Built(manifest, objects.code()), spec)
