"""The house keeps its plan: layers, mirrors, cheap imports, one source of noise."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quorate"
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

# From the ground up, floor by floor, and on each floor from left to right: a room may import from
# itself and from the rooms before it.
FLOORS = [
    ["exceptions", "_validate", "arrays", "guarantees"],
    [
        "public_randomness",
        "exact_draws",
        "noise",
        "rotation",
        "bounds",
        "grid",
        "users",
        "engines",
        "concepts",
    ],
    ["accounting", "ranges", "mechanisms"],
    ["releases", "estimators", "pipelines"],
    [
        "auditing",
        "means",
        "models",
        "learners",
        "conversion",
        "protocols",
        "queries",
        "stability",
        "distributions",
        "tabulate",
    ],
    ["catalogue", "planning"],
    ["files", "tasks"],
    ["reports", "serve"],
    ["cli"],
]
PLACE = {name: place for place, name in enumerate(name for floor in FLOORS for name in floor)}
# Constructors of UserData that only an engine can keep; they are imported when they are called.
DOORS = {
    ("users/data.py", "quorate.engines.sql"),
    ("users/data.py", "quorate.engines.files"),
    ("users/data.py", "quorate.files.table_files"),
}
HEAVY = {
    "scipy",
    "sklearn",
    "dp_accounting",
    "pyarrow",
    "opendp",
    "matplotlib",
    "pandas",
    "typer",
    "rich",
}


def top(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def nodes(source):
    """Return the imports and calls in a piece of code, read once for all checks."""
    kinds = ast.Import | ast.ImportFrom | ast.Call
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]


def imported(path):
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def violations(path, names):
    """Return the imports of ``names`` that point to a later room than that of ``path``."""
    room = top(path)
    ours = [name for name in names if name.startswith("quorate.")]
    later = [name for name in ours if PLACE.get(name.split(".")[1], -1) > PLACE[room]]
    doors = tuple(door for where, door in DOORS if where == str(path.relative_to(SOURCE)))
    return [name for name in later if not name.startswith(doors)]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_to_earlier_rooms_only(path):
    if path.parent == SOURCE and path.name == "__init__.py":
        pytest.skip("the front door may see every room; it opens them lazily")
    assert top(path) in PLACE, "a new room needs its place in FLOORS"
    assert violations(path, imported(path)) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [("noise.py", "quorate.mechanisms.sums"), ("means/median.py", "quorate.learners.base")],
    ids=["another floor", "a sibling"],
)
def test_the_check_of_rooms_catches_an_import_of_a_later_one(path, name):
    assert violations(SOURCE / path, [name]) == [name]
    assert violations(SOURCE / path, ["quorate._validate", "quorate.exceptions"]) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_module_has_its_test_file(path):
    if path.name == "__init__.py":
        pytest.skip("front doors are tested by what they open")
    relative = path.relative_to(SOURCE)
    expected = ROOT / "tests" / relative.parent / f"test_{relative.name.lstrip('_')}"
    assert expected.exists(), f"write {expected.relative_to(ROOT)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_stays_readable(path):
    assert len(path.read_text().splitlines()) <= 500, "split it: one idea a file"


def draws(node):
    """Tell whether a piece of code calls something like ``np.random.default_rng``."""
    names = []
    inner = node.func if isinstance(node, ast.Call) else None
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return isinstance(inner, ast.Name) and inner.id == "np" and names[-1:] == ["random"]


def test_a_draw_is_seen_however_deep():
    code = "np.random.rand(3); np.random.mtrand._rand.normal(); np.sort(np.random); rng.random()"
    assert [draws(node) for node in nodes(code)].count(True) == 2


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_random_numbers_have_two_doors_only(path):
    doors = {"noise.py", "public_randomness.py"}
    sources = {"opendp", "secrets", "random"}
    if path.name not in doors or path.parent != SOURCE:
        assert not {name.split(".")[0] for name in imported(path)} & sources
        assert not [node for node in nodes(path.read_text()) if draws(node)]


NOISE_USERS = {
    "noise.py": "the source itself",
    "accounting": "the account, which captures a source and pays before it draws",
    "mechanisms": "what draws, through an account",
    "protocols": "devices, which draw for themselves",
    "auditing": "doubles and enumerations",
    "tasks": "says in a plan whether noise is secure; draws nothing",
    "serve": "names of stored messages; hides nobody",
    "stability": "a public draw of another learner's outputs, from a public seed",
}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nobody_else_knows_where_noise_comes_from(path):
    """Estimators see released numbers; whatever they draw, they draw through their account."""
    if any(name.startswith("quorate.noise") for name in imported(path)):
        room = path.relative_to(SOURCE).parts[0]
        assert room in NOISE_USERS, "draw through the account of the fit, in mechanisms/"


RELEASES = {"release", "release_values", "release_between", "release_counts"}
RELEASES |= {"release_keys", "release_tally"}
# Rooms whose mechanisms may open an account of their own, and calls that are no mechanism's.
OWN_ACCOUNTS = {"auditing", "reports", "serve", "accounting"}
NO_MECHANISM = {"released", "run"}


def unpaid(source):
    """Return the releases in a piece of code that are not handed the account of the fit."""
    calls = [node for node in nodes(source) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in RELEASES
        and ast.unparse(call.func.value) not in NO_MECHANISM
        and not any(keyword.arg == "account" for keyword in call.keywords)
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_release_is_handed_the_account_of_its_fit(path):
    """Without one a mechanism opens an account for itself, and the fit would not know."""
    if path.relative_to(SOURCE).parts[0] not in OWN_ACCOUNTS:
        assert unpaid(path.read_text()) == []


def test_a_release_without_an_account_is_seen():
    assert unpaid("found = mechanism.release(values)") == ["mechanism.release(values)"]
    assert unpaid("found = mechanism.release(values, account=account)") == []


def test_importing_quorate_loads_nothing_heavy():
    code = "import sys, quorate; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not loaded & HEAVY
    assert len({name for name in run.stdout.split() if name.startswith("quorate.")}) <= 8


def test_the_front_door_opens_every_name_it_lists():
    import quorate

    for name in dir(quorate):
        assert getattr(quorate, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = quorate.nothing


def test_the_package_ships_its_types():
    assert (SOURCE / "py.typed").exists()


def private_imports(path):
    """Return the names with a leading underscore that a module takes from another room's module."""
    for node in nodes(path.read_text()):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quorate.")
        if ours and node.module.split(".")[1] != top(path):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_take_no_private_names_from_each_other(path):
    """A constant that two rooms need is a public decision of one of them."""
    assert list(private_imports(path)) == []


def test_the_check_of_private_names_can_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "planning").mkdir()
    module = tmp_path / "planning" / "mean.py"
    module.write_text("from quorate.means.ways import _SHARE, first_way\n")
    assert list(private_imports(module)) == ["_SHARE"]
