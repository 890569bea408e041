"""Loads in sections: textbooks, a body cut in two, the wrenches in joints, reactions of loops."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loads_cases import AT, LENGTH, MASS, PART, TEXTBOOK, Array, G, panda, refused, rod, states
from test_constraints import mechanism

import drevo
from drevo import loads
from drevo.loads.external import Surroundings
from drevo.mechanics.algorithms.kinematics import moving_links
from drevo.mechanics.tree import build_tree

MECHANISMS = json.loads((Path(__file__).parent / "data" / "zaremba.json").read_text())["mechanisms"]

# The same wrench by two sweeps over at most ten links, each some twenty roundings of numbers up to 100 N.
SWEPT = 1e-11
# Round solids: the quadrature's own error, measured with a thousand nodes, is below 3e-13 of the mass.
ROUND = 1e-12

# -- textbooks --------------------------------------------------------------------------------------------------


def test_cantilever() -> None:
    """Shear m g (1 - s/l) up, bending -m g (l - s)^2 / 2 l; about -y the rod's weight turns it down."""
    found = loads.section_loads(rod(), [0.0], [0.0], [0.0], "rod", AT)
    wanted = np.zeros((9, 6))
    wanted[:, 2] = MASS * G * (1 - PART)
    wanted[:, 4] = -MASS * G * LENGTH / 2 * (1 - PART) ** 2
    assert np.abs(found.total - wanted).max() < TEXTBOOK
    assert np.abs(found.dynamic).max() == 0.0


def test_spinning_rod() -> None:
    """Axial force -m w^2 (l^2 - s^2) / 2 l: the inboard piece pulls the outboard one towards the hinge."""
    w = 7.0
    found = loads.section_loads(rod(axis=(0, 0, 1)), [0.4], [w], [0.0], "rod", AT)
    wanted = np.zeros((9, 6))
    wanted[:, 0] = -MASS * w**2 * LENGTH / 2 * (1 - PART**2)
    assert np.abs(found.dynamic - wanted).max() < TEXTBOOK * MASS * w**2


def test_falling_hinged_rod() -> None:
    """The falling chimney: shear m g c (1 - x)(1 - 3 x) / 4 and bending m g c l x (1 - x)^2 / 4, x = s/l, c the
    cosine of the elevation; axially m g sin (1 - x) - m w^2 l (1 - x^2) / 2. The bending is largest at a third."""
    robot, down, w = rod(), 0.6, -1.7  # the axis y turns x towards -z
    a = robot.forward_dynamics([down], [w], [0.0])
    assert a[0] == pytest.approx(1.5 * G * np.cos(down) / LENGTH, rel=1e-14)
    found = loads.section_loads(robot, [down], [w], a, "rod", AT).total
    c, s = np.cos(down), np.sin(down)
    wanted = np.zeros((9, 6))
    wanted[:, 0] = -MASS * G * s * (1 - PART) - MASS * w**2 * LENGTH / 2 * (1 - PART**2)
    wanted[:, 2] = MASS * G * c * (1 - PART) * (1 - 3 * PART) / 4
    wanted[:, 4] = MASS * G * c * LENGTH * PART * (1 - PART) ** 2 / 4
    assert np.abs(found - wanted).max() < TEXTBOOK
    assert AT[np.abs(found[:, 4]).argmax()] == pytest.approx(LENGTH / 3, abs=LENGTH / 16)


def test_counterweight() -> None:
    """A rod held in the middle: the half behind the hinge bends like a cantilever the other way."""
    b = drevo.Builder("balance")
    J = MASS * LENGTH**2 / 12
    b.body("beam", axis=(0, 1, 0), mass=MASS, inertia=np.diag([0.0, J, J]))
    span = ((-LENGTH / 2, 0, 0), (LENGTH / 2, 0, 0))
    span = loads.Span.between(*span, held=LENGTH / 2)
    found = loads.section_loads(b.robot(), [0.0], [0.0], [0.0], "beam", AT, span=span).total
    shear = MASS * G * np.where(PART < 0.5, -PART, 1 - PART)
    bending = -MASS * G * LENGTH / 2 * np.where(PART < 0.5, PART, 1 - PART) ** 2
    assert np.abs(found[:, 2] - shear).max() < TEXTBOOK
    assert np.abs(found[:, 4] - bending).max() < TEXTBOOK


