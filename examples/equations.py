"""The equations of a two-link arm of your own: as a page, as C, with symbols, and what to cite.

python examples/equations.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import drevo


def arm() -> drevo.Robot:
    b = drevo.Builder("arm")
    for k in (1, 2):
        parent, origin = ("world", (0, 0, 0)) if k == 1 else ("link1", (0.4, 0, 0))
        b.body(f"link{k}", parent=parent, axis=(0, 1, 0), origin=origin,
               mass=2.0 / k, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.03, 0.03]))  # fmt: skip
    return b.robot()


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    d = drevo.write_out(arm(), "inverse_dynamics", symbols=["*.mass"])
    for suffix in (".md", ".c"):
        print("written:", d.save(folder / f"arm{suffix}").name)
    print(d.about.totals)
    print(drevo.cite(d))


if __name__ == "__main__":
    main()
