"""Robots made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from robot_texts import from_json, from_toml

from drevo.errors import DrevoWarning, ModelError
from drevo.model.description import Limit, Mimic
from drevo.model.loaders import native
from drevo.model.loaders.writers import write_model
from drevo.robot.builder import Builder

I = np.diag([0.1, 0.2, 0.15])


def test_the_contract_call() -> None:
    b = Builder("arm", gravity=(0, 0, -9.81))
    b.body(
        "link1",
        parent="world",
        joint="revolute",
        axis=(0, 0, 1),
        origin=(0, 0, 0.3),
        rotation=None,
        mass=2.0,
        com=(0, 0, 0.1),
        inertia=I,
        lead=0.02,
    )
    model = b.model()
    (joint,) = model.joints
    assert (model.name, model.root, model.gravity, model.nq) == ("arm", "world", (0.0, 0.0, -9.81), 1)
    assert (joint.name, joint.kind, joint.parent, joint.child) == ("link1_joint", "revolute", "world", "link1")
    assert (joint.origin, joint.axis, joint.lead) == ((0.0, 0.0, 0.3), (0.0, 0.0, 1.0), 0.0)
    body = model.links[1].inertial
    assert body and (body.mass, body.com, body.tensor) == (2.0, (0.0, 0.0, 0.1), tuple(map(tuple, I.tolist())))


def test_coordinates_are_in_the_order_of_the_calls() -> None:
    b = Builder("tree")
    for name, parent in (("a", "world"), ("b", "world"), ("c", "a"), ("d", "b"), ("e", "a")):
        b.body(name, parent, mass=1.0, inertia=I, joint_name=name.upper())
    assert [j.name for j in b.model().joints] == list("ABCDE")
    assert [link.name for link in b.model().links] == ["world", *"abcde"]


def test_inertia_about_the_joint_is_moved_to_the_centre_of_mass() -> None:
    com = np.array([0.1, -0.2, 0.3])
    about_joint = I + 2.0 * (com @ com * np.eye(3) - np.outer(com, com))
    b = Builder().body("a", mass=2.0, com=com, inertia=about_joint, inertia_at="joint")
    body = b.model().links[1].inertial
    assert body and np.allclose(body.tensor, I, atol=1e-15)


def test_placement_axes_and_kinds() -> None:
    b = Builder()
    b.body(
        "a", joint="universal", axis=(0, 0, 5), axis2=np.array([2, 0, 0]), rpy=(0, 0, np.pi / 2), mass=1, inertia=I
    )
    b.body("h", "a", joint="screw", lead=0.02, mass=1, inertia=I, limit=(-1, 1))
    b.body("f", joint="floating", rotation=np.eye(3), mass=np.float32(1), inertia=I)
    a, h, f = b.model().joints
    assert (a.axis, a.axis2) == ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    assert np.allclose(a.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert (h.kind, h.lead, h.limit) == ("helical", 0.02, Limit(-1.0, 1.0))
    assert (f.kind, f.nq, f.nv) == ("free", 7, 6)


@pytest.mark.parametrize("mimic", ["a_joint", ("a_joint",), ("a_joint", 1.0, 0.0), Mimic("a_joint")])
def test_mimic(mimic: object) -> None:
    b = Builder().body("a", mass=1, inertia=I).body("b", "a", mass=1, inertia=I, mimic=mimic)  # type: ignore[arg-type]
    assert b.model().nv == 1 and b.model().joints[1].mimic == Mimic("a_joint")


def test_loops_and_contacts_are_data() -> None:
    b = Builder().body("a", mass=1, inertia=I).body("b", mass=1, inertia=I)
    b.loop("point", "a", (1, 0, 0), "b", (0, 1, 0)).contact("b", (0, 0, -1))
    model = b.model()
    assert (model.loops[0].kind, model.loops[0].point_b) == ("point", (0.0, 1.0, 0.0))
    assert model.contacts[0].point == (0.0, 0.0, -1.0)
    assert write_model(model, ".urdf").lost == ["its 1 closed loop"]


@pytest.mark.parametrize(
    "call, says",
    [
        ({"parent": "ghost"}, "body 'b' has the parent 'ghost', which does not exist"),
        ({"name": "a"}, "body 'a' already exists"),
        ({"joint_name": "a_joint"}, "body 'b': a joint 'a_joint' already carries 'a'"),
        ({"joint": "hinge"}, "body 'b': the joint is of unknown type 'hinge'"),
        ({"joint": "helical"}, "body 'b': a helical joint needs its lead"),
        ({"rotation": np.eye(3), "rpy": (0, 0, 0)}, "body 'b': both rotation and rpy"),
        ({"rotation": 2 * np.eye(3)}, "body 'b': rotation .* is not a rotation"),
        ({"rotation": -np.eye(3)}, "body 'b': rotation .* is a reflection"),
        ({"mass": float("nan")}, "body 'b': mass nan is not finite"),
        ({"mass": "1"}, "body 'b': mass '1' is not a number"),
        ({"inertia": [0.1, 0.1, 0.1]}, "body 'b': inertia is the 3x3 tensor, .* np.diag"),
        ({"mass": True}, "body 'b': mass True is not a number"),
        ({"mass": 10**400}, "body 'b': mass .* is not finite"),
        ({"com": (0, 0)}, r"body 'b': com \(0, 0\) has 2 numbers, 3 needed"),
        ({"com": (0, 0, 1e7)}, "body 'b': com 1e\\+07 is beyond 1e\\+06"),
        ({"com": None}, "body 'b': com None is not a list of numbers"),
        ({"inertia": (1, 1, 1)}, "body 'b': inertia is the 3x3 tensor, not"),
        ({"inertia": [[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]}, "body 'b': inertia .* is not symmetric: 0.5 against 0"),
        ({"inertia_at": "origin"}, "body 'b': inertia_at 'origin' is not known; there are com, joint"),
        ({"limit": (1, 2, 3)}, "body 'b': limit has 3 numbers"),
        ({"mimic": ("a", 1, 2, 3)}, "body 'b': mimic is a joint's name"),
        ({"name": ""}, "body '': name '' is not a name"),
    ],
)
def test_refused_at_the_call(call: dict[str, object], says: str) -> None:
    b = Builder().body("a", mass=1, inertia=I)
    with pytest.raises(ModelError, match=says):
        b.body(**{"name": "b", "mass": 1.0, "inertia": I, **call})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call, says",
    [
        ({"axis": (0, 0, 0)}, r"joint 'b_joint' of body 'b' has the zero axis \(0 0 0\)"),
        ({"mass": -1}, "body 'b' has the negative mass -1 kg"),
        ({"inertia": -I}, "body 'b' has a negative principal moment"),
        ({"mass": 0.0, "inertia": None}, "joint 'b_joint' of type revolute moves only links without mass"),
        ({"joint": "universal"}, "joint 'b_joint' of body 'b' is universal and has no axis2"),
        ({"mimic": "ghost"}, "joint 'b_joint' of body 'b' mimics joint 'ghost', which does not exist"),
    ],
)
def test_refused_as_a_whole(call: dict[str, object], says: str) -> None:
    b = Builder().body(**{"name": "b", "mass": 1.0, "inertia": I, **call})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=says):
        b.model()


def test_doubtful() -> None:
    b = Builder().body("b", mass=1, inertia=np.diag([1, 0.1, 0.1]))
    with pytest.warns(DrevoWarning, match="robot 'robot': 1 doubtful element.*body 'b': the principal moments"):
        b.model()
    with pytest.raises(ModelError, match="because strict=True"):
        b.model(strict=True)


def test_a_long_chain() -> None:
    b = Builder("chain")
    for k in range(5000):
        b.body(f"l{k}", f"l{k - 1}" if k else "world", axis=(0, 1, 0), origin=(0, 0, 1), mass=1, com=(0, 0, 0.5))
    assert b.model().nv == 5000


def everything() -> Builder:
    """A robot with one of each."""
    b = Builder('all "quoted" é', gravity=(0, -9.81, 0))
    kinds = (
        "fixed",
        "revolute",
        "continuous",
        "prismatic",
        "helical",
        "cylindrical",
        "universal",
        "planar",
        "spherical",
    )
    for k, kind in enumerate(kinds):
        parent = kinds[k - 1] if k else "world"
        axes = {"axis": (0.6, 0, 0.8), "axis2": (0, 1, 0), "lead": 0.01 * k}
        b.body(
            kind, parent, kind, rpy=(0.1, 0.2, k), origin=(k, 0, 1e-7), mass=1.5, inertia=I, limit=(-1, k), **axes
        )
    b.body("free", joint="free", mass=1, com=(0, 0, 1), inertia=I)
    return b.body("mimic", "free", mimic=("revolute_joint", -2, 0.5), mass=1, inertia=I)


@pytest.mark.parametrize("out, back", [(native.to_json, from_json), (native.to_toml, from_toml)])
def test_native_round_trip(out: object, back: object) -> None:
    model = (
        everything()
        .loop("weld", "free", (1, 0, 0), "fixed", (0, 1, 0), np.eye(3))
        .contact("free", (0, 0, 1))
        .model()
    )
    assert back(out(model)) == model  # type: ignore[operator]
