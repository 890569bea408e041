"""Live pages: their numbers under node and in a browser, what is drawn, what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tolerances as tol
from reference import largest

import drevo
from drevo.compiler.pages.derivation import NUMERIC
from drevo.compiler.pages.drawing import live_values
from drevo.documents.live import PLACE
from drevo.documents.sequence.reading import read_statements
from drevo.errors import DrevoWarning, InputError, ModelError, TraceError
from drevo.io.collada import read_collada
from drevo.io.meshes import read_mesh
from drevo.model.description import Shape
from drevo.robot.view.figure import ellipsoid, figure_of, link_rows
from drevo.robot.view.mesh import MeshFiles, coarser, triangles_of
from drevo.robot.view.panels import ORDINATE, heat, manipulability_ellipsoid

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).parent.parent
EXACT = 1e-12  # of the largest value: two orders of the same operations


def panda() -> drevo.Robot:
    found = [f for f in metadata.files("example-robot-data") or () if f.name == "panda.urdf"]
    return drevo.load(str(found[0].locate()))


def script_of(page: Path, name: str) -> str:
    found = re.search(rf'<script[^>]* id="{name}">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def data_of(page: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script_of(page, "data"))
    return found


def in_node(page: Path, code: str) -> Any:
    """What the code prints of what a page computes with, `core`."""
    program = page.with_suffix(".mjs")
    start = f"const core = await openCore({script_of(page, 'data')});"
    program.write_text(
        f"{script_of(page, 'core')}\n{start}\nconst say = x => console.log(JSON.stringify(x));\n{code}"
    )
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def hinged_ball() -> drevo.Robot:
    """A ball joint and a hinge with a damper on a free base: every kind of coordinate."""
    b = drevo.Builder("ball")
    b.body("base", joint="free", mass=3.0, com=(0.1, 0.0, 0.0), inertia=np.diag([0.2, 0.3, 0.4]))
    b.body("arm", parent="base", joint="spherical", origin=(0, 0, 0.2), mass=1.0, com=(0, 0.1, 0.3),
           inertia=np.diag([0.05, 0.06, 0.02]))  # fmt: skip
    b.body("hand", parent="arm", joint="revolute", axis=(0, 1, 0), origin=(0, 0, 0.5), mass=0.5, com=(0, 0, 0.1),
           inertia=np.diag([0.01, 0.01, 0.005]))  # fmt: skip
    return b.robot()


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    "name, quantity", [("puma560", "inverse_dynamics"), ("biped", "bias"), ("ball", "mass_matrix")]
)
@pytest.mark.slow
def test_all_values_of_a_page_are_those_of_the_equations(name: str, quantity: str, tmp_path: Path) -> None:
    robot = hinged_ball() if name == "ball" else drevo.load(name, base="floating" if name == "biped" else "fixed")
    page = robot.view(tmp_path / "page.html", quantity)
    rng = np.random.default_rng(1)
    state = {"q": robot.random(rng), "v": rng.normal(size=robot.nv), "a": rng.normal(size=robot.nv)}
    derivation = drevo.write_out(robot, quantity)
    sequence, _, slots = live_values(derivation.program)
    given = json.dumps({k: x.tolist() for k, x in state.items()})
    values, seen = in_node(
        page,
        f"""
        const x = {given}, s = core.functions.state(x);
        const plain = Object.fromEntries(Object.entries(s).map(([k, y]) => [k, [...y]]));
        say([[...core.functions.values(x).values], plain]);""",
    )
    statements = [s.name for s in sequence.statements()]
    assert set(statements) <= set(slots) and len(values) == len(slots)
    own = {p.source: state[p.source] for p in sequence.inputs}
    result = derivation.evaluate(*own.values())
    shown = {n: values[k] for n, k in slots.items()}
    entries = {n: x for n, x in np.ndenumerate(result)}
    found = [(shown[key], x) for (index), x in entries.items()
             if (key := f"{sequence.results[0].name}_{'_'.join(str(i + 1) for i in index)}") in shown
             or (key := f"{sequence.results[0].name}_{''.join(str(i + 1) for i in index)}") in shown]  # fmt: skip
    assert found
    assert largest(np.array([a - b for a, b in found])) <= EXACT * largest(result)
    for key, wanted in {
        "poses": robot.poses(state["q"]), "M": robot.mass_matrix(state["q"]), "g": robot.gravity(state["q"]),
        "kinetic_energy": robot.kinetic_energy(state["q"], state["v"]), "V": robot.potential_energy(state["q"]),
        "c": robot.center_of_mass(state["q"]),
    }.items():  # fmt: skip
        assert largest(np.ravel(seen[key]) - np.ravel(wanted)) <= EXACT * max(1.0, largest(wanted)), key


@pytest.mark.needs("node")
def test_the_statements_are_computed_one_by_one(tmp_path: Path) -> None:
    """Every value beside a formula against the formula read as it stands."""
    robot = drevo.load("three-link")
    page = robot.view(tmp_path / "page.html")
    sequence, _, slots = live_values(drevo.write_out(robot, "inverse_dynamics").program)
    rng = np.random.default_rng(2)
    x = {k: rng.normal(size=3) for k in ("q", "v", "a")}
    given = json.dumps({k: y.tolist() for k, y in x.items()})
    (values,) = in_node(page, f"say([[...core.functions.values({given}).values]])")
    known = read_statements(sequence, [x[p.source] for p in sequence.inputs], (), NUMERIC)
    names = [s.name for s in sequence.statements()]
    assert len(names) > 30
    for name in names:
        assert values[slots[name]] == pytest.approx(known[name], rel=1e-11, abs=1e-13), name


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["three-link", "ball"])
def test_a_motion_is_that_of_simulate(name: str, tmp_path: Path) -> None:
    """Steps of fourth order: of numbers the same as Drevo's, of quaternions another of the same order."""
    robot = hinged_ball() if name == "ball" else drevo.load(name)
    page = robot.view(tmp_path / "page.html")
    assert data_of(page)["walls"] == []
    q0 = robot.random(np.random.default_rng(3))
    rows = in_node(page, f"say(core.swing(Float64Array.from({q0.tolist()}), 0.5, 0.001, 100)"
                   ".map(r => [r.t, [...r.q], [...r.v], r.T + r.V]))")  # fmt: skip
    table = robot.simulate(q0, duration=0.5, dt=1e-3, every=100)
    assert len(rows) == len(table.t) == 6
    limit = 1e-9 if name == "ball" else 1e-11
    for (t, q, v, _), *other in zip(rows, table.t, table.q, table.v):
        assert t == pytest.approx(other[0])
        assert largest(np.array(q) - other[1]) <= limit * max(1.0, largest(other[1]))
        assert largest(np.array(v) - other[2]) <= limit * max(1.0, largest(other[2]))
    if name == "three-link":
        energy = [r[3] for r in rows]
        assert max(energy) - min(energy) <= 1e-9 * max(1.0, abs(energy[0]))


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["puma560", "biped", "ball", "three-link"])
def test_a_handle_brings_a_link_where_it_is_drawn(name: str, tmp_path: Path) -> None:
    """Near postures are reached within the limits, a free base stays, what is out of reach is left nearest."""
    robot = hinged_ball() if name == "ball" else drevo.load(name, base="floating" if name == "biped" else "fixed")
    page, rng = robot.view(tmp_path / "page.html"), np.random.default_rng(8)
    link, base = len(robot.link_names) - 1, 6 if name in ("biped", "ball") else 0
    low, high = (np.array([getattr(j.limit, side, None) for j in robot.model.joints if j.nq == 1], dtype=float)
                 for side in ("lower", "upper"))  # fmt: skip
    low, high = np.nan_to_num(low, nan=-9.0), np.nan_to_num(high, nan=9.0)
    cases, turns = [], name == "puma560"
    for _ in range(10):
        q = robot.neutral()
        q[len(q) - len(low) :] = 0.5 * (low + high) + 0.05 * (high - low) * rng.normal(size=len(low))
        dv = np.where(np.arange(robot.nv) < base, 0.0, 0.2 * rng.normal(size=robot.nv))
        cases.append(
            [q.tolist(), robot.pose(robot.integrate(q, dv), link=robot.link_names[-1])[:3].ravel().tolist()]
        )
    far = [1.0, 0.0, 0.0, 50.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    near, beyond = in_node(page, f"""
        const got = T => ([q, own]) => {{
            const o = reach(core, q, {link}, T ?? own, {{turns: {str(turns).lower()}}});
            return [[...o.q], o.error]; }};
        say([{json.dumps(cases)}.map(got(null)), {json.dumps(cases[:3])}.map(got({far}))])""")  # fmt: skip
    for (q, T), (end, (metres, angle)) in zip(cases, near, strict=True):
        pose = robot.pose(np.array(end), link=robot.link_names[-1])[:3]
        assert metres <= 1e-9 and angle <= 1e-9
        assert largest((pose - np.reshape(T, (3, 4)))[:, slice(None) if turns else 3]) <= 1e-9
        assert largest(robot.difference(np.array(q), np.array(end))[:base]) == 0.0
    for end, (metres, _) in near + beyond:
        hinges = np.array(end)[-len(low) :]
        assert np.all(hinges >= low - 1e-12) and np.all(hinges <= high + 1e-12) and metres >= 0.0
    assert all(45.0 < metres < 50.0 for _, (metres, _) in beyond)


@pytest.mark.needs("node")
def test_equations_are_alive_without_a_robot(tmp_path: Path) -> None:
    """The page of write_out: every slot, its parameters too, which are sliders there."""
    d = drevo.write_out(drevo.load("three-link"), "mass_matrix", symbols="all")
    page = d.save(tmp_path / "page.html")
    sequence, _, slots = live_values(d.program)
    parameters = {s.parameter.name: s.parameter.value * 1.25 + 0.01 for s in sequence.symbols}
    x = {"q": [0.3, -0.8, 1.1], "parameters": list(parameters.values())}
    (values,) = in_node(page, f"say([[...core.functions.values({json.dumps(x)}).values]])")
    known = read_statements(sequence, [x["q"]], x["parameters"], NUMERIC)
    for s in sequence.statements():
        assert values[slots[s.name]] == pytest.approx(known[s.name], rel=1e-11, abs=1e-13), s.name
    M = d.evaluate(x["q"], parameters=parameters)
    assert values[slots["M_21"]] == pytest.approx(M[1, 0], rel=1e-12)
    text = page.read_text(encoding="utf-8")
    assert text.count('data-input="parameters"') == sum(sequence.used) and text.count('data-input="q"') == 3


def test_equations_too_long_to_be_alive_are_pages_still(monkeypatch: pytest.MonkeyPatch) -> None:
    d = drevo.write_out(drevo.load("three-link"), "gravity")
    monkeypatch.setattr("drevo.compiler.pages.drawing.PROMPT_STEPS", 3)
    assert d.html() == d.text("html")


def test_a_drawing_is_saved_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, opened = drevo.load("puma560"), []
    drawn = robot.draw(q=[0.1] * 6)
    assert "q_3 = 0.1 rad" in drawn.svg and drawn._repr_svg_() == drawn.save(tmp_path / "x.svg").read_text()
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert drawn.show().as_uri() == opened[0] and "SVG" in repr(robot.draw())
    with pytest.raises(InputError, match="a drawing is saved as"):
        drawn.save(tmp_path / "x.png")
    with pytest.raises(InputError, match="draw: q"):
        robot.draw(q=[0.0])


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    """No address is fetched, whatever the names in the robot are."""
    b = drevo.Builder("</script><script>alert(1)</script>")
    b.body("<b>&\"'", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3) * 0.01)
    text = b.robot().view(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alert(1)</script>" not in text and "<b>&" not in text
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|url\((?!data:)""", text)
    json.loads(script_of(tmp_path / "page.html", "data"))


def test_what_is_taken_from_others_is_named_with_version_and_licence() -> None:
    pinned = json.loads((ROOT / "tools/web/package.json").read_text())["dependencies"]["three"]
    text = (PLACE / "three.min.js").read_text(encoding="utf-8")
    assert text.startswith(f"/* three.js {pinned}, MIT") and len(text) < 700_000
    assert "MIT License" in (PLACE / "three.LICENSE").read_text()
    assert "SIL Open Font License" in (PLACE / "math.LICENSE").read_text()
    assert (PLACE / "math.woff2").read_bytes()[:4] == b"wOF2"


def test_links_stand_where_their_poses_are() -> None:
    """Welded links too, by what they are welded to."""
    robot = panda()
    rows, offsets = link_rows(robot.model)
    q = robot.random(np.random.default_rng(4))
    poses = robot.poses(q)
    for name in robot.link_names:
        carrier = np.eye(4)
        if rows[name] >= 0:
            carrier = poses[rows[name]]
        assert largest(carrier @ offsets[name] - robot.pose(q, link=name)) <= tol.SAME


def test_the_ellipsoid_of_inertia_is_the_uniform_one() -> None:
    half, R = np.array([0.1, 0.2, 0.4]), np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    tensor = R @ np.diag(2.0 / 5.0 * (half @ half - half**2)) @ R.T  # of mass 2: m/5 (b^2 + c^2)
    found, axes = ellipsoid(drevo.model.description.Inertial(2.0, (0, 0, 0), tuple(map(tuple, tensor))))
    assert np.allclose(np.sort(found), half) and np.linalg.det(axes) == pytest.approx(1.0)
    assert np.allclose(axes @ np.diag(found**2) @ axes.T, R @ np.diag(half**2) @ R.T)


def test_meshes_are_made_coarser_near_what_they_were() -> None:
    u = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.stack(np.meshgrid(u, np.linspace(-1, 1, 60), indexing="ij"), -1).reshape(-1, 2)
    points = np.stack([np.cos(ring[:, 0]), np.sin(ring[:, 0]), ring[:, 1]], 1)
    grid = np.arange(4800).reshape(80, 60)
    a, b, c, d = grid[:, :-1], np.roll(grid, -1, 0)[:, :-1], np.roll(grid, -1, 0)[:, 1:], grid[:, 1:]
    faces = np.concatenate([np.stack(x, -1).reshape(-1, 3) for x in ((a, b, c), (a, c, d))])
    p, f = coarser(points, faces, 2000)
    assert 500 < len(f) <= 2000 and f.max() < len(p)
    assert largest(np.hypot(p[:, 0], p[:, 1]) - 1.0) < 0.05  # still the tube
    assert largest(p.max(0) - points.max(0)) < 0.1


COLLADA = """<COLLADA><asset><unit meter="0.1"/></asset><library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="a" count="12">0 0 0  1 0 0  1 1 0  0 1 0</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>{}</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="all"><node><translate>0 0 2</translate><node>
<rotate>0 0 1 90</rotate><scale>2 1 1</scale><instance_geometry url="#g"/></node></node></visual_scene>
</library_visual_scenes></COLLADA>"""
INPUTS = '<input semantic="VERTEX" source="#v" offset="1"/><input semantic="NORMAL" source="#n" offset="0"/>'
POLYGON = f"<polylist>{INPUTS}<vcount>4</vcount><p>9 0 9 1 9 2 9 3</p></polylist>"
TRIANGLES = f"<triangles>{INPUTS}<p>9 0 9 1 9 2 9 0 9 2 9 3</p></triangles>"


@pytest.mark.parametrize("part", [POLYGON, TRIANGLES])
def test_collada_is_read_where_its_nodes_put_it(part: str) -> None:
    """A unit square, stretched, turned about z, lifted, in decimetres."""
    p, f = read_collada(COLLADA.format(part).encode())
    assert f.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert np.allclose(p, [[0, 0, 0.2], [0, 0.2, 0.2], [-0.1, 0.2, 0.2], [-0.1, 0, 0.2]])


def test_all_objects_of_a_file_are_drawn() -> None:
    """MuJoCo takes the first object of an OBJ file, and a drawing all of them."""
    one, two = "g a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "g b\nv 0 0 2\nf -1 2 3\n"
    for text in (one + two, one + two.replace("-1", "4")):
        assert read_mesh(text.encode(), "obj")[1].tolist() == [[0, 1, 2]]  # type: ignore[union-attr]
        assert read_mesh(text.encode(), "obj", whole=True)[1].tolist() == [[0, 1, 2], [3, 1, 2]]  # type: ignore[union-attr]


AGAIN = '<node id="n"><instance_node url="#n"/><instance_node url="#n"/></node>'
BROKEN = {
    "another root": "<a/>",
    "nothing": "<COLLADA/>",
    "no triangles": COLLADA.format(""),
    "cut off": COLLADA.format(TRIANGLES[:-30]),
    "a point that is not there": COLLADA.format(TRIANGLES.replace("9 3", "9 7")),
    "corners that are not there": COLLADA.format(POLYGON.replace("4", "5")),
    "a source that is not there": COLLADA.format(TRIANGLES).replace("#s", "#x"),
    "no number": COLLADA.format(TRIANGLES).replace("0.1", "x"),
    "nodes in themselves": COLLADA.format(TRIANGLES).replace("<node><translate>", f"{AGAIN}<node><translate>"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_collada_that_is_broken_is_refused(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_collada(text.encode())
    assert "\n" not in str(caught.value)


def test_a_robot_of_meshes_and_one_without_any() -> None:
    drawn = figure_of(panda().model, MeshFiles(panda().model))["links"]
    assert sum(bool(link["shapes"]) for link in drawn) == 11  # the frames of the flange and of the tool have none
    bare = figure_of(hinged_ball().model, MeshFiles(hinged_ball().model))
    assert not any(link["shapes"] for link in bare["links"]) and len(bare["bones"]) == 2
    assert [len(link["joints"]) for link in bare["links"]] == [0, 1, 1, 1]


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><origin xyz="0 0 1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/></joint></robot>"""


FRAMES = """<robot name="frames"><link name="a"/><link name="b"/><link name="c"/>
<joint name="i" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/></joint>
<joint name="j" type="continuous"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/></joint></robot>"""


def test_units_of_coordinates_and_rates() -> None:
    robot = hinged_ball()
    assert robot.model.units_of("rad", "m", kind="q") == [*["m"] * 3, *[""] * 8, "rad"]
    assert robot.model.units_of("rad/s", "m/s") == [*["m/s"] * 3, *["rad/s"] * 7]


@pytest.mark.parametrize("file, why", [("no.stl", "does not exist"), ("bad.stl", "STL"), ("x.step", "type")])
def test_meshes_that_cannot_be_drawn_are_one_warning(file: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "bad.stl").write_bytes(b"solid nothing")
    (tmp_path / "x.step").write_bytes(b"ISO")
    (tmp_path / "r.urdf").write_text(URDF.format(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing file is told by load already
        robot = drevo.load(str(tmp_path / "r.urdf"))
    with pytest.warns(DrevoWarning, match="not drawn") as caught:
        page = robot.view(tmp_path / "page.html")
    assert [why in str(w.message) for w in caught] == [True] and page.stat().st_size > 1000


def test_what_cannot_be_written_or_shown_is_one_sentence(tmp_path: Path) -> None:
    robot = drevo.load("three-link")
    for path in (tmp_path / "none" / "x.html", tmp_path / "x.txt", "", tmp_path):
        with pytest.raises(InputError, match="live page") as caught:
            robot.view(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="view: q"):
        robot.view(tmp_path / "x.html", q=[0.0])
    with pytest.raises(InputError, match="one configuration"):
        robot.view(tmp_path / "x.html", q=np.zeros((2, 3)))
    with pytest.raises(InputError, match="takes q, port and loads, not 'link'"):
        robot.view(link="a")
    with pytest.raises(TraceError, match="quantity"):
        robot.view(tmp_path / "x.html", "speed")
    assert not list(tmp_path.iterdir())


def test_robots_with_loops_and_without_mass(tmp_path: Path) -> None:
    loops = drevo.load("four-bar").view(tmp_path / "loops.html")
    assert "closed loops" in loops.read_text(encoding="utf-8") and "motion" not in data_of(loops)["functions"]
    (tmp_path / "frames.urdf").write_text(FRAMES)
    bare = drevo.load(str(tmp_path / "frames.urdf")).view(tmp_path / "bare.html", "pose", link="c")
    assert "No dynamics here" in bare.read_text(encoding="utf-8")
    assert [name for name, _ in data_of(bare)["functions"]["state"]["outputs"]] == ["poses"]


@pytest.fixture(scope="module")
def browser() -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        found = p.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield found
        found.close()


@pytest.mark.needs("viser")
def test_a_window_answers_its_token_only() -> None:
    """On the loopback; nothing is said to whoever does not know the address, sockets included."""
    import websockets.sync.client
    from websockets.exceptions import InvalidStatus

    window = drevo.load("three-link").view(q=[0.1, 0.2, 0.3])
    try:
        base = window.address.rpartition("/")[0]
        assert base.startswith("http://127.0.0.1:") and len(window.address) > len(base) + 20
        assert b"<html" in urllib.request.urlopen(window.address, timeout=10).read()
        for path in ("/", "/index.html", window.address.removeprefix(base)[:-1], "/x" * 20):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(base + path, timeout=10)
        with pytest.raises(InvalidStatus, match="403"):
            websockets.sync.client.connect(base.replace("http", "ws"), subprotocols=["viser-v1"])
        port = int(base.rpartition(":")[2])
        with pytest.raises(InputError, match=f"port {port} is in use") as caught:
            drevo.load("three-link").view(port=port)
        assert "\n" not in str(caught.value)
    finally:
        window.close()


@pytest.mark.needs("viser")
def test_a_window_shows_where_the_robot_is() -> None:
    robot = hinged_ball()
    window = robot.view(loads=drevo.loads.diagrams(robot))
    try:
        assert "iframe" in window._repr_html_() and window.address in repr(window)
        q = robot.random(np.random.default_rng(6))
        window.q = q
        T = robot.pose(q, link="hand")
        node = window.scene.nodes["hand"]
        assert largest(np.array(node.position) - T[:3, 3]) <= tol.SAME
        assert largest(window.heat.image.astype(float) - heat(robot.mass_matrix(q))) == 0.0
        assert [s.value for s in window.sliders][-1] == pytest.approx(float(np.clip(q[-1], -np.pi, np.pi)))
        window.ribbons.on = "M"
        window.q = q
        ordinates = [np.diff(node.points[len(node.points) // 2 :], axis=1) for node in window.ribbons.nodes]
        longest = max(float(np.linalg.norm(x, axis=-1).max()) for x in ordinates)
        assert longest == pytest.approx(
            ORDINATE * window.scene.size, rel=1e-5
        )  # positions are in single precision
        assert "bending M, N m" in window.ribbons.text.content
        window._slid(len(q) - 2, 0.9)  # one number of a quaternion: all of it stays unit
        assert np.linalg.norm(window.q[-5:-1]) == pytest.approx(1.0)
        window.play(robot.simulate(window.q, duration=0.2, dt=1e-3, every=10), speed=4.0)
        assert len(window.plots) == 2
        for wrong in (None, [1, 2], drevo.load("three-link").simulate([0.0, 0.0, 0.0], duration=0.01)):
            with pytest.raises(InputError, match="a motion has"):
                window.play(wrong)
        with pytest.raises(InputError, match="view: speed is 'x'; it must be a positive number"):
            window.play(robot.simulate(window.q, duration=0.01), speed="x")
        with pytest.raises(InputError, match="view: q"):
            window.q = [0.0]
    finally:
        window.close()


@pytest.mark.needs("viser")
def test_a_handle_in_a_window_is_followed() -> None:
    """A drag as the browser sends it: the link goes there, a free base stays, the sliders follow."""
    robot = hinged_ball()
    window = robot.view(q=robot.random(np.random.default_rng(9)))
    try:
        handle, before = window.handle, window.q
        handle.kind.value = "moves the link"
        handle.stand()
        goal = robot.pose(robot.integrate(before, [0] * 6 + [0.1, -0.2, 0.1, 0.3]), link="hand")[:3, 3]
        for phase in ("start", *["update"] * 5, "end"):
            if phase != "start":
                handle.control.position = goal
            handle.drag(phase)
        assert largest(robot.pose(window.q, link="hand")[:3, 3] - goal) < 1e-4
        assert largest(robot.difference(before, window.q)[:6]) < 1e-4
        assert largest(np.array(handle.control.position) - goal) < 1e-4
        handle.control.position = goal + 10.0  # out of reach: as near as it gets, nothing diverges
        handle.drag("update")
        assert np.isfinite(window.q).all() and largest(robot.difference(before, window.q)[:6]) < 0.1
    finally:
        window.close()


@pytest.mark.parametrize("port", [-1, 70000, True, "80"])
@pytest.mark.needs("viser")
def test_ports_that_are_none(port: Any) -> None:
    with pytest.raises(InputError, match="port must be"):
        drevo.load("three-link").view(port=port)


def test_without_viser_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(InputError, match="pip install viser"):
        drevo.load("three-link").view()


def test_triangles_enclose_what_they_are_of() -> None:
    """By the divergence theorem, to what so many corners cut off."""
    for kind, size, wanted in (
        ("box", (0.1, 0.2, 0.3), 0.006),
        ("sphere", (0.5,), 4 / 3 * np.pi * 0.125),
        ("cylinder", (0.2, 0.7), np.pi * 0.04 * 0.7),
        ("capsule", (0.2, 0.7), np.pi * 0.04 * 0.7 + 4 / 3 * np.pi * 0.008),
    ):
        p, f = triangles_of(Shape(kind, size), MeshFiles(hinged_ball().model))
        a, b, c = (p[f[:, k]] for k in range(3))
        volume = float((a * np.cross(b, c)).sum() / 6)
        assert 0.97 * wanted < volume <= wanted * (1 + 1e-12), kind


def test_manipulability_is_what_unit_rates_reach() -> None:
    J = np.random.default_rng(7).normal(size=(3, 6))
    value, half, axes = manipulability_ellipsoid(J)
    assert value == pytest.approx(np.sqrt(np.linalg.det(J @ J.T)))
    u, s, _ = np.linalg.svd(J)
    assert np.allclose(np.sort(half), np.sort(s)) and np.linalg.det(axes) == pytest.approx(1.0)
    assert np.allclose(np.abs(axes.T @ u[:, ::-1]), np.eye(3), atol=1e-9)


def shown_number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.fixture(scope="module")
def page_of_panda(tmp_path_factory: pytest.TempPathFactory) -> tuple[drevo.Robot, Any, Path]:
    robot = panda()
    tables = drevo.loads.diagrams(robot, 5)
    return robot, tables, robot.view(tmp_path_factory.mktemp("page") / "panda.html", loads=tables)


@pytest.mark.needs("playwright", "chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_in_a_browser_without_a_network(browser: Any, scheme: str, page_of_panda: Any) -> None:
    """A slider is dragged; what then stands on the page is what Drevo computes there, all digits of it."""
    robot, tables, file = page_of_panda
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1400, "height": 900})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("window.drevo?.ready")
    page.check("#digits")
    slider = page.locator('input[type=range][data-input=q][data-place="1"]')
    box = slider.bounding_box()
    slider.click(position={"x": 0.7 * box["width"], "y": box["height"] / 2})
    typed = page.locator('input.box[aria-label="v of panda_joint3"]')
    typed.fill("fast")
    typed.press("Enter")
    assert typed.get_attribute("aria-invalid") == "true" and "no number" in typed.get_attribute("title")
    typed.fill("0,75")
    typed.press("Enter")
    page.wait_for_function("window.drevo.core.x.v[2] === 0.75")
    state = {k: np.array(page.evaluate(f"[...drevo.core.x.{k}]")) for k in ("q", "v", "a")}
    assert state["q"][1] > 0.5
    _, _, slots = live_values(drevo.write_out(robot, "inverse_dynamics").program)
    tau = robot.inverse_dynamics(*state.values())
    found = []
    for k in range(7):
        cell = page.locator(f'[data-slot="{slots[f"tau_{k + 1}"]}"]')
        cell.scroll_into_view_if_needed()
        page.wait_for_function("e => e.textContent", arg=cell.element_handle())
        found.append(shown_number(cell.text_content()))
    assert largest(np.array(found) - tau[:7]) <= EXACT * largest(tau)
    page.select_option("#loads", "M")
    page.wait_for_function("window.drevo.loads")
    k = next(k for k, t in enumerate(tables) if t.link == "panda_link4")
    span = drevo.loads.span_of(robot.model, "panda_link4", drevo.loads.distribution(robot.model, "panda_link4"))
    still, s = np.zeros(robot.nv), [span.along(x) for x in tables[k].places]
    wanted = drevo.loads.section_loads(robot, state["q"], still, still, "panda_link4", s).total
    carried = np.array(page.evaluate(f"drevo.loads[{k}]"))
    assert largest(carried - wanted) <= 10 * EXACT * largest(wanted)
    bent = shown_number(page.locator("#load-rows td.n").nth(k).text_content())
    assert bent == pytest.approx(np.hypot(*wanted[:, 4:].T).max(), rel=10 * EXACT)
    link = robot.link_names[-1]
    pose = [shown_number(x) for x in page.locator("#pose td").all_text_contents()]
    assert largest(np.reshape(pose, (3, 4)) - robot.pose(state["q"], link=link)[:3]) <= EXACT
    g = [shown_number(x) for x in page.locator("#gravity td.n").all_text_contents()]
    assert largest(np.array(g) - robot.gravity(state["q"])) <= EXACT * largest(np.array(g))
    scrolling = (
        "e => [...e].filter(x => /auto|scroll/.test(getComputedStyle(x).overflowX + getComputedStyle(x).overflowY)"
    )
    scrolling += " && x.scrollWidth > x.clientWidth && x.tabIndex < 0).map(x => x.outerHTML.slice(0, 80))"
    assert page.eval_on_selector_all("main *", scrolling) == []  # what scrolls is reached by keys
    assert page.locator("h1").first.text_content() == "panda"
    grip = """(() => { const p = drevo.handle.place();
              const r = document.querySelector('#figure').getBoundingClientRect();
              return [r.left + (p.x + 1) / 2 * r.width, r.top + (1 - p.y) / 2 * r.height]; })()"""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(200)
    x, y = page.evaluate(grip)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 10, y + 25, steps=5)
    page.wait_for_timeout(300)
    assert np.abs(np.subtract(page.evaluate(grip), (x + 10, y + 25))).max() < 1.0  # pixels
    page.mouse.up()
    page.mouse.move(x + 80, y + 80)
    assert np.abs(np.subtract(page.evaluate(grip), (x + 10, y + 25))).max() < 1.0
    state["q"] = np.array(page.evaluate("[...drevo.core.x.q]"))
    page.click("#swing")
    page.wait_for_function("drevo.core.x.q[3] !== " + repr(float(state["q"][3])))
    page.click("#play")
    for name in ("frames", "ellipsoids"):
        page.check(f"#show-{name}")
    assert said == []
    context.close()


@pytest.mark.needs("viser", "playwright", "chromium")
@pytest.mark.slow
def test_the_window_in_a_browser(browser: Any, tmp_path: Path) -> None:
    """A slider is moved and the numbers follow; a motion is played; a picture is taken."""
    robot = drevo.load("three-link")  # no meshes: a picture without a graphics processor takes a while
    window = robot.view()
    try:
        page, said = browser.new_page(viewport={"width": 640, "height": 640}), []
        page.set_default_timeout(120_000)
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(window.address)
        page.get_by_text(f"{robot.joint_names[1]}, rad", exact=True).wait_for()
        before = window.q
        box = page.locator("input[type=text], input[inputmode]").nth(1)
        box.fill("0.4")
        box.press("Enter")
        page.wait_for_timeout(500)
        assert window.q[1] == pytest.approx(0.4, abs=0.01) and before[1] != window.q[1]
        page.get_by_text("Numbers", exact=True).click()
        wanted = f"{robot.gravity(window.q)[1]:.4g}"
        page.get_by_text(wanted, exact=True).first.wait_for()
        shown = page.get_by_text(f"{robot.pose(window.q, link=robot.link_names[-1])[2, 3]:.4f}", exact=True)
        shown.first.wait_for()
        page.get_by_text("Motion", exact=True).click()
        page.get_by_role("button", name="Let go").click()
        page.get_by_text("energies, J").wait_for()
        image = window.picture(tmp_path / "arm.png", 400, 300)
        assert image.shape == (300, 400, 3) and image.std() > 5.0
        assert (tmp_path / "arm.png").stat().st_size > 5000
        assert said == []
    finally:
        window.close()
