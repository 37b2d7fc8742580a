"""A budget for several means: the shares add up, whatever routes are taken."""

import numpy as np
import pytest

from quorate.accounting.compose import price
from quorate.bounds import Box
from quorate.guarantees import Relation
from quorate.means.vector_mean import MeanBudget
from quorate.noise import SeededNoise, use_noise


class TestPrice:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    @pytest.mark.parametrize("core", [True, False])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_the_event_costs_what_was_declared(self, epsilon, core, relation):
        budget = MeanBudget(epsilon=epsilon, delta=1e-6, core=core, relation=relation)
        cost = price(budget.event, delta=1e-6, relation=relation)
        assert cost <= epsilon * (1 + 1e-9)
        assert cost >= 0.99 * epsilon

    def test_a_reserve_is_kept_only_where_a_core_is_possible(self):
        assert MeanBudget(epsilon=1.0, delta=1e-6).reserve == pytest.approx(1e-7)
        assert MeanBudget(epsilon=1.0, delta=1e-6, core=False).reserve == 0.0
        other = MeanBudget(epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
        assert other.reserve == 0.0

    def test_shares_divide_allowance_and_reserve(self):
        budget = MeanBudget(epsilon=1.0, delta=1e-6)
        box = Box([-1.0], [1.0])
        runs = [budget.run(np.zeros((9, 1)), box, share=share) for share in (0.25, 0.75)]
        assert sum(run.allowance.mu**2 for run in runs) == pytest.approx(budget.mu**2)
        assert sum(run.core_delta for run in runs) == pytest.approx(budget.reserve)


class TestUtility:
    def test_a_mean_with_a_share_is_released_as_an_offset(self):
        vectors = np.random.default_rng(0).normal(size=(3000, 2)) + 12.0
        budget = MeanBudget(epsilon=1.0, delta=1e-6)
        with use_noise(SeededNoise(0)):
            release = budget.mean(vectors, Box([0.0, 0.0], [20.0, 20.0]), share=0.5)
        assert np.abs(release.mean - 2.0).max() < 0.5
