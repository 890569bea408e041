"""Walking by touch: a plan made for one ground, carried out on another that only the soles feel.

The clock of the plan stands still in the middle of each swing, where the centre of mass rests above the sole that
stands, until the other sole has come down: it goes to its foothold in the air and then straight down until it
touches, lies flat by turning about the corners that carry, and stands as it lies. The pelvis goes up and down with
the ground under the feet.

Loads are normal forces at the corners of the soles. Kovalchuk, Kulakov, Semenov: adaptation to ground that differs
from the forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..io.given import Array
from .control import TIPPED, Follower, PlannedState, WalkState
from .feet import rotation_by_vector, turn_between
from .gait import quintic
from .phase import GaitPlan, Phase

CORNER_TOUCHES, SOLE_LANDS = 5.0, 30.0  # N: a corner, a sole with more is on the ground
SMOOTHED = 0.25  # of a new load that counts at once; the rest follows
AIRBORNE, ACROSS_AT, LOWERED = (
    1.1,
    0.75,
    0.6,
)  # s, of a swing; parts of it: x, y arrive, z begins to sink
CLEARANCE = 0.07  # m, of a swinging sole above the higher of its start and the sole that stands
SINKING, CORNER_SPEED, PRESSING = (
    0.18,
    0.15,
    0.03,
)  # m/s: of soles, of corners in the air, of corners on the ground
FLAT_BY = 0.4  # s after touch: then a sole stands as it lies, be it on two corners
TURNED_BY_GROUND = 0.03  # rad: a sole that turns further may hang over an edge
RETREAT_SPEED, MAX_RETREAT = 0.3, 0.012  # m/s, m: it goes from the wall of a step
STRAIGHT_LEG = 0.96  # of a leg's length: a longer one lowers the pelvis
FOLLOWS = 4.0  # 1/s: of the pelvis behind the ground, critically damped
ROOM_TO_EDGE = 0.02  # m: so far inside the soles the zero-moment point is kept
LOWER_FOOT = 0.7  # of the pelvis' height, the part of the lower foot


@dataclass
class TouchedSole:
    """A sole as it is felt: world from link where it lies flat, None before; time since it touched, s."""

    flat: Array | None = None
    touched: float | None = None


@dataclass
class SwingBySole:
    """A swing: the foot, where it began, where it is to end, (3,), and its time, s, and how
    far it went from the wall of a step, m."""

    foot: int
    place: Array
    R: Array
    end: Array
    t: float = 0.0
    retreated: float = 0.0


class TouchFollower(Follower):
    """tau = efforts_by_touch(q, v, loads) every `hold` seconds, until `done`. k: how far the plan is."""

    edge = ROOM_TO_EDGE

    def __init__(self, plan: GaitPlan, gain: float, hold: float, rest: float) -> None:
        super().__init__(plan, gain, hold, rest)
        self.hold, self.k, self.lift, self.lift_rate = hold, 0, 0.0, 0.0
        self.corners = np.cumsum([len(leg.corners) for leg in self.legs])
        weight = -self.mass * self.robot.model.gravity[2]
        self.felt = np.full(self.corners[-1], weight / self.corners[-1])
        self.feet = [TouchedSole() for _ in self.legs]
        self.swing: SwingBySole | None = None
        self.gates = {id(phase): self._gate(phase) for phase in plan.phases}

    @property
    def done(self) -> bool:
        """True at the end of the plan."""
        return self.k + 1 >= len(self.wishes)

    def _gate(self, phase: Phase) -> int:
        """The tick at which the clock waits for the sole that swings: the centre of mass is slowest."""
        ticks = [k for k, x in enumerate(self.phases) if x is phase]
        inner = ticks[3 * len(ticks) // 10 : 9 * len(ticks) // 10]
        return min(inner, key=lambda k: float(np.linalg.norm(self.wishes[k].motion.momentum[:2])))

    # -- one hold -------------------------------------------------------------------------------------------

    def efforts_by_touch(self, q: Array, v: Array, loads: Array) -> tuple[Array, Array]:
        """(nv,) at a state and normal forces (corners,) N, and where the centre of mass should be, (3,) m."""
        m, phase = self.motion(q, v), self.phases[self.k]
        self.felt += SMOOTHED * (loads - self.felt)
        self._step(phase, m)
        on_ground = [i for i in range(len(self.legs)) if i in phase.stands or self.feet[i].touched is not None]
        waits = len(on_ground) < len(self.legs)
        for i in on_ground:
            waits |= not self._lies(i, m) and i not in phase.stands
        waits &= self.k >= self.gates[id(phase)]
        wish = self._wish(m, on_ground, waits)
        stands = [i for i in on_ground if self.feet[i].flat is not None] or on_ground
        tau = self._drives(wish, m, stands, False)
        self.k += not waits and not self.done
        return tau, wish.motion.com

    def _step(self, phase: Phase, m: WalkState) -> None:
        """Begin, continue or end the swing of a phase."""
        swings = [i for i in range(len(self.legs)) if i not in phase.stands]
        if not swings:
            self.swing = None
            return
        (i,) = swings
        if self.swing is None:
            after = next(k for k in range(self.k, len(self.phases)) if i in self.phases[k].stands)
            end = self.wishes[after].motion.soles.places[i].copy()
            self.swing = SwingBySole(i, m.soles.places[i].copy(), m.soles.R[i].copy(), end)
            self.feet[i] = TouchedSole()
        foot, swing = self.feet[i], self.swing
        if foot.touched is not None:
            foot.touched += self.hold
        elif swing.t > LOWERED * AIRBORNE - 2 * self.hold and self._loads(i).sum() > SOLE_LANDS:
            foot.touched = 0.0
        else:
            swing.t += self.hold

    def _loads(self, i: int) -> Array:
        return self.felt[self.corners[i] - len(self.legs[i].corners) : self.corners[i]]

    def _lies(self, i: int, m: WalkState) -> bool:
        """True if a sole on the ground stands as it lies; whatever the estimate drifts, three corners say so."""
        foot = self.feet[i]
        late = foot.flat is None and (foot.touched or 0.0) > FLAT_BY
        if late or np.sum(self._loads(i) > CORNER_TOUCHES) >= 3:
            foot.flat = m.soles.R[i].copy()
        return foot.flat is not None

    def _wish(self, m: WalkState, on_ground: list[int], waits: bool) -> PlannedState:
        """The plan's state with the soles where they are or swing to, over ground as high as it is felt."""
        wish = self.wishes[self.k]
        planned = wish.motion.soles
        places, R = m.soles.places.copy(), m.soles.R.copy()
        rate, acceleration = np.zeros((2, *wish.soles.shape))
        if self.swing is not None and (i := self.swing.foot) not in on_ground:
            places[i], rate[i, :3], acceleration[i, :3] = self._flight(self.swing, m, on_ground)
            R[i] = self._levelled(self.swing)
            if self.swing.t > LOWERED * AIRBORNE and self.swing.retreated < MAX_RETREAT:
                rate[i, :2] += self._retreat(i, m)
                self.swing.end[:2] += self.hold * rate[i, :2]
                self.swing.retreated += self.hold * float(np.linalg.norm(rate[i, :2]))
        for i in on_ground:
            R[i] = R[i] if self.feet[i].flat is None else self.feet[i].flat
        above = [m.soles.places[i, 2] - planned.places[i, 2] for i in on_ground]
        goal = LOWER_FOOT * min(above) + (1.0 - LOWER_FOOT) * max(above)
        goal -= max(self._stretched(i, m, places[i]) for i in range(len(self.legs)))
        self.lift_rate += self.hold * (FOLLOWS**2 * (goal - self.lift) - 2.0 * FOLLOWS * self.lift_rate)
        self.lift += self.hold * self.lift_rate
        up, moves, x = np.array([0.0, 0.0, self.lift]), float(not waits), wish.motion
        pelvis_rate = moves * x.rate
        pelvis_rate[2] += self.lift_rate
        motion = x._replace(
            q=np.concatenate([x.q[:3] + up, x.q[3:]]),
            v=moves * x.v,
            com=x.com + up,
            rate=pelvis_rate,
            momentum=moves * x.momentum,
            soles=planned._replace(places=places, R=R, rate=rate),
        )
        return wish._replace(motion=motion, a=moves * wish.a, base=moves * wish.base, soles=acceleration)

    def _flight(self, swing: SwingBySole, m: WalkState, on_ground: list[int]) -> Array:
        """(3, 3): place of a swinging sole, its rate and acceleration."""
        t, T, out = swing.t, AIRBORNE, np.zeros((3, 3))
        begins, ends = 0.1 * T, ACROSS_AT * T
        s = np.array([np.clip(t - begins, 0.0, ends - begins)])
        for axis in (0, 1):
            way = quintic((swing.place[axis], 0.0, 0.0), (swing.end[axis], 0.0, 0.0), ends - begins, s)
            out[:, axis] = way[:, 0]
        low = float(swing.place[2])
        top = max(low, float(m.soles.places[on_ground, 2].max())) + CLEARANCE
        rise, sunk = 0.35 * T, t - LOWERED * T
        brake = 0.1  # s, to the speed of sinking
        if t < rise:
            out[:, 2] = quintic((low, 0.0, 0.0), (top, 0.0, 0.0), rise, np.array([t]))[:, 0]
        elif sunk < brake:
            sunk = max(sunk, 0.0)
            out[:, 2] = top - SINKING * sunk**2 / (2 * brake), -SINKING * sunk / brake, -SINKING / brake
            out[2, 2] *= sunk > 0.0
        else:
            out[:, 2] = top - SINKING * (sunk - brake / 2), -SINKING, 0.0
        return out

    def _stretched(self, i: int, m: WalkState, place: Array) -> float:
        """By how much the hip of a leg is too high for its sole at a place, m."""
        leg = self.legs[i]
        up = m.q[:3] + m.R @ leg.hip - place - m.soles.R[i] @ leg.upright.T @ leg.ankle
        most = (STRAIGHT_LEG * leg.length) ** 2 - float(up[:2] @ up[:2])
        return max(0.0, float(up[2]) - float(np.sqrt(max(most, 0.0))))

    def _retreat(self, i: int, m: WalkState) -> Array:
        """Velocity (2,) of a sole that the ground turns, from its higher end: the other may sink beside a step."""
        if np.linalg.norm(turn_between(self.legs[i].upright, m.soles.R[i])[:2]) < TURNED_BY_GROUND:
            return np.zeros(2)
        corners = self._corners(m, i)
        up = corners[:, 2] @ corners[:, :2]
        return np.asarray(-RETREAT_SPEED * up / np.linalg.norm(up))

    def _levelled(self, swing: SwingBySole) -> Array:
        """World from the link of a swinging sole, on its way from how it lay to level."""
        s = min(swing.t / (0.4 * AIRBORNE), 1.0)
        turn = turn_between(swing.R, self.legs[swing.foot].upright) * s * s * (3.0 - 2.0 * s)
        return rotation_by_vector(turn) @ swing.R

    # -- soles that touch -----------------------------------------------------------------------------------

    def _soles(self, wish: PlannedState, m: WalkState, stands: list[int]) -> Array:
        """Accelerations of the soles; one that has touched on an edge settles."""
        out = super()._soles(wish, m, stands)
        for i, foot in enumerate(self.feet):
            if foot.touched is not None and foot.flat is None:
                out[i] = self._settling(i, m)
        return out

    def _settling(self, i: int, m: WalkState) -> Array:
        """Acceleration of a sole (6,) that turns about the corners that carry until others touch."""
        on, rate, G = self._loads(i) > CORNER_TOUCHES, m.soles.rate[i], 2.0 * self.gain
        if not on.any():
            return np.asarray(-G * (rate + np.array([0.0, 0.0, SINKING, 0.0, 0.0, 0.0])))
        corners = self._corners(m, i)
        hub = corners[on].mean(axis=0)
        x, y, _ = corners[~on].mean(axis=0) - hub
        spin = CORNER_SPEED * np.array([-y, x, 0.0]) / max(x * x + y * y, 1e-6)
        turn = G * (spin - rate[3:])
        at_hub = rate[:3] + np.cross(rate[3:], hub)
        return np.concatenate([-G * (at_hub + np.array([0.0, 0.0, PRESSING])) - np.cross(turn, hub), turn])

    def _tip(self, N: Array, m: WalkState, i: int) -> None:
        """A reaction (6,) about the middle of a sole that has left how it lay goes through what still carries."""
        corners, flat = self._corners(m, i), self.feet[i].flat
        if flat is None:
            on = self._loads(i) > CORNER_TOUCHES
        else:
            leg = self.legs[i]
            height = corners[:, 2] - (flat @ (leg.corners - leg.middle).T)[2]
            on = height < height.min() + TIPPED
        if 0 < on.sum() < len(on):
            N[3:] = np.cross(corners[on].mean(axis=0), N[:3])
