"""Controllability and observability of a linear model, and the motions that are lost, by joint.

The reachable space is built up by orthogonal steps: B, then what A makes of the last step that is not in it yet
(the staircase of Van Dooren 1981, IEEE Transactions on Automatic Control 26, 111-129).
"""

from __future__ import annotations

import numpy as np

from ..io.given import Array
from ..io.packages import package
from ..io.reprs import result
from .linear_kernels import Linearisation
from .model import LinearModel, single

REACH_ROUNDING = 1e-9  # of the largest: what a step adds to the space below it is rounding
NAMED_SHARE = 1e-6  # of the largest: a joint with less part in a motion is not named


@result
class LostMotion:
    """A motion that is not reached, or not seen: its pole, and by joint how much part it has in it, 1 the most."""

    pole: complex
    joints: dict[str, float]


@result
class Reach:
    """rank of `size` states are reached (or seen); lost: the others. margin: the smallest singular value of the
    pencil [A - s, B] (or [A - s; C]) at the poles s over the largest: 0 where something is lost."""

    rank: int
    size: int
    margin: float
    lost: tuple[LostMotion, ...]
    steadies: bool

    @property
    def whole(self) -> bool:
        """True if nothing is lost."""
        return self.rank == self.size


def controllability(model: LinearModel) -> Reach:
    """The states that the inputs can move; steadies: whether all that they cannot move decays (stabilisable).

    Under constraints of the motions that these leave. A lost motion is a combination of states that goes its own
    way: its joints are those of the combination. Raises InputError.
    """
    plain, T = _reduced("controllability", model)
    return _reach(plain, plain.A, plain.B, np.linalg.pinv(T).T, model.states)


def observability(model: LinearModel) -> Reach:
    """The states that the outputs can tell; steadies: whether all that they cannot tell decays (detectable).

    A lost motion is one that leaves the outputs at rest: its joints are those that move in it. Raises InputError.
    """
    plain, T = _reduced("observability", model)
    return _reach(plain, plain.A.T, plain.C.T, T, model.states)


def _reduced(title: str, model: LinearModel) -> tuple[LinearModel, Array]:
    """The model on the motions that constraints leave, and their basis."""
    single(title, model)
    if isinstance(model, Linearisation):
        return model.reduced, model.basis
    return model, np.eye(len(model.A))


def _reach(model: LinearModel, A: Array, B: Array, back: Array, names: tuple[str, ...]) -> Reach:
    scaled, scale = _balanced(A)
    V = _reachable(scaled, B / scale[:, None])
    n, rank = len(A), V.shape[1]
    rest = np.linalg.svd(V, full_matrices=True)[0][:, rank:] if rank else np.eye(n)
    poles, shapes = np.linalg.eig((rest.T @ scaled @ rest).T)
    lost = [LostMotion(complex(p), _by_joint(back @ (rest @ w / scale), names)) for p, w in zip(poles, shapes.T)]
    lost.sort(key=lambda x: (x.pole.real, x.pole.imag), reverse=True)
    return Reach(rank, n, _margin(A, B), tuple(lost), not lost or model.decays(poles))


def _balanced(A: Array) -> tuple[Array, Array]:
    """diag(scale)^-1 A diag(scale) with rows and columns of like size: states have units of their own."""
    if not len(A):
        return A, np.ones(0)
    balanced, (scale, _) = package("scipy.linalg", "controllability").matrix_balance(
        A, permute=False, separate=True
    )
    return balanced, scale


def _reachable(A: Array, B: Array) -> Array:
    """An orthonormal basis of what B and A reach."""
    V, step = np.zeros((len(A), 0)), B
    size = max(1.0, float(np.linalg.norm(A, 2))) if A.size else 1.0
    limit = REACH_ROUNDING * np.linalg.norm(B, axis=0).max(initial=0.0)
    while step.size and V.shape[1] < len(A):
        for _ in range(2):
            step = step - V @ (V.T @ step)
        U, s, _ = np.linalg.svd(step, full_matrices=False)
        new = U[:, s > limit]
        V, step, limit = np.hstack([V, new]), A @ new, REACH_ROUNDING * size
    return V


def _margin(A: Array, B: Array) -> float:
    """By the test of Popov, Belevitch and Hautus."""
    if not len(A):
        return 1.0
    pencils = np.linalg.eigvals(A)[:, None, None] * np.eye(len(A)) - A
    both = np.concatenate([pencils, np.broadcast_to(B + 0j, (len(A), *B.shape))], -1)
    s = np.linalg.svd(both, compute_uv=False)
    return float((s[:, -1] / np.where(s[:, 0] > 0.0, s[:, 0], 1.0)).min())


def _by_joint(direction: Array, names: tuple[str, ...]) -> dict[str, float]:
    """The part of every joint (of a state that is none's, its own name) in a direction, 1 the most."""
    parts: dict[str, float] = {}
    for name, x in zip(names, np.abs(direction)):
        joint = name.rpartition(".")[0] or name
        parts[joint] = max(parts.get(joint, 0.0), float(x))
    most = max(parts.values(), default=0.0) or 1.0
    shown = sorted(parts.items(), key=lambda item: -item[1])
    return {joint: x / most for joint, x in shown if x > NAMED_SHARE * most}
