"""Users put together by engines: the same as users grouped from a table."""

import numpy as np

from quorate.users import UserData
from quorate.users.assembly import numbered_users, ordered_users


def test_numbered_and_ordered_users_are_those_of_the_table():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((60, 2)), rng.integers(0, 9, 60)
    expected = UserData.from_arrays(X, X[:, 0], users=codes)
    mine = numbered_users(X, X[:, 0], codes, expected.keys(), "user", None)
    again = ordered_users(mine.X, mine.y, mine.offsets, mine.keys(), "user", None)
    for data in (mine, again):
        assert np.array_equal(data.X, expected.X)
        assert np.array_equal(data.y, expected.y)
        assert np.array_equal(data.user_means(), expected.user_means())
    assert np.array_equal(again.public_draws(3), expected.public_draws(3))


def test_users_without_records_keep_their_places():
    keys = np.array([3, 5, 9], dtype=np.uint64)
    data = numbered_users(np.ones((2, 1)), None, np.array([2, 0]), keys, "patient", ("a",))
    assert data.record_counts().tolist() == [1, 0, 1]
    assert (data.unit, data.feature_names) == ("patient", ("a",))
