"""Sample bounds against exact failure probabilities of small worlds."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from quorate.exceptions import ParameterError
from quorate.learners.occam import agnostic_occam_users, concise_rounds, realizable_occam_users


def failure(n, errors, alpha, epsilon):
    """Bound from above how often the exponential mechanism ends at a bad rule; rules independent.

    Rule 0 never errs. Rule h > 0 has weight exp(-epsilon n shown / 2) against weight 1.
    """
    shown = np.arange(n + 1)
    total = 0.0
    for error in errors:
        if error >= alpha:
            weights = np.exp(-epsilon * shown / 2)
            total += np.dot(binom.pmf(shown, n, error), weights / (1 + weights))
    return total


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("size", [2, 100])
def test_the_realizable_bound_is_enough(epsilon, size):
    n = realizable_occam_users(log_size=math.log(size), alpha=0.1, beta=0.05, epsilon=epsilon)
    assert failure(n, [0.1] * (size - 1), 0.1, epsilon) <= 0.05


def test_a_tenth_of_it_is_not():
    n = realizable_occam_users(log_size=math.log(100), alpha=0.1, beta=0.05, epsilon=1.0)
    assert failure(n // 10, [0.1] * 99, 0.1, 1.0) > 0.05


def test_realizable_learning_gains_a_factor_of_alpha():
    known = {"log_size": math.log(1000), "beta": 0.05, "epsilon": 1.0}
    ratio = [
        agnostic_occam_users(alpha=a, **known) / realizable_occam_users(alpha=a, **known)
        for a in (0.1, 0.01)
    ]
    assert ratio[1] == pytest.approx(10 * ratio[0], rel=0.05)


def test_privacy_costs_nothing_agnostically_where_alpha_is_small():
    known = {"log_size": math.log(1000), "alpha": 0.1, "beta": 0.05}
    assert agnostic_occam_users(epsilon=1.0, **known) == agnostic_occam_users(**known)
    assert agnostic_occam_users(epsilon=0.01, **known) > agnostic_occam_users(**known)


def test_rounds_grow_with_the_classes():
    rounds = concise_rounds(log_sizes=[1.0, 10.0, 100.0], alpha=0.1, beta=0.05, epsilon=1.0)
    assert rounds == sorted(rounds)
    assert len(rounds) == 3


@pytest.mark.parametrize(
    "changes", [{"alpha": 0.0}, {"beta": 1.0}, {"epsilon": 0.0}, {"log_size": -1}]
)
def test_refusals(changes):
    known = {"log_size": 1.0, "alpha": 0.1, "beta": 0.05, "epsilon": 1.0}
    with pytest.raises(ParameterError):
        realizable_occam_users(**(known | changes))
