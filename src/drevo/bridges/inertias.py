"""Inertial parameters to be learned that are physical whatever their values: a module of PyTorch.

Log-Cholesky (Rucker and Wensing, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation
Letters 7(2), 2022, 2771-2778): the pseudo-inertia of a body is J = U U^T of an upper triangular U with a positive
diagonal, so J > 0, which is what a distribution of positive mass has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..io.packages import package
from ..model.description import Inertial, Link, Model
from ..model.draft import model_of, names_in
from ..model.dynamics import Described
from ..robot.face import Robot

if TYPE_CHECKING:
    from torch import Tensor

INERTIA_PARAMETERS = (
    "mass",
    "com.x",
    "com.y",
    "com.z",
    *(f"inertia.{x}" for x in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
TRIANGLE = ((0, 1), (0, 2), (1, 2))  # beside the diagonal of U's first three rows
LEAST_MOMENT_SHARE = 1e-6  # of its mean: what a principal second moment that is zero starts from


def Inertias(robot: Described, links: str | Sequence[str] = ()) -> Any:
    """A torch.nn.Module: module() gives the parameters that `module.names` names, ten a link, as a tensor.

    links: whose inertia is learned; by default all that have one. `module.robot` is the robot with all ten numbers
    of each as parameters, also those that are zero; pass it and `module.names` to `drevo.torch.function`:

        learned = drevo.torch.Inertias(robot)
        f = drevo.torch.function(learned.robot, "inverse_dynamics", parameters=learned.names)
        loss = ((f(q, v, a, learned()) - measured) ** 2).mean()
    """
    torch = package("torch", "drevo.torch", "drevo[torch]")
    model = model_of(robot, "Inertias")
    bodies = {l.name: l for l in model.links if l.inertial is not None and l.inertial.mass > 0.0}
    chosen = names_in(links, "Inertias: links") or tuple(bodies)
    for name in chosen:
        if name not in bodies:
            raise InputError(
                f"Inertias: link {name!r} has no mass to be learned; those that have are {', '.join(bodies)}"
            )
    dense = _dense(model, chosen)
    start = np.array([_logarithms(inertial) for name in chosen if (inertial := bodies[name].inertial)])

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Ten numbers a link: the logarithms of U's scale and diagonal, its triangle, its last column."""

        def __init__(self) -> None:
            super().__init__()
            self.robot, self.names = (
                Robot(dense),
                [f"{link}.{part}" for link in chosen for part in INERTIA_PARAMETERS],
            )
            self.logarithms = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))

        def forward(self) -> Tensor:
            return _parameters(torch, self.logarithms).flatten()

    Module.__name__ = Module.__qualname__ = "Inertias"
    return Module()


def _dense(model: Model, chosen: Sequence[str]) -> Model:
    """The model with no inertial number of the chosen links zero, so that each is a parameter."""
    full = Inertial(1.0, (0.1, 0.2, 0.3), ((2.0, 0.1, 0.2), (0.1, 2.1, 0.3), (0.2, 0.3, 2.2)))
    links = tuple(Link(l.name, full) if l.name in chosen else l for l in model.links)
    return replace(model, links=links)


def _logarithms(body: Inertial) -> list[float]:
    """The ten numbers of an inertia; of one that is not quite physical those of the nearest that is."""
    c, I = np.array(body.com), np.array(body.tensor)
    about = I + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    J = np.empty((4, 4))
    J[:3, :3] = 0.5 * np.trace(about) * np.eye(3) - about
    J[3, :3] = J[:3, 3] = body.mass * c
    J[3, 3] = body.mass
    inner = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / body.mass
    values, vectors = np.linalg.eigh(inner)
    least = LEAST_MOMENT_SHARE * max(float(np.mean(np.abs(values))), 1e-9 * body.mass)
    J[:3, :3] += vectors @ np.diag(np.maximum(values, least) - values) @ vectors.T
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # upper triangular
    scale = U[3, 3]
    diagonal = [float(np.log(U[i, i] / scale)) for i in range(3)]
    return [float(np.log(scale)), *diagonal, *(float(U[i, j] / scale) for i, j in TRIANGLE), *(U[:3, 3] / scale)]


def _parameters(torch: Any, logarithms: Tensor) -> Tensor:
    """The ten parameters in the order of PARTS, of the ten numbers."""
    scale, d, s, t = logarithms[:, 0].exp(), logarithms[:, 1:4].exp(), logarithms[:, 4:7], logarithms[:, 7:]
    zero, one = torch.zeros_like(scale), torch.ones_like(scale)
    rows = [
        [d[:, 0], s[:, 0], s[:, 1], t[:, 0]],
        [zero, d[:, 1], s[:, 2], t[:, 1]],
        [zero, zero, d[:, 2], t[:, 2]],
    ]
    U = torch.stack([torch.stack(row, -1) for row in [*rows, [zero, zero, zero, one]]], -2)
    J = (scale**2)[:, None, None] * (U @ U.mT)
    mass = J[:, 3, 3]
    com = J[:, :3, 3] / mass[:, None]
    second = J[:, :3, :3] - mass[:, None, None] * com[:, :, None] * com[:, None, :]
    trace = second.diagonal(dim1=-2, dim2=-1).sum(-1)
    diagonal = [trace - second[:, i, i] for i in range(3)]
    mixed = [-second[:, i, j] for i, j in TRIANGLE]
    return torch.stack([mass, *com.unbind(-1), *diagonal, *mixed], -1)
