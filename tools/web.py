"""Makes what live pages hold of others: three.js, cut to what they draw with, and a subset of STIX Two Math.

Needs npm, the network once, and pip install fonttools brotli. The versions stand in tools/web/package.json.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "src/drevo/documents/live"
HERE = ROOT / "tools/web"
WORK = ROOT / "build/web"
ITALIC, ITALIC_GREEK = range(0x1D434, 0x1D468), range(0x1D6E2, 0x1D71C)  # what a browser shows of <mi>a</mi>
SIGNS = "−·…∂∑√±×÷≤≥≈≠→∞ℎℓ′²³°½¯ˆ˙⊤‖∗ \u00a0\u2061\u2062\u2063"


def versions() -> dict[str, str]:
    """Package -> version."""
    found: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]
    return found


def three() -> None:
    """One classic script that defines THREE, with its licence beside it."""
    head = f"/* three.js {versions()['three']}, MIT; only what is drawn with; see three.LICENSE */"
    subprocess.run(
        ["npx", "esbuild", "three.mjs", "--bundle", "--minify", "--format=iife", "--global-name=THREE",
         "--legal-comments=none", f"--banner:js={head}", f"--outfile={PLACE / 'three.min.js'}"],
        cwd=WORK, check=True,
    )  # fmt: skip
    shutil.copyfile(WORK / "node_modules/three/LICENSE", PLACE / "three.LICENSE")


def font() -> None:
    """Letters, Greek, their italics and the signs of formulas, with the table of mathematics."""
    package = WORK / "node_modules/@fontsource/stix-two-math"
    greek = (*range(0x391, 0x3AA), *range(0x3B1, 0x3CA), 0x3D1, 0x3D5, 0x3F5)
    points = (*range(0x20, 0x7F), *greek, *ITALIC, *ITALIC_GREEK, *map(ord, SIGNS))
    subprocess.run(
        [sys.executable, "-m", "fontTools.subset", str(next(package.glob("files/*.woff2"))), "--flavor=woff2",
         f"--unicodes={','.join(f'{p:x}' for p in points)}", "--layout-features=ssty,math,kern",
         "--no-hinting", "--desubroutinize", f"--output-file={PLACE / 'math.woff2'}"],
        check=True,
    )  # fmt: skip
    shutil.copyfile(package / "LICENSE", PLACE / "math.LICENSE")


if __name__ == "__main__":
    shutil.copytree(HERE, WORK, dirs_exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=WORK, check=True)
    three()
    font()
