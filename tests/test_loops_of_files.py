"""Loops as files tell them: a five-bar leg, a Stewart platform, a delta robot and Cassie; URDF's extensions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib.metadata import files
from pathlib import Path

import mujoco
import numpy as np
import pytest

import drevo
from drevo.constraint.closing import hold

Array = np.ndarray
I = np.eye(3)


def five_bar() -> drevo.Robot:
    """Two hips a hand apart, two shanks that meet in the foot."""
    b = drevo.Builder("five-bar")
    for side, x in (("left", -0.1), ("right", 0.1)):
        hip = {"origin": (x, 0, 0), "mass": 0.5, "com": (0, 0, -0.1), "inertia": 2e-3 * I}
        b.body(f"{side}_thigh", axis=(0, 1, 0), **hip)
        knee = {"origin": (0, 0, -0.2), "mass": 0.3, "com": (0, 0, -0.15), "inertia": 2e-3 * I}
        b.body(f"{side}_shank", f"{side}_thigh", axis=(0, 1, 0), rpy=(0, np.sign(x) * 0.3398, 0), **knee)
    down = (0, 0, -0.1 / np.sin(0.3398))
    return b.loop("revolute", "left_shank", down, "right_shank", down, axis_a=(0, 1, 0)).robot()


def delta(width: float = 0.1, height: float = 0.4, stiffness: float = 50.0) -> drevo.Robot:
    """Three sprung arms, and a platform on six rods: links with a universal joint at the arm, a ball at the end.

    Without springs it falls to where its rods hang side by side, and the platform is no longer kept from turning;
    where its base is wide they never do.
    """
    b = drevo.Builder("delta")
    b.body("platform", joint="free", mass=0.4, inertia=1e-3 * I)
    for k in range(3):
        turn = np.array([[np.cos(2.1 * k), -np.sin(2.1 * k), 0], [np.sin(2.1 * k), np.cos(2.1 * k), 0], [0, 0, 1]])
        b.body(f"arm{k}", "world", axis=(0, 1, 0), origin=turn @ (width, 0, height), rotation=turn, mass=0.3,
               com=(0.1, 0, 0), inertia=1e-3 * I, stiffness=stiffness)  # fmt: skip
        for side in (-0.04, 0.04):
            name = f"rod{k}{'lr'[side > 0]}"
            at = turn @ (0.05, side, 0.0)
            knee = turn @ (width + 0.2, side, height)
            along = at - knee
            z = -turn.T @ along / np.linalg.norm(along)
            x = np.cross((0, 1, 0), z)
            x /= np.linalg.norm(x)
            local = np.stack([x, np.cross(z, x), z], 1)
            b.body(name, f"arm{k}", "universal", (0, 1, 0), (0.2, side, 0), local, axis2=(1, 0, 0), mass=0.05,
                   com=(0, 0, -np.linalg.norm(along) / 2), inertia=np.diag([4e-4, 4e-4, 1e-6]))  # fmt: skip
            b.loop("point", name, (0, 0, -np.linalg.norm(along)), "platform", at)
    return b.robot()


def stewart() -> drevo.Robot:
    """The embedded one, its platform counted from the world's origin, as MJCF has free joints."""
    model = drevo.load("stewart").model
    joints = [replace(j, origin=(0.0, 0.0, 0.0)) if j.kind == "free" else j for j in model.joints]
    return drevo.Robot(replace(model, joints=tuple(joints)))


def started(robot: drevo.Robot) -> Array:
    """Where it is closed, or nearly so."""
    q = robot.neutral()
    if "stewart" in robot.name:
        free = next(j for j in drevo.load("stewart").model.joints if j.kind == "free")
        at = next(sq for j, sq, _ in robot.model.slices() if j.kind == "free")
        q[at.start : at.start + 3] = free.origin
    return q


def free_delta() -> drevo.Robot:
    return delta(0.4, 0.5, 0.0)


ROBOTS = {"five-bar": five_bar, "delta": delta, "free-delta": free_delta, "stewart": stewart}


def quietly(call: object, *given: object, **more: object) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        return call(*given, **more)  # type: ignore[operator]


def moved(robot: drevo.Robot, seed: int = 0) -> tuple[Array, Array]:
    """A closed state near the neutral one, with rates that keep it."""
    rng = np.random.default_rng(seed)
    q = robot.assemble(robot.integrate(started(robot), rng.normal(size=robot.nv) * 0.03))
    return hold(robot, q, rng.normal(size=robot.nv))


