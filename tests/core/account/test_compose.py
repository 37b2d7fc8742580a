"""The price of chains: which rule applies, what it costs, and what is refused."""

import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest

from quorate.core.account import (
    Approximate,
    Composed,
    Gaussian,
    Nothing,
    Pure,
    Repeated,
    Subsampled,
    delta_of,
    price,
)
from quorate.core.guarantees import Event, Relation
from quorate.exceptions import ParameterError, UnsupportedEventError

DELTA = 1e-6


class TestPureSum:
    def test_two_halves_make_one(self):
        assert price(Composed((Pure(0.5), Pure(0.5)))) == 1.0

    def test_ten_tenths_exceed_one_by_at_most_one_unit_in_the_last_place(self):
        assert 1.0 <= price(Repeated(Pure(0.1), 10)) <= math.nextafter(1.0, 2.0)

    def test_the_sum_is_exact_and_then_rounded_up(self):
        parts = [0.1, 0.2, 0.3, 1e-20, 1e10]
        total = price(Composed(tuple(map(Pure, parts))))
        truth = sum(map(Fraction, parts))
        assert Fraction(math.nextafter(total, 0.0)) < truth <= Fraction(total)

    def test_the_order_of_a_naive_sum_would_be_caught(self):
        """The broken twin: floats added one by one."""
        parts = [1e16, 1.0, 1.0]
        naive = sum(parts)
        assert naive < sum(map(Fraction, parts)) <= price(Composed(tuple(map(Pure, parts))))

    def test_nothing_costs_nothing(self):
        assert price(Nothing()) == price(Composed(())) == price(Repeated(Pure(1.0), 0)) == 0.0
        assert price(Pure(0.0)) == 0.0


