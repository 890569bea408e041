"""The doctor: sound robots get no finding, planted defects are found and mended, and nothing else is touched."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.doctor.findings import FINDING_KINDS, SEVERITIES
from drevo.doctor.masses import _pseudo, consistent, mirrored, twins_of
from drevo.errors import DrevoError, InputError, ModelError
from drevo.io.plain_edit import add_value, spots_of, take_away
from drevo.io.xml import edited, parse, remove, set_attribute, set_text
from drevo.model.description import Inertial
from drevo.model.loaders.native import read_plain, to_json

Rng = np.random.Generator


# --- robots that are right -------------------------------------------------------------------------------------


def solid(rng: Rng) -> tuple[str, float, np.ndarray]:
    """A shape as URDF has it, its volume, and its moments per mass."""
    a, b, c = rng.uniform(0.05, 0.3, 3).tolist()
    match rng.integers(3):
        case 0:
            moments = np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 12
            return f'<box size="{a!r} {b!r} {c!r}"/>', a * b * c, moments
        case 1:
            across = (3 * a * a + b * b) / 12
            return (
                f'<cylinder radius="{a!r}" length="{b!r}"/>',
                np.pi * a * a * b,
                np.array([across, across, a * a / 2]),
            )
    return f'<sphere radius="{a!r}"/>', 4 / 3 * np.pi * a**3, np.full(3, 0.4 * a * a)


def link(name: str, made: tuple[str, float, np.ndarray], density: float, at: np.ndarray, rpy: np.ndarray) -> str:
    """A link of uniform density, its tensor in the turned axes of its geometry."""
    shape, volume, moments = made
    mass = float(density * volume)
    x, y, z = (mass * moments).tolist()
    place = f'<origin xyz="{" ".join(map(repr, at.tolist()))}" rpy="{" ".join(map(repr, rpy.tolist()))}"/>'
    tensor = f'<inertia ixx="{x!r}" ixy="0" ixz="0" iyy="{y!r}" iyz="0" izz="{z!r}"/>'
    return (
        f'  <link name="{name}">\n    <inertial>\n      {place}\n      <mass value="{mass!r}"/>\n      {tensor}\n'
        f"    </inertial>\n    <visual>{place}<geometry>{shape}</geometry></visual>\n  </link>\n"
    )


def joint(name: str, kind: str, parent: str, child: str, rng: Rng, more: str = "") -> str:
    x, y, z = rng.uniform(-0.3, 0.3, 3).tolist()
    axis = " ".join(map(repr, rng.normal(size=3).tolist()))
    return (
        f'  <joint name="{name}" type="{kind}">\n    <parent link="{parent}"/>\n    <child link="{child}"/>\n'
        f'    <origin xyz="{x!r} {y!r} {z!r}"/>\n    <axis xyz="{axis}"/>\n'
        f'    <limit lower="-1.5" upper="1.25" effort="40" velocity="3"/>\n{more}  </joint>\n'
    )


def robot(seed: int) -> str:
    """A torso with a spine of bodies, two mirrored arms and a finger that follows another."""
    rng = np.random.default_rng(seed)
    parts, carrier = (
        [link("base", solid(rng), rng.uniform(500, 8000), rng.uniform(-0.1, 0.1, 3), rng.normal(size=3))],
        "base",
    )
    for k in range(int(rng.integers(1, 5))):
        at, rpy = rng.uniform(-0.2, 0.2, 3), rng.normal(size=3) * rng.integers(2)
        parts += [link(f"body{k}", solid(rng), rng.uniform(500, 8000), at, rpy)]
        kind = ("revolute", "prismatic")[int(rng.integers(2))]
        parts += [joint(f"joint{k}", kind, carrier, f"body{k}", rng)]
        carrier = f"body{k}"
    for k in range(2):
        made, density = solid(rng), rng.uniform(500, 8000)
        at, rpy = rng.uniform(-0.2, 0.2, 3), rng.normal(size=3)
        flip = (np.array([1, -1, 1]), np.array([-1, 1, -1]))
        for side, (place, turn) in {"left": (1, 1), "right": flip}.items():
            above = carrier if k == 0 else f"{side}_arm0"
            parts += [link(f"{side}_arm{k}", made, density, at * place, rpy * turn)]
            parts += [joint(f"{side}_joint{k}", "revolute", above, f"{side}_arm{k}", rng)]
    for k, follows in enumerate(("", '    <mimic joint="finger0" multiplier="-1"/>\n')):
        parts += [link(f"tip{k}", solid(rng), 1200.0, np.zeros(3), np.zeros(3))]
        parts += [joint(f"finger{k}", "revolute", "left_arm1", f"tip{k}", rng, follows)]
    return f'<?xml version="1.0"?>\n<!-- made by hand -->\n<robot name="r{seed}">\n{"".join(parts)}</robot>\n'


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_no_false_alarm_on_robots_that_are_right(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 20):
        path = tmp_path / f"{seed}.urdf"
        path.write_text(robot(seed))
        found = drevo.check(path)
        assert not found.found and found.sound(strict=True), str(found)
        drevo.load(path, strict=True)


# --- planted defects -------------------------------------------------------------------------------------------


def numbers(text: str) -> list[float]:
    return [float(x) for x in text.split()]


def scale(element: ET.Element, names: str, factor: float) -> None:
    for name in names.split():
        element.set(name, " ".join(repr(factor * x) for x in numbers(element.get(name, "0"))))


def find(root: ET.Element, tag: str, of: str, inner: str = "") -> ET.Element:
    found = root.find(f"{tag}[@name='{of}']")
    assert found is not None
    return found if not inner else found.find(inner)  # type: ignore[return-value]


INERTIA = "ixx iyy izz ixy ixz iyz"


def tensor(factors: str) -> Callable[[ET.Element], None]:
    def plant(root: ET.Element) -> None:
        element = find(root, "link", "body0", "inertial/inertia")
        for name, factor in zip(("ixx", "iyy", "izz"), numbers(factors)):
            scale(element, name, factor)

    return plant


def mass(factor: float, with_tensor: bool) -> Callable[[ET.Element], None]:
    def plant(root: ET.Element) -> None:
        inertial = find(root, "link", "body0", "inertial")
        scale(inertial.find("mass"), "value", factor)  # type: ignore[arg-type]
        if with_tensor:
            scale(inertial.find("inertia"), INERTIA, factor)  # type: ignore[arg-type]

    return plant


def shared_name(tag: str, first: str, second: str) -> Callable[[ET.Element], None]:
    def plant(root: ET.Element) -> None:
        find(root, tag, second).set("name", first)
        for child in root.iter("child"):
            if tag == "link" and child.get("link") == second:
                child.set("link", first)

    return plant


def crossed(root: ET.Element) -> None:
    limit = find(root, "joint", "joint0", "limit")
    limit.set("lower", "2.5")


def circle(root: ET.Element) -> None:
    ET.SubElement(find(root, "joint", "finger0"), "mimic", joint="finger1")


def no_range(root: ET.Element) -> None:
    for name in ("lower", "upper"):
        find(root, "joint", "left_joint0", "limit").set(name, "0")


def away(root: ET.Element) -> None:
    find(root, "link", "body0", "inertial/origin").set("xyz", "0.9 0.1 -0.2")


def lost(root: ET.Element) -> None:
    """On another kind of file system the case of letters did not matter."""
    visual = ET.SubElement(find(root, "link", "base"), "visual")
    ET.SubElement(ET.SubElement(visual, "geometry"), "mesh", filename="meshes/BASE.STL")


DEFECTS: dict[str, tuple[str, Callable[[ET.Element], None]]] = {
    "negative mass": ("mass", mass(-1.0, False)),
    "mass in grams": ("unit", mass(1e3, False)),
    "mass and tensor in grams": ("unit", mass(1e3, True)),
    "tensor not positive": ("moments", tensor("-1 1 1")),
    "triangle inequality": ("triangle", tensor("1 1 2.9")),
    "tensor in kg mm^2": ("unit", tensor("1e6 1e6 1e6")),
    "tensor in g mm^2": ("unit", tensor("1e9 1e9 1e9")),
    "centre in mm": ("unit", lambda r: scale(find(r, "link", "body0", "inertial/origin"), "xyz", 1e3)),
    "centre outside": ("centre", away),
    "twins differ": ("twins", lambda r: scale(find(r, "link", "left_arm0", "inertial/mass"), "value", 1.2)),
    "limits crossed": ("limits", crossed),
    "no range": ("limits-zero", no_range),
    "mimic cycle": ("mimic-cycle", circle),
    "a joint's name twice": ("names", shared_name("joint", "left_joint0", "right_joint0")),
    "a link's name twice": ("names", shared_name("link", "tip0", "tip1")),
    "mesh not found": ("mesh", lost),
}  # fmt: skip


def differences(one: str, other: str) -> list[str]:
    """Every attribute and element by which two files differ."""
    a, b = ([*ET.fromstring(text).iter()] for text in (one, other))
    tags = [x.tag for x in b]
    gone = [x for x in a if x.tag == "mimic"] if len(a) > len(b) else []
    rest = [x for x in a if x not in gone[: len(a) - len(b)]] if tags != [x.tag for x in a] else a
    assert [x.tag for x in rest] == tags
    changed = [
        f"{x.tag}.{name}" for x, y in zip(rest, b) for name in {*x.attrib, *y.attrib} if x.get(name) != y.get(name)
    ]
    return changed + ["mimic"] * (len(a) - len(b))


MORE = pytest.param(range(4, 20), marks=pytest.mark.nightly)


@pytest.mark.parametrize("seeds", [range(4), MORE], ids=["few", "many"])
@pytest.mark.parametrize("what", DEFECTS)
def test_planted_defects_are_found_and_mended(what: str, seeds: range, tmp_path: Path) -> None:
    kind, plant = DEFECTS[what]
    (tmp_path / "meshes").mkdir()
    corners = np.array([p for p in product((-0.05, 0.05), repeat=3)], "<f4")
    rows = b"".join(struct.pack("<12fH", *[0.0] * 3, *corners[[0, k, 7]].ravel(), 0) for k in range(1, 7))
    (tmp_path / "meshes/base.stl").write_bytes(bytes(80) + struct.pack("<I", 6) + rows)
    for seed in seeds:
        tree = ET.ElementTree(ET.fromstring(robot(seed)))
        root = tree.getroot()
        assert root is not None
        if what == "triangle inequality":  # a body that has room for it: moments of a cube
            same = find(root, "link", "body0", "inertial/inertia")
            same.set("iyy", same.get("ixx", "")), same.set("izz", same.get("ixx", ""))
        plant(root)
        ill, well = tmp_path / f"{seed}.urdf", tmp_path / f"{seed}-fixed.urdf"
        tree.write(ill)
        assert kind in {f.kind for f in drevo.check(ill)}, (seed, str(drevo.check(ill)))
        after = drevo.check(ill, fix=well)
        assert not [f for f in after if f.severity != "hint"] and after.changes, (seed, str(after), after.changes)
        drevo.load(well, strict=True)
        found = differences(ill.read_text(), well.read_text())
        assert len(found) == len(after.changes), (seed, found, after.changes)
        for name in (x.rpartition(".")[2] for x in found):
            assert any(name in change for change in after.changes)


def test_a_repair_touches_no_other_byte(tmp_path: Path) -> None:
    text = robot(3).replace('lower="-1.5" upper="1.25"', "upper = '-1.5'\n  lower='1.25'", 1).replace("\n", "\r\n")
    (tmp_path / "a.urdf").write_bytes(text.encode())
    found = drevo.check(tmp_path / "a.urdf", fix=tmp_path / "b.urdf")
    expected = text.replace("upper = '-1.5'\r\n  lower='1.25'", 'upper = "1.25"\r\n  lower="-1.5"')
    assert (tmp_path / "b.urdf").read_bytes() == expected.encode()
    assert [c.rpartition(", ")[2] for c in found.changes] == ["1.25 -> -1.5", "-1.5 -> 1.25"]


# --- the same in SDF, JSON and TOML ----------------------------------------------------------------------------

Plain = dict[str, Any]


def named(rows: list[Plain], name: str) -> Plain:
    return next(row for row in rows if row["name"] == name)


def scaled(x: Any, factor: float) -> Any:
    return [scaled(part, factor) for part in x] if isinstance(x, list) else factor * x


def plant_in(part: str, name: str, *path: str, value: Any) -> Callable[[Plain], None]:
    """One value of a link or a joint replaced, or made from what stood there."""

    def plant(plain: Plain) -> None:
        held: Any = named(plain[part], name)
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = value(held.get(path[-1])) if callable(value) else value

    return plant


def tensor_times(factor: float) -> Callable[[Plain], None]:
    return plant_in("links", "body0", "inertial", "tensor", value=lambda t: scaled(t, factor))


def no_file(shapes: list[Plain]) -> list[Plain]:
    return [*shapes, {"kind": "mesh", "size": [1, 1, 1], "uri": "CUBE.STL"}]


def flat(body: Plain) -> None:
    """A cube's tensor with one moment that no body has beside the others."""
    x = body["tensor"][0][0]
    body["tensor"] = [[x, 0, 0], [0, x, 0], [0, 0, 2.9 * x]]


