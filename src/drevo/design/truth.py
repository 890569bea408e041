"""The true values of the symbols of a paper for a robot: exact, or drawn at random, by the same algorithms.

The parameters of every body are symbols: masses, centres of mass, moments, lengths. What is zero in the robot
stays zero. Symbols of Telegin are in `telegin_names`; those of the other papers are what their formalisms name on
their way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from ..documents.letters import LETTERS_OF_RESULTS
from ..documents.sequence.symbols import letters
from ..errors import InputError, TraceError
from ..mechanics.algorithms.energy import kinetic_energy, potential_energy
from ..mechanics.algorithms.inertia_matrix import mass_matrix
from ..mechanics.algorithms.inverse_dynamics import bias, gravity, inverse_dynamics
from ..mechanics.formalisms import alyushin, kovalchuk, telegin, vereshchagin, vereshchagin_page, zaremba
from ..mechanics.letters import body_numbers
from ..mechanics.scalar import Context, Scalar
from ..mechanics.spatial import RigidInertia, Sym, Vec
from ..mechanics.tree import Tree, build_tree, plain_tree
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
TOLD_LETTERS = ("R_", "D_", "P_", "S_", "beta_", "delta_", "rho_", "sigma_", "g_")  # of Telegin's


class SymbolicState(NamedTuple):
    """A tree of scalars with its coordinates, rates, accelerations and efforts."""

    tree: Tree
    q: list[Scalar]
    v: list[Scalar]
    a: list[Scalar]
    tau: list[Scalar]


class NotedRobot(NamedTuple):
    """A robot, its tree and a notation, with the letters of its parameters by their names.

    at_rest: joint accelerations are zero, as they are where bias is written. by_page: names are those of the
    paper's own path first.
    """

    model: Model
    tree: Tree
    notation: str
    letters: Mapping[str, str]
    at_rest: bool = False
    by_page: bool = False


def noted(model: Model, notation: str) -> NotedRobot:
    """A robot, whose joints have one degree of freedom each, in a notation."""
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
    values: dict[str, float] = {}
    build_tree(model, values.setdefault)
    rows = letters([*values], body_numbers(tree, model))
    return NotedRobot(model, tree, notation, {name: row.symbol for name, row in zip(values, rows)})


def symbolic_state(robot: NotedRobot, give: Give) -> SymbolicState:
    """The tree whose parameters, coordinates and rates are what `give` makes of their symbols."""
    tree, notation = robot.tree, robot.notation
    symbolic = _telegin_tree(tree, give) if notation == "telegin" else _lettered_tree(robot, give)
    lists: dict[str, list[Scalar]] = {letter: [None] * tree.nv for letter in ("q", "v", "a", "tau")}
    unknown = "a" if notation == "vereshchagin" else "tau"  # what the equations give
    for b in tree.bodies:
        for letter, values in lists.items():
            if letter != unknown and values[b.v] is None:
                values[b.v] = give(f"{letter}_{b.number}", 1.0)
    for letter in (unknown, *("a" if robot.at_rest else ())):
        lists[letter] = [0.0] * tree.nv
    return SymbolicState(symbolic, *lists.values())


def _lettered_tree(robot: NotedRobot, give: Give) -> Tree:
    """The tree of the parameters of the robot's links and joints, in the letters of written pages."""
    lettered = build_tree(robot.model, lambda name, x: give(robot.letters[name], float(x)), snap=SNAP)
    bodies = (b._replace(R=known.R) for b, known in zip(lettered.bodies, robot.tree.bodies))
    return lettered.replace(bodies=tuple(bodies))


def _telegin_tree(tree: Tree, give: Give) -> Tree:
    """The tree of lengths of offsets, their directions and moments about poles."""
    bodies = tuple(
        b._replace(p=_offset(tree, i, give), inertia=_inertia(b.number, b.inertia, give))
        for i, b in enumerate(tree.bodies)
    )
    g = Vec(*(give(f"g_{a}", x) if x else 0.0 for a, x in zip(AXES, tree.gravity)))
    armature = {k: give(f"I_a{next(b.number for b in tree.bodies if b.v == k)}", float(x))
                for k, x in tree.armature.items()}  # fmt: skip
    return tree.replace(bodies=bodies, gravity=g, armature=armature)


def _offset(tree: Tree, i: int, give: Give) -> Vec:
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


