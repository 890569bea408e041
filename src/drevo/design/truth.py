"""The true values of the symbols of a paper for a robot: exact, or drawn at random, by the same algorithms.

The parameters of every body are symbols: masses, centres of mass, moments, lengths. What is zero in the robot
stays zero. Symbols of Telegin are in `telegin_names`; those of the other papers are what their formalisms name on
their way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, TraceError
from ..mechanics.algorithms.energy import kinetic_energy, potential_energy
from ..mechanics.algorithms.inertia_matrix import mass_matrix
from ..mechanics.algorithms.inverse_dynamics import bias, gravity, inverse_dynamics
from ..mechanics.formalisms import alyushin, kovalchuk, telegin, vereshchagin, zaremba
from ..mechanics.scalar import Context, Scalar
from ..mechanics.spatial import Mat, RigidInertia, Sym, Vec
from ..mechanics.tree import Tree, plain_tree
from ..mechanics.tree_indices import ancestors
from ..model.description import Model
from .exact import Algebra, gen
from .parameters import SNAP, exact_rotation
from .telegin_names import TeleginNames

Give = Callable[[str, float], Scalar]  # the scalar of a symbol that has a number in the robot
NOTATIONS = ("telegin", "kovalchuk", "vereshchagin", "zaremba", "alyushin")
FORMULA_SAMPLES = 6
SMALLEST_SHARE = 1e-12  # of a body's largest value: below it a moment or a coordinate is zero
AXES = "xyz"


class SymbolicState(NamedTuple):
    """A tree of scalars with its coordinates, rates, accelerations and efforts."""

    tree: Tree
    q: list[Scalar]
    v: list[Scalar]
    a: list[Scalar]
    tau: list[Scalar]


def checked_tree(model: Model, notation: str) -> Tree:
    """The tree of a robot whose joints have one degree of freedom each."""
    tree = plain_tree(model, "check_formulas", SNAP)
    for b in tree.bodies:
        if b.nv != 1:
            raise TraceError(
                f"joint {b.joint!r} is {b.kind}: formulas are checked for joints of one degree of freedom"
            )
        if notation == "telegin" and b.kind != "revolute":
            raise TraceError(
                f"joint {b.joint!r} is {b.kind}: formulas of Telegin are checked for hinged trees only"
            )
    return tree


def symbolic_state(tree: Tree, notation: str, give: Give) -> SymbolicState:
    """The tree whose parameters, coordinates and rates are what `give` makes of their symbols."""
    bodies = []
    for i, b in enumerate(tree.bodies):
        p = _offset(tree, i, notation, give) if notation == "telegin" else _components(b.number, b.p, give)
        pitch = give(f"kappa_{b.number}", float(b.pitch)) if b.kind == "helical" else b.pitch
        inertia = _inertia(b.number, b.inertia, notation, give)
        bodies.append(b._replace(p=p, pitch=pitch, inertia=inertia))
    g = Vec(*(give(f"g_{a}", x) if x else 0.0 for a, x in zip(AXES, tree.gravity)))
    armature = {k: give(f"I_a{next(b.number for b in tree.bodies if b.v == k)}", float(x))
                for k, x in tree.armature.items()}  # fmt: skip
    lists: dict[str, list[Scalar]] = {letter: [None] * tree.nv for letter in ("q", "v", "a", "tau")}
    unknown = "a" if notation == "vereshchagin" else "tau"  # what the equations give
    for b in tree.bodies:
        for letter, values in lists.items():
            if letter != unknown and values[b.v] is None:
                values[b.v] = give(f"{letter}_{b.number}", 1.0)
    lists[unknown] = [0.0] * tree.nv
    return SymbolicState(tree.replace(bodies=tuple(bodies), gravity=g, armature=armature), *lists.values())


def _components(number: str, p: Vec, give: Give) -> Vec:
    return Vec(*(give(f"L_{number}{a}", float(x)) if abs(x) > SMALLEST_SHARE else 0.0 for a, x in zip(AXES, p)))


def _offset(tree: Tree, i: int, notation: str, give: Give) -> Vec:
    """L_i e_i; the direction is a number along an axis, else it has the symbols x_12^e, ... of a unit vector."""
    b = tree.bodies[i]
    size = float(np.linalg.norm(np.asarray(b.p, float)))
    if b.parent < 0 or size <= SMALLEST_SHARE:
        return Vec(0.0, 0.0, 0.0)
    L, e = give(f"L_{b.number}", size), [x / size for x in b.p]
    if max(map(abs, e)) > 1.0 - SMALLEST_SHARE:
        return Vec(*(L * float(round(x)) if abs(x) > 0.5 else 0.0 for x in e))
    up = tree.bodies[b.parent].number
    comma = "," if max(len(up), len(b.number)) > 1 else ""
    return Vec(
        *(L * give(f"{a}_{up}{comma}{b.number}^e", x) if abs(x) > SMALLEST_SHARE else 0.0 for a, x in zip(AXES, e))
    )


def _inertia(n: str, inertia: RigidInertia, notation: str, give: Give) -> RigidInertia:
    """Mass, centre and moments: about the pole, products with the sign plus (Telegin), else about the centre."""
    if not inertia.m and not any(inertia.S):
        return inertia
    pole = notation == "telegin"
    mass = give(f"m_o{n}" if pole else f"m_{n}", float(inertia.m)) if inertia.m else 0.0
    com = np.asarray(inertia.h, float) / float(inertia.m or 1.0)
    shift = 0.0 if pole else float(inertia.m)
    S = np.asarray(inertia.S.mat, float) - shift * np.outer(com, com)
    J = np.trace(S) * np.eye(3) - S
    least = SMALLEST_SHARE * max(1e-300, float(np.abs(np.asarray(inertia.S.mat, float)).max()))
    center = Vec(*(give(f"{a}_c{n}", float(x)) if abs(x) > SMALLEST_SHARE else 0.0 for a, x in zip(AXES, com)))
    moments = {}
    for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        x = J[r, c] if r == c or not pole else -J[r, c]
        name = f"I_{n}^{AXES[r]}{'' if r == c else AXES[c]}" if pole else f"I_{n}{AXES[r]}{AXES[c]}"
        moments[r, c] = give(name, float(x)) if abs(x) > least else 0.0
    half = 0.5 * (moments[0, 0] + moments[1, 1] + moments[2, 2])
    sign = 1.0 if pole else -1.0
    S_own = Sym(*(half - moments[r, c] if r == c else sign * moments[r, c] for r, c in sorted(moments)))
    h = center * mass
    return RigidInertia(mass, h, S_own if pole else S_own + Sym.of(_outer(center, h)))


def _outer(a: Vec, b: Vec) -> Any:
    return Mat(*(b * x for x in a))


class Recorder(Context):
    """Keeps what an algorithm names on its way, the first of each name."""

    in_metres = True

    def __init__(self) -> None:
        self.values: dict[str, Scalar] = {}

    def name(self, label: str, x: Scalar) -> None:
        self.values.setdefault(label, x)


def _rows(letter: str, values: Sequence[Scalar], numbers: Sequence[str]) -> dict[str, Scalar]:
    return {f"{letter}_{n}": x for n, x in zip(numbers, values)}


def _elements(letter: str, M: Sequence[Sequence[Scalar]], numbers: Sequence[str]) -> dict[str, Scalar]:
    comma = "," if max(map(len, numbers)) > 1 else ""
    return {f"{letter}_{r}{comma}{c}": M[j][i] for j, r in enumerate(numbers) for i, c in enumerate(numbers)}


def results(s: SymbolicState, notation: str, numbers: Sequence[str]) -> dict[str, Callable[[], dict[str, Scalar]]]:
    """Results of the paper by their letters: the matrix, the efforts, energies."""
    letters = {"telegin": "H", "kovalchuk": "I", "vereshchagin": "M", "zaremba": "a", "alyushin": "M"}
    late = {"kovalchuk": "H", "zaremba": "b"}.get(notation, "h")
    t = s.tree
    return {
        letters[notation]: lambda: _elements(letters[notation], mass_matrix(t, s.q), numbers),
        "G": lambda: _rows("G", gravity(t, s.q), numbers),
        "V": lambda: {"V": potential_energy(t, s.q)},
        "T": lambda: {"T": kinetic_energy(t, s.q, s.v)},
        late: lambda: _rows(late, bias(t, s.q, s.v), numbers),
        "tau": lambda: _rows("tau", inverse_dynamics(t, s.q, s.v, s.a), numbers),
    }


def runs(s: SymbolicState, notation: str) -> list[Callable[[], Any]]:
    """The algorithms of a notation, whose names are its symbols."""
    t = s.tree
    return {
        "telegin": [lambda: telegin.mass_matrix(t, s.q)],
        "kovalchuk": [lambda: kovalchuk.inverse_dynamics(t, s.q, s.v, s.a)],
        "vereshchagin": [lambda: vereshchagin.forward_dynamics(t, s.q, s.v, s.tau)],
        "zaremba": [lambda: zaremba.mass_matrix(t, s.q), lambda: zaremba.gravity(t, s.q),
                    lambda: zaremba.bias(t, s.q, s.v)],
        "alyushin": [lambda: alyushin.kinetic_energy(t, s.q, s.v)],
    }[notation]  # fmt: skip


class Truth:
    """Values by name: exact, or arrays over samples with parameters of their own in each."""

    def __init__(self, tree: Tree, notation: str, give: Give) -> None:
        self.notation, self.numeric = notation, tree
        self.given_names: dict[str, Scalar] = {}
        self.numbers: dict[str, float] = {}  # of the robot

        def keep(name: str, x: float) -> Scalar:
            self.given_names[name], self.numbers[name] = give(name, x), x
            return self.given_names[name]

        state = symbolic_state(tree, notation, keep)
        self.recorder = Recorder()
        self.state = state._replace(tree=state.tree.replace(context=self.recorder))
        self.tree = state.tree
        self.number = {b.number: i for i, b in enumerate(tree.bodies)}
        names = [next(b.number for b in tree.bodies if b.v == k) for k in range(tree.nv)]
        self._results = results(state, notation, names)
        self.results = frozenset(self._results)  # letters of what the equations are for
        self._waiting = [self._recorded(run) for run in runs(self.state, notation)]
        for b in (
            tree.bodies if notation != "telegin" else ()
        ):  # an offset along one axis needs no letter of the axis
            along = [x for a in AXES if (x := self.given_names.get(f"L_{b.number}{a}")) is not None]
            if len(along) == 1:
                self.given_names[f"L_{b.number}"] = along[0]
        self.known: dict[str, Scalar | None] = {**self.given_names, **_rows("qd", state.v, names)}
        if notation == "telegin":
            self.rules: Callable[[str], Scalar | None] | None = TeleginNames(self).symbol
        else:
            self.rules = None

    def _recorded(self, run: Callable[[], Any]) -> Callable[[], dict[str, Scalar]]:
        def values() -> dict[str, Scalar]:
            out = run()
            tau = "a" if self.notation == "vereshchagin" else ""
            if tau:
                numbers = [next(b.number for b in self.tree.bodies if b.v == k) for k in range(self.tree.nv)]
                self.recorder.values.update(_rows(tau, out, numbers))
            return self.recorder.values

        return values

    def __call__(self, name: str) -> Scalar | None:
        """The value of a symbol; None for a name that the notation does not have."""
        if name in self.known:
            return self.known[name]
        value = self._angle(name)
        if value is None and self.rules is not None:
            value = self.rules(name)
        may_name = name in ("T", "V") or any(ch.isdigit() for ch in name)  # others are of the author's own
        if value is None and may_name:
            self._take(self._results.pop(name.partition("_")[0], dict))
            value = self.known.get(name)
        while value is None and may_name and self._waiting:
            self._take(self._waiting.pop(0))
            value = self.known.get(name)
        self.known[name] = value
        return value

    def _take(self, run: Callable[[], dict[str, Scalar]]) -> None:
        """Runs an algorithm for its names; one that needs roots has no exact values."""
        try:
            values = run()
        except InputError:
            return
        for key, x in values.items():
            self.known.setdefault(key, x)

    def _angle(self, name: str) -> Scalar | None:
        """s_23 and c_23 of sums of angles."""
        letter, _, sub = name.partition("_")
        if letter not in ("s", "c") or "^" in sub or not (b := self.bodies(sub)):
            return None
        angles = [self.state.q[self.tree.bodies[i].v] for i in b]
        total = angles[0]
        for x in angles[1:]:
            total = total + x
        return np.sin(total) if letter == "s" else np.cos(total)

    def bodies(self, sub: str) -> list[int]:
        """32 or 10,3 as bodies; empty where it is no list of bodies."""
        names = sub.split(",") if "," in sub else [sub] if sub in self.number else list(sub)
        return [self.number[x] for x in names] if names and all(x in self.number for x in names) else []

    def carrying(self, j: int) -> list[int]:
        """The body j and its ancestors."""
        return list(ancestors(self.tree.parents, j))

    def owner_of_direction(self, name: str) -> str:
        """The number of the body whose offset x_12^e belongs to."""
        return self.tree.bodies[self.bodies(name[2:-2])[-1]].number

    def everything(self) -> dict[str, Scalar]:
        """All symbols that the algorithms name, and the parameters."""
        for run in (*self._results.values(), *self._waiting):
            self._take(run)
        self._results, self._waiting = {}, []
        return {k: x for k, x in self.known.items() if x is not None}


def parameters_of(tree: Tree, notation: str) -> dict[str, float]:
    """The symbols of a robot with their numbers; coordinates, rates, accelerations and efforts have 1."""
    out: dict[str, float] = {}

    def give(name: str, x: float) -> float:
        return out.setdefault(name, x)

    symbolic_state(tree, notation, give)
    return out


def is_parameter(name: str) -> bool:
    """Neither a coordinate nor a rate, an acceleration or an effort."""
    return name.split("_")[0] not in ("q", "v", "a", "tau") or "^" in name


def exact_truth(tree: Tree, notation: str) -> tuple[Truth, Algebra]:
    """Values as polynomials, and the algebra of their symbols."""
    numbers = parameters_of(tree, notation)
    angles = [n for n in numbers if n.startswith("q_")]
    trig = [f"{letter}{n[1:]}" for letter in "sc" for n in angles]
    algebra = Algebra([*_directions_first(numbers), *trig], 2 * len(tree) + 6)
    _unit_directions(algebra, list(numbers))
    rational_tree = tree.replace(bodies=tuple(b._replace(R=exact_rotation(b.R, algebra)) for b in tree.bodies))
    return Truth(rational_tree, notation, lambda name, _: algebra.symbol(name)), algebra


def _directions_first(names: Mapping[str, float]) -> list[str]:
    return sorted(names, key=lambda n: not n.endswith("^e"))


def _unit_vectors(names: Collection[str]) -> list[list[str]]:
    """The components x_12^e, y_12^e, z_12^e of each direction."""
    ends = dict.fromkeys(n[1:] for n in names if n.endswith("^e"))
    return [[n for n in names if n[1:] == end] for end in ends]


def _unit_directions(algebra: Algebra, names: Sequence[str]) -> None:
    """The squares of x_12^e, y_12^e, z_12^e sum up to one."""
    for members in _unit_vectors(names):
        rest = algebra.number(-1)
        for n in members[1:]:
            rest = rest + gen(algebra.place[n], 2)
        algebra.square(members[0], rest)


def sampled_truth(
    tree: Tree,
    notation: str,
    seed: int,
    varied: bool,
    fulfil: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda draws: {},
) -> Truth:
    """Values as arrays over samples; varied: the parameters have other numbers in each sample.

    fulfil: the draws that conditions change.
    """
    rng = np.random.default_rng(seed)
    numbers = parameters_of(tree, notation)
    draws = {
        n: rng.uniform(-3.0, 3.0, FORMULA_SAMPLES) if not is_parameter(n)
        else np.full(FORMULA_SAMPLES, x) * (rng.uniform(0.6, 1.4, FORMULA_SAMPLES) if varied else 1.0)
        for n, x in numbers.items()
    }  # fmt: skip
    if varied:
        _normalise(draws)
    draws.update(fulfil(draws))
    return Truth(tree, notation, lambda name, _: draws[name])


def _normalise(draws: dict[str, Any]) -> None:
    for members in _unit_vectors(draws):
        size = np.sqrt(sum(draws[n] ** 2 for n in members))
        for n in members:
            draws[n] = draws[n] / size
