"""A robot as a file, loaded again and compared before it is kept, or handed to MuJoCo and Pinocchio."""

from __future__ import annotations

import hashlib
import math
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..compiler.formalisms import common_algorithm
from ..errors import DrevoError, DrevoWarning, ModelError, warn_caller
from ..io.files import ready, saving
from ..io.packages import VERSION, package
from ..mechanics.algorithms.passive import passive, passive_tree
from ..mechanics.configuration import bounds
from ..model.description import Model
from ..model.loaders import load_model, pinocchio_writer
from ..model.loaders.writers import WRITTEN_SUFFIXES, text_of, write_model
from ..model.loaders.writing import Written

Array = np.ndarray[Any, Any]
FORMATS = {".xml": "MJCF", ".sdf": "SDF", ".toml": "TOML", ".json": "JSON"}  # the last two hold every robot
COMPARED_STATES = 100
DIGITS = 10
FORCE_AGREEMENT = 1e-12  # of the largest force: how far a file's dynamics may be from the robot's


class Certificate(NamedTuple):
    """The record of the dynamics in a file: their digest, and how far from those of the saved robot they were."""

    digest: str
    worst: float
    version: str = VERSION


def save(model: Model, path: Any, lossy: bool = False) -> str:
    """The robot as text in the format of the path's suffix, which is saved there: see `Robot.save`."""
    file = ready("a robot", path, WRITTEN_SUFFIXES)
    written = write_model(model, file.suffix.lower())
    refuse_losses(model, written, f"saved as {file.suffix}", lossy)
    suffix = file.suffix.lower()
    with saving("a robot", file, WRITTEN_SUFFIXES) as place:
        again = _loaded(text_of(written, suffix), suffix)
        worst = _difference(model, written.model, again, exact=not written.lost)
        text = text_of(written, suffix, Certificate(dynamics_digest(written.model), worst)._asdict())
        place.write_text(text, encoding="utf-8")
    return text


def as_text(model: Model, suffix: str) -> str:
    """The robot in the format of a suffix; what it cannot say of the motion is refused with ModelError."""
    written = write_model(model, suffix)
    refuse_losses(model, written, f"written as {suffix[1:].upper()}", lossy=False)
    return text_of(written, suffix)


def to_mujoco(model: Model, lossy: bool = False) -> Any:
    """The robot as a mujoco.MjSpec: see `Robot.to_mujoco`."""
    mujoco = package("mujoco", "robot.to_mujoco")
    written = write_model(model, ".xml")
    refuse_losses(model, written, "handed to MuJoCo", lossy)
    try:
        spec = mujoco.MjSpec.from_string(text_of(written, ".xml"))
        spec.compile()
    except DrevoError:
        raise
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"robot {model.name!r} cannot be handed to MuJoCo, which says: {reason}") from None
    return spec


def to_pinocchio(model: Model, lossy: bool = False) -> Any:
    """The robot as a pinocchio.Model: see `Robot.to_pinocchio`."""
    written, theirs = pinocchio_writer.to_model(model)
    refuse_losses(model, written, "handed to Pinocchio", lossy)
    return theirs


def refuse_losses(model: Model, written: Written, how: str, lossy: bool) -> None:
    """ModelError for what acts on the motion and is lost; with `lossy`, and for the rest, one DrevoWarning."""
    if written.lost and not lossy:
        whole = [suffix for suffix in FORMATS if not write_model(model, suffix).lost]
        raise ModelError(
            f"robot {model.name!r} cannot be {how} with {'; '.join(written.lost)}: save it as "
            f"{' or '.join(FORMATS[suffix] for suffix in whole)} (drevo convert ROBOT NEW{whole[0]}), or with "
            "lossy=True without what cannot be said"
        )
    if missing := [*written.lost, *written.left_out]:
        warn_caller(f"robot {model.name!r} {how}, without {'; '.join(missing)}")


def _loaded(text: str, suffix: str) -> Model:
    """The model that a reader makes of the text."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DrevoWarning)
        path = Path(folder, f"robot{suffix}")
        path.write_text(text, encoding="utf-8")
        try:
            return load_model(path)
        except ModelError as error:
            raise ModelError(
                f"what was written is not read again: {str(error).removeprefix(f'{path}: ')}"
            ) from None


def _difference(model: Model, written: Model, again: Model, exact: bool) -> float:
    """The largest difference of the forces of a robot and of its copy read again, over the largest force."""
    if (a := sorted(j.name for j in written.moving_joints)) != (b := sorted(j.name for j in again.moving_joints)):
        raise ModelError(f"what was written has other joints when it is read again: {b}, not {a}; save it as JSON")
    if exact and written.closures != again.closures:
        raise ModelError("what was written has other loops when it is read again; save it as JSON")
    worst = 0.0
    for x, y in zip(forces_at_states(model, written), forces_at_states(again), strict=True):
        size = float(np.abs(x).max(initial=0.0))
        worst = max(worst, float(np.abs(x - y).max(initial=0.0)) / (size or 1.0))
    if exact and not worst <= FORCE_AGREEMENT:
        raise ModelError(
            f"what was written differs in its dynamics by {worst:.1e} of the largest force when it is read again "
            f"({FORCE_AGREEMENT:g} is allowed); save it as TOML or JSON, which keep every number"
        )
    return worst


def forces_at_states(model: Model, named: Model | None = None) -> tuple[Array, Array, Array]:
    """M x, bias and passive forces at some states, each (states, nv), the joints in the order of their names.

    The states of a joint depend on its name alone, so that the order of the coordinates does not matter. `named`:
    the same robot, whose joints name the coordinates.
    """
    q, v, x = (np.zeros((COMPARED_STATES, size)) for size in (model.nq, model.nv, model.nv))
    order: list[tuple[str, range]] = []
    by_formula = any(joint.formula for joint in model.joints)  # which may have no value beyond the limits
    for joint, sq, sv in (named or model).slices():
        rng = np.random.default_rng(list(joint.name.encode()))
        low, high = bounds(named or model)[:, sq] if by_formula else (-1.0, 1.0)
        q[:, sq] = rng.uniform(low, high, (COMPARED_STATES, joint.nq))
        if joint.turns:
            turn = rng.normal(size=(COMPARED_STATES, 4))
            q[:, sq.stop - 4 : sq.stop] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        v[:, sv], x[:, sv] = rng.normal(size=(2, COMPARED_STATES, joint.nv))
        order.append((joint.name, range(sv.start, sv.stop)))
    rows = [k for _, part in sorted(order, key=lambda held: held[0]) for k in part]
    tree, qs, vs = passive_tree(model), list(q.T), list(v.T)

    def sorted_rows(forces: list[Any]) -> Array:
        return np.array([forces[k] + np.zeros(COMPARED_STATES) for k in rows]).reshape(-1, COMPARED_STATES).T

    return (
        sorted_rows(common_algorithm("inertia_product")(tree, qs, list(x.T))),
        sorted_rows(common_algorithm("bias")(tree, qs, vs)),
        sorted_rows(passive(tree, qs, vs)),
    )


def dynamics_digest(model: Model) -> str:
    """SHA-256 of M x and the bias, rounded to DIGITS digits of the largest: the same for the same dynamics."""
    digest = hashlib.sha256()
    for part in forces_at_states(model)[:2]:
        largest = float(np.abs(part).max(initial=0.0))
        scale = 10.0 ** (DIGITS - math.ceil(math.log10(largest))) if largest else 1.0
        rounded = np.floor(part * scale + 0.123456789)  # so that no round number is on a border
        digest.update(rounded.astype("<i8").tobytes())
    return digest.hexdigest()[:32]
