"""Perfect generalisation, measured: the estimate is that of enumeration, and bounds are bounds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from quorate.exceptions import ParameterError
from quorate.papers.conversion.perfect_generalisation import (
    PerfectGeneralisation,
    calibrated_radius,
    clopper_pearson,
    from_samples_to_simulator,
    from_simulator_to_samples,
    group_radius,
    perfect_radius,
    published_radius,
)


def noisy_sum(epsilon):
    """Randomized response on every bit, of which only the sum is told."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def law(sample):
        ones, n = sum(sample), len(sample)
        zeros = binom.pmf(np.arange(n + 1), n - ones, 1 - keep)
        return np.convolve(zeros, binom.pmf(np.arange(n + 1), ones, keep))[: n + 1]

    return law


def lab(n=4, epsilon=1.0, p=0.5, **more):
    return PerfectGeneralisation(
        law=noisy_sum(epsilon), values=(0, 1), probabilities=(1 - p, p), records=n, **more
    )


def far(p, q, epsilon, delta):
    factor = math.exp(epsilon)
    sticks = [np.maximum(a - factor * b, 0).sum() for a, b in [(p, q), (q, p)]]
    return max(sticks) > delta


@pytest.mark.claim("F3: Definition 12")
class TestEnumeration:
    @pytest.mark.parametrize("n", [1, 2, 3])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.05), (0.0, 0.2)])
    def test_it_is_the_plain_sum_over_all_pairs(self, n, epsilon, delta):
        law, p = noisy_sum(1.0), 0.3
        beta = 0.0
        for x in product((0, 1), repeat=n):
            for y in product((0, 1), repeat=n):
                chance = np.prod([p if bit else 1 - p for bit in x + y])
                beta += chance * far(law(x), law(y), epsilon, delta)
        assert lab(n, p=p).enumerate(epsilon=epsilon, delta=delta) == pytest.approx(beta)

    def test_the_simulator_is_the_mean_law(self):
        law, n = noisy_sum(1.0), 3
        samples = list(product((0, 1), repeat=n))
        mean = np.mean([law(x) for x in samples], axis=0)
        beta = np.mean([far(law(x), mean, 0.6, 0.12) for x in samples])
        assert lab(n, simulator=True).enumerate(epsilon=0.6, delta=0.12) == pytest.approx(beta)
        assert 0 < beta < 1


class TestEstimate:
    @pytest.mark.parametrize("simulator", [False, True])
    @pytest.mark.parametrize("n", [2, 4, 6])
    def test_the_interval_holds_what_enumeration_says(self, n, simulator):
        world = lab(n, simulator=simulator)
        for epsilon, delta in [(0.5, 0.01), (1.0, 0.05), (2.0, 0.0)]:
            exact = world.enumerate(epsilon=epsilon, delta=delta)
            found = world.estimate(
                epsilon=epsilon, delta=delta, repetitions=400, confidence=0.9999, random_state=n
            )
            assert found.lower <= exact <= found.upper

    def test_the_same_test_catches_an_estimate_of_half_the_pairs(self):
        """A twin that looks one way only underestimates."""
        world = lab(4)
        exact = world.enumerate(epsilon=0.5, delta=0.01)
        found = world.estimate(epsilon=0.5, delta=0.01, repetitions=400, random_state=0)
        low, high = clopper_pearson(round(found.beta * 400 / 2), 400, confidence=0.9999)
        assert not low <= exact <= high

    def test_the_radius_is_where_the_estimate_passes_beta(self):
        world = lab(5)
        radius = world.radius(beta=0.2, delta=0.02, repetitions=300, random_state=3)
        inside = world.estimate(epsilon=radius + 1e-6, delta=0.02, repetitions=300, random_state=3)
        below = world.estimate(epsilon=radius - 1e-6, delta=0.02, repetitions=300, random_state=3)
        assert inside.beta <= 0.2 < below.beta


@pytest.mark.claim("F3: Theorem 13")
class TestBounds:
    def test_the_calibrated_radius_holds_by_enumeration(self):
        for n, epsilon, beta in [(4, 0.3, 0.2), (6, 0.1, 0.3), (8, 0.5, 0.05)]:
            radius = calibrated_radius(epsilon=epsilon, records=n, outputs=n + 1, beta=beta)
            assert lab(n, epsilon).enumerate(epsilon=radius, delta=0.0) <= beta

    def test_group_privacy_is_the_cap_of_both(self):
        known = {"epsilon": 0.1, "records": 3}
        assert group_radius(**known) == pytest.approx(0.3)
        assert calibrated_radius(outputs=10**6, beta=1e-9, **known) == pytest.approx(0.3)
        assert published_radius(delta=1e-9, beta=0.1, **known)[0] == pytest.approx(0.3)

    def test_the_printed_figures_of_thresholds(self):
        """Sixteen thresholds, a tenth of the labels flipped: far below McDiarmid."""

        def law(sample):
            points, labels = np.asarray(sample).T
            errors = ((points[:, None] >= np.arange(16)) != labels[:, None]).sum(axis=0)
            weights = np.exp(-0.05 * (errors - errors.min()))
            return weights / weights.sum()

        values = [(x, y) for x in range(16) for y in (0, 1)]
        chances = [(0.9 if (x >= 8) == bool(y) else 0.1) / 16 for x, y in values]
        for n, printed in [(25, 0.40), (100, 0.88)]:
            world = PerfectGeneralisation(law=law, values=values, probabilities=chances, records=n)
            found = world.radius(beta=0.05, delta=0.0, repetitions=300, random_state=0)
            assert found == pytest.approx(printed, rel=0.12)
            assert found < calibrated_radius(epsilon=0.1, records=n, outputs=16, beta=0.05)

    def test_the_published_radius_grows_with_the_root_of_the_records(self):
        common = {"epsilon": 1e-9, "delta": 1e-6, "beta": 0.1}
        one, four = (published_radius(records=n, **common)[0] for n in (10**6, 4 * 10**6))
        assert four / one == pytest.approx(2)


