"""Robot files that installed packages hold, by name. Nothing is imported, executed or downloaded.

`example-robot-data` brings its files along; `robot_descriptions` brings modules that say where a file stands in
a folder that it downloads to: these are read as text, and only what is there already is found.
"""

from __future__ import annotations

import ast
import os
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from ..errors import ModelError

# what the packages' own loaders mean by a name that no file or folder has alone
USUAL_VARIANTS = {"talos": "talos_reduced", "anymal": "anymal_b", "g1": "g1_29dof_rev_1_0", "icub": "icub_reduced"}
USUAL_VARIANTS |= {arm: f"{arm}_robot" for arm in ("ur3", "ur5", "ur10")}
PACKAGE_ENDINGS = ("_description", "_data", "_simple")
GET = "many robots (panda, go2, talos, ...) come with pip install example-robot-data"


def find(name: str) -> Path | None:
    """The file of a robot by the name of its file, its folder or its description; None where no package has it.

    Raises ModelError where the name could be several, or where its package has yet to download it.
    """
    wanted = _plain(name)
    files = _example_robot_data()
    for key in (USUAL_VARIANTS.get(wanted, wanted), wanted):
        files_of = [f for f in files if _plain(f.stem) == key] or [f for f in files if _folder(f) == key]
        files_of = [f for f in files_of if _plain(f.stem) == _folder(f)] or files_of
        files_of = [f for f in files_of if all(other.stem.startswith(f.stem) for other in files_of)] or files_of
        if len(files_of) == 1:
            return files_of[0]
        if files_of:
            several = ", ".join(sorted({f.stem for f in files_of})) if len({f.stem for f in files_of}) > 1 else ""
            names = several or ", ".join(_folder(f) for f in files_of)
            raise ModelError(f"{name!r} is several robots of example-robot-data; name one of {names}")
    return _robot_descriptions(name, wanted)


def names() -> list[str]:
    """The names of all robots of installed packages."""
    stems = {f.stem for f in _example_robot_data()} | {_folder(f) for f in _example_robot_data()}
    modules = _distribution("robot_descriptions")
    stems |= {f.stem for f in _modules(modules)} if modules else set()
    return sorted(stems | set(USUAL_VARIANTS)) if stems else []


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _folder(file: Path) -> str:
    """The name of the folder of a robot's package, without its endings: panda_description is panda."""
    name = _plain(file.parts[file.parts.index("robots") + 1])
    for ending in PACKAGE_ENDINGS:
        name = name.removesuffix(ending)
    return name


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _example_robot_data() -> list[Path]:
    package = _distribution("example-robot-data")
    files = package.files if package else None
    wanted = [f for f in files or () if f.suffix == ".urdf" and "robots" in f.parts]
    return [Path(str(f.locate())) for f in wanted]


# --- robot_descriptions ------------------------------------------------------------------------------------


def _modules(package: Distribution) -> list[Path]:
    return [
        Path(str(f.locate())) for f in package.files or () if f.stem.endswith("_description") and len(f.parts) == 2
    ]


def _robot_descriptions(name: str, wanted: str) -> Path | None:
    package = _distribution("robot_descriptions")
    modules = {f.stem: f for f in _modules(package)} if package else {}
    for stem in (wanted, f"{wanted}_description", f"{wanted}_mj_description"):
        if stem in modules:
            path = _path_of(modules[stem])
            if path is None or not path.is_file():
                raise ModelError(
                    f"robot_descriptions knows {name!r} and has not downloaded it as a URDF or MJCF file yet: "
                    f"python -m robot_descriptions pull {stem}"
                )
            return path
    return None


def _path_of(module: Path) -> Path | None:
    """URDF_PATH or MJCF_PATH of a description: paths joined of literals and of names assigned before."""
    cache = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    known: dict[str, str] = {}
    for statement in ast.parse(module.read_text(encoding="utf-8")).body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        parts = [_part(argument, known) for argument in call.args]
        if not isinstance(target, ast.Name) or not parts or None in parts:
            continue
        if ast.unparse(call.func).endswith("clone_to_cache"):
            folder = _repository(module.with_name("_repositories.py"), str(parts[0]))
            known[target.id] = os.path.join(os.path.expanduser(cache), folder)
        elif ast.unparse(call.func).endswith("path.join"):
            known[target.id] = os.path.join(*map(str, parts))
    path = known.get("URDF_PATH") or known.get("MJCF_PATH")
    return Path(path) if path else None


def _part(argument: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    return known.get(argument.id) if isinstance(argument, ast.Name) else None


def _repository(table: Path, name: str) -> str:
    """The folder of a repository in the cache, from the package's table; its name where the table is silent."""
    for node in ast.walk(ast.parse(table.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Call):
                    given = {k.arg: k.value for k in value.keywords}
                    folder = given.get("cache_path")
                    return str(folder.value) if isinstance(folder, ast.Constant) else name
    return name
