"""Mass distribution of a link: from its shapes, a uniform split, or as stated; always with the link's own inertia.

The solids of a description seldom have the mass, centre and inertia that the same description gives the link.
They are given the link's mass in proportion to their volumes, then moved and stretched by the least affine map
under which centre and inertia agree (the optimal transport between two covariances); how far is on record.

Solids of links in a TOML file: a list of tables for each link, `[[forearm]]`, with `kind` and its numbers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DrevoError, InputError, one_of, shown
from ..io.files import Files, read_regular_file
from ..io.given import asked, numbers
from ..io.meshes import read_mesh_file
from ..io.reprs import result
from ..model.description import Inertial, Link, Model
from ..model.draft import did_you_mean, model_of
from . import solids
from .shapes import ROLES, solids_of
from .solids import Solid

Array = np.ndarray[Any, Any]

KINDS = ("auto", "shapes", "collision", "visual", "box")
AGREES = 1e-6  # relative: how far stated solids may be from the link's own inertia
MAX_STRETCH = 2.0  # a stretch beyond this or below its inverse: the shapes do not tell where the mass is
VISUAL_HANDICAP = (
    1.05  # visual shapes, which are larger files and often open, must be better than those that collide
)
UNIFORM = "uniform box"
FLAT_TENSOR_ROUNDING = 1e-9  # of the largest second moment: printed tensors of flat bodies are this far from flat


@result
class Distribution:
    """The solids of one link in its axes; their masses, centre and inertia together are the link's own.

    about: where they come from. stretch: the factors (3,) by which shapes were stretched to agree. shift: how far
    their centre of mass was moved, m. moved: how far the mass was, root of the mean square, m. density: of the
    shapes before that, kg/m^3, with which their mass is the link's; 0 where none is known.
    """

    link: str
    solids: tuple[Solid, ...]
    about: str
    stretch: tuple[float, ...] = (1.0, 1.0, 1.0)
    shift: float = 0.0
    moved: float = 0.0
    density: float = 0.0

    def beyond(self, normal: Array, offsets: Array) -> Array:
        """Pseudo-inertia (k, 4, 4) of what lies where normal . x >= offset."""
        none = np.zeros((len(offsets), 4, 4))
        return sum((x.beyond(normal, offsets) for x in self.solids), none)

    def reach(self, direction: Array) -> tuple[float, float]:
        """The least and largest direction . x, 0 without mass."""
        ends = [x.reach(direction) for x in self.solids]
        return min((a for a, _ in ends), default=0.0), max((b for _, b in ends), default=0.0)


GivenDistribution = str | Sequence[Solid] | Distribution | Mapping[str, Sequence[Solid]]


def distribution(model: Model, link: str, given: GivenDistribution = "auto") -> Distribution:
    """The mass distribution of a link.

    given: "collision" or "visual", those shapes of the description, fitted; "shapes", of both the ones that are
    moved the least for that; "auto", these where they agree with the inertia to a factor of 2 in every direction,
    else the box; "box", the uniform box that has the link's inertia; or the solids themselves (`drevo.loads.rod`,
    `box`, `cylinder`, `sphere`, `capsule`, `mesh`, `point`), whose mass, centre and inertia must be those of the
    link to 1e-6; or what this function has made; or {link: solids}, and "auto" for the others. Raises InputError.
    """
    model = model_of(model, "a distribution of mass")
    body = named(model, link)
    target = pseudo_inertia(body.inertial)
    if isinstance(given, Mapping):
        given = given.get(link, "auto")
    if isinstance(given, Distribution):
        if given.link != link:
            raise InputError(f"the distribution given for link {link!r} is that of link {given.link!r}")
        return given
    if not isinstance(given, str):
        listed = tuple(given) if np.iterable(given) else (given,)
        if not all(isinstance(x, Solid) for x in listed):
            raise InputError(
                f"the distribution of link {link!r} is one of {', '.join(KINDS)}, or solids, not {shown(given)}"
            )
        return _stated(link, listed, target)
    if given not in KINDS:
        raise InputError(
            f"the distribution of link {link!r} is one of {', '.join(KINDS)}, or solids, not {given!r}"
        )
    if not target.any():
        return Distribution(link, (), "no mass")
    _refuse_impossible(link, target)
    if given == "box":
        return _box(link, target)
    roles = ROLES if given in ("auto", "shapes") else (given,)
    tried, faults = _by_shapes(model, body, roles, target)
    if not tried and given != "auto":
        raise InputError(
            f"link {link!r} has no distribution by shapes: {'; '.join(faults) or 'its description holds none'}; "
            "take distribution='box', or state the solids"
        )
    nearest = min(tried, key=lambda x: x.moved * (1.0 if x is tried[0] else VISUAL_HANDICAP), default=None)
    if nearest is None or (
        given == "auto" and not all(1.0 / MAX_STRETCH <= x <= MAX_STRETCH for x in nearest.stretch)
    ):
        return _box(link, target)
    return nearest


def _by_shapes(
    model: Model, body: Link, roles: Sequence[str], target: Array
) -> tuple[list[Distribution], list[str]]:
    """The fitted shapes of every role that has some, and why others have not."""
    tried, faults = [], []
    for role in roles:
        try:
            if shapes := solids_of(model, body, role):
                tried.append(fitted(body.name, shapes.solids, target, shapes.about))
        except DrevoError as error:
            faults.append(str(error))
    return tried, faults


def named(model: Model, link: str) -> Link:
    """The link of this name."""
    for body in model_of(model, "a load").links if isinstance(link, str) else ():
        if body.name == link:
            return body
    names = [body.name for body in model_of(model, "a load").links]
    hint = did_you_mean(str(link), names) or f"; there are {', '.join(names[:40])}"
    raise InputError(f"link {shown(link)} is not in robot {model.name!r}{hint}")


def pseudo_inertia(inertial: Inertial | None) -> Array:
    """Integral of [x; 1] [x; 1]^T dm of a link, (4, 4), in link axes."""
    P = np.zeros((4, 4))
    if inertial is None:
        return P
    J, c = np.array(inertial.tensor), np.array(inertial.com)
    P[:3, :3] = np.trace(J) / 2 * np.eye(3) - J + inertial.mass * np.outer(c, c)
    P[:3, 3] = P[3, :3] = inertial.mass * c
    P[3, 3] = inertial.mass
    return P


def fitted(link: str, given: Sequence[Solid], target: Array, about: str = "shapes") -> Distribution:
    """The solids with the target's mass, under the least affine map that gives its centre and second moments."""
    P = solids.total_pseudo_inertia(given)
    (m, c, S), (mt, ct, St) = _parts(P), _parts(target)
    A = _transport(S / m, St / mt)
    if not np.allclose(A @ S @ A.T / m, St / mt, atol=AGREES * np.clip(np.trace(St) / mt, 1e-300, 1e300)):
        raise InputError(f"{about} are flat or thin where the inertia of link {link!r} is not")
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = A, ct - A @ c
    scaled = tuple(x.moved(T, x.mass * mt / m) for x in given)
    stretch = tuple(float(x) for x in np.linalg.eigvalsh(A))
    shift, D = float(np.linalg.norm(ct - c)), A - np.eye(3)
    moved = float(np.sqrt(max(0.0, np.trace(D @ S @ D.T) / m) + shift**2))
    return Distribution(link, scaled, about, stretch, shift, moved, mt / m)


