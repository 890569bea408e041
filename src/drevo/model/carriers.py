"""Links that stand apart from their joints, told to those who only know links in the frames of their joints."""

from __future__ import annotations

from dataclasses import replace

from drevo.model.description import IDENTITY, ORIGIN, Joint, Link, Model


def with_carriers(model: Model) -> Model:
    """The same robot with a massless link in the frame of every joint whose child stands apart from it."""
    if not any(joint.apart for joint in model.joints):
        return model
    links, names, joints = [model.links[0]], {link.name for link in model.links}, []
    taken = {joint.name for joint in model.joints}
    of = {link.name: link for link in model.links}
    for joint in model.joints:
        if joint.apart:
            carrier, weld = _new(f"{joint.child}_carrier", names), _new(f"{joint.name}_fixed", taken)
            links.append(Link(carrier))
            joints.append(replace(joint, child=carrier, child_origin=ORIGIN, child_rotation=IDENTITY))
            joint = Joint(weld, "fixed", carrier, joint.child, joint.child_origin, joint.child_rotation)
        links.append(of[joint.child])
        joints.append(joint)
    return replace(model, links=tuple(links), joints=tuple(joints))


def _new(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
