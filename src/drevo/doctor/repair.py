"""The file once more, with what can be mended mended, kind by kind, until there is no more to mend.

All rules on one description, right or wrong.

check: one look at a description, right or wrong, and all that there is to say about it.

Turns errors and warnings from loading a description into findings.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any

from ..errors import DrevoWarning, ModelError
from ..io.files import Files, read_regular_file, saving
from ..io.xml import MAX_XML_BYTES, edited
from ..model.description import Model
from ..model.draft import Draft
from ..model.loaders import SUFFIXES, XACRO, is_path, read_draft, source_name
from ..model.regularity import singular
from ..model.validation import finish
from ..robots.loading import file_or_model
from .edits import FileText
from .edits_plain import PlainText
from .findings import FINDING_KINDS, Change, Finding, Findings, Subject, ranked, subject_of_bytes
from .joints import check_joints, check_meshes
from .masses import check_masses, consistent

# words of a sentence -> the kind of the finding, the first that fits
FAULT_WORDS = (
    ("negative mass", "mass"),
    ("negative principal moment", "moments"),
    ("break the triangle inequality", "triangle"),
    ("but no mass", "no-mass"),
    ("limits are crossed", "limits"),
    ("mimic one another", "mimic-cycle"),
    ("mimics itself", "mimic-cycle"),
    ("names must be unique", "names"),
    ("moves only links", "massless"),
    ("without mass", "massless"),
    ("not read, though", "unread"),
)
_ELEMENT = re.compile(r"(?:the )?(link|body|joint)s? '((?:[^'\\]|\\.)*)'(?: \(line (\d+)\))?")
_STRICT = " (refused because strict=True)"


def findings_of(s: Subject, sentence: str, severity: str) -> Finding:
    """One complaint as a finding, with the change that mends it where there is one."""
    sentence = sentence.replace(_STRICT, "")
    kind = next((kind for words, kind in FAULT_WORDS if words in sentence), "structure")
    kind = "doubt" if kind == "structure" and severity != "error" else kind
    match = _ELEMENT.match(sentence)
    where = match[0] if match else s.draft.where
    message, _, remedy = sentence.rpartition("; ")
    message = (message or sentence).removeprefix(where).lstrip(" :")
    change = _change(s, kind, *(match.group(1, 2) if match else ("", "")))
    line = int(match[3]) if match and match[3] else 0
    return Finding(severity, kind, where, message, remedy if _ else "correct it", line, change)


def _change(s: Subject, kind: str, noun: str, name: str) -> Change | None:
    if kind in ("mass", "moments", "triangle"):
        for k, link in enumerate(s.draft.links):
            if link.name == name and link.inertial:
                body = link.inertial
                return Change(
                    "inertial", k, replace(body, mass=-body.mass) if kind == "mass" else consistent(body)
                )
    if kind == "names":
        return _renamed(s, noun, name)
    joints = [k for k, joint in enumerate(s.draft.joints) if joint.name == name]
    if kind in ("limits", "mimic-cycle") and joints:
        return Change(kind, joints[0])
    return None


def _renamed(s: Subject, noun: str, name: str) -> Change | None:
    """Another name for the second of the name; of a link also where a second joint carries it."""
    names = [thing.name for thing in (s.draft.joints if noun == "joint" else s.draft.links)]
    taken = set(names)
    new = next(f"{name}_{k}" for k in range(2, len(names) + 3) if f"{name}_{k}" not in taken)
    second = [k for k, known in enumerate(names) if known == name][1]
    if noun == "joint":
        return Change("joint name", second, new)
    carried = sum(joint.child == name for joint in s.draft.joints)
    closed = carried == 1 and s.root is not None and s.root.tag == "sdf"  # the second joint closes a loop there
    return Change("link name", second, new) if carried == 2 or closed else None


def findings_about(s: Subject) -> Findings:
    """All rules on one subject."""
    findings = [*_loading(s), *check_masses(s), *check_joints(s), *check_meshes(s)]
    return Findings(s.draft.name, s.draft.source, ranked(findings))


def _loading(s: Subject) -> list[Finding]:
    """Findings from loading the description: its errors and warnings."""
    draft = s.drafted()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DrevoWarning)
            model = finish(draft)
    except ModelError as error:
        doubts = [findings_of(s, doubt, "warning") for doubt in draft.doubts]
        return [*(findings_of(s, x, "error") for x in error.problems or (str(error),)), *doubts]
    said = [x for w in caught for x in getattr(w.message, "problems", ())]
    said = [x for x in said if not x.startswith("mesh file ")]  # each has a finding with its line
    return [
        *(findings_of(s, x, "warning") for x in said),
        *(findings_of(s, x, "error") for x in (() if s.draft.kinematic else singular(model))),
    ]


MAX_REPAIR_ROUNDS = 3 * len(FINDING_KINDS)  # each mends one kind; what one uncovers, a later one mends
ENDINGS = tuple(suffix for suffix in SUFFIXES if suffix != XACRO)


def fixed(findings: Findings, path: str | PathLike[str]) -> Findings:
    """The file of the findings mended and written to the path, and what is found then; `check` says more."""
    source = findings.source
    if not os.path.isfile(source) or os.path.splitext(source)[1].lower() not in ENDINGS:
        raise ModelError(
            f"{source or findings.robot}: what is mended is a file ({', '.join(ENDINGS)}), and this robot "
            "came from elsewhere; save it as one first (robot.save, drevo convert)"
        )
    s = _read(read_regular_file(source, MAX_XML_BYTES), source)
    changes: list[str] = []
    for _ in range(MAX_REPAIR_ROUNDS):
        now = _round(s, findings_about(s))
        if not now:
            break
        data, new_changes = now
        changes += new_changes
        s = _read(data, source)
    with saving("a repaired robot", path, (os.path.splitext(source)[1].lower(),)) as file:
        file.write_bytes(s.data)
    return replace(findings_about(s), changes=tuple(changes))


def _round(s: Subject, findings: Findings) -> tuple[bytes, list[str]] | None:
    """The text after one kind of finding is mended, and what changed; None where nothing can be."""
    text: PlainText | FileText = PlainText(s) if s.root is None else FileText(s)
    for kind in FINDING_KINDS:
        edits_made = [x for f in findings.of(kind) if f.change for x in text.edits(f.change)]
        unique = {edit: sentence for edit, sentence in edits_made}
        if unique and (data := edited(s.data, unique)) != s.data:
            return data, list(unique.values())
    return None


def _read(data: bytes, source: str) -> Subject:
    """The subject of a text that stands where the file does, so that what it names is found."""
    files = Files(source)
    draft = read_draft(_Held(data, source), source, [], "")
    return subject_of_bytes(data, draft, files)


class _Held:
    """A file that is open: text in memory under the name of the file."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name

    def read(self, most: int) -> bytes:
        """All of it, at most so many bytes."""
        return self.data[:most]


