"""tau = M a + h by the U-form recursion: what Khalil and Kleinfinger 1987 began, with three savings of its own.

The body wrench is written over the pseudo-inertia (S, h, m) so that the inertia gauge can empty it; a vector
that does not move in either of two jointed bodies has one second derivative, so a column of U passes through
a joint; neighbours on parallel axes share the rotated data. Khalil, Kleinfinger, "Minimum operations and
minimum parameters of the dynamic models of tree structure robots", IEEE J. Robotics and Automation 3(6),
1987.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..algorithms.inverse_dynamics import External, external_on, project, rate_matrix
from ..joints import NO_FORCE, Force, Motion, Placement
from ..reduce import linear_coordinates, linear_rates, scaled
from ..reframe import renames
from ..scalar import Scalar, Vector, cos, is_zero, sin
from ..spatial import EYE, UNIT_VECS, ZERO, Mat, RigidInertia, Vec, rotate
from ..tree import Tree
from ..wheels import CarriedWheel, LastWheel, axial_inertia, carried_wheels

ZERO_MAT = Mat(ZERO, ZERO, ZERO)


class FrameRates(NamedTuple):
    """Motion of a body's frame in its own axes. products: w_y w_z, w_z w_x, w_x w_y; a: pole minus gravity."""

    w: Vec
    dw: Vec
    U: Mat
    squares: Vec
    products: Vec
    a: Vec


BASE_RATES = FrameRates(ZERO, ZERO, ZERO_MAT, ZERO, ZERO, ZERO)


class ParallelRun(NamedTuple):
    """Bodies on parallel axes share what comes before the joint's own rotation.

    first: the body that stands on another axis. w, u, dw: angular velocity, column of U along the axis and angular
    acceleration about it. The angle and its rates are sums along the run.
    """

    first: int
    w: Vec
    u: Vec
    dw: Scalar
    angle: Scalar
    s: Scalar
    c: Scalar
    rate: Scalar
    rate2: Scalar
    name: str  # the bodies' numbers: s_23 is the sine of q_2 + q_3


def axes_of(k: int) -> tuple[int, int, int]:
    """(x, y, k): cyclic, with k the joint axis."""
    return (k + 1) % 3, (k + 2) % 3, k


def on_axes(k: int, *values: Scalar) -> Vec:
    """A vector from its components on (x, y, k)."""
    out = [0.0, 0.0, 0.0]
    for i, x in zip(axes_of(k), values):
        out[i] = x
    return Vec(*out)


def joined_numbers(run: str, number: str) -> str:
    """23, or 9_10 where the digits would run together."""
    return run + number if len(number) == 1 and "_" not in run and len(run) < 9 else f"{run}_{number}"


def parameter_difference(x: Scalar, y: Scalar) -> Scalar:
    """x - y of two parameters; rounding left-overs of numbers are zero."""
    d = x - y
    known = isinstance(x, float) and isinstance(y, float)
    return 0.0 if known and abs(d) <= 1e-14 * (abs(x) + abs(y)) else d


def body_wrench(body: RigidInertia, r: FrameRates, spun: Vec = ZERO) -> Force:
    """F = U h + m a and N = vee(U S - (U S)^T) + h x a, by components; split where both diagonals stand.

    Spec: S_bb U_cb - S_cc U_bc = (S_bb - S_cc) w_b w_c + (S_bb + S_cc) dw_a, (a, b, c) cyclic. Where all three
    stand, w x E w of a diagonal tensor E = `spun` is in.
    """
    U, h, S = r.U, body.h, body.S.mat
    moment = h.cross(r.a)
    n = []
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        if is_zero(S[b][b]) or is_zero(S[c][c]):
            x = S[b][b] * U[c][b] - S[c][c] * U[b][c]
        else:
            both = parameter_difference(S[b][b] - spun[b], S[c][c] - spun[c])
            x = both * r.products[a] + (S[b][b] + S[c][c]) * r.dw[a]
        x = x + S[a][b] * U[c][a] - S[a][c] * U[b][a] + S[b][c] * (r.squares[c] - r.squares[b])
        n.append(x + moment[a])
    return Force(Vec(*n), U @ h + r.a * body.m)


