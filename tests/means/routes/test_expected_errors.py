"""What ways are expected to cost: by users, dimensions, budget and how far apart people are."""

import itertools
import math

import pytest

from quorate.means.routes.expected_errors import ExpectedErrors, widths

MU = 0.23670438063581584  # epsilon 1, delta 1e-6


def known(users, dimension=1, mu=MU, epsilon=1.0, **more):
    return ExpectedErrors(users=users, dimension=dimension, epsilon=epsilon, mu=mu, **more)


class TestSearch:
    @pytest.mark.parametrize(
        ("users", "dimension", "mu", "way"),
        [
            (20, 1, MU, "clip"),
            (1000, 1, MU, "interval"),
            (10_000, 2, MU, "interval"),
            (300, 20, MU, "ball"),
            (5000, 50, MU, "ball"),
            (60, 1, 0.0, "clip"),
            (500, 1, 0.0, "interval"),
            (1000, 20, 0.0, "clip"),
            (20_000, 20, 0.0, "interval"),
        ],
    )
    def test_it_follows_users_dimensions_and_budget(self, users, dimension, mu, way):
        assert known(users, dimension, mu).search == way

    @pytest.mark.parametrize("dimension", [1, 3, 10])
    def test_more_epsilon_is_as_good_as_more_users(self, dimension):
        for users in (100, 300, 1000, 3000):
            few = known(users, dimension, mu=0.0)
            many = known(10 * users, dimension, mu=0.0, epsilon=0.1)
            assert few.search == many.search
            assert few.range_error == pytest.approx(many.range_error)

    def test_add_or_remove_needs_half_the_noise(self):
        assert known(500, 3, diameter=1.0).range_error == known(500, 3).range_error / 2.0


class TestExpected:
    @pytest.mark.parametrize(("users", "dimension", "mu"), [(2000, 1, 0.0), (900, 12, MU)])
    def test_people_who_fill_the_range_are_clipped_to_it_for_little_more(
        self, users, dimension, mu
    ):
        here = known(users, dimension, mu)
        way, error = here.expected(0.7)
        assert way == "clip"
        assert here.range_error < error < 1.2 * here.range_error

    @pytest.mark.parametrize(("users", "dimension", "mu"), [(2000, 1, 0.0), (900, 12, MU)])
    def test_the_error_falls_with_how_near_people_are(self, users, dimension, mu):
        errors = [known(users, dimension, mu).expected(2.0**-k)[1] for k in range(4, 12)]
        assert all(after < before for before, after in itertools.pairwise(errors))

    def test_a_ball_is_asked_for_only_where_it_could_lose(self):
        assert known(900, 12).is_asked
        # Gaussian noise on the range is no more than that of the largest coordinate.
        assert not known(900, 200).is_asked

    def test_the_widest_ball_is_where_both_cost_the_same(self):
        here = known(900, 12)
        assert here.ball_error(here.widest_ball) == pytest.approx(here.range_error, rel=0.01)


class TestPrices:
    def test_all_steps_get_cheaper_with_more_users(self):
        few, many = known(400), known(4000)
        for price in ("presence", "nearness", "spacing", "narrowness"):
            assert getattr(many, price) < getattr(few, price)
        assert many.place(0.01) == pytest.approx(few.place(0.01) / 10)

    def test_a_search_that_eats_the_budget_is_not_worth_it(self):
        assert known(40, mu=0.0).box_error([0.01]) == math.inf
        assert not known(60, mu=0.0).can_afford_search

    def test_one_feature_that_fills_its_range_makes_the_noise_of_a_box(self):
        here = known(5000, 3, mu=0.0)
        assert here.box_error([0.01, 0.01, None]) > 10 * here.box_error([0.01, 0.01, 0.01])

    def test_windows_end_above_the_cell_of_a_single_number(self):
        assert widths()[0] == 0.5
        assert widths()[-1] > 2.0**-17
