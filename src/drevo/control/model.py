"""Linear models as values: matrices, the step of a discrete one, and the names of what they act on.

Linear models from and to python-control and SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from html import escape
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..documents.pictures.picture import Figure, Pictured
from ..errors import DrevoError, InputError, NumericsError, shown
from ..io.given import Array, finite, seconds
from ..io.packages import package
from ..io.reprs import result
from .law import HasProgram, linear_program
from .responses import (
    FrequencyResponse,
    Matrices,
    PoleZeroMap,
    StepResponse,
    frequency_response,
    response_times,
    step_response,
    transmission_zeros,
)


def to_control(m: Matrices, states: tuple[str, ...]) -> Any:
    """python-control's own object, with the names."""
    ss = package("control", "a model of python-control").ss
    plain = {"states": states, "inputs": m.inputs, "outputs": m.outputs}
    names = {k: [x.replace(".", "_") for x in given] for k, given in plain.items()}  # a dot means a system there
    return ss(m.A, m.B, m.C, m.D, 0 if m.dt is None else m.dt, **names)


def to_scipy(m: Matrices) -> Any:
    """SciPy's own object, continuous or discrete."""
    signal = package("scipy.signal", "a model of SciPy")
    given = (m.A, m.B, m.C, m.D)
    return signal.StateSpace(*given) if m.dt is None else signal.StateSpace(*given, dt=m.dt)


def matrices_of(system: Any) -> dict[str, Any]:
    """The matrices, names and step of a system of python-control or SciPy, for a LinearModel."""
    dt = getattr(system, "dt", None)
    theirs = type(system).__module__.split(".")[0]
    if theirs == "control":
        if dt is None or dt is True:
            raise InputError(
                "LinearModel.of: the system does not say its step; give it dt=0 or a number of seconds"
            )
        if not hasattr(system, "A"):
            system = package("control", "a transfer function").tf2ss(system)
        names = {k: tuple(getattr(system, f"{k[:-1]}_labels")) for k in ("states", "inputs", "outputs")}
        return {x: np.asarray(getattr(system, x), float) for x in "ABCD"} | names | {"dt": dt or None}
    if theirs == "scipy" and hasattr(system, "to_ss"):
        if dt is True:
            raise InputError("LinearModel.of: the system does not say its step; give it dt= in seconds")
        system = system.to_ss()
        return {x: np.asarray(getattr(system, x), float) for x in "ABCD"} | {"dt": dt or None}
    raise InputError(f"LinearModel.of takes a linear system of python-control or SciPy, not {shown(system)}")


AnyLinearModel = TypeVar("AnyLinearModel", bound="LinearModel")
MOST_SHOWN = 16  # rows and columns of a matrix that is written out
EDGE_DISTANCE = 1e-13  # of the largest number of A: a pole nearer to the edge than that is on it


def _latex(x: Array) -> str:
    rows = [" & ".join(f"{v:.4g}" for v in row) for row in x.tolist()]
    return r"\begin{bmatrix}" + r" \\ ".join(rows) + r"\end{bmatrix}"


@result
class Modes:
    """Natural frequencies rad/s (rising), damping ratios, and shapes (states, modes) of a linear model."""

    frequencies: Array
    damping: Array
    shapes: Array


