"""One call on one state, as a controller writes it: Drevo's methods beside pin's own Python calls, interleaved.

Each row is a line of Python for either side, timed as it stands, attribute and all, over states that stay in
cache; where both give an array the numbers are compared first. The least of many windows counts. Writes
one_call.md and one_call.json beside this file.

    python benchmarks/one_call.py           measure
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pinocchio as pin

import drevo
from drevo.constraint.closing import hold

sys.path.insert(0, str(Path(__file__).parent))
import report
from peers import machine
from robots import SUBJECTS, plain_file

HERE = Path(__file__).parent
FEW = 16  # states, in turn
WINDOW = 4e-4  # seconds
LINKS = {"panda": "panda_hand", "go2": "FL_foot", "talos": "gripper_left_base_link"}


class Row(NamedTuple):
    """drevo, pin: what is timed, in terms of `subject`. alike: results are compared."""

    name: str
    drevo: str
    pin: str
    alike: bool = True


ROWS = (
    Row("integrate", "robot.integrate(q, v)", "pin.integrate(model, q, v)"),
    Row("difference", "robot.difference(q, q1)", "pin.difference(model, q, q1)"),
    Row("integrate, Jacobians", "robot.integrate_derivatives(q, v)", "pin.dIntegrate(model, q, v)"),
    Row("difference, Jacobians", "robot.difference_derivatives(q, q1)", "pin.dDifference(model, q, q1)"),
    Row("neutral", "robot.neutral()", "pin.neutral(model)"),
    Row("random", "robot.random(rng)", "pin.randomConfiguration(model, low, high)", alike=False),
    Row("pose of a link", "robot.pose(q, link)",
        "pin.forwardKinematics(model, data, q); pin.updateFramePlacement(model, data, frame)", alike=False),
    Row("Jacobian of a link", "robot.jacobian(q, link)",
        "pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)"),
    Row("velocity of a link", "robot.velocity(q, v, link)",
        "pin.forwardKinematics(model, data, q, v); "
        "pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED)", alike=False),
    Row("inverse dynamics", "robot.inverse_dynamics(q, v, a)", "pin.rnea(model, data, q, v, a)"),
    Row("by name", "robot.inverse_dynamics(q=q, v=v, a=a)", "pin.rnea(model, data, q, v, a)"),
    Row("with f_ext", "robot.inverse_dynamics(q, v, a, f_ext=forces)", "pin.rnea(model, data, q, v, a, loads)"),
    Row("of lists", "robot.inverse_dynamics(ql, vl, al)",
        "pin.rnea(model, data, np.array(ql), np.array(vl), np.array(al))"),
    Row("derivatives, out=", "robot.inverse_dynamics_derivatives(q, v, a, out=room)",
        "pin.computeRNEADerivatives(model, data, q, v, a)", alike=False),
    Row("of forward dynamics, out=", "robot.forward_dynamics_derivatives(q, v, a, out=place)",
        "pin.computeABADerivatives(model, data, q, v, a)", alike=False),
    Row("held", "standing.dynamics(q, v, a).a",
        "pin.constraintDynamics(model, held, q, v, a, rigid, rigids)"),
    Row("held, 256 states", "standing.dynamics(Q, V, A).a",
        "np.array([pin.constraintDynamics(model, held, *x, rigid, rigids) for x in zip(Q, V, A)])"),
    Row("impact", "standing.impact(q, v).v",
        "pin.impulseDynamics(model, held, q, v, J, 0.0, 0.0)", alike=False),
    Row("linear model", "robot.linearise(q, v, a)",
        "pin.computeABADerivatives(model, data, q, v, a)", alike=False),
    Row("linear model, held", "standing.linearise(q, v, a)",
        "pin.constraintDynamics(model, held, q, v, a, rigid, rigids); "
        "pin.computeConstraintDynamicsDerivatives(model, held, rigid, rigids)", alike=False),
    Row("put on points", "hold(robot, near, v, contacts=pinned)", "put_on(near, v)"),
    Row("put on points, q", "robot.assemble(near, contacts=pinned)", "put_on(near, v)[0]"),
    Row("held, other points", "standing.moved(next(other)).dynamics(q, v, a).a",
        "move(); pin.constraintDynamics(model, held, q, v, a, rigid, rigids)"),
    Row("impact, other points", "standing.moved(next(other)).impact(q, v).v",
        "move(); pin.impulseDynamics(model, held, q, v, J, 0.0, 0.0)", alike=False),
    Row("linear model, held, other points", "standing.moved(next(other)).linearise(q, v, a)",
        "move(); pin.constraintDynamics(model, held, q, v, a, rigid, rigids); "
        "pin.computeConstraintDynamicsDerivatives(model, held, rigid, rigids)", alike=False),
)  # fmt: skip
SETS = 64  # of points, in turn
HELD = {
    "go2": ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), "talos": ("left_sole_link", "right_sole_link"),
    "tree with balls": ("body10",),
}  # fmt: skip
MANY = 256  # states of a batch


def subject(name: str) -> dict[str, Any]:
    """What the lines of ROWS speak of: one robot as both sides have it, and states."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        found = next((s for s in SUBJECTS if s.name == name), None)
        robot = drevo.load(plain_file(found), base=found.base) if found else balls()
        model = robot.to_pinocchio(lossy=True)
    link = LINKS.get(name, robot.link_names[-1])
    link = link if link in robot.link_names else robot.link_names[-1]
    frame = frame_of(model, link)
    rng = np.random.default_rng(0)
    states = []
    for _ in range(FEW):
        (q, q1), (v, a) = robot.random(rng, 2), rng.normal(size=(2, robot.nv))
        near = robot.integrate(states[0][0] if states else q, 1e-4 * rng.normal(size=robot.nv))
        states.append((q, q1, v, a, q.tolist(), v.tolist(), a.tolist(), near))
    loads, placed = pin.StdVec_Force(), model.frames[frame]
    data = model.createData()
    for _ in range(model.njoints):
        loads.append(pin.Force.Zero())
    q, _, v, a, *_ = states[0]
    feet = HELD.get(name, (link,))
    pinned = [{"link": x, "point": (0.0, 0.0, 0.0), "anchor": robot.pose(q, x)[:3, 3].tolist()} for x in feet]
    many = dict(zip("QVA", (robot.random(rng, MANY), *rng.normal(size=(2, MANY, robot.nv)))))
    standing = robot.under([{"link": foot, "point": (0.0, 0.0, 0.0)} for foot in feet])
    return held(model, feet, q) | many | {
        "standing": standing,
        "robot": robot, "model": model, "data": data, "link": link, "frame": frame, "rng": rng, "loads": loads,
        "forces": {link: np.zeros(6)}, "low": -np.ones(model.nq), "high": np.ones(model.nq), "pin": pin, "np": np,
        "room": tuple(robot.inverse_dynamics_derivatives(q, v, a)), "hold": hold,
        "place": tuple(robot.forward_dynamics_derivatives(q, v, a)),
        "pinned": pinned, "put_on": partial(put_on, model, data, *at_rest(model, q, feet)), "states": states,
        "joint": placed.parentJoint,
    }  # fmt: skip


