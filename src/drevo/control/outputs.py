"""The outputs of a linear model: parts of the state, accelerations, reactions, poses and velocities of links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.store.memo import memoised
from ..compiler.differentiate import derivative
from ..compiler.pages.telegin_inputs import COORDINATE_LABELS, RATE_LABELS, TURN
from ..constraint.kinds import Constraint, Contact
from ..errors import InputError, shown
from ..io.given import Array, finite
from ..model.description import Model
from ..model.draft import did_you_mean, listed
from ..model.dynamics import Dynamics

STATE_OUTPUTS = ("q", "v", "a", "reactions")
LINK_UNITS = {"pose": ("m", "rad"), "velocity": ("m/s", "rad/s")}
SIX = ("x", "y", "z", "rx", "ry", "rz")
PER_UNITS = {"q": "", "v": "/s", "a": "/s^2"}
Rows = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Parts of y, their names and units, row by row."""

    parts: tuple[str, ...]
    names: tuple[str, ...]
    units: Mapping[str, str]

    @staticmethod
    def of(model: Model, given: Any, reactions: Sequence[str]) -> Outputs:
        """The parts that were asked for, checked against the model."""
        parts = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        links = [l.name for l in model.links]
        named: dict[str, str] = {}
        for part in parts:
            kind, colon, link = part.partition(":") if isinstance(part, str) else ("", "", "")
            if colon and kind in LINK_UNITS:
                if link not in links:
                    hint = did_you_mean(link, links)
                    raise InputError(f"linearise: outputs: link {link!r} is not in robot {model.name!r}{hint}")
                named |= {f"{part}.{x}": unit for x, unit in zip(SIX, np.repeat(LINK_UNITS[kind], 3).tolist())}
            elif kind == "reactions":
                named |= dict.fromkeys(reactions, "")
            elif kind in STATE_OUTPUTS and not colon:
                rates = [f"{joint}.{kind}{i}" for joint, i in model.freedoms()]
                named |= dict(zip(rates, rate_units(model, [kind])))
            else:
                raise InputError(
                    f"linearise: outputs holds {shown(part)}; parts are {listed(STATE_OUTPUTS)}, 'pose:LINK' and "
                    "'velocity:LINK'"
                )
        if len(set(parts)) < len(parts) or not parts:
            raise InputError(f"linearise: outputs is {shown(given)}; name one part or more, each once")
        return Outputs(parts, tuple(named), named)

    def units_with(self, model: Model) -> dict[str, str]:
        """Units of outputs, states and inputs by their names."""
        names, out = model.freedoms(), dict(self.units)
        for part in ("q", "v", "tau"):
            out |= {f"{joint}.{part}{i}": unit for (joint, i), unit in zip(names, rate_units(model, [part]))}
        return out

    def rows(self, robot: Dynamics, state: tuple[Array, Array], da: Array, dN: Array) -> Rows:
        """C and D, from the changes of accelerations and reactions by (dq, dv, dtau)."""
        n = robot.nv
        plain = {"q": np.eye(n, da.shape[1]), "v": np.eye(n, da.shape[1], n), "a": da, "reactions": dN}
        y = np.vstack([plain[p] if p in plain else _of_link(robot, p, *state, da.shape[1]) for p in self.parts])
        return y[:, : 2 * n], y[:, 2 * n :]


def _of_link(robot: Dynamics, part: str, q: Array, v: Array, width: int) -> Array:
    """J dq of a pose; d(J v)/dq dq + J dv of a velocity."""
    kind, _, link = part.partition(":")
    n, out = robot.nv, np.zeros((6, width))

    def slope(wrt: str) -> Array:
        f = memoised(robot, ("slope of a link", link, wrt), lambda: derivative(robot, "velocity", wrt, link=link))
        return np.asarray(f(q, v))

    if kind == "pose":
        out[:, :n] = slope("v")
    else:
        out[:, :n], out[:, n : 2 * n] = slope("q"), slope("v")
    return out


def rate_units(model: Model, parts: Sequence[str]) -> list[str]:
    """The units of every rate's displacement ("q"), rate ("v"), acceleration ("a") or effort ("tau")."""
    plain = [
        unit
        for j in model.moving_joints
        for _, unit in RATE_LABELS.get(j.kind, COORDINATE_LABELS.get(j.kind, (TURN,)))
    ]
    units: dict[str, Callable[[str], str]] = {k: lambda u, per=per: u + per for k, per in PER_UNITS.items()}  # type: ignore[misc]
    units["tau"] = lambda u: "N" if u == "m" else "N m"
    return [units[part](unit) for part in parts for unit in plain]


def external_wrenches(
    model: Model, title: str, given: Mapping[str, ArrayLike] | None
) -> tuple[tuple[Constraint, ...], dict[str, Array]]:
    """{link: (6,)} as contacts at the links' origins and what they press with."""
    if given is None:
        return (), {}
    if not isinstance(given, Mapping):
        raise InputError(f"{title}: f_ext must be {{link: wrench}}, not {shown(given)}")
    links = [l.name for l in model.links]
    for link in given:
        if link not in links:
            hint = did_you_mean(link, links) if isinstance(link, str) else ""
            raise InputError(f"{title}: f_ext: link {shown(link)} is not in robot {model.name!r}{hint}")
    wrenches = {link: finite(f"{title}: f_ext of {link!r}", w, (6,)) for link, w in given.items()}
    return tuple(Contact(link, (0.0, 0.0, 0.0), 6) for link in wrenches), wrenches
