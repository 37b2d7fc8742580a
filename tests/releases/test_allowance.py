"""A budget in steps: nobody gets more than is left, and the price does not depend on the way."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting.calibrate import gdp_mu
from quorate.accounting.compose import price
from quorate.accounting.events import Composed, Gaussian
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.releases.allowance import Allowance


class TestPrice:
    @given(
        epsilon=st.floats(0.05, 8.0),
        shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30),
    )
    def test_what_was_taken_never_costs_more_than_the_whole(self, epsilon, shares):
        allowance = Allowance(gdp_mu(epsilon, 1e-6))
        whole = allowance.left
        taken = [allowance.take(whole * s / (sum(shares) * (1 + 1e-9))) for s in shares]
        steps = Composed(tuple(Gaussian(z) for z in taken))
        assert price(steps, delta=1e-6) <= epsilon
        assert price(allowance.event, delta=1e-6) <= epsilon

    def test_everything_that_is_left_may_be_taken(self):
        allowance = Allowance(0.3)
        allowance.take(0.5 * allowance.left)
        assert allowance.take(allowance.left) == pytest.approx(1 / math.sqrt(0.045), rel=1e-9)
        assert allowance.left == 0.0


class TestRefusal:
    @pytest.mark.parametrize("square", [0.0, -1.0, math.nan, math.inf, 0.0901])
    def test_a_step_beyond_the_budget_is_refused(self, square):
        with pytest.raises(NumericalFailure, match="no guarantee"):
            Allowance(0.3).take(square)

    @pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
    def test_a_budget_must_be_positive(self, mu):
        with pytest.raises(ParameterError, match="finite mu > 0"):
            Allowance(mu)