def no_way(limit: Plain) -> None:
    limit.update(lower=0, upper=0)


def one_name(part: str, first: str, second: str) -> Callable[[Plain], None]:
    def plant(plain: Plain) -> None:
        named(plain[part], second)["name"] = first
        if part == "links":
            next(row for row in plain["joints"] if row["child"] == second)["child"] = first

    return plant


INNER: dict[str, tuple[str, Callable[[Plain], None]]] = {
    "negative mass": ("mass", plant_in("links", "body0", "inertial", "mass", value=lambda m: -m)),
    "mass in grams": ("unit", plant_in("links", "body0", "inertial", "mass", value=lambda m: 1e3 * m)),
    "tensor not positive": ("moments", tensor_times(-1)),
    "triangle inequality": ("triangle", lambda plain: flat(named(plain["links"], "body0")["inertial"])),
    "tensor in kg mm^2": ("unit", tensor_times(1e6)),
    "centre outside": ("centre", plant_in("links", "body0", "inertial", "com", value=[0.9, 0.1, -0.2])),
    "twins differ": ("twins", plant_in("links", "left_arm0", "inertial", "mass", value=lambda m: 1.2 * m)),
    "limits crossed": ("limits", plant_in("joints", "joint0", "limit", "lower", value=2.5)),
    "no range": ("limits-zero", lambda plain: no_way(named(plain["joints"], "left_joint0")["limit"])),
    "mimic cycle": ("mimic-cycle", plant_in("joints", "finger0", "mimic", value={"joint": "finger1"})),
    "a joint's name twice": ("names", one_name("joints", "left_joint0", "right_joint0")),
    "a link's name twice": ("names", one_name("links", "tip0", "tip1")),
    "mesh not found": ("mesh", plant_in("links", "base", "shapes", value=no_file)),
}  # fmt: skip


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {inline(x)}" for k, x in value.items()) + "}"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


