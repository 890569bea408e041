"""The file once more, with what can be mended mended, kind by kind, until there is no more to mend."""

from __future__ import annotations

import os
from dataclasses import replace
from os import PathLike

from ..errors import ModelError
from ..io.files import Files, read_regular_file
from ..io.saving import saving
from ..io.xml import MAX_XML_BYTES
from ..io.xml_edit import edited
from ..model.loaders import SUFFIXES, XACRO, read_draft
from .edits import FileText
from .edits_plain import PlainText
from .findings import KINDS, Findings
from .rules import findings_about
from .subject import Subject, subject_of_bytes

ROUNDS = 3 * len(KINDS)  # each mends one kind; what one uncovers, a later one mends
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
    for _ in range(ROUNDS):
        now = _round(s, findings_about(s))
        if not now:
            break
        data, told = now
        changes += told
        s = _read(data, source)
    with saving("a repaired robot", path, (os.path.splitext(source)[1].lower(),)) as file:
        file.write_bytes(s.data)
    return replace(findings_about(s), changes=tuple(changes))


def _round(s: Subject, found: Findings) -> tuple[bytes, list[str]] | None:
    """The text after one kind of finding is mended, and what changed; None where nothing can be."""
    text: PlainText | FileText = PlainText(s) if s.root is None else FileText(s)
    for kind in KINDS:
        told = [x for f in found.of(kind) if f.change for x in text.edits(f.change)]
        unique = {edit: sentence for edit, sentence in told}
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
