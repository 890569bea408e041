"""Sawyer's arm with metaworld's ten tasks, MT10: it reaches, pushes, opens, closes, presses and inserts.

Yu et al. 2020, "Meta-World: a benchmark and evaluation for multi-task and meta reinforcement learning".
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from math import pi
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ..contact.pairs import interaction_of
from ..mechanics.algorithms.sensors import links_from
from ..model.contact import ContactPair
from ..model.loaders.solids import MOST_SUPPORTS
from ..model.pairing import touching_pairs
from ..model.vectors import IDENTITY, ORIGIN, Vec3
from ..robot.face import Robot
from .goals import DrawnEnv, norms
from .ours import SawyerTask, installed_file, quiet_model
from .rotations import product, rotation_quaternions
from .scales import FALLS
from .tasks import Task

Array = np.ndarray[Any, Any]
LOOK = 18  # numbers of what is observed at once
OBJECT_PLACE = slice(9, 12)  # of q, the place of a free object
HAND_RANGE = np.array([(-0.5, 0.5), (0.4, 1.0), (0.05, 0.5)])  # m, where actions lead the hand
SEEN_RANGE = np.array([(-0.525, 0.525), (0.348, 1.025), (-0.0525, 0.7)])  # m, to which its place is cut
HAND_REACH = np.float32(0.01)  # m that an action of 1 leads the hand by
HAND_QUATERNION = (1.0, 0.0, 1.0, 0.0)  # w x y z, of any norms
OPENING_STEPS = 50  # before all episodes, with open fingers
TORQUE_SCALE = 5.0  # m that a radian of the hand's weld counts for
OPEN_WIDTH = 0.1  # m, between the claws
FINGERTIP = (0.045, 0.0, 0.0)  # of a claw
GRASPED = 0.97  # of closeness, above which closing the fingers is paid
PEG_HEAD = (-0.1, 0.0, 0.0)
PEG_RATES = np.array([1.0, 2.0, 2.0])  # of ways of the peg's head along x, y, z
# corners beside the hole of a box in which the head of a peg is paid less
PEG_PRISMS = (((0.1, -0.11, 0.01), (-0.1, -0.15, 0.096)), ((0.1, -0.11, 0.16), (-0.1, -0.17, 0.19)))
DRAWER_RATES = np.array([3.0, 3.0, 1.0])
DRAWER_WAY = 0.2  # m that a drawer opens by
BUTTON_TOP = (0.0, -0.1935, 0.0)  # of the box of a button


class Thing(NamedTuple):
    """The thing observed: a point of a link and a way along the world's axes; the order of its quaternion, if that
    is observed, and the turn of its axes from those of the link, w x y z."""

    link: str
    point: Vec3 = ORIGIN
    way: Vec3 = ORIGIN
    order: str = ""
    turn: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)


PUCK = Thing("obj", order="xyzw")
# the middle and the principal axes of the mesh of a door's handle
DOOR_HANDLE = (0.3757216291725263, -0.10713989591550226, 3.594871036353343e-05)
HANDLE_QUATERNION = (0.1511710702057455, 0.6907585016001258, -0.15062095282872134, 0.6908786641436899)
THINGS = {
    "reach-v3": PUCK, "push-v3": PUCK, "pick-place-v3": PUCK,
    "door-open-v3": Thing("door_link", DOOR_HANDLE, order="xyzw", turn=HANDLE_QUATERNION),
    "drawer-open-v3": Thing("drawer_link", way=(0.0, -0.16, 0.0), order="wxyz"),
    "drawer-close-v3": Thing("drawer_link", way=(0.0, -0.16, 0.05)),
    "button-press-topdown-v3": Thing("button", way=(0.0, 0.0, 0.193), order="wxyz"),
    "peg-insert-side-v3": Thing("peg", (0.03, 0.0, 0.01), order="xyzw"),
    "window-open-v3": Thing("windowb_a", (-0.04, -0.095, 0.0)),
    "window-close-v3": Thing("windowb_a", (0.01, -0.095, 0.0)),
}  # fmt: skip


@cache
def _sawyer(file: str, moved: str) -> Robot:
    """The robot of a file with the weld of its hand as the tasks have it; a link stands where an episode says."""
    model = quiet_model(installed_file("metaworld", f"assets/sawyer_xyz/{file}.xml"), hulls=MOST_SUPPORTS)
    led = replace(model, links=tuple(replace(x, mocap=x.mocap or x.name == moved) for x in model.links))
    touching = {(a.name, b.name) for a, b, _ in touching_pairs(led)}
    pairs = tuple(  # what hangs on a body that stands may touch it, and not one of motion capture
        ContactPair(a.name, b.name, *interaction_of(a, b)[:7])
        for a, b, _ in touching_pairs(model)
        if (a.name, b.name) not in touching
    )
    plain: dict[str, Any] = {"point_a": ORIGIN, "point_b": ORIGIN, "rotation": IDENTITY}
    welds = tuple(replace(x, torquescale=TORQUE_SCALE, **plain) for x in model.loops)
    return Robot(replace(led, pairs=(*led.pairs, *pairs), loops=welds, notes=()))


class SawyerEnv(DrawnEnv):
    """Environments of a task of metaworld.

    observation (num_envs, 39): the hand's place, how far it is open, place and quaternion of a thing, seven zeros;
    all that as it was before the action; the goal. An action is 4 numbers from -1 to 1: how far the hand goes,
    over 0.01 m, and how the fingers close. "goal" of the state: the places that are drawn for an episode.
    """

    task: SawyerTask

    def __init__(self, name: str, task: SawyerTask, *options: Any, **more: Any) -> None:
        self.goal_size = len(task.low)
        super().__init__(name, task, *options, **more)

    def _plain_task(self) -> Task:
        robot, moved = _sawyer(self.task.file, self.task.moved), ["mocap", *filter(None, [self.task.moved])]
        return self._task_of(robot, [f"{x}.pose" for x in moved], mujoco=False)

    def _compile(self) -> None:
        super()._compile()
        body, moved = self.body, self.task.moved
        self.thing, self.carried = THINGS[self.name], links_from(body.model, moved)
        self.standing = body.robot.pose(body.beginning, moved)[0] if moved else np.eye(4)
        self.closing = np.zeros(self.num_envs)  # how the fingers close
        hand, stands = np.array([self.task.hand]), self.standing[None, :3, 3]
        q, v, seen = body.beginning, np.zeros((1, body.model.nv)), body.beginning
        for _ in range(OPENING_STEPS):
            q, v, seen = self._led(q, v, np.array([[-1.0]]), hand, stands)
        self.settled = q, v, seen

    def _space(self) -> Any:
        look = [*SEEN_RANGE, (-1.0, 1.0), *[(-np.inf, np.inf)] * (LOOK - 4)]
        low, high = np.array([*look, *look, *(self.task.goals or HAND_RANGE)]).T
        return gymnasium.spaces.Box(low, high, dtype=np.float64)

    def _action_size(self) -> int:
        return 4

    # -- steps -------------------------------------------------------------------------------------------------

    def _led(self, q: Array, v: Array, closing: Array, hand: Array, stands: Array) -> tuple[Array, Array, Array]:
        """The states after an action with the hand drawn to places (n, 3), and q as it was last seen."""
        poses = [hand, np.tile(HAND_QUATERNION, (len(q), 1))]
        if self.task.moved:
            poses += [stands, np.tile(rotation_quaternions(self.standing[None, :3, :3]), (len(q), 1))]
        return self._called(q, v, closing * [1.0, -1.0], np.concatenate(poses, 1))

    def _act(self, at: Array, action: Array) -> None:
        state, action = self._state, action.astype(np.float32)
        self.closing[at] = action[:, 3]
        state["before"][at] = state["look"][at]
        state["hand"][at] = np.clip(state["hand"][at] + action[:, :3] * HAND_REACH, *HAND_RANGE.T)
        q, v = state["q"][at], state["v"][at]
        state["q"][at], state["v"][at], _ = self._led(q, v, action[:, 3:], state["hand"][at], self.stands[at])
        state["look"][at] = self._look(state["q"])[at]

    def _look(self, q: Array) -> Array:
        """One look (num_envs, 18) at coordinates (num_envs, nq)."""
        thing, rest = self.thing, np.zeros((self.num_envs, LOOK - 7))
        width = norms(self.place("rightclaw", q=q) - self.place("leftclaw", q=q))[:, None]
        if thing.order:
            link = rotation_quaternions(self.body.robot.pose(q, thing.link)[:, :3, :3])
            turned = product(link, np.array(thing.turn))
            largest = np.take_along_axis(turned, abs(turned).argmax(1)[:, None], 1)
            rest[:, :4] = (turned * np.sign(largest))[:, ["wxyz".index(x) for x in thing.order]]
        place = self.place(thing.link, thing.point, q) + thing.way
        return np.concatenate([self.place("hand", q=q), np.clip(width / OPEN_WIDTH, 0.0, 1.0), place, rest], 1)

    def place(self, link: str, point: Vec3 = ORIGIN, q: Array | None = None) -> Array:
        """Places (num_envs, 3) of a point of a link; q: elsewhere than now, (num_envs, nq) or (1, nq)."""
        frame = self.body.robot.pose(self._state["q"] if q is None else q, link)
        place = frame[:, :3, 3] + frame[:, :3, :3] @ np.array(point)
        return np.asarray(place + self.stands - self.standing[:3, 3] if link in self.carried else place)

    @property
    def stands(self) -> Array:
        """The places drawn last, (num_envs, 3): of a link that is moved, else of the goal."""
        return self._state["goal"][:, -3:]

    @property
    def target(self) -> Array:
        """The places (num_envs, 3) that are wanted."""
        place = self.stands + self.task.ahead
        if self.task.flat:
            place[:, 2] = self.settled[2][0, OBJECT_PLACE.stop - 1]
        return np.asarray(place)

    @property
    def start(self) -> Array:
        """Places (num_envs, 3) where that begins what is moved, pushed or carried."""
        place: Array = self._state["goal"][:, :3].copy()
        if self.task.flat:
            place[:, 2] = self.settled[2][0, OBJECT_PLACE.stop - 1]
        return np.asarray(place)

    def _observed(self) -> Array:
        state, space = self._state, self.single_observation_space
        seen: Array = np.concatenate([state["look"], state["before"], self.target], 1)
        return seen.clip(space.low, space.high)

    def _judged(self, observed: Array) -> tuple[Array, dict[str, Array]]:
        paid = REWARDS[self.name](SawyerScene(self, observed))
        return paid.reward, {k: np.asarray(x, float) for k, x in paid._asdict().items() if k != "reward"}

    # -- beginnings --------------------------------------------------------------------------------------------

    def _restart(self, mask: Array) -> None:
        """New episodes, drawn one after another in metaworld's order: twice each, and the second counts."""
        state, task = self._state, self.task
        for name, size in {"look": LOOK, "before": LOOK, "hand": 3}.items():
            state.setdefault(name, np.zeros((self.num_envs, size)))
        for k in np.flatnonzero(mask):
            state["goal"][k] = [self._drawn() for _ in range(2)][1]
        q, v, seen = (np.repeat(x, self.num_envs, 0) for x in self.settled)
        if self.thing.link in ("obj", "peg"):
            q[:, OBJECT_PLACE], v[:, OBJECT_PLACE.start :] = self.start, 0.0
        if task.joint is not None:
            q[:, -1] = task.joint
        state["q"][mask], state["v"][mask], state["hand"][mask] = q[mask], v[mask], task.hand
        state["look"][mask] = state["before"][mask] = self._look(seen if task.stale else q)[mask]

    def _drawn(self) -> Array:
        while True:
            drawn = np.asarray(self.np_random.uniform(self.task.low, self.task.high))
            if np.linalg.norm(drawn[:2] - drawn[-3:-1]) >= self.task.apart:
                return drawn