def rates_of_frame(w: Vec, dw: Vec, a: Vec) -> FrameRates:
    """U from w and dw, where nothing passes through the joint."""
    squares = Vec(w.x * w.x, w.y * w.y, w.z * w.z)
    products = Vec(w.y * w.z, w.z * w.x, w.x * w.y)
    return FrameRates(w, dw, rate_matrix(w, dw), squares, products, a)


def through_hinge(
    k: int, s: Scalar, c: Scalar, w: Vec, u: Vec, dw_k: Scalar, a: Vec, empty: str = ""
) -> FrameRates:
    """Rates of a body turned about e_k, from w and the column u of U before the turn; 13 products, 15 sums.

    w has the joint's own rate in it already, as dw_k has its own acceleration. empty: take dw_k such that U_xy
    ("xy") or U_yx ("yx") vanishes, or dw_k itself ("k").
    """
    x, y, _ = axes_of(k)
    w, u = rotate(k, -s, c, w), rotate(k, -s, c, u)
    p_yk, p_kx, p_xy = w[y] * w[k], w[k] * w[x], w[x] * w[y]
    dw_k = {"xy": p_xy, "yx": -p_xy, "k": 0.0}.get(empty, dw_k)
    dw_x, dw_y = p_yk - u[y], u[x] - p_kx
    xx, kk = w[x] * w[x], w[k] * w[k]
    yy = -u[k] - xx
    rows = [[0.0] * 3 for _ in range(3)]
    rows[x][x], rows[x][y], rows[x][k] = -(yy + kk), p_xy - dw_k, u[x]
    rows[y][x], rows[y][y], rows[y][k] = p_xy + dw_k, -(xx + kk), u[y]
    rows[k][x], rows[k][y], rows[k][k] = p_kx - dw_y, p_yk + dw_x, u[k]
    squares, products = on_axes(k, xx, yy, kk), on_axes(k, p_yk, p_kx, p_xy)
    return FrameRates(w, on_axes(k, dw_x, dw_y, dw_k), Mat.of(rows), squares, products, a)


