"""Nothing is read before the budget is charged."""

import numpy as np
import pytest

from quorate import Ledger, UserData, UserMean
from quorate.exceptions import BudgetExceededError
from quorate.reports.unread import UnreadUsers


class Reader:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return UserData.from_arrays(np.arange(6.0)[:, None], users=[0, 0, 1, 1, 2, 2])


def test_the_unit_is_known_without_reading():
    read = Reader()
    assert UnreadUsers(read, unit="patient").unit == "patient"
    assert "patient" in repr(UnreadUsers(read, unit="patient"))
    assert read.calls == 0


def test_it_is_read_once_and_then_is_the_data():
    read = Reader()
    people = UnreadUsers(read, unit="patient")
    np.testing.assert_array_equal(people.user_means().ravel(), [0.5, 2.5, 4.5])
    assert (people.n_users, people.n_features, people.feature_names) == (3, 1, None)
    assert people.unit == "patient"
    assert people.take([1]).unit == "patient"
    assert read.calls == 1


def test_an_unknown_attribute_is_still_an_error():
    with pytest.raises(AttributeError):
        _ = UnreadUsers(Reader()).no_such_thing


def test_an_over_budget_fit_never_reads(tmp_path):
    read = Reader()
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("data", epsilon=0.5, unit="user")
    mean = UserMean(epsilon=1.0, bound=1.0, ledger=ledger, data_name="data")
    with pytest.raises(BudgetExceededError):
        mean.fit(UnreadUsers(read))
    assert read.calls == 0


def test_a_reader_that_fails_costs_the_budget(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("data", epsilon=1.0, unit="user")

    def broken():
        raise OSError("disk")

    mean = UserMean(epsilon=0.75, bound=1.0, ledger=ledger, data_name="data")
    with pytest.raises(OSError, match="disk"):
        mean.fit(UnreadUsers(broken))
    assert ledger.remaining("data").epsilon == 0.25