class Paid(NamedTuple):
    """The reward, and what infos say."""

    reward: Array
    success: Array
    near_object: Array
    grasp_reward: Array
    in_place_reward: Array
    obj_to_target: Array


class SawyerScene:
    """The data of rewards: how far the hand is open and how its fingers close (n,); places (n, 3) of the hand, of
    the thing, of the middle of the fingertips, now and before the episode, of start and goal."""

    def __init__(self, env: SawyerEnv, observed: Array) -> None:
        self.env, self.first = env, env.settled[2]
        self.hand, self.opened, self.thing = observed[:, :3], observed[:, 3], observed[:, 4:7]
        self.closing, self.goal, self.start = np.clip(env.closing, 0.0, 1.0), env.target, env.start
        self.tips, self.first_tips = self._tips(None), self._tips(self.first)

    def _tips(self, q: Array | None) -> Array:
        claws = (self.env.place(x, FINGERTIP, q) for x in ("rightclaw", "leftclaw"))
        return np.asarray(sum(claws) / 2.0)

    @cached_property
    def reach(self) -> Array:
        """Distances from the fingertips to the thing."""
        return norms(self.thing - self.tips)

    def handle(self) -> Array:
        """The thing's place before an episode, where it stands in this one."""
        thing = self.env.thing
        return self.env.place(thing.link, thing.point, self.first) + thing.way

    def caged(self, radius: float, width: float, signed: bool = False) -> Array:
        """The closeness of pads about the thing, and of fingers that close on it. signed: on its sides."""
        sides = []
        for pad, side in (("leftpad", 1.0), ("rightpad", -1.0)):
            y = self.env.place(pad)[:, 1]
            away, first = side * (y - self.thing[:, 1]), y - (self.thing if signed else self.start)[:, 1]
            sides.append(closeness(away if signed else abs(away), width, abs(abs(first) - width), radius))
        across = norms((self.tips - self.thing)[:, ::2])
        margin = norms((self.start - self.first_tips)[:, ::2]) - 0.005
        caged = both(both(*sides), closeness(across, 0.005, margin))
        return 0.5 * (both(caged, np.where(caged > GRASPED, self.closing, 0.0)) + caged)


