"""All rules on one description, right or wrong."""

from __future__ import annotations

import warnings

from ..errors import DrevoWarning, ModelError
from ..model.regularity import singular
from ..model.validation import finish
from .findings import Finding, Findings, ranked
from .joints import check_joints, check_meshes
from .masses import check_masses
from .sentences import findings_of
from .subject import Subject


def findings_about(s: Subject) -> Findings:
    """All rules on one subject."""
    found = [*_loading(s), *check_masses(s), *check_joints(s), *check_meshes(s)]
    return Findings(s.draft.name, s.draft.source, ranked(found))


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
    return [
        *(findings_of(s, x, "warning") for x in said),
        *(findings_of(s, x, "error") for x in (() if s.draft.kinematic else singular(model))),
    ]