def as_toml(plain: Plain, style: str) -> str:
    """TOML with inner tables on one line, under headers, or by dotted keys; comments everywhere."""
    lines = [f"{k} = {inline(x)}  # {k}" for k, x in plain.items() if k not in ("links", "joints")]
    for part in ("links", "joints"):
        for row in plain[part]:
            inner = {k: x for k, x in row.items() if isinstance(x, dict) and style != "inline"}
            lines += ["", f"[[ {part} ]] # one"] + [
                f"  {k} = {inline(x)}# {k}" for k, x in row.items() if k not in inner
            ]
            for k, x in inner.items():
                head = f"{k}." if style == "dotted" else ""
                lines += [f"[{part}.{k}]"] * (not head) + [
                    f'{head}"{n}" = {inline(y)} # {n}' for n, y in x.items()
                ]
    return "\r\n".join(lines) + "\r\n"


def as_sdf(plain: Plain, model: drevo.Robot, path: Path) -> None:
    """The sound robot as SDF, with what differs in the plain one put into its elements."""
    model.save(path)
    tree, sound = ET.parse(path), json.loads(to_json(model.model))
    root = tree.getroot()
    for part, tag in (("links", "link"), ("joints", "joint")):
        for was, row in zip(sound[part], plain[part]):
            found = next((e for e in root.iter(tag) if e.get("name") == was["name"]), None)
            if was == row or found is None:
                continue
            into_sdf(found, was, row)
            if row["name"] != was["name"]:
                found.set("name", row["name"])
    tree.write(path)