@dataclass(slots=True)
class Recursion:
    """The sweep out and back over one tree: rates by body, wrenches by body, runs of parallel axes."""

    tree: Tree
    X: Sequence[Placement]
    own: Sequence[Motion]
    own2: Sequence[Motion]
    q: Vector
    start: FrameRates
    parallel: bool
    rates: list[FrameRates] = field(default_factory=list)
    f: list[Force] = field(default_factory=list)
    past: list[Vec] = field(default_factory=list)  # transverse moments that go past a run's bodies to its first
    poles: dict[int, Vec] = field(default_factory=dict)  # acceleration of a body's pole in its parent's axes
    runs: dict[int, ParallelRun] = field(default_factory=dict)
    empty: Sequence[str] = ()  # by body: what its joint's acceleration is chosen to empty
    chosen: dict[int, Scalar] = field(default_factory=dict)  # and that acceleration, by rate
    felt: Mapping[int, tuple[Scalar, LastWheel]] = field(default_factory=dict)  # forces that wheels are to feel
    wheels: Mapping[int, Sequence[CarriedWheel]] = field(default_factory=dict)  # by the body that carries them
    added: dict[int, Vec] = field(default_factory=dict)  # moments of wheels beyond what their locked bodies take

    def out(self, i: int) -> None:
        """Rates of body i from its parent's, and the wrench that its own inertia needs."""
        tree, b, x = self.tree, self.tree.bodies[i], self.X[i]
        up = self.rates[b.parent] if b.parent >= 0 else self.start
        if b.kind == "wheel":
            self._wheel(i, up)
            return
        self.poles[i] = up.a + up.U @ x.p
        a = x.to_child(self.poles[i])
        if b.kind in ("revolute", "helical"):
            r = self._hinge(i, up, a)
        elif b.kind == "prismatic":
            r = self._slide(i, up, a)
        else:
            r = self._free(i, up, a)
        self.rates[i] = r
        tree.named_vec(r.w, "omega", i)
        tree.named_mat(r.U, "U", i)
        tree.named_vec(r.a, "a", i)
        self.f[i] = self._own_wrench(i, r)

    def _wheel(self, i: int, up: FrameRates) -> None:
        """N = J (e . w' + q'') e in axes that do not turn with the wheel; its parent has what turns its spin.

        A parent with the inertia of the locked wheel feels J q'' alone. Where it is given what force the joint is
        to feel, the acceleration is chosen so that it does.
        """
        b, x = self.tree.bodies[i], self.X[i]
        J, own = axial_inertia(b), self.own2[i].w
        w, dw = x.to_child(up.w) + self.own[i].w, x.to_child(up.dw) + own
        moment = J * dw[b.axis]
        if i in self.felt:
            (effort, wheel), rho = self.felt[i], b.factor
            self.chosen[b.v] = effort / wheel.resistance - (rho * J / wheel.resistance) * dw[b.axis]
            moment = (effort - wheel.rotor * self.chosen[b.v]) / rho
        self.rates[i] = BASE_RATES._replace(w=w, dw=dw)
        self.f[i] = Force(UNIT_VECS[b.axis] * moment, ZERO)
        if self.tree.locked:
            self.added[i] = own * J

    def _own_wrench(self, i: int, r: FrameRates) -> Force:
        """The wrench of body i plus w x H; H = sum of J (e . w + q') e is its wheels' momentum about their axes.

        The part E w of H goes into the body's own coefficients where it has all three.
        """
        body, wheels, E, H = self._without_pole_mass(i), self.wheels.get(i, ()), ZERO, ZERO
        standing = not any(is_zero(body.S.mat[k][k]) for k in range(3))
        inside = standing and renames(x.e for x in wheels) and not self.tree.locked
        for x in wheels:
            b = self.tree.bodies[x.body]
            spin = self.own[x.body].w[b.axis]
            if b.parent == i and inside:
                E = E + Vec(*map(abs, x.e)) * x.J
            elif b.parent == i and not self.tree.locked:
                spin = spin + x.e.dot(r.w)
            H = H + x.e * (x.J * spin)
        f = body_wrench(body, r, E)
        return Force(f.n + r.w.cross(H), f.f)

    def _without_pole_mass(self, i: int) -> RigidInertia:
        """A hinge's pole stands still in both bodies, so what weighs there acts in the parent's axes."""
        b = self.tree.bodies[i]
        return RigidInertia(0.0, b.inertia.h, b.inertia.S) if b.kind == "revolute" else b.inertia

    def _hinge(self, i: int, up: FrameRates, a: Vec) -> FrameRates:
        b = self.tree.bodies[i]
        run = self._run(i, up)
        e = UNIT_VECS[b.axis]
        w = run.w + e * run.rate
        empty = self.empty[i] if self.empty else ""
        r = through_hinge(b.axis, run.s, run.c, w, run.u, run.dw + run.rate2, a, empty)
        if empty:
            self.chosen[b.v] = b.factor * (r.dw[b.axis] - (b.R @ e).dot(up.dw))
        if b.kind == "helical":
            return self._moved(r, i)
        return r

    def _moved(self, r: FrameRates, i: int) -> FrameRates:
        """Adds the acceleration of a sliding pole: v' + 2 w x v; a chosen v' leaves none along the axis."""
        b, v = self.tree.bodies[i], self.own[i].v
        a = r.a + self.own2[i].v + r.w.cross(v + v)
        if b.kind == "prismatic" and self.empty and self.empty[i]:
            self.chosen[b.v] = -b.factor * a[b.axis]
            a = Vec(*(0.0 if k == b.axis else x for k, x in enumerate(a)))
        return FrameRates(r.w, r.dw, r.U, r.squares, r.products, a)

    def _slide(self, i: int, up: FrameRates, a: Vec) -> FrameRates:
        """A rotation that only renames axes carries all of U; any other carries w and dw."""
        R = self.X[i].R.T
        w, dw = R @ up.w, R @ up.dw
        if not renames(R):
            return self._moved(rates_of_frame(w, dw, a), i)
        turn = [[abs(x) for x in row] for row in R]
        squares, products = Mat.of(turn) @ up.squares, _cofactors(R) @ up.products
        return self._moved(FrameRates(w, dw, R.mul(up.U).mul(R.T), squares, products, a), i)

    def _free(self, i: int, up: FrameRates, a: Vec) -> FrameRates:
        """Spherical and free joints: the rates themselves."""
        x, v, dv = self.X[i], self.own[i], self.own2[i]
        w = x.to_child(up.w)
        pole = a + dv.v + (w + w + v.w).cross(v.v)
        if self.empty and self.empty[i]:
            return self._base(i, v.w, pole)
        return rates_of_frame(w + v.w, x.to_child(up.dw) + dv.w + w.cross(v.w), pole)

    def _base(self, i: int, w: Vec, pole: Vec) -> FrameRates:
        """A free base on the ground, its acceleration chosen: the pole falls, the named entries of U vanish."""
        first, dw = self.tree.bodies[i].v, [0.0, 0.0, 0.0]
        for name in self.empty[i].split():
            a, b = "xyz".index(name[0]), "xyz".index(name[1])
            product = w[a] * w[b]  # U_ab = w_a w_b - dw_c, (a, b, c) cyclic
            dw[3 - a - b] = product if (b - a) % 3 == 1 else -product
        self.chosen.update({first + j: x for j, x in enumerate((*-pole, *dw))})
        return rates_of_frame(w, Vec(*dw), ZERO)

    def _run(self, i: int, up: FrameRates) -> ParallelRun:
        """The run that body i joins, or its own."""
        b, x = self.tree.bodies[i], self.X[i]
        rate, rate2 = self.own[i].w[b.axis], self.own2[i].w[b.axis]
        angle = b.factor * self.q[b.q] + b.phase
        old = self.runs.get(b.parent)
        if old is not None and self._joins(i, old):
            angle = old.angle + angle
            name = joined_numbers(old.name, b.number)
            s, c = self.tree.named(sin(angle), f"s_{name}"), self.tree.named(cos(angle), f"c_{name}")
            run = ParallelRun(
                old.first, old.w, old.u, old.dw, angle, s, c, old.rate + rate, old.rate2 + rate2, name
            )
        else:
            e = x.R @ UNIT_VECS[b.axis]
            w, u = x.R.T @ up.w, x.R.T @ (up.U @ e)
            run = ParallelRun(i, w, u, e.dot(up.dw), angle, x.s, x.c, rate, rate2, b.number)
        if b.kind == "revolute":
            self.runs[i] = run
        return run

    def _joins(self, i: int, run: ParallelRun) -> bool:
        """Same axis, no constant turn between, and a source sparse enough for a gain."""
        b, first = self.tree.bodies[i], self.tree.bodies[run.first]
        if not self.parallel or b.kind != "revolute" or b.axis != first.axis or b.R != EYE:
            return False
        x, y, _ = axes_of(b.axis)
        return sum(is_zero(z) for z in (run.w[x], run.w[y], run.u[x], run.u[y])) >= 2

    def back(self, i: int) -> None:
        """Hands the wrench of body i to its parent; in a run the transverse moment goes past it."""
        tree, b, x, f = self.tree, self.tree.bodies[i], self.X[i], self.f[i]
        tree.named_vec(f.f, "f", i)
        tree.named_vec(f.n, "n", i)
        p = b.parent
        if p < 0:
            return
        n = self.added.get(i, f.n)
        run = self.runs.get(i)
        if run is not None and run.first != i:
            k = b.axis
            axial = UNIT_VECS[k] * n[k]
            self.past[run.first] = self.past[run.first] + rotate(k, run.s, run.c, n - axial)
            n = axial
        moment = self._up(x, n, self.past[i])
        force = x.to_parent(f.f)
        if b.kind == "revolute":
            force = force + self.poles[i] * b.inertia.m
        if p in self.added:
            self.added[p] = self.added[p] + moment
        self.f[p] = self.f[p] + Force(moment + x.p.cross(force), force)

    @staticmethod
    def _up(x: Placement, n: Vec, past: Vec) -> Vec:
        """R (Q n + what came past)."""
        if past.zero:
            return x.to_parent(n)
        return x.R @ (rotate(x.k, x.s, x.c, n) + past)


