"""Private radii: disjoint pairs, sound grids, and searches that pay what they were given."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import gaussian_account
from quorate.auditing import replay
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.means import UserMean
from quorate.means.routes.budget_split import Setting
from quorate.means.routes.radius import (
    disjoint_pairs,
    find_final_radius,
    find_spread,
    radius_candidates,
    spread_candidates,
)
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.noise import SeededNoise, use_noise
from quorate.noise.composed_laws import secret_order
from quorate.users import UserData


def spread_of(vectors, *, mu=1.0):
    return find_spread(
        WeightedUsers(vectors),
        reach=1000.0,
        account=gaussian_account(mu),
        square=0.5 * mu**2,
        relation=Relation.REPLACE,
    )


class TestSensitivity:
    @given(n=st.integers(0, 50), seed=st.integers(0, 2**32))
    def test_nobody_is_in_two_pairs(self, n, seed):
        pairs = disjoint_pairs(np.random.default_rng(seed).permutation(n))
        assert pairs.shape == (n // 2, 2)
        assert len(set(pairs.ravel().tolist())) == 2 * (n // 2)

    def test_pairs_are_drawn_anew_in_every_call(self, monkeypatch):
        seen = []
        watched = VectorUsers.pair_distances

        def watch(users, pairs):
            seen.append(pairs)
            return watched(users, pairs)

        monkeypatch.setattr(VectorUsers, "pair_distances", watch)
        vectors = np.random.default_rng(0).normal(size=(60, 1))
        for _ in range(2):
            spread_of(vectors)
            # A caller's seed does not reach them: the chance of equal pairs is below 1e-40.
            data = UserData(vectors, offsets=np.arange(61))
            UserMean(50.0, delta=1e-6, bounds=1000.0, algorithm="ball", random_state=0).fit(data)
        assert len(seen) == 4
        assert all(not np.array_equal(a, b) for a, b in itertools.combinations(seen, 2))

    def test_pairs_are_in_the_order_that_the_noise_source_keeps_secret(self, monkeypatch):
        """Of 60 people there are more orders than seeds of a generator for simulations."""
        secrets = []
        watched = SeededNoise.uniform_below

        def watch(source, upper):
            secrets.append(watched(source, upper))
            return secrets[-1]

        seen = []
        distances = VectorUsers.pair_distances
        monkeypatch.setattr(SeededNoise, "uniform_below", watch)
        monkeypatch.setattr(
            VectorUsers,
            "pair_distances",
            lambda users, pairs: (seen.append(pairs), distances(users, pairs))[1],
        )
        with use_noise(SeededNoise(3)):
            spread_of(np.random.default_rng(0).normal(size=(60, 1)))
        assert secrets[0] > 2**128
        assert np.array_equal(seen[0].ravel(), secret_order(60, secret=secrets[0]))

    def test_random_pairs_of_neighbours_can_be_matched_up_to_one_pair(self):
        """The coupling of the proof, for a replacement whose id sorts elsewhere."""
        rng = np.random.default_rng(0)
        values = rng.normal(size=(30, 2))
        # Person 0 leaves; the replacement comes last, so everybody else moves one place down.
        others = np.vstack([values[1:], [[1e6, 1e6]]])
        moved = np.concatenate([[29], np.arange(29)])
        pairs = disjoint_pairs(rng.permutation(30))
        before = WeightedUsers(values).pair_distances(pairs)
        after = WeightedUsers(others).pair_distances(moved[pairs])
        assert np.count_nonzero(before != after) == 1
        # The broken twin: the same pairs of places.
        twin = WeightedUsers(others).pair_distances(pairs)
        assert np.count_nonzero(before != twin) > 5

    def test_pairs_are_refused_where_users_may_join(self):
        with pytest.raises(ParameterError, match="REPLACE"):
            find_spread(
                WeightedUsers(np.zeros((10, 1))),
                reach=1.0,
                account=gaussian_account(1.0),
                square=0.1,
                relation=Relation.ADD_REMOVE,
            )

    def test_one_user_changes_one_pair_distance(self):
        vectors = np.random.default_rng(0).normal(size=(40, 3))
        changed = vectors.copy()
        changed[7] = 1e6
        pairs = disjoint_pairs(np.random.default_rng(1).permutation(40))
        before, after = (WeightedUsers(v).pair_distances(pairs) for v in (vectors, changed))
        assert np.count_nonzero(before != after) == 1

    def test_a_twin_with_chained_pairs_lets_one_user_change_two(self):
        vectors = np.random.default_rng(0).normal(size=(40, 3))
        changed = vectors.copy()
        changed[7] = 1e6
        chained = np.column_stack([np.arange(39), np.arange(1, 40)])
        before, after = (WeightedUsers(v).pair_distances(chained) for v in (vectors, changed))
        assert np.count_nonzero(before != after) == 2


class TestGrids:
    @given(expected=st.floats(1e-9, 1e9), ratio=st.floats(0.5, 1e12))
    def test_radii_increase_and_reach_everybody(self, expected, ratio):
        radii = radius_candidates(expected, expected * ratio)
        assert np.all(np.diff(radii) > 0)
        assert radii[-1] >= 2.0 * expected * ratio * (1 - 1e-12)
        assert radii.size <= 64

    def test_the_largest_spread_is_that_of_two_opposite_users(self):
        reach = 7.0
        opposite = WeightedUsers(np.array([[reach], [-reach]]))
        farthest = opposite.pair_distances(np.array([[0, 1]]))[0]
        assert spread_candidates(reach)[-1] == pytest.approx(farthest)


class TestUtility:
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
    def test_the_spread_found_is_that_of_one_user(self, scale):
        vectors = np.random.default_rng(0).normal(size=(2000, 50)) * scale
        with use_noise(SeededNoise(0)):
            found = spread_of(vectors + 300.0)
        assert 0.9 < found / (scale * math.sqrt(50)) < 1.4

    def test_identical_users_have_the_smallest_spread_there_is(self):
        with use_noise(SeededNoise(0)):
            assert spread_of(np.full((500, 2), 3.0)) < 1e-6

    @pytest.mark.parametrize("lost", [1.0, 30.0, 900.0])
    def test_the_final_radius_holds_nearly_everybody_even_if_the_centre_is_lost(self, lost):
        vectors = np.random.default_rng(0).normal(size=(3000, 2))
        users, centre = WeightedUsers(vectors), np.array([lost, 0.0])
        setting = Setting(effective_users=3000, dimension=2, reach=1000.0, spread=1.4)
        with use_noise(SeededNoise(0)):
            final = find_final_radius(
                users,
                centre,
                setting=setting,
                expected=1.5,
                account=gaussian_account(0.3),
                square=0.02,
                final_square=0.05,
                n_users=3000,
                hostile=0.0,
                relation=Relation.REPLACE,
            )
        inside = np.mean(users.distances(centre, Relation.REPLACE) <= final.radius)
        # The search errs by less than the share it leaves out, except with probability 1e-6.
        assert inside >= 1.0 - 2.1 * final.cut_share
        assert final.cut_share < 0.2


class TestReplay:
    def test_neighbours_with_the_same_answers_look_the_same(self):
        vectors = np.random.default_rng(0).normal(size=(60, 2))
        neighbour = vectors.copy()
        neighbour[5] = 500.0
        for seed in range(3):
            report = replay(lambda v: spread_of(v, mu=3.0), vectors, neighbour, seed=seed)
            assert report.same, str(report)