def check(
    robot: Any, roots: Iterable[str | os.PathLike[str]] = (), fix: str | os.PathLike[str] | None = None
) -> Findings:
    """Everything that is wrong or suspicious about a robot's description, the gravest first.

    robot: a Robot, or what `drevo.load` takes: a path, XML as text, a name. A file is examined as it stands, also
    where it cannot be loaded; a Robot as far as it was read. roots: folders whose files the description may name.
    fix: a path to write the file to again, with what can be mended mended and every other byte as it was; the
    findings are then those of the repaired file, and their `changes` list what differs.
    Raises ModelError where the source cannot be read at all, or not be mended.
    """
    model = robot if isinstance(robot, Model) else getattr(robot, "model", None)
    if not isinstance(model, Model) and is_path(robot):
        robot = file_or_model(robot)
        model = robot if isinstance(robot, Model) else None
    findings = findings_about(subject_of_model(model) if isinstance(model, Model) else _subject(robot, roots))
    return findings if fix is None else fixed(findings, fix)


def subject_of_model(model: Model) -> Subject:
    """A robot that was made or loaded before."""
    joints, links = list(model.joints), list(model.links)
    closures = list(model.loops), list(model.couplings), list(model.contacts)
    draft = Draft(model.name, links, joints, model.gravity, *closures, source=model.source, ordered=True)
    return Subject(draft, files=Files(model.source))


def _subject(source: Any, roots: Iterable[str | os.PathLike[str]]) -> Subject:
    where, folders = source_name(source), [os.fspath(root) for root in roots]
    try:
        if is_path(source):
            draft = read_draft(source, where, folders, "")
            return subject_of_bytes(read_regular_file(where, MAX_XML_BYTES), draft, Files(where, folders))
        data = source.read() if hasattr(source, "read") else source
        draft = read_draft(data, where, folders, "")
    except ModelError as error:
        placed = ModelError(f"{where}: {error}")
        placed.problems = error.problems
        raise placed from None
    data = data.encode() if isinstance(data, str) else data
    return subject_of_bytes(data if isinstance(data, bytes) else b"", draft, Files("", folders))
