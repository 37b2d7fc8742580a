"""Nothing is read before somebody looks."""

import numpy as np
import pytest

from quorate import PrivateMedian, UserData
from quorate.app.tasks.unread import UnreadUsers
from quorate.exceptions import ParameterError


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


def test_an_unknown_attribute_is_an_error_and_reads_nothing():
    read = Reader()
    people = UnreadUsers(read)
    assert not hasattr(people, "toarray")
    assert not hasattr(people, "__array__")
    assert read.calls == 0


def test_no_attribute_at_all_makes_it_read_twice():
    """Reading is charged: reading twice for a probe would cost twice."""
    read = Reader()
    people = UnreadUsers(read)
    for name in ("_nothing", "_store", "_nothing", "n_users", "shape"):
        getattr(people, name, None)
    assert read.calls == 1


def test_an_estimator_takes_it_for_data():
    read = Reader()
    median = PrivateMedian(epsilon=1.0, bounds=9.0).fit(UnreadUsers(read, unit="patient"))
    assert read.calls == 1
    assert median.guarantee_.unit == "patient"


def test_a_refused_parameter_reads_nothing():
    read = Reader()
    with pytest.raises(ParameterError):
        PrivateMedian(epsilon=1.0, bounds=9.0, each_user="whim").fit(UnreadUsers(read))
    assert read.calls == 0


def test_a_reader_that_fails_is_asked_again():
    answers = [OSError("disk"), None]

    def read():
        problem = answers.pop(0)
        if problem is not None:
            raise problem
        return Reader()()

    people = UnreadUsers(read)
    with pytest.raises(OSError, match="disk"):
        _ = people.n_users
    assert people.n_users == 3