def by_names(robot: drevo.Robot, other: drevo.Robot, q: Array, v: Array) -> tuple[Array, Array, list[int]]:
    """The state of another robot whose joints have the same names; a universal joint may be two hinges there."""
    x, u, order = other.neutral(), np.zeros(other.nv), []
    for j, sq, sv in robot.model.slices():
        names = (
            [j.name]
            if any(k.name == j.name for k in other.model.moving_joints)
            else [f"{j.name}_1", f"{j.name}_2"]
        )
        at = [(a, b) for name in names for k, a, b in other.model.slices() if k.name == name]
        x[np.concatenate([np.arange(a.start, a.stop) for a, _ in at])] = q[sq]
        rates = np.concatenate([np.arange(b.start, b.stop) for _, b in at])
        u[rates] = v[sv]
        order += rates.tolist()
    return x, u, order


@pytest.mark.parametrize(("name", "suffix"), [
    pytest.param(name, suffix, marks=[pytest.mark.nightly] if (name, suffix) == ("stewart", ".sdf") else [])
    for name in ROBOTS for suffix in (".xml", ".sdf")
])  # fmt: skip
def test_loops_come_back_from_files(tmp_path: Path, name: str, suffix: str) -> None:
    """The same accelerations and as many freedoms from MJCF and from SDF."""
    robot = ROBOTS[name]()
    quietly(robot.save, tmp_path / f"r{suffix}", lossy=name == "stewart" and suffix == ".sdf")
    other = quietly(drevo.load, tmp_path / f"r{suffix}")
    assert isinstance(other, drevo.Robot) and other.model.loops
    q, v = moved(robot)
    x, u, order = by_names(robot, other, q, v)
    one = robot.constrained_dynamics(q, v, np.zeros(robot.nv))
    two = other.constrained_dynamics(x, u, np.zeros(other.nv))
    assert robot.nv - one.rank == other.nv - two.rank
    assert np.abs(two.a[order] - one.a).max() < 1e-9 * np.abs(one.a).max()


def motion(robot: object, duration: float) -> None:
    """Closed to rounding, and the energy kept as docs/loops.md has it, that of the springs included."""
    assert isinstance(robot, drevo.Robot)
    q, v = moved(robot)
    table = robot.simulate(q, 0.2 * v, duration=duration, dt=1e-3, every=100, method="gauss4")
    assert table.constraint_drift < 1e-12 and table.constraint_rate_drift < 1e-9
    kinetic = robot.kinetic_energy(table.q, table.v)
    energy = kinetic + robot.potential_energy(table.q)
    for j, sq, _ in robot.model.slices():
        energy += 0.5 * j.dynamics.stiffness * table.q[:, sq.start] ** 2 if j.dynamics else 0.0
    assert np.ptp(energy) < 1e-6 * np.max(kinetic)


def test_a_five_bar_swings(tmp_path: Path) -> None:
    quietly(five_bar().save, tmp_path / "r.sdf")
    motion(drevo.load(tmp_path / "r.sdf"), 2.0)


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", [".xml", ".sdf"])
@pytest.mark.parametrize("name", ROBOTS)
def test_ten_seconds(tmp_path: Path, name: str, suffix: str) -> None:
    quietly(ROBOTS[name]().save, tmp_path / f"r{suffix}", lossy=name == "stewart" and suffix == ".sdf")
    robot = quietly(drevo.load, tmp_path / f"r{suffix}")
    motion(robot, 10.0)


def test_why_a_delta_without_springs_ends() -> None:
    """Its normals come to lie in a plane: not the step is too long, the rows lose rank."""
    robot = delta(stiffness=0.0)
    with pytest.raises(drevo.NumericsError, match="the constraints lose rank"):
        robot.simulate(*moved(robot), duration=1.0, dt=1e-3, method="gauss4")


def cassies() -> list[Path]:
    return [
        Path(str(f.locate()))
        for f in files("example-robot-data") or ()
        if "cassie" in f.name and f.suffix == ".sdf"
    ]


@pytest.mark.parametrize("path", cassies()[:2], ids=lambda path: path.stem)
def test_cassie_is_closed(path: Path) -> None:
    """Rods with balls, springs that slide, and gearboxes, as Gazebo has them."""
    robot = quietly(drevo.load, path)
    assert isinstance(robot, drevo.Robot)
    assert len(robot.model.loops) == (6 if path.stem == "cassie" else 4)
    assert len(robot.model.couplings) == (10 if path.stem == "cassie" else 0)
    found = robot.constrained_dynamics(robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv), stabilise=(1, 1))
    assert np.abs(found.value).max() < 1e-12


