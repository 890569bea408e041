"""A plant as an FMU of FMI 3.0, for co-simulation and model exchange (Modelica Association 2022)."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..documents.sequence.names import plain
from ..errors import EmitError
from ..io.packages import VERSION
from .equations import Plant, Variable

INTEGRATOR_STEP = Variable("integrator_step", "parameter", "s", 1e-3, "longest step within co-simulation")
UNIT_EXPONENTS: Mapping[str, dict[str, int]] = {  # exponents of the base units
    "rad": {"rad": 1}, "rad/s": {"rad": 1, "s": -1}, "rad/s2": {"rad": 1, "s": -2}, "m": {"m": 1},
    "m/s": {"m": 1, "s": -1}, "m/s2": {"m": 1, "s": -2}, "1/s": {"s": -1}, "s": {"s": 1}, "kg": {"kg": 1},
    "kg.m2": {"kg": 1, "m": 2}, "N": {"kg": 1, "m": 1, "s": -2}, "N.m": {"kg": 1, "m": 2, "s": -2},
}  # fmt: skip
LIBRARIES = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}
PROCESSORS_OF_FMI = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
ARCHIVE_TIME = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal robots give equal archives


def fmu(plant: Plant, name: str) -> tuple[bytes, str]:
    """The archive, and how it is run: description, source and, with a compiler, a binary for this platform."""
    source = f"{plant.c}{files(__package__).joinpath('fmi3.c').read_text(encoding='utf-8')}"
    token = hashlib.sha256(source.encode()).hexdigest()
    source = source.replace("TOKEN", f'"{token}"')
    contents: dict[str, bytes] = {
        "modelDescription.xml": description(plant, name, token),
        f"sources/{name}.c": source.encode(),
        "sources/buildDescription.xml": _build_description(name),
    }
    system, ending = LIBRARIES.get(sys.platform, (sys.platform, ".so"))
    machine = PROCESSORS_OF_FMI.get(platform.machine().lower(), platform.machine().lower())
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
    link = f"run: fmpy simulate {name}.fmu (pip install fmpy)"
    if compiler is None:
        link = "there is no C compiler, so it holds sources alone: fmpy compile makes the binary"
    else:
        contents[f"binaries/{machine}-{system}/{name}{ending}"] = _binary(compiler, source, ending)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in contents.items():
            archive.writestr(zipfile.ZipInfo(file, ARCHIVE_TIME), content, zipfile.ZIP_DEFLATED)
    return out.getvalue(), link


def _binary(compiler: str, source: str, ending: str) -> bytes:
    """The shared library of a source."""
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder, "plant.c"), Path(folder, f"plant{ending}")
        path.write_text(source, encoding="utf-8")
        options = ["-std=c99", "-O2", "-ffp-contract=off", "-fvisibility=hidden", "-shared"]
        options += [] if sys.platform == "win32" else ["-fPIC"]
        done = subprocess.run(
            [compiler, *options, str(path), "-o", str(library), "-lm"], capture_output=True, text=True
        )
        if done.returncode:
            raise EmitError(f"export: {compiler} refused the FMU's source: {done.stderr.strip()[:300]}")
        return library.read_bytes()


def description(plant: Plant, name: str, token: str) -> bytes:
    """modelDescription.xml: a value reference is the place of a variable in the array of the source."""
    every = [*plant.variables, INTEGRATOR_STEP]
    flat = all(re.fullmatch(r"(der\()?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\[\d+\])?\)?", x.name) for x in every)
    root = Element(
        "fmiModelDescription", fmiVersion="3.0", modelName=plain(plant.robot), instantiationToken=token,
        description=f"Forward dynamics of {plain(plant.robot)}: torques in, motion out",
        generationTool=f"Drevo {VERSION}", variableNamingConvention="structured" if flat else "flat",
    )  # fmt: skip
    able = {"modelIdentifier": name, "canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
    SubElement(root, "ModelExchange", able)
    SubElement(root, "CoSimulation", able | {"canHandleVariableCommunicationStepSize": "true"})
    units = SubElement(root, "UnitDefinitions")
    for unit in sorted({_unit(x.unit) for x in every} & UNIT_EXPONENTS.keys()):
        SubElement(
            SubElement(units, "Unit", name=unit), "BaseUnit", {k: str(n) for k, n in UNIT_EXPONENTS[unit].items()}
        )
    SubElement(root, "DefaultExperiment", startTime="0", stopTime="1")
    variables = SubElement(root, "ModelVariables")
    independent = {"name": "time", "valueReference": "0", "causality": "independent", "variability": "continuous"}
    SubElement(variables, "Float64", independent | {"unit": "s"})
    states = len(plant.of("state"))
    first = 1 + len(plant.of("input"))  # the reference of the first state
    for k, x in enumerate(every, 1):
        SubElement(variables, "Float64", _attributes(x, k, states))
    structure = SubElement(root, "ModelStructure")
    outputs = [k for k, x in enumerate(every, 1) if x.role in ("state", "control") or x.name.endswith(".a")]
    for tag, references in (
        ("Output", outputs),
        ("ContinuousStateDerivative", range(first + states, first + 2 * states)),
        ("InitialUnknown", (k for k, x in enumerate(every, 1) if x.role in ("derivative", "control"))),
    ):
        for k in references:
            SubElement(structure, tag, valueReference=str(k))
    indent(root)
    return bytes(tostring(root, "utf-8", xml_declaration=True))


def _attributes(x: Variable, reference: int, states: int) -> dict[str, str]:
    """Attributes of a variable; the derivative of a state stands `states` places behind it."""
    kind = {
        "input": {"causality": "input", "start": repr(x.start)},
        "state": {"causality": "output", "initial": "exact", "start": repr(x.start)},
        "derivative": {
            "causality": "output" if x.name.endswith(".a") else "local", "initial": "calculated",
            "derivative": str(reference - states),
        },
        "control": {"causality": "output", "initial": "calculated"},
        "parameter": {"causality": "parameter", "variability": "tunable", "start": repr(x.start)},
    }[x.role]  # fmt: skip
    known = {"unit": unit} if (unit := _unit(x.unit)) in UNIT_EXPONENTS else {}
    named = {"name": plain(x.name), "valueReference": str(reference), "description": plain(x.about)}
    return named | {"variability": "continuous"} | kind | known


def _unit(text: str) -> str:
    """A unit as FMI writes it: N.m, rad/s2."""
    return text.replace(" ", ".").replace("²", "2")


def _build_description(name: str) -> bytes:
    """sources/buildDescription.xml, for importers that compile the source."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    built = SubElement(root, "BuildConfiguration", modelIdentifier=name)
    SubElement(SubElement(built, "SourceFileSet", language="C99"), "SourceFile", name=f"{name}.c")
    return bytes(tostring(root, "utf-8", xml_declaration=True))
