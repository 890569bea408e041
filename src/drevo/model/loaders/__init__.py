"""From a file to a Model: the format is found by suffix, XML formats by their root element."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import MissingFileError, ModelError, nearest
from ...io import xml
from ...io.files import Files, read_regular_file
from ...io.packages import package
from .. import values
from ..description import Model
from ..draft import Draft, listed
from ..validation import finish
from .solids import check_hulls

XACRO = ".xacro"  # of a macro language that writes URDF
XML_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world", XACRO)
SUFFIXES = (*XML_SUFFIXES, ".json", ".toml")
# root element -> the module of its loader, imported when a file needs it
LOADERS = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}
# what another library's robot has -> the module of its loader; that library is not imported for it
IN_MEMORY = {
    ("body_parentid", "jnt_type"): "mujoco_model",
    ("worldbody", "compile"): "mujoco_model",  # an MjSpec
    ("jointPlacements", "inertias"): "pinocchio_model",
}


def load_model(
    source: object,
    base: str = "fixed",
    gravity: Any = None,
    strict: bool = False,
    roots: Iterable[str | os.PathLike[str]] = (),
    model: str = "",
    hulls: int = 0,
    loops: str | os.PathLike[str] | None = None,
) -> Model:
    """The Model that a source describes, on a base: "fixed", "floating" or "trunk".

    source: the path of a file, XML as text, an open file, a mujoco.MjSpec or MjModel, a pinocchio.Model. `model`
    names one of several in a file. `hulls`: meshes touch by so many support points. `loops`: a file of loops,
    couplings and tendons that stands beside it.
    What cannot be computed or is ambiguous is refused with a ModelError that holds every problem; what is
    doubtful, or acts on the motion and is not read, gives one DrevoWarning, or with `strict` a ModelError.
    `gravity` is the file's, (0, 0, -9.81) where it has none, unless another is given. Of other files only those
    in `roots` are opened (`drevo.io.files.Files` says which these are where none are declared).
    """
    where = source_name(source)
    down = None if gravity is None else values.gravity_vector(gravity)
    try:
        draft = read_draft(source, where, [values.path(root) for root in roots], model, check_hulls(hulls))
        if loops is not None:
            import_module("drevo.model.loaders.native").read_beside(draft, values.path(loops))
        draft.gravity = draft.gravity if down is None else down
        return finish(draft, base, strict)
    except ModelError as error:
        if str(error).startswith((where, values.NO_PATH)):
            raise
        placed = ModelError(f"{where}: {error}")
        placed.problems = error.problems
        raise placed from None


def is_path(source: object) -> bool:
    """True if something is the path of a file or the name of a robot, and not XML itself."""
    return isinstance(source, (str, os.PathLike)) and not _is_xml(source)


def _is_xml(source: object) -> bool:
    text = source[:1000].decode("utf-8", "replace") if isinstance(source, bytes) else source
    return isinstance(text, str) and text[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def source_name(source: object) -> str:
    """The name of a source in a sentence."""
    if is_path(source):
        return (
            values.path(source).encode("utf-8", "backslashreplace").decode()
        )  # it may hold bytes that are no text
    name = getattr(source, "name", "")
    if hasattr(source, "read") and isinstance(name, str) and name:
        return name
    return "the text" if _is_xml(source) else f"the {type(source).__name__}"


def read_draft(source: object, where: str, roots: list[str], model: str, hulls: int = 0) -> Draft:
    """The draft of a source of any kind, not judged; `where` is what `source_name` calls it."""
    name = ""
    if is_path(source):
        name = values.path(source)
        suffix = Path(name).suffix.lower()
        data = _read(name, suffix)
        data = _expanded(name, roots) if suffix == XACRO else data
    elif _is_xml(source) or hasattr(source, "read"):
        data = _held(source)
        if os.path.isfile(where):
            name = where
        suffix = Path(where).suffix.lower()
        suffix = suffix if suffix in SUFFIXES else _guess(data)
    else:
        return _of_name(_in_memory(source, hulls), model)
    return _of_name(_draft(data, suffix, where if name else "", Files(name, roots, hulls), model), model)


def _held(source: Any) -> bytes:
    """The bytes of a text or of an open file, one more than allowed at most."""
    try:
        data = source.read(xml.MAX_XML_BYTES + 1) if hasattr(source, "read") else source
        return data.encode() if isinstance(data, str) else bytes(memoryview(data))
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"cannot be read ({error}); give a file of text or bytes, open for reading") from None


def _expanded(path: str, roots: list[str]) -> bytes:
    """The XML from a xacro file. The file is a program: its expressions are evaluated, and it reads what it names.

    Packages are looked for in the roots and above the file.
    """
    xacrodoc, given = package("xacrodoc", "a xacro file"), read_regular_file(path, xml.MAX_XML_BYTES)
    try:
        if roots:
            xacrodoc.packages.look_in(list(roots))
        if b"$(find-pkg-share " in given:  # as ROS 2 calls it, which xacro knows by its old name only
            xacrodoc.packages.walk_up_from(path)
            ros1_text = given.decode("utf-8").replace("$(find-pkg-share ", "$(find ")
            document = xacrodoc.XacroDoc.from_string(ros1_text, rootdir=Path(path).parent)
        else:
            document = xacrodoc.XacroDoc.from_file(path)
        text: str = document.to_urdf_string()
    except Exception as error:  # whatever the program meets
        raise ModelError(f"xacro cannot expand it: {error or type(error).__name__}") from None
    return text.encode()


def _guess(data: bytes) -> str:
    """The format of what has no name."""
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return ".json" if start.startswith(b"{") else ".xml" if start.startswith(b"<") else ".toml"


def _in_memory(source: object, hulls: int) -> Draft:
    """Another library's own object."""
    for names, loader in IN_MEMORY.items():
        if all(hasattr(source, name) for name in names):
            draft: Draft = import_module(f"drevo.model.loaders.{loader}").draft_of(source, Files(hulls=hulls))
            return draft
    values.path(source)  # refuses it
    raise AssertionError


