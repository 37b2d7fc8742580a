"""A loss of the caller that may see many users at once."""

import numpy as np

from quorate.core.users import UserData
from quorate.models.losses import Loss, by_user
from quorate.models.vectorized import Vectorized


class Own(Loss):
    """Counts the users that it is shown at once."""

    def __init__(self):
        self.shown = []

    def dimension(self, n_features):
        return n_features

    def user_gradients(self, batch, theta):
        self.shown.append(batch.n_users)
        return batch.user_means() - theta


PEOPLE = UserData([[1.0], [3.0], [5.0]], offsets=[0, 1, 3])


def test_it_is_shown_all_of_them_and_others_one_by_one():
    for loss, shown in ((Vectorized(own := Own()), [2]), (own, [2, 1, 1])):
        np.testing.assert_array_equal(
            by_user(loss).user_gradients(PEOPLE, np.zeros(1)), [[1.0], [4.0]]
        )
        assert own.shown == shown


def test_the_promise_says_so():
    assert "many users at once" in Vectorized(Own()).caveat
    assert Own().caveat is None


class Derived(Vectorized):
    """A caller's own kind of it."""


def test_a_loss_that_the_caller_derived_from_it_is_shown_one_at_a_time():
    own = Own()
    by_user(Derived(own)).user_gradients(PEOPLE, np.zeros(1))
    assert own.shown == [1, 1]
