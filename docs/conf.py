"""Sphinx settings: `make docs` builds the site, offline, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import api_pages
import docstring_sections
import estimator_map
import printed_columns
import versions

import quorate

project = "Quorate"
author = "The Quorate developers"
copyright = "2026, the Quorate developers"
release = version = versions.folder_name(quorate.__version__)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/README*"]
templates_path = ["_templates"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The docstrings are in numpy's form, with sections of our own. Those that are lists of terms are
# rewritten before napoleon sees them.
napoleon_google_docstring = False
napoleon_custom_sections = ["Utility", "Complexity"]
# The type of an attribute is prose, not a name to look up.
suppress_warnings = ["ref.python"]
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_use_ivar = False
# Values of constants are left out: a table of a hundred numbers says less than its sentence.
autodoc_default_options = {"members": True, "show-inheritance": True, "no-value": True}
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
    "within_subsection_order": "gallery_order.ReadingOrder",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": float("inf"),
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "first_notebook_cell": "%matplotlib inline",
}

html_theme = "pydata_sphinx_theme"
html_title = "Quorate"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "use_edit_page_button": False,
    "navbar_align": "left",
    "show_prev_next": True,
    "header_links_before_dropdown": 5,
    "navbar_end": ["versions", "theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    # Pages that are one wide table have no list of contents beside it.
    "secondary_sidebar_items": {"**": ["page-toc"], "audit": [], "guarantees": [], "papers": []},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without others below or beside them have no list at their side.
_ALONE = ("index", "cheat-sheet", "which-estimator", "start", "choose", "peers", "genindex")
html_sidebars = {page: [] for page in _ALONE}
html_show_sourcelink = False
# Nothing is fetched from elsewhere when a page is read: formulas are MathML.
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]

estimator_map.write(Path(__file__).parent / "api")
api_pages.write(Path(__file__).parent / "api")


def _read_sections(app, what, name, thing, options, lines):  # noqa: ANN001, ANN202
    """Turn sections of terms into definition lists, and keep references within their docstring.

    Many docstrings share a page, on which the number of a reference could mean several.
    """
    lines[:] = docstring_sections.whole_sentence(what, docstring_sections.definition_lists(lines))
    for place, line in enumerate(lines):
        line = re.sub(r"^\s*\.\. \[(\w+)\] ", r"| [\1] ", line)
        line = re.sub(r"(?<![^ (])\|([^|`\s][^|`]*)\|", r"\|\1\|", line)
        lines[place] = re.sub(r"\[(\w+)\]_", r"[\1]", line)


def _skip_foreign(app, what, name, thing, skip, options):  # noqa: ANN001, ANN202
    """Leave what scikit-learn and numpy document to them."""
    home = getattr(thing, "__module__", None) or ""
    foreign = home.startswith("sklearn") or (isinstance(thing, type) and home.startswith("numpy"))
    return True if foreign or name.endswith("_request") else None


def setup(app):  # noqa: ANN001, ANN201
    """Connect what the docstrings need; Sphinx calls it."""
    app.connect("autodoc-process-docstring", _read_sections, priority=100)
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("doctree-read", printed_columns.mark)
    app.connect("doctree-read", docstring_sections.unlink_words)
