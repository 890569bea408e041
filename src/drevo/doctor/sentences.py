"""Turns errors and warnings from loading a description into findings."""

from __future__ import annotations

import re
from dataclasses import replace

from .findings import Change, Finding, Subject
from .masses import consistent

# words of a sentence -> the kind of the finding, the first that fits
WORDS = (
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
    kind = next((kind for words, kind in WORDS if words in sentence), "structure")
    kind = "doubt" if kind == "structure" and severity != "error" else kind
    found = _ELEMENT.match(sentence)
    where = found[0] if found else s.draft.where
    what, _, remedy = sentence.rpartition("; ")
    what = (what or sentence).removeprefix(where).lstrip(" :")
    change = _change(s, kind, *(found.group(1, 2) if found else ("", "")))
    line = int(found[3]) if found and found[3] else 0
    return Finding(severity, kind, where, what, remedy if _ else "correct it", line, change)


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
