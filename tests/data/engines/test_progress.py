"""The bar: on a terminal, never in a pipe, and without the number of records."""

import io
import sys

from quorate.data.engines.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def walk(total, monkeypatch, stream, **options):
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(total, label="grouping by user", **options) as bar:
        for _ in range(4):
            bar.advance(31337 // 4)
    return stream.getvalue()


def test_a_pipe_stays_silent(monkeypatch):
    assert walk(31337, monkeypatch, io.StringIO()) == ""


def test_a_terminal_sees_percent_and_time_but_no_number_of_records(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = walk(31337, monkeypatch, Terminal())
    assert "grouping by user" in shown
    assert "%" in shown
    assert ":" in shown
    assert "31337" not in shown
    assert "7834" not in shown


def test_an_unknown_length_shows_no_percentage(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = walk(None, monkeypatch, Terminal())
    assert "grouping by user" in shown
    assert "%" not in shown


def test_it_may_be_forbidden(monkeypatch):
    assert walk(31337, monkeypatch, Terminal(), show=False) == ""