def held(model: Any, feet: Sequence[str], q: Any) -> dict[str, Any]:
    """Points of links that stand still, as either side has them; J: what they do at q, as if it cost nothing."""
    rigid, rigids, data, J = (
        pin.StdVec_RigidConstraintModel(),
        pin.StdVec_RigidConstraintData(),
        model.createData(),
        [],
    )
    for foot in feet:
        at = frame_of(model, foot)
        joint, place = model.frames[at].parentJoint, model.frames[at].placement
        rigid.append(
            pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, joint, place, pin.LOCAL_WORLD_ALIGNED)
        )
        J.append(pin.computeFrameJacobian(model, data, q, at, pin.LOCAL_WORLD_ALIGNED)[:3])
    for x in rigid:
        rigids.append(x.createData())
    pin.initConstraintDynamics(model, data, rigid, rigids)
    places, moved = (
        [x.joint1_placement.copy() for x in rigid],
        [np.array((1e-3 * k, 0.0, 0.0)) for k in range(SETS)],
    )
    other = cycle([np.tile(p, (len(feet), 1)) for p in moved])
    turns = cycle([[(x, place * pin.SE3(np.eye(3), p)) for x, place in zip(rigid, places)] for p in moved])

    def move() -> None:
        for x, place in next(turns):
            x.joint1_placement = place

    return {
        "rigid": rigid, "rigids": rigids, "held": data, "J": np.vstack(J), "other": other,
        "move": move,
    }  # fmt: skip


def balls() -> drevo.Robot:
    """Twelve bodies in a random tree, depth first, every third on a ball joint, the others on hinges."""
    rng, b, path = np.random.default_rng(5), drevo.Builder("tree with balls"), ["world"]
    for k in range(12):
        path = [*path[: max(1, len(path) - int(rng.integers(0, 3)))], f"body{k}"]
        b.body(path[-1], path[-2], joint="spherical" if k % 3 == 0 else "revolute", axis=(0, 0, 1),
               origin=rng.normal(size=3), mass=1.0, com=rng.normal(size=3) * 0.1, inertia=np.eye(3))  # fmt: skip
    return b.robot()


