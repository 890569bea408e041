"""A quantity as a method: the first access compiles it, later ones find its entry point in the instance itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ...model.quantities import CATALOGUE, explained

Method = TypeVar("Method", bound=Callable[..., Any])


class _Compiled:
    """In an instance the entry point of compiled code; in the class what calls it, and says what it takes."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.name = name = method.__name__

        @wraps(method)
        def on_class(robot: Any, *state: Any, **given: Any) -> Any:
            return robot._compiled(name)(*state, **given)

        if name in CATALOGUE and not CATALOGUE[name].options:
            on_class.__doc__ = explained(CATALOGUE[name])
        self.on_class, self.__doc__ = on_class, on_class.__doc__

    def __get__(self, robot: Any, owner: type) -> Callable[..., Any]:
        found: Callable[..., Any] = self.on_class if robot is None else robot._compiled(self.name)
        return found


def compiled(method: Method) -> Method:
    """The quantity of the method's name; for type checkers the method itself, whose body nobody runs."""
    return cast(Method, _Compiled(method))
