"""The drawing of the house is current; imports go down and in no circle; what the architecture names is there."""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Collection, Container, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Graph = dict[str, set[str]]
Def = ast.FunctionDef | ast.AsyncFunctionDef


def test_the_drawing_is_current() -> None:
    """Where this fails: python tools/house.py."""
    drawn = house.svg()
    assert (ROOT / "docs" / "house.svg").read_text(encoding="utf-8") == drawn
    ET.fromstring(drawn)


def test_no_room_imports_one_above_it_late_or_early() -> None:
    rooms = house.layers()
    for room, below in house.imports().items():
        assert {other for other in below if rooms.index(other) < rooms.index(room)} == set(), room


def test_every_room_is_in_the_house_and_says_what_it_is() -> None:
    rooms = {p.stem for p in house.SOURCES.glob("*.py")} | {
        p.parent.name for p in house.SOURCES.glob("*/__init__.py")
    }
    assert rooms - {"__init__", "__main__"} == set(house.layers())
    assert all(house._about(room) for room in house.layers())


def test_files_that_the_guides_name_exist() -> None:
    for page in ("architecture.md", "extending.md", "one-number.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", text):
            assert (house.SOURCES / name).exists() or (ROOT / name).exists(), f"{page}: {name}"


# -- modules: no circle of any kind ------------------------------------------------------------


@lru_cache(maxsize=1)
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Dotted name -> the package that its relative imports start from, and what it holds."""
    out = {}
    for path in sorted(house.SOURCES.rglob("*.py")):
        parts = ("drevo", *path.relative_to(house.SOURCES).with_suffix("").parts)
        inner = parts[:-1]
        out[".".join(inner if parts[-1] == "__init__" else parts)] = ".".join(inner), house.parsed(path)
    return out


def asked(package: str, tree: ast.Module, known: Container[str]) -> Iterator[str]:
    """Every name that a module imports: at once, late, for types only, or by a string."""
    inside = package.split(".")
    nodes = house.nodes(tree)
    words = {x.value for x in nodes if isinstance(x, ast.Constant) and isinstance(x.value, str)}
    for x in nodes:
        if isinstance(x, ast.Import):
            yield from (name.name for name in x.names)
        elif isinstance(x, ast.ImportFrom):
            base = ".".join(
                [*inside[: len(inside) - x.level + 1], *filter(None, [x.module])] if x.level else [str(x.module)]
            )
            for name in x.names:
                inner = f"{base}.{name.name}"
                yield inner if inner in known else base  # of a package the module, not its face
        elif by_string(x):
            for name in spelt(x.args[0], words) or ():
                dots = len(name) - len(name.lstrip("."))
                yield ".".join([*inside[: len(inside) - dots + 1], name[dots:]]) if dots else name


def by_string(x: ast.AST) -> bool:
    name = getattr(x, "func", None)
    return getattr(name, "attr", getattr(name, "id", "")) in ("import_module", "__import__")


def spelt(x: ast.expr, words: set[str]) -> list[str] | None:
    """The names that an argument of import_module may be; a gap in an f-string may be any string of the file."""
    if isinstance(x, ast.Constant):
        return [str(x.value)]
    if isinstance(x, ast.IfExp):
        return [*(spelt(x.body, words) or ()), *(spelt(x.orelse, words) or ())]
    if isinstance(x, ast.JoinedStr):
        return ["".join(str(p.value) if isinstance(p, ast.Constant) else w for p in x.values) for w in words]
    return None


def graph_of(known: dict[str, tuple[str, ast.Module]]) -> Graph:
    """Module -> modules that it imports in any way."""
    out: Graph = {}
    for name, (package, tree) in known.items():
        found = set(asked(package, tree, known))
        out[name] = {x for x in found if x in known and x != name}
    return out


def cycles(graph: Graph) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []

    def visit(x: str) -> None:
        order[x] = low[x] = len(order)
        stack.append(x)
        for y in sorted(graph[x]):
            if y not in order:
                visit(y)
            if y in stack:
                low[x] = min(low[x], low[y])
        if low[x] == order[x]:
            group = stack[stack.index(x) :]
            del stack[stack.index(x) :]
            if len(group) > 1:
                out.append(sorted(group))

    for x in graph:
        if x not in order:
            visit(x)
    return out


def test_no_cycle_of_any_kind() -> None:
    graph = graph_of(modules())
    assert len(graph) > 200 and "drevo.robots.loading" in graph["drevo"]  # by string, in the table of late names
    assert cycles(graph) == []


# what imports a module by a name that it is given, and why that is no import of this package
BY_NAME = {
    "drevo.codegen.store.memo": "waits for a module that another thread is importing",
    "drevo.io.packages": "packages of others, where they are needed",
}


def test_names_of_modules_stand_where_they_are_imported() -> None:
    found = set()
    for name, (_, tree) in modules().items():
        calls = [x for x in house.nodes(tree) if by_string(x)]
        found |= {name for x in calls if spelt(x.args[0], set()) is None}
    assert found == set(BY_NAME)


KINDS = {
    "at once": "from .{} import x",
    "late": "def f():\n    from .{} import x",
    "by type": "if TYPE_CHECKING:\n    from .{} import x",
    "by string": "import_module('drevo.{}')",
    "by a table": "TABLE = {{'x': '{}'}}\nimport_module(f'.{{TABLE[x]}}', __name__)",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_cycle_is_seen(kind: str) -> None:
    texts = {"drevo.a": "from .b import x", "drevo.b": "from drevo.c import x", "drevo.c": KINDS[kind].format("a")}
    known = {name: ("drevo", ast.parse(text)) for name, text in texts.items()}
    assert cycles(graph_of(known)) == [["drevo.a", "drevo.b", "drevo.c"]]


# -- names: one meaning each -----------------------------------------------------------------------------------


def named_things(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Public classes and functions of a module, and its aliases of types; an alias means its right side."""
    for x in tree.body:
        if isinstance(x, (ast.ClassDef, ast.FunctionDef)) and not x.name.startswith("_"):
            yield x.name, ""
        elif isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name):
            name = x.targets[0].id
            if name[:1].isupper() and not name.isupper():
                yield name, ast.unparse(x.value)


