"""Stresses of standard profiles against handbooks; forces that say where they act."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from loads_cases import AT, LENGTH, MASS, PART, TEXTBOOK, G, panda, refused, rod

import drevo
from drevo import loads

Profile = loads.Profile
STILL = [0.0], [0.0], [0.0]


def test_a_cantilever_bends_as_handbooks_say() -> None:
    """M h / 2 I on both sides, 3 V / 2 A across; at the free end nothing."""
    found = loads.section_loads(rod(), *STILL, "rod", AT).stresses(Profile.rectangle(0.02, 0.04))
    M = MASS * G * LENGTH / 2 * (1 - PART) ** 2
    wanted = M * 0.02 / (0.02 * 0.04**3 / 12)
    assert np.allclose(found.tension, wanted, rtol=1e-12, atol=1e-6)
    assert np.allclose(found.compression, -wanted, rtol=1e-12, atol=1e-6)
    assert np.allclose(found.shear, 1.5 * MASS * G * (1 - PART) / 8e-4, rtol=1e-12, atol=1e-6)
    assert np.allclose(found.mises, np.sqrt(wanted**2 + 3 * found.shear**2), rtol=1e-12)
    assert "MPa" in found.svg()


def test_signs_of_normal_stress() -> None:
    """A pull at the tip is tension; of a rod bent by its weight the upper side is stretched."""
    pull = loads.AppliedForce("rod", (1e3, 0, 0), (LENGTH, 0, 0))
    found = loads.section_loads(rod(), *STILL, "rod", 0.0, f_ext=[pull])
    thin = found.stresses("round:0.02")
    bent = MASS * G * LENGTH / 2 / (pi * 0.02**3 / 32)
    assert thin.tension[0] == pytest.approx(1e3 / (pi * 1e-4) + bent, rel=1e-12)
    assert thin.compression[0] == pytest.approx(1e3 / (pi * 1e-4) - bent, rel=1e-12)
    box = Profile.box(0.03, 0.05, 0.002)
    (y, z), stress = (
        box.fibres.T,
        found.total[0, 5] / box.Iz * box.fibres[:, 0] - found.total[0, 4] / box.Iy * box.fibres.T[1],
    )
    up = found.span.rotation[2, 1:] @ [y, z]
    assert (np.sign(stress) == np.sign(up)).all()


@pytest.mark.parametrize(("profile", "values"), [
    (Profile.round(0.1), (pi / 400, pi * 1e-4 / 64, pi * 1e-4 / 32, pi * 1e-3 / 16)),
    (Profile.tube(0.1, 0.08), (pi * 9e-4, pi * 5.904e-5 / 64, pi * 5.904e-5 / 32, pi * 5.904e-5 / 1.6)),
    (Profile.rectangle(0.1, 0.1), (0.01, 1e-4 / 12, 0.140577e-4, 0.208173e-3)),  # Roark: 2.25 a^4, 0.601
    (Profile.rectangle(0.1, 0.3), (0.03, 2.25e-4, 0.263317 * 3e-4, 0.267 * 3e-3)),  # Timoshenko: 0.263, 0.267
    (Profile.box(0.1, 0.06, 0.004),
     (0.001216, (0.1 * 0.06**3 - 0.092 * 0.052**3) / 12, None, 2 * 0.096 * 0.056 * 0.004)),
    (Profile.i_beam(0.1, 0.2, 0.0085, 0.0056), (0.0027248, 1.8457e-5, None, None)),  # IPE 200 without its fillets
])  # fmt: skip
def test_profiles_have_the_values_of_tables(profile: loads.Profile, values: tuple[float | None, ...]) -> None:
    for name, value in zip(("area", "Iy", "J", "torsion"), values):
        if value is not None:
            assert getattr(profile, name) == pytest.approx(value, rel=1e-3), name
    k = np.array(profile.shear) * profile.area
    assert (k > 1.3).all()
    assert (k < 4.0).all()


def test_a_thin_tube_twists_as_bredt_says() -> None:
    """Closed boxes and rings with thin walls alike: tau = T / 2 A t."""
    ring = Profile.tube(0.1, 0.0998)
    assert ring.torsion == pytest.approx(2 * pi * 0.0499**2 * 1e-4, rel=5e-3)
    assert ring.shear[0] * ring.area == pytest.approx(2.0, rel=1e-3)


def test_forces_enter_where_they_act() -> None:
    """A load in the middle of the rod: nothing beyond it; as a wrench about the origin it is found there."""
    bare = loads.section_loads(rod(), *STILL, "rod", AT).total
    half = loads.AppliedForce("rod", (0, 0, -10.0), (LENGTH / 2, 0, 0))
    wrench = {"rod": [0, 0, -10.0, 0, 10.0 * LENGTH / 2, 0]}
    for force in ([half], wrench):
        more = loads.section_loads(rod(), *STILL, "rod", AT, f_ext=force).total - bare
        assert np.abs(more[:, 2] - np.where(PART <= 0.5, 10.0, 0.0)).max() < TEXTBOOK
        assert np.abs(more[:, 4] + 10.0 * LENGTH * np.clip(0.5 - PART, 0, None)).max() < TEXTBOOK
    at_joint = loads.section_loads(rod(), *STILL, "rod", AT, f_ext={"rod": [0, 0, -10.0, 0, 0, 0]}).total - bare
    assert np.abs(at_joint[1:]).max() < TEXTBOOK
    couple = loads.section_loads(rod(), *STILL, "rod", AT, f_ext={"rod": [0, 0, 0, 0, 3.0, 0]}).total - bare
    assert np.abs(couple[:, 4] + 3.0).max() < TEXTBOOK
    table = loads.Trajectory(rod(), [0.0, 1.0], [[0.0]] * 2, [[0.0]] * 2, [[0.0]] * 2)
    efforts = loads.drives(rod(), table, f_ext=[half]).effort
    assert efforts == pytest.approx(loads.drives(rod(), table, f_ext=wrench).effort)


def test_diagrams_are_the_loads_in_the_sections() -> None:
    """What windows and pages draw, from their tables, against section_loads at rest."""
    from drevo.robot.view.panels import loads_at, ordinates

    robot = panda()
    q = robot.random(np.random.default_rng(4))
    still = np.zeros(robot.nv)
    poses = {x.name: robot.pose(q, x.name) for x in robot.model.links}
    W = dict(zip(robot.moving_links, robot.joint_wrenches(q, still, still)))
    tables = {t.link: t for t in loads.diagrams(robot, 5)}
    assert {"panda_link1", "panda_link4", "panda_hand"} <= set(tables)
    for t in (tables["panda_link4"], tables["panda_hand"]):
        got = loads_at(t, poses, W, np.array(robot.model.gravity))
        span = loads.span_of(robot.model, t.link, loads.distribution(robot.model, t.link))
        found = loads.section_loads(robot, q, still, still, t.link, [span.along(x) for x in t.places])
        assert np.abs(got - found.total).max() < 1e-10
        assert np.allclose(ordinates(got, "N")[0], -got[:, 0])
        assert np.allclose(ordinates(got, "M")[0], np.hypot(got[:, 4], got[:, 5]))


def test_refusals() -> None:
    found = loads.section_loads(rod(), *STILL, "rod", AT)
    assert "did you mean 'tube'" in refused(lambda: found.stresses("tub:1,2"))
    assert "has not 2 lengths" in refused(lambda: found.stresses("tube:1"))
    assert "must be less than" in refused(lambda: Profile.tube(0.1, 0.2))
    assert "wall is -1" in refused(lambda: Profile.box(1.0, 1.0, -1.0))
    text = refused(lambda: loads.section_loads(rod(), *STILL, "rod", AT, f_ext=["x"]))
    assert "or a list of loads.AppliedForce" in text
    assert "has loops" in refused(lambda: loads.diagrams(drevo.robots.four_bar()))
    with pytest.raises(drevo.DrevoError, match="loads is what drevo"):
        rod().view("x.html", loads="M")
