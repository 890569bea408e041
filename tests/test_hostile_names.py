"""Names that would be code: what every writer puts outside of comments and strings is that of plain names."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robot_texts import from_json, from_toml

import drevo
from drevo.documents.languages.code import comment
from drevo.documents.sequence.names import identifier
from drevo.ros2 import ros2_package

HOSTILE = (
    "x*/ int evil; /* \" ' \\ $ % & < > { } ; # -- ]]> --> <script>evil()</script> \"\"\" ''' // ??/ @SIZE@ "
    "@EQUATIONS@ "
    "\\end{document} \\input{evil} ${evil()} `evil` | [a](b) ![a](b) %{ %} {{evil}} <?evil?> &evil; \u202e \\"
)
CONTROLS = ("a\nb", "a\r", "\tb", "a\0b", "a\x1b[31m", "a\x7f", "a\x85b", "a\u2028b")


def arm(plain: bool) -> drevo.Robot:
    """Two bodies whose names are hostile, or what is left of them in identifiers."""

    def name(end: str) -> str:
        return identifier(HOSTILE) + end if plain else HOSTILE + end

    b = drevo.Builder(name(""))
    for k, parent in ((1, None), (2, name("1"))):
        b.body(name(str(k)), parent=parent, mass=1.0 + k, com=(0.1, 0.2, 0.3), inertia=np.eye(3), axis=(0, 1, 0),
               joint_name=name(f"j{k}"), damping=0.3, friction=0.1, origin=(0, 0, 0.5))  # fmt: skip
    return b.robot()


ROBOTS = {True: arm(True), False: arm(False)}


def c_code(text: str) -> str:
    """C and C++ without comments and what strings hold; trigraphs are replaced first, as compilers of C99 do."""
    text = text.replace("??/", "\\").replace("\\\n", "")
    return re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: '""' if m[0][0] == '"' else " ", text, flags=re.DOTALL
    )


def c_tokens(text: str) -> list[str]:
    return c_code(text).split()


def python_code(text: str) -> str:
    tree = ast.parse(text)
    for x in ast.walk(tree):
        if isinstance(x, ast.Constant) and isinstance(x.value, str):
            x.value = ""
    return ast.dump(tree)


def matlab_code(text: str) -> list[str]:
    return [x for line in text.splitlines() if (x := re.sub(r"%.*", "", line).rstrip())]


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes; JSON in scripts by its keys."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.seen.append((tag, [k for k, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
        self.seen.append(tag)

    def handle_comment(self, data: str) -> None:
        self.seen.append("comment")

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            try:
                self.seen.append(shaped(json.loads(data)))
            except ValueError:
                self.seen.append(data)
        elif self.inside == "style":
            self.seen.append(data)


def shaped(x: Any) -> Any:
    """What JSON is made of, without its texts."""
    if isinstance(x, dict):
        return len(x)
    return [shaped(y) for y in x] if isinstance(x, list) else type(x).__name__


def html_tags(text: str) -> Any:
    """Kinds of elements, of which long names may have more, and scripts and styles as they are."""
    seen = Tags(text).seen
    kinds = {(x[0], *x[1]) if isinstance(x, tuple) else x for x in seen if isinstance(x, (str, tuple))}
    return kinds, [
        x for x in seen if isinstance(x, list) or (isinstance(x, tuple) and x[0] in ("script", "style"))
    ]


def xml_tags(text: str) -> list[Any]:
    return [(x.tag, sorted(x.attrib)) for x in ET.fromstring(text).iter()]


def markdown_tags(text: str) -> list[Any]:
    markdown = pytest.importorskip("markdown_it")
    return Tags(markdown.MarkdownIt("commonmark", {"html": True}).enable("table").render(text)).seen


UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*[$%&#]|\\(?:begin|end|input|write|def)\b[^\n]{0,12}")


def latex_code(text: str) -> Any:
    """What is not text: changes of mode, comments, columns, environments; braces are balanced."""
    bare = re.sub(r"\\[{}]", "", text.replace(r"\\", ""))
    assert bare.count("{") == bare.count("}")
    return UNESCAPED.findall(text)


LANGUAGES: dict[str, Callable[[str], Any]] = {
    "c": c_tokens, "cuda": c_tokens, "python": python_code, "matlab": matlab_code, "html": html_tags,
    "markdown": markdown_tags, "latex": latex_code,
}  # fmt: skip


@pytest.mark.parametrize("name", ["*\\", "\\*", "*\\\\*/", "/*/", "*/*", "???/", "????/\n", "a\\"])
def test_no_comment_is_ended_opened_or_continued(name: str) -> None:
    assert not re.search(r"\*/|/\*|\\|\?\?|\n", comment(name))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("symbols", [None, "all"])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "pose"])
def test_equations(language: str, symbols: str | None, quantity: str) -> None:
    texts = []
    for plain, robot in ROBOTS.items():
        options = {"link": robot.link_names[-1]} if quantity == "pose" else {}
        texts.append(drevo.write_out(robot, quantity, symbols=symbols, **options).text(language))
        assert "\u202e" not in texts[-1] or plain
    strip = LANGUAGES[language]
    assert strip(texts[0]) == strip(texts[1])


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("standard", ["c99", "gnu17"])
def test_c_compiles(standard: str, tmp_path: Path) -> None:
    d = drevo.write_out(ROBOTS[False], "inverse_dynamics", symbols="all")
    d.save(tmp_path / "x.c")
    made = drevo.export(ROBOTS[False], "gravity", "aarch64", folder=tmp_path)
    words = ["gcc", f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-c", "-o", "/dev/null"]
    header = next(f for f in made.files if f.suffix == ".h")
    for file in (tmp_path / "x.c", tmp_path / "main.c", header):
        done = subprocess.run([*words, "-x", "c", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", ["aarch64", "wasm", "ptx"])
def test_exports(target: str, tmp_path: Path) -> None:
    names = []
    for plain, robot in ROBOTS.items():
        made = drevo.export(robot, "gravity", target, folder=tmp_path / str(plain))
        names.append(sorted(f.name for f in made.files))
    assert names[0] == names[1]
    for name in names[0]:
        a, b = (tmp_path / str(plain) / name for plain in ROBOTS)
        if name.endswith((".h", ".c")):
            assert c_tokens(a.read_text()) == c_tokens(b.read_text())
        elif not name.endswith(".o"):
            assert b"evil()" not in b.read_bytes() and a.read_bytes() == b.read_bytes()
        if name.endswith(".mjs") and shutil.which("node"):
            subprocess.run(["node", "--check", str(b)], check=True)


@pytest.mark.needs("gcc")
def test_fmus_and_s_functions(tmp_path: Path) -> None:
    """Code is that of plain names, and FMI's variables are called as joints are."""
    sources: dict[str, list[Any]] = {}
    for plain, robot in ROBOTS.items():
        folder = tmp_path / str(plain)
        for target in ("fmu", "simulink"):
            drevo.export(robot, "forward_dynamics", target, folder=folder)
        with zipfile.ZipFile(next(folder.glob("*.fmu"))) as fmu:
            described = fmu.read("modelDescription.xml").decode("utf-8")
            code = [fmu.read(x).decode() for x in fmu.namelist() if x.endswith(".c")]
        named = [x.get("name", "") for x in ET.fromstring(described).iter("Float64")]
        assert any(x.startswith(robot.joint_names[0].replace("\u202e", "")[:40]) for x in named), named
        sources.setdefault("described", []).append(xml_tags(described))
        code.append(next(folder.glob("*.c")).read_text())
        sources.setdefault("code", []).append([c_tokens(x) for x in code])
        sources.setdefault("script", []).append(matlab_code(next(folder.glob("*.m")).read_text()))
    assert all(a == b for a, b in sources.values())