def _inertia(n: str, inertia: RigidInertia, give: Give) -> RigidInertia:
    """Mass, centre and moments about the pole, products with the sign plus."""
    if not inertia.m and not any(inertia.S):
        return inertia
    mass = give(f"m_o{n}", float(inertia.m)) if inertia.m else 0.0
    com = np.asarray(inertia.h, float) / float(inertia.m or 1.0)
    S = np.asarray(inertia.S.mat, float)
    J = np.trace(S) * np.eye(3) - S
    least = SMALLEST_SHARE * max(1e-300, float(np.abs(S).max()))
    center = Vec(*(give(f"{a}_c{n}", float(x)) if abs(x) > SMALLEST_SHARE else 0.0 for a, x in zip(AXES, com)))
    moments = {}
    for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        x = J[r, c] if r == c else -J[r, c]
        name = f"I_{n}^{AXES[r]}{'' if r == c else AXES[c]}"
        moments[r, c] = give(name, float(x)) if abs(x) > least else 0.0
    half = 0.5 * (moments[0, 0] + moments[1, 1] + moments[2, 2])
    S_own = Sym(*(half - moments[r, c] if r == c else moments[r, c] for r, c in sorted(moments)))
    return RigidInertia(mass, center * mass, S_own)


class Recorder(Context):
    """Keeps what an algorithm names on its way, the first of each name."""

    in_metres = True

    def __init__(self) -> None:
        self.values: dict[str, Scalar] = {}

    def name(self, label: str, x: Scalar) -> None:
        self.values.setdefault(label, x)


CATALOGUE_LETTERS = {"mass_matrix": "M", "bias": "h", "coriolis_matrix": "C"}


def _rows(letter: str, values: Sequence[Scalar], numbers: Sequence[str]) -> dict[str, Scalar]:
    return {f"{letter}_{n}": x for n, x in zip(numbers, values)}


def _elements(letter: str, M: Sequence[Sequence[Scalar]], numbers: Sequence[str]) -> dict[str, Scalar]:
    comma = "," if max(map(len, numbers)) > 1 else ""
    return {f"{letter}_{r}{comma}{c}": M[j][i] for j, r in enumerate(numbers) for i, c in enumerate(numbers)}


def results(s: SymbolicState, notation: str, numbers: Sequence[str]) -> dict[str, Callable[[], dict[str, Scalar]]]:
    """Results of the paper by their letters: the matrix, the efforts, energies."""
    t, name = s.tree, LETTERS_OF_RESULTS.get(notation, {})
    rows: dict[str, Callable[[], dict[str, Scalar]]] = {
        "V": lambda: {"V": potential_energy(t, s.q)},
        "T": lambda: {"T": kinetic_energy(t, s.q, s.v)},
        "tau": lambda: _rows("tau", inverse_dynamics(t, s.q, s.v, s.a), numbers),
    }
    for letter in {name.get("mass_matrix", "H" if notation == "telegin" else "M"), "M"}:
        rows[letter] = partial(lambda x: _elements(x, mass_matrix(t, s.q), numbers), letter)
    for letter in {name.get("bias", "h"), "h"}:
        rows[letter] = partial(lambda x: _rows(x, bias(t, s.q, s.v), numbers), letter)
    for letter in ("G", "Q" if notation == "telegin" else "g"):  # g_3 of Telegin's is a part of elements
        above = "^g" if letter == "Q" else ""
        rows[letter] = partial(lambda x, up: _rows(x, gravity(t, s.q), [n + up for n in numbers]), letter, above)
    for letter in {name.get("coriolis_matrix", "C"), "C"}:
        rows[letter] = partial(lambda x: _elements(x, zaremba.coriolis_matrix(t, s.q, s.v), numbers), letter)
    return rows


def runs(s: SymbolicState, notation: str, by_page: bool) -> list[Callable[[], Any]]:
    """The algorithms of a notation, whose names are its symbols."""
    t = s.tree
    page = [lambda: vereshchagin_page.forward_dynamics(t, s.q, s.v, s.tau)] if by_page else []
    return page + {
        "telegin": [lambda: telegin.mass_matrix(t, s.q)],
        "kovalchuk": [lambda: kovalchuk.inverse_dynamics(t, s.q, s.v, s.a)],
        "vereshchagin": [lambda: vereshchagin.forward_dynamics(t, s.q, s.v, s.tau)],
        "zaremba": [lambda: zaremba.mass_matrix(t, s.q), lambda: zaremba.gravity(t, s.q),
                    lambda: zaremba.bias(t, s.q, s.v)],
        "alyushin": [lambda: alyushin.kinetic_energy(t, s.q, s.v)],
    }[notation]  # fmt: skip


