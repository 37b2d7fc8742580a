"""The house keeps its plan: layers, cheap imports, one source of noise."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quorate"
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

# From the ground up: a room may import from itself and from the rooms before it. A module belongs
# to the longest name that fits it.
ORDER = [
    "exceptions",
    "_validate",
    "core.once",
    "core.guarantees",
    "core.public_randomness",
    "core.noise",
    "core.bounds",
    "core.users",
    "data.columns",
    "data",
    "data.engines",
    "data.files",
    "core",
    "core.account",
    "ledger",
    "ranges",
    "mechanisms",
    "local",
    "estimators",
    "pipelines",
    "auditing",
    "means",
    "models",
    "nets",
    "learners",
    "papers.conversion",
    "papers.queries",
    "papers.stability",
    "distributions",
    "tabulate",
    "series",
    "synth",
    "app.catalogue",
    "planning",
    "app",
    "app.tasks",
    "app.reports",
    "app.serve",
    "app.cli",
]
# Folders of several rooms, whose own file only says what there is.
HALLS = {"papers"}
PLACE = {name: place for place, name in enumerate(ORDER)}
# Constructors of UserData stand below the readers and engines that they call, and the records of
# users in memory are built by them.
DOORS = {
    ("core/users/data.py", "quorate.data.sources"),
    ("data/columns/marks.py", "quorate.data.frames"),
    ("data/sources.py", "quorate.data.engines.sql"),
    ("data/sources.py", "quorate.data.engines.files"),
    ("data/sources.py", "quorate.data.files.table_files"),
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
    "jax",
    "torch",
}


def place_of(name):
    """Return the room of a dotted name: the longest of ``ORDER`` that it begins with."""
    words = name.split(".")
    begins = (".".join(words[:length]) for length in range(len(words), 0, -1))
    return next((begin for begin in begins if begin in PLACE), words[0])


def top(path):
    return place_of(".".join(path.relative_to(SOURCE).with_suffix("").parts))


ROOMS = sorted({top(path) for path in MODULES})
every_room = pytest.mark.parametrize("room", ROOMS)


def wrong_in(room, look):
    """Return what ``look`` finds wrong in the modules of a room, by module."""
    found = {str(p.relative_to(SOURCE)): look(p) for p in MODULES if top(p) == room}
    return {path: wrong for path, wrong in found.items() if wrong}


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
    later = [name for name in ours if PLACE.get(place_of(name[8:]), -1) > PLACE[room]]
    doors = tuple(door for where, door in DOORS if where == str(path.relative_to(SOURCE)))
    return [name for name in later if not name.startswith(doors)]


# The front door may see every room; it opens them lazily.
@pytest.mark.parametrize("room", [room for room in ROOMS if room != "__init__"])
def test_imports_point_to_earlier_rooms_only(room):
    assert room in {*PLACE, *HALLS}, "a new room needs its place in ORDER"
    assert room in HALLS or wrong_in(room, lambda path: violations(path, imported(path))) == {}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("core/noise/sources.py", "quorate.mechanisms.sums"),
        ("means/median.py", "quorate.learners.base"),
    ],
    ids=["another floor", "a sibling"],
)
def test_the_check_of_rooms_catches_an_import_of_a_later_one(path, name):
    assert violations(SOURCE / path, [name]) == [name]
    assert violations(SOURCE / path, ["quorate._validate", "quorate.exceptions"]) == []


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


TWO_DOORS = ("core.noise", "core.public_randomness")
RANDOM = {"opendp", "secrets", "random"}


def random_numbers(path):
    """Return the sources of randomness that a module imports, and whether it draws by itself."""
    sources = {name.split(".")[0] for name in imported(path)} & RANDOM
    return [*sources, *(ast.unparse(node) for node in nodes(path.read_text()) if draws(node))]


@pytest.mark.parametrize("room", [r for r in ROOMS if r not in TWO_DOORS])
def test_random_numbers_have_two_doors_only(room):
    assert wrong_in(room, random_numbers) == {}


def test_the_two_doors_are_seen():
    assert all(wrong_in(door, random_numbers) for door in TWO_DOORS)


NOISE_USERS = {
    "core.noise": "the source itself",
    "core.account": "the account, which captures a source and pays before it draws",
    "mechanisms": "what draws, through an account",
    "local": "devices, which draw for themselves",
    "auditing": "doubles and enumerations",
    "app.tasks": "says in a plan whether noise is secure; draws nothing",
    "papers.conversion": "takes a mechanism of its own apart",
    "papers.stability": "a public draw of another learner's outputs, from a public seed",
}


def known_noise(path):
    return [name for name in imported(path) if name.startswith("quorate.core.noise")]


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in NOISE_USERS])
def test_nobody_else_knows_where_noise_comes_from(room):
    """Estimators see released numbers; whatever they draw, they draw through their account."""
    assert wrong_in(room, known_noise) == {}, "draw through the account, in mechanisms/"


def test_who_knows_where_noise_comes_from_is_seen():
    assert known_noise(SOURCE / "core" / "account" / "account.py")


# What a source of noise is asked for. Whoever holds an account can be handed the source.
DRAWS = {
    "balanced_laplace",
    "bernoulli_exp",
    "blocks_laplace",
    "cube_laplace",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_ahead",
    "gumbel_max",
    "permute_and_flip",
    "truncated_laplace",
    "uniform_below",
    "uniform_words",
}
DRAWING_ROOMS = {"core.noise", "core.account", "mechanisms", "local"}


def drawn(source):
    """Return the calls in a piece of code that draw from a source of noise."""
    calls = [node for node in nodes(source) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call.func)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in DRAWS
    ]


def test_nothing_outside_of_mechanisms_draws_noise():
    """An estimator hands its account to a mechanism; it asks no source, not even a paid one."""
    found = {}
    for room in [room for room in ROOMS if room not in DRAWING_ROOMS]:
        found |= wrong_in(room, lambda path: drawn(path.read_text()))
    assert found == {}


def test_a_draw_from_a_paid_source_is_seen():
    code = "noisy = account.pay(loss).discrete_laplace(values, scale=scale)"
    assert drawn(code) == ["account.pay(loss).discrete_laplace"]
    assert wrong_in("mechanisms", lambda path: drawn(path.read_text()))


RELEASES = {"release", "release_values", "release_between", "release_counts"}
# Rooms whose mechanisms may open an account of their own, and calls that are no mechanism's.
OWN_ACCOUNTS = {"auditing", "app.reports", "app.serve", "core.account", "ledger"}
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


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in OWN_ACCOUNTS])
def test_every_release_is_handed_the_account_of_its_fit(room):
    """Without one a mechanism opens an account for itself, and the fit would not know."""
    assert wrong_in(room, lambda path: unpaid(path.read_text())) == {}


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
        if ours and place_of(node.module[8:]) != top(path):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


@every_room
def test_rooms_take_no_private_names_from_each_other(room):
    """A constant that two rooms need is a public decision of one of them."""
    assert wrong_in(room, lambda path: list(private_imports(path))) == {}


def test_the_check_of_private_names_can_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "planning").mkdir()
    module = tmp_path / "planning" / "mean.py"
    module.write_text("from quorate.means.routes.expected_errors import _SHARE, first_way\n")
    assert list(private_imports(module)) == ["_SHARE"]
