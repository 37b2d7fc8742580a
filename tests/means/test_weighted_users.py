"""One bounded vector and weight a user: blocks, weights and pairs do what plain numpy does."""

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Box
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Relation
from quorate.means.present_mean import gaussian_vote, marked
from quorate.means.weighted_users import WeightedUsers, _Apart, bounded_vectors, record_weights
from quorate.mechanisms.sums import fitting_grid, public_size
from sealing import numbers_of, vectors_of

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(70_000, 5))
WEIGHTS = RNG.uniform(0.0, 1.0, size=70_000)
CENTRE = np.arange(5.0)


def clipped(vectors, weights=None, relation=Relation.REPLACE, radius=2.0):
    users = vectors_of(vectors, weights, relation=relation)
    bound = Ball(radius, centre=CENTRE if weights is None else np.zeros(5))
    return summed(users, bound, lambda part: part.offsets(CENTRE))


def summed(users, bound, work):
    grid = fitting_grid(bound, n_users=users.size_bound, relation=users.relation, noise=4.0)
    return grid, numbers_of(users.total(work, grid))


def apart(vectors, pairs, weights=None):
    """Return the distances of pairs of places, as those of secret pairs are found."""
    rows, records = np.asarray(vectors, dtype=float), None
    if weights is not None:
        rows, records = np.column_stack([rows, np.square(weights)]), 1.0
    return _Apart(np.shape(vectors)[1], records)(rows[pairs])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
class TestBlocks:
    def test_distances_are_those_of_numpy(self, weights):
        users = WeightedUsers(VECTORS, weights)
        plain = np.linalg.norm(VECTORS - CENTRE, axis=1) * (1.0 if weights is None else weights)
        assert np.allclose(users.distances(CENTRE, Relation.REPLACE), plain)

    def test_a_clipped_total_is_that_of_numpy_up_to_the_grid(self, weights):
        grid, totals = clipped(VECTORS, weights)
        away = (VECTORS - CENTRE) * (1.0 if weights is None else weights[:, None])
        away *= np.minimum(1.0, 2.0 / np.linalg.norm(away, axis=1))[:, None]
        assert np.allclose(totals * grid.step, away.sum(axis=0), atol=1e-3)

    def test_one_user_moves_the_total_by_at_most_the_diameter(self, weights):
        part = None if weights is None else weights[:10]
        base = VECTORS[:10].copy()
        for place, other in ((0, np.full(5, 1e300)), (3, -np.ones(5)), (9, np.full(5, 1e-300))):
            changed = base.copy()
            changed[place] = other
            grid, first = clipped(base, part)
            _, second = clipped(changed, part)
            moved = int(np.sum((first - second) ** 2))
            assert moved <= grid.l2_sensitivity_squared(Relation.REPLACE)


class TestPairs:
    def test_a_pair_is_scaled_to_one_users_spread(self):
        vectors, weights = np.array([[0.0], [3.0], [4.0]]), np.array([1.0, 1.0, 0.5])
        pairs = np.array([[0, 1], [1, 2]])
        assert np.allclose(apart(vectors, pairs, weights), [3 / np.sqrt(2), 1 / np.sqrt(1 + 4)])
        assert np.allclose(apart(vectors, pairs), np.array([3, 1]) / np.sqrt(2))

    def test_users_without_weight_are_nowhere(self):
        assert apart(np.array([[0.0], [3.0]]), np.array([[0, 1]]), np.zeros(2)) == 0.0


class TestAbsentUsers:
    vectors = np.where(np.arange(500)[:, None] % 5 == 0, np.nan, VECTORS[:500])

    @pytest.mark.parametrize("weights", [None, WEIGHTS[:500]], ids=["equal", "weighted"])
    def test_they_have_no_offset_from_any_centre(self, weights):
        here = ~np.isnan(self.vectors[:, 0])
        others = self.vectors[here], None if weights is None else weights[here]
        for relation in Relation:
            _, totals = clipped(self.vectors, weights, relation)
            grid, expected = clipped(*others, relation)
            assert np.allclose(totals * grid.step, expected * grid.step, atol=1e-6)

    def test_they_vote_where_their_number_is_wanted(self):
        ball = Ball(2.0, centre=CENTRE)
        bound = OrAbsent(ball, gaussian_vote(ball))
        grid, totals = summed(vectors_of(self.vectors), bound, lambda part: marked(part.vectors))
        assert totals[-1] * grid.step == pytest.approx(100 * grid.bound.vote)
        plain, expected = clipped(self.vectors)
        assert np.allclose(totals[:-1] * grid.step, expected * plain.step, atol=1e-6)

    def test_they_are_at_the_centre_or_nowhere(self):
        users = WeightedUsers(self.vectors)
        assert np.all(users.distances(CENTRE, Relation.REPLACE)[~users.present] == 0.0)
        assert np.all(np.isnan(users.distances(CENTRE, Relation.ADD_REMOVE)[~users.present]))

    def test_their_pairs_are_as_often_near_as_far(self):
        pairs = np.arange(500).reshape(250, 2)
        found = apart(self.vectors, pairs)
        assert np.count_nonzero(found == 0.0) == np.count_nonzero(np.isinf(found)) == 50
        assert not np.isnan(found).any()

    @pytest.mark.parametrize("user", [0, 7, 250])
    def test_whoever_goes_moves_the_own_pair_and_no_other(self, user):
        """How a pair with somebody absent counts must not follow from how many came before."""
        pairs = np.arange(500).reshape(250, 2)
        gone = self.vectors.copy()
        gone[user] = np.nan if not np.isnan(gone[user, 0]) else 0.5
        moved = apart(gone, pairs) != apart(self.vectors, pairs)
        assert np.flatnonzero(moved).tolist() == [user // 2]


class TestBounds:
    def test_every_value_ends_inside_the_bound(self):
        wild = np.array([[np.nan, 1e308], [np.inf, 1.0], [3.0, -9.0]])
        box = bounded_vectors(wild, Box([0.0, 0.0], [2.0, 2.0]))
        assert np.all(np.abs(box) <= 1.0)
        ball = bounded_vectors(wild, Ball(1.0, dimension=2))
        assert np.all(np.linalg.norm(ball, axis=1) <= 1.0)

    def test_a_row_without_a_finite_number_is_nobodys(self):
        rows = np.array([[np.nan, np.inf], [np.nan, 1.0]])
        for bound in (Box([0.0, 0.0], [2.0, 2.0]), Ball(1.0, dimension=2)):
            users = WeightedUsers(bounded_vectors(rows, bound))
            assert users.present.tolist() == [False, True]

    def test_blocks_give_what_the_bound_gives(self):
        box = Box(-np.ones(5), np.ones(5))
        assert np.array_equal(bounded_vectors(VECTORS, box), box.clip(VECTORS))

    def test_weights_lie_between_zero_and_one_whatever_the_counts(self):
        weights = record_weights(np.array([0, 1, 5, 2**62]), records=5.0)
        assert np.allclose(weights, [0.0, np.sqrt(0.2), 1.0, 1.0])

    def test_grids_do_not_tell_how_many_users_there_are_under_add_or_remove(self):
        sizes = {public_size(n, Relation.ADD_REMOVE) for n in (0, 1, 10**6)}
        assert len(sizes) == 1
        steps = set()
        for n in (3, 3000):
            steps.add(clipped(VECTORS[:n], relation=Relation.ADD_REMOVE)[0].step)
        assert len(steps) == 1