def _transport(S: Array, target: Array) -> Array:
    """The symmetric A with A S A = target: S^-1/2 (S^1/2 target S^1/2)^1/2 S^-1/2."""
    root, back = _root(S), np.linalg.pinv(_root(S), rcond=1e-7)
    return np.asarray(back @ _root(root @ target @ root) @ back)


def _root(S: Array) -> Array:
    """The symmetric square root of a matrix that has no negative eigenvalues."""
    w, V = np.linalg.eigh(S)
    return np.asarray((V * np.sqrt(np.maximum(w, 0.0))) @ V.T)


def _parts(P: Array) -> tuple[float, Array, Array]:
    """Mass, centre, second moments about the centre."""
    m = float(P[3, 3])
    c = P[:3, 3] / m
    return m, c, P[:3, :3] - m * np.outer(c, c)


def _box(link: str, target: Array) -> Distribution:
    m, c, S = _parts(target)
    w, V = np.linalg.eigh(S)
    if np.linalg.det(V) < 0.0:
        V[:, 0] = -V[:, 0]
    size = np.sqrt(12.0 * np.maximum(w, 0.0) / m)
    return Distribution(link, (solids.box(m, size, c, V),), UNIFORM)


def _stated(link: str, given: tuple[Solid, ...], target: Array) -> Distribution:
    for x in given:
        if not isinstance(x, Solid):
            raise InputError(
                f"the distribution of link {link!r} holds {x!r}, no solid; make it with drevo.loads.box, ..."
            )
    P = solids.total_pseudo_inertia(given)
    length = (
        np.sqrt(max(np.trace(target[:3, :3]), np.trace(P[:3, :3])) / max(target[3, 3], P[3, 3], 1e-300)) or 1.0
    )
    unit = np.array([length] * 3 + [1.0])
    off = np.abs(P - target) / np.outer(unit, unit)
    if off.max() > AGREES * max(target[3, 3], P[3, 3]):
        (m, c), (mt, ct) = ((x[3, 3], x[:3, 3] / (x[3, 3] or 1.0)) for x in (P, target))
        raise InputError(
            f"the solids stated for link {link!r} have the mass {m:.6g} kg and centre ({_list(c)}) m, the link "
            f"{mt:.6g} kg and ({_list(ct)}) m, and second moments that differ by "
            f"{np.abs(P - target)[:3, :3].max():.3g} kg m^2; make them agree, or take distribution='box'"
        )
    return Distribution(link, given, "as stated")


