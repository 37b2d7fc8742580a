"""Whatever ends the program, at every point: nothing paid twice, nothing drawn twice, nothing lost.

Points are counted by :class:`Points` around everything that reaches the disk or draws: before and
after each of them the program may end. Every week has its own seed, so that an uninterrupted run
and one with fifty kills must agree to the last integer.
"""

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

from quorate import Ledger, UserSeries
from quorate.core.guarantees import Relation
from quorate.core.noise import use_noise
from quorate.mechanisms.sums import GaussianSum
from quorate.series import store as store_module
from series_worlds import Repeatable


class Killed(BaseException):
    """The end of the program: nothing may catch it."""


class Points:
    """Counts the points at which a program may end, and ends it at some of them."""

    def __init__(self, monkeypatch, end=None):
        self.count, self.at = 0, set()
        self.end = self._raise if end is None else end
        self.monkeypatch = monkeypatch
        self._around(Ledger, "charge")
        self._around(Ledger, "advance")
        self._around(GaussianSum, "release")
        self._around(store_module.SeriesTransaction, "write")
        self._around(store_module.SeriesTransaction, "show")
        self._around(store_module, "born_whole")
        # Just before and just after the commit of every transaction on the store.
        opened = store_module.SeriesStore.page

        @contextmanager
        def page(store):
            with opened(store) as found:
                yield found
                self.reached()
            self.reached()

        monkeypatch.setattr(store_module.SeriesStore, "page", page)

    def _raise(self):
        raise Killed

    def _around(self, owner, name):
        called = getattr(owner, name)

        def watched(*args, **kwargs):
            self.reached()
            found = called(*args, **kwargs)
            self.reached()
            return found

        self.monkeypatch.setattr(owner, name, watched)

    def reached(self):
        self.count += 1
        if self.count in self.at:
            self.end()


WEEKS = 78


def rows(number):
    rng = np.random.default_rng(number)
    size = 0 if number == 5 else 60
    return pa.table(
        {
            "who": pa.array([f"person {i}" for i in rng.integers(0, 40, size)], pa.string()),
            "group": pa.array(rng.choice(["a", "b", "z"], size).tolist(), pa.string()),
            "value": rng.uniform(-1.0, 12.0, size),
        }
    )


def opened(folder, **changes):
    path = folder / "ledger.db"
    ledger = Ledger(path)
    if "sales" not in ledger.names():
        ledger.set_budget("sales", epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
    parameters = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": WEEKS,
        "by": "group",
        "keys": ["a", "b"],
        "statistics": {"buyers": "users", "value": "mean"},
        "bounds": {"value": (0, 10)},
        "touched": 3,
        "store": folder / "sales.sqlite",
        "ledger": ledger,
        "data_name": "sales",
    }
    return UserSeries(**(parameters | changes))


def one_week(folder, number, **changes):
    with use_noise(Repeatable(1000 + number)):
        return opened(folder, **changes).update(rows(number), users="who", period=number)


def released(folder, **changes):
    store = opened(folder, **changes)._store(opened(folder, **changes)._plan())
    with store.page() as page:
        found = [each.tolist() for each in page.shown()]
        spent = sorted(page.spent().values.tolist())
    return found, spent


def same(folder, other, weeks, **changes):
    """Whether two runs agree to the last integer, in releases and in what everybody has spent."""
    one, two = released(folder, **changes), released(other, **changes)
    ledger = Ledger(other / "ledger.db")
    kinds = [type(entry).__name__ for entry in ledger.history("sales")]
    assert kinds == ["BudgetChange", "Charge", *["ProgressEntry"] * weeks]
    assert len(two[0]) == weeks
    return one[0][:weeks] == two[0] and (len(one[0]) > weeks or one[1] == two[1])


@pytest.mark.parametrize("noise", ["independent", "square-root"])
def test_an_update_may_end_at_every_point(tmp_path, monkeypatch, noise):
    whole, base = tmp_path / "whole", tmp_path / "base"
    for folder in (whole, base):
        folder.mkdir()
    for number in (1, 2):
        one_week(whole, number, noise=noise)
    points, tried = Points(monkeypatch), 0
    for number in (1, 2):
        place, reached = 1, True
        while reached:
            # Every point of this week in turn: what was there before, one end, and once more.
            folder = tmp_path / f"{number}-{place}"
            shutil.copytree(base, folder)
            points.count, points.at, reached = 0, {place}, False
            try:
                one_week(folder, number, noise=noise)
            except Killed:
                reached = True
            points.at = set()
            one_week(folder, number, noise=noise)
            assert same(whole, folder, number, noise=noise), (number, place)
            place, tried = place + 1, tried + reached
        one_week(base, number, noise=noise)
    assert tried > 30