def test_names_of_several_meanings_grow_fewer() -> None:
    """Classes and functions; a quantity by several algorithms, or a command and its call, share a name."""
    meanings: dict[str, set[str]] = {}
    for module, (_, tree) in modules().items():
        for name, alias in named_things(tree):
            meanings.setdefault(name, set()).add(alias or module)
    held("shared-names", {name for name, where in meanings.items() if len(where) > 1})


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Upper-case names at the top of a module, without the underscore, and their values as text."""
    for x in tree.body:
        targets = x.targets if isinstance(x, ast.Assign) else [x.target] if isinstance(x, ast.AnnAssign) else []
        for target in targets:
            several = isinstance(target, ast.Tuple) and isinstance(x.value, ast.Tuple)
            for name, value in zip(target.elts, x.value.elts) if several else [(target, x.value)]:
                if isinstance(name, ast.Name) and re.fullmatch("_?[A-Z][A-Z0-9_]*", name.id) and value:
                    yield name.id.lstrip("_"), ast.unparse(value)


def test_constants_of_several_meanings_grow_fewer() -> None:
    meanings: dict[str, set[str]] = {}
    for _, tree in modules().values():
        for name, value in constants(tree):
            meanings.setdefault(name, set()).add(value)
    held("shared-constants", {name for name, values in meanings.items() if len(values) > 1})


VAGUE = {"found", "told", "made", "own", "beside", "there", "here", "what", "who"}


def test_vague_names_grow_fewer() -> None:
    """A variable says which thing it is: `rows`, not `found`."""
    vague = [
        f"{module}:{x.lineno}"
        for module, (_, tree) in modules().items()
        for x in house.nodes(tree)
        if (isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and x.id in VAGUE)
        or (isinstance(x, ast.arg) and x.arg in VAGUE)
    ]
    held("vague-names", vague)


LEANING = re.compile(r"(Of|The same|Its|Likewise|As above|What|Where|How|Whether|Which|That|Who)\b")


def test_a_docstring_stands_alone() -> None:
    """help() and a debugger show it without the neighbour that "Of", "The same" or "What" would lean on."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    leaning = [
        (module, text.splitlines()[0])
        for module, (_, tree) in modules().items()
        for x in house.nodes(tree)
        if isinstance(x, kinds) and LEANING.match(text := ast.get_docstring(x) or "")
    ]
    assert leaning == []