@pytest.mark.parametrize("path", cassies()[:2], ids=lambda path: path.stem)
def test_cassie_in_mjcf_is_the_same(tmp_path: Path, path: Path) -> None:
    """As many freedoms and the same accelerations; the heels that slide are refused, with the sentence for it."""
    robot = quietly(drevo.load, path)
    assert isinstance(robot, drevo.Robot)
    if path.stem == "cassie":
        with pytest.raises(drevo.ModelError, match="its loops of the kinds 'prismatic'"):
            robot.save(tmp_path / "r.xml")
        return
    quietly(robot.save, tmp_path / "r.xml")
    other = quietly(drevo.load, tmp_path / "r.xml")
    assert isinstance(other, drevo.Robot)
    q, v = hold(robot, robot.neutral(), 0.1 * np.ones(robot.nv))
    x, u, order = by_names(robot, other, q, v)
    one = robot.constrained_dynamics(q, v, np.zeros(robot.nv))
    two = other.constrained_dynamics(x, u, np.zeros(other.nv))
    assert one.rank == two.rank
    assert np.abs(two.a[order] - one.a).max() < 1e-9 * np.abs(one.a).max()


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", [".xml", ".sdf"])
@pytest.mark.parametrize("path", cassies(), ids=lambda path: path.stem)
def test_cassie_moves_for_ten_seconds(tmp_path: Path, path: Path, suffix: str) -> None:
    robot = quietly(drevo.load, path, gravity=(0, 0, 0))
    if suffix == ".xml":
        quietly(robot.save, tmp_path / "r.xml", lossy=path.stem == "cassie")
        robot = quietly(drevo.load, tmp_path / "r.xml")
    assert isinstance(robot, drevo.Robot)
    q, v = hold(robot, robot.neutral(), 0.05 * np.ones(robot.nv))
    table = robot.simulate(q, v, duration=10.0, dt=1e-3, every=500)
    assert table.constraint_drift < 1e-10 and table.constraint_rate_drift < 1e-8


def test_stiff_constraints_of_mujoco_come_to_the_same(tmp_path: Path) -> None:
    """connect by ever stiffer impedance: accelerations tend to those of the exact loop."""
    quietly(five_bar().save, tmp_path / "r.xml")
    robot = quietly(drevo.load, tmp_path / "r.xml")
    assert isinstance(robot, drevo.Robot)
    q, v = moved(robot)
    exact = robot.constrained_dynamics(q, v, np.zeros(robot.nv)).a
    gaps = []
    for dmax in (0.99, 0.999, 0.9999):
        spec = mujoco.MjSpec.from_file(str(tmp_path / "r.xml"))
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        for equality in spec.equalities:
            equality.solimp = [dmax, dmax, 1e-3, 0.5, 2]
        theirs = spec.compile()
        data = mujoco.MjData(theirs)
        data.qpos, data.qvel = q, v
        theirs.opt.tolerance, theirs.opt.iterations = 0.0, 200
        mujoco.mj_forward(theirs, data)
        gaps.append(np.abs(data.qacc - exact).max() / np.abs(exact).max())
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2] and gaps[2] < 1e-2


LINKS = "".join(
    f'<link name="{x}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    f'<origin xyz="0.1 0 0.2"/></inertial></link>'
    for x in "abc"
)
JOINTS = "".join(
    f'<joint name="{p}{c}" type="continuous"><parent link="{p}"/><child link="{c}"/><origin xyz="0 0 1"/>'
    '<axis xyz="0 1 0"/></joint>'
    for p, c in ("ab", "bc")
)
END = '<axis xyz="0 1 0"/>'
SAYS = {
    "revolute": '<loop_joint name="z" type="revolute"><link1 link="a" xyz="1 0 2" rpy="0 0 0"/>'
    f'<link2 link="c" xyz="1 0 0"/>{END}</loop_joint>',
    "point": "<drake:ball_constraint><drake:ball_constraint_body_A name='a'/>"
    "<drake:ball_constraint_body_B name='c'/><drake:ball_constraint_p_AP value='1 0 2'/>"
    "<drake:ball_constraint_p_BQ value='1 0 0'/></drake:ball_constraint>",
    "bushing": "<frame name='A' link='a' xyz='1 0 2' rpy='0 0 0'/>"
    "<frame name='C' link='c' xyz='1 0 0' rpy='0 0 0'/>"
    "<drake:linear_bushing_rpy><drake:bushing_frameA name='A'/><drake:bushing_frameC name='C'/>"
    "<drake:bushing_torque_stiffness value='1e4 0 1e4'/><drake:bushing_torque_damping value='1 0 1'/>"
    "<drake:bushing_force_stiffness value='1e4 1e4 1e4'/></drake:linear_bushing_rpy>",
    "gazebo": '<gazebo><joint name="z" type="revolute"><parent>a</parent><child>c</child><pose>1 0 0 0 0 0</pose>'
    "<axis><xyz>0 1 0</xyz></axis></joint></gazebo>",
}


