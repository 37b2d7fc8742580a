"""Vectors that stay with their users answer as arrays do, however the users are cut into parts."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Box, Interval
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.crowd import counts_up_to
from quorate.data.engines import MemoryCrowd
from quorate.means.present_mean import gaussian_vote, marked, presence
from quorate.means.routes.gaussian_routes import _weights
from quorate.means.weighted_users import PeopleVectors, WeightedUsers, _Apart, bounded_vectors
from quorate.mechanisms.sums import choose_grid, fitting_grid
from sealing import numbers_of, rows_of

BOX = Box([-2.0, 0.0], [2.0, 4.0])
CENTRE = np.array([0.1, -0.3])


def grid_of(bound, users):
    return fitting_grid(bound, n_users=users.size_bound, relation=users.relation, noise=3.0)


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n), rng.integers(1, 9, n))
    X = np.round(rng.normal(size=(len(users), 2)) * 2.0, 1)
    X[users % 17 == 3] = np.nan
    X[users % 29 == 5] = 1e308
    return UserData.from_arrays(X, users=[f"u{u}" for u in users])


@pytest.fixture(params=[0, 1, 8, 64], ids=lambda n: f"{n} parts" if n else "whole")
def pair(request):
    """The same users as arrays in the order of their keys, and as people in parts."""
    data = people()
    by_key = data.take_ranked(np.arange(data.n_users))
    vectors = bounded_vectors(by_key.user_means(), BOX)
    # Absent users, also those whose mean overflows, hold nothing.
    counts = np.where(np.isnan(vectors[:, 0]), 0.0, by_key.record_counts())
    plain = WeightedUsers(vectors, counts=counts)
    crowd = MemoryCrowd(data, n_parts=request.param) if request.param else data

    def asked(relation=Relation.REPLACE):
        return PeopleVectors.of(People(crowd, relation), UserData.user_means, BOX, counted=True)

    return plain, asked


@pytest.mark.parametrize("records", [None, 4.0])
class TestSameAnswers:
    @pytest.fixture(autouse=True)
    def weigh(self, pair, records):
        plain, asked = pair
        self.plain = plain if records is None else plain.weighed(records)
        self.crowds = {
            each: asked(each) if records is None else asked(each).weighed(records)
            for each in Relation
        }
        self.crowd = self.crowds[Relation.REPLACE]

    def test_sums(self):
        grid = choose_grid(Interval(0.0, 1.0, centre=0.0), n_users=200)
        for work in (_weights, presence):
            assert grid.encode_sum(work(self.plain)) == numbers_of(self.crowd.total(work, grid))
        for crowd in self.crowds.values():
            ball = Ball(1.5, centre=np.zeros(2) if crowd.weighted else CENTRE)
            grid = grid_of(ball, crowd)
            total = crowd.total(lambda part: part.offsets(CENTRE), grid)
            mine = grid.encode_sum(self.plain.offsets(CENTRE))
            assert (mine == numbers_of(total)).all()

    def test_counts(self):
        thresholds = np.linspace(0.0, 5.0, 41)
        mine = counts_up_to(self.plain.held, thresholds)
        assert (mine == numbers_of(self.crowd.count_records(thresholds))).all()
        for relation, crowd in self.crowds.items():
            mine = counts_up_to(self.plain.distances(CENTRE, relation), thresholds)
            assert (mine == numbers_of(crowd.count_within(thresholds, CENTRE))).all()

    def test_pairs(self):
        """The same pairs are found in a secret order, however the users are cut."""
        account = Account.open(epsilon=1.0, noise=SeededNoise(5))
        found = rows_of(self.crowd.pair_distances(account, most=120))
        order = Account.open(epsilon=1.0, noise=SeededNoise(5)).secret_order(200)
        held = np.column_stack([self.plain.vectors, self.plain.counts])
        expected = _Apart(2, self.crowd.records)(held[order[:120].reshape(60, 2)])
        assert np.array_equal(found, expected)
        assert np.isinf(found).any(), "some pair has an absent user"


class TestUnweighted:
    def test_absent_users_vote(self, pair):
        plain, asked = pair
        crowd, ball = asked(), Ball(1.5, centre=CENTRE)
        grid = grid_of(OrAbsent(ball, gaussian_vote(ball)), crowd)
        total = crowd.total(lambda part: marked(part.vectors), grid)
        votes = np.isnan(plain.vectors[:, 0])
        assert (grid.encode_sum(np.column_stack([plain.vectors, votes])) == numbers_of(total)).all()

    def test_columns_are_those_of_present_users(self, pair):
        plain, asked = pair
        mine = plain.vectors[plain.present, 1]
        assert np.array_equal(mine, np.sort(mine)) is False
        assert np.array_equal(np.sort(mine), np.sort(rows_of(asked().column(1))))

    def test_weights_can_be_taken_back(self, pair):
        _, asked = pair
        assert asked().weighed(3.0).weighted
        assert not asked().weighed(3.0).equally().weighted