LISTED = {"drevo.streaming", "drevo.ground", "drevo.particles"}  # beside the faces of packages


def test_only_what_users_import_lists_its_names() -> None:
    """Elsewhere an underscore says what a module keeps to itself, where the name is made."""
    found = set()
    for name, (package, tree) in modules().items():
        assigned = {ast.unparse(x.targets[0]) for x in tree.body if isinstance(x, ast.Assign)}
        found |= {name} if "__all__" in assigned and name != package else set()
    assert found == LISTED


# -- sizes that a reader can hold ------------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIMITS: dict[str, Any] = PROJECT["tool"]["drevo"]["house"]


def held(limit: str, things: Collection[str]) -> None:
    """No more of them than the number in pyproject.toml, which only falls."""
    most = LIMITS[limit]
    assert len(things) <= most, (
        f"{len(things)} {limit}, and [tool.drevo.house] of pyproject.toml allows {most}; the last are "
        f"{sorted(things)[-20:]}"
    )


def lines_of_rooms() -> dict[str, int]:
    """Lines of code files by room; a module at the root is a room too."""
    sizes: dict[str, int] = {}
    for path in house.SOURCES.rglob("*.py"):
        room = path.relative_to(house.SOURCES).parts[0].removesuffix(".py")
        sizes[room] = sizes.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return sizes


def test_rooms_keep_their_size() -> None:
    sizes = lines_of_rooms()
    assert set(sizes) == set(LIMITS["lines"]), "a row in [tool.drevo.house.lines] of pyproject.toml for each room"
    for room, lines in {**sizes, "all": sum(sizes.values())}.items():
        most = LIMITS["all-lines"] if room == "all" else LIMITS["lines"][room]
        assert lines <= most, (
            f"{room} has {lines} lines and may have {most}: say it in fewer, or raise its number in "
            "[tool.drevo.house] of pyproject.toml and say there why"
        )


@lru_cache(maxsize=1)
def lengths() -> dict[str, int]:
    """Lines of every function, less those of its docstring."""
    out: dict[str, int] = {}
    for module, (_, tree) in modules().items():
        for x in house.nodes(tree):
            if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef)):
                told = x.body[0].end_lineno - x.body[0].lineno + 1 if ast.get_docstring(x) is not None else 0
                out[f"{module}.{x.name}.{x.lineno}"] = x.end_lineno - x.lineno + 1 - told
    return out


def test_folders_and_files_are_small() -> None:
    """Folders and files that a reader can hold; what stands at the root is a room or what users import."""
    files = list(house.SOURCES.rglob("*.py"))
    held("files", [p.name for p in files])
    for folder in {p.parent for p in files}:
        assert len(list(folder.glob("*.py"))) <= LIMITS["files-per-folder"], folder.name
    long = {p.name for p in files if len(p.read_text(encoding="utf-8").splitlines()) > 450}
    assert long == set()


def test_functions_are_short() -> None:
    """How many ways there are through one, the linter holds (C901, PLR0912)."""
    sizes = sorted(lengths().values())
    assert sizes[len(sizes) // 2] <= 6 and sizes[len(sizes) * 9 // 10] <= 18
    assert {name for name, size in lengths().items() if size > 45} == set()
