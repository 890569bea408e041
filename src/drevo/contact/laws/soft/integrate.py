"""The time integration of a step, in stages: its beginning, its end by Euler's method, Runge and Kutta's stages.

Rates are those of a Model; of free joints the law and the methods count the linear ones along the world's axes.
Quaternions move by exponentials; the stages of Runge and Kutta's method are rates of their logarithm.

  Munthe-Kaas 1998, "Runge-Kutta methods on Lie groups".
"""

from __future__ import annotations

from functools import partial

from ....mechanics.algorithms.actuators import activated, next_activations
from ....mechanics.algorithms.inertia_matrix import Factors, SparseRows
from ....mechanics.manifold import RotationVector, multiply
from ....mechanics.rotation import from_quaternion
from ....mechanics.scalar import Scalar, Vector, cos, dot, eliminated, maximum, sin, sqrt, where
from ....mechanics.spatial import UNIT_VECS, Mat, Vec, skew
from ....mechanics.tree import Tree, TreeBody
from ...packing import of
from .layout import PackedRows, SlotLayout
from .stages import Evaluation, StageTracer, free_joints

KUTTA_WEIGHTS = ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0))  # in the sum, to the next stage
SMALL_TURN = 1e-3  # rad: below it a series
DOUBTED_SPEED = 1e-9  # m/s, rad/s: what is left of the equations is weighed by all that holds, where it is more


