"""A secret sample of users: who is drawn, and what it costs."""

from functools import cache

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Composed, Gaussian, Relation, Repeated, Subsampled
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.mechanisms.user_sample import UserSample


@cache
def calibrated(relation=Relation.REPLACE, rate=0.05):
    return UserSample.calibrated(
        rate=rate, steps=10, epsilon=1.0, delta=1e-6, relation=relation, setup=Gaussian(10.0)
    )


class TestPrice:
    def test_the_plan_names_the_set_up_and_every_step_at_its_rate(self):
        setup = Gaussian(10.0)
        planned = UserSample(rate=0.1, multiplier=2.0).total(setup, 7)
        assert planned == Composed((setup, Repeated(Subsampled(Gaussian(2.0), 0.1), 7)))

    def test_the_sample_that_is_drawn_has_the_rate_of_the_plan(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        assert UserSample(rate=0.1, multiplier=2.0).draw(account).rate == 0.1

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
        assert calibrated().multiplier < calibrated(rate=0.2).multiplier


class TestSample:
    def test_everybody_joins_at_the_rate(self):
        with use_noise(SeededNoise(0)):
            sample = UserSample(rate=0.1, multiplier=1.0)
            account = Account.open(epsilon=1.0, delta=1e-6)
            joined = sum(
                np.isin(np.arange(50), sample.draw(account).members(50)) for _ in range(2000)
            )
        # Binomial(2000, 0.1) beyond 6 standard deviations for one of 50: below 1e-6.
        assert np.all(np.abs(joined - 200) < 6 * np.sqrt(180))

    def test_nobody_can_be_drawn_from_nobody(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        assert UserSample(rate=0.5, multiplier=1.0).draw(account).members(0).size == 0

    @pytest.mark.parametrize("rate", [0.0, 1.0, np.nan])
    def test_a_rate_lies_between_zero_and_one(self, rate):
        with pytest.raises(ParameterError, match="rate"):
            UserSample(rate=rate, multiplier=1.0)
