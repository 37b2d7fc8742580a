"""Work beside other work: begun at once, waited for, and its errors raised to whoever waits."""

import threading

import pytest

from quorate.data.by_group import background


@pytest.mark.parametrize("many", [1, 10**9])
def test_what_was_made_is_there_as_often_as_it_is_asked_for(monkeypatch, many):
    monkeypatch.setattr(background, "_MANY_ROWS", many)
    found = background.in_background(lambda: [7], rows=5)
    assert found() == [7]
    assert found() is found()


def test_many_rows_are_worked_on_in_another_thread(monkeypatch):
    monkeypatch.setattr(background, "_MANY_ROWS", 5)
    assert background.in_background(threading.get_ident, rows=4)() == threading.get_ident()
    assert background.in_background(threading.get_ident, rows=5)() != threading.get_ident()


def test_errors_come_to_whoever_waits(monkeypatch):
    monkeypatch.setattr(background, "_MANY_ROWS", 1)
    found = background.in_background(lambda: 1 / 0, rows=5)
    with pytest.raises(ZeroDivisionError):
        found()


@pytest.mark.parametrize("many", [1, 10**9])
def test_every_item_comes_once_with_what_was_made_of_it(monkeypatch, many):
    monkeypatch.setattr(background, "_MANY_ROWS", many)
    assert sorted(background.with_a_thread(lambda item: 2 * item, range(50), rows=5)) == [
        (item, 2 * item) for item in range(50)
    ]
    assert list(background.with_a_thread(str, [], rows=5)) == []


def test_two_work_at_once_where_there_are_many_rows(monkeypatch):
    """The first item is not made before somebody else has made the last one."""
    monkeypatch.setattr(background, "_MANY_ROWS", 5)
    made = threading.Event()

    def work(item):
        if item == 9:
            made.set()
        return made.wait(60 if item == 0 else 0), threading.get_ident()

    found = dict(background.with_a_thread(work, range(10), rows=5))
    assert found[0][0]
    assert found[0][1] != threading.get_ident() == found[9][1]


@pytest.mark.parametrize("wrong", [0, 9])
def test_whatever_goes_wrong_with_an_item_is_raised(monkeypatch, wrong):
    monkeypatch.setattr(background, "_MANY_ROWS", 1)

    def work(item):
        return 1 / (item - wrong)

    with pytest.raises(ZeroDivisionError):
        dict(background.with_a_thread(work, range(10), rows=5))
