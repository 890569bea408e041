"""Findings of the doctor: the element, what is wrong, what to do, and the change that would mend it.

The subject of an examination: a description as it was read, and what its file holds besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from ..errors import DrevoError, InputError, one_of
from ..io import xml
from ..io.files import Files
from ..io.packages import frame
from ..io.xml import Element
from ..model.draft import Draft
from .geometry import Extent, Geometry

if TYPE_CHECKING:
    from ..model.description import Joint, Link

SEVERITIES = ("error", "warning", "hint")  # cannot be computed or is no body; suspicious; worth a look
# kind -> what it means, in the order in which they are mended
FINDING_KINDS = {
    "names": "two links or two joints of the same name",
    "mass": "a negative mass",
    "unit": "a mass, centre of mass or tensor that is off by a power of ten",
    "moments": "an inertia tensor that is not positive",
    "triangle": "principal moments of inertia that break the triangle inequality",
    "spread": "an inertia tensor larger than any mass within the link's geometry can have",
    "centre": "a centre of mass outside of the box around the link's geometry",
    "no-mass": "an inertia tensor without a mass",
    "twins": "mirrored links, left and right, whose inertias differ",
    "density": "a density outside of 200 to 20,000 kg/m^3",
    "massless": "a joint that moves nothing with a mass",
    "limits": "limits that are crossed",
    "limits-zero": "limits that leave no way to move, or no speed",
    "mimic-cycle": "joints that mimic one another in a circle",
    "mesh": "a mesh file that is not found",
    "effort": "a joint without an effort limit",
    "armature": "a large gear and no armature of the rotor behind it",
    "structure": "anything else that cannot be computed",
    "doubt": "anything else that is doubtful",
    "unread": "what acts on the motion and is not read",
}


@dataclass(frozen=True)
class Change:
    """One change of a description: what (see `edits.writers`), of which link or joint, to which value."""

    what: str
    index: int
    value: Any = None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or suspicious: of which element, what, and what to do about it.

    severity: "error" (cannot be computed), "warning" (suspicious), "hint" (to look at); kind: of `FINDING_KINDS`;
    line: in the file, 0 where there is none; change: what `fix` would do, None where only a person can tell.
    """

    severity: str
    kind: str
    element: str
    message: str
    remedy: str
    line: int = 0
    change: Change | None = None

    def __str__(self) -> str:
        return f"{self.severity} [{self.kind}] {self.element}: {self.message}; {self.remedy}"

    def row(self) -> dict[str, Any]:
        """The fields as plain values, for tables and JSON."""
        shown = {k: getattr(self, k) for k in ("severity", "kind", "element", "line", "message", "remedy")}
        return {**shown, "fixable": self.change is not None}


@dataclass(frozen=True)
class Findings:
    """All findings about one description, the gravest first.

    changes: sentences about what `fix=` changed on the way to the file that was examined.
    """

    robot: str
    source: str
    found: tuple[Finding, ...] = ()
    changes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def of(self, kind: str) -> list[Finding]:
        """The findings of one kind, a key of `FINDING_KINDS`."""
        one_of("the kind of finding", kind, FINDING_KINDS, InputError)
        return [f for f in self.found if f.kind == kind]

    def sound(self, strict: bool = False) -> bool:
        """No error; with strict no warning either. Hints are none of both."""
        bad = SEVERITIES[: 1 + strict]
        return not any(f.severity in bad for f in self.found)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary of plain values for every finding."""
        return [f.row() for f in self.found]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame, a row for every finding; needs pandas."""
        return frame(self.rows())

    def __repr__(self) -> str:
        counts = [f"{sum(f.severity == s for f in self.found)} {s}s" for s in SEVERITIES]
        return f"<Findings of {self.robot!r}: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.lines())
        return f"<p>{escape(repr(self))}</p><ul>{lines}</ul>"

    def __str__(self) -> str:
        return "\n".join(self.lines()) or f"{self.robot}: nothing to complain about"

    def lines(self) -> list[str]:
        """A line for every finding; those that say the same of several elements share one."""
        same: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for f in self.found:
            same[f.severity, f.kind, f.message, f.remedy].append(f.element)
        return [
            f"{severity:7} {', '.join(places[:4])}{f' and {len(places) - 4} more' * (len(places) > 4)}: "
            f"{sentence}; {remedy} [{kind}]"
            for (severity, kind, sentence, remedy), places in same.items()
        ]


def ranked(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by kind and by line."""
    kinds = list(FINDING_KINDS)
    return tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), kinds.index(f.kind), f.line)))


def of_element(
    severity: str,
    kind: str,
    label: str,
    thing: Link | Joint,
    message: str,
    remedy: str,
    change: Change | None = None,
) -> Finding:
    """A finding about a link or a joint, which `label` calls by name."""
    return Finding(severity, kind, label, message, remedy, int(thing.line), change)


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
        fresh = copy(self.draft)
        for f in fields(fresh):
            value = getattr(fresh, f.name)
            if isinstance(value, (list, dict)):
                setattr(fresh, f.name, copy(value))
        return fresh


def subject_of_bytes(data: bytes, draft: Draft, files: Files) -> Subject:
    """A description with the elements of its file; without them where the file is no XML."""
    try:
        root = xml.parse(data) if data.lstrip()[:1] in (b"<", b"\xef") else None
    except DrevoError:
        root = None
    return Subject(draft, root, files, data)
