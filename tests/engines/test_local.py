"""The local engine: parts, threads and parameters."""

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from quorate.engines import LocalEngine, UserMeans
from quorate.exceptions import ParameterError
from quorate.grid import Ball, Bound, Grid, choose_grid
from quorate.users import UserData


@dataclass
class Remembering:
    """A statistic that remembers how it was called."""

    bound: Bound
    batched: bool = True
    calls: list = field(default_factory=list)

    def __call__(self, users):
        self.calls.append((users.n_records, threading.get_ident()))
        return users.user_means()


def people(n_users=20, n_records=10):
    users = np.tile(np.arange(n_users), n_records)
    X = np.random.default_rng(0).standard_normal((n_users * n_records, 2))
    return UserData.from_arrays(X, users=users)


def run(engine, **options):
    data, statistic = people(), Remembering(Ball(1.0, dimension=2), **options)
    grid = choose_grid(statistic.bound, n_users=data.n_users)
    totals = engine.sum_over_users(data, statistic, grid)
    expected = grid.encode_sum(UserMeans(statistic.bound)(data))
    assert (totals == expected).all()
    return statistic.calls


class TestParts:
    def test_parts_hold_at_most_the_records_asked_for(self):
        calls = run(LocalEngine(batch_records=35))
        assert [records for records, _ in calls] == [30] * 6 + [20]

    def test_a_user_with_more_records_is_a_part_alone(self):
        assert len(run(LocalEngine(batch_records=4))) == 20

    def test_small_data_are_one_part(self):
        assert len(run(LocalEngine())) == 1

    def test_a_statistic_may_ask_for_all_users_at_once(self):
        assert len(run(LocalEngine(batch_records=4), batched=False)) == 1

    def test_means_do_not_sort_the_table(self):
        data = people()
        statistic = UserMeans(Ball(1.0, dimension=2))
        grid = choose_grid(statistic.bound, n_users=data.n_users)
        LocalEngine(batch_records=4).sum_over_users(data, statistic, grid)
        assert data._store.codes is not None


class TestManyUsers:
    @pytest.mark.parametrize("batch_records", [1, 400, 10**6])
    def test_a_sum_saturates_alike_however_it_is_cut_into_parts(self, batch_records):
        """Half of the users pull back what saturated parts alone would have lost."""
        bound = Ball(1.0, dimension=1)
        grid = Grid(bound, 2.0**-52)
        X = np.concatenate([np.ones(3000), -np.ones(2500), np.ones(1000)])[:, None]
        data = UserData(X, offsets=np.arange(len(X) + 1))
        engine = LocalEngine(batch_records=batch_records)
        assert engine.sum_over_users(data, UserMeans(bound), grid).tolist() == [2**62]
        fewer = UserData(X[:5600], offsets=np.arange(5601))
        expected = 600 * int(grid.encode([[1.0]])[0, 0])
        assert engine.sum_over_users(fewer, UserMeans(bound), grid).tolist() == [expected]


class TestThreads:
    def test_parts_run_on_other_threads(self):
        idents = {ident for _, ident in run(LocalEngine(threads=2, batch_records=10))}
        assert threading.get_ident() not in idents

    def test_one_thread_is_this_one(self):
        assert {i for _, i in run(LocalEngine(batch_records=10))} == {threading.get_ident()}


class TestParameters:
    @pytest.mark.parametrize("wrong", [{"threads": 0}, {"threads": 1.5}, {"batch_records": 0}])
    def test_numbers_that_make_no_sense_are_refused(self, wrong):
        with pytest.raises(ParameterError):
            LocalEngine(**wrong)
