"""An MJCF file before its bodies: includes and copies in their places, settings, options, default classes.

Numbers of MJCF that say how softly something holds: friction, solref, solimp; of joints, and the steps.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from ....errors import ModelError
from ....io import xml
from ....io.files import Files
from ....io.xml import Budget, Element, Reader
from ...contact import DEFAULT_FRICTION, SOLIMP, SOLREF, JointSoftness, Solimp, Solref, Stepping
from ...description import ORIGIN
from ...draft import STANDARD_GRAVITY, Draft
from ..schema import nonzero
from .defaults import read_defaults
from .expand import expand, include
from .file import File, Flags, from_euler, read_some, read_vector
from .meshes import Meshes
from .schema import check_schema

# of <flag>: what the laws of contact heed
FLAGS = ("contact", "limit", "frictionloss", "equality", "filterparent", "refsafe", "eulerdamp", "clampctrl")
ENABLED = ("diagexact",)


def read_whole(reader: Reader, element: Element, attribute: str, default: int) -> int:
    return int(reader.scalar(element, attribute, float(default), 2.0**31))


def read_friction(reader: Reader, element: Element) -> tuple[float, float, float]:
    a, b, c = read_some(reader, element, "friction", DEFAULT_FRICTION)
    return a, b, c


def read_solref(reader: Reader, element: Element, name: str = "solref", usual: Solref = SOLREF) -> Solref:
    """The two numbers of a solref attribute."""
    a, b = read_some(reader, element, name, usual, xml.ANY)
    return a, b


def read_solimp(reader: Reader, element: Element, name: str = "solimp") -> Solimp:
    a, b, c, d, e = read_some(reader, element, name, SOLIMP, xml.ANY)
    return a, b, c, d, e


def read_softness(reader: Reader, element: Element, name: str, limit_angle: float | None) -> JointSoftness | None:
    """Reads the softness of a joint's limits and dry friction, and a ball's limit; None where all is as usual."""
    softness = JointSoftness(name, **limit_and_friction(reader, element), limit_angle=limit_angle)
    return None if softness == JointSoftness(name) else softness


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
        wind=read_vector(reader, option, "wind", ORIGIN) if file.flags.passive else ORIGIN,
    )


COMPILER_WORDS = {  # of <compiler>, each one of a few
    "angle": ("degree", "radian"),
    "inertiafromgeom": ("auto", "true", "false"),
    "balanceinertia": ("true", "false"),
    "autolimits": ("true", "false"),
}
MEDIUM = ("density", "viscosity")  # of <option>: something flows around the bodies
MAX_ATTACH_DEPTH = 8  # a model that attaches a model that attaches ...


def read_file(draft: Draft, root: Element, files: Files, source: str, outer: File | None = None) -> File:
    """Reads what holds for the bodies of a file, which are then in their places; `outer` attaches it."""
    budget = outer.budget if outer else Budget()
    depth = outer.depth + 1 if outer else 0
    folder = os.path.dirname(os.path.abspath(source)) if source else ""
    include(root, folder, source, files, budget)
    flags = outer.flags if outer else Flags(root.all("option"))
    file = File(draft, root, _merged(root, "compiler"), flags, budget=budget, depth=depth)
    if outer:
        file.names, file.taken, file.medium = outer.names, outer.taken, outer.medium
        file.geom_names = outer.geom_names
        file.springdampers, file.lifting = outer.springdampers, outer.lifting
    else:
        _read_options(file)
    _check_settings(file)
    for element in root.all("default"):
        read_defaults(file.classes, element)
    check_schema(file)
    assets = [element for section in root.all("asset") for element in section.children]
    _read_assets(file, assets, files, folder)
    models = {name: model.root for name, model in file.models.items()}
    expand(root, models, partial(from_euler, file), draft.problems.append, budget)
    for element in root.walk():
        if not outer and element.tag in ("body", "joint", "freejoint") and element.get("name"):
            file.names.add(element.get("name"))  # they come before names that we make up
        elif not outer and element.tag == "geom":
            file.geom_names.add(element.get("name"))
    return file


def _read_assets(file: File, assets: list[Element], files: Files, folder: str) -> None:
    """Meshes, and the models that <attach> names."""
    compiler = file.compiler
    place = os.path.join(folder, compiler.get("meshdir") or compiler.get("assetdir")) if folder else ""
    meshes = [file.attributes(element, "") for element in assets if element.tag == "mesh"]
    file.meshes = Meshes(meshes, files, place, compiler.get("strippath") == "true")
    for element in assets:
        if element.tag == "model":
            model = _model(file, element, files, folder)
            file.models[element.get("name") or model.root.get("model")] = model


def _model(file: File, element: Element, files: Files, folder: str) -> File:
    label = f"<model> on line {element.line}"
    try:
        if file.depth >= MAX_ATTACH_DEPTH:
            raise ModelError(f"it is attached more than {MAX_ATTACH_DEPTH} deep; take it out")
        path = files.find(element.get("file"), (folder,))
        root = xml.parse(
            files.read(path, xml.MAX_XML_BYTES, xml.WEIGHT), file=os.path.basename(path), budget=file.budget
        )
        if root.tag != "mujoco":
            raise ModelError(f"it begins with <{root.tag[:40]}>; <mujoco> is needed")
    except ModelError as error:
        raise ModelError(f"{label}: {error}") from None
    return read_file(file.draft, root, files, path, file)


def _merged(root: Element, tag: str) -> Element:
    """All elements of a tag as one: what a later one says holds."""
    elements = root.all(tag)
    attributes = {key: value for element in elements for key, value in element.attributes.items()}
    return Element(tag, attributes, elements[0].line if elements else root.line)


def _read_options(file: File) -> None:
    """Gravity, and what the medium does."""
    option, draft = _merged(file.root, "option"), file.draft
    if "gravity" not in file.flags.off:
        draft.gravity = read_vector(Reader(draft.problems.append, "option"), option, "gravity", STANDARD_GRAVITY)
    else:
        draft.gravity = ORIGIN
    read_stepping(file, option)
    file.medium = file.flags.passive and any(nonzero(option.get(key, "0")) for key in MEDIUM)
    for key in (*MEDIUM, "wind") if file.medium else ():
        if nonzero(option.get(key, "0")):
            draft.ignore(key, f"<option> (line {option.line})")


def _check_settings(file: File) -> None:
    problems, compiler = file.draft.problems, file.compiler
    file.groups = Reader(problems.append, "compiler").vector(compiler, "inertiagrouprange", (0.0, 5.0))
    if compiler.get("coordinate", "local") != "local":
        problems.append("compiler: coordinate='global' is not read; save the model with local coordinates")
    for setting, words in COMPILER_WORDS.items():
        if compiler.get(setting, words[0]) not in words:
            problems.append(f"compiler: {setting}={compiler.get(setting)[:20]!r} is none of {', '.join(words)}")
    sequence = compiler.get("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        problems.append(f"compiler: eulerseq={sequence[:20]!r} is not three of x, y, z, X, Y, Z")
