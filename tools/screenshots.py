"""Pictures of live pages and of the window for the docs, taken by Chromium, and how long pages take to open.

Needs chromium and pip install playwright viser. python tools/screenshots.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import drevo

DOCS = Path(__file__).parent.parent / "docs"
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
POSTURE = [0.4, 0.5, 0.2, -1.6, 0.3, 2.0, 0.5, 0.03]
ROBOTS = (("three-link", "fixed"), ("panda.urdf", "fixed"), ("talos_reduced.urdf", "floating"))


def loaded(name: str, base: str) -> drevo.Robot:
    files = metadata.files("example-robot-data") or ()
    found = [str(f.locate()) for f in files if f.name == name]
    return drevo.load(found[0] if found else name, base=base)


def opened(browser: Any, file: Path, scheme: str = "light") -> Any:
    """The page, with the seconds it took until everything had been drawn once."""
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1400, "height": 880})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_function("window.drevo?.ready && window.drevo.state")
    print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB, opens in {time.perf_counter() - start:.1f} s")
    return page


def window(browser: Any) -> None:
    """The window on a Panda, with its numbers."""
    from PIL import Image

    shown = loaded("panda.urdf", "fixed").view(q=POSTURE)
    page = browser.new_page(viewport={"width": 1200, "height": 760})
    page.goto(shown.address)
    page.get_by_text("Numbers", exact=True).click()
    page.get_by_text("manipulability ellipsoid").click()
    page.wait_for_timeout(3000)
    page.screenshot(path=DOCS / "view-window.png")
    Image.open(DOCS / "view-window.png").quantize(96).save(DOCS / "view-window.png", optimize=True)
    shown.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for name, base in ROBOTS:
            start, robot = time.perf_counter(), loaded(name, base)
            given = {"q": POSTURE} if name.startswith("panda") else {}
            file = robot.view(folder / f"{robot.name}.html", **given)
            print(f"{name}: made in {time.perf_counter() - start:.1f} s", file=sys.stderr)
            page = opened(browser, file)
            if given:
                page.wait_for_timeout(500)
                page.screenshot(path=DOCS / "view-page.png")
                dark = opened(browser, file, "dark")
                dark.click("#swing")
                dark.wait_for_timeout(2000)
                dark.locator("#swing").scroll_into_view_if_needed()
                dark.mouse.wheel(0, 700)
                dark.wait_for_timeout(700)
                dark.screenshot(path=DOCS / "view-motion.png")
        window(browser)
        browser.close()


if __name__ == "__main__":
    main()
