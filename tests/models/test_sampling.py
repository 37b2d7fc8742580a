"""Minibatches of users: a secret sample and its price."""

from functools import cache

import numpy as np
import pytest

from quorate.accounting.compose import price
from quorate.accounting.events import Gaussian, Repeated
from quorate.bounds import Ball
from quorate.engines import LocalEngine, UserMeans
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.models.releases import UserReleases
from quorate.models.sampling import UserSample, check_public_steps
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData


@cache
def calibrated(relation=Relation.REPLACE, rate=0.05):
    return UserSample.calibrated(
        rate=rate, steps=10, epsilon=1.0, delta=1e-6, relation=relation, setup=Gaussian(10.0)
    )


class TestPrice:
    @pytest.mark.parametrize("relation", Relation)
    def test_setup_and_steps_keep_the_budget(self, relation):
        event = calibrated(relation).total(Gaussian(10.0), 10)
        assert 0.95 < price(event, delta=1e-6, relation=relation) <= 1.0 + 1e-9

    def test_a_secret_sample_needs_less_noise(self):
        sample = calibrated()
        # A replaced user moves a sum by twice the radius.
        open_sample = Repeated(Gaussian(sample.multiplier / 2), 10)
        assert price(open_sample, delta=1e-6, relation=Relation.REPLACE) > 5.0

    def test_rarer_samples_need_less_noise(self):
        assert calibrated(rate=0.02).multiplier < calibrated(rate=0.2).multiplier


class TestSample:
    def test_everybody_joins_at_the_rate(self):
        with use_noise(SeededNoise(0)):
            sample = UserSample(rate=0.1, multiplier=1.0)
            joined = sum(np.isin(np.arange(50), sample.draw(50)) for _ in range(2000))
        # Binomial(2000, 0.1) beyond 6 standard deviations for one of 50: below 1e-6.
        assert np.all(np.abs(joined - 200) < 6 * np.sqrt(180))

    def test_nobody_can_be_drawn_from_nobody(self):
        assert UserSample(rate=0.5, multiplier=1.0).draw(0).size == 0

    def test_the_mean_is_unbiased(self):
        people = UserData(np.ones((2000, 1)), offsets=np.arange(2001))
        with use_noise(SeededNoise(0)):
            run = UserReleases.start(people, LocalEngine(), mu=1.0, relation=Relation.REPLACE)
            sample = UserSample(rate=0.1, multiplier=1.0)
            statistic = UserMeans(Ball(1.0, dimension=1))
            found = [sample.mean(run, statistic).value[0] for _ in range(50)]
        assert np.mean(found) == pytest.approx(1.0, abs=6 * 0.07 / np.sqrt(50))

    def test_an_empty_sample_is_released_like_any_other(self):
        people = UserData(np.ones((3, 1)), offsets=np.arange(4))
        with use_noise(SeededNoise(0)):
            run = UserReleases.start(people, LocalEngine(), mu=1.0, relation=Relation.REPLACE)
            sample = UserSample(rate=1e-9, multiplier=1.0)
            assert sample.mean(run, UserMeans(Ball(1.0, dimension=1))).value.shape == (1,)

    @pytest.mark.parametrize("rate", [0.0, 1.0, np.nan])
    def test_a_rate_lies_between_zero_and_one(self, rate):
        with pytest.raises(ParameterError, match="rate"):
            UserSample(rate=rate, multiplier=1.0)


class TestPublicSteps:
    @pytest.mark.parametrize(
        ("records", "relation"), [("auto", Relation.REPLACE), (20, Relation.ADD_REMOVE)]
    )
    def test_a_number_of_steps_that_was_released_is_refused(self, records, relation):
        with pytest.raises(ParameterError, match="steps="):
            check_public_steps(0.1, steps=None, records=records, relation=relation)
        check_public_steps(0.1, steps=5, records=records, relation=relation)
        check_public_steps(None, steps=None, records=records, relation=relation)
