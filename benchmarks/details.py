"""The figures of docs/speed.md that no other script here measures, as its table of details.

    python benchmarks/details.py [ROW ...]      rows by their first words; the page is written where all are asked

As in mechanisms.py: two processes a row work in turn, and the least processor time of many windows counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import (
    GO2,
    PANDA,
    TALOS,
    Row,
    Work,
    four_points,
    robot_of,
    shown,
    states_of,
    write_table,
)

AVX2 = ("DREVO_PROCESSOR", "avx2")
SHORT = {"poses": "poses", "inverse_dynamics": "inverse dynamics", "mass_matrix": "mass matrix",
         "forward_dynamics": "forward dynamics", "inverse_dynamics_derivatives": "d inverse",
         "forward_dynamics_derivatives": "d forward"}  # fmt: skip
ONE_STATE = {"UR5": ("ur5", "fixed"), "Panda": ("panda", "fixed"), "biped": ("biped", "floating"),
             "G1": ("g1_29dof_rev_1_0", "floating")}  # fmt: skip


def batch(subject: Any, name: str, count: int) -> Work:
    """A quantity of a batch-last batch, packed, into the same result."""
    import drevo

    robot = robot_of(subject)
    f = drevo.compile(robot, name, layout="batch_last", packed=True)
    given = dict(zip(("q", "v", "a", "tau"), (*states_of(robot, count), states_of(robot, count)[2])))
    args = [np.ascontiguousarray(given[x].T) for x, _ in f.inputs]
    out = f(*args)
    return lambda: f(*args, out=out), count


def vectors(subject: Any, name: str, count: int) -> Callable[[bool], Work]:
    return lambda _: batch(subject, name, count)


def foot(on: bool) -> Work:
    """Pose and Jacobian by one Function, or by one each."""
    import drevo

    robot, at = robot_of(GO2), {"link": "FL_foot"}
    q, frame = states_of(robot, 1)[0][0], {"frame": "local_world_aligned"}
    both = drevo.compile(robot, ["pose", "jacobian"], **at, **frame)
    pose, jacobian = drevo.compile(robot, "pose", **at), drevo.compile(robot, "jacobian", **at, **frame)
    return (lambda: both(q)) if on else (lambda: (pose(q), jacobian(q))), 1


def folded(on: bool) -> Work:
    """Poses whose rows lie 8,192 bytes apart, with the stage or without."""
    from drevo.codegen.llvm import rows

    if not on:
        rows.FOLD = 1 << 62
    return batch(PANDA, "poses", 1024)


def filled(on: bool) -> Work:
    """M of 1,000 states in rows, or one number into its result."""
    import drevo

    robot = robot_of(PANDA)
    q = states_of(robot, 1000)[0]
    f = drevo.compile(robot, "mass_matrix")
    out = [f(q) for _ in range(16)]  # 6 MB in turn
    turn = iter(range(1 << 60))
    return (lambda: f(q, out=out[next(turn) % 16])) if on else (lambda: out[next(turn) % 16].fill(1.0)), 1000


def subnormal(size: float, on: bool, count: int = 128) -> Work:
    """Inverse dynamics of inputs near `size`, with flush-to-zero or without."""
    import drevo
    from drevo.codegen.llvm import driver

    if not on:
        driver.flush_subnormals = lambda *_: lambda: None
    robot = robot_of(PANDA)
    rows = [size * x for x in states_of(robot, count)]
    f = drevo.compile(robot, "inverse_dynamics")
    args = rows if count > 1 else [x[0] for x in rows]
    out = f(*args)
    return lambda: f(*args, out=out), count


def derivatives(name: str, base: str, _: bool) -> Work:
    import drevo

    robot = drevo.load(name, base=base)
    f = drevo.compile(robot, "forward_dynamics_derivatives")
    args = [x[0] for x in states_of(robot, 1)]
    out = f(*args)
    return lambda: f(*args, out=out), 1


def one_off(on: bool) -> Work:
    """Dynamics of a held robot, or the call that reads and checks its four contacts."""
    robot = robot_of(GO2)
    q, v, tau = (x[0] for x in states_of(robot, 1))
    contacts = [{"link": f"{leg}_foot", "point": (0.0, 0.0, 0.0)} for leg in ("FL", "FR", "RL", "RR")]
    held = four_points(robot)
    if on:
        return lambda: held.dynamics(q, v, tau), 1
    return lambda: robot.constrained_dynamics(q, v, tau, contacts=contacts), 1


def moved(on: bool) -> Work:
    """Dynamics of a held robot, or of the same with other points."""
    robot = robot_of(GO2)
    q, v, tau = (x[0] for x in states_of(robot, 1))
    held = four_points(robot)
    points = np.zeros((4, 3)) + 0.01
    return (lambda: held.dynamics(q, v, tau)) if on else (lambda: held.moved(points=points).dynamics(q, v, tau)), 1


def row(what: str, beside: str, work: Callable[[bool], Work], **more: Any) -> Row:
    return Row(what, beside, (), "", work, **more)


ROWS = (
    row("pose and Jacobian of a foot of Go2 by one Function", "by one each", foot),
    row("`held.dynamics(q, v, tau)` of Go2 on four feet", "`robot.constrained_dynamics(.., contacts=feet)`",
        one_off),
    row("the same", "`held.moved(points=p).dynamics(q, v, tau)`", moved),
    row("poses of the Panda, a state of 1,032", "of 1,024, whose rows compete for lines of the cache",
        lambda on: batch(PANDA, "poses", 1032 if on else 1024)),
    row("poses of the Panda, a state of 1,024", "without the stage", folded),
    row("mass matrix of the Panda, a state of 1,000 in rows, from memory", "to fill its result with one number",
        filled),
    row("inverse dynamics of the Panda, a state of 128, inputs near 1e-158", "without flush-to-zero",
        partial(subnormal, 1e-158)),
    row("the same, inputs near 1e-310", "without flush-to-zero", partial(subnormal, 1e-310)),
    row("the same, inputs near 1", "without flush-to-zero", partial(subnormal, 1.0)),
    row("the same, one state", "without flush-to-zero", partial(subnormal, 1.0, count=1)),
    *(row(f"derivatives of forward dynamics of one state, {label}", "", partial(derivatives, *given),
          alone=True)
      for label, given in ONE_STATE.items()),
    *(row(f"{s.name}, {SHORT[q]}, 128 states, AVX-512", "AVX2", vectors(s, q, 128), setting=AVX2)
      for s in (PANDA, GO2, TALOS) for q in SHORT),
)  # fmt: skip


HEADER = ("| | | beside | | times |", "|---|--:|---|--:|--:|")


def cells_of(row: Row, on: float, off: float) -> tuple[str, ...]:
    """A row of the table."""
    other = ("", "", "") if row.alone else (row.on, shown(off, "ns"), f"{off / on:.2f}")
    return row.mechanism, shown(on, "ns"), *other


if __name__ == "__main__":
    raise SystemExit(write_table(ROWS, __doc__ or "", HEADER, cells_of, "docs/speed.md", "details"))
