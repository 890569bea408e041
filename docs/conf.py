"""Sphinx: the pages of this folder, and the reference of the API from its docstrings (`make docs`)."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tools")]

import api_pages  # noqa: E402
import gallery  # noqa: E402

from drevo import __version__  # noqa: E402

project, author, copyright = "Drevo", "the authors of Drevo", "the authors of Drevo, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["package.md", "_build", "gallery/live"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
myst_url_schemes = {"https": None, "http": None, "mailto": None}
html_theme = "furo"
html_title = f"Drevo {release}"
html_static_path: list[str] = []
html_extra_path = ["gallery/live"]  # live pages, as they are
html_show_sourcelink = False
suppress_warnings = ["ref.python"]  # two modules have a Table each
linkcheck_timeout = 20
BESIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)")


def beside(app, page, source):  # type: ignore[no-untyped-def]
    """Files outside of this folder are no pages: a link to one names it."""
    source[0] = BESIDE.sub(r"\1 (`\2`)", source[0])


def accessible(app, page, template, context, doctree):  # type: ignore[no-untyped-def]
    """Readers of the screen want the level of a heading; one without a mouse scrolls only what takes the focus."""
    for part, old, new in (
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
        ("body", "<pre>", '<pre tabindex="0">'),
        ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ):
        if part in context:
            context[part] = context[part].replace(old, new)


def setup(app):  # type: ignore[no-untyped-def]
    """The reference and the gallery are written anew for every build."""
    api_pages.write(HERE / "reference")
    gallery.write(HERE / "gallery")
    app.connect("source-read", beside)
    app.connect("html-page-context", accessible, priority=900)  # after the theme's own