def in_world(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Rates, or accelerations, with those of free joints along the world's axes."""
    out = list(v)
    for at, k in free_joints(tree):
        out[k : k + 3] = from_quaternion(*q[at + 3 : at + 7]) @ Vec(*v[k : k + 3])
    return out


def in_body(tree: Tree, q: Vector, w: Vector) -> list[Scalar]:
    """Rates, or accelerations, with those of free joints along the axes of their bodies: inverts `in_world`."""
    out = list(w)
    for at, k in free_joints(tree):
        out[k : k + 3] = from_quaternion(*q[at + 3 : at + 7]).T @ Vec(*w[k : k + 3])
    return out


def moved_along(tree: Tree, q: Vector, u: Vector) -> list[Scalar]:
    """q moved along u, the linear part of free joints along the world's axes."""
    out = list(q)
    for o in tree.owners():
        n = o.nq - 4 if o.nq > o.nv else o.nq
        for k in range(n):
            out[o.q + k] = q[o.q + k] + u[o.v + k]
        if o.nq > o.nv:
            at = slice(o.q + n, o.q + n + 4)
            turned = multiply(q[at], RotationVector.of(Vec(*u[o.v + n : o.v + n + 3])).quaternion)
            over = 1.0 / sqrt(dot(turned, turned))
            out[at] = [x * over for x in turned]
    return out


def rates_of_logarithm(tree: Tree, u: Vector, w: Vector) -> list[Scalar]:
    """The rates of u, from which coordinates move along u, for the rates w there."""
    out = list(w)
    for o in tree.owners():
        if o.nq > o.nv:
            k = o.v + o.nv - 3
            out[k : k + 3] = _inverse_exponential(Vec(*u[k : k + 3]), Vec(*w[k : k + 3]))
    return out


def _inverse_exponential(u: Vec, w: Vec) -> Vec:
    """w + u x w / 2 + c u x (u x w), c = (1 - t/2 cot(t/2)) / t^2, t = |u|: axes of the body."""
    square = u.dot(u)
    near = square < SMALL_TURN * SMALL_TURN
    t = sqrt(where(near, 1.0, square))
    far = (1.0 - 0.5 * t * cos(0.5 * t) / sin(0.5 * t)) / (t * t)
    c = where(near, 1.0 / 12.0 + square * (1.0 / 720.0), far)
    first = u.cross(w)
    out: Vec = w + first * 0.5 + u.cross(first) * c
    return out


def lone_bodies(tree: Tree) -> list[TreeBody]:
    """Free bodies that carry no other."""
    return [b for i, b in enumerate(tree.bodies) if b.kind == "free" and b.parent < 0 and i not in tree.parents]


def _with_gyroscopic(b: TreeBody, M: SparseRows, v: Vector, efforts: Vector, h: float) -> list[Scalar]:
    """Accelerations of a lone body, with the rate of its gyroscopic forces by v in the matrix, in its own axes."""
    k, w = b.v, Vec(*v[b.v + 3 : b.v + 6])
    A = [[M[k + max(i, j)].get(k + min(i, j), 0.0) for j in range(6)] for i in range(6)]
    spin, inertia = skew(w), b.inertia
    J = Mat.of([list(inertia.J @ e) for e in UNIT_VECS])
    linear = [skew(w.cross(inertia.h)), spin.mul(skew(inertia.h))]
    turning, carried = spin.mul(J), skew(J @ w)
    for i in range(3):
        for j in range(3):
            A[i][3 + j] = A[i][3 + j] - h * (linear[0][i][j] + linear[1][i][j])
            A[3 + i][3 + j] = A[3 + i][3 + j] + h * (turning[i][j] - carried[i][j])
    return eliminated(A, efforts[k : k + 6])


class Steps:
    """Adds the stages of a method to those of an evaluation."""

    def __init__(self, e: Evaluation) -> None:
        self.e, self.tree, self.h = e, e.tree, e.problem.step
        n = e.nv
        e.sizes |= {"q": self.tree.nq, "v": n, "q1": self.tree.nq, "v1": n, "warm": 1, "residual": 1, "doubt": 1}
        self.driven = activated(e.problem.model) if e.problem.controls else []
        e.sizes |= dict.fromkeys(("act", "act1"), len(self.driven))
        if e.problem.method == "rk4":
            e.sizes |= {"Q0": self.tree.nq, "W": n, "K": n, "sum_k": n, "sum_a": n}
            e.sizes |= dict.fromkeys(("activation0", "sum_w"), len(self.driven))
        e.add({"begin": self._begin, "again": self._again, "judge": self._judge, "weigh": self._weigh})
        e.stages = ["end"]
        if e.problem.method == "rk4":
            e.stages = [f"stage_{k}" for k in range(4)]
            e.add({name: partial(self._stage, k=k) for k, name in enumerate(e.stages)})
        else:
            e.add({"end": self._euler})
            if "p" in (x.name for x in e.parts["end"].inputs):
                e.add({"damp": self._damp})
            e.end = self._euler
        e.add_by_slot({"force": self._force})

    def _begin(self, s: StageTracer) -> None:
        q, v = s.read("q"), s.read("v")
        for o in self.tree.owners():
            if o.nq > o.nv:
                s.t.require_unit(q[o.q + o.nq - 4 : o.q + o.nq])
        s.write(q1=q, v1=v, **({"act1": s.read("act")} if self.driven else {}))

    def _again(self, s: StageTracer) -> None:
        """Writes the state of an evaluation, and from what the stages of the Runge-Kutta method begin."""
        now = {"Q": s.read("q1"), "V": s.read("v1")} | ({"activation": s.read("act1")} if self.driven else {})
        first = {f"{name}0": now[name] for name in ("Q", "activation") if name in now}
        s.write(**now, **(first if self.e.problem.method == "rk4" else {}))

    def _activated(self, w: Vector, rates: Vector) -> dict[str, list[Scalar]]:
        """The activations after a step."""
        return {"act1": next_activations(self.e.problem.model, w, rates, self.h)}

    def _judge(self, s: StageTracer) -> None:
        """The largest h |g_k| / M_kk, or a doubt."""
        off: Scalar = 0.0
        for k, (x, row) in enumerate(zip(s.read("g"), self.e.inertia(s))):
            off = maximum(off, self.h * (abs(x) / row[k]))
        doubted = off > DOUBTED_SPEED
        worst = maximum(s.number("residual"), where(doubted, 0.0, off))
        s.write(doubt=where(doubted, 1.0, 0.0), residual=worst)

    def _weigh(self, s: StageTracer) -> None:
        """Takes for what is doubted the largest h |p_k|: where forces are stiff, a large g moves little."""
        off, worst = 0.0, s.number("residual")
        for x in s.read("p"):
            off = maximum(off, self.h * abs(x))
        s.write(residual=where(s.number("doubt") > 0.0, maximum(worst, off), worst))

    def _euler(self, s: StageTracer) -> None:
        q, v, a, h = s.read("Q"), s.read("V"), s.read("a"), self.h
        fast = self.e.problem.method == "implicitfast"
        slopes, lone = self.e.slopes, lone_bodies(self.tree) if fast else []
        if slopes or lone:
            M = self.e.inertia(s)
            for (r, c), slope in slopes.items():
                M[r][c] = M[r].get(c, 0.0) + h * of(s.read("main"), slope)
            # M a: rows of the least regulariser have forces of 1e17 N, and a sum of these rounds
            efforts = [x + y for x, y in zip(self.e.efforts(s), s.read("r"))]
            a = list(s.read("p")) if self.e.newton.solves_in_loops else Factors(M, self.e.order).solve(efforts)
            for b in lone:
                a[b.v : b.v + 6] = _with_gyroscopic(b, M, v, efforts, h)
        w = in_world(self.tree, q, [x + h * y for x, y in zip(v, a)])
        moves = w
        if self.e.problem.moreau:  # with what parts bodies
            moves = in_world(self.tree, q, [x + h * y for x, y in zip(v, s.read("moves"))])
        q1 = moved_along(self.tree, q, [h * x for x in moves])
        rates = [of(s.read("main"), self.e.mean_rates.get(i, x)) for i, x in enumerate(self.e.rates)]
        acts = self._activated(s.read("activation"), rates) if self.driven else {}
        s.write(q1=q1, v1=in_body(self.tree, q1, w), **acts)

    def _damp(self, s: StageTracer) -> None:
        """H of an implicit step, and in g less M a; for loops that solve for the accelerations in p."""
        H = {self.e.newton.entry(*at): self.h * of(s.read("main"), b) for at, b in self.e.slopes.items()}
        s.write_some("H", {k: s.read("H")[k] + y for k, y in H.items()})
        s.write(g=[-(x + y) for x, y in zip(self.e.efforts(s), s.read("r"))])

    def _stage(self, s: StageTracer, k: int) -> None:
        """Writes the results of evaluation k: the sums, and the state of the next evaluation, or the end."""
        tree, h, (b, c) = self.tree, self.h, KUTTA_WEIGHTS[k]
        q0, a = s.read("Q0"), in_world(self.tree, s.read("Q"), s.read("a"))
        w0 = s.read("W") if k else in_world(tree, q0, s.read("V"))
        rate = s.read("K") if k else w0
        sum_k, sum_a = [b * x for x in rate], [b * x for x in a]
        rates = [of(s.read("main"), x) for x in self.e.rates]
        known = {i: of(s.read("main"), x) for i, x in self.e.mean_rates.items() if k == 0}  # from the beginning on
        sum_w = [known.get(i, 0.0) if i in self.e.mean_rates else b * x for i, x in enumerate(rates)]
        if k and rates:
            sum_w = [x + y for x, y in zip(sum_w, s.read("sum_w"))]
        if k:
            sum_k = [x + y for x, y in zip(sum_k, s.read("sum_k"))]
            sum_a = [x + y for x, y in zip(sum_a, s.read("sum_a"))]
        if k == 3:
            q1 = moved_along(tree, q0, [h * x for x in sum_k])
            acts = self._activated(s.read("activation0"), sum_w) if rates else {}
            s.write(q1=q1, v1=in_body(tree, q1, [x + h * y for x, y in zip(w0, sum_a)]), **acts)
            return
        if rates:
            w1 = [x + h * c * y for x, y in zip(s.read("activation0"), rates)]
            s.write(activation=w1, sum_w=sum_w)
        u = [h * c * x for x in rate]
        w = [x + h * c * y for x, y in zip(w0, a)]
        there = moved_along(tree, q0, u)
        s.write(Q=there, V=in_body(tree, there, w), K=rates_of_logarithm(tree, u, w))
        s.write(sum_k=sum_k, sum_a=sum_a, **({} if k else {"W": w0}))

    def _force(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Along the world's axes, on the second body, over the first values of the slot's block of y."""
        axes, f = [of(s.here(0, at.S), y) for y in x.axes], s.here(at.f, x.group.size)
        world = [sum((axes[3 * i + j] * f[i] for i in range(min(3, len(f)))), 0.0) for j in range(3)]
        s.write_here({at.size: world})
        if x.point:  # over what was found of a place
            block = s.here(0, at.S)
            s.write_here({at.place + 1: [*(of(block, y) for y in x.point), *axes[:3]]})
