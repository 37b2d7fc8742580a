"""The imports keep to the border of the core, private names included."""

import pytest

from core_border import (
    BY_HAND,
    CLOSED_OPERATIONS,
    DEBT,
    HANDS,
    KEYS,
    MODULES,
    SEALED_ROOMS,
    SOURCES,
    TRUSTED,
    entered,
    imported,
    main,
    private_names,
    reached_into,
    unbound,
)


def those(look):
    return {name for name, path in MODULES.items() if look(path.read_text())}


def test_only_trusted_modules_seal_and_open():
    assert those(lambda source: imported(source) & KEYS) <= TRUSTED


def test_only_closed_operations_hold_a_source():
    assert those(lambda source: imported(source) & SOURCES) <= CLOSED_OPERATIONS


def test_only_audits_and_single_rows_are_sealed_by_hand():
    assert those(lambda source: imported(source) & BY_HAND) == HANDS


def test_only_the_core_goes_through_private_doors():
    inside = {
        "core/account/parts.py",
        "core/account/secret_pairs.py",
        "core/people.py",
        "core/questions/ballots.py",
        "core/questions/held_keys.py",
        "core/questions/lines.py",
        "core/questions/scores.py",
        "core/questions/shares.py",
        "core/sealed.py",
    }
    assert those(entered) <= inside


def test_people_are_asked_for_one_account_that_alone_opens_what_they_say():
    found = {name: unbound(path.read_text()) for name, path in MODULES.items()}
    assert {name for name, lines in found.items() if lines} == set()
    assert unbound(
        "people = People(crowd, relation)\nother = People(crowd, relation, among=a)"
    ) == [1]


# A crowd on a cluster has groups of its own.
OWN = {"data/engines/dask.py": {"made._groups"}}


def test_nobody_outside_of_the_core_reaches_behind_its_names():
    private = private_names()
    assert {"_noise", "_whole", "_some_of", "_open"} <= private
    outside = {name: path for name, path in MODULES.items() if not name.startswith("core/")}
    found = {name: reached_into(path.read_text(), private) for name, path in outside.items()}
    assert {name: reached for name, reached in found.items() if reached} == OWN


@pytest.mark.parametrize(
    "code",
    [
        "from quorate.core.questions.lines import _rows",
        "def f(account):\n    return account._noise",
        "other = account._whole._check_people",
        "class Mine(People):\n    pass",
    ],
)
def test_the_check_sees_who_reaches_behind_a_name(code):
    assert reached_into(code, private_names())


@pytest.mark.parametrize("room", sorted(SEALED_ROOMS))
def test_a_sealed_room_holds_no_crowd_and_claims_nothing(room):
    ours = {name for name in MODULES if name.split("/")[0] == room}
    found = {name for name in ours if imported(MODULES[name].read_text()) & {"Crowd"}}
    assert found <= DEBT


@pytest.mark.parametrize(
    ("code", "look"),
    [
        ("from quorate.core.sealed import opened", lambda code: imported(code) & KEYS),
        ("def f():\n    from quorate.core.sealed import _KEY", lambda code: imported(code) & KEYS),
        ("from quorate.core.account.account import noise_for", lambda c: imported(c) & SOURCES),
        ("total._Sealed__numbers", entered),
        ("people._held_crowd().X", entered),
    ],
)
def test_the_check_sees_a_module_that_crosses_the_border(code, look):
    assert look(code)


def test_lists_name_modules_that_there_are():
    assert set(MODULES) >= TRUSTED | CLOSED_OPERATIONS | DEBT


def test_the_report_names_every_trusted_module(capsys):
    main()
    printed = capsys.readouterr().out
    assert [name for name in TRUSTED | CLOSED_OPERATIONS if name not in printed] == []