def test_a_package_for_ros(tmp_path: Path) -> None:
    folders = [ros2_package(robot, tmp_path / str(plain))[0].parent for plain, robot in ROBOTS.items()]
    a, b = folders
    assert a.name == b.name
    for name in ("package.xml", "plugin.xml"):
        assert xml_tags((a / name).read_text()) == xml_tags((b / name).read_text())
        assert HOSTILE.replace("\u202e", " ") in "".join(ET.parse(b / name).getroot().itertext())
    assert c_tokens((a / "src/plugin.cpp").read_text()) == c_tokens((b / "src/plugin.cpp").read_text())
    assert (a / "CMakeLists.txt").read_text() == (b / "CMakeLists.txt").read_text()


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".toml", ".json"])
def test_files_of_robots_come_back(suffix: str, tmp_path: Path) -> None:
    robot = ROBOTS[False]
    text = robot.save(tmp_path / f"r{suffix}", lossy=True)
    if suffix in (".toml", ".json"):
        assert {".toml": from_toml, ".json": from_json}[suffix](text)
    else:
        assert xml_tags(text) == xml_tags(ROBOTS[True].save(tmp_path / f"p{suffix}", lossy=True))
    again = drevo.load(tmp_path / f"r{suffix}")
    assert again.joint_names == robot.joint_names and again.link_names[-1] == robot.link_names[-1]


def _still(robot: drevo.Robot) -> Any:
    return robot.simulate(robot.neutral(), duration=0.01)


def _linear(robot: drevo.Robot) -> Any:
    return robot.linearise(robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))


