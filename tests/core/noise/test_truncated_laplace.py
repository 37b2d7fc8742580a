"""The noisy limit: its law, its tails, and that it is drawn exactly."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.core.noise import SecureNoise
from quorate.core.noise.truncated_laplace import TruncatedLaplace, published_reach, smallest_reach
from quorate.exceptions import ParameterError

LAWS = [
    TruncatedLaplace(epsilon, reach=reach) for epsilon in (0.05, 0.5, 2.0) for reach in (1, 4, 25)
]
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


@every_law
def test_the_tail_is_rounded_up_and_by_very_little(law):
    with mpmath.workdps(60):
        rate = mpmath.mpf(law.epsilon)
        masses = [mpmath.exp(-rate * abs(r - law.reach)) for r in range(2 * law.reach + 1)]
        true = masses[0] / mpmath.fsum(masses)
        stated = mpmath.mpf(law.tail.numerator) / law.tail.denominator
        assert true <= stated <= true * (1 + mpmath.mpf(10) ** -40)


@every_law
def test_one_step_of_the_distance_costs_epsilon_and_one_tail(law):
    """Of any event: what is above e^epsilon times as likely at the next distance is one tail."""
    factor, tail = np.exp(law.epsilon), float(law.tail)
    chances = [law.pass_probability(v) for v in range(2 * law.reach + 3)]
    for near, far in pairwise(chances):
        assert max(near - factor * far, 0) <= tail * (1 + 1e-9) + 1e-15
        assert max((1 - far) - factor * (1 - near), 0) <= tail * (1 + 1e-9) + 1e-15


def test_two_steps_of_the_distance_cost_more():
    law = TruncatedLaplace(0.5, reach=10)
    near, far = law.pass_probability(14), law.pass_probability(16)
    assert near - np.exp(law.epsilon) * far > 1.5 * float(law.tail)


def test_it_is_drawn_as_it_says():
    law, noise = TruncatedLaplace(Fraction(1, 2), reach=3), SecureNoise()
    counts = np.bincount([law.draw(noise) for _ in range(1500)], minlength=7)
    assert p_value(counts, law.probabilities) > FALSE_ALARM
    shifted = np.roll(law.probabilities, 1)
    assert p_value(counts, shifted) < FALSE_ALARM


@pytest.mark.parametrize(
    ("epsilon", "delta", "ours", "published"),
    [(1, 1e-6, 25, 48), (1, 1e-4, 16, 34), (3, 1e-6, 9, 18), (0.5, 1e-6, 47, 94)],
)
def test_the_reach_is_half_of_the_published_one(epsilon, delta, ours, published):
    assert smallest_reach(Fraction(epsilon) / 2, delta) == ours
    third = epsilon / 3
    inner = delta / (np.exp(2 * third) + np.exp(third) + 2)
    assert published_reach(third, inner) == published


def test_the_smallest_reach_is_the_smallest():
    for epsilon, delta in [(0.3, 1e-3), (1.0, 0.3), (2.0, 1e-9)]:
        reach = smallest_reach(epsilon, delta)
        assert TruncatedLaplace(epsilon, reach=reach).tail <= delta
        assert reach == 1 or TruncatedLaplace(epsilon, reach=reach - 1).tail > delta


def test_a_hopeless_budget_is_refused():
    with pytest.raises(ParameterError, match="Expected a budget"):
        smallest_reach(1e-5, 1e-9)