@pytest.mark.slow
def test_fifty_ends_during_78_updates_change_no_integer(tmp_path, monkeypatch):
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    for folder in (whole, ended):
        folder.mkdir()
    points = Points(monkeypatch)
    for number in range(1, WEEKS + 1):
        one_week(whole, number)
    points.at = set(np.random.default_rng(5).choice(points.count, 50, replace=False).tolist())
    points.count, ends, number = 0, 0, 1
    while number <= WEEKS:
        try:
            one_week(ended, number)
        except Killed:
            ends += 1
        else:
            number += 1
    assert ends >= 49  # the last points may lie beyond what is left to do
    points.at = set()
    assert same(whole, ended, WEEKS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is ended by kill -9")
def test_kill_9_in_a_process_of_its_own(tmp_path, monkeypatch):
    """The real thing: the process is gone in the middle, and SQLite finds a journal."""
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    for folder in (whole, ended):
        folder.mkdir()
    points = Points(monkeypatch, end=lambda: os.kill(os.getpid(), signal.SIGKILL))
    for number in (1, 2, 3):
        one_week(whole, number)
    kills = 0
    for number in (1, 2, 3):
        for place in (2, 5, 7, 9, 12):
            child = os.fork()
            if child == 0:
                points.count, points.at = 0, {place}
                one_week(ended, number)
                os._exit(0)
            kills += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        one_week(ended, number)
    assert kills >= 6
    assert same(whole, ended, 3)


def written_and_shown(folder, monkeypatch):
    """End an update when its week is written but not shown; return both, and what is shown then."""

    def ended(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "advance", ended)
        with pytest.raises(Killed):
            one_week(folder, 1)
    with sqlite3.connect(folder / "sales.sqlite") as connection:
        [(written, shown)] = connection.execute("SELECT released, shown FROM periods").fetchall()
    connection.close()
    assert not shown
    with use_noise(Repeatable(4711)):  # other noise than before the end
        opened(folder).update(rows(1), users="who", period=1)
    return np.frombuffer(written, "<i8").tolist(), released(folder)[0][0]


def test_a_week_that_was_written_is_shown_as_it_was_drawn(tmp_path, monkeypatch):
    written, shown = written_and_shown(tmp_path, monkeypatch)
    assert shown == written


def test_a_twin_that_draws_a_week_again_is_caught(tmp_path, monkeypatch):
    """It takes a week that was not shown for one that never was."""
    write = store_module.SeriesTransaction.write

    def last(page):
        query = "SELECT number, state, shown, released FROM periods WHERE shown"
        return store_module._period(page._run(query).fetchone() or (0, "", 1, b""))

    def overwrite(page, *args, **kwargs):
        page._run("DELETE FROM periods WHERE NOT shown")
        write(page, *args, **kwargs)
        page._run("UPDATE periods SET shown = shown + ?", (page.charge is not None and ends[0],))
        ends[0] = True

    ends = [False]
    monkeypatch.setattr(store_module.SeriesTransaction, "last", last)
    monkeypatch.setattr(store_module.SeriesTransaction, "write", overwrite)
    monkeypatch.setattr(Ledger, "progress", lambda *_: "")
    monkeypatch.setattr(UserSeries, "_finish", lambda *_: None)

    written = one_week(tmp_path, 1)
    with sqlite3.connect(tmp_path / "sales.sqlite") as connection:
        written = connection.execute("SELECT released FROM periods").fetchone()[0]
    connection.close()
    with use_noise(Repeatable(4711)):
        opened(tmp_path).update(rows(1), users="who", period=1)
    assert released(tmp_path)[0][0] != np.frombuffer(written, "<i8").tolist()


def test_two_writers_release_every_week_once(tmp_path):
    errors = []

    def write():
        try:
            for number in range(1, 6):
                opened(tmp_path).update(rows(number), users="who", period=number)
        except Exception as error:  # pragma: no cover - shown below
            errors.append(error)

    opened(tmp_path)  # which makes the ledger
    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    kinds = [type(entry).__name__ for entry in Ledger(tmp_path / "ledger.db").history("sales")]
    assert kinds == ["BudgetChange", "Charge", *["ProgressEntry"] * 5]
    assert opened(tmp_path).read().periods_ == ("1", "2", "3", "4", "5")


def test_two_writers_without_a_label_lose_no_rows(tmp_path):
    """Who came second is in the next period: rows without a label are never taken for a repeat."""
    threads = [
        threading.Thread(target=lambda: opened(tmp_path).update(rows(1), users="who"))
        for _ in range(2)
    ]
    opened(tmp_path)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened(tmp_path).read().periods_ == ("1", "2")
