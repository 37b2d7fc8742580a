"""Plans for medians: the law of the mechanism, with sampling error."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.means import PrivateMedian
from quorate.planning import plan
from quorate.planning.tasks.median import MedianTask


def kept(n, error, *, epsilon, bound, repetitions=60):
    """Return how often the real estimator keeps a rank error on normal users."""
    hits = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([n, repetition])
        values = 3.0 + rng.normal(size=(n, 1))
        with use_noise(SeededNoise([n, repetition])):
            median = PrivateMedian(epsilon, bounds=bound).fit(
                UserData(values, offsets=range(n + 1))
            )
        hits += abs(ndtr(median.median_[0] - 3.0) - 0.5) <= error
    return hits / repetitions


def test_the_planned_users_keep_the_error_and_a_fifth_of_them_does_not():
    # The true chance is about 0.94; below 0.75 in 60 runs happens once in 10^6 times.
    users = plan("median", epsilon=0.5, error=0.1, bounds=1000.0).users
    assert kept(users, 0.1, epsilon=0.5, bound=1000.0) >= 0.75
    assert kept(users // 5, 0.1, epsilon=0.5, bound=1000.0) < 0.75


def test_without_privacy_only_sampling_error_is_left():
    # With beta = 0.06: the two-sided quantile of a normal with deviation 1 / (2 sqrt n).
    error = MedianTask(confidence=0.9).error(10_000, 1000.0)
    assert error == pytest.approx(1.881 * 0.5 / 100, rel=0.01)


def test_too_few_users_leave_the_answer_anywhere():
    assert MedianTask(bounds=1e9).error(20, 1.0) == 0.5


def test_very_many_users_do_not_underflow():
    assert 0 < MedianTask(bounds=1e9).error(10**12, 200.0) < 1e-5


def test_the_range_enters_by_its_logarithm():
    needed = [
        plan("median", epsilon=1.0, error=0.2, bounds=bound).users for bound in (1e3, 1e6, 1e9)
    ]
    first, second = needed[1] - needed[0], needed[2] - needed[1]
    assert 0.7 < first / second < 1.4


def test_several_medians_share_epsilon():
    one = plan("median", epsilon=1.0, error=0.05)
    four = plan("median", epsilon=1.0, error=0.05, dimension=4)
    assert one.users < four.users


def test_users_who_come_and_go_need_half_the_noise():
    added = MedianTask(relation=Relation.ADD_REMOVE)
    assert added.error(300, 0.5) == pytest.approx(MedianTask().error(300, 1.0))


def test_any_answer_has_a_rank_error_of_a_half():
    answer = plan("median", epsilon=1.0, error=0.5)
    assert answer.users == 1
    assert (answer.upper.users, answer.lower.users) == (1, 1)


def test_lemma_39_of_ghazi_counts_crowds_without_a_common_answer():
    # A rank error of 0.3413 is one deviation: crowds 2 apart, 50 + 1 of them in [-50, 50].
    bound = MedianTask(bounds=50.0).lower(epsilon=1.0, error=0.3413)
    assert bound.theorem.startswith("Lemma 39")
    assert bound.users == pytest.approx(math.log(50 * 9))
    assert MedianTask(bounds=0.5).lower(epsilon=1.0, error=0.3413).users == 1


def test_with_delta_only_theorem_9_of_levy_is_claimed():
    bound = MedianTask(delta=1e-6).lower(epsilon=1.0, error=0.1)
    assert bound.theorem.startswith("Theorem 9")


@pytest.mark.parametrize("wrong", [{"dimension": 0}, {"bounds": 0.0}, {"scale": -1.0}])
def test_numbers_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        MedianTask(**wrong)