class Truth:
    """Values by name: exact, or arrays over samples with parameters of their own in each."""

    def __init__(self, robot: NotedRobot, give: Give, self_named: bool = True) -> None:
        """self_named: with what the algorithms name on their way."""
        tree, notation = robot.tree, robot.notation
        self.notation, self.numeric = notation, tree
        self.given_names: dict[str, Scalar] = {}
        self.numbers: dict[str, float] = {}  # of the robot

        def keep(name: str, x: float) -> Scalar:
            self.given_names[name], self.numbers[name] = give(name, x), x
            return self.given_names[name]

        state = symbolic_state(robot, keep)
        self.recorder = Recorder()
        self.state = state._replace(tree=state.tree.replace(context=self.recorder))
        self.tree = state.tree
        self.number = {b.number: i for i, b in enumerate(tree.bodies)}
        names = [next(b.number for b in tree.bodies if b.v == k) for k in range(tree.nv)]
        self._results = results(state, notation, names)
        self.results = frozenset(self._results)  # letters of what the equations are for
        own = {"mass_matrix": "H"} if notation == "telegin" else LETTERS_OF_RESULTS.get(notation, {})
        # letters that are understood where the paper has another: no mend writes them
        self.aliases = {x for name, x in CATALOGUE_LETTERS.items() if own.get(name, x) != x}
        algorithms = runs(self.state, notation, robot.by_page) if self_named else []
        self._waiting = [self._recorded(run) for run in algorithms]
        for name, letter in robot.letters.items() if notation != "telegin" else ():  # with its axis, too: L_2x
            if ".origin." in name and letter[-1] not in (*AXES, "l"):
                self.given_names[letter + name[-1]] = self.given_names[letter]
        self.known: dict[str, Scalar | None] = {**self.given_names, **_rows("qd", state.v, names)}
        self.known |= {f"kappa_{b.number}": b.pitch for b in self.tree.bodies if b.kind == "helical"}
        if notation == "telegin":
            self.rules: Callable[[str], Scalar | None] | None = TeleginNames(self).symbol
        else:
            self.rules = None

    def _recorded(self, run: Callable[[], Any]) -> Callable[[], dict[str, Scalar]]:
        def values() -> dict[str, Scalar]:
            try:
                out = run()
            except TraceError:  # too large for exact values: those that came before have one
                return self.recorder.values
            tau = "a" if self.notation == "vereshchagin" else ""
            if tau:
                numbers = [next(b.number for b in self.tree.bodies if b.v == k) for k in range(self.tree.nv)]
                self.recorder.values.update(_rows(tau, out, numbers))
            return self.recorder.values

        return values

    def __call__(self, name: str) -> Scalar | None:
        """The value of a symbol, or of a product L_3*m_33^e; None for a name that the notation does not have."""
        if name in self.known:
            return self.known[name]
        if "*" in name:
            values = [self(part) for part in name.split("*")]
            return None if any(x is None for x in values) else reduce(mul, values)
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
            if not (self.notation == "telegin" and key.startswith(TOLD_LETTERS)):
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


def parameters_of(robot: NotedRobot) -> dict[str, float]:
    """The symbols of a robot with their numbers; coordinates, rates, accelerations and efforts have 1."""
    out: dict[str, float] = {}

    def give(name: str, x: float) -> float:
        return out.setdefault(name, x)

    symbolic_state(robot, give)
    return out


def is_parameter(name: str) -> bool:
    """Neither a coordinate nor a rate, an acceleration or an effort."""
    return name.split("_")[0] not in ("q", "v", "a", "tau") or "^" in name


def exact_truth(robot: NotedRobot) -> tuple[Truth, Algebra]:
    """Values as polynomials, and the algebra of their symbols."""
    numbers, tree = parameters_of(robot), robot.tree
    angles = [n for n in numbers if n.startswith("q_")]
    trig = [f"{letter}{n[1:]}" for letter in "sc" for n in angles]
    algebra = Algebra([*_directions_first(numbers), *trig], 2 * len(tree) + 6)
    _unit_directions(algebra, list(numbers))
    rational_tree = tree.replace(bodies=tuple(b._replace(R=exact_rotation(b.R, algebra)) for b in tree.bodies))
    robot, named = robot._replace(tree=rational_tree), not robot.by_page  # whose six by six are too large
    return Truth(robot, lambda name, _: algebra.symbol(name), named), algebra


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
    robot: NotedRobot,
    seed: int,
    varied: bool,
    fulfil: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda draws: {},
) -> Truth:
    """Values as arrays over samples; varied: the parameters have other numbers in each sample.

    fulfil: the draws that conditions change.
    """
    rng = np.random.default_rng(seed)
    numbers = parameters_of(robot)
    draws = {
        n: rng.uniform(-3.0, 3.0, FORMULA_SAMPLES) if not is_parameter(n)
        else np.full(FORMULA_SAMPLES, x) * (rng.uniform(0.6, 1.4, FORMULA_SAMPLES) if varied else 1.0)
        for n, x in numbers.items()
    }  # fmt: skip
    if varied:
        _normalise(draws)
    draws.update(fulfil(draws))
    return Truth(robot, lambda name, _: draws[name])


def _normalise(draws: dict[str, Any]) -> None:
    for members in _unit_vectors(draws):
        size = np.sqrt(sum(draws[n] ** 2 for n in members))
        for n in members:
            draws[n] = draws[n] / size
