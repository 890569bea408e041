"""The base of a robot: nothing more than the ground, a free joint, or a trunk of six plain joints."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ModelError, shown
from .description import Joint, Link, Model, Vec3
from .draft import Draft, did_you_mean, listed, unused
from .regularity import require_regular_structure
from .rotations import IDENTITY_POSE

WORLD = "world"
BASE_KINDS = ("fixed", "floating", "trunk")

_PLAIN_AXIS: Vec3 = (1.0, 0.0, 0.0)
_Y: Vec3 = (0.0, 1.0, 0.0)
_Z: Vec3 = (0.0, 0.0, 1.0)
TRUNK = (
    ("prismatic", _Z),
    ("prismatic", _Y),
    ("prismatic", _PLAIN_AXIS),
    ("revolute", _Z),
    ("revolute", _Y),
    ("revolute", _PLAIN_AXIS),
)


def with_base(model: Model, base: str = "fixed", kinematic: bool = False) -> Model:
    """The model on a base: "fixed" (its root is the ground), "floating" (a free joint) or "trunk".

    The floating base puts a link "world" and a free joint "root_joint" before the root; the trunk puts the
    joints trunk_1..trunk_6 (z, y, x, yaw, pitch, roll, each in the frame that the ones before it carry) with
    the massless links trunk_1..trunk_5. A name that the robot already uses gets an underscore. A robot that
    cannot stand on this base, because M would be singular for every q, is refused, unless it is `kinematic`.
    """
    if not isinstance(base, str) or base not in BASE_KINDS:
        raise ModelError(
            f"the base is one of {', '.join(BASE_KINDS)}, not {shown(base)}"
            f"{did_you_mean(str(base)[:60], BASE_KINDS)}"
        )
    first = [joint for joint in model.joints if joint.parent == model.root]
    massless = not any(link.inertial for link in model.links if link.name == model.root)
    if base == "floating" and not kinematic and massless and first and all(x.kind == "free" for x in first):
        raise ModelError(f"the file has a free joint already, {first[0].name!r}; load it without base='floating'")
    if base != "fixed":
        free = Joint(unused("root_joint", _joints(model)), "free", _world(model), model.root)
        model = _on(model, [free] if base == "floating" else _trunk(model))
    if not kinematic:
        require_regular_structure(model)
    return model


def put_in_world(draft: Draft) -> None:
    """On a fixed base, weld to a link "world" what nothing carries and stands elsewhere or beside another."""
    if len(draft.stands) == 1 and not any(link.name == WORLD for link in draft.links):
        if IDENTITY_POSE in draft.stands.values():
            return
    elif len(draft.stands) > 1:
        draft.doubts.append(
            f"the links {listed(draft.stands)} hang from nothing; on a fixed base each stands in the world where "
            "the file puts it: hold it there by a fixed joint"
        )
    taken = {joint.name for joint in draft.joints}
    for k, (name, (place, turn)) in enumerate(draft.stands.items()):
        if not any(link.name == WORLD for link in draft.links):
            draft.links.insert(0, Link(WORLD))
        line = next(link.line for link in draft.links if link.name == name)
        weld = Joint(unused(f"{name}_fixed", taken), "fixed", WORLD, name, place, turn, line=line)
        draft.joints.insert(k, weld)


def _trunk(model: Model) -> list[Joint]:
    links, joints = {link.name for link in model.links}, _joints(model)
    names = [_world(model), *(unused(f"trunk_{k}", links) for k in range(1, 6)), model.root]
    return [
        Joint(unused(f"trunk_{k + 1}", joints), kind, names[k], names[k + 1], axis=axis)
        for k, (kind, axis) in enumerate(TRUNK)
    ]


def _on(model: Model, joints: list[Joint]) -> Model:
    """The model on joints that carry its root, each with a link, and its stored configurations with their q."""
    carriers = tuple(Link(joint.parent) for joint in joints)
    below = (0.0,) * 6 if len(joints) > 1 else (0.0,) * 6 + (1.0,)
    keyframes = tuple(replace(key, q=below + key.q) for key in model.keyframes)
    return replace(
        model, links=carriers + model.links, joints=tuple(joints) + model.joints, keyframes=keyframes,
        initial=model.initial and below + model.initial,
    )  # fmt: skip


def _joints(model: Model) -> set[str]:
    return {joint.name for joint in model.joints}


def _world(model: Model) -> str:
    links = {link.name for link in model.links}
    return "world" if "world" not in links else unused("universe", links)
