"""Functions of the user's that are traced: constraints made of them; what they raise and give, as sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from ..compiler.tracer import TracedFunction, Tracer
from ..errors import DrevoError, InputError, TraceError, UnknownNameError, shown
from ..mechanics.algorithms import constraints as rows_of
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.kinematics import NamedEntries
from ..mechanics.jet import Jet, jet
from ..mechanics.scalar import Scalar, Vector
from ..model.draft import did_you_mean
from .kinds import Array, Constraint, Reaction, Triple

HOW_TO_WRITE = (
    "write it with + - * / **, drevo.sin, cos, sqrt, where, minimum, maximum, clip, without a branch on a value"
)
OF_NUMPY = "ufunc", "not 'Jet'", "not 'Expr'", "'Jet' object", "'Expr' object"  # in its errors
NO_NUMPY = "a function or an array of NumPy met a traced value; give lists"


def call_traced(title: str, give: Callable[[], Any]) -> Any:
    """Calls a function and returns its result; whatever it raises becomes an InputError about it."""
    try:
        return give()
    except InputError as error:
        raise type(error)(f"{title}: {error}") from None
    except ZeroDivisionError:
        raise InputError(f"{title} divides by zero whatever the state is; correct it") from None
    except TraceError as error:
        raise InputError(f"{title} cannot be traced: {error}") from None
    except (DrevoError, TypeError) as error:
        why = NO_NUMPY if any(word in str(error) for word in OF_NUMPY) else error
        raise InputError(f"{title} cannot be traced: {why}; {HOW_TO_WRITE}") from error
    except Exception as error:
        raise InputError(f"{title} raised {type(error).__name__}: {error}; correct it") from error


def scalars_given(title: str, given: Any, size: int) -> list[Scalar]:
    """So many scalars, traced or plain."""
    if isinstance(given, (Jet, Real, str)) or not isinstance(given, Iterable):
        raise InputError(f"{title} gave {short(given)}, not a list of {size}; return [value, ...]")
    values = list(given)
    if len(values) != size:
        raise InputError(f"{title} gave {len(values)} values, size is {size}")
    for x in values:
        if not isinstance(x, Jet) and not (isinstance(x, Real) and math.isfinite(x)):
            raise InputError(f"{title} gave {short(x)} among its values; each must be a finite number")
    return values


def short(x: object) -> str:
    """A short text of a value, for a sentence."""
    return "one traced number" if isinstance(x, Jet) else shown(x)


@dataclass(frozen=True, slots=True)
class PoseTracking(Constraint):
    """A frame of a link follows a programmed pose."""

    numeric = ("point",)
    word = "pose_tracking"
    link: str
    program: Callable[[Scalar], Sequence[Vector]] | TracedFunction
    point: Triple
    size: int = 6

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        program = self.traced((), 0).program

        def pose(time: Scalar) -> list[Vector]:
            (entries,) = program([time])
            return [entries[i : i + 4] for i in range(0, 16, 4)]

        return rows_of.pose_tracking(k, t, self.link, self.point, pose)

    def traced(self, links: Collection[str], nq: int) -> PoseTracking:
        """The constraint with its program as that is now; its trace is kept as it is."""
        if isinstance(self.program, TracedFunction):
            return self
        t = Tracer("pose_tracking")
        rows = self.checked(*map(Jet, t.input("t", 1)))
        t.output("pose", [jet(x).x for row in rows for x in row])
        return replace(self, program=TracedFunction(t.program()))

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        yield Reaction(self.link, self.point, N[..., :3], N[..., 3:])

    def checked(self, t: Scalar) -> Sequence[Vector]:
        """The program, with what it gives checked."""
        title = f"pose_tracking of {self.link!r}"
        pose = call_traced(title, lambda: self.program(t))
        if not isinstance(pose, Iterable) or len(rows := list(pose)) != 4:
            raise InputError(
                f"{title}: the program gives a 4x4 pose, four rows of four numbers, not {short(pose)}"
            )
        return [scalars_given(f"{title}: row {i} of the pose", row, 4) for i, row in enumerate(rows)]


@dataclass(frozen=True, slots=True)
class Traced(Constraint):
    """f(pose, q, t) = 0 of a Python function."""

    on_arrays = False
    f: Callable[..., Vector] | TracedFunction
    size: int

    @property
    def label(self) -> str:
        return f"function({getattr(self.f, '__name__', 'f')})"

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        f = self.traced(k.tree.frames, len(k.q)).f
        assert isinstance(f, TracedFunction)
        links = [port.name for port in f.program.inputs[2:]]

        def values(pose: Callable[[str], Any], q: Vector, time: Scalar) -> Vector:
            return f(q, [time], *([x for row in pose(link)[:3] for x in row] for link in links))[0]

        return rows_of.function(k, t, values)

    def traced(self, links: Collection[str], nq: int) -> Traced:
        """The constraint with its function as that is now, of q, t and poses; its trace is kept as it is."""
        f = self.f
        if isinstance(f, TracedFunction):
            return self
        name = getattr(f, "__name__", "f")
        title, t, poses = f"function constraint {name!r}", Tracer(str(name)), dict[str, list[Jet]]()
        q, (time,) = (list(map(Jet, t.input(*x))) for x in (("q", nq), ("t", 1)))

        def pose(link: str) -> Any:
            if link not in links:
                raise UnknownNameError(f"link {link!r} is not in the robot{did_you_mean(str(link), links)}")
            if link not in poses:
                poses[link] = list(map(Jet, t.input(link, 12)))
            return NamedEntries([*(poses[link][i : i + 4] for i in (0, 4, 8)), [0.0, 0.0, 0.0, 1.0]])

        values = call_traced(title, lambda: f(pose, q, time))
        t.output("f", [jet(x).x for x in scalars_given(title, values, self.size)])
        return replace(self, f=TracedFunction(t.program()))
