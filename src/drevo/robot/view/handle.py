"""A handle on a link in a window: dragged or turned, the robot follows by a stack of tasks."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from threading import Lock
from typing import Any

import numpy as np

from ...errors import DrevoError
from ...io.given import Array
from ...model.rotations import matrix_of_quaternion
from ...tasks import CompiledStack, ConfigurationLimit, DampingTask, FrameTask, VelocityLimit, compile_ik
from .figure import quaternion

ORIENTATION_COSTS = {"hidden": None, "moves the link": 0.0, "moves and turns it": 1.0}  # 1/rad
FREE_BASE_DAMPING, JOINT_DAMPING = 1e3, 1e-3  # costs in 1/rad and 1/m: a free base stays where it is
STEPS_PER_DRAG = 10
LARGEST_STEP, ARRIVED = 0.3, 1e-6  # rad or m
LM_DAMPING = 0.3  # of the square of the error: near a singular pose, or out of reach, steps stay small


class LinkHandle:
    """Arrows and rings on a link of a viser scene, and the two lists that choose the link and what a drag does."""

    def __init__(self, server: Any, robot: Any, size: float, move: Callable[[Array], None]) -> None:
        self.robot, self.move, self._solving, self.dragged = robot, move, Lock(), False
        model = robot.model
        names = [link.name for link in model.links]
        self.kind = server.gui.add_dropdown("handle", tuple(ORIENTATION_COSTS), initial_value="hidden")
        self.link = server.gui.add_dropdown("on", names, initial_value=names[-1])
        self.note = server.gui.add_html("")
        self.control = server.scene.add_transform_controls(
            "/handle", scale=size / 6, visible=False, depth_test=False, disable_sliders=True
        )
        self.control.on_update(lambda event: self.drag(event.phase))
        for choice in (self.kind, self.link):
            choice.on_update(lambda _: self.stand())
        self.damping = np.full(model.nv, JOINT_DAMPING)
        for joint, _, places in model.slices():
            if joint.kind == "free":
                self.damping[places] = FREE_BASE_DAMPING
        self.q: Array | None = None
        self.stacks: dict[tuple[str, str], CompiledStack] = {}

    def stand(self, q: Array | None = None) -> None:
        """Puts the handle where the link is at q, unless it is being dragged."""
        self.q = self.q if q is None else q
        cost = ORIENTATION_COSTS[self.kind.value]
        self.control.visible, self.control.disable_rotations = cost is not None, not cost
        if cost is not None and not self.dragged:
            T = self.robot.pose(self.q, link=self.link.value)
            self.control.position, self.control.wxyz = T[:3, 3], quaternion(T[:3, :3])

    def drag(self, phase: str) -> None:
        """Moves the robot towards the handle. phase: "start", "update" or "end", as viser has them.

        An update that comes while another is computed is left out; the end waits and comes last.
        """
        last = phase == "end"
        self.dragged = not last
        if phase == "start" or self.q is None or not self._solving.acquire(blocking=last):
            return
        try:
            self.move(self._towards(self.q, _pose_of(self.control)))
            self.note.content = ""
        except DrevoError as error:
            self.note.content = f"<p>{escape(str(error))}</p>"
        finally:
            self._solving.release()
        self.stand()

    def _towards(self, q: Array, target: Array) -> Array:
        for _ in range(STEPS_PER_DRAG):
            dq = self._stack()(q, target).v
            q = self.robot.integrate(q, dq)
            if np.abs(dq).max(initial=0.0) < ARRIVED:
                break
        return q

    def _stack(self) -> CompiledStack:
        """The step towards the handle, compiled when a link is first dragged so."""
        key = (self.link.value, self.kind.value)
        if key not in self.stacks:
            turns = ORIENTATION_COSTS[key[1]] or 0.0
            tasks = [FrameTask(key[0], 1.0, turns, lm_damping=LM_DAMPING), DampingTask(self.damping)]
            limits = (ConfigurationLimit(gain=1.0), VelocityLimit(LARGEST_STEP))
            self.stacks[key] = compile_ik(self.robot, tasks, 1.0, limits)
        return self.stacks[key]


def _pose_of(control: Any) -> Array:
    """The pose of a transform control, (4, 4)."""
    w, x, y, z = control.wxyz
    T = np.eye(4)
    T[:3, :3] = matrix_of_quaternion(x, y, z, w)
    T[:3, 3] = control.position
    return T
