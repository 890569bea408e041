"""Numbers of MJCF that say how softly something holds: friction, solref, solimp; of joints, and the steps."""

from __future__ import annotations

from typing import Any

from ....io import xml
from ....io.xml import Element, Reader
from ...contact import DEFAULT_FRICTION, SOLIMP, SOLREF, JointSoftness, Solimp, Solref, Stepping
from .file import File, read_some

# of <flag>: what the laws of contact heed
FLAGS = ("contact", "limit", "frictionloss", "equality", "filterparent", "refsafe", "eulerdamp", "clampctrl")
ENABLED = ("diagexact",)


def read_whole(reader: Reader, element: Element, attribute: str, default: int) -> int:
    return int(reader.scalar(element, attribute, float(default), 2.0**31))


def read_friction(reader: Reader, element: Element) -> tuple[float, float, float]:
    a, b, c = read_some(reader, element, "friction", DEFAULT_FRICTION)
    return a, b, c


def read_solref(reader: Reader, element: Element, name: str = "solref", usual: Solref = SOLREF) -> Solref:
    a, b = read_some(reader, element, name, usual, xml.ANY)
    return a, b


def read_solimp(reader: Reader, element: Element, name: str = "solimp") -> Solimp:
    a, b, c, d, e = read_some(reader, element, name, SOLIMP, xml.ANY)
    return a, b, c, d, e


def read_softness(reader: Reader, element: Element, name: str, limit_angle: float | None) -> JointSoftness | None:
    """Reads the softness of a joint's limits and dry friction, and a ball's limit; None where all is as usual."""
    found = JointSoftness(name, **limit_and_friction(reader, element), limit_angle=limit_angle)
    return None if found == JointSoftness(name) else found


def limit_and_friction(reader: Reader, element: Element) -> dict[str, Any]:
    """Reads the softness of the limits and the dry friction of a joint or a tendon."""
    return {
        "limit_solref": read_solref(reader, element, "solreflimit"),
        "limit_solimp": read_solimp(reader, element, "solimplimit"),
        "limit_margin": reader.scalar(element, "margin", 0.0),
        "friction_solref": read_solref(reader, element, "solreffriction"),
        "friction_solimp": read_solimp(reader, element, "solimpfriction"),
    }


def _override(reader: Reader, option: Element) -> tuple[float, ...]:
    """The values that all contacts have in place of their own: margin, solref, solimp, friction."""
    friction = read_some(reader, option, "o_friction", (1.0, 1.0, 0.005, 0.0001, 0.0001))
    soft = (*read_solref(reader, option, "o_solref"), *read_solimp(reader, option, "o_solimp"))
    return (reader.scalar(option, "o_margin", 0.0), *soft, *friction)


def read_stepping(file: File, option: Element) -> None:
    """<option>: the step, the integrator, the cone, and the flags that are off."""
    reader, integrator = Reader(file.draft.problems.append, "option"), option.get("integrator", "Euler")
    if integrator == "discrete":
        file.draft.ignore("integrator 'discrete'", f"<option> (line {option.line})")
        integrator = "implicitfast"
    file.draft.stepping = Stepping(
        reader.scalar(option, "timestep", 0.002),
        integrator,
        option.get("cone", "pyramidal"),
        reader.scalar(option, "impratio", 1.0),
        tuple(flag for flag in FLAGS if flag in file.flags.off),
        density=reader.scalar(option, "density", 0.0) if file.flags.passive else 0.0,
        viscosity=reader.scalar(option, "viscosity", 0.0) if file.flags.passive else 0.0,
        override=_override(reader, option) if "override" in file.flags.on else (),
        noslip=read_whole(reader, option, "noslip_iterations", 0),
        noslip_tolerance=reader.scalar(option, "noslip_tolerance", 1e-6),
        enabled=tuple(flag for flag in ENABLED if flag in file.flags.on),
    )
