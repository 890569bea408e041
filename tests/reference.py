"""Drevo's algorithms on Python numbers behind the methods of a Robot, and the one comparison of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from drevo.compiler.formalisms import common_algorithm
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model
from drevo.model.loaders.native import to_json
from drevo.model.loaders.writers import text_of, write_model
from drevo.model.quantities import CATALOGUE

Array = np.ndarray
WORST: dict[str, tuple[float, float]] = {}  # what -> largest residual met, its tolerance; DREVO_RESIDUALS=1 shows
STEP = 1e-100  # of complex steps: its square is nothing


class Reference:
    """One robot on Python floats, or on complex numbers for derivatives by complex steps."""

    def __init__(self, model: Model) -> None:
        self.model, self.tree = model, build_tree(model)
        self.nq, self.nv = model.nq, model.nv

    def __getattr__(self, name: str) -> Any:
        if name not in CATALOGUE:
            raise AttributeError(name)
        return lambda *state, **options: self.compute(name, *state, **options)

    def compute(
        self, name: str, *state: Any, f_ext: Mapping[str, Sequence[float]] | None = None, **options: Any
    ) -> Any:
        """A quantity of the catalogue, of one state or of many as rows; arguments and results are arrays."""
        if name in ("jacobian", "velocity", "acceleration"):
            options.setdefault("frame", "local_world_aligned")
        if name == "acceleration":
            options.setdefault("kind", "classical")
        if f_ext is not None:
            options["external"] = {k: np.asarray(w).tolist() for k, w in f_ext.items()}
        count = max((len(x) for x in state if np.ndim(x) == 2), default=0)
        given = [list(np.transpose(x)) if np.ndim(x) == 2 else np.asarray(x).tolist() for x in state]
        found = common_algorithm(name)(self.tree, *given, **options)
        made = (lambda x: rows_of(x, count)) if count else np.array
        return tuple(map(made, found)) if name.endswith("_derivatives") else made(found)


def rows_of(found: Any, count: int) -> Array:
    """Nested scalars, some of them arrays over so many states, as one array with the states first."""
    if isinstance(found, np.ndarray) or not hasattr(found, "__iter__"):
        return np.broadcast_to(found, (count,))
    return np.stack([rows_of(x, count) for x in found], 1)


def stepped(model: Model, q: Array, dv: Array) -> Array:
    """q moved along the tangent vector i STEP dv: complex, exact to first order."""
    out = q.astype(complex)
    for j, sq, sv in model.slices():
        if j.nq < 4:
            out[sq] += 1j * STEP * dv[sv]
            continue
        x, w = q[sq.stop - 4 : sq.stop], dv[sv.stop - 3 : sv.stop]
        out[sq.stop - 4 : sq.stop] += 0.5j * STEP * np.append(x[3] * w + np.cross(x[:3], w), -x[:3] @ w)
        if j.kind == "free":
            u = dv[sv.start : sv.start + 3]
            t = 2.0 * np.cross(x[:3], u)
            out[sq.start : sq.start + 3] += 1j * STEP * (u + x[3] * t + np.cross(x[:3], t))
    return out


def slope(x: Array) -> Array:
    """The derivative that a complex step leaves."""
    return np.imag(x) / STEP


def close(what: str, got: Any, expected: Any, tolerance: float, scale: float | None = None) -> None:
    """|got - expected| <= tolerance * scale in every entry; scale: the largest expected entry by default."""
    a, b = np.asarray(got), np.asarray(expected)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    if not b.size:
        return
    assert np.all(np.isfinite(a)), f"{what}: not finite"
    size = float(np.max(np.abs(b))) if scale is None else scale
    error = float(np.max(np.abs(a - b)))
    residual = error / size if size else error
    key = what.split(" of ")[0]
    WORST[key] = max(WORST.get(key, (0.0, tolerance)), (residual, tolerance), key=lambda x: x[0] / x[1])
    assert error <= tolerance * size, f"{what}: off by {error:.3e} of {size:.3e}, {residual:.1e} > {tolerance:.1e}"


def largest(*parts: Any) -> float:
    """The largest entry of several arrays."""
    return max((float(np.max(np.abs(x))) for x in parts if np.size(x)), default=0.0)


@contextmanager
def robot_shown(model: Model) -> Iterator[None]:
    """A failure ends with the robot as a file that loads again."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error}\nrobot {model.name}:\n{to_json(model)}") from error


def on_each(models: Sequence[Model], check: Callable[[Model, int], None]) -> None:
    """Every robot is checked, with its number; then all that failed are told, each as a file."""
    failed: list[Exception] = []
    for k, model in enumerate(models):
        try:
            with robot_shown(model):
                check(model, k)
        except Exception as error:
            error.args = (f"tree {k}, {model.name}: {type(error).__name__}: {error}",)
            failed.append(error)
    if failed:
        told = "\n".join(str(error) for error in failed)
        raise AssertionError(f"{len(failed)} of {len(models)} trees fail\n{told}") from failed[0]


def as_text(model: Model, suffix: str = ".urdf") -> str:
    """The robot as a file of the suffix has it, whatever is lost."""
    return text_of(write_model(model, suffix), suffix)
