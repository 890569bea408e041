"""Linear models from and to python-control and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, shown
from ..io.packages import package
from .responses import Matrices


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
