"""Every mutant still applies, its tests exist, and a fixed dozen is caught each time."""

import ast
import json
import shutil
import subprocess
from collections import Counter

import pytest

from mutants.run import CAUGHT, ROOT, SURVIVED, Copy, Mutant, catalogue, main

MUTANTS = catalogue()
NODE = shutil.which("node")
QUICK = [mutant for mutant in MUTANTS if mutant.quick]
# Rooms whose code never holds a record, a budget or noise.
WITHOUT = {"planning", "exceptions", "_validate", "__init__", "tabulate"}


def names_in(path):
    """Return the tests of a file as pytest names them, without their parameters."""
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            inner = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}::{each.name}" for each in inner}
    return names


def applies_exactly_once(mutant):
    source = mutant.source().read_text()
    if mutant.file.endswith(".py"):
        ast.parse(source.replace(mutant.old, mutant.new))
    return source.count(mutant.old) == 1 and mutant.old != mutant.new


@pytest.mark.parametrize("room", sorted({mutant.room for mutant in MUTANTS}))
def test_a_mutant_applies_exactly_once(room):
    names = [m.name for m in MUTANTS if m.room == room and not applies_exactly_once(m)]
    assert names == []


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_scripts_with_a_mutant_are_still_scripts():
    """What does not even parse would be caught by every test, and tell nothing."""
    found = [mutant for mutant in MUTANTS if mutant.file.endswith(".js")]
    broken = [each.source().read_text().replace(each.old, each.new) for each in found]
    program = (
        "const vm = require('vm'); const texts = JSON.parse(require('fs').readFileSync(0));"
        "console.log(JSON.stringify(texts.map((text) => { try { new vm.Script(text); return true; }"
        " catch (problem) { return String(problem); } })));"
    )
    run = subprocess.run(
        [NODE, "-e", program], input=json.dumps(broken), capture_output=True, text=True, check=True
    )
    assert len(found) >= 12
    names = [mutant.name for mutant in found]
    assert dict(zip(names, json.loads(run.stdout), strict=True)) == dict.fromkeys(names, True)


def test_the_tests_of_every_mutant_exist():
    known = {}
    for mutant in MUTANTS:
        assert mutant.tests or mutant.equivalent, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            if file not in known:
                known[file] = names_in(ROOT / file)
            assert not name or name.partition("[")[0] in known[file], f"{mutant.name}: {test}"


def test_there_are_enough_of_them_and_none_is_there_twice():
    assert len([mutant for mutant in MUTANTS if not mutant.equivalent]) >= 150
    assert len(QUICK) == 12
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS)
    assert max(changes.values()) == 1


def test_every_room_has_mutants():
    rooms = {path.name.removesuffix(".py") for path in (ROOT / "src" / "quorate").iterdir()}
    covered = {mutant.file.split("/")[0].removesuffix(".py") for mutant in MUTANTS}
    assert rooms - covered - WITHOUT - {"__pycache__", "py.typed"} == set()


def test_few_mutants_are_called_equivalent():
    equivalent = [mutant for mutant in MUTANTS if mutant.equivalent]
    assert len(equivalent) <= 0.1 * len(MUTANTS)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    made = Copy(tmp_path_factory.mktemp("mutants") / "tree")
    yield made
    made.close()


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_the_quick_dozen_is_caught(mutant, copy):
    verdict, printed = copy.verdict(mutant)
    assert verdict == CAUGHT, printed


def test_a_change_of_nothing_survives_and_the_copy_is_put_right_again(copy):
    mutant = QUICK[0]
    harmless = Mutant(
        name="nothing",
        room=mutant.room,
        file=mutant.file,
        old=mutant.old,
        new=mutant.old + "  # as before",
        tests=mutant.tests,
    )
    verdict, printed = copy.verdict(harmless)
    assert verdict == SURVIVED, printed
    assert harmless.source(copy.root).read_text() == mutant.source().read_text()


def test_an_unknown_room_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "nowhere"])
    assert "no mutant" in capsys.readouterr().err
