"""Work beside other work: begun at once, waited for, and its errors raised to whoever waits."""

import threading

import pytest

from quorate.tabulate import turns


@pytest.mark.parametrize("many", [1, 10**9])
def test_what_was_made_is_there_as_often_as_it_is_asked_for(monkeypatch, many):
    monkeypatch.setattr(turns, "_MANY_ROWS", many)
    found = turns.beside(lambda: [7], rows=5)
    assert found() == [7]
    assert found() is found()


def test_many_rows_are_worked_on_in_another_thread(monkeypatch):
    monkeypatch.setattr(turns, "_MANY_ROWS", 5)
    assert turns.beside(threading.get_ident, rows=4)() == threading.get_ident()
    assert turns.beside(threading.get_ident, rows=5)() != threading.get_ident()


def test_errors_come_to_whoever_waits(monkeypatch):
    monkeypatch.setattr(turns, "_MANY_ROWS", 1)
    found = turns.beside(lambda: 1 / 0, rows=5)
    with pytest.raises(ZeroDivisionError):
        found()
