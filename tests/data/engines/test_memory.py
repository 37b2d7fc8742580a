"""Parts in memory: threads change nothing, empty parts add nothing."""

import threading

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Grid
from quorate.core.users import UserData
from quorate.core.users.crowd import UserMeans
from quorate.data.engines.memory import MemoryCrowd
from quorate.exceptions import ParameterError
from quorate.mechanisms.sums import choose_grid
from sealing import crowd_total


def people(n_users=20):
    X = np.random.default_rng(0).standard_normal((n_users * 10, 2))
    return UserData.from_arrays(X, users=np.tile(np.arange(n_users), 10))


class TestThreads:
    def test_parts_run_on_other_threads_and_give_the_same(self):
        data, bound = people(), Ball(1.0, dimension=2)
        grid = choose_grid(bound, n_users=20)
        alone, many = MemoryCrowd(data, n_parts=5), MemoryCrowd(data, n_parts=5, threads=3)
        idents = many.map(lambda part: threading.get_ident())
        assert threading.get_ident() not in idents
        assert set(alone.map(lambda part: threading.get_ident())) == {threading.get_ident()}
        expected = crowd_total(alone, UserMeans(bound), grid)
        assert (crowd_total(many, UserMeans(bound), grid) == expected).all()


class TestEmptyParts:
    def test_more_parts_than_users_add_nothing(self):
        data, bound = people(3), Ball(1.0, dimension=2)
        grid = choose_grid(bound, n_users=3)
        crowd = MemoryCrowd(data, n_parts=50)
        assert 0 in crowd.sizes
        expected = crowd_total(data, UserMeans(bound), grid)
        assert (crowd_total(crowd, UserMeans(bound), grid) == expected).all()
        assert crowd.n_users == 3

    def test_a_crowd_of_nobody_adds_up_to_zero(self):
        data = UserData.from_arrays(np.empty((0, 2)), users=np.empty(0, int))
        grid = choose_grid(Ball(1.0, dimension=2), n_users=0)
        crowd = MemoryCrowd(data, n_parts=3)
        assert not crowd_total(crowd, UserMeans(grid.bound), grid).any()
        assert crowd.keys().shape == (0,)


class TestSaturation:
    @pytest.mark.parametrize("n_parts", [1, 7])
    def test_a_sum_saturates_alike_however_it_is_cut_into_parts(self, n_parts):
        """Half of the users pull back what saturated parts alone would have lost."""
        bound = Ball(1.0, dimension=1)
        grid = Grid(bound, 2.0**-52)
        X = np.concatenate([np.ones(3000), -np.ones(2500), np.ones(1000)])[:, None]
        data = UserData(X, offsets=np.arange(len(X) + 1), ids=np.arange(len(X)))
        crowd = MemoryCrowd(data, n_parts=n_parts)
        assert crowd_total(crowd, UserMeans(bound), grid).tolist() == [2**62]
        fewer = MemoryCrowd(data.take(np.arange(5600)), n_parts=n_parts)
        expected = 600 * int(grid.encode([[1.0]])[0, 0])
        assert crowd_total(fewer, UserMeans(bound), grid).tolist() == [expected]


class TestParameters:
    @pytest.mark.parametrize("wrong", [{"threads": 0}, {"n_parts": 1.5}, {"n_parts": 0}])
    def test_numbers_that_make_no_sense_are_refused(self, wrong):
        with pytest.raises(ParameterError):
            MemoryCrowd(people(), **wrong)
