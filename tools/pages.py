"""Pictures of Telegin's pages for the docs, as LaTeX sets them in two columns. Needs pdflatex and pdftoppm."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import drevo

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"three-link": "paper", "two-arm-planar": "reuse", "two-arm-spatial": "merged"}


def main() -> None:
    """The first page of each, as docs/telegin-NAME-page.png."""
    for name, sequence in PAGES.items():
        d = drevo.write_out(drevo.load(name), "mass_matrix", sequence=sequence, symbols="all")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "page.tex").write_text(d.latex(columns=2), encoding="utf-8")
            for command in (
                ["pdflatex", "-interaction=batchmode", "page.tex"],
                ["pdftoppm", "-png", "-gray", "-r", "110", "-l", "1", "-singlefile", "page.pdf", "page"],
            ):
                subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (DOCS / f"telegin-{name}-page.png").write_bytes((Path(folder) / "page.png").read_bytes())


if __name__ == "__main__":
    main()
