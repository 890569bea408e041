"""Randomisation of environments: what differs from episode to episode, and from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, pi
from typing import Any, NamedTuple

from ..codegen.graph.program import Parameter
from ..compiler.tracer import names_parameter
from ..contact.parameters import is_friction, is_size
from ..errors import InputError, shown
from ..io.given import number
from ..mechanics.scalar import Scalar, Vector, cos, sin, where

SPECIAL = ("noise", "delay", "push")


class Scaled(NamedTuple):
    """Times the robot's own value, a factor from `low` to `high`."""

    low: float
    high: float


@dataclass(frozen=True)
class Randomise:
    """The distributions, all uniform. parameters: of patterns of the model's numbers; commands: of a task's own.

    noise: standard deviation of each part of the observation, or one of all. delay: s, from and to, of actions.
    push: s between pushes on average, and the greatest force, N.
    """

    parameters: tuple[tuple[str, tuple[float, float], bool], ...] = ()
    commands: tuple[tuple[str, tuple[float, float]], ...] = ()
    noise: tuple[float, ...] = ()
    delay: tuple[float, float] | None = None
    push: tuple[float, float] | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Names and patterns of what stays a symbol in the compiled step."""
        return tuple(pattern for pattern, _, _ in self.parameters)

    def bounds(self, parameter: Parameter) -> tuple[float, float]:
        """The least and the greatest value of a parameter."""
        for pattern, (low, high), scaled in self.parameters:
            if names_parameter(pattern, parameter.name):
                ends = (low * parameter.value, high * parameter.value) if scaled else (low, high)
                return min(ends), max(ends)
        raise KeyError(parameter.name)

    def past_actions(self, seconds: float) -> int:
        """Count of earlier actions that may still be in force: one at least, which functions may look at."""
        return max(1, -int(-self.delay[1] // seconds)) if self.delay else 1


def randomised(given: Mapping[str, Any] | None, commands: Mapping[str, Any] | None) -> Randomise:
    """The distributions out of what a user wrote. InputError says what is wrong with which."""
    if not isinstance(given, Mapping | None) or not isinstance(commands, Mapping | None):
        raise InputError("Env: randomise and commands map names to ranges, as in {'friction': (0.5, 1.2)}")
    plain = {k: x for k, x in (given or {}).items() if k not in SPECIAL}

    def least(name: str) -> float:
        return 0.0 if is_friction(name) or is_size(name) else -inf

    more = given or {}
    noise = more.get("noise", ())
    return Randomise(
        tuple((k, _range(k, x, least(k)), isinstance(x, Scaled)) for k, x in plain.items()),
        tuple((k, _range(k, x)) for k, x in (commands or {}).items()),
        tuple(_least(f"noise[{k}]", x) for k, x in enumerate(noise if isinstance(noise, Sequence) else [noise])),
        _range("delay", more["delay"], 0.0) if "delay" in more else None,
        _push(more["push"]) if "push" in more else None,
    )  # fmt: skip


def _range(name: str, given: Any, least: float = -inf) -> tuple[float, float]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(
            f"Env: the range of {name!r} is {shown(given)}; give its least and its greatest value, (low, high), "
            "or drevo.envs.Scaled(low, high)"
        )
    low, high = (number(f"Env: the range of {name!r}", x, "two numbers") for x in given)
    if not least <= low <= high:
        from_zero = ", and none is below 0" * (least == 0.0)
        raise InputError(f"Env: the range of {name!r} is {shown(given)}; the least value stands first{from_zero}")
    return low, high


def _least(name: str, given: Any) -> float:
    return number(f"Env: {name}", given, "a standard deviation, 0 or more", lambda x: 0.0 <= x < inf)


def _push(given: Any) -> tuple[float, float]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"Env: push is {shown(given)}; give the seconds between pushes and the force, N")
    every = number("Env: seconds between pushes", given[0], "positive", lambda x: 0.0 < x < inf)
    return every, _least("the force of a push", given[1])


def delayed(action: Vector, past: Vector, delay: Scalar, since: Scalar, seconds: float) -> list[Scalar]:
    """The action in force `since` s after the newest was given: the newest that is as old as the delay."""
    n = len(action)
    chosen = list(past[-n:])
    for k in reversed(range(len(past) // n)):
        newer = action if k == 0 else past[(k - 1) * n : k * n]
        chosen = [where(delay > since + k * seconds, x, y) for x, y in zip(chosen, newer)]
    return chosen


def pushed(luck: Vector, push: tuple[float, float], seconds: float) -> tuple[Scalar, Scalar]:
    """The horizontal force of a step, N: now and then one of any direction. luck: three even numbers."""
    force = where(luck[0] < seconds / push[0], push[1] * luck[2], 0.0)
    angle = 2.0 * pi * luck[1]
    return force * cos(angle), force * sin(angle)
