"""Integrators as values: a Butcher tableau, its order and where it was published. One engine runs them all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InputError, one_of
from ..io.given import finite, short_text, whole

TableauRow = tuple[float, ...]
ESTIMATES = 2  # of the error of a step


@dataclass(frozen=True, slots=True)
class Integrator:
    """y' = y + h sum_i b_i K_i, K_i = f(t + c_i h, y + h sum_j a_ij K_j).

    q_rows, q_weights: another a and b for the coordinates (a partitioned method); None: the same.
    errors: weights of embedded error estimates; a method that has them chooses its steps by itself.
    """

    name: str
    order: int
    rows: tuple[TableauRow, ...]
    weights: TableauRow
    reference: str
    q_rows: tuple[TableauRow, ...] | None = None
    q_weights: TableauRow | None = None
    errors: tuple[TableauRow, ...] = ()

    def __post_init__(self) -> None:
        title = f"integrator {short_text('integrator: name', self.name)!r}"
        short_text(f"{title}: reference", self.reference, 300)
        object.__setattr__(self, "order", whole(f"{title}: order", self.order))
        s = finite(f"{title}: weights", self.weights, (None,), InputError).size
        if not s:
            raise InputError(f"{title}: there are no weights; give one for each stage")
        for name in ("weights", "rows", "q_weights", "q_rows", "errors"):
            given, rows = getattr(self, name), name in ("rows", "q_rows", "errors")
            if (given is None and name in ("q_weights", "q_rows")) or (isinstance(given, tuple) and not given):
                continue
            shape = (None if name == "errors" else s, s) if rows else (s,)
            table = finite(f"{title}: {name}", given, shape, InputError).tolist()
            object.__setattr__(self, name, tuple(map(tuple, table)) if rows else tuple(table))
        if len(self.rows) != s or len(self.errors) > ESTIMATES:
            raise InputError(f"{title}: {s} weights need {s} rows of {s} numbers, and {ESTIMATES} errors at most")

    @property
    def stages(self) -> int:
        """The number of stages: the slopes that a step takes."""
        return len(self.weights)

    @property
    def nodes(self) -> TableauRow:
        """c_i, the sums of the rows."""
        return tuple(math.fsum(row) for row in self.rows)

    @property
    def implicit(self) -> bool:
        """A stage that needs itself or a later one."""
        return any(x != 0.0 for i, row in enumerate(self.rows) for x in row[i:])

    @property
    def adaptive(self) -> bool:
        """True if the method estimates its error and chooses its step."""
        return bool(self.errors)


def _lower(*rows: Iterable[float]) -> tuple[TableauRow, ...]:
    """Rows of an explicit method, completed with zeros to a square."""
    given = [tuple(row) for row in rows]
    return tuple(row + (0.0,) * (len(given) - len(row)) for row in given)


def _sparse(size: int, entries: dict[int, float]) -> TableauRow:
    return tuple(entries.get(j, 0.0) for j in range(size))


RK4 = Integrator(
    "rk4", 4, _lower((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6),
    "Kutta 1901; Hairer, Norsett, Wanner 1993, II.1",
)  # fmt: skip

MIDPOINT = Integrator(
    "midpoint", 2, ((0.5,),), (1.0,), "implicit midpoint rule; Hairer, Lubich, Wanner 2006, II.1"
)

_R3, _R15 = math.sqrt(3.0), math.sqrt(15.0)
GAUSS4 = Integrator(
    "gauss4", 4, ((1 / 4, 1 / 4 - _R3 / 6), (1 / 4 + _R3 / 6, 1 / 4)), (1 / 2, 1 / 2),
    "Hammer and Hollingsworth 1955; Hairer, Lubich, Wanner 2006, II.1.3",
)  # fmt: skip
GAUSS6 = Integrator(
    "gauss6", 6,
    ((5 / 36, 2 / 9 - _R15 / 15, 5 / 36 - _R15 / 30),
     (5 / 36 + _R15 / 24, 2 / 9, 5 / 36 - _R15 / 24),
     (5 / 36 + _R15 / 30, 2 / 9 + _R15 / 15, 5 / 36)),
    (5 / 18, 4 / 9, 5 / 18), "Kuntzmann 1961, Butcher 1964; Hairer, Lubich, Wanner 2006, II.1.3",
)  # fmt: skip

# v' = v + h a(q, v), then q' = q + h v': as a partitioned tableau of two evaluations
SEMI_IMPLICIT_EULER = Integrator(
    "semi_implicit_euler", 1, ((0.0, 0.0), (1.0, 0.0)), (1.0, 0.0),
    "symplectic Euler in (q, v): order 1, and NOT symplectic here, because M depends on q; its energy can blow up",
    q_rows=((0.0, 0.0), (0.0, 0.0)), q_weights=(0.0, 1.0),
)  # fmt: skip

# Coefficients of DOP853 by Hairer and Wanner, as printed in Hairer, Norsett, Wanner, Solving Ordinary
# Differential Equations I, 2nd edition 1993, II.5 and II.10 (dop853.f); zeros left out
_DOP853_ROWS: tuple[dict[int, float], ...] = (
    {},
    {0: 0.05260015195876773},
    {0: 0.0197250569845379, 1: 0.0591751709536137},
    {0: 0.02958758547680685, 2: 0.08876275643042054},
    {0: 0.2413651341592667, 2: -0.8845494793282861, 3: 0.924834003261792},
    {0: 0.037037037037037035, 3: 0.17082860872947386, 4: 0.12546768756682242},
    {0: 0.037109375, 3: 0.17025221101954405, 4: 0.06021653898045596, 5: -0.017578125},
    {0: 0.03709200011850479, 3: 0.17038392571223998, 4: 0.10726203044637328, 5: -0.015319437748624402,
     6: 0.008273789163814023},
    {0: 0.6241109587160757, 3: -3.3608926294469414, 4: -0.868219346841726, 5: 27.59209969944671,
     6: 20.154067550477894, 7: -43.48988418106996},
    {0: 0.47766253643826434, 3: -2.4881146199716677, 4: -0.590290826836843, 5: 21.230051448181193,
     6: 15.279233632882423, 7: -33.28821096898486, 8: -0.020331201708508627},
    {0: -0.9371424300859873, 3: 5.186372428844064, 4: 1.0914373489967295, 5: -8.149787010746927,
     6: -18.52006565999696, 7: 22.739487099350505, 8: 2.4936055526796523, 9: -3.0467644718982196},
    {0: 2.273310147516538, 3: -10.53449546673725, 4: -2.0008720582248625, 5: -17.9589318631188,
     6: 27.94888452941996, 7: -2.8589982771350235, 8: -8.87285693353063, 9: 12.360567175794303,
     10: 0.6433927460157636},
)  # fmt: skip
_DOP853_WEIGHTS = (
    {0: 0.054293734116568765, 5: 4.450312892752409, 6: 1.8915178993145003, 7: -5.801203960010585,
     8: 0.3111643669578199, 9: -0.1521609496625161, 10: 0.20136540080403034, 11: 0.04471061572777259}
)  # fmt: skip
_DOP853_THIRD = (
    {0: -0.18980075407240762, 5: 4.450312892752409, 6: 1.8915178993145003, 7: -5.801203960010585,
     8: -0.4226823213237919, 9: -0.1521609496625161, 10: 0.20136540080403034, 11: 0.02265179219836082}
)  # fmt: skip
_DOP853_FIFTH = (
    {0: 0.01312004499419488, 5: -1.2251564463762044, 6: -0.4957589496572502, 7: 1.6643771824549864,
     8: -0.35032884874997366, 9: 0.3341791187130175, 10: 0.08192320648511571, 11: -0.022355307863886294}
)  # fmt: skip
DOP853 = Integrator(
    "dop853", 8, tuple(_sparse(12, row) for row in _DOP853_ROWS), _sparse(12, _DOP853_WEIGHTS),
    "Dormand and Prince 1989; Hairer, Norsett, Wanner 1993, II.10",
    errors=(_sparse(12, _DOP853_FIFTH), _sparse(12, _DOP853_THIRD)),
)  # fmt: skip

METHODS = {m.name: m for m in (RK4, DOP853, GAUSS4, GAUSS6, MIDPOINT, SEMI_IMPLICIT_EULER)}


def integrator(method: str | Integrator) -> Integrator:
    """An integrator by its name, or itself."""
    if isinstance(method, Integrator):
        return method
    return METHODS[one_of("method", method, METHODS, InputError)]
