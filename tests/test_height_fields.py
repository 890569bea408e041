"""Height fields: places where solids touch their prisms, read out of files and models, against MuJoCo."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours

import drevo
from drevo.contact.convex.fields import places_in_field, ray_to_field
from drevo.contact.convex.simplex import BOX, CYLINDER, ELLIPSOID, FIELD, POINT, SEGMENT
from drevo.io.images import read_heights
from drevo.mechanics.spatial import Mat, Vec

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 9, 7
SIDES, TOP, DEEP = (1.2, 1.5), 0.4, 0.3
SCENE = """<mujoco><option timestep="0.002"/><asset>
 <hfield name="hills" nrow="9" ncol="7" size="1.2 1.5 .4 .3" {heights}/></asset><worldbody>
 <geom name="hills" type="hfield" hfield="hills" {place}/>
 <body pos="0 0 1"><freejoint/><geom name="solid" type="{kind}" size="{size}" margin="{margin}"/></body>
</worldbody></mujoco>"""
SOLIDS = {  # size in a file, kind and sizes of the search, the margin, and how far MuJoCo's own search may end
    "sphere": (".15", POINT, [0, 0, 0, 0.15], 0.0, 1e-9),
    "capsule": (".1 .2", SEGMENT, [0, 0.2, 0, 0.1], 0.0, 1e-9),
    "cylinder": (".12 .2", CYLINDER, [0.12, 0.2, 0, 0], 0.0, 1e-8),
    "ellipsoid": (".1 .2 .15", ELLIPSOID, [0.1, 0.2, 0.15, 0], 0.0, 1e-8),
    "box": (
        ".1 .2 .15",
        BOX,
        [0.1, 0.2, 0.15, 0],
        1e-9,
        1e-9,
    ),  # without any margin MuJoCo's ends short of a way out
}
WAVES = " ".join(f"{np.sin(1.3 * k) + 0.2 * k:.3f}" for k in range(ROWS * COLUMNS))


def mujoco_model(kind: str, heights: str = "", place: str = "") -> Any:
    import mujoco

    size, _, _, margin, _ = SOLIDS[kind]
    text = SCENE.format(kind=kind, size=size, margin=margin, heights=heights, place=place)
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.tolerance, m.opt.iterations, m.opt.ccd_tolerance, m.opt.ccd_iterations = 0.0, 100, 1e-12, 200
    return m


@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid", "box"])
def test_the_slightest_touch_is_found(kind: str) -> None:
    """On flat ground the lowest point is so deep, or so high, from 1e-13 of its size on: no sliver loses it."""
    _, core, size, _, _ = SOLIDS[kind]
    rng, which = np.random.default_rng(0), [FIELD, 0, core, 0, 6, 8, COLUMNS, ROWS, 0]
    for k in range(80):
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        R = R * np.linalg.det(R)
        d, deep, half = -R[2], 10.0 ** rng.uniform(-13.0, -6.0) * (-1.0) ** k, np.array(size[:3])
        lowest = {
            "cylinder": size[0] * np.hypot(d[0], d[1]) + size[1] * abs(d[2]),
            "ellipsoid": np.linalg.norm(half * d), "box": np.abs(d) @ half,
        }[kind]  # fmt: skip
        at, out = Vec(*rng.uniform(-0.8, 0.8, 2), float(lowest - deep)), [0.0] * 351
        given = [*SIDES, DEEP, 0, *size, 2.2, 0.0], [0.0] * (ROWS * COLUMNS), []
        found = places_in_field(which, *given, Mat.of(R.tolist()), at, 0.0, out)  # type: ignore[arg-type]
        assert (found > 0) == (deep > 0.0) and (deep < 0.0 or abs(min(out[1 : 1 + 7 * found : 7]) + deep) < 1e-15)


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("kind", SOLIDS)
def test_places_are_mujocos(kind: str) -> None:
    """Number, distances and normals in 60 random poses, some deep."""
    import mujoco

    _, core, size, margin, off = SOLIDS[kind]
    m, rng = mujoco_model(kind), np.random.default_rng(0)
    m.hfield_data[:] = rng.uniform(0.0, 1.0, ROWS * COLUMNS)
    heights, d, seen = (m.hfield_data.astype(float) * TOP).tolist(), mujoco.MjData(m), 0
    while seen < 60:
        turn = rng.normal(size=4)
        d.qpos[:] = *(rng.uniform(-x, x) for x in SIDES), rng.uniform(0.1, 0.5), *(turn / np.linalg.norm(turn))
        mujoco.mj_forward(m, d)
        R, p, out = d.geom_xmat[1].reshape(3, 3), d.geom_xpos[1], [0.0] * 351
        count = places_in_field(
            [FIELD, 0, core, 0, 6, 8, COLUMNS, ROWS, 0], [*SIDES, DEEP, 0.0, *size, 1.0, margin], heights, [],  # type: ignore[arg-type]
            Mat.of(R.tolist()), Vec(*p.tolist()), margin, out,  # type: ignore[arg-type]
        )  # fmt: skip
        assert count == d.ncon
        seen += count > 0
        for x, c in zip(np.reshape(out[1:], (-1, 7)), d.contact):
            assert abs(x[0] - c.dist) < off
            assert np.abs(x[4:] - c.frame[:3]).max() < (1e-9 if off < 1e-8 else 1e-3)


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("kind", ["sphere", "capsule"])
def test_steps_are_mujocos(kind: str) -> None:
    """On a tilted field, from states of a fall and after it; out of the file and out of MuJoCo's model."""
    import mujoco

    given = {"heights": f'elevation="{WAVES}"', "place": 'pos=".1 .2 .3" euler="5 8 30"'}
    m = mujoco_model(kind, **given)
    size, _, _, margin, _ = SOLIDS[kind]
    robot = drevo.load(SCENE.format(kind=kind, size=size, margin=margin, **given))
    assert not robot.notes and robot.model.geoms[0].points == drevo.load(m).model.geoms[0].points
    step, d, rng, touched = drevo.compile(robot, "step", dt=0.002, ground=None), mujoco.MjData(m), np.random, 0
    for k in range(600):
        if k % 200 == 0:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.default_rng(k).normal(0.0, 0.3, 6)
            d.qpos[:2] += 0.2 * d.qvel[:2]
        state = as_ours(m, d.qpos, d.qvel, np.zeros(6))
        mujoco.mj_step(m, d)
        touched += d.ncon > 0
        assert np.abs(step(*state).v1 - as_ours(m, d.qpos, d.qvel)[1]).max() < 1e-9
    assert touched > 60


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_a_ball_lies_on_flat_ground(law: str) -> None:
    """A field without heights is a floor at z = 0, and bears the ball's weight."""
    robot = drevo.load(SCENE.format(kind="sphere", size=".2", margin=0, heights="", place=""))
    q = np.array([0.13, 0.17, 0.2, 0.0, 0.0, 0.0, 1.0])
    motion = robot.simulate(q, np.zeros(6), duration=0.4, dt=0.002, ground=None, law=law, every=100)
    mass = next(x.inertial for x in robot.model.links if x.inertial).mass
    assert abs(motion.q[-1][2] - 0.2) < 1e-3 and np.abs(motion.v[-1]).max() < 1e-3
    assert np.abs(motion.contact_forces[-1].sum(0) - [0.0, 0.0, 9.81 * mass]).max() < 1e-3 * mass


