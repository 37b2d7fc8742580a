"""Laws of exact sums over users, however they are cut into parts."""

from dataclasses import dataclass

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Bound, Box
from quorate.core.bounds.simplex import Simplex
from quorate.core.users import UserData
from quorate.data.engines import MemoryCrowd, UserMeans
from quorate.mechanisms.sums import choose_grid
from sealing import crowd_total, crowd_votes


class Engine:
    """A way to cut users into parts; answers are put back into the order of the users."""

    def __init__(self, n_parts=None, threads=1):
        self.n_parts, self.threads = n_parts, threads

    def __repr__(self):
        return f"parts={self.n_parts}, threads={self.threads}"

    def crowd(self, data):
        if self.n_parts is None:
            return data
        return MemoryCrowd(data, n_parts=self.n_parts, threads=self.threads)

    def sum_over_users(self, data, statistic, grid):
        return crowd_total(self.crowd(data), statistic, grid)

    def votes(self, data, statistic, grid):
        found = crowd_votes(self.crowd(data), statistic, grid)
        if self.n_parts is None:
            return found
        votes = np.empty_like(found)
        votes[np.argsort(data.keys(), kind="stable")] = found
        return votes


ENGINES = [Engine(), Engine(1), Engine(7), Engine(40, threads=3)]
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=repr)


@dataclass(frozen=True)
class RecordByRecord:
    """The sum of a bent feature over a user's records, minus how many there are."""

    bound: Bound

    def __call__(self, users):
        bent = np.tanh(users.X) * 1e3
        return users.user_sums(bent) - users.record_counts()[:, None]


@dataclass(frozen=True)
class VoteForTheLargest:
    """A vote for the feature with the largest mean."""

    bound: Bound

    def __call__(self, users):
        means = users.user_means()
        largest = np.nan_to_num(means, nan=-np.inf).argmax(axis=1)
        return np.eye(means.shape[1])[largest]


STATISTICS = [
    UserMeans(Ball(1.5, centre=[0.5, 0.0, -0.5])),
    RecordByRecord(Box([-900.0, 0.0, -5.0], [900.0, 10.0, 5.0])),
    VoteForTheLargest(Simplex(3)),
]
every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: type(s).__name__)


def table(seed, n_records=200):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 25, n_records)
    X = rng.standard_normal((n_records, 3)) * 10.0 ** rng.integers(-3, 4, (n_records, 1))
    X[rng.random(n_records) < 0.05] = np.nan
    return X, users


def one_user_at_a_time(data, statistic, grid):
    """Return the contributions by the plainest route there is."""
    rows = []
    for i in range(data.n_users):
        with np.errstate(all="ignore"):
            rows.append(grid.encode(statistic(data.take([i])))[0])
    return np.array(rows)


@every_engine
@every_statistic
@pytest.mark.parametrize("seed", range(3))
def test_an_engine_gives_the_plain_result_to_the_last_bit(engine, statistic, seed):
    X, users = table(seed)
    data = UserData.from_arrays(X, users=users)
    grid = choose_grid(statistic.bound, n_users=data.n_users)
    expected = one_user_at_a_time(data, statistic, grid)
    assert (engine.votes(data, statistic, grid) == expected).all()
    assert (engine.sum_over_users(data, statistic, grid) == expected.sum(axis=0)).all()


@every_engine
@every_statistic
def test_how_the_rows_of_different_users_interleave_does_not_matter(engine, statistic):
    X, users = table(5)
    grid = choose_grid(statistic.bound, n_users=25)
    expected = engine.sum_over_users(UserData.from_arrays(X, users=users), statistic, grid)
    # Rows of one user keep their order; everything else is moved.
    for seed in range(5):
        places = np.random.default_rng(seed).permutation(len(users))
        for user in np.unique(users):
            places[users == user] = np.sort(places[users == user])
        order = np.argsort(places)
        data = UserData.from_arrays(X[order], users=users[order])
        assert (engine.sum_over_users(data, statistic, grid) == expected).all()


@every_engine
@every_statistic
def test_who_is_called_how_does_not_matter(engine, statistic):
    X, users = table(6)
    grid = choose_grid(statistic.bound, n_users=25)
    expected = engine.sum_over_users(UserData.from_arrays(X, users=users), statistic, grid)
    renamed = UserData.from_arrays(X, users=[f"user {(u * 7) % 25}" for u in users])
    assert (engine.sum_over_users(renamed, statistic, grid) == expected).all()


@every_engine
@every_statistic
def test_evaluating_twice_gives_the_same(engine, statistic):
    data = UserData.from_arrays(*table(7)[:1], users=table(7)[1])
    grid = choose_grid(statistic.bound, n_users=data.n_users)
    first = engine.sum_over_users(data, statistic, grid)
    assert (engine.sum_over_users(data, statistic, grid) == first).all()


@every_engine
@every_statistic
def test_no_users_add_up_to_zero(engine, statistic):
    data = UserData.from_arrays(np.empty((0, 3)), users=np.empty(0, int))
    grid = choose_grid(statistic.bound, n_users=0)
    assert not engine.sum_over_users(data, statistic, grid).any()
    assert engine.votes(data, statistic, grid).shape == (0, 3)


@every_engine
@pytest.mark.parametrize("who", ["one user holds everything", "nobody holds anything"])
def test_extreme_shapes(engine, who):
    X = np.full((50, 3), 1.0 if who.startswith("one") else np.nan)
    data = UserData.from_arrays(X, users=np.zeros(50, int))
    statistic = UserMeans(Ball(2.0, dimension=3))
    grid = choose_grid(statistic.bound, n_users=1)
    totals = grid.decode(engine.sum_over_users(data, statistic, grid), count=1)
    assert totals == pytest.approx(np.nan_to_num(X[0]), abs=1e-9)
