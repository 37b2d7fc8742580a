"""The site holds every public name, and the first page can be followed, command by command."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import quorate
from quorate.app.catalogue import CATALOGUE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def api_pages():
    return load("api_pages", DOCS / "api_pages.py")


def test_every_public_name_has_a_page(tmp_path):
    api_pages().write(tmp_path)
    index = (tmp_path / "index.md").read_text()
    assert set(quorate.__all__) <= set(index.split())
    pages = "".join(page.read_text() for page in tmp_path.glob("*.md"))
    described = set(re.findall(r"automodule:: (\S+)", pages))
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src" / "quorate").rglob("*.py")
        if not path.name.startswith("_")
    }
    assert modules <= described
    assert {f"quorate.{room}" for room in api_pages().rooms()} <= described


def test_every_page_is_reachable_from_the_first():
    trees = "".join(page.read_text() for page in DOCS.glob("*.md"))
    named = {
        line.strip()
        for tree in re.findall(r"```\{toctree\}(.*?)```", trees, re.S)
        for line in tree.splitlines()
    }
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    generated = {page for page in pages if page.startswith(("api/", "gallery/", "_build/"))}
    assert pages - generated - named == {"index"}


class TestMap:
    def test_every_estimator_is_on_the_map_and_its_link_leads_to_its_page(self):
        page = load("estimator_map", DOCS / "estimator_map.py").page()
        assert set(re.findall(r"<code>(\w+)</code>", page)) == set(CATALOGUE)
        linked = re.findall(r'href="api/names/quorate\.(\w+)\.html"', page)
        assert set(linked) == set(CATALOGUE) & set(quorate.__all__)

    def test_an_estimator_that_no_question_names_stands_under_more(self, monkeypatch):
        drawn = load("estimator_map", DOCS / "estimator_map.py")
        assert "More" not in drawn.branches()
        left = {title: {} for title in drawn.BRANCHES}
        monkeypatch.setattr(drawn, "BRANCHES", left)
        assert len(drawn.branches()["More"]) == len(CATALOGUE)


class TestDocstringSections:
    """*Privacy* sections are lists of terms; to napoleon they were parameters with types."""

    def test_every_term_of_every_privacy_section_keeps_its_whole_text(self):
        generate = load("generate", DOCS / "generate.py")
        sections = load("docstring_sections", DOCS / "docstring_sections.py")
        seen = 0
        for name in quorate.__all__:
            doc = inspect.getdoc(getattr(quorate, name)) or ""
            lines = sections.definition_lists(doc.splitlines())
            for term, text in generate.privacy_section(doc).items():
                start = lines.index(f"    **{term}**")
                words = " ".join(line.strip() for line in lines[start + 1 :])
                assert words.startswith(text), f"{name}, {term}"
                assert lines[start + 1].startswith(" " * 8)
                seen += 1
        assert seen > 100

    def test_a_colon_in_the_sentence_of_a_property_makes_no_type(self):
        """The site said "release it only through a mechanism. Type: Number of records. Private"."""
        from sphinx.ext.napoleon import Config, NumpyDocstring

        sections = load("docstring_sections", DOCS / "docstring_sections.py")
        sentence = "Number of records. Private: release it only through a mechanism."
        config = Config(napoleon_use_ivar=False)
        for lines, whole in (
            ([sentence], False),
            (sections.whole_sentence("property", [sentence]), True),
        ):
            text = "\n".join(
                NumpyDocstring(lines, config, what="property", name="n_records").lines()
            )
            assert (sentence in text and ":type:" not in text) == whole
        assert sections.whole_sentence("class", [sentence]) == [sentence]

    def test_words_of_a_type_lead_nowhere_and_classes_to_their_pages(self):
        """In "array of shape (d,)" the word "shape" led to an attribute of a class."""
        from docutils import nodes
        from sphinx.addnodes import pending_xref

        sections = load("docstring_sections", DOCS / "docstring_sections.py")
        tree = nodes.paragraph()
        for target in ("shape", "Guarantee", "quorate.core.guarantees"):
            tree += pending_xref(
                "", nodes.Text(target), refdomain="py", reftype="class", reftarget=target
            )
        sections.unlink_words(None, tree)
        assert tree.astext() == "shapeGuaranteequorate.core.guarantees"
        left = [link["reftarget"] for link in tree.findall(pending_xref)]
        assert left == ["Guarantee", "quorate.core.guarantees"]

    def test_an_example_stands_under_examples(self):
        """In a list of attributes it was one of them: the index had the attribute "08"."""

        def misplaced(doc):
            section = None
            for line, below in pairwise([*doc.splitlines(), ""]):
                section = line if re.fullmatch(r"-{3,}", below) else section
                if line.startswith(">>>"):
                    return section not in (None, "Examples")
            return False

        found = []
        for path in (ROOT / "src").rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
                doc = ast.get_docstring(node) if isinstance(node, kinds) else None
                if doc and misplaced(doc):
                    found.append(f"{path.name}: {getattr(node, 'name', 'module')}")
        assert found == []
        assert misplaced("Mean.\n\nAttributes\n----------\nbound : float\n\n>>> 0.08\n0.08")

    def test_other_sections_stay_as_they_are(self):
        sections = load("docstring_sections", DOCS / "docstring_sections.py")
        text = ["Mean.", "", "Parameters", "----------", "epsilon : float", "    Loss."]
        assert sections.definition_lists(text) == text


def formulas():
    """Yield every formula of the pages and of the docstrings."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield from re.findall(r":math:`([^`]*)`", path.read_text())
    for page in [*DOCS.glob("*.md"), *DOCS.glob("proofs/*.md")]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
        yield from re.findall(r"\$\$(.+?)\$\$", text, re.S)
        yield from re.findall(r"(?<!\$)\$([^$]+)\$(?!\$)", text)


def test_every_formula_becomes_mathml_without_a_command_left_over():
    to_mathml = load("mathml", DOCS / "mathml.py").to_mathml
    found = {" ".join(formula.split()) for formula in formulas()}
    assert len(found) > 500
    broken = []
    for formula in found:
        shown = to_mathml(formula)
        if not shown.startswith("<math") or "\\" in re.sub(r"<[^>]*>", "", shown):
            broken.append(formula)
    assert broken == []
    assert "\\" in to_mathml(r"\nosuchcommand")


def test_no_index_of_a_formula_is_read_as_emphasis():
    """``(Cx(u))_t ... Σ_{s,t}`` was set in italics from one underscore to the other."""

    def emphasised(text):
        inline = (token.children or [] for token in MarkdownIt().parse(text))
        return [t.markup for each in inline for t in each if t.type in ("em_open", "strong_open")]

    pages = [*DOCS.glob("*.md"), *DOCS.glob("proofs/*.md")]
    assert [page.name for page in pages if "_" in "".join(emphasised(page.read_text()))] == []
    assert emphasised("‖(Cx(u))_t‖² ≤ Σ_{s,t} 1") == ["_"]


class TestPrintedColumns:
    """On a phone the lines of a table were broken, and its columns stood below each other."""

    def test_outputs_in_columns_keep_their_lines_and_sentences_do_not(self):
        from docutils import nodes

        printed = load("printed_columns", DOCS / "printed_columns.py")
        table = "lgID  seasons  seasons_error\n  NL  58508.9          199.7"
        sentence = "epsilon = 1 for each user: whatever one user says,\nno conclusion is likelier"
        tree = nodes.section()
        for text, classes in (
            (table, ["sphx-glr-script-out"]),
            (sentence, ["sphx-glr-script-out"]),
            (table, []),
        ):
            tree += nodes.literal_block(text, text, classes=classes)
        printed.mark(None, tree)
        marked = ["in-columns" in block["classes"] for block in tree]
        assert marked == [True, False, False]
        assert ".in-columns pre { white-space: pre; }" in (DOCS / "_static/site.css").read_text()


class TestVersions:
    def test_the_newest_release_comes_first_and_the_first_page_leads_to_it(self, tmp_path):
        versions = load("versions", DOCS / "versions.py")
        for name in ("0.9.0", "0.10.0", "dev", "old-notes"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "index.html").write_text("")
        versions.write_list(tmp_path)
        listed = (tmp_path / "versions.js").read_text()
        assert listed == 'window.quorateVersions = ["0.10.0", "0.9.0", "dev"];\n'
        assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()

    def test_what_lies_between_releases_shares_a_folder(self):
        folder_name = load("versions", DOCS / "versions.py").folder_name
        assert folder_name("0.2.0") == "0.2.0"
        assert folder_name("0.3.0.dev7+g1234abc") == "dev"


def test_nothing_is_fetched_from_elsewhere_when_a_page_is_read():
    parts = [*DOCS.glob("_templates/*.html"), *DOCS.glob("_static/*.css"), *DOCS.glob("*.md")]
    texts = {part.name: part.read_text() for part in parts}
    fetched = re.compile(r"(?:src=|url\(|@import |image\} )[\"']?(?:https?:)?//")
    assert [name for name, text in texts.items() if fetched.search(text)] == []
    assert fetched.search('<script src="https://cdn.example/mathjax.js">')
    assert 'html_math_renderer = "mathml"' in (DOCS / "conf.py").read_text()


def test_the_panels_of_a_picture_leave_its_letters_readable_on_a_phone():
    # A page of 390 pixels shows a picture of 7 inches at 50 pixels an inch: letters of 10 points
    # are 7 pixels high, and in a row of panels their numbers would run into each other.
    texts = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py")}
    wide = re.compile(r"subplots\(1, [2-9]|figsize=\((?:[89]|\d\d)|fontsize=[1-7]\b")
    assert [name for name, text in texts.items() if wide.search(text)] == []
    assert wide.search("plt.subplots(1, 2, figsize=(6, 3))")
    assert wide.search("plt.subplots(figsize=(8, 3.6))")


# A million nodes live until the end: looking for those that do not takes a sixth of the time, in
# which line of its module a name is defined another sixth, and notes that nobody reads a twentieth.
PATIENT_SPHINX = """
import gc, logging, sys
from sphinx.cmd.build import main
from sphinx.pycode.parser import Parser
gc.set_threshold(1_000_000, 100, 100)
logging.disable(logging.DEBUG)
Parser.parse_definition = lambda self: None
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_site_is_read_without_a_warning(tmp_path):
    # Examples are executed by `make docs`, and one by one by the tests of the documents; what is
    # left out here is the writing of pages, the order of names on them and the shape of quotes, not
    # the reading of docstrings.
    copied = shutil.copytree(
        DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "api", "gallery")
    )
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = ["-W", "--keep-going", "-q", "-b", "dummy"]
    command += ["-D", "plot_gallery=0", "-D", "smartquotes=0"]
    run = subprocess.run(
        [sys.executable, "-c", PATIENT_SPHINX, *command, str(copied), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert (copied / "api" / "names" / "quorate.UserMean.rst").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel without isolation: the build backend comes with the test tools."""
    folder = tmp_path_factory.mktemp("dist")
    command = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    run = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    (found,) = folder.glob("*.whl")
    return found


class TestPackaging:
    @pytest.mark.slow
    def test_the_wheel_imports_and_fits_on_its_own(self, wheel, tmp_path):
        # Unpacked alone in front of the path, beside no checkout, it is what gets imported.
        shutil.unpack_archive(wheel, tmp_path / "site", format="zip")
        script = (
            "import numpy as np, quorate as qr, pathlib, sys;"
            "assert pathlib.Path(qr.__file__).is_relative_to(sys.argv[1]), qr.__file__;"
            "mean = qr.UserMean(epsilon=1.0, bounds=(0.0, 1.0));"
            "print(mean.fit(np.ones((50, 1)), users=range(50)).guarantee_)"
        )
        run = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert "epsilon" in run.stdout.lower()
        assert (tmp_path / "site" / "quorate" / "py.typed").exists()

    @pytest.mark.slow
    def test_the_first_page_can_be_walked_from_the_wheel_alone(self, wheel, tmp_path):
        """With its declared dependencies and nothing else: no test tools, no checkout."""
        walk = load("walk", ROOT / "benchmarks" / "walk.py")
        programs = walk.quick_environment(tmp_path, wheel)
        steps = walk.play(programs, tmp_path)
        assert walk.mistakes(steps, tmp_path) == []
        names = ["python", "ledger", "fit", "fit", "fit", "fit", "predict", "ledger"]
        assert [step.name.split()[0] for step in steps] == names
        seen = subprocess.run(
            [str(programs / "python"), "-c", "import pytest"], capture_output=True, check=False
        )
        assert seen.returncode != 0
        # The control: an answer that is not there is missed.
        (tmp_path / "model.json").unlink()
        assert walk.mistakes(steps, tmp_path) == ["there is no model"]

    def test_versions_and_pythons_agree(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert project["dynamic"] == ["version"]
        pythons = [c.rsplit(" ", 1)[1] for c in project["classifiers"] if ":: 3." in c]
        assert pythons == ["3.11", "3.12", "3.13"]
