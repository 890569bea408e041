"""drevo precompile: fills the cache, so that the next process starts warm."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .common import Base, Json, RobotName, guarded, load_robot, option, print_json, print_table, progress, words_in

if TYPE_CHECKING:
    from ..robot.face import Robot


@guarded
def precompile(
    robot: RobotName,
    quantities: Annotated[
        str, option("Names separated by commas; by default every quantity that is not of one link.")
    ] = "",
    link: Annotated[
        list[str] | None, option("A link whose pose, velocity and so on are wanted; may be repeated.")
    ] = None,
    layout: Annotated[str, option("rows, which the methods of a robot take, or batch_last.")] = "rows",
    dtype: Annotated[str, option("float64 or float32.")] = "float64",
    packed: Annotated[bool, option("Compute only the entries that are not always zero.", "--packed")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Compile a robot's functions into the cache, so that the next process starts warm.

    A later process finds them if everything is the same: the robot's description, the options, the versions of
    Drevo, LLVM, NumPy and Python, and the kind of processor. The cache is a private folder of the user, which the
    environment variable DREVO_CACHE_DIR names; run this on the machine that will compute.
    """
    loaded = load_robot(robot, base)
    spec = {"layout": layout, "dtype": dtype, "packed": packed}
    where = str(_directory())
    rows = []
    jobs = list(_jobs(loaded, words_in(quantities), link or []))
    with progress(len(jobs), "compiling") as step:
        for name, options in jobs:
            step(name)
            rows.append(compile_timed(loaded, name, options, spec))
    if as_json:
        print_json({"robot": robot, "base": base, **spec, "cache": where, "functions": rows})
        return
    cells = [(r["quantity"], r["link"], f"{r['seconds']:.3f}", r["backend"]) for r in rows]
    print_table(f"{loaded.name}, {layout}, {dtype}", ("quantity", "link", "seconds", "runs"), cells, left=2)
    print(f"cache: {where}")


def _directory() -> Path:
    """The cache directory for the entries; refused if none can be written there."""
    from ..codegen.store import cache
    from ..errors import EmitError

    where = cache.writable()
    if where is None:
        raise EmitError(
            f"the cache {cache.base_directory()} cannot be written (it must be a private directory of this user, "
            "below directories that nobody else may write, with room on the disk), so nothing would be kept: "
            "set DREVO_CACHE_DIR to one that can"
        )
    return where


def _jobs(robot: Robot, wanted: Sequence[str], links: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Quantities and their options. By default all; those of a link once for every link given."""
    from ..errors import InputError
    from ..model.quantities import CATALOGUE, names_of

    for name in names_of(wanted or list(CATALOGUE)):
        if "link" not in CATALOGUE[name].options:
            yield name, {}
            continue
        if wanted and not links:
            raise InputError(
                f"{name} is of one link: say which by --link; links are {', '.join(robot.link_names)}"
            )
        yield from ((name, {"link": link}) for link in links)


def compile_timed(robot: Robot, name: str, options: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    from ..robot.compiling import compile

    start = time.perf_counter()
    function = compile(robot, name, **options, **spec)
    function.prepare()
    seconds = time.perf_counter() - start
    return {"quantity": name, "link": options.get("link", ""), "seconds": seconds, "backend": function.backend}
