"""A body welded to a link: against Pinocchio's and MuJoCo's own, and as a letter of what is written out."""

from __future__ import annotations

import numpy as np
import pytest

import drevo

TENSOR = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, -0.002], [0.0, -0.002, 0.025]])
POINT = (0.03, -0.05, 0.12)
DRAWN = [("puma560", "link6", "fixed"), ("go1", "FR_calf", "floating"), ("panda", "panda_hand", "fixed")]


@pytest.mark.parametrize(("robot", "link", "base"), DRAWN)
def test_equations_are_pinocchios_with_the_body_appended(robot: str, link: str, base: str) -> None:
    pin = pytest.importorskip("pinocchio")
    plain = drevo.load(robot, base=base)
    loaded = plain.with_payload(link, 1.7, point=POINT, inertia=TENSOR)
    theirs = plain.to_pinocchio()
    frame = theirs.frames[theirs.getFrameId(link)]
    body = pin.Inertia(1.7, np.array(POINT), TENSOR)
    theirs.appendBodyToJoint(frame.parentJoint, body, frame.placement)
    data, rng = theirs.createData(), np.random.default_rng(0)
    assert loaded.total_mass == pytest.approx(plain.total_mass + 1.7) and loaded.nq == plain.nq
    for _ in range(5):
        q, v, a = plain.random(rng), rng.normal(size=plain.nv), rng.normal(size=plain.nv)
        M = np.triu(pin.crba(theirs, data, q))
        M = M + np.triu(M, 1).T
        assert np.abs(loaded.mass_matrix(q) - M).max() < 1e-12 * np.abs(M).max()
        tau = pin.rnea(theirs, data, q, v, a)
        assert np.abs(loaded.inverse_dynamics(q, v, a) - tau).max() < 1e-11 * np.abs(tau).max()


def test_mujoco_has_the_same_body() -> None:
    mujoco = pytest.importorskip("mujoco")
    loaded = drevo.robots.puma560(inertia="physical").with_payload("link6", 1.7, POINT, TENSOR, name="tool")
    m = loaded.to_mujoco().compile()
    d, q = mujoco.MjData(m), np.linspace(-1.0, 1.0, 6)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    rows = np.zeros((6, 6))
    for row, x in zip(rows, np.eye(6)):
        mujoco.mj_mulM(m, d, row, x)
    assert np.abs(loaded.mass_matrix(q) - rows).max() < 1e-10
    assert np.abs(loaded.gravity(q) - d.qfrc_bias).max() < 1e-10


def test_its_numbers_are_letters_and_parameters() -> None:
    robot = drevo.load("three-link")
    loaded = robot.with_payload(robot.link_names[-1], 2.0, (0.1, 0.0, 0.0))
    page = drevo.write_out(loaded, "gravity", symbols=["payload.mass"])
    assert page.parameters == {"payload.mass": 2.0}
    by_mass = drevo.compile(loaded, "gravity", parameters=["payload.mass"])
    q = np.array([0.3, -0.4, 0.9])
    heavier = robot.with_payload(robot.link_names[-1], 5.0, (0.1, 0.0, 0.0))
    assert np.abs(by_mass(q, [5.0]) - heavier.gravity(q)).max() < 1e-12
    assert np.abs(by_mass(q, [0.0]) - robot.gravity(q)).max() < 1e-12


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("nowhere", 1.0), "link 'nowhere' is not known"),
        (("link6", -1.0), "mass is -1"),
        (("link6", 0.0), "mass is 0"),
        (("link6", np.inf), "mass is inf"),
        (("link6", 1.0, (0.0, 1.0)), "point"),
        (("link6", 1.0, (0.0, 0.0, np.nan)), "point"),
        (("link6", 1.0, (0.0, 0.0, 0.0), np.diag([-1.0, 1.0, 1.0])), "negative principal moment"),
        (("link6", 1.0, (0.0, 0.0, 0.0), [1.0, 1.0, 1.0]), "3x3"),
        (("link6", 1.0, (0.0, 0.0, 0.0), None, "link5"), "a part 'link5'"),
        (("link6", 1.0, (0.0, 0.0, 0.0), None, 3), "name"),
    ],
)
def test_what_is_no_body_is_refused(given: tuple[object, ...], told: str) -> None:
    with pytest.raises(drevo.DrevoError, match=told):
        drevo.load("puma560").with_payload(*given)  # type: ignore[arg-type]


def test_a_tensor_that_no_body_has_is_warned_of() -> None:
    with pytest.warns(drevo.DrevoWarning, match="triangle inequality"):
        drevo.load("puma560").with_payload("link6", 1.0, inertia=np.diag([1.0, 1.0, 5.0]))