@result
class LinearModel(Pictured, HasProgram):
    """x' = A x + B u, y = C x + D u; with a step dt: x(k + 1) = A x(k) + B u(k).

    A (n, n), B (n, m); C (p, n), by default the state itself, D (p, m), by default zero; leading dimensions are a
    batch, of which model[k] takes one. dt: None, or the step of a discrete model in seconds. states, inputs,
    outputs: their names; units: of any of these names, SI. The arrays are copies that cannot be written to.
    Raises InputError, NumericsError.
    """

    A: Array
    B: Array
    C: Array = None  # type: ignore[assignment]
    D: Array = None  # type: ignore[assignment]
    dt: float | None = None
    states: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict, repr=False)

    shared: ClassVar[tuple[str, ...]] = ()  # arrays that are the same of every model of a batch

    def __post_init__(self) -> None:
        A, B = (finite(f"linear model: {x}", getattr(self, x), (..., None, None)) for x in "AB")
        lead, n, m = A.shape[:-2], A.shape[-1], B.shape[-1]
        C = np.eye(n) if self.C is None else finite("linear model: C", self.C, (..., None, None))
        p = C.shape[-2]
        D = np.zeros((p, m)) if self.D is None else self.D
        sizes = {"A": (A, (n, n)), "B": (B, (n, m)), "C": (C, (p, n)), "D": (D, (p, m))}
        given: dict[str, Any] = {name: _over(lead, name, *x) for name, x in sizes.items()}
        given["dt"] = None if self.dt is None else seconds("linear model: dt", self.dt)
        given["states"] = _names("states", self.states, n, [f"x{i}" for i in range(n)])
        given["inputs"] = _names("inputs", self.inputs, m, [f"u{i}" for i in range(m)])
        usual = given["states"] if self.C is None else [f"y{i}" for i in range(p)]
        given["outputs"] = _names("outputs", self.outputs, p, usual)
        given["units"] = units_named(self.units, {*given["states"], *given["inputs"], *given["outputs"]})
        for name, x in given.items():
            object.__setattr__(self, name, x)

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading dimensions of a batch, () of one model."""
        return tuple(self.A.shape[:-2])

    def __len__(self) -> int:
        return len(one_axis(self).A)

    def __bool__(self) -> bool:
        return True  # of a single one too, which has no length

    def __iter__(self: AnyLinearModel) -> Iterator[AnyLinearModel]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self: AnyLinearModel, k: Any) -> AnyLinearModel:
        batch = one_axis(self)
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.shared}
        try:
            return replace(batch, **{name: x[k] for name, x in arrays.items() if isinstance(x, np.ndarray)})
        except (IndexError, ValueError, TypeError):
            raise InputError(f"linear model: index {shown(k)} is none of this batch of {self.lead}") from None

    def discretised(self: AnyLinearModel, dt: float) -> AnyLinearModel:
        """The model in steps of dt seconds, exact for inputs held over each: exp of [[A, B], [0, 0]] dt.

        Outputs and names stay. Raises InputError of a model that is discrete, NumericsError where dt is too long
        for its growth.
        """
        step = seconds("discretised: dt", dt)
        if self.dt is not None:
            raise InputError(
                f"discretised: the model is discrete, with steps of {self.dt:g} s; discretise the continuous one"
            )
        n, m = self.B.shape[-2:]
        block = np.zeros((*self.lead, n + m, n + m))
        block[..., :n, :n], block[..., :n, n:] = self.A, self.B
        with np.errstate(all="ignore"):
            whole = package("scipy.linalg", "an exact discretisation").expm(block * step)
        if not np.isfinite(whole).all():
            raise NumericsError(
                f"discretised: the model grows beyond all numbers within a step of {step:g} s; take a shorter one"
            )
        return replace(self, A=whole[..., :n, :n], B=whole[..., :n, n:], dt=step)

    def modes(self) -> Modes:
        """Eigenvalues -damping w +- i w sqrt(1 - damping^2), one of each pair.

        Of a discrete model those of the continuous motion through its samples, log(z) / dt: frequencies up to
        pi / dt can be told apart.
        """
        values, vectors = np.linalg.eig(single("modes", self).A)
        keep = values.imag >= 0.0
        values, vectors = values[keep], vectors[:, keep]
        if self.dt is not None:
            with np.errstate(divide="ignore"):
                values = np.log(np.abs(values)) / self.dt + 1j * (np.angle(values) / self.dt)
        size = np.abs(values)
        damping = np.ones_like(size)  # of what is gone after one step
        np.divide(-values.real, size, out=damping, where=np.isfinite(size) & (size > 0.0))
        damping[size == 0.0] = 0.0
        order = np.argsort(size, kind="stable")
        return Modes(size[order], damping[order], vectors[:, order])

    def figure(self) -> Figure:
        """Poles, and transmission zeros where there are as many outputs as inputs; of one model."""
        p, m = single("a picture", self).D.shape
        zeros = self.zeros() if p == m else np.zeros(0)
        return PoleZeroMap(self.poles(), zeros, self.dt).figure()

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + (self.svg() if not self.lead else "")

    def _repr_latex_(self) -> str | None:
        """x' = A x + B u with the matrices, as far as they fit on a page; of one model."""
        if self.lead or max(self.A.shape + self.B.shape) > MOST_SHOWN:
            return None
        following = r"x_{k+1}" if self.dt else r"\dot x"
        return f"$${following} = {_latex(self.A)} x + {_latex(self.B)} u$$"

    # -- poles, zeros, responses ------------------------------------------------------------------------------

    def _matrices(self, title: str) -> Matrices:
        """The matrices of one model, for the caller that the error names."""
        m = single(title, self)
        return Matrices(m.A, m.B, m.C, m.D, m.dt, m.inputs, m.outputs)

    def poles(self) -> Array:
        """Eigenvalues of A, (..., n): s of a continuous model, 1/s, z of a discrete one."""
        return np.asarray(np.linalg.eigvals(self.A))

    def zeros(self, output: str | None = None, input: str | None = None) -> Array:
        """Transmission zeros (n,), 1/s or z, of a square model, or of one channel by its names."""
        return transmission_zeros(self._matrices("zeros"), output, input)

    def pole_zero_map(self, output: str | None = None, input: str | None = None) -> PoleZeroMap:
        """Poles and zeros; .svg() draws them."""
        return PoleZeroMap(single("pole_zero_map", self).poles(), self.zeros(output, input), self.dt)

    def frequency_response(self, frequencies: ArrayLike) -> FrequencyResponse:
        """The response to sines at frequencies rad/s above 0; .magnitude, .phase, and Bode's diagram as .svg().

        NumericsError at a natural frequency without damping.
        """
        return frequency_response(self._matrices("frequency_response"), frequencies)

    def step_response(self, duration: float, samples: int = 401) -> StepResponse:
        """From rest, exact: at even times up to `duration` seconds, of a discrete model at its own."""
        m = self._matrices("step_response")
        times = response_times(self.dt, duration, samples)
        step = self if self.dt is not None else self.discretised(float(times[1]))
        return step_response(m, step._matrices("step_response"), times)

    # -- elsewhere --------------------------------------------------------------------------------------------

    def to_control(self) -> Any:
        """python-control's StateSpace, continuous (dt = 0) or discrete; dots of names are underscores there."""
        return to_control(self._matrices("to_control"), self.states)

    def to_scipy(self) -> Any:
        """SciPy's StateSpace, continuous or discrete."""
        return to_scipy(self._matrices("to_scipy"))

    @staticmethod
    def of(system: Any) -> LinearModel:
        """The model of a linear system of python-control or SciPy. InputError where it does not say its step."""
        return LinearModel(**matrices_of(system))

    def program(self, name: str = "linear_model") -> Program:
        """x' (or, discrete, the next x) and y of x and u; in C the arguments are x, u, out_dx, out_y."""
        about = getattr(getattr(self, "robot", None), "name", "given matrices")
        return linear_program(self._matrices("write_out"), name, about, self.states, self.units)

    def decays(self, poles: Array) -> bool:
        """True if motions with these poles (n,) die out, by more than rounding."""
        edge = EDGE_DISTANCE * np.abs(self.A).max(initial=1.0)
        if self.dt is None:
            return bool(np.max(poles.real, initial=-math.inf) < -edge)
        return bool(np.max(np.abs(poles), initial=0.0) < 1.0 - EDGE_DISTANCE)


