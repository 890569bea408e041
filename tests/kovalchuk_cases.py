"""Cases of kovalchuk-alyushin.json as robots and as mechanisms of the paper."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import drevo
from drevo.mechanics.algorithms.kinematics import pose
from drevo.mechanics.formalisms.kovalchuk import Load, Mechanism, MechanismLink
from drevo.mechanics.rotation import axis_rotation
from drevo.mechanics.spatial import Mat, Sym, Vec
from drevo.mechanics.tree import build_tree

Array = np.ndarray[Any, Any]
DATA: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "kovalchuk-alyushin.json").read_text())
TREES: list[dict[str, Any]] = DATA["tree_cases"]
NAMES = [c["name"] for c in TREES]
KINDS = {"R": "revolute", "P": "prismatic", "H": "helical"}


def rx(a: float) -> Array:
    s, c = math.sin(a), math.cos(a)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def ry(a: float) -> Array:
    s, c = math.sin(a), math.cos(a)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def rz(a: float) -> Array:
    s, c = math.sin(a), math.cos(a)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def placement(link: dict[str, Any]) -> tuple[Array, Array]:
    """M: rotation and origin."""
    x, y, z = link["M"]["rpy"]
    return rz(z) @ ry(y) @ rx(x), np.array(link["M"]["xyz"])


def mechanism(case: dict[str, Any]) -> Mechanism:
    """The paper's mechanism, main frames after the DH step."""
    return Mechanism(tuple(_link(l) for l in case["input"]["links"]), Vec(*case["input"]["gravity"]))


def _link(l: dict[str, Any]) -> MechanismLink:
    R, p = placement(l)
    dh, pitch = l["dh"], l.get("pitch", 0.0) / (2 * math.pi)
    a, alpha, at = dh["a"], dh["alpha"], (Mat.of(R.tolist()), Vec(*p.tolist()))
    sigma, chi = {"R": (1.0, 0.0), "P": (0.0, 1.0), "H": (1.0, pitch)}[l["type"]]
    tail = axis_rotation(0, math.sin(alpha), math.cos(alpha)), Vec(a, 0.0, 0.0)
    solid = l["m"], Vec(*l["c"]), Sym.of(Mat.of(l["J"]))
    return MechanismLink(l["parent"] - 1, *at, sigma, chi, dh["theta"], dh["d"], *tail, 2, *solid)


def loads(case: dict[str, Any]) -> dict[int, Load]:
    return {e["link"] - 1: Load(Vec(*e["F"]), Vec(*e["M"])) for e in case["input"].get("external", [])}


def robot(case: dict[str, Any], first: int = 1) -> drevo.Robot:
    """The same as a Robot with frames at the joints; first = 6 puts link 6 on a free joint."""
    links = case["input"]["links"]
    b = drevo.Builder(case["name"], gravity=case["input"]["gravity"])
    for l in links[first - 1 :]:
        parent, dh, free = l["parent"], l["dh"], first > 1 and l["link"] == first
        R_M, p_M = placement(l)
        twist, arm = rx(dh["alpha"]), np.array([dh["a"], 0, 0])
        if free:
            b.body(
                f"link{first}",
                joint="free",
                mass=l["m"],
                com=l["c"],
                inertia=l["J"],
                joint_name=f"joint{first}",
            )
            continue
        back, at = (
            (np.eye(3), np.zeros(3))
            if parent == 0 or (first > 1 and parent == first)
            else after(links[parent - 1])
        )
        massive = l["m"] > 0
        b.body(
            f"link{l['link']}",
            "world" if parent == 0 else f"link{parent}",
            KINDS[l["type"]],
            (0, 0, 1),
            at + back @ (p_M + R_M @ np.array([0, 0, dh["d"]])),
            back @ R_M @ rz(dh["theta"]),
            mass=l["m"],
            com=arm + twist @ np.array(l["c"]) if massive else (0, 0, 0),
            inertia=twist @ np.array(l["J"]) @ twist.T if massive else None,
            lead=l.get("pitch") if l["type"] == "H" else None,
            joint_name=f"joint{l['link']}",
        )
    return b.robot()


def after(link: dict[str, Any]) -> tuple[Array, Array]:
    """The main frame of a link in the frame of its joint: Tx(a) Rx(alpha)."""
    return rx(link["dh"]["alpha"]), np.array([link["dh"]["a"], 0.0, 0.0])


def pose_of(built: drevo.Robot, q: Any, link: str) -> Array:
    """Pose of a link by the algorithm on plain floats: nothing is compiled."""
    return np.array(pose(build_tree(built.model), list(q), link))


def f_ext(case: dict[str, Any], q: Array, built: drevo.Robot) -> dict[str, Array]:
    """External loads (about the centres of mass) as wrenches at the links' origins."""
    out = {}
    for e in case["input"].get("external", []):
        name = f"link{e['link']}"
        l = case["input"]["links"][e["link"] - 1]
        R, p = after(l)
        arm = pose_of(built, q, name)[:3, :3] @ (p + R @ np.array(l["c"]))
        out[name] = np.concatenate([e["F"], np.array(e["M"]) + np.cross(arm, e["F"])])
    return out


def contact_point(case: dict[str, Any], c: dict[str, Any]) -> Array:
    """A point given in the main frame, in the frame of the joint."""
    R, p = after(case["input"]["links"][c["link"] - 1])
    return p + R @ np.array(c["point"])


def worst(got: Any, expected: Any) -> float:
    """Largest difference relative to the largest value, at least 1."""
    a, b = np.asarray(got, float), np.asarray(expected, float)
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.max(np.abs(a - b), initial=0.0)) / max(1.0, float(np.max(np.abs(b), initial=0.0)))
