"""Robot: a Model, and the Functions compiled from it on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.arguments import in_memory
from ..codegen.call.method import compiled
from ..codegen.store.memo import memoised
from ..errors import InputError, nearest, shown
from ..io.given import Array, asked_methods, generator, spelled_out
from ..mechanics import configuration
from ..mechanics.acting import without_passive
from ..mechanics.reframe import refuse_gimbal_lock, trunk_pitch
from ..model.description import ORIGIN, Model
from ..model.draft import model_of
from ..model.quantities import CATALOGUE, DerivativeOptions, EquationOptions, quantity
from .as_files import AsFiles
from .inverse_kinematics import InverseKinematics
from .joints import ByName, JointArrays
from .methods import Methods
from .motions import MotionMethods
from .of_link import OfLink
from .rerooted import StateMaps, rerooted_model, with_configurations
from .tree_text import page_of, tree_of

FORMER = {"state": "q_of", "rates": "v_of"}  # names of an earlier state, which are not spelt like the new ones

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from typing_extensions import Unpack

    from ..codegen.call.function import Function
    from ..constraint.kinds import Constraint
    from ..constraint.prepared import Contacts
    from ..contact.distances import Distances
    from ..model.dynamics import DifferenceDerivatives, IntegrateDerivatives
    from .moving_base import MovingBase
    from .topology import Topology
    from .under import Held
    from .view.figure import Drawn
    from .view.panels import LinkSections
    from .view.window import Window


@asked_methods
class Robot(Methods, JointArrays, ByName, InverseKinematics, MotionMethods, AsFiles):
    """A robot ready to compute.

    Every quantity of the catalogue is a method: `robot.inverse_dynamics(q, v, a)`, numpy in and out, leading
    batch dimensions, `out=`; its code is made (or read from the cache) on the first call. SI units, radians.
    inverse_dynamics, forward_dynamics and bias take `f_ext={link: (..., 6)}`: force and moment on the link at
    its origin, world axes.
    """

    _of_model = True  # see `model.dynamics.of_model`

    def __init__(self, model: Model) -> None:
        self.model = model = model_of(model, "Robot")
        self.name = model.name
        self.nq, self.nv = model.nq, model.nv
        self.joint_names = tuple(j.name for j in model.moving_joints)
        self.link_names = tuple(l.name for l in model.links)
        carried = (*model.moving_joints, *(j for j in model.joints if j.mimic))
        self.moving_links = tuple(j.child for j in carried)  # the rows of poses and joint_wrenches
        self.notes = model.notes

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.link_names)} links, nq {self.nq}, nv {self.nv}>"

    def __str__(self) -> str:
        return f"{self!r}\n{tree_of(self.model)}"

    def _repr_html_(self) -> str:
        from ..compiler.pages.drawing import robot_svg

        return page_of(self.model, robot_svg(self.model))

    def __eq__(self, other: object) -> bool:
        """Equal when the descriptions are: names, numbers and their order, wherever they were read."""
        if not isinstance(other, Robot):
            return NotImplemented
        return self is other or self.model.same_as(other.model)

    def __hash__(self) -> int:
        return hash((self.name, self.nq, self.nv, self.link_names))

    def __reduce__(self) -> tuple[Any, ...]:
        return Robot, (self.model,)

    if not TYPE_CHECKING:  # a type checker knows all the names there are

        def __getattr__(self, name: str) -> Any:
            near = FORMER.get(name) or nearest(name, dir(self)) if not name.startswith("_") else ""
            hint = f"did you mean {near!r}?" if near else f"quantities are {', '.join(CATALOGUE)}"
            raise AttributeError(f"a Robot has no {name!r}; {hint}")

    def _compiled(self, name: str) -> Callable[..., Any]:
        """The entry point of a quantity; it is kept as an attribute, so later calls go straight in.

        Where a user has yet to be warned of loops, it is kept beside the attributes.
        """
        if self.model.closed:
            from .compiling import warn_open_tree

            if not warn_open_tree(self, name):
                return memoised(self, ("entry", name), lambda: self._entry(name))
        entry = self.__dict__[name] = self._entry(name)
        return entry

    def _entry(self, name: str) -> Callable[..., Any]:
        """The entry point of a quantity or a motion on the configuration manifold, made now."""
        entry: Callable[..., Any]
        if hasattr(OfLink, name):
            entry = getattr(OfLink(self, name), name)
        elif name in configuration.MOTIONS:
            from ..compiler.products import on_manifold

            moved = on_manifold(self, name)
            entry = moved.fast or moved
        else:
            entry = self._quantity(name)
        return entry

    def _quantity(self, name: str) -> Callable[..., Any]:
        """The entry point of a quantity of the catalogue."""
        from .compiling import compile

        x = quantity(name)
        function = compile(self, x.name)
        entry: Callable[..., Any] = function.fast or function
        if x.inverse and trunk_pitch(self.model) is not None:
            entry = partial(self._unlocked, entry)
        return entry

    def _unlocked(self, entry: Callable[..., Any], q: ArrayLike, *rest: Any, **given: Any) -> Any:
        """Calls entry, but refuses a trunk in gimbal lock: M is singular there; rounding would give numbers."""
        if np.shape(q)[-1:] == (self.nq,):
            refuse_gimbal_lock(self.model, np.asarray(q))
        return entry(q, *rest, **given)

    # -- quantities of one link -----------------------------------------------------------------------------

    pose = compiled(OfLink.pose)
    jacobian = compiled(OfLink.jacobian)
    operational_inertia = compiled(OfLink.operational_inertia)
    inverse_operational_inertia = compiled(OfLink.inverse_operational_inertia)
    velocity = compiled(OfLink.velocity)
    acceleration = compiled(OfLink.acceleration)
    joint_wrenches = compiled(OfLink.joint_wrenches)
    jacobian_bias = compiled(OfLink.jacobian_bias)
    manipulability = compiled(OfLink.manipulability)
    operational_space = compiled(OfLink.operational_space)

    # -- distances --------------------------------------------------------------------------------------------

    def distance(self, q: ArrayLike, pairs: Any = "auto") -> Distances:
        """Signed distances of pairs of geoms, m: .pairs, .distance (..., n), .points (..., n, 2, 3), .normal.

        pairs: pairs of names of geoms, or of links, which are all their geoms. "auto": those that may touch by the
        file; where it has no bits for that, as URDF, those of links that are neither adjacent nor excluded; none
        that touch in every posture. A distance is negative where two are in each other: how far one has to
        be moved along the normal, which goes from the first to the second. All in world axes. Raises InputError.
        """
        from ..contact.distances import distances

        return distances(self, q, pairs)

    def distance_jacobian(self, q: ArrayLike, pairs: Any = "auto") -> Array:
        """Derivatives of `distance` by the rates, (..., n, nv), where the geometry is smooth: m / rad or 1."""
        from ..contact.distances import distance_jacobians

        return distance_jacobians(self, q, pairs)

    # -- derivatives ------------------------------------------------------------------------------------------

    @spelled_out(DerivativeOptions)
    def derivative(
        self, quantity: str, wrt: str | Sequence[str], *, dtype: str = "float64", layout: str = "rows",
        packed: bool = False, check: bool = True, **options: Unpack[DerivativeOptions],
    ) -> Function:  # fmt: skip
        """The Function of a derivative: `drevo.compile(robot, quantity, wrt=wrt, ...)`."""
        from .compiling import compile

        return compile(self, quantity, wrt=wrt, dtype=dtype, layout=layout, packed=packed, check=check, **options)

    # -- constraints and contacts -----------------------------------------------------------------------------

    def under(
        self,
        contacts: Contacts = None,
        constraints: Sequence[Constraint] | None = None,
        actuated: Sequence[str] | None = None,
        stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Held:
        """The robot under contacts and constraints, checked once: `held.dynamics(q, v, tau)` and its like.

        contacts: {"link", "point", "rows": 3 | 6}. actuated: names of the driven joints, by default all but a
        floating base or trunk. stabilise (damping, stiffness): f'' + damping f' + stiffness f = 0 (Baumgarte).
        Raises InputError.
        """
        from .under import Held

        return Held(self, contacts, constraints, actuated, stabilise)

    @property
    def topology(self) -> Topology:
        """Index functions of the tree over links 0 = base, 1..n."""
        from .topology import Topology

        return memoised(self, "topology", lambda: Topology.of(self.model))

    def without_passive(self) -> Robot:
        """This robot with no damping, dry friction, springs of joints or tendons, and counterweights."""
        return memoised(self, "without passive", lambda: Robot(without_passive(self.model)))

    def with_payload(
        self, link: str, mass: float, point: ArrayLike = ORIGIN, inertia: ArrayLike | None = None,
        name: str = "payload",
    ) -> Robot:  # fmt: skip
        """The robot with one more body, welded to a link: q and v stay as they are.

        mass: kg. point: (3,), m, its centre of mass in the frame of the link. inertia: (3, 3), kg m^2, about that
        point in the link's axes; None for a point mass. name: of the new link, whose numbers may be parameters:
        `drevo.compile(loaded, "gravity", parameters=["payload.mass"])`. Raises InputError, ModelError.
        """
        from .parts import with_body

        return Robot(with_body(self.model, link, mass, point, inertia, name))

    def rerooted(self, link: str) -> RerootedRobot:
        """A robot equal to this one with its base at another link; `.map(q, v)` carries states to it.

        A base that floats, on a trunk or in a plane carries the link; a fixed one holds it in the world, and what
        was the base moves. Links keep their frames, joints of one axis their coordinates. Raises InputError.
        """
        return RerootedRobot(self, link)

    def with_base_motion(
        self, position: Any = (0.0, 0.0, 0.0), orientation: Any = (0.0, 0.0, 0.0), times: ArrayLike | None = None
    ) -> MovingBase:
        """The robot on a body 0 whose motion is given, q without it: `moved.inverse_dynamics(q, v, a, t)`.

        position: of its origin, m, world axes; orientation: roll, pitch, yaw, rad, R = Rz Ry Rx: f(t) that gives
        three scalars, traced with its derivatives; three numbers; or an array (n, 3) at `times` (n,), s, joined by
        a cubic spline (SciPy). Body 0 is the base, also one that floats, on a trunk or in a plane.
        Raises InputError.
        """
        from .moving_base import MovingBase, clocked

        light, heavy = clocked(self.model, position, orientation, times)
        return MovingBase(self, Robot(light), Robot(heavy))

    # -- to look at -------------------------------------------------------------------------------------------

    @overload
    def view(
        self,
        export: None = None,
        *,
        q: ArrayLike | None = None,
        port: int = 0,
        loads: Sequence[LinkSections] = (),
    ) -> Window: ...

    @overload
    def view(
        self,
        export: str | PathLike[str],
        quantity: str = "inverse_dynamics",
        *,
        q: ArrayLike | None = None,
        port: int = 0,
        loads: Sequence[LinkSections] = (),
        **options: Unpack[EquationOptions],
    ) -> Path: ...

    @spelled_out(EquationOptions)
    def view(
        self,
        export: str | PathLike[str] | None = None,
        quantity: str = "inverse_dynamics",
        *,
        q: ArrayLike | None = None,
        port: int = 0,
        loads: Sequence[LinkSections] = (),
        **options: Unpack[EquationOptions],
    ) -> Window | Path:
        """A window in the browser of this machine, which needs viser; or a live page, one file without a network.

        Both draw the robot, with a slider for every joint, the pose of a link, the mass matrix, gravity torques,
        energies and motions. The Window that is returned moves with its `q`, plays motions and takes pictures; a
        notebook shows it. port: 0 is any that is free.
        export: the page, .html, whose path is returned; it has the equations of `quantity` too (with the
        options of `drevo.write_out`) with the value of every line, by WebAssembly of the same programs.
        q: where it stands at first, (nq,); neutral without it, moved inside the limits. loads: of
        `drevo.loads.diagrams`: forces and moments in sections, drawn along the links.
        Warns about meshes that cannot be drawn. Raises InputError, TraceError, EmitError.
        """
        if export is None:
            from .view.window import Window

            if options:
                raise InputError(f"view() without export takes q, port and loads, not {next(iter(options))!r}")
            return Window(self, q, port, loads)
        from .view.page import export_page

        return export_page(self, export, quantity, q, loads, **options)

    def draw(self, q: ArrayLike | None = None, letters: Mapping[str, str] | None = None) -> Drawn:
        """A drawing of its poles, axes and centres of mass as SVG, which notebooks show.

        q: one configuration, (nq,); slightly bent without it. letters: {} for a figure as in a paper, at zero
        coordinates without q, with L_i, the parts A and B of offsets, q_i and axes; {"L_2": "H"} renames.
        `save` writes the file, `show` opens it in the viewer of this machine. Raises InputError.
        """
        from .view.figure import Drawn

        return Drawn(self.model, q, letters)

    # -- the configuration manifold -------------------------------------------------------------------------

    def neutral(self) -> Array:
        """Zero coordinates and identity quaternions, (nq,)."""
        return memoised(self, "neutral", lambda: configuration.neutral(self.model)).copy()

    def random(self, rng: np.random.Generator | None = None, shape: int | tuple[int, ...] = ()) -> Array:
        """Random configurations, (*shape, nq): inside finite limits, else +-pi or +-1 m."""
        within = memoised(self, "ranges", lambda: configuration.ranges(self.model))
        rng = np.random.default_rng() if rng is None else rng
        generator("random: rng", rng, "; how many is said by shape=")
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
            raise InputError(f"random: shape must be whole numbers from 0, not {shown(shape)}")
        with in_memory("random"):
            return configuration.random(self.model, rng, tuple(map(int, sizes)), within)

    @compiled
    def integrate(self, q: ArrayLike, dv: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """The configuration reached from q by the tangent vector dv, (..., nq)."""
        raise NotImplementedError

    @compiled
    def difference(self, q0: ArrayLike, q1: ArrayLike, out: Array | None = None, threads: int = 1) -> Array:
        """The tangent vector from q0 to q1, (..., nv): integrate(q0, difference(q0, q1)) = q1."""
        raise NotImplementedError

    @compiled
    def integrate_derivatives(
        self, q: ArrayLike, dv: ArrayLike, out: tuple[Array, Array] | None = None, threads: int = 1
    ) -> IntegrateDerivatives:
        """The Jacobians of integrate by q and by dv, (..., nv, nv) each, between tangent vectors."""
        raise NotImplementedError

    @compiled
    def difference_derivatives(
        self, q0: ArrayLike, q1: ArrayLike, out: tuple[Array, Array] | None = None, threads: int = 1
    ) -> DifferenceDerivatives:
        """The Jacobians of difference by q0 and by q1, (..., nv, nv) each, between tangent vectors."""
        raise NotImplementedError


class RerootedRobot(Robot):
    """A robot with its base at another link than before, made by `robot.rerooted`."""

    def __init__(self, robot: Robot, link: str) -> None:
        super().__init__(rerooted_model(robot.model, link))
        self._made_from, self._maps = (robot, link), StateMaps(robot, self, link)
        self.model = with_configurations(self.model, lambda q: self.map(q)[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return RerootedRobot, self._made_from

    def map(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[Array, Array]:
        """States (q', v') in which every link stands and moves as the former robot's in (..., nq), (..., nv).

        v is zero without it. Raises InputError where the joints of the base do not allow it.
        """
        return self._maps.forth(q, v)

    def map_back(self, q: ArrayLike, v: ArrayLike | None = None) -> tuple[Array, Array]:
        """States of the former robot from states of this one: the inverse of `map`."""
        return self._maps.back(q, v)
