"""What is refused for its structure: every case of a mass matrix that is singular for every q, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from drevo.errors import DrevoWarning, ModelError
from drevo.model.base import with_base
from drevo.model.description import Inertial, Joint, Link, Mimic, Model
from drevo.model.draft import Draft
from drevo.model.regularity import singular
from drevo.model.rotations import from_axis_angle
from drevo.model.validation import finish
from drevo.robot.builder import Builder
from drevo.robots.loading import load

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BODY = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.15])}
POINT = {"mass": 1.0}


def arm(*bodies: dict[str, object]) -> Builder:
    """A chain of bodies l1, l2, ... with joints j1, j2, ..."""
    b = Builder("arm")
    for k, body in enumerate(bodies, 1):
        b.body(f"l{k}", parent=f"l{k - 1}" if k > 1 else "world", joint_name=f"j{k}", **body)  # type: ignore[arg-type]
    return b


def refusal(b: Builder) -> str:
    with pytest.raises(ModelError) as caught:
        b.model()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical", "free", "planar", "cylindrical"])
def test_nothing_with_mass_outboard(kind: str) -> None:
    message = refusal(arm(BODY, {"joint": kind}, {"joint": "fixed"}))
    assert f"joint 'j2' of type {kind} moves only links without mass ('l2', 'l3')" in message


def test_the_joint_nearest_the_base_speaks_for_those_beyond() -> None:
    message = refusal(arm(BODY, {}, {}, {}))
    assert "problems" not in message and "joint 'j2' of type revolute moves only" in message


def test_rotational_inertia_alone_resists_turning_not_sliding() -> None:
    rotor = {"inertia": np.eye(3)}
    with pytest.warns(DrevoWarning, match="body 'l1' has an inertia tensor .* but no mass"):
        assert arm(rotor).model().nv == 1
    assert "with inertia but without mass" in refusal(arm({**rotor, "joint": "prismatic"}))


@pytest.mark.parametrize(
    "body, good",
    [
        ({**POINT}, False),  # a point mass on the axis
        ({**POINT, "com": (0, 0, 1)}, False),
        ({**POINT, "com": (0, 1, 1)}, True),
        ({**POINT, "inertia": np.diag([1, 1, 0])}, False),  # a rod along the axis
        ({**POINT, "inertia": np.diag([1, 1, 0]), "axis": (1, 0, 1)}, True),
        ({**POINT, "joint": "prismatic"}, True),
        ({**POINT, "joint": "helical", "lead": 0.1}, True),
        ({**POINT, "joint": "helical", "lead": 0.0}, False),
        ({**POINT, "joint": "free"}, False),
        ({**POINT, "joint": "free", "inertia": np.diag([1, 1, 0])}, False),
        ({**BODY, "joint": "free"}, True),
        ({**POINT, "joint": "spherical", "com": (0, 0, 1)}, False),
        ({**BODY, "joint": "spherical"}, True),
        ({**POINT, "joint": "universal", "axis2": X, "com": (0, 0, 1)}, True),
        ({**POINT, "joint": "universal", "axis2": X, "com": (1, 0, 0)}, False),
        ({**POINT, "joint": "planar"}, False),
        ({**BODY, "joint": "planar", "axis": (1, 1, 1)}, True),
        ({**BODY, "joint": "cylindrical"}, True),
    ],
)
def test_the_end_of_a_limb(body: dict[str, object], good: bool) -> None:
    if good:
        arm(body).model()
    else:
        message = refusal(arm(body))
        assert "joint 'j1' of type" in message and "no inertia" in message


@pytest.mark.parametrize(
    "bodies, good",
    [
        (({}, {**BODY, "axis": X}), True),  # a massless link between crossing axes: a universal joint
        (({}, {**BODY, "axis": Z}), False),  # coincident axes
        (({}, {**BODY, "origin": (0, 0, 1)}), False),  # still coincident
        (({}, {**BODY, "origin": (1, 0, 0)}), True),  # parallel
        (({}, {"joint": "fixed", "rpy": (0, 1, 0)}, {**BODY, "axis": X}), True),
        (({"joint": "prismatic"}, {**BODY, "joint": "prismatic"}), False),
        (({"joint": "prismatic"}, {**BODY, "joint": "revolute"}), True),
        (({"axis": X}, {"axis": Y}, {**BODY, "axis": Z}), True),
        (({"joint": "spherical"}, {**BODY, "axis": Z}), False),
        (({"joint": "free"}, BODY), False),
        (({}, BODY, {**BODY, "origin": (1, 0, 0)}), False),
        (({}, {**POINT, "axis": X, "com": (0, 0, 1)}, {**BODY, "axis": X, "origin": (0, 0, 1)}), True),
    ],
)
def test_massless_links_between_joints(bodies: tuple[dict[str, object], ...], good: bool) -> None:
    if good:
        arm(*bodies).model()
    else:
        assert "in fewer ways than they have coordinates" in refusal(arm(*bodies))


def test_what_mimics_resists_for_its_driver() -> None:
    b = arm({}).body("other", mimic=("j1", 2.0), **BODY)  # type: ignore[arg-type]
    assert b.model().nv == 1
    still = arm({}).body("other", mimic=("j1", 0.0), **BODY)  # type: ignore[arg-type]
    assert "joint 'j1' of type revolute moves only" in refusal(still)


def test_a_warning_stands_at_the_line_of_the_caller() -> None:
    """However many calls lie between: of a builder, of text that is loaded."""
    heavy = {"mass": 1.0, "inertia": np.diag([1.0, 1.0, 3.0])}
    text = (
        '<robot name="r"><link name="w"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="3" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="w"/>'
        '<child link="a"/><axis xyz="0 0 1"/></joint></robot>'
    )
    for call in (lambda: arm(heavy).robot(), lambda: load(text)):
        with pytest.warns(DrevoWarning, match="triangle inequality") as caught:
            call()
        assert [w.filename for w in caught] == [__file__]


def test_bases() -> None:
    model = arm(BODY).model()
    with pytest.raises(ModelError, match="the base is one of fixed, floating, trunk, not 'flying'"):
        with_base(model, "flying")
    assert with_base(model, "fixed") is model
    with pytest.raises(ModelError, match="'root_joint' move"):
        with_base(model, "floating")  # a massless base with one limb
    b = arm({**BODY, "joint": "fixed"}, BODY)
    floating, trunk = with_base(b.model(), "floating"), with_base(b.model(), "trunk")
    assert (floating.nq, floating.nv, floating.root, floating.joints[0].name) == (8, 7, "universe", "root_joint")
    assert [link.name for link in trunk.links] == [
        "universe",
        *(f"trunk_{k}" for k in range(1, 6)),
        "world",
        "l1",
        "l2",
    ]
    assert [(j.name, j.kind, j.axis) for j in trunk.joints[:6]] == [
        ("trunk_1", "prismatic", Z),
        ("trunk_2", "prismatic", Y),
        ("trunk_3", "prismatic", X),
        ("trunk_4", "revolute", Z),
        ("trunk_5", "revolute", Y),
        ("trunk_6", "revolute", X),
    ]
    with pytest.raises(ModelError, match="in fewer ways"):
        with_base(floating, "trunk")


def test_a_base_needs_inertia() -> None:
    bare = finish(Draft("bare", links=[Link("l")]))
    assert (bare.nv, with_base(bare).nv) == (0, 0)
    for base in ("floating", "trunk"):
        with pytest.raises(ModelError, match="moves only links without mass"):
            with_base(bare, base)


def test_taken_names_get_an_underscore() -> None:
    body = Inertial(1.0, tensor=(X, Y, Z))
    links = [Link("world", body), Link("universe", body), Link("a", body)]
    joints = [Joint("root_joint", "fixed", "world", "universe"), Joint("x", "revolute", "universe", "a")]
    model = finish(Draft("r", links, joints), "floating")
    assert (model.root, model.joints[0].name) == ("universe_", "root_joint_")


def test_a_hand_made_order_must_put_parents_first() -> None:
    body = Inertial(1.0, tensor=(X, Y, Z))
    links = [Link("w"), Link("a", body), Link("b", body)]
    joints = [Joint("2", "revolute", "a", "b"), Joint("1", "revolute", "w", "a")]
    assert [j.name for j in finish(Draft("r", links, joints)).joints] == ["1", "2"]
    with pytest.raises(ModelError, match="joint '2' comes before the joint of its parent 'a'"):
        finish(Draft("r", links, joints, ordered=True))


def test_inertia_left_by_rounding_is_a_point_mass() -> None:
    tensor = ((0.0, 0.0, 1.4e-20), (0.0, 0.0, 0.0), (1.4e-20, 0.0, 0.0))
    links = [Link("w"), Link("a", Inertial(0.3, (0.008, 0.0, 0.055), tensor))]
    assert finish(Draft("r", links, [Joint("j", "revolute", "w", "a")])).nv == 1


def test_mimic_ratios_multiply_within_bounds() -> None:
    body = Inertial(1.0, tensor=(X, Y, Z))
    links = [Link(f"l{k}", body) for k in range(5)]
    joints = [Joint("j0", "revolute", "l0", "l1")]
    joints += [
        Joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", mimic=Mimic(f"j{k - 1}", 1e4)) for k in range(1, 4)
    ]
    with pytest.raises(ModelError, match="joint 'j2' follows 'j0' beyond 1e"):
        finish(Draft("r", links, joints))


# --- against the numbers ---------------------------------------------------


def random_robot(rng: np.random.Generator) -> Model:
    """A small tree in which special positions, missing masses and point masses are common."""
    links, joints = [Link("l0")], []
    axes, places = (X, Y, Z, (0.6, 0.0, 0.8)), ((0.0, 0.0, 0.0), Z, X, (0.3, 0.2, 0.5))
    full = ((0.1, 0.01, 0.0), (0.01, 0.2, 0.0), (0.0, 0.0, 0.15))
    for k in range(1, rng.integers(2, 7)):
        inertial = (None, Inertial(1.0, places[rng.integers(4)]), Inertial(1.0, places[rng.integers(4)], full))
        links.append(Link(f"l{k}", inertial[rng.integers(3)]))
        kind = ("revolute", "revolute", "prismatic", "fixed")[rng.integers(4)]
        parent = f"l{max(0, k - 1 - rng.integers(0, 2))}"
        joints.append(Joint(f"j{k}", kind, parent, f"l{k}", places[rng.integers(4)], axis=axes[rng.integers(4)]))
    return Model("random", tuple(links), tuple(joints))


def mass_matrix(model: Model, rng: np.random.Generator) -> np.ndarray:
    """M at a random q, by the Jacobians of the links."""
    n, k = model.nv, 0
    poses = {model.root: (np.eye(3), np.zeros(3), np.zeros((6, n)))}
    total = np.zeros((n, n))
    bodies = {link.name: link.inertial for link in model.links}
    for joint in model.joints:
        turn, place, jacobian = poses[joint.parent]
        step = turn @ np.array(joint.origin)
        jacobian = jacobian.copy()
        jacobian[:3] += np.cross(jacobian[3:], step, axisa=0, axisc=0)
        turn, place, axis = turn @ np.array(joint.rotation), place + step, turn @ np.array(joint.axis)
        if joint.kind == "revolute":
            turn = turn @ np.array(from_axis_angle(joint.axis, rng.uniform(-3, 3)))
            jacobian[3:, k] += axis
        elif joint.kind == "prismatic":
            shift = rng.uniform(-1, 1) * axis
            jacobian[:3] += np.cross(jacobian[3:], shift, axisa=0, axisc=0)
            jacobian[:3, k] += axis
        k += joint.nv
        poses[joint.child] = turn, place, jacobian
        if body := bodies[joint.child]:
            linear = jacobian[:3] + np.cross(jacobian[3:], turn @ np.array(body.com), axisa=0, axisc=0)
            tensor = turn @ np.array(body.tensor) @ turn.T
            total += body.mass * linear.T @ linear + jacobian[3:].T @ tensor @ jacobian[3:]
    return total


def test_structure_agrees_with_numbers() -> None:
    rng = np.random.default_rng(7)
    found = missed = regular = 0
    for _ in range(1000):
        model = random_robot(rng)
        if not model.nv:
            continue
        smallest = max(np.linalg.eigvalsh(mass_matrix(model, rng))[0] for _ in range(3))
        if singular(model):
            assert smallest < 1e-9, model
            found += 1
        else:
            missed, regular = missed + (smallest < 1e-12), regular + (smallest >= 1e-12)
    assert found > 150 and regular > 150
    assert missed < 0.1 * found  # these wait for a vanishing pivot
