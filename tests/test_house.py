"""The drawing of the house is current; imports go down and in no circle; what the architecture names is there."""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Container, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402

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


# what imports a module whose name it is told, and why that is no import of ours
TOLD = {
    "drevo.codegen.store.lock": "waits for a module that another thread is importing",
    "drevo.io.packages": "packages of others, where they are needed",
}


def test_names_of_modules_stand_where_they_are_imported() -> None:
    found = set()
    for name, (_, tree) in modules().items():
        calls = [x for x in house.nodes(tree) if by_string(x)]
        found |= {name for x in calls if spelt(x.args[0], set()) is None}
    assert found == set(TOLD)


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

ANOTHER_WAY = "the same quantity by another algorithm, or as loops over the bodies"
VALUE_AND_ROWS = "a constraint as a value, and its rows"
COMMAND = "a command, and the call that it makes"
TWINS = {  # names that stand in several modules, and what they have in common there
    "bias coriolis_matrix forward_dynamics forward_dynamics_derivatives gravity inverse_dynamics "
    "inverse_dynamics_derivatives inverse_mass_matrix kinetic_energy mass_matrix mass_matrix_rows poses "
    "potential_energy separate": ANOTHER_WAY,
    "accuracy check check_formulas conditions export linearise simulate walk write_out": COMMAND,
    "contact distance function gear joint_closure point_on_plane point_to_point pose_tracking "
    "weld": VALUE_AND_ROWS,
    "draft_of": "a source's root element or object as a Draft, by format",
    "Table draw": "of a wing's public face: drevo.simulate and drevo.dh, drevo.walking and drawings of robots",
}


def named_things(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Public classes and functions of a module, and its aliases of types; an alias means its right side."""
    for x in tree.body:
        if isinstance(x, (ast.ClassDef, ast.FunctionDef)) and not x.name.startswith("_"):
            yield x.name, ""
        elif isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name):
            name = x.targets[0].id
            if name[:1].isupper() and not name.isupper():
                yield name, ast.unparse(x.value)


def test_a_name_has_one_meaning() -> None:
    found: dict[str, set[str]] = {}
    for module, (_, tree) in modules().items():
        for name, alias in named_things(tree):
            found.setdefault(name, set()).add(alias or module)
    twins = {name for name, meanings in found.items() if len(meanings) > 1}
    known = {name for names in TWINS for name in names.split()}
    assert twins - known == set(), "one word, two meanings: find a second word"
    assert known - twins == set(), "no longer twins: take them out of the table"


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


LISTED = {"drevo.streaming", "drevo.ground"}  # beside the faces of packages


def test_only_what_users_import_lists_its_names() -> None:
    """Elsewhere an underscore says what a module keeps to itself, where the name is made."""
    found = set()
    for name, (package, tree) in modules().items():
        assigned = {ast.unparse(x.targets[0]) for x in tree.body if isinstance(x, ast.Assign)}
        found |= {name} if "__all__" in assigned and name != package else set()
    assert found == LISTED


# -- sizes that a reader can hold ------------------------------------------------------------------------------

# what is over a limit today, lines each: rows only go, and their numbers only fall
FUNCTIONS: dict[str, int] = {}


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


def over(found: dict[str, int], limit: int, known: dict[str, int]) -> dict[str, int]:
    """What is over the limit, or over its own number in the table of what is."""
    return {name: size for name, size in found.items() if size > known.get(name, limit)}


def test_folders_are_small() -> None:
    """A folder that a reader can hold; what stands at the root is a room or what users import by its name."""
    for folder in {p.parent for p in house.SOURCES.rglob("*.py")}:
        assert len(list(folder.glob("*.py"))) <= 25, folder.name


def test_files_are_short() -> None:
    found = {
        p.relative_to(house.SOURCES).as_posix(): len(p.read_text(encoding="utf-8").splitlines())
        for p in house.SOURCES.rglob("*.py")
    }
    assert over(found, 450, {}) == {}


def test_functions_are_short() -> None:
    """How many ways there are through one, the linter holds (C901, PLR0912)."""
    sizes = sorted(lengths().values())
    assert sizes[len(sizes) // 2] <= 6 and sizes[len(sizes) * 9 // 10] <= 18
    found: dict[str, int] = {}
    for name, size in lengths().items():
        short = name.removeprefix("drevo.").rpartition(".")[0]
        found[short] = max(size, found.get(short, 0))
    assert over(found, 45, FUNCTIONS) == {}
    assert {name for name in FUNCTIONS if found.get(name, 0) <= 45} == set(), "mended: take the row away"