def closeness(x: Array, most: float, margin: Any, least: float = 0.0, gaussian: bool = False) -> Array:
    """1 from least to most, less outside: 0.1 a margin away, with a long tail or as a Gaussian."""
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(x < least, least - x, x - most) / margin
        tail = FALLS["gaussian" if gaussian else "long_tail"](d, 0.1)
    return np.asarray(np.where((least <= x) & (x <= most), 1.0, tail))


def both(a: Array, b: Array) -> Array:
    """Hamacher's product of numbers from 0 to 1."""
    total = a + b - a * b
    return np.asarray(np.divide(a * b, total, out=np.zeros_like(total), where=total > 0.0))


def _reach(s: SawyerScene) -> Paid:
    left = norms(s.tips - s.goal)
    placed = closeness(left, 0.05, norms(s.env.task.hand - s.goal))
    return Paid(10.0 * placed, left <= 0.05, left, left, placed, left)


def _push(s: SawyerScene) -> Paid:
    left, caged = norms(s.thing - s.goal), s.caged(0.015, 0.05)
    placed = closeness(left, 0.05, norms(s.start - s.goal))
    held = (s.reach < 0.02) & (s.opened > 0.0)
    reward = np.where(left < 0.05, 10.0, np.where(held, 4.0 * caged + 1.0 + 5.0 * placed, 2.0 * caged))
    return Paid(reward, left <= 0.05, s.reach <= 0.03, caged, placed, left)