def single(title: str, model: LinearModel) -> LinearModel:
    """The model, if it is one and no batch of them."""
    if not isinstance(model, LinearModel):
        raise InputError(
            f"{title}: a linear model is needed, as robot.linearise(q, v, tau) gives it, not "
            f"{type(model).__name__}"
        )
    if model.lead:
        raise InputError(f"{title} takes one linear model, this is a batch of {model.lead}: take model[k]")
    return model


def one_axis(model: AnyLinearModel) -> AnyLinearModel:
    """The model, if it is a batch."""
    if not model.lead:
        raise InputError("this linear model is a single one, no batch: there is nothing to count or to index")
    return model


def real_matrix(title: str, x: ArrayLike, shape: tuple[Any, ...]) -> Array:
    """Finite numbers of a shape, as a copy that cannot be written to."""
    array = np.array(finite(title, x, shape))
    array.setflags(write=False)
    return array


def _over(lead: tuple[int, ...], name: str, x: ArrayLike, shape: tuple[int, int]) -> Array:
    """A matrix of every model of a batch."""
    array = finite(f"linear model: {name}", x, (..., *shape))
    try:
        return real_matrix(name, np.broadcast_to(array, (*lead, *shape)), (..., *shape))
    except DrevoError:
        raise
    except ValueError:
        raise InputError(
            f"linear model: {name} has shape {array.shape}; those of A say that it is {(*lead, *shape)}"
        ) from None


def units_named(given: Any, names: set[str]) -> dict[str, str]:
    """The units of names that there are."""
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for item in given.items() for x in item):
        raise InputError(f"linear model: units must be {{name: unit}}, not {shown(given)}")
    return {name: unit for name, unit in given.items() if name in names}


def _names(title: str, given: Sequence[str], size: int, usual: Sequence[str]) -> tuple[str, ...]:
    """Names of states, inputs or outputs, checked; the default ones where none are given."""
    names = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not names:
        return tuple(usual)
    if len(names) != size or not all(isinstance(x, str) for x in names) or len(set(names)) != size:
        raise InputError(f"linear model: {title} must be {size} different names, not {given!r}")
    return names
