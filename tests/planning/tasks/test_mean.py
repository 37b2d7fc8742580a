"""Plans for means: routes, laws, and real fits."""

import math

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.means import UserMean
from quorate.planning import plan
from quorate.planning.tasks.mean import MeanTask


def fit(n, *, dimension, epsilon, delta, deviation, bound, seed):
    rng = np.random.default_rng([n, seed])
    centre = rng.uniform(-bound / 2, bound / 2, dimension)
    values = centre + deviation * rng.normal(size=(n, dimension))
    with use_noise(SeededNoise([n, seed])):
        mean = UserMean(epsilon, delta=delta, bounds=bound).fit(
            UserData(values, offsets=range(n + 1))
        )
    return float(np.linalg.norm(mean.mean_ - centre)), mean.algorithm_.name


@pytest.mark.parametrize(
    ("numbers", "error"),
    [({"dimension": 1}, 0.2), ({"dimension": 8, "delta": 1e-6, "records": 4}, 0.3)],
)
def test_the_planned_users_keep_the_error_and_a_fifth_of_them_does_not(numbers, error):
    # The true chance is about 0.97; below 0.7 in 30 runs happens less than once in 10^6 times.
    answer = plan("mean", epsilon=1.0, error=error, **numbers)
    task = MeanTask(**numbers)
    known = {
        "dimension": task.dimension,
        "epsilon": 1.0,
        "delta": task.delta,
        "deviation": task.deviation,
        "bound": task.half_width,
    }
    enough = [fit(answer.users, seed=seed, **known) for seed in range(30)]
    assert np.mean([length <= error for length, _ in enough]) >= 0.7
    too_few = [fit(answer.users // 5, seed=seed, **known)[0] for seed in range(30)]
    assert np.mean(np.array(too_few) <= error) < 0.7
    assert answer.algorithm in {name for _, name in enough}


class TestRoutes:
    def test_few_users_are_clipped_and_many_are_found(self):
        task = MeanTask(dimension=100, delta=1e-6, records=10)
        assert [task.algorithm(n, 1.0)[0] for n in (1000, 20_000)] == ["ball", "ball"]
        pure = MeanTask(dimension=2)
        assert [pure.algorithm(n, 1.0)[0] for n in (100, 900)] == ["clip", "interval"]

    def test_users_who_come_and_go_gain_as_much(self):
        task = MeanTask(dimension=10, delta=1e-6, relation=Relation.ADD_REMOVE)
        assert task.algorithm(1000, 1.0)[0] == "ball"
        assert task.error(1000, 1.0) < task.clip_error(1000, 1.0) / 10

    def test_a_range_that_is_worse_than_clipping_counts_as_what_will_be_used(self):
        task = MeanTask(bounds=1.0)
        assert task.error(100, 1.0) >= task.error(141, 1.0)


class TestLaws:
    def test_very_many_users_leave_sampling_error_only(self):
        error = MeanTask(dimension=4, delta=1e-6, between=0.0).error(10**9, 1.0)
        # The square root of a chi-square quantile with 4 degrees of freedom at 0.94.
        assert error == pytest.approx(math.sqrt(9.04 / 1e9), rel=0.01)

    def test_units_do_not_matter(self):
        metres = MeanTask(dimension=3, delta=1e-6, bounds=50.0, scale=2.0)
        millimetres = MeanTask(dimension=3, delta=1e-6, bounds=50_000.0, scale=2000.0)
        assert millimetres.error(700, 1.0) == pytest.approx(1000 * metres.error(700, 1.0))

    def test_records_help_only_as_far_as_users_are_alike(self):
        alike, different = (
            [MeanTask(records=m, heterogeneity=h).error(1000, 1.0) for m in (1, 10**6)]
            for h in (0.0, 1.0)
        )
        assert alike[1] < alike[0] / 100
        assert different[1] > different[0] / 2

    def test_nobody_deviates_by_more_than_the_range(self):
        assert MeanTask(scale=100.0, bounds=2.0).deviation == 2.0

    def test_a_wider_range_costs_little_once_it_is_searched(self):
        needed = [
            plan("mean", dimension=10, delta=1e-6, epsilon=1.0, error=0.5, bounds=bound).users
            for bound in (1e2, 1e6)
        ]
        assert needed[1] <= 1.5 * needed[0]

    def test_clipping_to_a_wide_range_is_hopeless_next_to_it(self):
        answer = plan("mean", dimension=10, delta=1e-6, epsilon=1.0, error=0.5, bounds=1e6)
        clip = {baseline.name: baseline for baseline in answer.baselines}["clip to range"]
        assert clip.users > 10**4 * answer.users


class TestPublished:
    def test_theorem_2_of_levy_needs_delta_beyond_one_dimension(self):
        assert MeanTask(dimension=2).upper(epsilon=1.0, error=0.1).users is None
        assert MeanTask(dimension=1).upper(epsilon=1.0, error=0.1).theorem.startswith("Theorem 1")

    def test_theorem_2_of_levy_is_stated_for_epsilon_up_to_one(self):
        task = MeanTask(dimension=10, delta=1e-6)
        assert task.upper(epsilon=1.0, error=0.1).holds
        assert not task.upper(epsilon=1.5, error=0.1).holds

    def test_lemma_39_of_ghazi_counts_the_places_of_a_wide_range(self):
        bound = MeanTask(bounds=1e12).lower(epsilon=1.0, error=1.0)
        assert bound.theorem.startswith("Lemma 39")
        assert bound.users == pytest.approx(math.log(1e12 * 9), abs=0.1)

    def test_lemma_39_of_ghazi_counts_the_signs_of_many_dimensions(self):
        bound = MeanTask(dimension=2000, bounds=1.0).lower(epsilon=1000.0, error=1.0)
        assert bound.theorem == "Lemma 39 of Ghazi et al. (2023)"


@pytest.mark.parametrize(
    "wrong", [{"dimension": 0}, {"bounds": 0.0}, {"scale": 0.0}, {"heterogeneity": -1.0}]
)
def test_numbers_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        MeanTask(**wrong)