def _pick_and_place(s: SawyerScene) -> Paid:
    left, caged = norms(s.thing - s.goal), s.caged(0.015, 0.05, signed=True)
    placed = closeness(left, 0.05, norms(s.start - s.goal))
    lifted = (s.reach < 0.02) & (s.opened > 0.0) & (s.thing[:, 2] - 0.01 > s.start[:, 2])
    reward = np.where(left < 0.05, 10.0, both(caged, placed) + lifted * (1.0 + 5.0 * placed))
    return Paid(reward, left <= 0.07, s.reach <= 0.03, caged, placed, left)


def _open_door(s: SawyerScene) -> Paid:
    angle, grasp = s.env.state["q"][:, -1], 0.5 * (s.env.closing + 1.0)
    way = s.hand - s.thing - np.array([-0.05, 0.0, 0.0])
    around = np.maximum(norms(way[:, :2]) - 0.12, 0.0)  # of a funnel over the handle
    with np.errstate(divide="ignore"):
        floor = np.where(around > 0.0, 0.04 * np.log(around) + 0.4, 0.0)
    above = np.where(s.hand[:, 2] >= floor, 1.0, closeness(floor - s.hand[:, 2], 0.01, floor / 2.0))
    ready = both(above, closeness(norms(way - np.array([0.05, 0.03, -0.01])), 0.06, 0.5))
    opened = 0.2 * (angle < -pi / 90.0) + 0.8 * closeness(2.0 * pi / 3.0 + angle, 0.5, pi / 3.0)
    success = abs(s.thing[:, 0] - s.goal[:, 0]) <= 0.08
    reward = np.where(success, 10.0, 2.0 * both(ready, grasp) + 8.0 * opened)
    return Paid(reward, success, ready, grasp, opened, np.zeros_like(angle))