def _of_name(draft: Draft, model: str) -> Draft:
    if model and draft.name != model:
        raise ModelError(f"there is no model {model!r} in it, but {draft.name!r}; correct the name")
    return draft


def _draft(data: bytes, suffix: str, source: str, files: Files, model: str) -> Draft:
    if suffix not in XML_SUFFIXES:
        native = import_module("drevo.model.loaders.native")
        native_draft: Draft = native.draft_of(native.read_plain(data, suffix), source)
        return native_draft
    doubts: list[str] = []
    root = xml.parse(data, doubts.append)
    if root.tag not in LOADERS:
        known = " or ".join(f"<{tag}>" for tag in LOADERS)
        raise ModelError(f"the root element is <{root.tag[:40]}> on line {root.line}; {known} is needed")
    more = {"model": model} if root.tag == "sdf" else {}
    draft: Draft = import_module(f"drevo.model.loaders.{LOADERS[root.tag]}").draft_of(root, source, files, **more)
    if files.folder and root.tag != "mujoco":  # whose meshes have names that stand for files
        at_hand = import_module("drevo.model.loaders.sdf.include").at_hand
        draft.note_missing_meshes(lambda uri: None if at_hand(uri, files) else uri)
    draft.doubts[:0] = doubts
    return draft


def _read(path: str, suffix: str) -> bytes:
    """The bytes of a robot file."""
    if os.path.isdir(path):
        raise ModelError(f"a directory{_robots_in(path)}; name a robot file")
    if not os.path.lexists(path):
        raise MissingFileError(f"there is no such file{_meant(path)}")
    if suffix not in SUFFIXES:
        raise ModelError(f"a robot file ends in {', '.join(SUFFIXES)}, this one in {suffix or 'nothing'!r}")
    return read_regular_file(path, xml.MAX_XML_BYTES)


def _robots_in(folder: str) -> str:
    """The robot files of a folder, as the middle of a sentence."""
    robot_files = [name for name in _names(folder) if name.lower().endswith(SUFFIXES)]
    return f" with {listed(robot_files)}" if robot_files else " without a robot file"


def _meant(path: str) -> str:
    """The file in the same folder that was probably meant, or the part of the path that is missing."""
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        return f": there is no folder {folder!r}"
    close = nearest(name, _names(folder or "."))
    return f" (did you mean {os.path.join(folder, close)!r}?)" if close else ""


def _names(folder: str, most: int = 2000) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry, _ in zip(entries, range(most)))
    except OSError:
        return []
