"""SDFormat as Gazebo and Drake mean it: nested frames, models on models, loops, gearboxes, inertias by shapes."""

from __future__ import annotations

import math
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.errors import DrevoWarning, ModelError
from drevo.model.loaders import load_model
from drevo.model.rotations import from_rpy

MASS = "<inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.15</izz></inertia></inertial>"
POSE = "0.1 0.2 0.3 0.4 0.5 0.6"


def link(name: str, pose: str = "") -> str:
    return f'<link name="{name}">{pose}{MASS}</link>'


def joint(name: str, kind: str, parent: str, child: str, axis: str = "0 0 1", more: str = "") -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}<axis><xyz>{axis}</xyz></axis>{more}</joint>'


def loaded(text: str, **given: object) -> tuple[drevo.Robot, str]:
    """The robot, and what was warned about."""
    if not text.startswith("<sdf"):
        text = f'<sdf version="1.10"><model name="m">{text}</model></sdf>'
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrevoWarning)
        robot = drevo.load(text, **given)  # type: ignore[arg-type]
    return robot, " ".join(str(w.message) for w in caught)


def quiet(text: str, **given: object) -> drevo.Robot:
    robot, said = loaded(text, **given)
    assert said == "", said
    return robot


def alike(one: drevo.Robot, other: drevo.Robot) -> None:
    """Poses of all links, M and the bias at a few states."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = one.random(rng), rng.normal(size=one.nv)
        for name in set(one.link_names) & set(other.link_names):
            assert np.allclose(one.pose(q, name), other.pose(q, name), rtol=0, atol=1e-13), name
        assert np.allclose(one.mass_matrix(q), other.mass_matrix(q), rtol=0, atol=1e-13)
        assert np.allclose(one.bias(q, v), other.bias(q, v), rtol=0, atol=1e-12)


# --- where things stand ----------------------------------------------------------------------------------------


def test_a_model_stands_where_its_pose_puts_it() -> None:
    """Turned by its pose, gravity pulls along another axis; on a floating base q says where it is."""
    body = link("a") + link("b") + joint("j", "revolute", "a", "b", "0 1 0")
    text = '<sdf version="1.9"><world name="w"><frame name="f"><pose>0.5 0 0 0 0 0</pose></frame><model name="m">'
    text += f'<pose relative_to="f">{POSE}</pose>{body}</model></world></sdf>'
    robot = quiet(text)
    pose = robot.pose([0.0], "a")
    assert np.allclose(pose[:3, 3], (0.6, 0.2, 0.3)) and np.allclose(pose[:3, :3], from_rpy(0.4, 0.5, 0.6))
    floating = quiet(text, base="floating")
    assert floating.link_names == ("world", "a", "b") and floating.nv == 7
    alike(robot, quiet(body + joint("w", "fixed", "world", "a") + f"<pose>{POSE.replace('0.1', '0.6', 1)}</pose>"))


def test_joints_may_name_frames_and_models() -> None:
    """The ends of a joint are the links that the frames named are attached to."""
    inner = link("a") + '<frame name="f" attached_to="a"><pose>0 0 1 0 0 0</pose></frame>'
    nested = f'<model name="n"><pose>{POSE}</pose>{inner}</model>'
    frame = '<frame name="g" attached_to="n::f"/>'
    robot = quiet(link("b") + nested + frame + joint("j", "revolute", "b", "g"))
    assert robot.model.joints[-1].child == "n::a"
    alike(robot, quiet(link("b") + nested + joint("j", "revolute", "b", "n", more='<pose relative_to="n::f"/>')))
    assert quiet(nested + joint("j", "revolute", "world", "n")).model.joints[0].child == "n::a"


def test_placement_frames() -> None:
    """What stands at the pose is the frame that is named, wherever it is in the model."""
    inner = link("a") + f'<frame name="f"><pose>{POSE}</pose></frame>'
    body = link("b") + f'<model name="n" placement_frame="f"><pose>1 2 3 0 0 1</pose>{inner}</model>'
    robot = quiet(body + joint("j", "revolute", "b", "n::a"))
    here, f = robot.pose([0.0], "n::a"), np.eye(4)
    f[:3, :3], f[:3, 3] = from_rpy(0.4, 0.5, 0.6), (0.1, 0.2, 0.3)
    assert np.allclose((here @ f)[:3, 3], (1, 2, 3)) and np.allclose((here @ f)[:3, :3], from_rpy(0, 0, 1))
    text = f'<sdf version="1.9"><model name="m" placement_frame="f"><pose>1 2 3 0 0 1</pose>{inner}</model></sdf>'
    assert np.allclose(quiet(text).pose([], "a"), here)
    with pytest.raises(ModelError, match="the placement_frame of 'n' is no frame in it"):
        loaded(body.replace('placement_frame="f"', 'placement_frame="x"'))


def test_several_roots_stand_in_the_world() -> None:
    body = link("a", "<pose>1 0 0 0 0 0</pose>") + link("b") + link("c") + joint("j", "revolute", "a", "c")
    robot, said = loaded(body)
    assert "the links 'a', 'b' hang from nothing" in said and robot.link_names[0] == "world"
    assert np.allclose(robot.pose([0.0], "a")[:3, 3], (1, 0, 0))
    with pytest.raises(ModelError, match="have no parent"):
        loaded(body, base="floating")


def test_joints_read_from_their_child() -> None:
    """A joint whose child is held already carries its parent, with the same coordinate."""
    held = joint("w", "fixed", "world", "b")
    for kind, axis in (("revolute", "1 2 3"), ("prismatic", "0 1 2"), ("fixed", "0 0 1"), ("screw", "1 0 1")):
        more = "<pose>0.3 0.1 0 0.2 0.1 0</pose><screw_thread_pitch>0.3</screw_thread_pitch>"
        links = link("a", f"<pose>{POSE}</pose>") + link("b") + joint("j", kind, "a", "b", axis, more)
        turned, straight = quiet(links + held), quiet(links)
        q, v = turned.random(np.random.default_rng(3)), np.ones(turned.nv)
        one, other = (np.linalg.solve(r.pose(q, "a"), r.pose(q, "b")) for r in (turned, straight))
        assert np.allclose(one, other, atol=1e-14) and turned.nv == straight.nv == (kind != "fixed")
        assert np.isfinite(turned.bias(q, v)).all()


def test_joints_of_the_world() -> None:
    models = "".join(
        f'<model name="{n}">{link("a")}{link("b")}{joint("j", "revolute", "a", "b")}</model>' for n in "xy"
    )
    world = f'<sdf version="1.10"><world name="w">{models}%s</world></sdf>'
    robot = quiet(world % joint("h", "prismatic", "world", "y::a"), model="y")
    assert robot.joint_names == ("h", "j")
    _, said = loaded(world % joint("h", "prismatic", "x::b", "y::a"), model="y")
    assert "the world's joint to another model of joint 'h'" in said
    with pytest.raises(ModelError, match=r"2 models that can move.* there are 'x', 'y'"):
        loaded(world % "")


# --- joints ------------------------------------------------------------------------------------------------------


def test_what_acts_about_the_second_axis() -> None:
    """A universal joint whose axes have different dampers is two hinges; alike, it is one."""
    act = "<dynamics><damping>%s</damping></dynamics>"
    two = link("a") + link("b") + joint("u", "universal", "a", "b", more="%s").replace("</xyz>", "</xyz>" + act)
    second = f"<axis2><xyz>1 0 0</xyz>{act}</axis2>"
    robot = quiet(two % ("0.3", second % "0.2"))
    assert robot.joint_names == ("u_1", "u_2") and robot.damping.tolist() == [0.3, 0.2]
    one = quiet(two % ("0.3", second % "0.3"))
    assert one.model.joints[0].kind == "universal" and one.damping.tolist() == [0.3, 0.3]
    q = np.array([0.3, -0.8])
    assert np.allclose(robot.pose(q, "b"), one.pose(q, "b"), atol=1e-15)
    assert np.allclose(robot.mass_matrix(q), one.mass_matrix(q), atol=1e-15)


def test_a_screw_without_a_pitch() -> None:
    robot, said = loaded(link("a") + link("b") + joint("s", "screw", "a", "b"))
    assert robot.model.joints[0].lead == 1.0 and "taken as 1 metre per revolution" in said


def gearbox(ratio: float, axis: str, axis2: str, ends: tuple[str, str] = ("b", "c")) -> str:
    more = f"<axis2><xyz>{axis2}</xyz></axis2><gearbox_ratio>{ratio}</gearbox_ratio>"
    return joint("g", "gearbox", *ends, axis, more + "<gearbox_reference_body>a</gearbox_reference_body>")


def test_gearboxes() -> None:
    """theta_1 = -ratio theta_2: the angles of parent and child from the reference body."""
    links = (
        "".join(map(link, "abc")) + joint("x", "revolute", "a", "b") + joint("y", "revolute", "a", "c", "0 0 -1")
    )
    robot = quiet(links + gearbox(4.0, "0 0 1", "0 0 1"))
    assert robot.model.couplings[0].coefficients == (0.0, 4.0)
    assert quiet(links + gearbox(4.0, "0 0 2", "0 0 -1")).model.couplings[0].coefficients == (0.0, -4.0)
    with pytest.raises(ModelError, match=r"joint 'g' \(line 1\) is a gearbox, and no hinge along its axis joins"):
        loaded(links + gearbox(4.0, "1 0 0", "0 0 1"))


# --- loops -------------------------------------------------------------------------------------------------------

CLOSURES = ("revolute", "prismatic", "ball", "universal", "fixed", "continuous")


@pytest.mark.parametrize("kind", CLOSURES)
def test_a_free_body_moves_in_a_closure_as_in_the_joint(kind: str) -> None:
    """A free body that a joint of the file holds as a loop accelerates as where the joint carries it."""
    free = '<drevo:joint name="f" type="free"><parent>a</parent><child>b</child></drevo:joint>'
    held = joint("j", kind, "a", "b", "1 2 3", f"<axis2><xyz>2 0 -1</xyz></axis2><pose>{POSE}</pose>")
    links = link("a") + link("b", "<pose>0.2 0 0.1 0.3 0.2 0.1</pose>")
    text = '<sdf version="1.10" xmlns:drevo="drevo"><model name="m">%s</model></sdf>'
    tree, loop = quiet(text % (links + held)), quiet(text % (links + free + held))
    assert len(loop.model.loops) == 1
    rng = np.random.default_rng(2)
    q, v, tau = tree.random(rng), rng.normal(size=tree.nv), np.zeros(tree.nv)
    pose = np.linalg.solve(loop.pose(loop.neutral(), "b"), tree.pose(q, "b"))
    x = loop.neutral()
    turn = pose[:3, :3]
    w = 0.5 * math.sqrt(1.0 + np.trace(turn))
    start = loop.pose(loop.neutral(), "b")
    x[:3] = start[:3, :3].T @ (tree.pose(q, "b")[:3, 3] - start[:3, 3])
    x[3:] = [*(np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / (4 * w)), w]
    twist = tree.velocity(q, v, "b", frame="local")
    assert np.allclose(loop.pose(x, "b"), tree.pose(q, "b"), atol=1e-14)
    found = loop.constrained_dynamics(x, twist, np.zeros(6))
    a = tree.forward_dynamics(q, v, tau)
    there = tree.acceleration(q, v, a, "b", frame="local_world_aligned")
    assert found.rank == 6 - tree.nv
    assert np.abs(found.value).max() < 1e-13 and np.abs(found.rate).max() < 1e-13
    assert np.allclose(loop.acceleration(x, twist, found.a, "b", frame="local_world_aligned"), there, atol=1e-11)


def test_a_loop_joint_tells_what_it_does_not_do() -> None:
    links = "".join(map(link, "abc")) + joint("x", "revolute", "a", "b") + joint("y", "revolute", "b", "c")
    damped = joint("z", "revolute", "a", "c").replace("</xyz>", "</xyz><dynamics><damping>1</damping></dynamics>")
    _, said = loaded(links + damped)
    assert "dynamics where a loop is closed of joint 'z'" in said
    with pytest.raises(ModelError, match=r"joint 'z' \(line 1\) closes a loop, .* is of type helical; only"):
        loaded(links + joint("z", "screw", "a", "c"))


# --- inertias by shapes ------------------------------------------------------------------------------------------


def shaped(geometry: str, inertial: str = "", more: str = "") -> str:
    shape = f'<collision name="c"><pose>1 0 0 0 0 0</pose>{more}<geometry>{geometry}</geometry></collision>'
    return f'<link name="a"><inertial auto="true">{inertial}</inertial>{shape}</link>'


def test_inertia_of_shapes(tmp_path: Path) -> None:
    """By density, by mass, and of a mesh; a box of 1 x 2 x 3 m each time."""
    box = "<box><size>1 2 3</size></box>"
    wanted = np.diag([4 + 9, 1 + 9, 1 + 4]) / 12.0
    x, y, z = np.meshgrid((-0.5, 0.5), (-1.0, 1.0), (-1.5, 1.5), indexing="ij")
    points = np.stack([x, y, z], -1).reshape(-1, 3)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = points[hull.simplices]
    inward = (np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) * hull.equations[:, :3]).sum(
        1
    ) < 0
    corners[inward] = corners[inward][:, ::-1]
    data = b"\0" * 80 + struct.pack("<I", len(corners))
    for corner in corners:
        data += struct.pack("<12fH", 0, 0, 0, *corner.ravel(), 0)
    (tmp_path / "box.stl").write_bytes(data)
    mesh = "<mesh><uri>box.stl</uri></mesh>"
    for geometry, inertial, more, mass in (
        (box, "", "", 6000.0),
        (box, "<density>2</density>", "", 12.0),
        (box, "<density>2</density>", "<density>0.5</density>", 3.0),
        (box, "<mass>7</mass>", "", 7.0),
        (mesh, "", "", 6000.0),
    ):
        path = tmp_path / "r.sdf"
        path.write_text(f'<sdf version="1.11"><model name="m">{shaped(geometry, inertial, more)}</model></sdf>')
        body = load_model(path).links[0].inertial
        assert body and body.mass == pytest.approx(mass, rel=1e-14)
        assert np.allclose(body.com, (1, 0, 0)) and np.allclose(body.tensor, mass * wanted, rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize(
    "text, says",
    [
        (shaped("<plane/>"), "<plane> on line 1 has no inertia that is read"),
        (shaped("<box><size>0 1 1</size></box>"), "a size that is not positive"),
        (shaped("<box><size>1 1 1</size></box>", "<density>-1</density>"), "its density -1 is negative"),
        ('<link name="a"><inertial auto="true"/></link>', "no collision that weighs"),
        (shaped("<mesh><uri>x.dae</uri></mesh>"), "'x.dae'"),
    ],
)
def test_inertias_of_shapes_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        loaded(text)


def test_links_that_nothing_carries_are_named() -> None:
    """SDF lets them float; on a fixed base they stand."""
    links = "".join(f"<link name='{x}'><inertial><mass>1</mass></inertial></link>" for x in "abc")
    joint = (
        "<joint name='j' type='revolute'><parent>{}</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>"
    )
    for parent, loose in (("world", "'a', 'c'"), ("a", "'c'")):
        robot = drevo.load(f"<sdf version='1.9'><model name='m'>{links}{joint.format(parent)}</model></sdf>")
        (note,) = robot.notes
        assert note.startswith("links that no joint carries") and note.endswith(f": {loose}")
