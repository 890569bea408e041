"""Files that are written: whole or not at all, whatever stands in their place and however full the disk is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.io.files import replacing, write_whole
from drevo.ros2 import ros2_package

resource = pytest.importorskip("resource")
ROBOT = drevo.load("scara")
SICK = """<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="2.0000001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="1" upper="-1" effort="1" velocity="1"/></joint></robot>
"""


@contextmanager
def full_disk(most: int = 100) -> Iterator[None]:
    """Files beyond `most` bytes are refused by the system, as where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _motion() -> Any:
    n = np.zeros(ROBOT.nv)
    return ROBOT.simulate(ROBOT.neutral(), n, duration=0.1)


def _trajectory() -> Any:
    t = np.linspace(0.0, 1.0, 20)
    return drevo.loads.Trajectory.of(ROBOT, t, np.zeros((20, ROBOT.nq)) + t[:, None])


WRITERS: dict[str, Callable[[Path], object]] = {
    **{f"r{x}": lambda p: ROBOT.save(p, lossy=True) for x in (".urdf", ".xml", ".sdf", ".toml", ".json")},
    **{f"x{x}": lambda p: drevo.write_out(ROBOT, "mass_matrix").save(p) for x in (".tex", ".html", ".c", ".py")},
    "page.html": lambda p: ROBOT.view(p),
    "d.svg": lambda p: ROBOT.draw().save(p),
    **{f"m{x}": lambda p: _motion().save(p) for x in (".npz", ".csv")},
    **{f"t{x}": lambda p: _trajectory().save(p) for x in (".npz", ".csv")},
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_loses_nothing(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    write = WRITERS[name]
    write(file)
    file.write_text("the only copy\n" * 20)
    with full_disk(), pytest.raises(drevo.InputError, match=f"saved as .*{name}': file too large"):
        write(file)
    assert file.read_text() == "the only copy\n" * 20
    assert [x.name for x in tmp_path.iterdir()] == [name]


def test_check_fix_keeps_the_only_copy_where_the_disk_is_full(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(SICK)
    with full_disk(), pytest.raises(drevo.InputError, match="file too large"):
        drevo.check(file, fix=file)
    assert file.read_text() == SICK
    drevo.check(file, fix=file)
    assert file.read_text() != SICK and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("target", ["c", "aarch64"])
def test_exports_make_their_folder_and_lose_nothing(target: str, tmp_path: Path) -> None:
    words = ["export", "scara", "gravity", "--target", target, "-o", str(tmp_path / "new/folder"), "--name", "g"]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = {x.name: x.read_bytes() for x in (tmp_path / "new/folder").iterdir()}
    with full_disk():
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and "File too large" in done.stderr and done.stderr.count("\n") == 1
    assert before == {x.name: x.read_bytes() for x in (tmp_path / "new/folder").iterdir()}


def test_a_package_for_ros_loses_nothing(tmp_path: Path) -> None:
    files = ros2_package(drevo.load("scara"), tmp_path)
    before = [x.read_bytes() for x in files]
    with full_disk(), pytest.raises(drevo.InputError, match="File too large"):
        ros2_package(drevo.load("scara"), tmp_path)
    assert before == [x.read_bytes() for x in files] and len(list(files[0].parent.iterdir())) == 5


def test_mode_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.svg", tmp_path / "link.svg"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    ROBOT.draw().save(link)
    assert link.is_symlink() and real.read_text().startswith("<svg") and stat.S_IMODE(real.stat().st_mode) == 0o640
    (tmp_path / "none.svg").symlink_to(tmp_path / "new.svg")
    ROBOT.draw().save(tmp_path / "none.svg")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.svg").stat().st_mode) == 0o666 & ~mask


def test_what_cannot_be_replaced_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(drevo.InputError, match="is a directory"):
        ROBOT.draw().save(tmp_path / "folder.svg")
    (tmp_path / "round.svg").symlink_to(tmp_path / "round.svg")
    with pytest.raises(drevo.InputError, match=r"round.svg.*symbolic links"):
        ROBOT.draw().save(tmp_path / "round.svg")
    with pytest.raises(drevo.InputError, match="cannot be written: File name too long"):
        write_whole("export", tmp_path / ("x" * 300), "")


def test_a_pipe_is_written_to_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.svg"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as part:
        part.write_text("through")
    assert os.read(handle, 100) == b"through" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(handle)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everything")
def test_a_file_that_may_not_be_written_stays(tmp_path: Path) -> None:
    file = tmp_path / "d.svg"
    file.write_text("old")
    file.chmod(0o400)
    with pytest.raises(drevo.InputError, match="permission denied"):
        ROBOT.draw().save(file)
    assert file.read_text() == "old"
