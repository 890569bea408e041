"""Contacts, actuators, sensors and time stepping: data of a Model, in the words of MJCF.

Softness is MuJoCo's: solref is (time constant, damping ratio), or (-stiffness, -damping) where both are not
positive; solimp is (d0, d1, width, midpoint, power). Lengths are in metres, angles in radians.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from ..io.reprs import concise
from .vectors import IDENTITY, ORIGIN, Mat3, Vec3

Solref = tuple[float, float]
Solimp = tuple[float, float, float, float, float]

SOLREF: Solref = (0.02, 1.0)
SOLIMP: Solimp = (0.9, 0.95, 0.001, 0.5, 2.0)
DEFAULT_FRICTION: Vec3 = (1.0, 0.005, 0.0001)  # of sliding, torsion [m], rolling [m]
PAIR_FRICTION = (1.0, 1.0, 0.005, 0.0001, 0.0001)  # of two tangents, torsion [m], two directions of rolling [m]

# kind of a geom -> how many sizes it has: radius, then half lengths; a sphere of radius 0 is a point
DRAGGED = ("sphere", "capsule", "cylinder", "box", "ellipsoid")  # geoms that a medium may drag as ellipsoids
GEOM_SIZES = {
    "plane": 0, "hfield": 3, "sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "hull": 0,
}  # fmt: skip
CONDIMS = (1, 3, 4, 6)
STEP_INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")
CONES = ("pyramidal", "elliptic")


@concise
@dataclass(frozen=True, slots=True)
class Geom:
    """A solid that may touch others. Its axis is z; a plane is all of z <= 0, a hull that of its points.

    size: radius; of capsules and cylinders half the length (without the caps) too; half the lengths of a box, half
    axes of an ellipsoid; of a height field half its sides and how deep its base is below z = 0. Two geoms may
    touch if a bit of the contype of one is in the conaffinity of the other.
    """

    name: str
    link: str
    kind: str  # of GEOM_SIZES
    size: tuple[float, ...] = ()
    origin: Vec3 = ORIGIN
    rotation: Mat3 = IDENTITY  # columns: axes of the geom in those of the link
    friction: Vec3 = DEFAULT_FRICTION
    condim: int = 3
    solref: Solref = SOLREF
    solimp: Solimp = SOLIMP
    margin: float = 0.0
    gap: float = 0.0
    priority: int = 0
    solmix: float = 1.0
    contype: int = 1
    conaffinity: int = 1
    points: tuple[Vec3, ...] = ()  # of a hull; of a height field the nodes of its grid, row by row along x
    surface: tuple[float, ...] = (0.0,) * 6  # how its surface moves, in its axes: m/s, and rad/s about its origin
    # corners of a hull's faces by number, counterclockwise from outside, where its points count in single
    # precision, as MuJoCo has those of meshes; else its faces are found
    faces: tuple[tuple[int, ...], ...] = ()
    # of the ellipsoid that a medium drags: blunt, slender and angular drag, Kutta's and Magnus' lift
    fluid: tuple[float, ...] = ()

    @property
    def radius(self) -> float:
        """The radius of a sphere about the origin of a geom that holds it, m; 0 for a plane, which none holds."""
        if self.kind in ("capsule", "ellipsoid"):
            return (sum if self.kind == "capsule" else max)(self.size)
        far = max((hypot(*x) for x in self.points), default=0.0)
        return max(far, hypot(*self.size)) if self.size else far

    @property
    def columns(self) -> int:
        """The nodes of a height field along x."""
        return sum(point[1] == self.points[0][1] for point in self.points)


@concise
@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two geoms that may touch whatever their bits say, and whatever they say of how they touch others."""

    geom_a: str
    geom_b: str
    condim: int = 3
    friction: tuple[float, ...] = PAIR_FRICTION
    solref: Solref = SOLREF
    solimp: Solimp = SOLIMP
    margin: float = 0.0
    gap: float = 0.0
    solref_friction: Solref = (0.0, 0.0)  # (0, 0): that of the normal


@concise
@dataclass(frozen=True, slots=True)
class JointSoftness:
    """The softness of a joint's limits and of its dry friction under the soft law.

    limit_angle: of a ball joint, how far it may turn from where its child stands as its parent does, rad.
    """

    joint: str
    limit_solref: Solref = SOLREF
    limit_solimp: Solimp = SOLIMP
    limit_margin: float = 0.0
    friction_solref: Solref = SOLREF
    friction_solimp: Solimp = SOLIMP
    limit_angle: float | None = None


@concise
@dataclass(frozen=True, slots=True)
class DCMotor:
    """A direct-current motor, whose torque is its constant, N m/A and V s/rad, times its current.

    resistance: Ohm; time_constant: s, inductance over resistance; current_rate: A/s, a bound; voltage: V, a bound
    of what its controller asks for. cogging: N m, periodicity of it: 1/rad, phase: rad. thermal_resistance: K/W;
    heat_capacity: J/K; resistance_growth: 1/K, beyond the resistance at the reference temperature; ambient: the
    temperature around. LuGre's friction: bristle_stiffness, N m/rad, bristle_damping, N m s/rad, coulomb and
    static, N m, stribeck, rad/s. 0: it has none.
    """

    constant: float
    resistance: float
    time_constant: float = 0.0
    current_rate: float = 0.0
    voltage: float = 0.0
    cogging: float = 0.0
    periodicity: float = 0.0
    phase: float = 0.0
    thermal_resistance: float = 0.0
    heat_capacity: float = 0.0
    resistance_growth: float = 0.0
    reference: float = 0.0
    ambient: float = 0.0
    bristle_stiffness: float = 0.0
    bristle_damping: float = 0.0
    coulomb: float = 0.0
    static: float = 0.0
    stribeck: float = 0.0