def test_fields_are_kept_in_files(tmp_path: Any) -> None:
    robot = drevo.load(SCENE.format(kind="box", size=".1 .1 .1", margin=0, heights="", place=""))
    robot.save(str(tmp_path / "field.json"))
    assert drevo.load(str(tmp_path / "field.json")).model.geoms == robot.model.geoms
    with pytest.warns(drevo.DrevoWarning, match="height fields 'hills'"):
        robot.save(str(tmp_path / "field.xml"))


def filtered(lines: Array, pixel: int) -> bytes:
    """Lines of a PNG image, each by another of the five filters, as section 9 of the specification has it."""
    out, above = b"", np.zeros(lines.shape[1], int)
    for k, line in enumerate(lines.astype(int)):
        left, corner = (np.concatenate([np.zeros(pixel, int), x[:-pixel]]) for x in (line, above))
        by_left, by_above, by_corner = (abs(left + above - corner - x) for x in (left, above, corner))
        paeth = np.where(by_above <= by_corner, above, corner)
        paeth = np.where((by_left <= by_above) & (by_left <= by_corner), left, paeth)
        ahead = (0 * line, left, above, (left + above) // 2, paeth)[k % 5]
        out, above = out + bytes([k % 5]) + ((line - ahead) % 256).astype(np.uint8).tobytes(), line
    return out


def png(colours: int, channels: int, depth: int) -> bytes:
    """A PNG image of 11 x 7 random pixels in two parts."""
    rng, pixel = np.random.default_rng(colours), channels * depth // 8
    lines = zlib.compress(filtered(rng.integers(0, 10 if colours == 3 else 256, (11, 7 * pixel)), pixel))
    parts = {b"IHDR": struct.pack(">IIBBBBB", 7, 11, depth, colours, 0, 0, 0), b"PLTE": rng.bytes(30)}
    chunks = [*parts.items(), (b"IDAT", lines[:40]), (b"IDAT", lines[40:]), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
        if kind != b"PLTE" or colours == 3
    )


FILES = {"grey": (0, 1, 8), "fine": (0, 1, 16), "rgb": (2, 3, 8), "palette": (3, 1, 8), "rgba": (6, 4, 16)}
OWN = struct.pack("<ii", 11, 7) + np.random.default_rng(0).normal(size=77).astype(np.float32).tobytes()


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("name", [*FILES, "own"])
def test_heights_of_files_are_mujocos(name: str, tmp_path: Any) -> None:
    """Images of all filters and kinds, and MuJoCo's own format; a field has the name of its file."""
    import mujoco

    file = tmp_path / ("hills.hf" if name == "own" else "hills.png")
    file.write_bytes(OWN if name == "own" else png(*FILES[name]))
    text = SCENE.format(kind="box", size=".1 .1 .1", margin=0, heights=f'file="{file.name}"', place="")
    (tmp_path / "scene.xml").write_text(text.replace('name="hills" nrow="9" ncol="7"', ""))
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    robot = drevo.load(str(tmp_path / "scene.xml"))
    assert not robot.notes and robot.model.geoms[0] == drevo.load(m).model.geoms[0]


FLAWED = {
    "cut off": png(2, 3, 8)[:90],
    "end in a chunk": png(2, 3, 8)[:60],
    "no PNG": b"hills",
    "interlaced": png(0, 1, 8).replace(b"\x08\0\0\0\0", b"\x08\0\0\0\1"),
    "at least 2 x 2": struct.pack("<ii", 1, 7) + bytes(28),
    "not finite": OWN[:-4] + struct.pack("<f", np.inf),
}


@pytest.mark.parametrize("fault", FLAWED)
def test_flawed_files_are_told(fault: str) -> None:
    with pytest.raises(drevo.DrevoError, match="cut off" if fault == "end in a chunk" else fault):
        read_heights(FLAWED[fault], 1000)
    with pytest.raises(drevo.DrevoError, match="up to 50 are read"):
        read_heights(OWN, 50)


def test_faults_are_told() -> None:
    text = SCENE.format(kind="box", size=".1 .1 .1", margin=0, heights='file="hills.png"', place="")
    assert "the height field 'hills': names the file 'hills.png'" in " ".join(drevo.load(text).notes)
    robot = drevo.load(SCENE.format(kind="box", size=".1 .1 .1", margin=0, heights="", place=""))
    with pytest.raises(drevo.InputError, match="height field, which is not convex"):
        robot.distance(robot.neutral(), [("hills", "solid")])


@pytest.mark.needs("mujoco")
def test_rays_end_where_mujocos_do() -> None:
    """From above a field that is not square, and from beside it; some along its cells."""
    import mujoco

    rng, m = np.random.default_rng(0), mujoco_model("sphere", f'elevation="{WAVES}"')
    data, geom, met = mujoco.MjData(m), np.zeros(1, np.int32), 0
    mujoco.mj_forward(m, data)
    heights, alone = (TOP * m.hfield_data.astype(float)).tolist(), m.body("world").id + 1
    for k in range(400):
        start = np.array([*rng.uniform(-1.3, 1.3, 2), rng.uniform(TOP, 1.0)])
        way = rng.normal(size=3) - (0.0, 0.0, 1.0) if k % 10 else np.array([0.0, k % 20 - 9.0, -3.0])
        way /= np.linalg.norm(way)
        theirs = mujoco.mj_ray(m, data, start, way, None, 1, alone, geom)
        place = start + max(theirs, 0.0) * way
        if theirs >= 0.0 and max(abs(place[:2]) / SIDES) > 1.0 - 1e-9:
            continue  # a side
        ours = ray_to_field(list(SIDES), [COLUMNS, ROWS], heights, Vec(*start), Vec(*way), 1e3)
        assert abs(ours - (theirs if theirs >= 0.0 else 1e3)) < 1e-12
        met += theirs >= 0.0
    assert met > 100
