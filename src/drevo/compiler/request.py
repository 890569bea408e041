"""The door for programs that are no quantity of the catalogue: compiled once for a robot, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from ..codegen.runtime.kept import once
from ..model.dynamics import Described

if TYPE_CHECKING:
    from ..codegen.graph.program import Program
    from ..codegen.runtime.function import Function


def requested(
    robot: Described, asked: tuple[Hashable, ...], program: Callable[[], Program], lasting: bool = True
) -> Function:
    """The Function of what `program` gives for this robot.

    asked: what is wanted, a name first; its repr must tell all that the program depends on beside the model, or
    lasting is False: then nothing is kept on disk.
    """

    def make() -> Function:
        from ..codegen.runtime.function import Spec, obtain
        from ..codegen.runtime.key import request

        return obtain(request(robot.model, *asked), program, Spec(), cache=lasting)

    return once(robot, asked, make)


__all__ = ["requested"]
