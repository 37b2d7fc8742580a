"""The numerical rule: above the truth, close to it, and close to other implementations."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as reference

from quorate.core.account import loss_distributions
from quorate.core.account.loss_distributions import LossDistribution, loss_distribution
from quorate.core.guarantees import Approximate, Gaussian, Pure, Relation, Subsampled
from quorate.exceptions import NumericalFailure


def repeated_response(n, epsilon, t):
    """The exact profile of n times randomized response: a binomial sum."""
    with mpmath.workdps(40):
        e = mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(-e))
        return mpmath.fsum(
            mpmath.binomial(n, k)
            * p**k
            * (1 - p) ** (n - k)
            * max(0, 1 - mpmath.exp(t - (2 * k - n) * e))
            for k in range(n + 1)
        )


def response_and_gaussian(epsilon, mu, t):
    """The exact profile of one randomized response and one Gaussian release."""
    with mpmath.workdps(50):
        e, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def gaussian(s):
            return mpmath.ncdf(mu / 2 - s / mu) - mpmath.exp(s) * mpmath.ncdf(-mu / 2 - s / mu)

        p = 1 / (1 + mpmath.exp(-e))
        return p * gaussian(t - e) + (1 - p) * gaussian(t + e)


@cache
def loss(items, relation=Relation.REPLACE):
    return loss_distribution(dict(items), relation=relation)


class TestAgainstClosedForms:
    @pytest.mark.parametrize(
        ("n", "epsilon"), [(1, 1.0), (2, 0.5), (7, 0.37), (100, 0.1), (400, 0.02)]
    )
    def test_randomized_response(self, n, epsilon):
        composed = loss(((Pure(epsilon), n),))
        scale = epsilon * math.sqrt(n)
        for t in np.linspace(0, min(n * epsilon, 5 * scale), 5):
            truth = repeated_response(n, epsilon, t)
            assert (
                truth
                <= composed.delta(t)
                <= truth * (1 + 5e-3) + 2e-4 * scale / n + composed.margin
            )

    @pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.2), (1.0, 0.5), (0.013, 2.0)])
    def test_randomized_response_and_gaussian_noise(self, epsilon, mu):
        composed = loss(((Pure(epsilon), 1), (Gaussian(1 / mu), 1)))
        for t in (0.0, 0.5, 1.0, 2.0):
            truth = response_and_gaussian(epsilon, mu, t)
            assert truth <= composed.delta(t) <= truth * (1 + 1e-3) + 2 * composed.margin

    def test_a_delta_that_no_epsilon_buys_off_stays(self):
        composed = loss(((Approximate(0.1, 0.01), 3), (Pure(0.2), 1)))
        never = 1 - 0.99**3
        assert never <= composed.delta(50.0) <= never + 1e-8

    def test_little_events_beside_a_large_one(self):
        # They have thirteen places on the grid: the powers of their places must not overflow.
        composed = loss(((Pure(0.25), 1), (Pure(0.001), 2)))
        truth = repeated_response(1, 0.25, 0.1)
        assert truth <= composed.delta(0.1) <= truth + 0.001


class TestAgainstDpAccounting:
    """Independent discretization of the same losses; two pessimists agree to a thousandth."""

    @pytest.mark.parametrize("relation", Relation)
    @pytest.mark.parametrize(("rate", "multiplier", "n"), [(0.1, 2.0, 50), (0.5, 1.0, 3)])
    def test_sampled_gaussian_noise(self, rate, multiplier, n, relation):
        neighbours = {
            Relation.ADD_REMOVE: reference.NeighborRel.ADD_OR_REMOVE_ONE,
            Relation.REPLACE: reference.NeighborRel.REPLACE_ONE,
        }[relation]
        theirs = reference.from_gaussian_mechanism(
            multiplier,
            sampling_prob=rate,
            neighboring_relation=neighbours,
            value_discretization_interval=1e-3,
        ).self_compose(n)
        ours = loss(((Subsampled(Gaussian(multiplier), rate), n),), relation)
        for t in (0.5, 1.0, 3.0):
            expected = theirs.get_delta_for_epsilon(t)
            assert ours.delta(t) == pytest.approx(expected, rel=1e-3, abs=2 * ours.margin)


class TestSafety:
    def test_a_count_that_is_ignored_would_be_caught(self):
        """The defect of one event type of dp_accounting, enacted on ours."""
        once = loss(((Pure(math.log(3)), 1),))
        truth = repeated_response(10, math.log(3), 5.0)
        assert once.delta(5.0) < truth < loss(((Pure(math.log(3)), 10),)).delta(5.0)

    def test_optimistic_rounding_would_be_caught(self):
        optimist = reference.from_gaussian_mechanism(
            1.0,
            pessimistic_estimate=False,
            use_connect_dots=False,
            value_discretization_interval=1e-2,
        )
        truth = response_and_gaussian(0.0, 1.0, 1.0)
        assert optimist.get_delta_for_epsilon(1.0) < truth <= loss(((Gaussian(1.0), 1),)).delta(1.0)

    def test_the_margin_grows_with_the_number_of_events(self):
        few, many = loss(((Pure(0.1), 10),)), loss(((Pure(0.1), 1000),))
        assert 0 < few.margin < many.margin < 1e-7

    @pytest.mark.parametrize("size", [2, 13, 511, 512, 513, 1500])
    @pytest.mark.parametrize("count", [2, 30])
    def test_a_cut_leaves_no_more_than_it_may(self, size, count):
        """On grids of few places and of many; a warning would be an error here."""
        masses = np.random.default_rng(size).dirichlet(np.full(size, 0.3))
        law = np.ones(1)
        for _ in range(count):
            law = np.convolve(law, masses)
        last = loss_distributions._largest_sum(masses, count)
        assert law[last + 1 :].sum() <= loss_distributions._TRUNCATED_MASS
        assert last < len(law)

    def test_nan_is_an_error_and_never_a_price(self):
        class Broken:
            def get_delta_for_epsilon(self, epsilon):
                return math.nan

        with pytest.raises(NumericalFailure, match="no guarantee is claimed"):
            LossDistribution((Broken(),), 0.0).delta(1.0)

    @pytest.mark.parametrize(
        "counts",
        [
            {Pure(800.0): 2},
            {Gaussian(0.001): 1},
            {Pure(0.1): 10**8},
            {Subsampled(Gaussian(0.001), 0.5): 1},
            {Pure(5e-324): 2},
        ],
        ids=str,
    )
    def test_what_is_out_of_reach_is_not_attempted(self, counts):
        assert loss_distribution(counts, relation=Relation.REPLACE) is None


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(
    "counts",
    [{Pure(0.2): 30}, {Pure(0.1): 50, Gaussian(5.0): 1}, {Subsampled(Gaussian(1.0), 0.05): 40}],
    ids=["pure", "pure and gaussian", "samples"],
)
def test_the_epsilon_that_is_found_keeps_delta(counts, delta):
    """A root is a guess: what is told must hold where it is told, and not far below."""
    loss = loss_distribution(counts, relation=Relation.REPLACE)
    epsilon = loss.epsilon(delta)
    assert loss.delta(epsilon) <= delta
    assert loss.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-3)
