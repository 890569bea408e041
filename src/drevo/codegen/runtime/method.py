"""A quantity as a method: the first access compiles it, later ones find its entry point in the instance itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class _Compiled:
    """In the class the method that says what it takes; in an instance the entry point of compiled code."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, robot: Any, owner: type) -> Callable[..., Any]:
        found: Callable[..., Any] = self.method if robot is None else robot._compiled(self.method.__name__)
        return found


def compiled(method: Method) -> Method:
    """For type checkers the method itself."""
    return cast(Method, _Compiled(method))