@concise
@dataclass(frozen=True, slots=True)
class Actuator:
    """An actuator with control u: f = gain . (1, l, l') w + bias . (1, l, l'), l = gear q; the joint feels gear f.

    q: of the joint, or the length of the tendon in its place. w: u, or with dynamics the activation that follows
    it. u is cut to control_range, the force to force_range, the activation to activation_range.

    A PID controller has the controls that `inputs` names, the gain 1 and the bias (0, -kp, -kv);
    w = kp u_pos + kv u_vel + ki z + u_ff, z' = u_pos - l.
    """

    name: str
    joint: str
    gear: float = 1.0
    gain: Vec3 = (1.0, 0.0, 0.0)
    bias: Vec3 = ORIGIN
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    tendon: str = ""  # joint is empty then
    dynamics: str = "none"  # of ACTUATOR_DYNAMICS
    times: Vec3 = (1.0, 0.0, 0.0)  # s, of a filter; of a muscle to rise and to fall; over what these are mixed
    activation_range: tuple[float, float] | None = None
    early: bool = False  # the force is that of the activation after the step
    # of a muscle in place of gain and bias, in MuJoCo's order: range (2), force, scale, lmin, lmax, vmax, fpmax,
    # fvmax, and the least and greatest length of what it pulls
    muscle: tuple[float, ...] = ()
    inputs: tuple[str, ...] = ()  # of a PID controller, of PID_INPUTS in their order
    pid: Vec3 = ORIGIN  # ki, the bound of |z| and that of the rate of u_pos; 0: none
    velocity_range: tuple[float, float] | None = None  # of u_vel, as control_range is of u_pos
    feedforward_range: tuple[float, float] | None = None
    motor: DCMotor | None = None  # its controls are of MOTOR_INPUTS, all cut to control_range

    @property
    def acts_alone(self) -> bool:
        """True if it may exert a force while its controls are 0."""
        low, high = self.control_range or (0.0, 0.0)
        return bool(any(self.bias) or self.muscle or self.motor or low > 0.0 or high < 0.0)

    @property
    def ranges(self) -> tuple[tuple[float, float] | None, ...]:
        """Those of its controls, in their order; None: a control is not bounded."""
        if self.motor:
            return (self.control_range,) * len(self.inputs)
        bounds = self.control_range, self.velocity_range, self.feedforward_range
        return tuple(x for name, x in zip(PID_INPUTS, bounds) if name in self.inputs) or (self.control_range,)

    @property
    def activations(self) -> tuple[str, ...]:
        """Their kinds, in their order; the setpoint is what follows u_pos at a bounded rate, the integral is z."""
        if not self.inputs and not self.motor:
            return () if self.dynamics == "none" else (self.dynamics,)
        times = [self.pid[2], self.pid[0]]
        if m := self.motor:
            times += [m.heat_capacity, m.bristle_stiffness, m.time_constant]
        kinds = "setpoint", "integral", "temperature", "bristle", "current"
        return tuple(kind for kind, x in zip(kinds, times) if x > 0.0)


@concise
@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor at a joint, or on a link in a frame of its own; of touch `shape` and `size` are those of its zone.

    What it reads is cut to cutoff, to both sides unless it is never negative; 0: it is not.
    """

    name: str
    kind: str  # of JOINT_SENSORS or LINK_SENSORS
    joint: str = ""
    link: str = ""
    origin: Vec3 = ORIGIN
    rotation: Mat3 = IDENTITY
    size: Vec3 = ORIGIN
    shape: str = "sphere"  # of SENSOR_SHAPES
    cutoff: float = 0.0


ACTUATOR_DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle")
MUSCLE_NUMBERS = 11
PID_INPUTS = ("pos", "vel", "ff")
MOTOR_INPUTS = (*PID_INPUTS, "voltage")
SENSOR_SHAPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
JOINT_SENSORS = ("jointpos", "jointvel", "jointactuatorfrc")
LINK_SENSORS = (
    *("accelerometer", "gyro", "velocimeter", "touch", "force", "torque", "rangefinder"),
    *("framepos", "framequat", "framelinvel", "frameangvel"),
)


@concise
@dataclass(frozen=True, slots=True)
class Stepping:
    """The steps of a file's simulator: seconds, the integrator, the friction cone and how stiff friction is in it.

    density, viscosity, wind: of what the links move in, kg/m^3, Pa s, m/s in the world. override: what all
    contacts have in place of their own margin, solref (2), solimp (5) and friction (5), if it is not empty.
    """

    dt: float = 0.002
    integrator: str = "Euler"  # of INTEGRATORS
    cone: str = "pyramidal"  # of CONES
    impratio: float = 1.0
    disabled: tuple[str, ...] = ()  # flags of MJCF that are off: contact, limit, frictionloss, equality, ...
    density: float = 0.0
    viscosity: float = 0.0
    override: tuple[float, ...] = ()
    noslip: int = 0  # sweeps that make friction firm after the soft law, at most; until one gains less than that
    noslip_tolerance: float = 1e-6
    enabled: tuple[str, ...] = ()  # flags that are on: diagexact, rows as firm as the inertia that they move
    wind: Vec3 = ORIGIN

    @property
    def medium(self) -> bool:
        """Something flows around the links."""
        return self.density > 0.0 or self.viscosity > 0.0


USUAL_STEPPING = Stepping()
