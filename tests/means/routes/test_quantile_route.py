"""The mean with delta = 0 in a range that is found: cost, replay, and what it delivers."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.accounting.compose import price
from quorate.auditing import RecordedNoise, replay
from quorate.guarantees import Relation
from quorate.means.routes.quantile_route import QuantileRun
from quorate.noise import SeededNoise, use_noise
from sealing import vectors_of

RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def pure(vectors, *, epsilon=1.0, half=1000.0, relation=Relation.REPLACE):
    vectors = np.asarray(vectors, dtype=float)
    return QuantileRun(
        users=vectors_of(vectors, relation=relation),
        half_widths=np.full(vectors.shape[1], half),
        account=Account.open(epsilon=epsilon, relation=relation),
    )


class TestCost:
    @RELATIONS
    @pytest.mark.parametrize("route", ["clip", "quantile"])
    @pytest.mark.parametrize("d", [1, 3])
    def test_the_draws_of_a_run_cost_at_most_epsilon(self, relation, route, d):
        noise = RecordedNoise(0)
        with use_noise(noise):
            run = pure(np.zeros((50, d)), relation=relation)
            getattr(run, route)("test")
        # One sum for n under add/remove; else a sum, or two choices and a sum each. The noise of a
        # box and of the votes beside it are two draws of one sum.
        extra = relation is Relation.ADD_REMOVE or (route, d) == ("clip", 3)
        assert len(noise.log) == extra + (1 if route == "clip" else 3 * d)
        assert 0.999 < price(run.account.event) <= 1.0


class TestUtility:
    def test_a_hundred_and_fifty_users_are_enough_in_one_dimension(self):
        rng = np.random.default_rng(0)
        good = 0
        for seed in range(60):
            centre = rng.uniform(-500.0, 500.0)
            with use_noise(SeededNoise(seed)):
                release = pure(rng.normal(size=(150, 1)) + centre).quantile("test")
            good += abs(release.mean[0] - centre) < 1.0
        # Measured at 98 %: fewer than 45 of 60 have probability below 1e-6.
        assert good >= 45

    @RELATIONS
    def test_several_dimensions_share_epsilon(self, relation):
        rng = np.random.default_rng(1)
        vectors = rng.normal(size=(4000, 3)) + np.array([100.0, -50.0, 0.0])
        with use_noise(SeededNoise(0)):
            release = pure(vectors, relation=relation).quantile("test")
        assert np.linalg.norm(release.mean - [100.0, -50.0, 0.0]) < 0.5

    def test_rare_values_are_not_cut_away(self):
        rare = (np.arange(2000) % 50 == 0).astype(float)[:, None]
        with use_noise(SeededNoise(0)):
            release = pure(rare, half=1.0).quantile("test")
        assert abs(release.mean[0] - 0.02) < 0.02


class TestReplay:
    @RELATIONS
    def test_neighbours_with_the_same_answers_look_the_same(self, relation):
        values = np.random.default_rng(0).normal(size=(300, 1))
        if relation is Relation.REPLACE:
            neighbour = values.copy()
            neighbour[4] = 1000.0
        else:
            neighbour = values[:-1]
        for seed in range(3):
            report = replay(
                lambda v: pure(v, relation=relation).quantile("test"), values, neighbour, seed=seed
            )
            assert report.same, str(report)