def into_sdf(found: ET.Element, was: Plain, row: Plain) -> None:
    def put(path: str, value: Any) -> None:
        held = found.find(path)
        assert held is not None, path
        held.text = str(value)

    body, limit = row.get("inertial", {}), row.get("limit", {})
    if body != was.get("inertial", {}):
        put("inertial/mass", body["mass"])
        put("inertial/pose", " ".join(map(repr, [*body["com"], 0, 0, 0])))
        for name, (i, j) in zip(INERTIA.split(), ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
            put(f"inertial/inertia/{name}", body["tensor"][i][j])
    for name in limit if limit != was.get("limit", {}) else ():
        put(f"axis/limit/{name}", limit[name])
    if row.get("mimic") != was.get("mimic"):
        ET.SubElement(found.find("axis"), "mimic", row["mimic"])  # type: ignore[arg-type]
    if row.get("child") != was.get("child"):
        put("child", row["child"])
    for shape in row.get("shapes", [])[len(was.get("shapes", [])) :]:
        mesh = ET.SubElement(ET.SubElement(ET.SubElement(found, "visual", name="more"), "geometry"), "mesh")
        ET.SubElement(mesh, "uri").text = shape["uri"]


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Every number and text of a file by its place."""
    if isinstance(value, ET.Element):
        inside = {
            f"{tag}.{k}": child for tag in {c.tag for c in value} for k, child in enumerate(value.findall(tag))
        }
        value = {**value.attrib, **inside, "": (value.text or "").strip()}
    if isinstance(value, (dict, list)):
        rows = value.items() if isinstance(value, dict) else enumerate(value)
        return {name: x for k, part in rows for name, x in leaves(part, f"{path}/{k}").items()}
    return {path: value}


WAYS = ("sdf", "json", "inline", "header", "dotted")


@pytest.mark.parametrize("what", INNER)
def test_other_formats_are_mended(what: str, tmp_path: Path) -> None:
    """Every defect in SDF, JSON and TOML as people write it: found, mended, and nothing else is touched."""
    kind, plant = INNER[what]
    (tmp_path / "cube.stl").write_bytes(bytes(80) + struct.pack("<I", 0))
    model = drevo.load(robot(WAYS.index("header")))
    plain = json.loads(to_json(model.model))
    plant(plain)
    for way in WAYS:
        ill = tmp_path / f"{way}.{way if way in ('sdf', 'json') else 'toml'}"
        well = ill.with_stem("well")
        if way == "sdf":
            as_sdf(plain, model, ill)
        else:
            ill.write_bytes((json.dumps(plain, indent=1) if way == "json" else as_toml(plain, way)).encode())
        assert kind in {f.kind for f in drevo.check(ill)}, (way, str(drevo.check(ill)))
        after = drevo.check(ill, fix=well)
        assert not [f for f in after if f.severity != "hint"] and after.changes, (way, str(after), after.changes)
        drevo.load(well, strict=True)
        read = {".sdf": lambda p: ET.parse(p).getroot(), ".json": lambda p: json.loads(p.read_text())}.get(
            ill.suffix, lambda p: read_plain(p.read_bytes(), ".toml")
        )
        one, other = leaves(read(ill)), leaves(read(well))
        changed = {k for k in one.keys() | other.keys() if one.get(k) != other.get(k)}
        told = " ".join(after.changes)
        words = {
            next(w for w in re.findall("[a-z]+", k)[::-1] if w not in ("joint", "multiplier")) for k in changed
        }
        assert changed and all(word in told for word in words), (way, changed, after.changes)
        if way == "header":  # comments and ends of lines too
            assert (
                len(set(ill.read_bytes().split(b"\n")) - set(well.read_bytes().split(b"\n"))) <= len(changed) + 1
            )


def test_values_are_changed_where_they_stand(tmp_path: Path) -> None:
    text = (
        '{"drevo": 1, "name": "a",\n "links": [{"name": "w"}, {"name": "b", "inertial": {"mass": -2}}], "joints":'
        ' [\n{"name": "j", "kind": "prismatic", "parent": "w", "child": "b", "limit": {"upper": 1, "lower": 2}}]}'
    )
    (tmp_path / "a.json").write_text(text)
    after = drevo.check(tmp_path / "a.json", fix=tmp_path / "b.json")
    assert after.sound(strict=True) and len(after.changes) == 3
    wanted = text.replace("-2", "2.0").replace('"upper": 1, "lower": 2', '"upper": 2.0, "lower": 1.0')
    assert (tmp_path / "b.json").read_text() == wanted
    data, toml = b'[[links]]\nname = "b"', b"{a=1,b=2 ,c=3}"
    table = spots_of(data, ".toml").at("links", 0)
    assert table and edited(data, [add_value(data, table, "gravcomp", 1.0, True)]) == data + b"\ngravcomp = 1.0"
    for gone, rest in {"a": b"{b=2 ,c=3}", "b": b"{a=1,c=3}", "c": b"{a=1,b=2}", "ab": b"{c=3}", "bc": b"{a=1}",
                       "ac": b"{b=2}", "abc": b"{}"}.items():  # fmt: skip
        table = spots_of(b"x = " + toml, ".toml").at("x")
        assert table and edited(b"x = " + toml, take_away(toml, table, tuple(gone))) == b"x = " + rest


ADDED = [  # where, what is added to it or changed in it, and what becomes of it
    (b"x = {a.b = 1, a.c = 2}", "x", b"x = {a.b = 1, a.c = 2, k = 3}"),
    (b"x = {a.b = 1, a.c = 2}", "x.a", b"x = {a.b = 1, a.c = 2, a.k = 3}"),
    (b"x = {}", "x", b"x = {k = 3}"),
    (b'{"x": {}}', "x", b'{"x": {"k": 3}}'),
    (b'{"x": {"a": [1, 2]}}', "x", b'{"x": {"a": [1, 2], "k": 3}}'),
    (b"a.b = 1\r\na.c = 2\r\n", "a", b"a.b = 1\r\na.c = 2\r\na.k = 3\r\n"),
]


@pytest.mark.parametrize(("data", "at", "wanted"), ADDED)
def test_entries_are_added_as_the_file_writes_them(data: bytes, at: str, wanted: bytes) -> None:
    toml = not data.startswith(b"{")
    table = spots_of(data, ".toml" if toml else ".json").at(*at.split("."))
    assert table and edited(data, [add_value(data, table, "k", 3, toml)]) == wanted


def test_dotted_keys_are_taken_away_wherever_they_stand() -> None:
    data = b"x = {a.b = 1, c = 2, a.d.e = 3}"
    table = spots_of(data, ".toml").at("x")
    assert table and edited(data, take_away(data, table, ("a",))) == b"x = {c = 2}"
    assert edited(data, take_away(data, table, ("c",))) == b"x = {a.b = 1, a.d.e = 3}"
    entries = ("a.b = 1", "c = 2", "a.d.e = 3", "a.d.f = 4")
    for order in permutations(entries):
        data = f"x = {{{', '.join(order)}}}".encode()
        for at, keys in ("x", "ac"), ("x.a", "bd"), ("x.a.d", "ef"):
            for gone in (keys[:1], keys[1:], keys):
                table = spots_of(data, ".toml").at(*at.split("."))
                left = [e for e in order if not any(f"x.{e}".startswith(f"{at}.{k}") for k in gone)]
                wanted = f"x = {{{', '.join(left)}}}"
                assert table and edited(data, take_away(data, table, tuple(gone))).decode() == wanted


def test_elements_are_filled_and_taken_away() -> None:
    """With a stroke, with text about a comment, with and without an end tag."""
    data = b"<r><a/><b> 1 <!-- one --></b><c>2</c></r>"
    a, b, c = parse(data).children
    assert edited(data, [set_text(data, a, "7 < 8")]) == data.replace(b"<a/>", b"<a>7 &lt; 8</a>")
    assert edited(data, [set_text(data, b, "3")]) == data.replace(b" 1 ", b" 3 ")
    assert edited(data, [remove(data, a), remove(data, c)]) == b"<r><b> 1 <!-- one --></b></r>"
    assert edited(data, [set_attribute(data, a, "n", None), set_attribute(data, b, "n", '"')]) == data.replace(
        b"<b>", b'<b n="&quot;">'
    )


# --- MJCF ------------------------------------------------------------------------------------------------------

MJCF = """<mujoco model="arm">
  <compiler angle="degree" autolimits="true"/>
  <worldbody>
    <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" range="{low} 90" actuatorfrcrange="-9 9"/>
      <inertial pos="0 0 -0.2" mass="{mass}" {turn} {tensor}/>
      <geom type="box" size="0.05 0.06 0.2" pos="0 0 -0.2"/>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder" gear="{gear}"/></actuator>
</mujoco>
"""
PLAIN = {"low": "-90", "mass": "2", "turn": "", "tensor": 'diaginertia="0.03 0.03 0.004"', "gear": "1"}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("mass", {"mass": "-2"}),
        ("unit", {"mass": "2000"}),
        ("triangle", {"tensor": 'diaginertia="0.01 0.03 0.004"'}),
        ("moments", {"tensor": 'fullinertia="0.03 0.03 0.004 0 0 0.02"', "turn": ""}),
        ("unit", {"tensor": 'diaginertia="3e4 3e4 4e3"', "turn": 'euler="10 20 30"'}),
    ],
)
def test_mjcf_is_mended(kind: str, given: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(**PLAIN))
    assert not drevo.check(path).found, str(drevo.check(path))
    path.write_text(MJCF.format(**{**PLAIN, **given}))
    assert drevo.check(path).of(kind)
    after = drevo.check(path, fix=tmp_path / "well.xml")
    assert after.sound(strict=True) and after.changes, str(after)
    drevo.load(tmp_path / "well.xml", strict=True)


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("kg over the volume of its geometry is", {"mass": "150"}),  # dense, and no power of ten mends it
        ("less than", {"mass": "1e-4", "tensor": 'diaginertia="1.5e-6 1.5e-6 2e-7"'}),
        ("of that of a box as large as its geometry", {"tensor": 'diaginertia="1e-9 1e-9 1e-9"'}),
        ("times that of a box as large as its geometry", {"tensor": 'diaginertia="0.2 0.2 0.03"'}),
        ("the limits are crossed", {"low": "120"}),
        ("both limits are", {"low": "90"}),
    ],
)
def test_mjcf_is_doubted(what: str, given: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(**{**PLAIN, **given}))
    assert any(what in f.message for f in drevo.check(path)), str(drevo.check(path))
    drevo.check(path, fix=tmp_path / "well.xml")


def test_what_a_file_computes_is_left_as_it_stands(tmp_path: Path) -> None:
    """Masses that are scaled, inertias of shapes, a class of links in another file."""
    path, text = tmp_path / "arm.xml", MJCF.format(**{**PLAIN, "tensor": 'diaginertia="0.01 0.03 0.004"'})
    path.write_text(text.replace("<compiler ", '<compiler settotalmass="2" '))
    found = drevo.check(path, fix=tmp_path / "well.xml")
    assert found.of("triangle") and not found.changes
    shapes = """<sdf version="1.11"><model name="m"><link name="a"><inertial auto="true"><density>9e5</density>
</inertial><collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
<joint name="j" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz></axis></joint></model>
</sdf>"""
    (tmp_path / "a.sdf").write_text(shapes)
    found = drevo.check(tmp_path / "a.sdf", fix=tmp_path / "b.sdf")
    assert found.found and not found.changes


BARE = """<robot name="r"><link name="base"/>
<link name="arm"><inertial>{origin}<mass value="{mass}"/>
<inertia ixx="{x}" iyy="{x}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
<limit lower="{low}" upper="1" effort="9" velocity="{speed}"/></joint>
<transmission name="t"><joint name="j"/><actuator name="a"><mechanicalReduction>{gear}</mechanicalReduction>
</actuator></transmission></robot>
"""
RIGHT = {"origin": '<origin xyz="0 0 0.2"/>', "mass": "2", "x": "0.03", "z": "0.004", "low": "-1", "speed": "3",
         "gear": "1"}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("a gear of 100 drives it and the armature is zero", {"gear": "100"}),
        ("", {"gear": "much"}),
        ("the centre of mass lies 200 m from its joint", {"origin": '<origin xyz="0 0 200"/>'}),
        ("the radius of gyration is", {"x": "3e4", "z": "4e3"}),
        ("the limits are crossed", {"low": "2"}),
        ("both limits are 1, so that it cannot move", {"low": "1"}),
        ("the velocity limit is zero", {"speed": "0"}),
        ("", {"origin": '<origin xyz="0 0 0.2" quat_xyzw="0 0 0 1"/>'}),
        ("", {"x": "0.01", "z": "0.04", "origin": '<origin quat_xyzw="0 0 0.6 0.8"/>'}),
        ("", {"x": "0.01", "z": "0.04", "origin": ""}),
    ],
)
def test_urdf_without_shapes_is_doubted(what: str, given: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_text(BARE.format(**RIGHT))
    assert not drevo.check(path).found, str(drevo.check(path))
    path.write_text(BARE.format(**{**RIGHT, **given}))
    found = drevo.check(path)
    assert any(what in f.message for f in found) or (not what and "x" not in given), str(found)
    drevo.check(path, fix=tmp_path / "b.urdf")
    if "x" in given:
        drevo.load(tmp_path / "b.urdf", strict=True)


def test_a_large_gear_without_armature_is_named(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF.format(**{**PLAIN, "gear": "100 0 0"}))
    (found,) = drevo.check(path)
    assert (found.severity, found.kind, found.line) == ("hint", "armature", 4) and "100" in found.message


# --- the mathematics -------------------------------------------------------------------------------------------


def random_body(rng: Rng) -> Inertial:
    m, c = rng.uniform(0.1, 9.0), rng.normal(size=3)
    points = rng.normal(size=(6, 3))
    s = points.T @ points
    return Inertial(m, tuple(c), tuple(map(tuple, np.trace(s) * np.eye(3) - s)))  # type: ignore[arg-type]


def test_the_nearest_consistent_inertia() -> None:
    """A body stays as it is; else no consistent tensor of many is nearer, and it has log-Cholesky coordinates."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        body = random_body(rng)
        assert np.allclose(consistent(body).tensor, body.tensor, rtol=1e-12)
        bad = Inertial(body.mass, body.com, tuple(map(tuple, rng.normal(size=(3, 3)) + np.array(body.tensor) / 9)))  # type: ignore[arg-type]
        bad = Inertial(bad.mass, bad.com, tuple(map(tuple, (np.array(bad.tensor) + np.array(bad.tensor).T) / 2)))  # type: ignore[arg-type]
        near = consistent(bad)
        np.linalg.cholesky(_pseudo(near))

        def gap(x: Inertial, bad: Inertial = bad) -> float:
            t = np.array(x.tensor) - bad.tensor
            return float(np.linalg.norm(np.trace(t) / 2 * np.eye(3) - t))

        others = [random_body(rng) for _ in range(20)]
        blends = [
            Inertial(1.0, (0.0,) * 3, tuple(map(tuple, 0.98 * np.array(near.tensor) + 0.02 * np.array(o.tensor))))
            for o in others
        ]  # type: ignore[arg-type]
        floor = 1e-5 * np.abs(np.linalg.eigvalsh(np.array(bad.tensor))).max()
        assert all(gap(near) <= gap(o) + floor for o in others + blends)


def test_twins_are_mirrored() -> None:
    rng, d = np.random.default_rng(2), np.diag([1.0, -1.0, 1.0])
    for _ in range(20):
        a = random_body(rng)
        b = Inertial(a.mass, tuple(d @ a.com), tuple(map(tuple, d @ np.array(a.tensor) @ d)))  # type: ignore[arg-type]
        both = twins_of(a, b)
        assert both is not None and np.allclose(both[0].tensor, a.tensor) and np.allclose(both[1].com, b.com)
        kept = twins_of(a, Inertial(1.1 * b.mass, b.com, b.tensor), keep="a")
        assert kept is not None and kept[0] is a and np.isclose(kept[1].mass, a.mass)


TWINS = {
    "left_arm": "right_arm", "LeftFoot": "RightFoot", "arm_l_2": "arm_r_2", "FL_hip": "FR_hip",
    "RR_calf": "RL_calf", "LHipPitch_link": "RHipPitch_link", "leg_L": "leg_R", "armL": "armR", "link_r": "link_l",
    "RLHip": "RRHip",
    "roll_r_link": "roll_l_link", "RLEG_LINK5": "LLEG_LINK5", "wrist_roll": "wrist_roll", "shell": "shell",
    "lower": "lower",
}  # fmt: skip


def test_names_of_twins() -> None:
    names = {*TWINS, *TWINS.values()}
    for name, other in TWINS.items():
        assert mirrored(name, names) == other and mirrored(other, names) == name


def test_a_mass_in_grams_is_seen_beside_its_twin_and_all_others(tmp_path: Path) -> None:
    """Without any geometry: of a twin, with its tensor or without; of a link that has none, by all others."""
    bare = re.sub("<visual>.*?</visual>", "", robot(2))
    for name, tensors in product(("left_arm1", "body0"), ("1", "1e3")):
        tree = ET.ElementTree(ET.fromstring(bare))
        body = find(tree.getroot(), "link", name, "inertial")  # type: ignore[arg-type]
        scale(body.find("mass"), "value", 1e3)  # type: ignore[arg-type]
        scale(body.find("inertia"), INERTIA, float(tensors))  # type: ignore[arg-type]
        tree.write(tmp_path / "ill.urdf")
        (found,) = drevo.check(tmp_path / "ill.urdf").of("unit")
        assert name in found.element and "grams" in found.remedy
        after = drevo.check(tmp_path / "ill.urdf", fix=tmp_path / "well.urdf")
        assert not after.found and len(after.changes) == 1 + 3 * (tensors != "1"), (str(after), after.changes)
        q, mended = np.full(6, 0.3), drevo.load(tmp_path / "well.urdf")
        assert np.allclose(mended.mass_matrix(q), drevo.load(bare).mass_matrix(q), rtol=1e-13)


@pytest.mark.parametrize("up", ["X_UP", "Y_UP", "Z_UP"])
def test_collada_is_judged_where_all_agree_on_what_is_up(up: str, tmp_path: Path) -> None:
    """A link in grams: its mesh tells it, unless programs differ about how the mesh stands."""
    points = " ".join(f"{x} {y} {z}" for x, y, z in product((-0.1, 0.1), repeat=3))
    faces = "0 1 3 0 3 2 4 6 7 4 7 5 0 4 5 0 5 1 2 3 7 2 7 6 0 2 6 0 6 4 1 5 7 1 7 3"
    (tmp_path / "cube.dae").write_text(
        f"<COLLADA><asset><up_axis>{up}</up_axis></asset><geometry id='g'><mesh><source id='s'>"
        f"<float_array>{points}</float_array></source>"
        "<vertices id='v'><input semantic='POSITION' source='#s'/></vertices><triangles>"
        f"<input semantic='VERTEX' source='#v' offset='0'/><p>{faces}</p></triangles></mesh></geometry>"
        "<visual_scene id='x'><node><instance_geometry url='#g'/></node></visual_scene>"
        "<scene><instance_visual_scene url='#x'/></scene></COLLADA>"
    )
    text = re.sub("<(box|sphere|cylinder) [^>]*>", '<mesh filename="cube.dae"/>', robot(1), count=1)
    (tmp_path / "a.urdf").write_text(re.sub('<mass value="[^"]*"', '<mass value="4e4"', text, count=1))
    assert bool(drevo.check(tmp_path / "a.urdf").of("unit")) == (up == "Z_UP")


# --- how it is asked -------------------------------------------------------------------------------------------


def test_any_source_is_examined() -> None:
    for source in ("scara", drevo.load("scara"), drevo.load("scara").model, robot(1)):
        found = drevo.check(source)
        assert {f.severity for f in found} <= set(SEVERITIES) and {f.kind for f in found} <= set(FINDING_KINDS)
        assert len(found.rows()) == len(found) and repr(found).startswith("<Findings of")
    with pytest.raises(InputError, match="kind of finding 'colour' is not known"):
        found.of("colour")


@pytest.mark.parametrize("source", ["nothing.urdf", 3, "<robot><link", b"\xff\xfe", "no-such-robot"])
def test_what_cannot_be_read_is_one_sentence(source: Any) -> None:
    with pytest.raises(DrevoError) as caught:
        drevo.check(source)
    assert "\n" not in str(caught.value)


def test_only_files_are_mended(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="drevo convert"):
        drevo.check("puma560", fix=tmp_path / "x.urdf")
    (tmp_path / "a.urdf").write_text(robot(0))
    for path in (tmp_path / "no" / "x.urdf", tmp_path / "x.toml"):
        with pytest.raises(DrevoError):
            drevo.check(tmp_path / "a.urdf", fix=path)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = robot(0)
    Path("a.urdf").write_text(text.replace('lower="-1.5"', 'lower="2"', 1))
    run = CliRunner().invoke
    done = run(app, ["check", "a.urdf", "--states", "4"])
    assert done.exit_code == 0 and "the limits are crossed" in done.stdout
    assert run(app, ["check", "a.urdf", "--strict"]).exit_code == 1
    data = json.loads(run(app, ["check", "a.urdf", "--json", "--states", "4"]).stdout)
    (row,) = data["findings"]
    assert (row["kind"], row["severity"], row["fixable"]) == ("limits", "warning", True) and data["checks"]
    assert "joint0" in row["element"] and "crossed" in row["message"] and row["remedy"]
    done = run(app, ["check", "a.urdf", "--fix", "--strict", "--states", "4"])
    assert done.exit_code == 0 and "saved a-fixed.urdf" in done.stdout and "2 -> 1.25" in done.stdout
    assert run(app, ["check", "a-fixed.urdf", "--strict", "--states", "4"]).exit_code == 0
    Path("b.urdf").write_text(text.replace('<mass value="', '<mass value="-', 1))
    assert run(app, ["check", "b.urdf"]).exit_code == 1
