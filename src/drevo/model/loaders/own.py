"""Elements of Drevo's own in URDF and SDF, which other readers pass over.

Gravity, contact points and free joints as elements, and what other formats have no words for at all (loops,
couplings, tendons, what touches and drives) as JSON, field by field as in Drevo's own files.
"""

from __future__ import annotations

import json

from ...errors import ModelError
from ...io.xml import Element, Reader
from ..description import ORIGIN, ContactPoint, Model
from ..draft import STANDARD_GRAVITY as USUAL
from ..draft import Draft
from . import native
from .primitives import geoms_of_shapes
from .writing import element, text_element

NAMESPACE = "drevo"
GRAVITY, CONTACT, JOINT = "drevo:gravity", "drevo:contact_point", "drevo:joint"
KINEMATIC = "drevo:kinematic"  # no link has an inertia, which SDFormat takes for 1 kg
LISTS = (
    *("loops", "couplings", "tendons", "tendon_couplings", "exclusions"),
    *("geoms", "pairs", "softness", "actuators", "sensors"),
)
TAGS = (GRAVITY, CONTACT, JOINT, KINEMATIC, *(f"drevo:{key}" for key in LISTS))


def own_elements(model: Model, gravity: bool) -> list[str]:
    """The elements as lines; gravity: with it, where it is not the usual one."""
    lines = element(GRAVITY, xyz=model.gravity) if gravity and model.gravity != USUAL else []
    for contact in model.contacts:
        lines += element(CONTACT, link=contact.link, xyz=contact.point)
    implied = list(model.geoms) == geoms_of_shapes(model.links, {})
    for key in LISTS:
        if key == "geoms" and implied:
            continue
        lines += [line for x in getattr(model, key) for line in text_element(f"drevo:{key}", native.as_json(x))]
    return lines


def read_own(draft: Draft, root: Element) -> None:
    """Reads the elements of Drevo in a robot's element."""
    reader = Reader(draft.problems.append, draft.name)
    for found in root.all(GRAVITY):
        x, y, z = reader.vector(found, "xyz", draft.gravity)
        draft.gravity = (x, y, z)
    for found in root.all(CONTACT):
        x, y, z = reader.vector(found, "xyz", ORIGIN)
        draft.contacts.append(ContactPoint(found.get("link"), (x, y, z)))
    for key in LISTS:
        for found in root.all(f"drevo:{key}"):
            try:
                plain = json.loads(found.text)
            except (ValueError, RecursionError) as error:
                raise ModelError(f"<{found.tag}> on line {found.line} is not valid JSON: {error}") from None
            getattr(draft, key).extend(native.parts_of(key, [plain], f"<{found.tag}> on line {found.line}", draft))
