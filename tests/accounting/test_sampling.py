"""Amplification by sampling, against the worst mechanisms written out."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting.sampling import amplified, amplified_epsilon, doubled
from quorate.exceptions import UnsupportedEventError
from quorate.guarantees import Approximate, Gaussian, Laplace, Nothing, Pure, Relation, Subsampled

epsilons = st.floats(-12, 2.5).map(lambda exponent: 10.0**exponent)
rates = st.one_of(
    st.floats(-12, -0.001).map(lambda exponent: 10.0**exponent),
    st.floats(-12, -0.4).map(lambda exponent: 1 - 10.0**exponent),
)


def true_epsilon(epsilon, rate, relation):
    with mpmath.workdps(400):
        epsilon, rate = mpmath.mpf(epsilon), mpmath.mpf(rate)
        raised = mpmath.log(1 - rate + rate * mpmath.exp(epsilon))
        lowered = mpmath.log(1 - rate + rate * mpmath.exp(-epsilon))
        return raised if relation is Relation.ADD_REMOVE else raised - lowered


class TestPure:
    @given(epsilons, rates, st.sampled_from(Relation))
    def test_it_is_above_the_formula_by_almost_nothing(self, epsilon, rate, relation):
        truth = true_epsilon(epsilon, rate, relation)
        assert truth <= amplified_epsilon(epsilon, rate=rate, relation=relation)
        assert amplified_epsilon(epsilon, rate=rate, relation=relation) <= truth * (1 + 1e-13)

    @pytest.mark.parametrize("relation", Relation)
    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_enumeration_of_three_outputs_never_exceeds_it(self, rate, relation):
        """All mechanisms whose three-output distributions lie on a grid and are e-DP."""
        ratio = Fraction(2)
        bound = math.exp(amplified_epsilon(math.log(2), rate=rate, relation=relation)) * (1 + 1e-12)
        grid = [Fraction(k, 12) for k in range(1, 11)]
        triples = [(a, b, 1 - a - b) for a, b in itertools.product(grid, grid) if a + b < 1]
        absent = (Fraction(4, 12), Fraction(4, 12), Fraction(4, 12))
        close = [
            t
            for t in triples
            if all(1 / ratio <= x / y <= ratio for x, y in zip(t, absent, strict=True))
        ]
        worst = Fraction(0)
        q = Fraction(rate)
        for old, new in itertools.product(close, close):
            other = new if relation is Relation.REPLACE else absent
            for x, y, z in zip(old, other, absent, strict=True):
                left, right = (1 - q) * z + q * x, (1 - q) * z + q * y
                worst = max(worst, left / right, right / left)
        assert worst <= bound
        assert worst >= 0.95 * bound

    def test_add_and_remove_read_as_replacement_is_caught(self):
        cheap = amplified_epsilon(1.0, rate=0.5, relation=Relation.ADD_REMOVE)
        assert cheap < true_epsilon(1.0, 0.5, Relation.REPLACE)

    def test_a_giant_epsilon_is_not_amplified_and_not_lost(self):
        assert amplified_epsilon(800.0, rate=0.1, relation=Relation.ADD_REMOVE) == 800.0
        assert amplified_epsilon(800.0, rate=0.1, relation=Relation.REPLACE) == 1600.0


class TestApproximate:
    def test_delta_shrinks_with_the_rate(self):
        event = amplified(1.0, 1e-3, rate=0.25, relation=Relation.ADD_REMOVE)
        assert event == Approximate(event.epsilon, 0.25e-3)
        assert event.epsilon == amplified_epsilon(1.0, rate=0.25, relation=Relation.ADD_REMOVE)

    def test_a_replaced_user_is_a_group_of_two(self):
        single = amplified(1.0, 1e-3, rate=0.25, relation=Relation.ADD_REMOVE)
        both = amplified(1.0, 1e-3, rate=0.25, relation=Relation.REPLACE)
        assert both.epsilon == 2 * single.epsilon
        assert both.delta == pytest.approx((1 + math.exp(single.epsilon)) * single.delta)

    def test_without_delta_it_stays_pure(self):
        assert isinstance(amplified(1.0, 0.0, rate=0.5, relation=Relation.REPLACE), Pure)


class TestDoubled:
    def test_two_users_shift_noise_twice_as_far(self):
        assert doubled(Gaussian(3.0)) == Gaussian(1.5)
        assert doubled(Laplace(3.0)) == Laplace(1.5)
        assert doubled(Pure(0.3)) == Pure(0.6)

    @pytest.mark.parametrize(
        "event",
        [Nothing(), Approximate(1.0, 0.5), Approximate(800.0, 1e-9), Subsampled(Pure(1), 0.1)],
    )
    def test_what_cannot_be_doubled_is_refused(self, event):
        with pytest.raises(UnsupportedEventError, match="replaced user"):
            doubled(event)
