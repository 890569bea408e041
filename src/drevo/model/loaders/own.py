"""Elements of Drevo's own in URDF and SDF, which other readers pass over: gravity, contact points, free joints."""

from __future__ import annotations

from collections.abc import Iterable

from drevo.io.xml import Element, Reader
from drevo.model.description import ORIGIN, ContactPoint, Vec3
from drevo.model.draft import Draft
from drevo.model.loaders.writing import element

NAMESPACE = "drevo"
GRAVITY, CONTACT, JOINT = "drevo:gravity", "drevo:contact_point", "drevo:joint"
TAGS = (GRAVITY, CONTACT, JOINT)


def own_elements(gravity: Vec3 | None, contacts: Iterable[ContactPoint]) -> list[str]:
    """The elements as lines."""
    lines = element(GRAVITY, xyz=gravity) if gravity else []
    for contact in contacts:
        lines += element(CONTACT, link=contact.link, xyz=contact.point)
    return lines


def read_own(draft: Draft, root: Element) -> None:
    """Gravity and contact points of a robot's element."""
    reader = Reader(draft.problems.append, draft.name)
    for found in root.all(GRAVITY):
        x, y, z = reader.vector(found, "xyz", draft.gravity)
        draft.gravity = (x, y, z)
    for found in root.all(CONTACT):
        x, y, z = reader.vector(found, "xyz", ORIGIN)
        draft.contacts.append(ContactPoint(found.get("link"), (x, y, z)))