# -- solids ---------------------------------------------------------------------------------------------------


def turns(seed: int, count: int) -> Array:
    x = np.random.default_rng(seed).normal(size=(count, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_a_capsule_without_length_is_a_ball() -> None:
    """One by closed forms, one by quadrature over its discs."""
    ball, other = loads.sphere(2.0, 0.3, (0.1, 0.2, 0.3)), loads.capsule(2.0, 0.3, 0.0, (0.1, 0.2, 0.3))
    for n in turns(1, 20):
        h = np.linspace(*ball.reach(n), 11)
        assert np.abs(ball.beyond(n, h) - other.beyond(n, h)).max() < ROUND


def test_oblique_cuts() -> None:
    """Archimedes' hoof is 2/3 r^2 h of a cylinder; a plane across three edges cuts a sixth off a corner."""
    r, h = 0.3, 0.8
    hoof = loads.cylinder(1.0, r, h).beyond(np.array([h / 2, 0, -r]), np.array([0.0]))  # z / x >= h/2 / r, below
    assert hoof[0, 3, 3] == pytest.approx(0.5, abs=ROUND)
    plane = np.array([h, 0.0, -r])  # through the diameter of the lower face and the rim of the upper one
    hoof = loads.cylinder(1.0, r, h).beyond(plane, np.array([r * h / 2]))
    assert hoof[0, 3, 3] == pytest.approx((2 / 3 * r**2 * h) / (np.pi * r**2 * h), abs=ROUND)
    corner = loads.box(1.0, (2.0, 3.0, 4.0)).beyond(1 / np.array([2.0, 3.0, 4.0]), np.array([1.5 - 0.3]))
    assert corner[0, 3, 3] == pytest.approx(0.3**3 / 6, abs=1e-15)


@pytest.mark.parametrize("kind", ["box", "cylinder", "capsule", "sphere"])
def test_a_cut_leaves_two_parts(kind: str) -> None:
    """Both sides together are the whole; the mass beyond, summed over all planes, is the first moment."""
    make = {
        "box": (0.3, (0.2, 0.5, 0.3)),
        "cylinder": (0.3, 0.2, 0.5),
        "capsule": (0.3, 0.2, 0.5),
        "sphere": (0.3, 0.2),
    }
    solid = getattr(loads, kind)(*make[kind])
    for n in turns(2, 5):
        h = np.linspace(*solid.reach(n), 7)
        both = solid.beyond(n, h) + solid.beyond(-n, -h)
        assert np.abs(both - solid.whole()).max() < ROUND
        moments = -np.trapezoid(solid.beyond(n, np.linspace(*solid.reach(n), 1001))[:, 3, 3], dx=np.ptp(h) / 1000)
        low = solid.reach(n)[0]  # integral of the mass beyond = first moment from the low end
        assert -moments == pytest.approx(n @ solid.whole()[:3, 3] - low * solid.mass, abs=1e-7)


def test_points_and_rods_without_width() -> None:
    two = (loads.point(1.0, (0.2, 0, 0)), loads.rod(2.0, (0, 0, 0), (1, 0, 0)))
    x = np.array([1.0, 0, 0])
    mass = sum(s.beyond(x, np.array([0.0, 0.2, 0.201, 0.5]))[:, 3, 3] for s in two)
    assert np.abs(mass - [3.0, 2.6, 1.598, 1.0]).max() < 1e-15
    across = two[1].beyond(np.array([0, 1.0, 0]), np.array([0.0, 1e-3]))[:, 3, 3]
    assert np.abs(across - [2.0, 0.0]).max() < 1e-15


# -- a body cut in two, joints --------------------------------------------------------------------------------


def arm(cut: float | None) -> drevo.Robot:
    """A tree with a side arm, a welded plate and a tool; its middle body a box, whole or in two at x = cut."""
    b = drevo.Builder("arm")
    b.body("base", axis=(0, 0, 1), mass=2.0, com=(0, 0, 0.1), inertia=np.diag([0.02, 0.02, 0.01]))

    def block(low: float, high: float) -> dict[str, Any]:
        w = high - low
        m = 4.0 * w
        inertia = m / 12 * np.diag([0.1**2 + 0.2**2, w**2 + 0.2**2, w**2 + 0.1**2])
        return {"mass": m, "com": ((low + high) / 2, 0.0, 0.03), "inertia": inertia}

    first = block(0.0, 0.9 if cut is None else cut)
    b.body("beam", "base", axis=(0, 1, 0), origin=(0, 0, 0.4), rpy=(0.2, 0.1, 0.3), **first)
    outer = "beam"
    if cut is not None:
        b.body("rest", "beam", axis=(1, 0, 0), **block(cut, 0.9))
        outer = "rest"
    b.body(
        "side", "beam", axis=(1, 1, 0), origin=(0.3, 0.1, 0), mass=1.0, com=(0, 0.2, 0), inertia=0.01 * np.eye(3)
    )
    b.body("plate", outer, "fixed", origin=(0.7, 0, 0.1), rpy=(0.5, 0, 0), mass=0.5, com=(0, 0, 0.05),
           inertia=0.002 * np.eye(3))  # fmt: skip
    b.body(
        "tool", "plate", axis=(0, 0, 1), origin=(0.1, 0, 0), mass=0.7, com=(0.1, 0, 0), inertia=0.003 * np.eye(3)
    )
    return b.robot()


@pytest.mark.parametrize("cut", [0.15, 0.5])
def test_a_section_is_a_joint_that_does_not_move(cut: float) -> None:
    """The box cut in two, with a joint at rest between the halves: its wrench is the load in the section."""
    whole, halves = arm(None), arm(cut)
    q, v, a = states(whole, 4)
    at = halves.joint_names.index("rest_joint")
    Q, V, A = (np.insert(x, at, 0.0, axis=1) for x in (q, v, a))
    rows = moving_links(build_tree(halves.model))
    span = ((0, 0, 0), (0.9, 0, 0))
    force = {"tool": np.array([3.0, -2.0, 5.0, 0.3, 0.2, -0.1]), "plate": np.array([1.0, 2.0, 3.0, 0.1, 0.4, 0.2])}
    found = loads.section_loads(whole, q, v, a, "beam", cut, span=span, f_ext=force)
    W = halves.joint_wrenches(Q, V, A, f_ext=force, frame="local")
    w = W[:, rows.index("rest")]
    if cut < 0.3:  # the side arm is beyond this section, and hangs on the inner half in the second robot
        w = w + _carried_over(halves, W, rows, Q)
    f, n = w[:, :3], w[:, 3:] - np.cross([cut, 0, 0], w[:, :3])
    R = found.span.rotation
    assert np.abs(found.total[:, 0] - np.hstack([f @ R, n @ R])).max() < SWEPT


def _carried_over(robot: drevo.Robot, W: Array, rows: list[str], q: Array) -> Array:
    """The wrench on the side arm, in the axes of the beam about its origin."""
    T, S = robot.pose(q, "beam"), robot.pose(q, "side")
    X = np.linalg.inv(T) @ S
    w = W[:, rows.index("side")]
    f, n = ((X[:, :3, :3] @ x[:, :, None])[:, :, 0] for x in (w[:, :3], w[:, 3:]))
    return np.hstack([f, n + np.cross(X[:, :3, 3], f)])


@pytest.mark.parametrize("make", [panda, lambda: arm(None)], ids=["panda", "arm"])
def test_the_load_at_the_joint_is_the_wrench_in_it(make: Any) -> None:
    """With all of a link beyond the section, its load is the joint's wrench, for every way to spread the mass."""
    robot = make()
    q, v, a = states(robot, 3)
    rows = moving_links(build_tree(robot.model))
    force = {link: np.random.default_rng(k).normal(size=6) for k, link in enumerate(rows)}
    W = robot.joint_wrenches(q, v, a, f_ext=force, frame="local")
    for k, link in enumerate(rows):
        if link in (
            "panda_link2",
            "panda_link3",
            "panda_link5",
            "panda_link6",
            "panda_link7",
            "panda_rightfinger",
        ):
            continue  # as their neighbours, and each is compiled
        for kind in ("auto", "box"):
            span = loads.span_of(robot.model, link, loads.distribution(robot.model, link, kind))
            span, s = dataclasses.replace(span, held=-span.back), -span.back
            found = loads.section_loads(robot, q, v, a, link, s, span=span, distribution=kind, f_ext=force)
            R, w = span.rotation, found.total[:, 0]
            f = w[:, :3] @ R.T
            n = w[:, 3:] @ R.T + np.cross(span.points(np.array([s])), f)
            scale = max(1.0, np.abs(W[:, k]).max())
            assert np.abs(np.hstack([f, n]) - W[:, k]).max() < SWEPT * scale, (link, kind)


def test_shapes_are_stretched_to_the_inertia() -> None:
    robot = panda()
    for link in ("panda_link1", "panda_link5", "panda_leftfinger"):
        mass = loads.distribution(robot.model, link, "shapes")
        body = next(x.inertial for x in robot.model.links if x.name == link)
        P = mass.beyond(np.array([1.0, 0, 0]), np.array([-1e3]))[0]
        assert body is not None
        S = P[:3, :3] - body.mass * np.outer(body.com, body.com)
        J = np.trace(S) * np.eye(3) - S
        assert np.abs(P[:3, 3] - body.mass * np.array(body.com)).max() < 1e-12
        assert np.abs(J - body.tensor).max() < 1e-12
        assert mass.about.startswith(("collision shapes (", "visual shapes ("))
    assert loads.distribution(robot.model, "panda_link8").solids == ()


def test_four_bar() -> None:
    """Reactions act where the loop closes, and the ends of both links bear them."""
    b = drevo.Builder("four-bar", gravity=(0, -9.81, 0))
    J = np.diag([0.0, 0.01, 0.01])
    b.body("crank", axis=(0, 0, 1), mass=1.0, com=(0.2, 0, 0), inertia=J)
    b.body("rod", "crank", axis=(0, 0, 1), origin=(0.4, 0, 0), mass=1.5, com=(0.5, 0, 0), inertia=J)
    b.body("rocker", axis=(0, 0, 1), origin=(1, 0, 0), mass=1.2, com=(0.3, 0, 0), inertia=J)
    b.loop("point", "rod", (1.0, 0, 0), "rocker", (0.6, 0, 0))
    robot = b.robot()
    q, v = drevo.constraint.hold(robot, np.array([1.2, -0.7, 1.5]), np.array([1.0, 0.0, 0.0]))
    motion = robot.constrained_dynamics(q, v, np.zeros(3))
    given = {"actuated": ["crank_joint"]}
    found = robot.constrained_inverse_dynamics(q, v, motion.a, **given)
    tip = loads.section_loads(robot, q, v, motion.a, "rod", 1.0, span=((0, 0, 0), (1.0, 0, 0)), **given).total[0]
    R = robot.pose(q, "rod")[:3, :3]
    reaction = found.reactions[-3:]
    assert loads.distribution(robot.model, "rod").reach(np.array([1.0, 0, 0]))[1] < 1.0  # no mass beyond the end
    assert np.abs(tip[:3] + R.T @ reaction).max() < 1e-9
    assert np.abs(tip[3:]).max() < 1e-9
    other = loads.section_loads(
        robot, q, v, motion.a, "rocker", 0.6, span=((0, 0, 0), (0.6, 0, 0)), **given
    ).total[0]
    assert np.abs(other[:3] - robot.pose(q, "rocker")[:3, :3].T @ reaction).max() < 1e-9


def test_reactions_as_wrenches_on_links() -> None:
    """sum of J^T w over the links is Gamma^T N, for every kind of constraint that acts at a place."""
    robot, c = arm(None), drevo.constraint
    q, still = states(robot, 1, 5)[0][0], np.zeros(robot.nv)
    at = {"tool": (0.1, 0.2, 0.3), "side": (0.3, 0.1, -0.2)}
    ends = ("tool", at["tool"], "side", at["side"])
    gap = [robot.pose(q, link) @ [*p, 1.0] for link, p in at.items()]
    length = float(np.linalg.norm(gap[0][:3] - gap[1][:3]))
    kinds = [
        {"contacts": [{"link": "tool", "point": at["tool"], "rows": rows}]} for rows in (3, 6)
    ] + [
        {"constraints": [x]}
        for x in (
            c.point_on_plane("tool", at["tool"], (0.1, 0.2, 0.9), (0.3, 0.1, 0.0)),
            c.point_to_point(*ends, rows=[(1, 2, 0), (0, 1, 1)]),
            c.weld(*ends),
            c.distance(*ends, length),
            *(c.joint_closure(kind, "tool", at["tool"], (1, 2, 3), "side", at["side"], (0.5, 0, -1), np.eye(3))
              for kind in ("revolute", "prismatic", "cylindrical", "universal")),
        )
    ]  # fmt: skip
    for given in kinds:
        efforts = robot.constrained_inverse_dynamics(q, still, still, t=0.7, **given)
        wrenches = Surroundings(**given).wrenches(robot, q, still, still, 0.7)
        total = sum(robot.jacobian(q, e.link).T @ e.wrench for e in wrenches)
        assert np.abs(efforts.reactions).max() > 0.1  # the least efforts leave weight to the constraint
        assert np.abs(total - efforts.jacobian.T @ efforts.reactions).max() < 1e-11 * np.abs(total).max(), given
    gear = Surroundings(constraints=[c.gear("side_joint", "tool_joint", 2.0)])
    assert gear.wrenches(robot, q, still, still) == []
    nowhere = Surroundings(constraints=[c.function(lambda pose, q, t: [q[0] - 1.0], 1)])
    assert "does not say on which link" in refused(lambda: nowhere.wrenches(robot, q, still, still))


# -- motion of a section, inertial loads ------------------------------------------------------------------------


def test_section_motion_is_that_of_a_link_welded_there() -> None:
    b = drevo.Builder("two")
    b.body("one", axis=(0, 1, 1), mass=1.0, com=(0.2, 0, 0), inertia=np.eye(3))
    b.body("two", "one", axis=(1, 0, 0), origin=(0.5, 0, 0), mass=1.0, com=(0, 0, 0.4), inertia=np.eye(3))
    b.body("mark", "two", "fixed", origin=(0.1, 0.2, 0.25))
    robot = b.robot()
    q, v, a = states(robot, 5)
    got = loads.section_motion(robot, q, v, a, "two", 0.25, span=((0.1, 0.2, 0.0), (0.1, 0.2, 0.6)))
    assert np.abs(got.pose[..., :3, 3] - robot.pose(q, "mark")[..., :3, 3]).max() < 1e-14
    assert np.abs(got.velocity - robot.velocity(q, v, "mark")).max() < 1e-13
    assert np.abs(got.acceleration - robot.acceleration(q, v, a, "mark")).max() < 1e-13


@pytest.mark.parametrize("m", MECHANISMS[::3], ids=lambda m: str(m["name"]))
def test_published_vectors(m: dict[str, Any]) -> None:
    """The section of Zaremba's vectors, and the wrench in its body's joint: the load with all of it beyond."""
    robot, section = mechanism(m), m["section"]
    link, c = robot.link_names[section["body"] + 1], np.array(section["point"])
    state = (m["q"], m["qd"], m["qdd"])
    at = loads.section_motion(robot, *state, link, 5.0, span=(c - 5 * np.eye(3)[0], c + np.eye(3)[0]))
    assert np.abs(at.pose[:3, 3] - section["p"]).max() < TEXTBOOK
    assert np.abs(at.velocity - (section["v"] + section["omega"])).max() < TEXTBOOK * 10
    assert np.abs(at.acceleration - (section["a"] + section["epsilon"])).max() < TEXTBOOK * 100  # of size 30
    span = loads.Span.between((-9, 0, 0), (9, 0, 0), y=(0, 1, 0))
    w = loads.section_loads(robot, *state, link, 0.0, span=span).total[0]
    w[3:] += np.cross([-9, 0, 0], w[:3])
    assert np.abs(w - np.ravel(m["joint_wrench"][section["body"]])).max() < SWEPT * np.abs(w).max()


def test_inertial_loads_balance_the_base() -> None:
    """The ground's force is the weight less all inertial forces, its moment that of both (d'Alembert)."""
    robot = arm(None)
    q, v, a = states(robot, 4)
    found = loads.inertial_loads(robot, q, v, a)
    assert set(found) == {"base", "beam", "side", "plate", "tool"}
    force, moment = np.zeros((4, 3)), np.zeros((4, 3))
    for link, load in found.items():
        body = next(x.inertial for x in robot.model.links if x.name == link)
        assert body is not None
        T = robot.pose(q, link)
        c = T[:, :3, :3] @ np.array(body.com) + T[:, :3, 3]
        f = load[:, :3] + body.mass * np.array(robot.model.gravity)
        force, moment = force - f, moment - load[:, 3:] - np.cross(c, f)
    W = robot.joint_wrenches(q, v, a, frame="world")[:, 0]
    assert np.abs(W - np.hstack([force, moment])).max() < SWEPT


# -- what is refused --------------------------------------------------------------------------------------------


def test_refused_sections() -> None:
    robot, state = rod(), ([0.0], [0.0], [0.0])
    text = refused(lambda: loads.section_loads(robot, *state, "rod", 0.9))
    assert text.startswith("the section s = 0.9 m is outside link 'rod', whose span goes from 0 to 0.8 m; choose")
    assert "did you mean 'rod'" in refused(lambda: loads.section_loads(robot, *state, "rodd", 0.1))
    text = refused(lambda: loads.section_loads(robot, *state, "rod", 0.1, distribution="shapes"))
    assert "no distribution by shapes" in text
    text = refused(
        lambda: loads.section_loads(robot, *state, "rod", 0.1, distribution=[loads.point(3.0, (0.4, 0, 0))])
    )
    assert "second moments that differ by 0.16 kg m^2" in text
    assert "has no length" in refused(lambda: loads.section_loads(robot, *state, "world", 0.1))
    assert "s holds a value that is not fin" in refused(
        lambda: loads.section_loads(robot, *state, "rod", float("nan"))
    )


def test_an_impossible_inertia_is_refused() -> None:
    b = drevo.Builder("odd")
    b.body("odd", mass=1.0, com=(0.1, 0, 0), inertia=np.diag([1.0, 0.1, 0.1]))
    with pytest.warns(drevo.DrevoWarning):
        robot = b.robot()
    text = refused(lambda: loads.section_loads(robot, [0.0], [0.0], [0.0], "odd", 0.0))
    assert "principal moments 0.1, 0.1, 1 kg m^2 break the triangle inequality" in text


ZERO = np.zeros(6)
ALONG = [(0, 0, 0), (1, 0, 0)]
SPUN = np.zeros(3), np.array([0.0, 0.0, 1e200]), np.zeros(3), "link3", 0.1


@pytest.mark.parametrize(("ask", "words"), [
    (lambda r: drevo.loads.section_loads("puma560", ZERO, ZERO, ZERO, "link2", 0.1), "takes a robot"),
    (lambda r: drevo.loads.section_loads(r, "a", ZERO, ZERO, "link2", 0.1), "q must hold real numbers"),
    (lambda r: drevo.loads.section_loads(r, ZERO, 1j * ZERO, ZERO, "link2", 0.1), "v must hold real numbers"),
    (lambda r: drevo.loads.section_loads(r, ZERO, ZERO, ZERO, ZERO, 0.1), "link array.* is not in robot"),
    (lambda r: drevo.loads.section_loads(r, ZERO, ZERO, ZERO, "link2", "x"), "s must hold real numbers"),
    (lambda r: drevo.loads.section_loads(r, ZERO, ZERO, ZERO, "link2", 0.1, span=[1]), "span is .1.; give a Span"),
    (lambda r: drevo.loads.section_loads(r, ZERO, ZERO, ZERO, "link2", 0.1, distribution=5), "or solids, not 5"),
    (lambda r: drevo.loads.accuracy("puma560", ZERO, "link6"), "takes a robot"),
    (lambda r: drevo.loads.accuracy(r, ZERO, "link6", error_distribution={1}), "accuracy: error_distribution"),
    (lambda r: drevo.loads.accuracy(r, ZERO, "link6", springs="x"), "springs: 'x' is no Spring"),
    (lambda r: drevo.loads.accuracy(r, ZERO, "link6", joint_errors={"joint1": (1, 2)}), "has shape .2,."),
    (lambda r: drevo.loads.accuracy(r, ZERO, "link6", stiffness="x"), "stiffness must hold real numbers"),
    (lambda r: drevo.loads.accuracy(r, ZERO, "link6", stiffness=1e-200), "stiffness holds 1e-200; a drive's"),
    (lambda r: drevo.loads.inertial_loads(r, ZERO, ZERO + 1e200, ZERO), "accelerates by more than 1e.150"),
    (lambda r: drevo.loads.section_motion(drevo.load("three-link"), *SPUN, span=ALONG), "v is as large as 1e.200"),
    (lambda r: drevo.loads.beam(r, "link2", count=0), "count is 0; it must be a whole number"),
    (lambda r: drevo.loads.Trajectory(5, [0.0], ZERO[None], ZERO[None], ZERO[None]), "takes a robot"),
    (lambda r: drevo.loads.Trajectory(r, ["a"], ZERO[None], ZERO[None], ZERO[None]), "t must hold real numbers"),
    (lambda r: drevo.loads.drives(r, None), "the trajectory is None; give a drevo.loads.Trajectory"),
    (lambda r: drevo.loads.box("x", (1, 1, 1)), "the mass of a solid is 'x'; it must be finite and not negative"),
    (lambda r: drevo.loads.capsule(1.0, (1, 2), 1.0), "radius of a capsule is \\(1, 2\\)"),
])  # fmt: skip
def test_wrong_arguments_are_answered_in_a_sentence(ask: Callable[[drevo.Robot], object], words: str) -> None:
    with pytest.raises(drevo.DrevoError, match=words):
        ask(drevo.load("puma560"))


def test_a_capsule_as_thin_as_numbers_get_is_a_cylinder() -> None:
    thin, thinner = (drevo.loads.capsule(1.0, radius, 0.2).whole() for radius in (1e-7, 1e-320))
    assert np.abs(thin - thinner).max() < 1e-6 * np.abs(thin).max()