def _open_drawer(s: SawyerScene) -> Paid:
    left, way = norms(s.thing - s.goal), s.thing - s.hand
    opened = closeness(left, 0.02, DRAWER_WAY)
    first = s.goal + np.array([0.0, DRAWER_WAY, 0.0]) - s.first_tips
    caged = closeness(norms(way * DRAWER_RATES), 0.01, norms(first * DRAWER_RATES))
    return Paid(5.0 * (caged + opened), left <= 0.03, norms(way) <= 0.03, caged, opened, left)


def _close_drawer(s: SawyerScene) -> Paid:
    left = norms(s.thing - s.goal)
    start = s.handle() + np.array([0.0, s.env.task.joint - s.first[0, -1], 0.0])
    placed = closeness(left, 0.05, abs(norms(start - s.goal) - 0.05))
    near = closeness(s.reach, 0.005, abs(norms(start - s.first_tips) - 0.005), gaussian=True)
    near = both(near, s.closing)
    reward = np.where(left <= 0.065, 10.0, 10.0 * both(near, placed))
    return Paid(reward, left <= 0.065, s.reach <= 0.01, near, placed, left)


def _press(s: SawyerScene) -> Paid:
    left = abs(s.goal[:, 2] - s.thing[:, 2])
    near = closeness(s.reach, 0.01, norms(s.thing - s.first_tips))
    stroke = abs(s.goal[:, 2] - s.env.place("box", BUTTON_TOP)[:, 2])
    pressed = closeness(left, 0.005, stroke)
    reward = 5.0 * both(1.0 - s.opened, near) + np.where(s.reach <= 0.03, 5.0 * pressed, 0.0)
    return Paid(reward, left <= 0.024, s.reach <= 0.05, near, pressed, left)


def _insert(s: SawyerScene) -> Paid:
    head, first = s.env.place("peg", PEG_HEAD), s.env.place("peg", PEG_HEAD, s.first)
    left = norms((head - s.goal) * PEG_RATES)
    placed = closeness(left, 0.07, norms((first - s.goal) * PEG_RATES))
    inside = [_share(head, *(s.env.place("box", x) for x in ends)) for ends in PEG_PRISMS]
    placed = both(placed, both(*inside))
    lifted = (s.reach < 0.08) & (s.opened > 0.0) & (s.thing[:, 2] - 0.01 > s.start[:, 2])
    caged = np.where(lifted, 1.0, s.caged(0.0075, 0.03))
    reward = np.where(left <= 0.07, 10.0, both(caged, placed) + lifted * (1.0 + 5.0 * placed))
    return Paid(reward, left <= 0.07, s.reach <= 0.03, caged, placed, left)


def _share(x: Array, zero: Array, one: Array) -> Array:
    """Volume from a corner to a point, of that to the other corner; 1 outside of the prism between them."""
    share = (x - zero) / (one - zero)
    return np.where(((share >= 0.0) & (share <= 1.0)).all(1), share.prod(1), 1.0)


def _slide_window(s: SawyerScene, start: Array, handle: Array, gaussian: bool) -> Paid:
    left = abs(s.thing[:, 0] - s.goal[:, 0])
    placed = closeness(left, 0.05, abs(abs(start[:, 0] - s.goal[:, 0]) - 0.05))
    near = closeness(s.reach, 0.02, abs(norms(handle - s.first_tips) - 0.02), gaussian=gaussian)
    return Paid(10.0 * both(near, placed), left <= 0.05, s.reach <= 0.05, near, placed, left)


def _open_window(s: SawyerScene) -> Paid:
    return _slide_window(s, s.start, s.handle(), gaussian=False)


def _close_window(s: SawyerScene) -> Paid:
    handle = s.handle() + np.array([s.env.task.joint, 0.0, 0.0])
    return _slide_window(s, handle, handle, gaussian=True)


REWARDS = {
    "reach-v3": _reach, "push-v3": _push, "pick-place-v3": _pick_and_place, "door-open-v3": _open_door,
    "drawer-open-v3": _open_drawer, "drawer-close-v3": _close_drawer, "button-press-topdown-v3": _press,
    "peg-insert-side-v3": _insert, "window-open-v3": _open_window, "window-close-v3": _close_window,
}  # fmt: skip
