"""The door to compiled code: what is asked of a model, the program that answers it, and the memo of a robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..codegen.call.function import Extra, Function, Plain, Spec, obtain
from ..codegen.store.build import Ahead
from ..codegen.store.key import key_text, request
from ..codegen.store.memo import memoised
from ..model.description import Model
from ..model.dynamics import Described

if TYPE_CHECKING:
    from ..codegen.graph.program import Program


def requested(
    robot: Described | Model,
    asked: tuple[object, ...],
    program: Callable[[], Program],
    *,
    spec: Spec | None = None,
    lasting: bool = True,
    shared: bool = False,
    extra: Extra | None = None,
    plain: Plain | None = None,
    ahead: Ahead | None = None,
) -> Function:
    """The Function of what `program` gives, made once for a robot; a Model remembers nothing.

    asked: what is wanted, a name first; it must tell all that the program depends on beside the model. lasting:
    it is kept on disk. shared: it depends on what is asked alone, so robots share it.
    extra, plain, ahead: see `obtain`.
    """
    how, wanted = spec or Spec(), key_text(asked)
    model = robot if isinstance(robot, Model) else robot.model

    def make() -> Function:
        text = wanted if shared else request(model, wanted)
        return obtain(text, program, how, extra=extra, plain=plain, cache=lasting, ahead=ahead)

    return make() if robot is model else memoised(robot, (wanted, how), make)
