"""Vectors that stay with their users answer as arrays do, however the users are cut into parts."""

import numpy as np
import pytest

from quorate.engines import MemoryCrowd
from quorate.grid import Box, Interval
from quorate.guarantees import Relation
from quorate.means.routes.shrinking import total_and_absent
from quorate.means.weighted_users import CrowdVectors, WeightedUsers, bounded_vectors
from quorate.mechanisms.sums import choose_grid
from quorate.users import UserData

BOX = Box([-2.0, 0.0], [2.0, 4.0])
CENTRE = np.array([0.1, -0.3])


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n), rng.integers(1, 9, n))
    X = np.round(rng.normal(size=(len(users), 2)) * 2.0, 1)
    X[users % 17 == 3] = np.nan
    X[users % 29 == 5] = 1e308
    return UserData.from_arrays(X, users=[f"u{u}" for u in users])


@pytest.fixture(params=[0, 1, 8, 64], ids=lambda n: f"{n} parts" if n else "whole")
def pair(request):
    """The same users as arrays in the order of their keys, and as a crowd."""
    data = people()
    by_key = data.take_ranked(np.arange(data.n_users))
    vectors = bounded_vectors(by_key.user_means(), BOX)
    # Absent users, also those whose mean overflows, hold nothing.
    counts = np.where(np.isnan(vectors[:, 0]), 0.0, by_key.record_counts())
    plain = WeightedUsers(vectors, counts=counts)
    crowd = MemoryCrowd(data, n_parts=request.param) if request.param else data
    return plain, CrowdVectors.of(crowd, UserData.user_means, BOX, counted=True)


@pytest.mark.parametrize("records", [None, 4.0])
class TestSameAnswers:
    @pytest.fixture(autouse=True)
    def weigh(self, pair, records):
        self.plain, self.crowd = (u if records is None else u.weighed(records) for u in pair)

    def test_sums(self):
        grid = choose_grid(Interval(0.0, 1.0, centre=0.0), n_users=200)
        assert (self.plain.total_weight(grid) == self.crowd.total_weight(grid)).all()
        assert (self.plain.total_present(grid) == self.crowd.total_present(grid)).all()
        for relation in Relation:
            mine = self.plain.clipped_total(CENTRE, 1.5, relation)
            theirs = self.crowd.clipped_total(CENTRE, 1.5, relation)
            assert mine[0] == theirs[0]
            assert (mine[1] == theirs[1]).all()

    def test_counts(self):
        thresholds = np.linspace(0.0, 5.0, 41)
        assert (self.plain.count_records(thresholds) == self.crowd.count_records(thresholds)).all()
        for relation in Relation:
            mine = self.plain.count_within(thresholds, CENTRE, relation)
            assert (mine == self.crowd.count_within(thresholds, CENTRE, relation)).all()

    def test_pairs_and_few_users(self):
        pairs = np.random.default_rng(1).permutation(200)[:120].reshape(60, 2)
        mine, theirs = self.plain.pair_distances(pairs), self.crowd.pair_distances(pairs)
        assert np.array_equal(mine, theirs)
        assert np.isinf(mine).any(), "some pair has an absent user"
        few = self.crowd.some(np.array([5, 2]))
        assert np.array_equal(few.vectors, self.plain.vectors[[5, 2]], equal_nan=True)


class TestUnweighted:
    def test_absent_users_vote(self, pair):
        mine, theirs = (total_and_absent(users, CENTRE, 1.5) for users in pair)
        assert (mine[1] == theirs[1]).all()

    def test_columns_are_those_of_present_users(self, pair):
        plain, crowd = pair
        assert np.array_equal(plain.column(1), np.sort(plain.column(1))) is False
        assert np.array_equal(np.sort(plain.column(1)), np.sort(crowd.column(1)))

    def test_weights_can_be_taken_back(self, pair):
        _, crowd = pair
        assert crowd.weighed(3.0).weighted
        assert not crowd.weighed(3.0).equally().weighted
