"""Forces of actuators over any scalar: f = g(l, l') w + b(l, l'), and the activations w that follow controls u.

l is gear times a joint's coordinate or a tendon's length. An integrator has w' = u, a filter w' = (u - w) / T, an
exact one is stepped by w + T w' (1 - exp(-h / T)); muscles have times by w, and forces by their length and speed.

A PID controller with the controls u_pos, u_vel, u_ff, those that it lacks 0, has up to two activations: s, which
follows u_pos at the rate r at most, and the integral z, which is held beyond its bound c, over a step h:

  s' = clip((u_pos - s) / h, -r, r),  p = s + h s', or u_pos where r = 0
  z' = p - l, but min(p - l, 0) where z >= c and max(p - l, 0) where z <= -c, if c > 0
  f = kp (p - l) + kv (u_vel - l') + ki z + u_ff

A DC motor has the torque K i, cut to its range, and that of its cogging, a sin(n l + phi). Its voltage U is
u_voltage, and with a controller, whose force is f and whose z is cut to c after a step, more by
clip(R0 f / K + K l', -V, V). Its temperature is T above that around; where its current lags, the torque is that
of i after the step:

  R = R0 (1 + alpha (T + T_around - T_0)),  C T' = R i^2 - T / R_th
  i = (U - K l') / R, or i' = clip(((U - K l') / R - i) / t, -r, r), stepped by i + t i' (1 - exp(-h / t))

LuGre's friction takes s0 b + s1 b' of it, b being how far bristles are bent, stepped by l' as a step begins:

  b' = l' - r b,  r = s0 |l'| / g,  g = F_c + (F_s - F_c) exp(-(l' / v_s)^2),  b + b' (1 - exp(-r h)) / r

  MuJoCo documentation, "Computation: actuation model"; Millard, Uchida, Seth, Delp 2013, "Flexing computational
  muscle"; Canudas de Wit, Olsson, Astrom, Lischinsky 1995, "A new model for control of systems with friction".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp, inf
from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...model.contact import PID_INPUTS, Actuator, DCMotor
from ...model.description import Joint, Model
from ...model.draft import listed
from ..configuration import neutral
from ..jet import Jet
from ..scalar import Scalar, Vector, accumulate, clip, dot, expm1, is_zero, maximum, minimum, sin, where
from ..tree import Tree, build_tree
from .constraints import Kinematics
from .inertia_matrix import mass_matrix
from .passive import tendon_length

Arms = dict[int, Scalar]  # by rate
LEAST = 1e-15  # of times and lengths that are divided by


class Actuation(NamedTuple):
    """Efforts of actuators (nv,), rates of their activations, and -d efforts / d v, of the lower triangle.

    mean_rates: by activation the mean rate over the step, where its beginning decides it.
    """

    efforts: list[Scalar]
    rates: list[Scalar]
    slopes: dict[tuple[int, int], Scalar]
    mean_rates: dict[int, Scalar]

    @property
    def rates_over_step(self) -> list[Scalar]:
        """The rates by which activations go over a step of one evaluation."""
        return [self.mean_rates.get(i, x) for i, x in enumerate(self.rates)]


def activated(model: Model) -> list[tuple[Actuator, str]]:
    """The actuator and the kind of each activation, in their order."""
    return [(x, kind) for x in model.actuators for kind in x.activations]


def control_ranges(model: Model) -> list[tuple[float, float] | None]:
    """The range of each control, in their order; None: it is not bounded."""
    return [bounds for x in model.actuators for bounds in x.ranges]


def actuation(
    model: Model, q: Vector, v: Vector, controls: Vector, act: Vector = (), step: float = 0.0,
    tree: Tree | None = None,
) -> Actuation:  # fmt: skip
    """The actuation of controls (nu,) and activations (na,). step: s, for forces of activations after it."""
    efforts, rates, steeps = [0.0] * model.nv, list[Scalar](), list[tuple[Scalar, Arms, str]]()
    if "actuation" in model.stepping.disabled:
        return Actuation(efforts, [0.0 for _ in act], {}, {})
    if len(act) != len(lag := activated(model)):
        raise InputError(
            f"robot {model.name!r} has {len(lag)} activations, of actuators {listed([x.name for x, _ in lag])}, "
            f"and {len(act)} of these are given; steps and simulate take them as act, environments want action="
        )
    states, peaks, clamped = iter(act), muscle_peaks(model), "clampctrl" not in model.stepping.disabled
    given, mean_rates = iter(controls), dict[int, Scalar]()
    for x, (length, speed, arms) in zip(model.actuators, _transmissions(model, q, v, tree)):
        u = [_cut(next(given), bounds if clamped else None) for bounds in x.ranges]
        peak, state = peaks.get(x.name, 0.0), {kind: next(states) for kind in x.activations}
        bent = state.pop("bristle", None)
        (force, moves), (slope, _) = (
            _exerted(x, u, [*state.values()], peak, length, s, step) for s in (speed, Jet(speed, 1.0))
        )
        steep = slope.d if isinstance(slope, Jet) else 0.0
        if x.force_range:
            low, high = x.force_range
            steep = where(force > low, where(force < high, steep, 0.0), 0.0)
            force = _cut(force, x.force_range)
        if (m := x.motor) and m.cogging:
            force = force + m.cogging * sin(m.periodicity * length + m.phase)
        if m and bent is not None:
            rate, mean = _bristles(m, bent, speed, step)
            moves.insert(at := x.activations.index("bristle"), rate)
            mean_rates[len(rates) + at] = mean
            force = force - (m.bristle_stiffness * bent + m.bristle_damping * rate)
            steep = steep - m.bristle_damping
        rates += moves
        for k, arm in arms.items():
            efforts[k] = efforts[k] + arm * force
        steeps.append((steep, arms, "" if x.tendon else x.joint))
    held = {joint.name: _held(joint, efforts, sv.start) for joint, _, sv in model.slices() if joint.nv == 1}
    slopes = dict[tuple[int, int], Scalar]()
    for steep, arms, name in steeps:  # of a joint that is held at its bound nothing more, as in MuJoCo
        steep = steep * held.get(name, 1.0)
        for k, j in ((k, j) for k in arms for j in arms if j <= k and not is_zero(steep)):
            accumulate(slopes, (k, j), -(arms[k] * arms[j] * steep))
    return Actuation(efforts, rates, slopes, mean_rates)


def _transmissions(model: Model, q: Vector, v: Vector, tree: Tree | None) -> Iterator[tuple[Scalar, Scalar, Arms]]:
    """Yields of each actuator the length that it has, its rate, and the arms by which it moves the rates."""
    at = {joint.name: (sq.start, sv.start) for joint, sq, sv in model.slices()}
    tendons, moving = {x.name: x for x in model.tendons}, None
    for x in model.actuators:
        if x.tendon:
            moving = moving or Kinematics(tree or build_tree(model), q, v)
            (length,), (speed,), (row,), _ = tendon_length(moving, tendons[x.tendon])
            yield x.gear * length, x.gear * speed, {k: x.gear * y for k, y in enumerate(row) if not is_zero(y)}
        else:
            i, k = at[x.joint]
            yield x.gear * q[i], x.gear * v[k], {k: x.gear}


def _held(joint: Joint, efforts: list[Scalar], k: int) -> Scalar:
    """Cuts the effort of a joint to its bound, and is 0 where it is cut, else 1."""
    whole, most = efforts[k], joint.limit.effort if joint.limit else None
    if most is None or is_zero(whole):
        return 1.0
    efforts[k] = _cut(whole, (-most, most))
    return where(whole > most, 0.0, where(whole < -most, 0.0, 1.0))


def _cut(x: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    low, high = bounds or (-inf, inf)
    x = maximum(x, low) if low > -inf else x
    return minimum(x, high) if high < inf else x


def _within(x: Scalar, most: float) -> Scalar:
    """x cut to the bound of its size, of which 0 is none."""
    return _cut(x, (-most, most) if most else None)


def _exerted(
    x: Actuator, controls: Vector, state: Vector, peak: float, length: Scalar, speed: Scalar, step: float
) -> tuple[Scalar, list[Scalar]]:
    """The force of an actuator before it is cut, and the rates of its activations."""
    if x.motor:
        return _motor_torque(x, x.motor, controls, state, length, speed, step)
    w, rates = _setpoints_force(x, controls, iter(state), length, step) if x.inputs else (controls[0], [])
    for kind, y in zip(x.activations, () if x.inputs else state):
        rates = [_activation_rate(x, w, y)]
        w = _next_activation(x, kind, y, rates[0], step) if x.early else y
    return _force(x, peak, length, speed, w), rates


# -- activations -----------------------------------------------------------------------------------------------


def _activation_rate(x: Actuator, u: Scalar, w: Scalar) -> Scalar:
    if x.dynamics == "integrator":
        return u
    if x.dynamics == "muscle":
        return _muscle_rate(x, clip(u, 0.0, 1.0) - w, clip(w, 0.0, 1.0))
    return (u - w) / max(LEAST, x.times[0])


def _muscle_rate(x: Actuator, lack: Scalar, w: Scalar) -> Scalar:
    """The rate at which a muscle follows what it lacks; it rises and falls in times that depend on w."""
    rise, fall, width = x.times
    rising, falling = rise * (0.5 + 1.5 * w), fall / (0.5 + 1.5 * w)
    share = where(lack > 0.0, 1.0, 0.0)
    if width >= LEAST:
        y = clip(lack * (1.0 / width) + 0.5, 0.0, 1.0)
        share = y * y * y * (3.0 * y * (2.0 * y - 5.0) + 10.0)
    return lack / maximum(falling + (rising - falling) * share, LEAST)


def next_activations(model: Model, act: Vector, rates: Vector, step: float) -> list[Scalar]:
    """The activations after a step of so many seconds at these rates."""
    return [_next_activation(*of, w, rate, step) for of, w, rate in zip(activated(model), act, rates)]


def _next_activation(x: Actuator, kind: str, w: Scalar, rate: Scalar, step: float) -> Scalar:
    if kind in ("filterexact", "current"):
        time = max(LEAST, x.motor.time_constant if x.motor else x.times[0])
        step = time * (1.0 - exp(-step / time))
    w = w + rate * step
    return _within(w, x.pid[1]) if x.motor and kind == "integral" and x.pid[1] else _cut(w, x.activation_range)


def _setpoints_force(
    x: Actuator, controls: Vector, left: Iterator[Scalar], length: Scalar, step: float
) -> tuple[Scalar, list[Scalar]]:
    """The force of a PID controller less its bias, and the rates of its activations, which it takes of `left`."""
    u, rates = dict(zip(x.inputs, controls)), list[Scalar]()
    (_, kp, kv), (ki, most, fastest), target = x.bias, x.pid, u.get("pos", 0.0)
    if fastest > 0.0:
        rates.append(clip((target - (s := next(left))) / max(LEAST, step), -fastest, fastest))
        target = s + step * rates[0]
    w = u.get("ff", 0.0) - kp * target - kv * u.get("vel", 0.0)
    if ki > 0.0:
        z, lack = next(left), target - length
        if most > 0.0:
            held = where(z > -most, lack, maximum(lack, 0.0))
            lack = where(z < most, held, minimum(lack, 0.0))
        rates.append(lack)
        w = w + ki * z
    return w, rates


def _motor_torque(
    x: Actuator, m: DCMotor, controls: Vector, state: Vector, length: Scalar, speed: Scalar, step: float
) -> tuple[Scalar, list[Scalar]]:
    """K i of a DC motor, and the rates of its activations."""
    K, R, left, rise = m.constant, m.resistance, iter(state), 0.0
    force, rates = _setpoints_force(x, controls, left, length, step)
    voltage = dict(zip(x.inputs, controls)).get("voltage", 0.0)
    if set(PID_INPUTS).intersection(x.inputs):
        asked = (force + dot(x.bias, (1.0, length, speed))) * (R / K) + K * speed
        voltage = voltage + _within(asked, m.voltage)
    if m.heat_capacity:
        rise = next(left)
        R = R * (1.0 + m.resistance_growth * (rise + (m.ambient - m.reference)))
    current = after = (voltage - K * speed) / R
    lag = list[Scalar]()
    if m.time_constant:
        current = next(left)
        lag = [_within((after - current) / m.time_constant, m.current_rate)]
        after = _next_activation(x, "current", current, lag[0], step)
    if m.heat_capacity:
        rates.append((R * current * current - rise / m.thermal_resistance) / m.heat_capacity)
    return K * after, [*rates, *lag]


def _bristles(m: DCMotor, bent: Scalar, speed: Scalar, step: float) -> tuple[Scalar, Scalar]:
    """b' of a motor's bristles, and its mean over a step."""
    y = speed * (1.0 / m.stribeck)
    sliding = m.coulomb + (m.static - m.coulomb) * (1.0 + expm1(-(y * y)))
    r = m.bristle_stiffness * maximum(speed, -speed) / sliding
    rate, fades = speed - r * bent, maximum(r * step, LEAST)
    return rate, rate * (expm1(-fades) / -fades)


# -- forces ----------------------------------------------------------------------------------------------------


def _force(x: Actuator, peak: float, length: Scalar, speed: Scalar, w: Scalar) -> Scalar:
    if x.muscle:
        return _muscle_force(x, peak, length, speed, w)
    return w * dot(x.gain, (1.0, length, speed)) + dot(x.bias, (1.0, length, speed))


def _muscle_force(x: Actuator, peak: float, length: Scalar, speed: Scalar, w: Scalar) -> Scalar:
    """-peak (FL(l) FV(v) w + FP(l)) of Hill's muscle: active force by length and speed, passive by length."""
    first, last, _, _, least, most, fastest, passive, lengthening, short, long = x.muscle
    unit = (long - short) / max(LEAST, last - first)
    at = (length - short) * (1.0 / max(LEAST, unit)) + first
    rate = speed * (1.0 / max(LEAST, unit * fastest))
    low, high = 0.5 * (least + 1.0), 0.5 * (1.0 + most)
    spans = (at - least, low - least), (1.0 - at, 1.0 - low), (at - 1.0, high - 1.0), (most - at, most - high)
    rise, left, right, fall = (y * (1.0 / max(LEAST, over)) for y, over in spans)
    beyond = right - 1.0
    above = where(at - high > 0.0, 0.5 * fall * fall, 1.0 - 0.5 * right * right)
    inner = where(at - low > 0.0, where(at > 1.0, above, 1.0 - 0.5 * left * left), 0.5 * rise * rise)
    by_length = where(at - least < 0.0, 0.0, where(at - most > 0.0, 0.0, inner))
    y = lengthening - 1.0
    stretched = lengthening - (y - rate) * (y - rate) * (1.0 / max(LEAST, y))
    shortened = where(rate > -1.0, (rate + 1.0) * (rate + 1.0), 0.0)
    by_rate = where(rate - y > 0.0, lengthening, where(rate > 0.0, stretched, shortened))
    held = where(at > 1.0, where(at - high > 0.0, 0.5 + beyond, 0.5 * right * right), 0.0) * passive
    return -peak * (by_length * by_rate * w + held)


def muscle_peaks(model: Model) -> dict[str, float]:
    """The peak forces of muscles by name, N: what is given, or the scale over the acceleration by a unit of force
    at the initial configuration."""
    peaks = {x.name: x.muscle[2] for x in model.actuators if x.muscle}
    if all(x >= 0.0 for x in peaks.values()):
        return peaks
    q = list(model.initial) or neutral(model).tolist()
    tree, still, unit = build_tree(model), [0.0] * model.nv, [1.0] * len(model.actuators)
    M = np.array(mass_matrix(tree, q), float).reshape(model.nv, model.nv)
    for x in (x for x in model.actuators if x.muscle and x.muscle[2] < 0.0):
        alone = replace(model, actuators=(replace(x, muscle=(), gain=(1.0, 0.0, 0.0), dynamics="none"),))
        row = np.array(actuation(alone, q, still, unit, tree=tree).efforts, float)
        peaks[x.name] = float(x.muscle[3] / max(LEAST, float(np.linalg.norm(np.linalg.solve(M, row)))))
    return peaks
