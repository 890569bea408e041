"""One robot in every contender's form, random states, and a proof that they compute the same."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from inner_loops import Child, write_model, write_states
from robots import Subject, plain_file, plain_urdf

import drevo
from drevo.codegen.call.function import Function, Spec, obtain
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Program

Array = np.ndarray[Any, Any]
STATES = 100_000
FEW = 64  # states of single evaluations, in turn: they stay in the first cache with all that is about them
ARGUMENTS = {
    "pose": ("q",),
    "inverse_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics_derivatives": ("q", "v", "a"),
    "forward_dynamics_derivatives": ("q", "v", "tau"),
    "bias": ("q", "v"),
}
QUANTITIES = tuple(ARGUMENTS)[:6]  # of the main table


@dataclass(slots=True)
class Case:
    """A subject, its states as Drevo orders them, and as the peers do."""

    subject: Subject
    path: Path
    robot: Any
    model: Any  # Pinocchio's
    mj: Any  # MuJoCo's
    state: dict[str, Array]
    pin_state: dict[str, Array]
    folder: Path

    def arguments(self, quantity: str, own: bool = True) -> list[Array]:
        """All states of the arguments of a quantity."""
        return [(self.state if own else self.pin_state)[key] for key in ARGUMENTS[quantity]]


def prepare(subject: Subject) -> Case:
    """Load the robot three times and draw the states."""
    path = plain_file(subject)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        robot = drevo.load(path, base=subject.base)
    free = (pin.JointModelFreeFlyer(),) if subject.base == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *free)
    mj = mujoco.MjModel.from_xml_string(plain_urdf(subject, mujoco=True))
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, STATES, robot.nv))
    state = {"q": robot.random(rng, STATES), "v": v, "a": a, "tau": 10.0 * a}
    folder = Path(tempfile.mkdtemp(prefix="drevo-bench-"))
    names = list(model.names)[1 + robot.nq - robot.nv :]  # without the universe and a free joint
    return Case(subject, path, robot, model, mj, state, _reordered(robot, names, state), folder)


def _reordered(robot: Any, names: list[str], state: dict[str, Array]) -> dict[str, Array]:
    """States with the hinges in another order of names; a free joint stays first, whatever its name."""
    free = robot.nq - robot.nv  # 1 with a free joint, else 0
    own = list(robot.joint_names[free:])
    at = np.array([own.index(n) for n in names])
    out = {}
    for key, x in state.items():
        head = 0 if not free else 7 if key == "q" else 6
        out[key] = np.ascontiguousarray(np.hstack([x[:, :head], x[:, head:][:, at]]))
    return out


def pin_child(case: Case, program: Path) -> Child:
    """Pinocchio's inner loop on this robot, checked against Drevo."""
    write_model(case.model, case.folder / "model.txt")
    write_states([case.pin_state[key][:FEW] for key in ("q", "v", "a", "tau")], case.folder / "states")
    child = Child([program, case.folder / "model.txt", case.folder / "states"])
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        _same(case, quantity, child, list(case.model.names[_free(case) + 1 :]))
    return child


def mujoco_child(case: Case, program: Path) -> Child:
    """MuJoCo's inner loop on this robot, checked against Drevo if its base is fixed."""
    urdf, order = case.folder / "mujoco.urdf", list(range(case.robot.nq))
    urdf.write_text(plain_urdf(case.subject, mujoco=True))
    names = [mujoco.mj_id2name(case.mj, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(case.mj.njnt)]
    state = _reordered(case.robot, names[_free(case) :], case.state)
    if case.robot.nq > case.robot.nv:
        order[3:7] = [6, 3, 4, 5]  # the scalar of the quaternion first
    q = state["q"][:, order]
    write_states([q[:FEW], *(state[key][:FEW] for key in ("v", "a", "tau"))], case.folder / "mujoco_states")
    child = Child([program, urdf, case.folder / "mujoco_states"])
    for quantity in ("inverse_dynamics", "forward_dynamics") if not _free(case) else ():
        _same(case, quantity, child, names)  # the velocity of a free joint has other axes there
    return child


def _free(case: Case) -> int:
    """How many free joints there are: 0 or 1."""
    return int(case.robot.nq - case.robot.nv)


def _same(case: Case, quantity: str, child: Child, names: list[str]) -> None:
    """The child's results on some states are Drevo's, joints by name."""
    rows = [0, 1, FEW - 1]
    ours = getattr(case.robot, quantity)(*(x[rows] for x in case.arguments(quantity)))
    ours = _reordered(case.robot, names, {"tau": ours})["tau"]
    theirs = np.array([child.show(quantity, k) for k in rows])
    worst = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    if not worst < 1e-9:
        raise SystemExit(f"{case.subject.name}, {quantity}: results differ by {worst:.1e}; nothing is compared")


# --- Drevo -------------------------------------------------------------------------------------------------


def function(case: Case, quantity: str, **spec: Any) -> Function:
    """Drevo's function; "pose" is the poses of all links at once, 16 numbers each."""
    return drevo.compile(case.robot, "poses" if quantity == "pose" else quantity, **spec)


def null(like: Function) -> Function:
    """A function with the arguments of another that computes next to nothing: what a call costs by itself."""
    graph, ports = Graph(), []
    for name, shape in like.inputs:
        made = [graph.input(f"{name}[{k}]") for k in range(int(np.prod(shape)))]
        ports.append(Input(name, shape, tuple(x.edge >> 1 for x in made)))
    first = ports[0].nodes[0] << 1
    outputs = tuple(Output(name, (1,), (first,)) for name, _ in like.outputs)
    program = Program("null", graph, tuple(ports), (), outputs, meta={"robot": "none"})
    return obtain("null", lambda: program, Spec(), cache=False)
