"""Trajectory optimisation beside Crocoddyl: the same problems, the same first guess, one core, in turn.

A Panda reaches for a point (100 knots of 10 ms, with and without limits of effort), a Go2 takes a step (50 knots,
phases of four, three and four feet, with the impact). From the same guess each runs one iteration (set-up,
expansions, the sweep, the steps that are tried), and to its end. With limits of states the Panda is beside
IPOPT on the whole problem, with CasADi's exact derivatives. Writes trajectories.md.

    pip install crocoddyl example-robot-data casadi      (crocoddyl 3.2.1 wants libpinocchio 4.0.0)
    python benchmarks/trajectories.py
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import casadi
import crocoddyl
import numpy as np
import pinocchio as pin
from example_robot_data.robots_loader import PandaLoader

import drevo
from drevo.control import optimise
from drevo.control.shooting.given import Guess

Array = np.ndarray[Any, Any]
ROUNDS = 30
TARGET = (0.4, 0.3, 0.5)
FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
MARKS = ("base", "FL_hip", "RR_hip")
BEND = np.tile([0.0, 0.8, -1.5], 4)
STEP, HIGH, DT, PHASES = 0.1, 0.06, 0.01, (10, 30, 10)


def squares(values: Any, targets: Any = ()) -> Any:
    return sum((x - y) ** 2 for x, y in zip(values, list(targets) or [0.0] * len(values)))


def place(pose: Any, link: str) -> list[Any]:
    return [row[3] for row in pose(link)[:3]]


# -- Panda ----------------------------------------------------------------------------------------------------


def panda_file(folder: Path) -> Path:
    """The arm alone, its fingers fixed."""
    text = Path(PandaLoader().df_path).read_text()
    path = folder / "panda.urdf"
    path.write_text(re.sub(r'(<joint name="panda_finger_joint\d" type=)"prismatic"', r'\1"fixed"', text))
    return path


def reach(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    hand = squares(place(pose, "panda_hand_tcp"), TARGET)
    return hand + 1e-3 * squares(q) + 1e-2 * squares(v) + 1e-4 * squares(tau)


def reached(pose: Any, q: Any, v: Any) -> Any:
    return 100.0 * squares(place(pose, "panda_hand_tcp"), TARGET) + squares(v)


def reach_of_crocoddyl(path: Path, q0: Array, knots: int, most: float) -> Any:
    model = pin.buildModelFromUrdf(str(path))
    state = crocoddyl.StateMultibody(model)
    hand = model.getFrameId("panda_hand_tcp")

    def knot(running: bool) -> Any:
        costs = crocoddyl.CostModelSum(state)
        weights = np.array([1e-3 * running] * 7 + [1e-2 if running else 1.0] * 7)
        still = crocoddyl.ResidualModelState(state, np.zeros(14))
        quad = crocoddyl.ActivationModelWeightedQuad(weights)
        costs.addCost("x", crocoddyl.CostModelResidual(state, quad, still), 2.0)
        near = crocoddyl.ResidualModelFrameTranslation(state, hand, np.array(TARGET))
        costs.addCost("hand", crocoddyl.CostModelResidual(state, near), 2.0 if running else 200.0)
        if running:
            effort = crocoddyl.ResidualModelControl(state)
            costs.addCost("u", crocoddyl.CostModelResidual(state, effort), 2e-4)
        drives = crocoddyl.ActuationModelFull(state)
        motion = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, drives, costs)
        made = crocoddyl.IntegratedActionModelEuler(motion, DT if running else 0.0)
        if np.isfinite(most):
            made.u_lb, made.u_ub = np.full(7, -most), np.full(7, most)
        return made

    return crocoddyl.ShootingProblem(np.concatenate([q0, np.zeros(7)]), [knot(True)] * knots, knot(False))


# -- Go2 ------------------------------------------------------------------------------------------------------


def contacts(feet: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"link": foot, "point": (0, 0, 0), "rows": 3} for foot in feet]


def swing(start: Array, s: Any) -> tuple[Any, Any, Any]:
    """Where the foot in the air is wanted, s from 0 to 1."""
    return start[0] + STEP * s, start[1], start[2] + HIGH * drevo.sin(np.pi * s)


def step_costs(start: Array, marks: dict[str, Array]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def steady(pose: Any) -> Any:
        return 50.0 * sum(squares(place(pose, link), where) for link, where in marks.items())

    def cost(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        s = (t - PHASES[0] * DT) / (PHASES[1] * DT)
        lifted = drevo.where((s > -1e-6) & (s < 1.0 - 1e-6), 500.0, 0.0)
        foot = lifted * squares(place(pose, FEET[0]), swing(start, s))
        return foot + steady(pose) + 0.05 * squares(q[7:], BEND) + 0.05 * squares(v) + 5e-4 * squares(tau)

    def end(pose: Any, q: Any, v: Any) -> Any:
        foot = 500.0 * squares(place(pose, FEET[0]), (start[0] + STEP, start[1], start[2]))
        return foot + steady(pose) + 0.5 * squares(q[7:], BEND) + 0.5 * squares(v)

    return cost, end


def step_of_crocoddyl(model: Any, q0: Array, start: Array, marks: dict[str, Array]) -> Any:
    state = crocoddyl.StateMultibody(model)
    drives = crocoddyl.ActuationModelFloatingBase(state)
    nu, x0 = drives.nu, np.concatenate([q0, np.zeros(18)])
    frame = model.getFrameId

    def near(link: str, where: Array) -> Any:
        found = crocoddyl.ResidualModelFrameTranslation(state, frame(link), np.asarray(where), nu)
        return crocoddyl.CostModelResidual(state, found)

    def knot(feet: tuple[str, ...], where: Any, running: bool, after: bool = False) -> Any:
        """after: an impact, before which the rates have been weighed."""
        held = crocoddyl.ContactModelMultiple(state, nu)
        for foot in feet:
            point = (state, frame(foot), np.zeros(3), pin.LOCAL_WORLD_ALIGNED, nu, np.zeros(2))
            held.addContact(foot, crocoddyl.ContactModel3D(*point))
        costs = crocoddyl.CostModelSum(state, nu)
        quad = crocoddyl.ActivationModelWeightedQuad(
            np.array([0.0] * 6 + [0.1 if running else 1.0] * (12 if after else 30) + [0.0] * (18 * after))
        )
        bent = crocoddyl.ResidualModelState(state, x0, nu)
        costs.addCost("x", crocoddyl.CostModelResidual(state, quad, bent), 1.0)
        for link, mark in marks.items():
            costs.addCost(link, near(link, mark), 100.0)
        if where is not None:
            costs.addCost("foot", near(FEET[0], where), 1000.0)
        if running:
            effort = crocoddyl.ResidualModelControl(state, nu)
            costs.addCost("u", crocoddyl.CostModelResidual(state, effort), 1e-3)
        motion = crocoddyl.DifferentialActionModelContactFwdDynamics(state, drives, held, costs, 0.0, True)
        return crocoddyl.IntegratedActionModelEuler(motion, DT if running else 0.0)

    knots = []
    for k in range(sum(PHASES)):
        s = (k - PHASES[0]) / PHASES[1]
        lifted = 0.0 <= s < 1.0
        if s == 1.0:
            struck = crocoddyl.ImpulseModelMultiple(state)
            for foot in FEET:
                struck.addImpulse(foot, crocoddyl.ImpulseModel3D(state, frame(foot), pin.LOCAL_WORLD_ALIGNED))
            rates = crocoddyl.ActivationModelWeightedQuad(np.array([0.0] * 18 + [0.1] * 18))
            before = crocoddyl.CostModelSum(state, 0)
            weighed = crocoddyl.ResidualModelState(state, x0, 0)
            before.addCost("v", crocoddyl.CostModelResidual(state, rates, weighed), DT)
            knots.append(crocoddyl.ActionModelImpulseFwdDynamics(state, struck, before, 0.0, 0.0, True))
        knots.append(knot(FEET[1:] if lifted else FEET, swing(start, s) if lifted else None, True, s == 1.0))
    last = knot(FEET, np.array([start[0] + STEP, start[1], start[2]]), False)
    return crocoddyl.ShootingProblem(x0, knots, last)


# -- both -----------------------------------------------------------------------------------------------------


def least(runs: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds of processor of each, in turn; the least of the rounds."""
    found = dict.fromkeys(runs, np.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            found[name] = min(found[name], 1e6 * (time.process_time() - start))
    return found


def compared(name: str, ours: Any, problem: Any, v0: Array) -> str:
    """A row of the table: cost, iterations, microseconds an iteration and of the whole, of both."""
    problem.nthreads = 1
    planner = ours.planner
    held = planner.held(ours.q[0])[:, ours.driven]
    rows = iter(held)
    guess = [next(rows) if knot.nu else np.zeros(0) for knot in problem.runningModels]
    states = [problem.x0] * (problem.T + 1)
    boxed = planner.task.boxed
    other = (crocoddyl.SolverBoxFDDP if boxed else crocoddyl.SolverFDDP)(problem)
    other.solve(states, guess, 300, False, 1e-9)
    theirs, steps = other.cost, other.iter
    first = Guess(None, None, planner.held(ours.q[0]))

    def run(iterations: int) -> None:
        planner.begin(ours.q[0], v0, first)
        planner.solve(iterations)

    t = least({"one": lambda: run(1), "one theirs": lambda: other.solve(states, guess, 1, False, 1e-9)})
    t |= least({"all": lambda: run(300), "all theirs": lambda: other.solve(states, guess, 300, False, 1e-9)}, 10)
    cells = [f"{ours.cost:.9g}", f"{theirs:.9g}", f"{ours.iterations}", f"{steps}"]
    for part, (a, b) in (("one", (1, 1)), ("all", (ours.iterations, steps))):
        mine, other_time = t[part] / a, t[f"{part} theirs"] / b
        cells += [f"{mine:.0f}", f"{other_time:.0f}", f"**{other_time / mine:.1f}**"]
    print(name, *cells)
    return " | ".join(["", name, *cells, ""]).strip()


# -- limits of states -----------------------------------------------------------------------------------------

ANY = np.full(7, np.inf)
LIMITED = {
    "rates at most 0.5 rad/s": {"v": 0.5},
    "0.7 rad/s, 40 N m": {"v": 0.7, "tau": 40.0},
    "joints 3 and 5 at most 0.5 and 0.2 rad, 60 N m": {
        "q": (-ANY, np.array([np.inf, np.inf, 0.5, np.inf, 0.2, np.inf, np.inf])), "tau": 60.0,
    },
}  # fmt: skip


def reach_of_ipopt(
    panda: drevo.Robot, q0: Array, knots: int, limits: dict[str, Any], u0: Array
) -> Callable[[], Any]:
    """The whole problem as one program, all states and efforts its unknowns."""
    move = drevo.casadi.function(panda, "forward_dynamics", passive=True)
    place_of = drevo.casadi.function(panda, "pose", link="panda_hand_tcp")
    names = [[casadi.SX.sym(f"{name}{k}", 7) for name in "uqv"] for k in range(knots)]
    q, v, total, gaps = casadi.DM(q0), casadi.DM.zeros(7), 0.0, []

    def pose(link: str) -> Any:
        T = place_of(q)
        return [[T[i, j] for j in range(4)] for i in range(4)]

    for k, (u, q1, v1) in enumerate(names):
        total += DT * reach(pose, *(casadi.vertsplit(casadi.SX(x)) for x in (q, v, u)), k * DT)
        faster = v + DT * move(q, v, u)
        gaps += [q1 - (q + DT * faster), v1 - faster]
        q, v = q1, v1
    total += reached(pose, casadi.vertsplit(q), casadi.vertsplit(v))
    sides = [limits.get(name, np.inf) for name in ("tau", "q", "v")]
    pairs = [x if isinstance(x, tuple) else (np.full(7, -x), np.full(7, x)) for x in sides]
    low, high = (np.tile(np.concatenate(side), knots) for side in zip(*pairs))
    program = {"x": casadi.vertcat(*(x for row in names for x in row)), "f": total, "g": casadi.vertcat(*gaps)}
    quiet = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-9}
    solve = casadi.nlpsol("reach", "ipopt", program, quiet)
    start = np.tile(np.concatenate([u0, q0, np.zeros(7)]), knots)
    return lambda: (solve(x0=start, lbx=low, ubx=high, lbg=0, ubg=0), solve.stats())


