"""Out again: robots in every format and in the peers' own objects have the dynamics that they had."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import files
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import strategies
from reference import Reference, close
from test_builder import everything

import drevo
from drevo.model.description import IDENTITY, ORIGIN, JointCoupling, JointDynamics, Model
from drevo.robot.saving import dynamics_digest, forces_at_states

Array = np.ndarray
FORMATS = (".urdf", ".xml", ".sdf", ".toml", ".json")
NAMED = ("puma560", "screw-arm", "biped", "two-arm-spatial", "stanford", "scara")
CLOSE = 1e-13  # of the largest force
ACTING = (
    JointDynamics(0.3, 0.2, friction=0.1, stiffness=1.5, reference=0.2),
    JointDynamics(armature=0.05),
    JointDynamics(damping=0.4, friction=0.3),
)


def equipped(seed: int) -> Model:
    """A random tree with rotors, dampers, friction and springs, free joints where MuJoCo has them."""
    model, joints = strategies.robot(seed), []
    for k, joint in enumerate(model.joints):
        d = ACTING[k % 3] if joint.kind != "fixed" else None
        if joint.kind in ("free", "spherical"):
            d = replace(ACTING[1], damping=0.1) if k % 2 else None
        if joint.kind == "free":
            joint = replace(joint, origin=ORIGIN, rotation=IDENTITY)
        joints.append(replace(joint, dynamics=d))
    return replace(model, joints=tuple(joints))


def quietly(call: Callable[..., str], *given: object, **more: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        return call(*given, **more)


def told(path: Path) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        return drevo.load(path).model


def apart(one: Model, other: Model, named: Model | None = None) -> float:
    """How far M x, bias and passive forces are apart, of the largest; by the names of the joints."""
    pairs = zip(forces_at_states(one, named), forces_at_states(other), strict=True)
    return max(np.abs(x - y).max(initial=0.0) / (np.abs(x).max(initial=0.0) or 1.0) for x, y in pairs)


def sayable(model: Model, suffix: str) -> bool:
    """Whether a format can say it: URDF has no ball joints."""
    return suffix != ".urdf" or all(joint.kind != "spherical" for joint in model.joints)


def led_by_later(model: Model) -> bool:
    """A joint follows a later one, which Pinocchio does not have."""
    order = [joint.name for joint in model.joints]
    return any(j.mimic and order.index(j.mimic.joint) > order.index(j.name) for j in model.joints)


def comes_back(model: Model, folder: Path) -> None:
    robot = drevo.Robot(model)
    for suffix in FORMATS:
        path = folder / f"r{suffix}"
        if not sayable(model, suffix):
            with pytest.raises(drevo.ModelError, match=r"joints of type spherical .* lossy=True"):
                quietly(robot.save, path)
        text = quietly(robot.save, path, lossy=not sayable(model, suffix))
        again = told(path)
        assert path.read_text(encoding="utf-8") == text
        worst = re.search(r"worst\W+([0-9.e-]+)", text)
        assert worst and float(worst[1]) <= CLOSE
        assert re.search(rf"digest\W+{dynamics_digest(again)}", text), "the digest is not that of the file"
        if suffix in (".toml", ".json"):
            assert apart(model, again) == 0.0
        if suffix == ".urdf" and sayable(model, suffix):
            pin.buildModelFromXML(text, mimic=not led_by_later(again))
        if suffix == ".xml":
            mujoco.MjModel.from_xml_string(text)


def test_one_of_each_comes_back(tmp_path: Path) -> None:
    comes_back(everything().model(), tmp_path)


@pytest.mark.parametrize("name", NAMED)
def test_named_robots_come_back(tmp_path: Path, name: str) -> None:
    model = drevo.load(name).model
    comes_back(drevo.robots.puma560("general").model if name == "puma560" else model, tmp_path)


@pytest.mark.parametrize("seed", range(6000, 6005))
def test_random_trees_come_back(tmp_path: Path, seed: int) -> None:
    comes_back(equipped(seed), tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6005, 6100))
def test_more_random_trees_come_back(tmp_path: Path, seed: int) -> None:
    comes_back(equipped(seed), tmp_path)


@pytest.mark.parametrize("seed", [6201, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(6202, 6300))])
def test_forward_dynamics_of_a_chain_of_formats(tmp_path: Path, seed: int) -> None:
    """MJCF -> URDF -> SDF -> MJCF with armature, mimic and a free base."""
    first = strategies.robot(seed, strategies.SIMPLE, 7, "floating", mimics=0.5)
    joints = [replace(j, origin=ORIGIN, rotation=IDENTITY) if j.kind == "free" else j for j in first.joints]
    joints = [replace(j, dynamics=None if j.kind in ("free", "fixed") else ACTING[0]) for j in joints]
    first = replace(first, joints=tuple(joints))
    assert (any(j.mimic for j in first.joints) or seed > 6201) and first.nq > first.nv
    quietly(drevo.Robot(first).save, tmp_path / "0.xml")
    models = [told(tmp_path / "0.xml")]
    for k, suffix in enumerate((".urdf", ".sdf", ".xml"), 1):
        quietly(drevo.Robot(models[-1]).save, tmp_path / f"{k}{suffix}")
        models.append(told(tmp_path / f"{k}{suffix}"))
    q, v, tau = strategies.state(models[0], 1)
    expected = Reference(models[0]).forward_dynamics(q, v, tau)
    for model in models[1:]:
        assert apart(models[0], model) <= 1e-12
        assert [j.name for j in model.moving_joints] == [j.name for j in models[0].moving_joints]
        close("forward dynamics", Reference(model).forward_dynamics(q, v, tau), expected, 1e-11)


def published() -> list[Path]:
    """URDF files of an installed package."""
    return [Path(str(f.locate())) for f in files("example-robot-data") or () if f.suffix == ".urdf"]


@pytest.mark.nightly
@pytest.mark.parametrize("path", published(), ids=lambda path: path.stem)
def test_published_robots_go_through_all_formats(tmp_path: Path, path: Path) -> None:
    """URDF -> MJCF -> URDF -> SDF -> MJCF, without MJCF where MuJoCo refuses the inertias."""
    try:
        model = first = told(path)
    except drevo.ModelError:
        return
    for k, suffix in enumerate((".xml", ".urdf", ".sdf", ".xml")):
        try:
            quietly(drevo.Robot(model).save, tmp_path / f"{k}{suffix}")
        except drevo.ModelError as error:
            assert suffix == ".xml" and "which no real body has" in str(error)
            continue
        model = told(tmp_path / f"{k}{suffix}")
    assert apart(first, model) <= 1e-12


@pytest.mark.parametrize("seed", range(6300, 6306))
def test_mujoco_has_the_same_robot(seed: int) -> None:
    """M with armature and the bias of `to_mujoco`, by the names of the joints."""
    model = equipped(seed)
    plain = {"helical": "revolute"}  # couplings are constraints there
    joints = tuple(replace(j, mimic=None, kind=plain.get(j.kind, j.kind)) for j in model.joints)
    model = replace(model, joints=joints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        theirs = drevo.Robot(model).to_mujoco().compile()
    data, (q, v, _) = mujoco.MjData(theirs), strategies.state(model, seed)
    M, bias = Reference(model).mass_matrix(q), Reference(model).bias(q, v)
    T, drift = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for joint, sq, sv in model.slices():
        parts = [joint.name] if joint.kind not in ("cylindrical", "universal", "planar") else [
            f"{joint.name}_{k}" for k in range(1, joint.nq + 1)]  # fmt: skip
        for k, name in enumerate(parts):
            at = theirs.joint(name)
            i, n = at.qposadr[0], at.dofadr[0]
            if joint.nq < 4:
                data.qpos[i] = q[sq.start + k]
                T[n, sv.start + k] = 1.0
                continue
            shift = joint.nq - 4
            x, y, z, w = q[sq.stop - 4 : sq.stop]
            data.qpos[i + shift : i + shift + 4] = w, x, y, z
            T[n + shift : n + shift + 3, sv.stop - 3 : sv.stop] = np.eye(3)
            if shift:
                R = pin.Quaternion(w, x, y, z).toRotationMatrix()
                data.qpos[i : i + 3] = q[sq.start : sq.start + 3]
                T[n : n + 3, sv.start : sv.start + 3] = R
                drift[n : n + 3] = R @ np.cross(v[sv.stop - 3 : sv.stop], v[sv.start : sv.start + 3])
    data.qvel = T @ v
    mujoco.mj_forward(theirs, data)
    full = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, full)
    close("M of MuJoCo", T.T @ full @ T, M, 1e-11)
    close("bias of MuJoCo", T.T @ (data.qfrc_bias + full @ drift), bias, 1e-10)


@pytest.mark.parametrize("seed", range(6400, 6408))
def test_pinocchio_has_the_same_robot(seed: int) -> None:
    """crba and rnea of `to_pinocchio`, mimic joints among them, and poses of links."""
    model = equipped(seed)
    plain = [replace(j, dynamics=j.dynamics and replace(j.dynamics, stiffness=0.0)) for j in model.joints]
    model = replace(model, joints=tuple(plain))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        theirs = drevo.Robot(model).to_pinocchio()
    data, (q, v, a) = theirs.createData(), strategies.state(model, seed)
    iq, iv = np.zeros(model.nq, int), np.zeros(model.nv, int)
    for joint, sq, sv in model.slices():
        several = joint.kind in ("cylindrical", "universal", "planar")
        for k, name in enumerate(
            [f"{joint.name}_{k}" for k in range(1, joint.nq + 1)] if several else [joint.name]
        ):
            at = theirs.joints[theirs.getJointId(name)]
            iq[sq.start + k : sq.start + k + at.nq] = at.idx_q + np.arange(at.nq)
            iv[sv.start + k : sv.start + k + at.nv] = at.idx_v + np.arange(at.nv)
    x, u, w = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    x[iq], u[iv], w[iv] = q, v, a
    M = np.array(pin.crba(theirs, data, x, pin.Convention.WORLD))
    M = np.triu(M) + np.triu(M, 1).T
    ours = Reference(model)
    close("M of Pinocchio", M[np.ix_(iv, iv)], ours.mass_matrix(q), 1e-12)
    close("rnea of Pinocchio", pin.rnea(theirs, data, x, u, w)[iv], ours.inverse_dynamics(q, v, a), 1e-12)
    if not any(joint.mimic for joint in model.joints):
        robot = drevo.Robot(model)
        for name in ("armature", "damping"):
            assert np.array_equal(np.array(getattr(theirs, name))[iv], getattr(robot, name))
    pin.framesForwardKinematics(theirs, data, x)
    link = model.links[-1].name
    close(
        "pose", data.oMf[theirs.getFrameId(link, pin.FrameType.BODY)].homogeneous, ours.pose(q, link=link), 1e-12
    )


def test_a_joint_that_follows_its_own_branch_is_none_of_pinocchio() -> None:
    b = drevo.Builder("r").body("a", mass=1, inertia=np.eye(3), mimic=("b_joint", 2.0))
    b.body("b", "a", mass=1, inertia=np.eye(3))
    with pytest.raises(drevo.ModelError, match="joint 'a_joint' follows 'b_joint', which comes after it"):
        b.robot().to_pinocchio()


def test_loops_go_into_mjcf(tmp_path: Path) -> None:
    """Points and welds at sites, couplings as they are."""
    robot = drevo.load("four-bar")
    robot.save(tmp_path / "r.xml")
    again = told(tmp_path / "r.xml")
    held = robot.model.loops[0]
    assert again.loops == (held,) and held.kind == "point"
    theirs = robot.to_mujoco().compile()
    assert theirs.neq == 1 and theirs.eq_type[0] == mujoco.mjtEq.mjEQ_CONNECT
    b = drevo.Builder("r").body("a", mass=1, inertia=np.eye(3)).body("b", mass=1, inertia=np.eye(3))
    turn = strategies.about(2, 0.5)
    b.loop("weld", "a", (1, 0, 0), "b", (0, 1, 0), rotation=turn)
    b.robot().save(tmp_path / "r.xml")
    (weld,) = told(tmp_path / "r.xml").loops
    assert weld.kind == "weld" and np.abs(np.array(weld.rotation) - turn).max() <= 1e-15
    model = b.model()
    model = replace(model, loops=(), couplings=(JointCoupling("a_joint", "b_joint", (0.1, 2.0, 3.0)),))
    drevo.Robot(model).save(tmp_path / "r.xml")
    assert told(tmp_path / "r.xml").couplings[0].coefficients[:3] == (0.1, 2.0, 3.0)


# --- what cannot be said ------------------------------------------------------------------------------------


@pytest.mark.parametrize("module, name", [("mujoco", "mujoco"), ("pinocchio", "pin")])
def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        drevo.InputError, match=f"robot.to_{module} needs the package {name}, .* pip install {name}"
    ):
        getattr(drevo.load("scara"), f"to_{module}")()


def test_loops_are_refused_where_a_format_has_none(tmp_path: Path) -> None:
    robot = drevo.load("four-bar")
    with pytest.raises(drevo.ModelError, match=r"closed loop: save it as MJCF or .* NEW\.xml\), or with lossy"):
        robot.save(tmp_path / "r.urdf")
    with pytest.warns(drevo.DrevoWarning, match="without its 1 closed loop$"):
        robot.save(tmp_path / "r.urdf", lossy=True)
    assert told(tmp_path / "r.urdf").loops == robot.model.loops  # in words of Drevo's own
    assert not (tmp_path / "r.json").exists()
    with pytest.raises(drevo.ModelError, match="handed to Pinocchio with its 1 closed loop: save"):
        robot.to_pinocchio()


def test_forces_that_no_xml_format_has(tmp_path: Path) -> None:
    model = strategies.robot(3, n=3)
    j = model.moving_joints[-1]
    acts = replace(j, dynamics=JointDynamics(quadratic=0.5, offset=2.0))
    robot = drevo.Robot(replace(model, joints=tuple(acts if k is j else k for k in model.joints)))
    with pytest.raises(drevo.ModelError, match=f"the quadratic damping of '{j.name}'; the constant force"):
        quietly(robot.save, tmp_path / "r.sdf")
    robot.save(tmp_path / "r.toml")
    assert apart(robot.model, told(tmp_path / "r.toml")) == 0.0


def test_what_mujoco_does_not_take_is_refused(tmp_path: Path) -> None:
    I = np.eye(3)
    b = drevo.Builder("r")
    b.body("fork", armature=1.0)
    b.body("a", "fork", mass=1, inertia=I).body("b", "fork", mass=1, inertia=I)
    with pytest.raises(drevo.ModelError, match="moving links without mass, 'fork'"):
        b.robot().save(tmp_path / "r.xml")
    b = drevo.Builder("r").body("a", joint="free", origin=(0, 0, 1), mass=1, inertia=I)
    with pytest.raises(drevo.ModelError, match="the places of 'a_joint'"):
        b.robot().save(tmp_path / "r.xml")
    b.robot().save(tmp_path / "r.sdf")
    assert apart(b.model(), told(tmp_path / "r.sdf")) == 0.0


def test_a_robot_that_cannot_move_comes_back(tmp_path: Path) -> None:
    comes_back(drevo.Builder("r").body("a", joint="fixed", mass=1, inertia=np.eye(3)).model(), tmp_path)


def test_names_are_escaped_or_refused(tmp_path: Path) -> None:
    robot = drevo.Builder("<&\">'").body("a<b>&\"'", mass=1, inertia=np.eye(3), joint_name="j & k").robot()
    for suffix in FORMATS:
        robot.save(tmp_path / f"r{suffix}")
        again = told(tmp_path / f"r{suffix}")
        assert again.moving_joints[0].name == "j & k" and again.links[-1].name == "a<b>&\"'"
    mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    for name, suffixes in {"a\ufffe": (".urdf", ".xml", ".sdf"), "a::b": (".sdf",), " a": (".sdf",)}.items():
        odd = drevo.Builder("r").body(name, mass=1, inertia=np.eye(3)).robot()
        for suffix in suffixes:
            with pytest.raises(drevo.ModelError, match="characters that the format cannot hold"):
                odd.save(tmp_path / f"r{suffix}")


def test_links_and_joints_of_one_name_are_told_apart_in_sdf(tmp_path: Path) -> None:
    robot = drevo.Builder("r").body("arm", mass=1, inertia=np.eye(3), joint_name="arm").robot()
    robot.save(tmp_path / "r.sdf")
    assert told(tmp_path / "r.sdf").links[-1].name == "arm_link"


@pytest.mark.parametrize(
    "path, says", [("r.step", "saved as .urdf, "), ("none/r.urdf", "there is no folder"), (3, "to a path")]
)
def test_paths_that_cannot_be_written(tmp_path: Path, path: object, says: str) -> None:
    with pytest.raises(drevo.InputError, match=says):
        drevo.load("scara").save(tmp_path / path if isinstance(path, str) else path)  # type: ignore[arg-type]


def test_an_inertia_without_mass_is_refused_by_mujoco_and_kept_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(drevo.ModelError, match="the inertias of 'link1', 'link3', which no real body has"):
        drevo.load("puma560").save(tmp_path / "r.xml")
    for suffix in (".urdf", ".sdf"):
        drevo.load("puma560").save(tmp_path / f"r{suffix}")
        assert apart(drevo.load("puma560").model, told(tmp_path / f"r{suffix}")) <= CLOSE


def test_no_world_is_called_world(tmp_path: Path) -> None:
    """SDFormat keeps the name for itself, and Drake refuses it."""
    drevo.load("three-link", gravity=(0, 0, -1.62)).save(tmp_path / "r.sdf")
    text = (tmp_path / "r.sdf").read_text()
    assert '<world name="' in text and '<world name="world"' not in text


def test_contacts_gravity_and_limits_come_back(tmp_path: Path) -> None:
    b = drevo.Builder("r", gravity=(1, 2, 3))
    b.body("a", mass=1, inertia=np.eye(3), limit=(-1.0, 2.0)).contact("a", (0.1, 0.2, 0.3))
    for suffix in FORMATS:
        b.robot().save(tmp_path / f"r{suffix}")
        again = drevo.load(tmp_path / f"r{suffix}")
        assert again.model.contacts == b.model().contacts and again.model.gravity == (1.0, 2.0, 3.0)
        assert (again.lower, again.upper) == (-1.0, 2.0)


def test_texts_without_a_file() -> None:
    robot = drevo.load("scara")
    assert "<robot" in robot.to_urdf() and '"drevo"' in robot.to_json() and "drevo = 1" in robot.to_toml()
    with pytest.raises(drevo.ModelError, match="cannot be written as URDF with"):
        drevo.load("four-bar").to_urdf()


@pytest.mark.parametrize("suffix", ["toml", "json", "urdf", "sdf"])
def test_a_robot_for_kinematics_is_saved_too(tmp_path: Path, suffix: str) -> None:
    links = "".join(f'<link name="{x}"/>' for x in "abc")
    joints = "".join(
        f'<joint name="{x}{y}" type="continuous"><parent link="{x}"/><child link="{y}"/><origin xyz="1 0 0"/>'
        '<axis xyz="0 0 1"/></joint>'
        for x, y in ("ab", "bc")
    )
    with pytest.warns(drevo.DrevoWarning, match="no link has an <inertial>"):
        robot = drevo.load(f'<robot name="r">{links}{joints}</robot>')
    robot.save(tmp_path / f"r.{suffix}")
    with pytest.warns(drevo.DrevoWarning, match="no link has an <inertial>"):
        again = drevo.load(tmp_path / f"r.{suffix}")
    np.testing.assert_array_equal(again.pose([0.1, 0.2], "c"), robot.pose([0.1, 0.2], "c"))
