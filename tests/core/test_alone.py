"""Functions are tried on made-up users before they see anybody: together, and each alone."""

import functools

import numpy as np
import pytest

from quorate import UserData
from quorate.core.alone import refuse_company
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.exceptions import SealedError

NOBODY = UserData([[0.0, 0.0]], [1.0], offsets=[0, 1]).nobody()


def means(users, *, less):
    return users.user_means() - less(users)


def nothing(users):
    return 0.0


def mean_of_all(users):
    return users.X.mean(axis=0)


def test_what_is_said_of_each_user_alone_passes():
    refuse_company(UserData.user_means, UserData.user_means, NOBODY)
    honest = functools.partial(means, less=nothing)
    refuse_company(honest, honest, NOBODY)


def test_the_same_function_with_another_inside_is_tried_again():
    """Definitions count, not objects: a partial is as honest as what it holds."""
    cheat = functools.partial(means, less=mean_of_all)
    with pytest.raises(SealedError, match="depends on other users"):
        refuse_company(cheat, cheat, NOBODY)


def test_a_closure_over_another_function_is_tried_again():
    def answer(inside):
        return lambda users: means(users, less=inside)

    refuse_company(answer(nothing), answer(nothing), NOBODY)
    cheat = answer(mean_of_all)
    with pytest.raises(SealedError):
        refuse_company(cheat, cheat, NOBODY)


def test_a_refused_function_is_refused_again():
    cheat = functools.partial(means, less=mean_of_all)
    for _ in range(2):
        with pytest.raises(SealedError):
            refuse_company(cheat, cheat, NOBODY)


def test_sums_are_compared_where_functions_judge_candidates():
    class Judges:
        low, high, shape = 0, 1, (2,)

        def __init__(self, least):
            self.least = least

        def __call__(self, users):
            means = users.user_means()
            yield ..., means >= self.least(means)

    def some(own):
        return 0.0

    def all_of_them(means):
        return means.max(axis=0)

    people = People(UserData.from_arrays([[1.0, 3.0], [2.0, 0.0]], users=[1, 2]), Relation.REPLACE)
    assert people.scores(Judges(some)).shape == (2,)
    with pytest.raises(SealedError):
        people.scores(Judges(all_of_them))


def test_it_is_refused_before_any_record_is_read():
    class Unread(UserData):
        @property
        def X(self):
            raise AssertionError("a record was read")

    unread = UserData([[1.0], [2.0]], offsets=[0, 1, 2])
    unread.__class__ = Unread

    class Cheat:
        bound = Interval(0.0, 4.0, centre=0.0)

        def __call__(self, users):
            return users.user_means() - users.X.max()

    with pytest.raises(SealedError):
        People(unread, Relation.REPLACE).total(Cheat(), Grid(Cheat.bound, step=1.0))


def test_vectors_that_are_kept_are_tried_as_well():
    """What is kept is asked for as rows of its own, which look at nobody."""

    def ranks(users):
        return np.argsort(np.argsort(users.user_means()[:, 0]))[:, np.newaxis].astype(float)

    people = People(UserData([[1.0], [2.0]], offsets=[0, 1, 2]), Relation.REPLACE)
    with pytest.raises(SealedError, match="depends on other users"):
        people.keeping(ranks, dimension=1)


def test_a_function_that_nobody_can_try_passes():
    def fussy(users):
        raise ValueError(str(np.asarray(users.X)))

    refuse_company(fussy, fussy, NOBODY)


def test_the_rounding_of_a_product_over_several_users_is_no_company():
    """A network of the caller rounds by the shape of its batch; its guarantee says idealized."""

    def rounded(users):
        rows = users.user_means()
        return rows + (users.n_users - 1) * 2.0**-24 * rows

    refuse_company(rounded, rounded, NOBODY)


def test_an_infinite_answer_hides_no_company():
    def far(users):
        ranks = np.argsort(users.user_means()[:, 0])
        return np.where(users.record_counts() == 1, np.inf, ranks)

    with pytest.raises(SealedError):
        refuse_company(far, far, NOBODY)