def test_clopper_pearson_at_the_ends():
    assert clopper_pearson(0, 20)[0] == 0.0
    assert clopper_pearson(20, 20)[1] == 1.0
    low, high = clopper_pearson(5, 20, confidence=0.9)
    assert binom.sf(4, 20, low) == pytest.approx(0.05)
    assert binom.cdf(5, 20, high) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"law": 3}, "law to be a function"),
        ({"probabilities": (0.5, 0.6)}, "add up to 1"),
        ({"probabilities": (0.5,)}, "one probability"),
        ({"records": 0}, "records"),
    ],
)
def test_wrong_worlds_are_refused(parameters, message):
    plain = {"law": noisy_sum(1.0), "values": (0, 1), "probabilities": (0.5, 0.5), "records": 2}
    with pytest.raises(ParameterError, match=message):
        PerfectGeneralisation(**plain | parameters)


def test_worlds_that_are_too_large_and_laws_that_are_none():
    with pytest.raises(ParameterError, match="at most 4096 samples"):
        lab(13).enumerate(epsilon=1.0, delta=0.0)
    broken = PerfectGeneralisation(
        law=lambda sample: [0.5, 0.6], values=(0, 1), probabilities=(0.5, 0.5), records=1
    )
    with pytest.raises(ParameterError, match="law to return probabilities"):
        broken.enumerate(epsilon=1.0, delta=0.0)


@pytest.mark.claim("F3: Lemma 30")
class TestBothWays:
    @pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
    @pytest.mark.parametrize("delta", [0.0, 0.02, 0.1])
    def test_what_follows_holds_over_all_samples(self, epsilon, delta):
        """Enumerated: the mean law as simulator, and both directions of the lemma."""
        pairs, mean = lab(p=0.3), lab(p=0.3, simulator=True)
        told = {"beta": mean.enumerate(epsilon=epsilon, delta=delta)}
        told |= {"epsilon": epsilon, "delta": delta}
        beta, loss, slack = from_simulator_to_samples(**told)
        assert pairs.enumerate(epsilon=loss, delta=min(slack, 0.999)) <= beta + 1e-12
        told["beta"] = pairs.enumerate(epsilon=epsilon, delta=delta)
        beta, loss, slack = from_samples_to_simulator(**told)
        assert mean.enumerate(epsilon=loss, delta=min(slack, 0.999)) <= beta + 1e-12

    def test_the_figures_are_those_of_the_lemma(self):
        beta, epsilon, delta = from_simulator_to_samples(beta=0.01, epsilon=0.5, delta=1e-3)
        assert (beta, epsilon) == pytest.approx((0.0199, 1.0))
        assert delta <= 3e-3
        found = from_samples_to_simulator(beta=0.01, epsilon=0.5, delta=1e-3)
        assert found == pytest.approx((0.1, 0.5, 0.101))

    def test_the_printed_probability_is_too_small_for_two_samples(self):
        known = {"values": (0, 1, 2, 3), "probabilities": (0.7, 0.1, 0.1, 0.1), "records": 1}

        def law(sample):
            return np.eye(4)[sample[0]]

        mean = PerfectGeneralisation(law=law, simulator=True, **known)
        # Close to the mean law at delta 0.3: the seven of ten; all others have nothing in common.
        assert mean.enumerate(epsilon=0.0, delta=0.3 + 1e-9) == pytest.approx(0.3)
        pairs = PerfectGeneralisation(law=law, **known)
        apart = pairs.enumerate(epsilon=0.0, delta=0.9)
        bound = from_simulator_to_samples(beta=0.3, epsilon=0.0, delta=0.3)
        assert 0.3 < apart <= bound[0] == pytest.approx(0.51)


@pytest.mark.claim("F3: Theorem 31")
class TestPrivateIsPerfect:
    def test_the_formula_is_that_of_the_proof(self):
        epsilon, delta, n, beta = 1e-7, 1e-14, 10**9, 0.01
        radius, slack = perfect_radius(epsilon=epsilon, delta=delta, records=n, beta=beta)
        # Theorem 13 at min(beta, n delta)^2, here 1e-10: Lemma 30 takes its root.
        inner = min(beta, n * delta) ** 2
        expected = 40 * epsilon * math.sqrt(n * math.log(1 / delta))
        expected += 2 * epsilon * math.sqrt(8 * n * math.log(1 / (2 * inner)))
        assert radius == pytest.approx(min(expected, n * epsilon))
        assert slack == pytest.approx(2 * n * delta)

    def test_it_is_of_the_order_of_the_theorem(self):
        epsilon, delta, beta = 1e-9, 1e-20, 0.01
        for n in (10**6, 10**10):
            radius, _ = perfect_radius(epsilon=epsilon, delta=delta, records=n, beta=beta)
            order = epsilon * math.sqrt(n * math.log(1 / (beta * delta)))
            assert radius <= 52 * order

    @pytest.mark.parametrize("n", [2, 5])
    def test_a_private_mechanism_keeps_it_over_all_samples(self, n):
        mean = lab(n=n, epsilon=0.1, p=0.4, simulator=True)
        told = {"epsilon": 0.1, "delta": 1e-6, "records": n, "beta": 0.05}
        radius, slack = perfect_radius(**told)
        assert mean.enumerate(epsilon=radius, delta=slack) <= 0.05