def limited(panda: drevo.Robot, q0: Array) -> list[str]:
    """Rows of the second table."""
    out = []
    for name, limits in LIMITED.items():
        ours = optimise(panda, reach, q0, np.zeros(7), 100, DT, limits, reached, tolerance=1e-9)
        planner = ours.planner
        first = Guess(None, None, planner.held(q0))
        other = reach_of_ipopt(panda, q0, 100, limits, first.tau[0])
        found, stats = other()

        def run(planner: Any = planner, first: Guess = first) -> None:
            planner.begin(q0, np.zeros(7), first)
            planner.solve(300)

        t = least({"ours": run, "theirs": other}, 3)
        cells = [f"{ours.cost:.9g}", f"{float(found['f']):.9g}", f"{ours.iterations}", f"{stats['iter_count']}"]
        cells += [f"{t['ours'] / 1e3:.1f}", f"{t['theirs'] / 1e3:.0f}", f"**{t['theirs'] / t['ours']:.0f}**"]
        print(name, *cells)
        out.append(" | ".join(["", name, *cells, ""]).strip())
    return out


def main() -> None:
    """Measure, print, write."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = panda_file(Path(folder))
        panda, q0 = drevo.load(path), np.array([0, -0.5, 0, -2.0, 0, 1.5, 0.7])
        for name, most in (("Panda reaches, 100 knots", np.inf), ("the same, at most 20 N m", 20.0)):
            ours = optimise(panda, reach, q0, np.zeros(7), 100, DT, {"tau": most}, reached, tolerance=1e-9)
            lines.append(compared(name, ours, reach_of_crocoddyl(path, q0, 100, most), np.zeros(7)))
        plan = optimise(panda, reach, q0, np.zeros(7), 100, DT, {"tau": 30.0}, reached)
        states = limited(panda, q0)
    go2 = drevo.load("go2", base="floating")
    q0 = go2.neutral()
    q0[7:] = BEND
    q0[2] -= go2.pose(q0, FEET[0])[2, 3]
    start = go2.pose(q0, FEET[0])[:3, 3]
    marks = {link: go2.pose(q0, link)[:3, 3] for link in MARKS}
    held = [(PHASES[0], contacts(FEET)), (PHASES[1], contacts(FEET[1:])), (PHASES[2], contacts(FEET))]
    cost, end = step_costs(start, marks)
    ours = optimise(go2, cost, q0, np.zeros(18), 50, DT, None, end, contacts=held, tolerance=1e-9)
    lines.append(
        compared(
            "Go2 steps, 50 knots", ours, step_of_crocoddyl(go2.to_pinocchio(), q0, start, marks), np.zeros(18)
        )
    )
    late = plan.shifted()
    again = least({"mpc": lambda: late.again(late.q[0] + 1e-4, late.v[0])}, 300)["mpc"]
    head = ["cost", "Crocoddyl's", "iterations", "Crocoddyl's", "first iteration, us", "Crocoddyl's", "ratio"]
    head += ["all / iterations, us", "Crocoddyl's", "ratio"]
    text = [
        "# Trajectories", "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, Crocoddyl {crocoddyl.__version__},",
        f"one core, microseconds of processor, the least of {ROUNDS} rounds in turn; {datetime.date.today()}.", "",
        f"| | {' | '.join(head)} |", "|---|" + "--:|" * len(head), *lines, "",
        f"Model-predictive control of the Panda, 100 knots, efforts limited: `again` takes {again:.0f} us.", "",
        f"The Panda with limits of states, beside IPOPT by CasADi {casadi.__version__}, milliseconds of all:", "",
        "| | cost | IPOPT's | iterations | IPOPT's | ms | IPOPT's | ratio |", "|---|" + "--:|" * 7, *states,
    ]  # fmt: skip
    print("\n".join(text))
    (Path(__file__).parent / "trajectories.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
