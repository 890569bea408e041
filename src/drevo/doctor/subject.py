"""The subject of an examination: a description as it was read, and what its file holds besides."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property

from ..errors import DrevoError
from ..io import xml
from ..io.files import Files
from ..io.xml import Element
from ..model.draft import Draft
from .geometry import Extent, Geometry


@dataclass
class Subject:
    """A draft that nothing has mended yet, and the elements of its file, None where it comes from elsewhere."""

    draft: Draft
    root: Element | None = None
    files: Files = field(default_factory=Files)
    data: bytes = b""

    @cached_property
    def extents(self) -> list[Extent | None]:
        """The geometry of every link; meshes of MJCF stand elsewhere than their files say, and are left out."""
        geometry = Geometry(self.files, self.root is None or self.root.tag != "mujoco")
        return [geometry.extent(link.shapes) for link in self.draft.links]

    def drafted(self) -> Draft:
        """The draft once more, for what changes it."""
        made = copy(self.draft)
        for f in fields(made):
            value = getattr(made, f.name)
            if isinstance(value, (list, dict)):
                setattr(made, f.name, copy(value))
        return made


def subject_of_bytes(data: bytes, draft: Draft, files: Files) -> Subject:
    """A description with the elements of its file; without them where the file is no XML."""
    try:
        root = xml.parse(data) if data.lstrip()[:1] in (b"<", b"\xef") else None
    except DrevoError:
        root = None
    return Subject(draft, root, files, data)