PICTURES: dict[str, Callable[[drevo.Robot], str]] = {
    "drawing": lambda r: r.draw().svg,
    "motion": lambda r: _still(r).svg(),
    "drives": lambda r: drevo.loads.drives(r, drevo.loads.Trajectory.simulated(_still(r))).svg(),
    "response": lambda r: _linear(r).frequency_response([1.0, 2.0]).svg(),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures(kind: str) -> None:
    made = [PICTURES[kind](robot) for robot in ROBOTS.values()]
    tags = [[x for x, _ in xml_tags(text)] for text in made]
    assert set(tags[0]) == set(tags[1]) and not any("script" in x for x in tags[1])
    assert not any(k.startswith("on") for x in ET.fromstring(made[1]).iter() for k in x.attrib)


@pytest.mark.needs("llvmlite")
def test_the_live_page(tmp_path: Path) -> None:
    texts = [robot.view(tmp_path / f"{plain}.html").read_text(encoding="utf-8") for plain, robot in ROBOTS.items()]
    assert html_tags(texts[0]) == html_tags(texts[1])


def test_notebooks(tmp_path: Path) -> None:
    for make in (
        lambda r: r._repr_html_(),
        lambda r: drevo.write_out(r, "gravity")._repr_html_(),
        lambda r: _linear(r)._repr_html_(),
    ):
        plain, hostile = (html_tags(make(robot)) for robot in ROBOTS.values())
        assert plain == hostile
    drevo.Robot(ROBOTS[False].model).save(tmp_path / "r.json")
    for text in (drevo.check(tmp_path / "r.json")._repr_html_(),):
        assert "<script" not in text


def test_tables_of_denavit_and_hartenberg() -> None:
    tables = [drevo.dh.table(robot) for robot in ROBOTS.values()]
    assert markdown_tags(tables[0].markdown()) == markdown_tags(tables[1].markdown())
    assert latex_code(tables[0].latex()) == latex_code(tables[1].latex())


def test_names_and_errors_never_reach_the_markdown_of_the_window() -> None:
    """Where braces and tags are code: what is written there are constants of this package."""
    for file in (Path(drevo.__file__).parent / "robot/view").glob("*.py"):
        for x in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(x, ast.Call) and getattr(x.func, "attr", "") == "add_markdown":
                assert isinstance(x.args[0], ast.Constant), f"{file.name}:{x.lineno}"


@pytest.mark.parametrize("name", CONTROLS)
def test_control_characters_in_names_are_refused(name: str, tmp_path: Path) -> None:
    """In Builder, tables, and every format; one sentence that names the character."""
    said = "holds the control character"
    b = drevo.Builder("r")
    with pytest.raises(drevo.ModelError, match=said):
        drevo.Builder(name)
    for given in ({"name": name}, {"name": "a", "joint_name": name}):
        with pytest.raises(drevo.ModelError, match=said):
            b.body(**given, mass=1, inertia=np.eye(3))
    with pytest.raises(drevo.ModelError, match=said):
        drevo.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "name": name}], name="r")
    files = {}
    if name.isascii() and "\0" not in name and "\x1b" not in name:
        x = "".join(f"&#{ord(c)};" for c in name)
        body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        files["l.urdf"] = f'<robot name="r"><link name="{x}">{body}</link></robot>'
        files["r.urdf"] = f'<robot name="{x}"><link name="a">{body}</link></robot>'
        files["b.xml"] = (
            f'<mujoco><worldbody><body name="{x}"><joint/><geom size="1"/></body></worldbody></mujoco>'
        )
        files["j.xml"] = (
            f'<mujoco><worldbody><body><joint name="{x}"/><geom size="1"/></body></worldbody></mujoco>'
        )
        files["m.sdf"] = f'<sdf version="1.9"><model name="{x}"><link name="a"/></model></sdf>'
    plain = json.loads(drevo.load("scara").save(tmp_path / "plain.json"))
    for place in (plain["links"][1], plain["joints"][0], plain):
        kept, place["name"] = place["name"], name
        files[f"{len(files)}.json"] = json.dumps(plain)
        place["name"] = kept
    for file, text in files.items():
        (tmp_path / file).write_text(text)
        with pytest.raises(drevo.ModelError, match=said) as caught:
            drevo.load(tmp_path / file)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", str(caught.value))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_names_drawn_at_random(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of such names in other orders: where they begin and end decides in some languages."""
    rng = random.Random(seed)
    name = "".join(
        rng.choice([*HOSTILE.split(), *HOSTILE, "a", " ", "é", "名"]) for _ in range(rng.randint(1, 30))
    )
    monkeypatch.setattr(sys.modules[__name__], "HOSTILE", f"x{name}")
    for plain in ROBOTS:
        monkeypatch.setitem(ROBOTS, plain, arm(plain))
    for language in LANGUAGES:
        for symbols, quantity in ((None, "inverse_dynamics"), ("all", "inverse_dynamics"), (None, "pose")):
            test_equations(language, symbols, quantity)
    for kind in PICTURES:
        test_pictures(kind)
    for suffix in (".urdf", ".xml", ".toml", ".json"):
        test_files_of_robots_come_back(suffix, tmp_path)
    for target in ("aarch64", "wasm", "ptx"):
        test_exports(target, tmp_path / target)
    for check in (test_a_package_for_ros, test_the_live_page, test_notebooks):
        check(tmp_path)
    test_tables_of_denavit_and_hartenberg()
