"""The embedded robots: worked examples of the literature that Drevo grew from, four classical arms,
and three with closed loops.

Each function makes a Robot; `EMBEDDED` maps the names that `drevo.load` knows to those that make its Model.
Every robot stands on the ground; `model(name, base)` and `drevo.load(name, base=...)` put it on another base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import ParamSpec

from ..errors import ModelError, one_of
from ..io.given import asked
from ..model import values
from ..model.base import with_base
from ..model.description import Model
from ..robot.face import Robot
from . import arms, examples

P = ParamSpec("P")
EMBEDDED: dict[str, Callable[[], Model]] = {}


def _robot(make: Callable[P, Model]) -> Callable[P, Robot]:
    """Makes the function of a Model one of a Robot; its Model is embedded by the name with hyphens."""
    EMBEDDED[make.__name__.replace("_", "-")] = make

    @wraps(make)
    def made(*args: P.args, **given: P.kwargs) -> Robot:
        return Robot(asked(make)(*args, **given))

    made.__module__ = __name__
    made.__signature__ = signature(make).replace(return_annotation="Robot")  # type: ignore[attr-defined]
    return made


three_link = _robot(examples.three_link)
two_arm_planar = _robot(examples.two_arm_planar)
two_arm_spatial = _robot(examples.two_arm_spatial)
rod_chain = _robot(examples.rod_chain)
screw_arm = _robot(examples.screw_arm)
biped = _robot(examples.biped)
puma560 = _robot(arms.puma560)
stanford = _robot(arms.stanford)
rx90 = _robot(arms.rx90)
scara = _robot(arms.scara)
four_bar = _robot(examples.four_bar)
stewart = _robot(examples.stewart)
two_arm = _robot(examples.two_arm)


@asked
def model(name: str, base: str = "fixed", gravity: Sequence[float] | None = None) -> Model:
    """The Model of an embedded robot by its name ("puma560"), on a base; with its own gravity or another."""
    one_of("embedded robot", name, EMBEDDED, ModelError)
    embedded = EMBEDDED[name]()
    return with_base(
        embedded if gravity is None else replace(embedded, gravity=values.gravity_vector(gravity)), base
    )


def __dir__() -> list[str]:
    return [*(name.replace("-", "_") for name in EMBEDDED), "EMBEDDED", "model"]
