"""Quantities of one link, or in one frame: the code that a call asks for is found by a look into dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.arguments import check_out
from ..errors import InputError, shown
from ..io.given import Array, finite, leading, within_reach
from ..kinematics.points import at_point
from ..model.quantities import FRAMES

FRAME = FRAMES[0]
UNKNOWN = (KeyError, TypeError, ValueError)  # not asked before, or no name: a memoryview has no hash


class OperationalSpace(NamedTuple):
    """Khatib's equations of a link along k axes, the terms in the order of the axes.

    pose (..., 4, 4), J (..., k, nv), Jdot_v (..., k), Lambda (..., k, k), mu (..., k) of centrifugal and Coriolis
    forces, p (..., k) of gravity, Jbar (..., nv, k) = M^-1 J^T Lambda, N (..., nv, nv) = 1 - Jbar J. Terms that
    were not wanted are None.
    """

    pose: Any = None
    J: Any = None
    Jdot_v: Any = None
    Lambda: Any = None
    mu: Any = None
    p: Any = None
    Jbar: Any = None
    N: Any = None


class OfLink:
    """Holds the entry points of one quantity. A Robot's own attributes are the methods of such holders: what they
    find needs neither the Robot's attributes nor a key that is made for each call."""

    def __init__(self, robot: Any, quantity: str) -> None:
        self.robot, self.quantity = robot, quantity
        self.known: dict[Any, Callable[..., Any]] = {}  # by link, or all options
        self.framed: dict[Any, dict[Any, Callable[..., Any]]] = {frame: {} for frame in FRAMES}  # and by link

    def __reduce__(self) -> tuple[Any, ...]:
        return OfLink, (self.robot, self.quantity)

    def _found(self, **options: Any) -> Callable[..., Any]:
        """Code made, or read, now; TraceError for options that are none."""
        from .compiling import compile

        link = options.get("link", "")
        if link is not None and not isinstance(link, str):
            order = "link, q, v" if self.quantity == "operational_space" else "q, ..., link"
            raise InputError(
                f"{self.quantity}: link must be the name of a link, not {shown(link)}; the order is "
                f"{self.quantity}({order})"
            )
        function = compile(self.robot, self.quantity, **options)
        return function.fast or function

    def _relative(self, **options: Any) -> Callable[..., Any]:
        """Code of the quantity as one observes it from another link."""
        key = tuple(options.values())
        try:
            return self.known[key]
        except UNKNOWN:
            return self.known.setdefault(key, self._found(**options))

    def _of_frame(self, link: Any, frame: Any) -> Callable[..., Any]:
        entry = self._found(link=link, frame=frame)
        self.framed[frame][link] = entry
        return entry

    def _at_point(self, point: ArrayLike, out: Array | None, *state: ArrayLike, **options: Any) -> Array:
        """The quantity of the link's frame moved to a point of the link, by the transport of velocities."""
        offset = finite(f"{self.quantity}: point", point, (..., 3), InputError)
        options = {name: value for name, value in options.items() if value is not None}
        x = np.array(getattr(self.robot, self.quantity)(*state, **options))
        leading(self.quantity, state=x[..., 0] if self.quantity in ("pose", "jacobian") else x, point=offset)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = _transported(self.robot, self.quantity, x, offset, state, options)
        within_reach(self.quantity, moved, point=offset)
        if out is None:
            return moved
        check_out(self.quantity, out, moved.shape)
        out[...] = moved
        return out

    def pose(
        self: Any,
        q: ArrayLike,
        link: str | None = None,
        out: Array | None = None,
        relative_to: str | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """World from link, homogeneous, (..., 4, 4): rotation and position, m; in the frame of relative_to.

        point: (..., 3), m, a point of the link in its frame, which takes the place of the origin.
        """
        if point is not None:
            return self._at_point(point, out, q, link=link, relative_to=relative_to)  # type: ignore[no-any-return]
        if relative_to is not None:
            return self._relative(link=link, relative_to=relative_to)(q, out)  # type: ignore[no-any-return]
        try:
            entry = self.known[link]
        except UNKNOWN:
            entry = self.known[link] = self._found(link=link)
        return entry(q, out)  # type: ignore[no-any-return]

    def jacobian(
        self: Any,
        q: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        out: Array | None = None,
        relative_to: str | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """J with J v = velocity of the link's frame, (..., 6, nv), linear first: m/s, rad/s.

        frame: "local_world_aligned" (the link's origin, world axes), "local" or "world" (the world's origin).
        relative_to: a link from which it is observed, whose frame then stands for the world's.
        point: (..., 3), m, a point of the link in the link's frame, which takes the place of its origin.
        """
        if point is not None:
            return self._at_point(point, out, q, link=link, frame=frame, relative_to=relative_to)  # type: ignore[no-any-return]
        if relative_to is not None:
            return self._relative(link=link, relative_to=relative_to, frame=frame)(q, out)  # type: ignore[no-any-return]
        try:
            entry = self.framed[frame][link]
        except UNKNOWN:
            entry = self._of_frame(link, frame)
        return entry(q, out)  # type: ignore[no-any-return]

    def operational_inertia(
        self: Any,
        q: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        out: Array | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """Lambda = (J M^-1 J^T)^-1 of the link, (..., 6, 6), linear first: kg, kg m, kg m^2.

        point (3,): m, of the link in its frame, in the place of its origin. NumericsError names the row where the
        link cannot move in all six directions.
        """
        if point is not None:
            robot, link = at_point(self.quantity, self.robot, link, point)
            return robot.operational_inertia(q, link, frame, out)  # type: ignore[no-any-return]
        try:
            entry = self.framed[frame][link]
        except UNKNOWN:
            entry = self._of_frame(link, frame)
        return entry(q, out)  # type: ignore[no-any-return]

    def inverse_operational_inertia(
        self: Any,
        q: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        out: Array | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """J M^-1 J^T of the link, (..., 6, 6), linear first: 1/kg, 1/(kg m^2); it exists at singular tasks too.

        point (3,): m, of the link in its frame, in the place of its origin.
        """
        if point is not None:
            robot, link = at_point(self.quantity, self.robot, link, point)
            return robot.inverse_operational_inertia(q, link, frame, out)  # type: ignore[no-any-return]
        try:
            entry = self.framed[frame][link]
        except UNKNOWN:
            entry = self._of_frame(link, frame)
        return entry(q, out)  # type: ignore[no-any-return]

    def velocity(
        self: Any,
        q: ArrayLike,
        v: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        out: Array | None = None,
        relative_to: str | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """Velocity of the link's frame, (..., 6), linear first, m/s and rad/s.

        relative_to, point: as of `jacobian`.
        """
        if point is not None:
            return self._at_point(point, out, q, v, link=link, frame=frame, relative_to=relative_to)  # type: ignore[no-any-return]
        if relative_to is not None:
            return self._relative(link=link, relative_to=relative_to, frame=frame)(q, v, out)  # type: ignore[no-any-return]
        try:
            entry = self.framed[frame][link]
        except UNKNOWN:
            entry = self._of_frame(link, frame)
        return entry(q, v, out)  # type: ignore[no-any-return]

    def acceleration(
        self: Any,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        kind: str = "classical",
        out: Array | None = None,
        relative_to: str | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """Acceleration of the link's frame, (..., 6), linear first, m/s^2 and rad/s^2, gravity not in.

        kind: "classical", the second derivative of the origin's position, or "spatial", less omega x v.
        relative_to, point: as of `jacobian`.
        """
        if point is not None:
            return self._at_point(  # type: ignore[no-any-return]
                point, out, q, v, a, link=link, frame=frame, relative_to=relative_to, kind=kind
            )
        if relative_to is not None:
            return self._relative(link=link, relative_to=relative_to, frame=frame, kind=kind)(q, v, a, out)  # type: ignore[no-any-return]
        try:
            entry = self.known[link, frame, kind]
        except UNKNOWN:
            entry = self._found(link=link, frame=frame, kind=kind)
            self.known[link, frame, kind] = entry
        return entry(q, v, a, out)  # type: ignore[no-any-return]

    def joint_wrenches(
        self: Any,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        f_ext: Mapping[str, ArrayLike] | None = None,
        frame: str = FRAME,
        out: Array | None = None,
    ) -> Array:
        """Wrench of the parent on each moving link, (..., moving links, 6), N and N m: force, then moment about
        the origin of the link's own (moved) frame; gravity is in. Rows as in `moving_links`: in the order of q,
        mimic joints last.

        frame: "local" (the link's axes), "local_world_aligned" (world axes) or "world" (about the world's origin).
        """
        try:
            entry = self.known[frame]
        except UNKNOWN:
            entry = self.known[frame] = self._found(frame=frame)
        return entry(q, v, a, out) if f_ext is None else entry(q, v, a, f_ext=f_ext, out=out)  # type: ignore[no-any-return]

    def jacobian_bias(
        self: Any,
        q: ArrayLike,
        v: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        out: Array | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """(dJ/dt) v of `jacobian` in the same frame, (..., 6), m/s^2 and rad/s^2; point: as of `jacobian`."""
        if point is not None:
            return self._at_point(point, out, q, v, link=link, frame=frame)  # type: ignore[no-any-return]
        try:
            entry = self.framed[frame][link]
        except UNKNOWN:
            entry = self._of_frame(link, frame)
        return entry(q, v, out)  # type: ignore[no-any-return]

    def manipulability(
        self: Any,
        q: ArrayLike,
        link: str | None = None,
        frame: str = FRAME,
        axes: str | Sequence[str] = "x y z rx ry rz",
        out: Array | None = None,
        point: ArrayLike | None = None,
    ) -> Array:
        """sqrt(det(J J^T)) of some rows of J, a scalar (...); of J^T J where fewer joints move it. Yoshikawa.

        In m^3 for all axes. Its gradient is `robot.derivative("manipulability", ("q",), link=...)`.
        point (3,): m, of the link in its frame, in the place of its origin.
        """
        if point is not None:
            robot, link = at_point(self.quantity, self.robot, link, point)
            return robot.manipulability(q, link, frame, axes, out)  # type: ignore[no-any-return]
        axes = tuple(axes) if isinstance(axes, list) else axes
        key = link, frame, axes
        try:
            entry = self.known[key]
        except UNKNOWN:
            entry = self._found(link=link, frame=frame, axes=axes)
            if axes.__hash__ is not None:  # no list
                self.known[key] = entry
        return entry(q, out)  # type: ignore[no-any-return]

    def operational_space(
        self: Any,
        link: str,
        q: ArrayLike,
        v: ArrayLike,
        axes: str | Sequence[str] | None = None,
        damping: float = 0.0,
        frame: str = FRAME,
        terms: str | Sequence[str] | None = None,
        out: OperationalSpace | None = None,
        point: ArrayLike | None = None,
    ) -> OperationalSpace:
        """Khatib's equations of a link, Lambda x'' + mu + p = F, along k axes, in SI units: all in one kernel.

        Lambda (..., k, k), mu, p and Jdot_v (..., k), J (..., k, nv), Jbar (..., nv, k), N (..., nv, nv), pose.
        axes: some of "x y z rx ry rz" of the frame, as a text or a list, by default all; the inertia is that along
        these axes alone, the others are free. damping: added squared to the diagonal of J M^-1 J^T, for postures
        near singular ones. terms: those that are wanted, such as "Lambda mu p", by default all: N and Jbar are
        half of the work. out: of an earlier call alike, to be filled anew. point (3,): as of `pose`.
        Forces on the joints are J^T F + N^T tau0. NumericsError where the link cannot move along the axes.
        """
        if point is not None:
            robot, frame_name = at_point("operational_space", self.robot, link, point)
            return robot.operational_space(frame_name, q, v, axes, damping, frame, terms, out)  # type: ignore[no-any-return]
        axes = tuple(axes) if isinstance(axes, list) else axes
        terms = tuple(terms) if isinstance(terms, list) else terms
        key = link, axes, damping, frame, terms
        try:
            entry = self.known[key]
        except UNKNOWN:
            given = {"axes": axes, "terms": terms}
            options = {name: x for name, x in given.items() if x is not None}
            entry = self._found(link=link, frame=frame, damping=damping, **options)
            if axes.__hash__ is not None and terms.__hash__ is not None:
                self.known[key] = entry
        every = OperationalSpace._fields
        wanted = terms.replace(",", " ").split() if isinstance(terms, str) else terms or every
        names = [x for x in every if x in wanted]
        if not isinstance(out, OperationalSpace | None):
            raise InputError(f"operational_space: out is what an earlier call gave, not {shown(out)}")
        filled = None if out is None else tuple(getattr(out, x) for x in names)
        values = entry(q, v, filled if filled is None or len(names) > 1 else filled[0])
        return OperationalSpace(**dict(zip(names, values if len(names) > 1 else [values])))


def _transported(
    robot: Any, quantity: str, x: Array, point: Array, state: Sequence[ArrayLike], options: Mapping[str, Any]
) -> Array:
    """A quantity of a link's origin as one of a point r from it: v + w x r, a + a_w x r + w x (w x r)."""
    frame = options.get("frame", FRAME)
    if frame == "world":  # about the world's origin: of no point
        return x
    observed = {name: value for name, value in options.items() if name in ("link", "relative_to")}
    if quantity == "pose":
        x = np.array(np.broadcast_to(x, (*np.broadcast_shapes(x.shape[:-2], point.shape[:-1]), 4, 4)))
        x[..., :3, 3] += np.einsum("...ij,...j->...i", x[..., :3, :3], point)
        return x
    arm = point
    if frame == FRAME:
        arm = np.einsum("...ij,...j->...i", robot.pose(state[0], **observed)[..., :3, :3], point)
    if quantity == "jacobian":
        turned = np.cross(x[..., 3:, :], arm[..., None], axisa=-2, axisb=-2, axisc=-2)
        linear, angular = np.broadcast_arrays(x[..., :3, :] + turned, x[..., 3:, :])
        return np.concatenate([linear, angular], -2)
    moved = np.cross(x[..., 3:], arm)
    turns = {"acceleration": options.get("kind") == "classical", "jacobian_bias": frame == FRAME}
    if turns.get(quantity):
        w = robot.velocity(*state[:2], frame=frame, **observed)[..., 3:]
        moved = moved + np.cross(w, np.cross(w, arm))
    linear, angular = np.broadcast_arrays(x[..., :3] + moved, x[..., 3:])
    return np.concatenate([linear, angular], -1)


for _name, _method in vars(OfLink).items():
    if not _name.startswith("_"):  # what Python says of arguments that do not fit names whose method it is
        _method.__qualname__ = f"Robot.{_name}"
