"""Private radii: disjoint pairs, sound grids, and searches that pay what they were given."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import gaussian_account
from quorate.auditing import replay
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.means.routes.budget_split import Setting
from quorate.means.routes.radius import (
    find_final_radius,
    find_spread,
    radius_candidates,
    spread_candidates,
)
from quorate.noise import SeededNoise, use_noise
from sealing import rows_of, vectors_of


def spread_of(vectors, *, mu=1.0, account=None):
    return find_spread(
        vectors_of(vectors),
        reach=1000.0,
        account=account or gaussian_account(mu),
        square=0.5 * mu**2,
        relation=Relation.REPLACE,
    )


class TestSensitivity:
    def test_all_looks_together_cost_what_was_given(self):
        account = gaussian_account(1.0)
        spread_of(np.random.default_rng(0).normal(size=(60, 1)), account=account)
        assert float(account.square_left) == pytest.approx(0.5, abs=1e-9)

    def test_pairs_are_refused_where_users_may_join(self):
        with pytest.raises(ParameterError, match="REPLACE"):
            find_spread(
                vectors_of(np.zeros((10, 1)), relation=Relation.ADD_REMOVE),
                reach=1.0,
                account=gaussian_account(1.0),
                square=0.1,
                relation=Relation.ADD_REMOVE,
            )


class TestGrids:
    @given(expected=st.floats(1e-9, 1e9), ratio=st.floats(0.5, 1e12))
    def test_radii_increase_and_reach_everybody(self, expected, ratio):
        radii = radius_candidates(expected, expected * ratio)
        assert np.all(np.diff(radii) > 0)
        assert radii[-1] >= 2.0 * expected * ratio * (1 - 1e-12)
        assert radii.size <= 64

    def test_the_largest_spread_is_that_of_two_opposite_users(self):
        reach = 7.0
        opposite = vectors_of(np.array([[reach], [-reach]]))
        farthest = rows_of(opposite.pair_distances(gaussian_account(1.0), most=2))[0]
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
        users, centre = vectors_of(vectors), np.array([lost, 0.0])
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
        inside = np.mean(np.linalg.norm(vectors - centre, axis=1) <= final.radius)
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
