"""check: one look at a description, right or wrong, and all that there is to say about it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..errors import ModelError
from ..io.files import Files, read_regular_file
from ..io.xml import MAX_XML_BYTES
from ..model.description import Model
from ..model.draft import Draft
from ..model.loaders import is_path, read_draft, source_name
from ..robots.loading import file_or_model
from .findings import Findings
from .repair import fixed
from .rules import findings_about
from .subject import Subject, subject_of_bytes


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
    found = findings_about(subject_of_model(model) if isinstance(model, Model) else _subject(robot, roots))
    return found if fix is None else fixed(found, fix)


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