def _list(x: Array) -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{c:.6g}" for c in x)


def _refuse_impossible(link: str, target: Array) -> None:
    """An inertia that no mass distribution has: without mass, or a moment larger than the other two together."""
    if target[3, 3] <= 0.0:
        raise InputError(
            f"link {link!r} has no distribution: it has an inertia without mass; give it mass, or no inertia"
        )
    w = np.linalg.eigvalsh(_parts(target)[2])
    if w[0] < -FLAT_TENSOR_ROUNDING * max(w[2], 0.0) or w[2] < 0.0:
        a, b, c = np.sort(w.sum() - w)
        raise InputError(
            f"link {link!r} has no distribution: its principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m^2 break the "
            "triangle inequality, which every body obeys; correct the tensor"
        )


MAX_MASSES_BYTES = 2**20  # bytes
MAKERS = {x.__name__: asked(x) for x in (solids.box, solids.capsule, solids.cylinder, solids.point, solids.rod,
                                         solids.sphere)}  # fmt: skip


def read_solids(path: str | os.PathLike[str]) -> dict[str, tuple[Solid, ...]]:
    """{link: solids} of a TOML file, for `distribution=`.

    kind: box, capsule, cylinder, point, rod, sphere, with the arguments of `drevo.loads.box`, ...; or mesh: mass,
    file (beside this one), and scale, at, rotation where they are not 1, at the origin, none. Raises InputError.
    """
    source = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(source, str):
        raise InputError(f"solids are read from a TOML file, not from {shown(path)}")
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        given = toml.loads(read_regular_file(source, MAX_MASSES_BYTES).decode())
    except (DrevoError, ValueError) as error:
        raise InputError(f"solids: the file {source!r} is no TOML that can be read: {error}") from None
    return {link: tuple(_solid(f"{Path(source).name}: [[{link}]]", x, Files(source)) for x in _tables(link, rows))
            for link, rows in given.items()}  # fmt: skip


def _tables(link: str, rows: Any) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(x, dict) for x in rows):
        raise InputError(f"solids: {link!r} is {shown(rows)}; give tables, [[{link}]]")
    return rows


def _solid(where: str, given: dict[str, Any], files: Files) -> Solid:
    more = dict(given)
    kind = one_of(f"{where}: kind", more.pop("kind", None), (*MAKERS, "mesh"), InputError)
    try:
        return asked(_mesh, "mesh")(files, **more) if kind == "mesh" else MAKERS[kind](**more)
    except DrevoError as error:
        raise InputError(f"{where}: {error}") from None


def _mesh(
    files: Files, mass: Any, file: Any, scale: Any = 1.0, at: Any = (0.0,) * 3, rotation: Any = None
) -> Solid:
    if not isinstance(file, str):
        raise InputError(f"file is {shown(file)}; name a mesh file")
    points, faces = read_mesh_file(files, files.find(file, [files.folder]))
    factor = np.broadcast_to(numbers("scale of a mesh", scale), (3,))
    return solids.mesh(mass, points * factor, np.zeros((0, 3), int) if faces is None else faces, at, rotation)