def frame_of(model: Any, name: str) -> int:
    """The last of that name: a link's, not a joint's."""
    return next(k for k in range(model.nframes - 1, -1, -1) if model.frames[k].name == name)


def at_rest(model: Any, q: Any, feet: Sequence[str]) -> tuple[list[int], Any]:
    """Frames, and where they are at q."""
    data, frames = model.createData(), [frame_of(model, foot) for foot in feet]
    pin.framesForwardKinematics(model, data, q)
    return frames, np.concatenate([data.oMf[k].translation for k in frames])


def put_on(model: Any, data: Any, frames: Sequence[int], anchors: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """The nearest state by M with frames at anchors, as users of pin write it: Newton's steps, then rates."""
    for _ in range(30):
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        gap = np.concatenate([data.oMf[k].translation for k in frames]) - anchors
        J = np.vstack([pin.getFrameJacobian(model, data, k, pin.LOCAL_WORLD_ALIGNED)[:3] for k in frames])
        M = pin.crba(model, data, q)
        back = np.linalg.solve(M + np.tril(M.T, -1) - np.tril(M, -1), J.T)
        if np.abs(gap).max() <= 1e-12:
            break
        q = pin.integrate(model, q, -back @ np.linalg.solve(J @ back, gap))
    return q, v - back @ np.linalg.solve(J @ back, J @ v)


STATE = "q, q1, v, a, ql, vl, al, near"


def compiled(line: str, names: dict[str, Any]) -> tuple[Callable[[int], float], Callable[[], Any]]:
    """Seconds of so many calls, one state after another; and what the line gives at the first state."""
    last = line.split("; ")
    text = (
        f"def timed(count):\n some = chosen(count)\n start = clock()\n for {STATE} in some:\n  {line}\n"
        f" return clock() - start\n"
        f"def once():\n {STATE} = states[0]\n {'; '.join([*last[:-1], 'return ' + last[-1]])}\n"
    )
    states = names["states"]
    space = names | {"clock": time.perf_counter, "chosen": lambda n: [states[k % FEW] for k in range(n)]}
    exec(text, space)
    return space["timed"], space["once"]


def measured(name: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Nanoseconds of each row, Drevo and pin."""
    names, work = subject(name), {}
    for row in ROWS:
        sides = [compiled(line, names) for line in (row.drevo, row.pin)]
        if row.alike:
            compare(row, *(once() for _, once in sides))
        for side, (timed, _) in enumerate(sides):
            timed(FEW)
            work[row.name, side] = timed, max(FEW, int(WINDOW / (min(timed(FEW) for _ in range(5)) / FEW)))
    least = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for key, (timed, count) in work.items():
            least[key] = min(least[key], timed(count) / count)
    return {row.name: (1e9 * least[row.name, 0], 1e9 * least[row.name, 1]) for row in ROWS}


def compare(row: Row, ours: Any, theirs: Any) -> None:
    """The same numbers, or an AssertionError."""
    for x, y in zip(*(z if isinstance(z, tuple) else (z,) for z in (ours, theirs))):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9), row.name


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--robots", nargs="*", default=["go2", "panda", "talos", "tree with balls"])
    options = parser.parse_args()
    found = {name: measured(name, options.rounds) for name in options.robots}
    lines = [
        "# One call", "", "One state, one core: ns a call of Drevo (times as fast as pin's own Python call).",
        ", ".join(f"{k} {v}" for k, v in machine().items() if k != "mujoco")
        + f"; {datetime.date.today()}, load {os.getloadavg()[1]:.0f} on {os.cpu_count()} cores.", "",
    ]  # fmt: skip
    lines += ["| | " + " | ".join(found) + " |", "|---|" + "--:|" * len(found)]
    for row in ROWS:
        cells = [f"{ours:.0f} ({theirs / ours:.1f})" for ours, theirs in (x[row.name] for x in found.values())]
        lines.append(f"| {row.name}: `{row.drevo}` | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    (HERE / "one_call.md").write_text("\n".join(lines) + "\n")
    (HERE / "one_call.json").write_text(json.dumps(found, indent=1) + "\n")
    short = ["| Go2 | ns | pin / Drevo |", "|---|--:|--:|"]
    short += [f"| `{row.drevo}` | {x:.0f} | {y / x:.1f} |" for row in ROWS for x, y in [found["go2"][row.name]]]
    report.insert(HERE.parent / "docs" / "speed.md", "calls", "\n".join(short))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