class TestGaussianChains:
    def test_there_is_no_pure_price(self):
        assert price(Gaussian(10.0)) == math.inf
        assert price(Composed((Gaussian(10.0), Pure(0.1)))) == math.inf

    def test_a_chain_costs_its_root_sum_of_squares(self):
        chain = Composed((Gaussian(3.0), Repeated(Gaussian(4.0), 2)))
        mu = math.sqrt(1 / 9 + 2 / 16)
        assert price(chain, delta=DELTA) == pytest.approx(price(Gaussian(1 / mu), delta=DELTA))

    def test_a_reserve_of_delta_is_taken_off_first(self):
        reserved = Composed((Gaussian(4.0), Approximate(0.0, 4e-7)))
        assert price(reserved, delta=DELTA) == price(Gaussian(4.0), delta=6e-7)

    def test_a_reserve_larger_than_delta_has_no_price(self):
        assert price(Composed((Gaussian(4.0), Approximate(0.0, 2e-6))), delta=DELTA) == math.inf
        assert price(Approximate(0.5, 2e-6), delta=DELTA) == math.inf

    def test_noise_far_below_the_sensitivity_is_expensive_not_free(self):
        assert price(Gaussian(1e-6), delta=DELTA) > 1e11
        assert price(Gaussian(5e-324), delta=DELTA) == math.inf

    def test_a_billion_releases_are_no_problem(self):
        chain = Repeated(Gaussian(1e5), 10**9)
        assert price(chain, delta=DELTA) == pytest.approx(price(Gaussian(10**0.5), delta=DELTA))

    def test_pure_and_gaussian_chains_never_import_dp_accounting(self):
        code = (
            "import sys; from quorate.core.account import *; "
            "from quorate.mechanisms.calibrate import gaussian_multiplier; "
            "price(Repeated(Pure(0.1), 3)); price(Repeated(Gaussian(4.0), 3), delta=1e-6); "
            "gaussian_multiplier(1.0, 1e-6); "
            "sys.exit(any(m.startswith(('dp_accounting', 'scipy')) for m in sys.modules))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestMixedChains:
    def test_the_numerical_rule_beats_adding_up(self):
        chain = Composed((Pure(0.1), Gaussian(5.0), Pure(0.2)))
        apart = 0.3 + price(Gaussian(5.0), delta=DELTA)
        assert price(Gaussian(5.0), delta=DELTA) < price(chain, delta=DELTA) < 0.96 * apart

    def test_many_small_pure_events_cost_less_than_their_sum(self):
        """4.77 is the published figure for a hundred times 0.1 at one in a million."""
        assert price(Repeated(Pure(0.1), 100), delta=DELTA) == pytest.approx(4.77, abs=0.01)

    def test_it_is_never_above_the_sum(self):
        chain = Composed((Pure(0.3), Pure(0.7)))
        assert price(chain, delta=1e-9) <= 1.0

    def test_one_event_alone_costs_what_it_says(self):
        assert price(Pure(1.0), delta=DELTA) == 1.0
        assert price(Approximate(0.5, 1e-7), delta=DELTA) == 0.5

    def test_the_price_keeps_delta_in_exact_arithmetic(self):
        chain = Composed((Repeated(Pure(0.25), 3), Gaussian(3.0)))
        epsilon = price(chain, delta=DELTA)
        assert 0.99 * DELTA < self.exact_delta(epsilon) <= DELTA

    def test_a_price_that_is_a_thousandth_too_low_would_be_caught(self):
        chain = Composed((Repeated(Pure(0.25), 3), Gaussian(3.0)))
        assert self.exact_delta(price(chain, delta=DELTA) * 0.999) > DELTA

    @staticmethod
    def exact_delta(epsilon):
        with mpmath.workdps(40):
            e, mu = mpmath.mpf(0.25), 1 / mpmath.mpf(3)
            p = 1 / (1 + mpmath.exp(-e))

            def gaussian(s):
                return mpmath.ncdf(mu / 2 - s / mu) - mpmath.exp(s) * mpmath.ncdf(-mu / 2 - s / mu)

            return mpmath.fsum(
                mpmath.binomial(3, k)
                * p**k
                * (1 - p) ** (3 - k)
                * gaussian(epsilon - (2 * k - 3) * e)
                for k in range(4)
            )

    def test_when_the_numbers_are_too_small_the_simple_rule_decides(self):
        assert price(Repeated(Pure(0.1), 100), delta=1e-14) == price(Repeated(Pure(0.1), 100))
        assert price(Repeated(Subsampled(Gaussian(1.0), 0.1), 100), delta=1e-14) == math.inf


class TestSampling:
    @pytest.mark.parametrize("relation", Relation)
    def test_a_rate_of_zero_costs_nothing(self, relation):
        assert price(Subsampled(Gaussian(0.1), 0.0), relation=relation) == 0.0

    def test_a_rate_of_one_is_no_sample(self):
        full = Subsampled(Gaussian(2.0), 1.0)
        plain, both = price(Gaussian(2.0), delta=DELTA), price(Gaussian(1.0), delta=DELTA)
        assert price(full, delta=DELTA, relation=Relation.ADD_REMOVE) == plain
        assert price(full, delta=DELTA, relation=Relation.REPLACE) == both

    @pytest.mark.parametrize("relation", Relation)
    def test_a_smaller_sample_costs_less(self, relation):
        costs = [
            price(Subsampled(Gaussian(1.0), rate), delta=DELTA, relation=relation)
            for rate in (0.01, 0.1, 0.5, 0.99, 1.0)
        ]
        assert costs == sorted(costs)
        assert costs[0] < 0.5 * costs[-1]

    def test_replacement_costs_between_one_and_two_users(self):
        sampled = Repeated(Subsampled(Gaussian(1.0), 0.1), 5)
        one = price(sampled, delta=DELTA, relation=Relation.ADD_REMOVE)
        replaced = price(sampled, delta=DELTA, relation=Relation.REPLACE)
        two = 2 * price(sampled, delta=DELTA / 10, relation=Relation.ADD_REMOVE)
        assert one < replaced <= two

    @pytest.mark.parametrize("relation", Relation)
    def test_gaussian_releases_on_one_sample_are_one_release(self, relation):
        together = Subsampled(Repeated(Gaussian(2.0), 4), 0.1)
        merged = Subsampled(Gaussian(1.0), 0.1)
        assert price(together, delta=DELTA, relation=relation) == pytest.approx(
            price(merged, delta=DELTA, relation=relation)
        )

    @pytest.mark.parametrize(
        "inside",
        [
            Composed((Gaussian(1.0), Pure(1.0))),
            Composed((Subsampled(Gaussian(1.0), 0.5), Pure(1.0))),
            Subsampled(Gaussian(1.0), 0.5),
            Repeated(Approximate(0.1, 0.1), 2),
            Pure(1.0),
            Gaussian(5e-324),
        ],
        ids=str,
    )
    def test_what_cannot_be_proved_is_refused(self, inside):
        with pytest.raises(UnsupportedEventError, match="Subsampled"):
            price(Subsampled(inside, 0.5), delta=0.5)


class TestDelta:
    @pytest.mark.parametrize("relation", Relation)
    @pytest.mark.parametrize(
        "event",
        [
            Pure(1.0),
            Repeated(Pure(0.1), 30),
            Gaussian(2.0),
            Composed((Gaussian(2.0), Approximate(0.1, 1e-8), Pure(0.2))),
            Repeated(Subsampled(Gaussian(1.0), 0.1), 20),
        ],
        ids=str,
    )
    def test_it_is_the_inverse_of_the_price_on_the_safe_side(self, event, relation):
        epsilon = price(event, delta=DELTA, relation=relation)
        back = delta_of(event, epsilon=epsilon, relation=relation)
        assert back <= DELTA
        if event != Pure(1.0):
            assert delta_of(event, epsilon=0.99 * epsilon, relation=relation) > DELTA

    def test_a_pure_event_below_its_epsilon_has_the_delta_of_randomized_response(self):
        truth = (math.e - math.exp(0.5)) / (1 + math.e)
        assert truth <= delta_of(Pure(1.0), epsilon=0.5) <= truth + 1e-4

    def test_gaussian_noise_at_epsilon_zero_has_its_total_variation(self):
        truth = 2 * mpmath.ncdf(0.25) - 1
        assert delta_of(Gaussian(2.0), epsilon=1e-12) == pytest.approx(float(truth))

    def test_no_delta_is_below_zero_or_above_one(self):
        assert delta_of(Pure(1.0), epsilon=2.0) == 0.0
        assert delta_of(Gaussian(1e-9), epsilon=1.0) == 1.0
        assert delta_of(Composed((Gaussian(1e-4), Pure(0.1))), epsilon=1.0) == 1.0
        assert delta_of(Repeated(Approximate(0.0, 0.5), 3), epsilon=1.0) == 1.0


class TestRefusals:
    def test_an_unknown_event_is_refused(self):
        class Mystery(Event):
            def to_dict(self):
                return {"event": "mystery"}

        for event in (Mystery(), Composed((Pure(1.0), Mystery())), Subsampled(Mystery(), 0.5)):
            with pytest.raises(UnsupportedEventError, match="Mystery"):
                price(event, delta=DELTA)
            with pytest.raises(UnsupportedEventError, match="Mystery"):
                delta_of(event, epsilon=1.0)

    def test_what_is_not_an_event_is_refused(self):
        with pytest.raises(UnsupportedEventError, match=r"0\.5"):
            price(0.5)

    @pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, math.inf, "0"])
    def test_delta_must_be_a_probability_below_one(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            price(Pure(1.0), delta=delta)

    @pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
    def test_epsilon_must_be_finite(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            delta_of(Pure(1.0), epsilon=epsilon)

    @pytest.mark.parametrize("relation", ["replace", None, 1])
    def test_a_relation_is_not_a_string(self, relation):
        with pytest.raises(ParameterError, match="Relation"):
            price(Pure(1.0), relation=relation)

    def test_the_front_door_lists_what_it_opens(self):
        import quorate.core.account as accounting

        assert "price" in dir(accounting)
        with pytest.raises(AttributeError, match="no attribute 'prize'"):
            _ = accounting.prize