@pytest.mark.parametrize("kind", SAYS)
def test_urdf_says_loops_by_extensions(kind: str) -> None:
    robot = quietly(drevo.load, f'<robot name="r" xmlns:drake="d">{LINKS}{JOINTS}{SAYS[kind]}</robot>')
    assert isinstance(robot, drevo.Robot)
    (loop,) = robot.model.loops
    assert loop.kind == ("point" if kind == "point" else "revolute")
    assert (loop.link_a, loop.link_b) == ("a", "c")
    assert np.allclose(loop.point_a, (1, 0, 2)) and np.allclose(loop.point_b, (1, 0, 0))
    found = robot.constrained_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    assert np.abs(found.value).max() == 0.0 and found.rank == 2


def test_rotors_of_transmissions() -> None:
    text = "<transmission name='t'><joint name='ab'/><actuator name='m'><drake:rotor_inertia value='0.01'/>%s"
    text += "</actuator></transmission>"
    for gear in ("<drake:gear_ratio value='5'/>", "<mechanicalReduction>5</mechanicalReduction>"):
        robot = quietly(drevo.load, f'<robot name="r" xmlns:drake="d">{LINKS}{JOINTS}{text % gear}</robot>')
        assert isinstance(robot, drevo.Robot) and np.allclose(robot.armature, (0.25, 0.0))
    with pytest.raises(drevo.ModelError, match="the gear ratio is 0"):
        none = text % "<drake:gear_ratio value='0'/>"
        drevo.load(f'<robot name="r" xmlns:drake="d">{LINKS}{JOINTS}{none}</robot>')


@pytest.mark.parametrize(
    "text, says",
    [
        ('<loop_joint name="z" type="revolute"><link1 link="a"/></loop_joint>', "names no link2"),
        ('<loop_joint name="z" type="screw"><link1 link="a"/><link2 link="c"/></loop_joint>', "closes a loop"),
        ("<drake:ball_constraint/>", "has no <drake:ball_constraint_body_A>; add it"),
        (SAYS["bushing"].replace("name='A' link", "name='B' link"), "the frame 'A' does not exist"),
        (SAYS["gazebo"].replace("<child>c", "<child>x"), "names the link 'x', which does not exist"),
    ],
)
def test_loops_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(drevo.ModelError, match=says):
        quietly(drevo.load, f'<robot name="r" xmlns:drake="d">{LINKS}{JOINTS}{text}</robot>')


BESIDE = """drevo = 1
[[loops]]
kind = "point"
link_a = "a"
point_a = [1.0, 0.0, 2.0]
link_b = "c"
point_b = [1.0, 0.0, 0.0]
[[couplings]]
joint = "bc"
driver = "ab"
coefficients = [0.0, 2.0]
"""


def test_loops_in_a_file_beside(tmp_path: Path) -> None:
    urdf, beside = tmp_path / "r.urdf", tmp_path / "r.toml"
    urdf.write_text(f'<robot name="r">{LINKS}{JOINTS}</robot>')
    beside.write_text(BESIDE)
    robot = drevo.load(urdf, loops=beside)
    (loop,) = robot.model.loops
    assert (loop.kind, loop.link_a, loop.point_b) == ("point", "a", (1.0, 0.0, 0.0))
    assert robot.model.couplings[0].coefficients == (0.0, 2.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BESIDE.replace('"a"', '"x"'), "names the link 'x', which does not exist"),
        (BESIDE.replace("[[loops]]", "[[links]]"), "holds 'links'; beside a robot stand lists of loops"),
        (BESIDE.replace("point_a = [1.0, 0.0, 2.0]", "point_a = [1.0]"), "loops of .*point_a"),
        (BESIDE.replace("drevo = 1", ""), "loops: the file .*r.toml': the file is not a Drevo robot"),
    ],
)
def test_files_beside_that_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(drevo.ModelError, match=says):
        drevo.load(f'<robot name="r">{LINKS}{JOINTS}</robot>', loops=tmp_path / "r.toml")
    with pytest.raises(drevo.ModelError, match="loops stand beside a file, and 'three-link' is embedded"):
        drevo.load("three-link", loops=tmp_path / "r.toml")
    with pytest.raises(drevo.ModelError, match=r"ends in '.xml'; give .toml or .json"):
        drevo.load(f'<robot name="r">{LINKS}{JOINTS}</robot>', loops=tmp_path / "r.xml")
