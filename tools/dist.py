"""Builds the sdist and the wheel, and tries each in a clean environment: from the wheel what a newcomer types,
from the unpacked sdist those of its tests that need no other robot library.

python tools/dist.py [FOLDER]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 270 * 2**20  # bytes that the wheel and what it needs may take
TESTS = ("reference", "doctor", "packaging", "notebooks", "comfort", "builder")
NEEDED = ("pytest", "hypothesis", "scipy", "sympy", "matplotlib", "pandas")
COMMANDS = (
    ("info", "puma560"),
    ("check", "puma560", "--states", "16"),
    ("write-out", "three-link", "mass_matrix", "-o", "mass.html"),
    ("simulate", "three-link", "--duration", "0.5"),
    ("demo", "-o", "pages", "--states", "1000"),
)


def run(*words: object, cwd: Path, **more: str) -> None:
    """A command that must succeed, without this checkout on its path."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    print("$", *words, flush=True)
    subprocess.run([str(w) for w in words], cwd=cwd, check=True, env={**kept, **more})


def environment(folder: Path, *packages: object) -> Path:
    """The programs of a new environment with these packages."""
    venv.create(folder, with_pip=True, clear=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", *packages, cwd=ROOT)
    return programs


def size(folder: Path) -> int:
    """Bytes of the packages of an environment, but pip and what Python writes beside its sources."""
    packages = next(folder.rglob("site-packages"))
    parts = [f for f in packages.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    return sum(f.stat().st_size for f in parts if not f.relative_to(packages).parts[0].startswith("pip"))


def main(folder: Path) -> None:
    """Build, then try the wheel, then the sdist."""
    folder.mkdir(parents=True, exist_ok=True)
    build = environment(folder / "build-env", "build")
    run(build / "python", "-m", "build", "--outdir", folder / "out", ROOT, cwd=folder)
    (wheel,), (sdist,) = (list((folder / "out").glob(p)) for p in ("*.whl", "*.tar.gz"))

    cache = {"DREVO_CACHE_DIR": str(folder / "cache")}
    programs = environment(folder / "wheel-env", wheel)
    found = size(folder / "wheel-env")
    print(f"installed: {found / 2**20:.0f} MB")
    if found > MOST:
        raise SystemExit(f"more than {MOST / 2**20:.0f} MB")
    for words in COMMANDS:
        run(programs / "drevo", *words, cwd=folder, **cache)

    with tarfile.open(sdist) as file:
        file.extractall(folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    programs = environment(folder / "sdist-env", source, *NEEDED)
    tests = [f"tests/test_{name}.py" for name in TESTS]
    run(programs / "python", "-m", "pytest", "-q", "-m", "not nightly", *tests, cwd=source, **cache)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "dist").resolve())
