"""Which way a mean takes: a function of public and released numbers, changing where it should."""

import pytest

from quorate.accounting.costs import gdp_mu
from quorate.means.routes import ways

MU = gdp_mu(1.0, 1e-6)


class TestFirstWay:
    @pytest.mark.parametrize(
        ("users", "dimension", "mu", "name"),
        [
            (60, 1, MU, "clip"),
            (200, 1, MU, "drift"),
            (1000, 1, MU, "interval"),
            (1000, 5, MU, "drift"),
            (10_000, 9, MU, "interval"),
            (300, 20, MU, "drift"),
            (1000, 20, MU, "ball"),
            (100, 1, 0.0, "clip"),
            (200, 1, 0.0, "quantile"),
            (500, 1, 0.0, "interval"),
            (1000, 20, 0.0, "clip"),
        ],
    )
    def test_it_follows_users_dimensions_and_budget(self, users, dimension, mu, name):
        found = ways.first_way(users=users, dimension=dimension, epsilon=1.0, mu=mu)
        assert found.name == name
        assert found.reason.endswith(".")

    def test_more_epsilon_is_as_good_as_more_users(self):
        few = ways.first_way(users=100, dimension=1, epsilon=10.0, mu=0.0)
        assert few.name == "interval"


class TestCosts:
    def test_all_steps_get_cheaper_with_more_users(self):
        told = {"dimension": 3, "epsilon": 1.0, "spread": 0.01}
        few, many = (ways.search_costs(users=n, **told) for n in (1000, 20_000))
        for step in ("spread", "centre", "outer"):
            assert getattr(many, step) < getattr(few, step)

    def test_a_search_is_worth_it_only_in_a_wide_range(self):
        told = {"users": 5000, "dimension": 2, "epsilon": 1.0}
        for spread, worth in ((0.6, False), (0.01, True)):
            costs = ways.search_costs(**told, spread=spread)
            assert ways.is_worth_searching(**told, spread=spread, costs=costs) is worth

    def test_a_search_that_eats_the_budget_is_not_worth_it(self):
        told = {"users": 500, "dimension": 20, "epsilon": 1.0}
        costs = ways.search_costs(**told, spread=1e-4)
        assert not ways.is_worth_searching(**told, spread=1e-4, costs=costs)

    def test_pure_noise_is_for_few_dimensions(self):
        better = [ways.cube_is_better(dimension=d, epsilon=1.0, mu=MU) for d in (1, 5, 50, 52, 100)]
        assert better == [True, True, True, False, False]

    def test_intervals_are_not_looked_for_where_one_feature_fills_its_range(self):
        told = {"left": 0.9, "epsilon": 1.0}
        assert ways.are_worth_cutting([0.2, 0.2, 0.2], **told)
        assert not ways.are_worth_cutting([0.6, 0.2, 0.2, 0.6], **told)
        # A feature whose people hold the same number is not cut, and has the noise of its range.
        assert ways.are_worth_cutting([0.02, 0.02], **told)
        assert not ways.are_worth_cutting([0.02, None], **told)
        # What is left has to pay for the ends first.
        assert not ways.are_worth_cutting([0.2, 0.2, 0.2], left=0.5, epsilon=1.0)