def _cofactors(R: Mat) -> Mat:
    """The matrix that turns w_y w_z, ... by a signed permutation: permuted, with the signs of both factors."""
    rows = []
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        sign = sum(R[b]) * sum(R[c])
        rows.append([abs(x) * sign for x in R[a]])
    return Mat.of(rows)


def recursion(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    external: External | None = None,
    parallel: bool = True,
    empty: Sequence[str] = (),
    felt: Mapping[int, tuple[Scalar, LastWheel]] | None = None,
    wrenches: Mapping[int, Force] | None = None,
) -> Recursion:
    """The whole sweep; its f are what each parent exerts on each body, about the body's origin in its axes.

    A mass at the pole of a hinge is left out: it acts in the parent's axes and gives the hinge no moment.
    wrenches: what acts on bodies from outside, about the body's origin in its axes.
    """
    start = FrameRates(ZERO, ZERO, ZERO_MAT, ZERO, ZERO, -tree.gravity)
    X, n = tree.placements(q), len(tree)
    world: list[Mat] = [EYE] * n
    r = Recursion(tree, X, tree.rates(v), tree.rates(a), q, start, parallel,
                  [BASE_RATES] * n, [NO_FORCE] * n, [ZERO] * n, empty=empty, felt=felt or {},
                  wheels=carried_wheels(tree))  # fmt: skip
    for out, i in tree.tour():
        if not out:
            r.back(i)
            continue
        tree.section(i)
        r.out(i)
        if wrenches and i in wrenches:
            r.f[i] = r.f[i] - wrenches[i]
        if external:
            p = tree.bodies[i].parent
            world[i] = (world[p] if p >= 0 else EYE).mul(X[i].rotation)
            r.f[i] = r.f[i] - external_on(tree, i, world[i], external)
    return r


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, a: Vector, external: External | None = None, parallel: bool = True
) -> list[Scalar]:
    """Joint forces, (nv,) N m or N; gravity and the external wrenches are in. O(n)."""
    return efforts(tree, q, v, a, external, parallel)[0]


def efforts(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    external: External | None = None,
    parallel: bool = True,
    empty: Sequence[str] = (),
    felt: Mapping[int, tuple[Scalar, LastWheel]] | None = None,
) -> tuple[list[Scalar], dict[int, Scalar]]:
    """Joint forces, and the accelerations that were chosen on the way in place of those given."""
    slides, given = linear_rates(tree), a
    q, v, a = (scaled(x, at, tree.unit) for x, at in ((q, linear_coordinates(tree)), (v, slides), (a, slides)))
    r = recursion(tree, q, v, a, external, parallel, empty, felt)
    chosen = {i: x * tree.unit if i in slides else x for i, x in r.chosen.items()}
    all_a = [chosen.get(i, x) for i, x in enumerate(given)]
    return tree.with_rotors(scaled(project(tree, r.f), slides, tree.unit), all_a), chosen
