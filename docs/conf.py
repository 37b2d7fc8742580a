"""Sphinx settings: `make docs` builds the site, offline, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import api_pages

import quorate

project = "Quorate"
author = "The Quorate developers"
copyright = "2026, the Quorate developers"
release = version = quorate.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/README*"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# The docstrings are numpy's form with one section of our own.
napoleon_google_docstring = False
napoleon_custom_sections = [
    ("Learning", "params_style"),
    ("Privacy", "params_style"),
    "Utility",
    "Complexity",
]
# The type of an attribute is prose, not a name to look up.
suppress_warnings = ["ref.python"]
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_use_ivar = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "none"
autodoc_use_type_comments = False
autodoc_member_order = "bysource"
autosummary_generate = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r".*",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "Quorate"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "use_edit_page_button": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False
# Nothing is fetched from elsewhere when a page is read, except formulas by MathJax.
html_static_path: list[str] = []

api_pages.write(Path(__file__).parent / "api")


def _plain_references(app, what, name, thing, options, lines):  # noqa: ANN001, ANN202
    """Keep references within their docstring: many docstrings share a page."""
    for place, line in enumerate(lines):
        line = re.sub(r"^\s*\.\. \[(\w+)\] ", r"| [\1] ", line)
        line = re.sub(r"(?<=[ (])\|([^|`]+)\|", r"\|\1\|", line)
        lines[place] = re.sub(r"\[(\w+)\]_", r"[\1]", line)


def _skip_foreign(app, what, name, thing, skip, options):  # noqa: ANN001, ANN202
    """Leave what scikit-learn documents to scikit-learn."""
    home = getattr(thing, "__module__", None) or ""
    return True if home.startswith("sklearn") or name.endswith("_request") else None


def setup(app):  # noqa: ANN001, ANN201
    """Connect what the docstrings need; Sphinx calls it."""
    app.connect("autodoc-process-docstring", _plain_references, priority=100)
    app.connect("autodoc-skip-member", _skip_foreign)
