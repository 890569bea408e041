"""drevo sweep: a quantity over many states, in shards, on one core, many, or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, guarded, option, print_json, print_table, progress_portion


@guarded
def sweep(
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="A plan in TOML; --example prints one.")
    ] = None,
    output: Annotated[Path, option("The folder to write to.", "-o", "--output")] = Path("sweep"),
    pool: Annotated[str, option("Who computes: serial, joblib or ray.")] = "serial",
    workers: Annotated[int, option("How many compute at the same time.")] = 1,
    resume: Annotated[bool, option("Go on with the sweep that the folder holds.", "--resume")] = False,
    example: Annotated[bool, option("Print a plan that runs.", "--example")] = False,
    as_json: Json = False,
) -> None:
    """Compute a quantity over many states, reduced to least, greatest and mean values, and boxes.

    The result is the same to the bit for any number of workers, and after any number of interruptions.
    """
    from ..errors import InputError
    from ..sweep import EXAMPLE, run

    if example:
        print(EXAMPLE, end="")
        return
    if plan is None:
        raise InputError("sweep needs a plan; `drevo sweep --example` prints one")
    with progress_portion("sweep", "shards") as part:
        result = run(
            plan, output, pool=pool, workers=workers, resume=resume, progress=lambda k, all_: part(k / all_)
        )
    if as_json:
        statistics = {
            key: {n: x.tolist() for n, x in getattr(result, key).items()} for key in ("mean", "std", "min", "max")
        }
        print_json({"samples": result.samples, **statistics, "files": [str(f) for f in result.files]})
        return
    rows = [
        (
            f"{name}{list(map(int, at)) if at else ''}",
            *(f"{getattr(result, k)[name][at]:.6g}" for k in ("min", "mean", "max", "std")),
        )
        for name, x in result.mean.items()
        for at in _places(x.shape)
    ]
    print_table(f"{result.samples} samples", ("result", "least", "mean", "greatest", "spread"), rows)
    print(", ".join(str(f) for f in result.files))


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    import numpy as np

    return list(np.ndindex(shape))
