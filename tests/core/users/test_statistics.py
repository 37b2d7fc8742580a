"""A statistic is not trusted: what it returns is clipped, what it says is withheld."""

import traceback
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Bound, Interval
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.core.users.crowd import UserMeans, encode_users, sum_users
from quorate.data.engines import MemoryCrowd
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.sums import choose_grid
from sealing import crowd_total

BOUND = Ball(1.0, dimension=2)
GRID = choose_grid(BOUND, n_users=10)


def people(values=1.0):
    return UserData.from_arrays(np.full((6, 2), values), users=[0, 1, 2, 0, 1, 2])


@dataclass(frozen=True)
class Says:
    """Returns or raises whatever it is told to."""

    answer: object
    bound: Bound = BOUND

    def __call__(self, users):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(users) if callable(self.answer) else self.answer


class TestLies:
    @pytest.mark.parametrize("size", [1e3, 1e308, np.inf, np.nan])
    def test_a_statistic_that_exceeds_its_bound_is_clipped(self, size):
        mine = encode_users(people(), Says(np.full((3, 2), size)), GRID)
        limit = GRID.l2_sensitivity_squared(Relation.ADD_REMOVE)
        assert all(sum(int(z) ** 2 for z in row) <= limit for row in mine)

    def test_the_grid_decides_and_not_the_declared_bound(self):
        lie = Says(np.full((3, 2), 50.0), bound=Ball(1e6, dimension=2))
        assert np.abs(GRID.join(sum_users(people(), lie, GRID))).max() * GRID.step <= 3.0

    def test_a_sum_without_the_clip_would_be_caught(self):
        unclipped = np.trunc(np.full((3, 2), 50.0) / GRID.step).astype(np.int64)
        limit = GRID.l2_sensitivity_squared(Relation.ADD_REMOVE)
        assert any(sum(int(z) ** 2 for z in row) > limit for row in unclipped)


class TestWhatIsWithheld:
    def test_an_exception_says_nothing_about_records(self):
        secret = UserData.from_arrays([[31337.5, 1.0]], users=[1])

        def quote(users):
            raise ValueError(f"cannot handle {users.X[0, 0]}")

        with pytest.raises(SchemaError, match="withheld") as caught:
            crowd_total(secret, Says(quote), GRID)
        assert "31337" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None

    @pytest.mark.parametrize(
        "answer",
        [
            np.ones((4, 2)),
            np.ones((3, 1)),
            np.ones(3),
            np.ones((3, 2), dtype=object),
            np.full((3, 2), "x"),
            None,
            lambda users: users.X,
        ],
    )
    def test_another_shape_or_type_is_refused_without_saying_which(self, answer):
        with pytest.raises(SchemaError, match=r"\(n_users, 2\)") as caught:
            sum_users(people(), Says(answer), GRID)
        assert "6" not in str(caught.value)

    def test_numpy_does_not_warn_about_records(self):
        def divide(users):
            return users.user_means() / 0.0 - users.user_means() / 0.0

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not sum_users(people(), Says(divide), GRID).any()

    @pytest.mark.parametrize("threads", [1, 4])
    def test_the_statistic_does_not_warn_about_records_either(self, threads):
        def warn(users):
            warnings.warn(f"user with {users.X.max()}", stacklevel=1)
            return np.zeros((users.n_users, 2))

        crowd = MemoryCrowd(people(), n_parts=3, threads=threads)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            crowd_total(crowd, Says(warn), GRID)
        assert seen == []


class TestRequests:
    def test_what_is_public_is_checked_first(self):
        untouched = Says(AssertionError("the records were read"))
        one = choose_grid(Interval(0.0, 1.0), n_users=3)
        with pytest.raises(ParameterError, match="dimension"):
            crowd_total(people(), untouched, one)

    def test_something_else_than_a_grid_is_refused(self):
        with pytest.raises(ParameterError, match="Grid"):
            crowd_total(people(), UserMeans(BOUND), None)
