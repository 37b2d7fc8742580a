"""Minibatches of users: means over a secret sample, a public number of steps."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.accounting.events import Gaussian
from quorate.bounds import Ball
from quorate.engines import UserMeans
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.mechanisms.user_sample import UserSample
from quorate.models.runs import check_public_steps, sampled_mean
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData


def sampled_run(people, sample, steps):
    account = Account.open(epsilon=50.0, delta=1e-2)
    account.plan(sample.total(Gaussian(10.0), steps))
    return UserReleases.start(people, account, sample=sample)


class TestSampledMean:
    def test_the_mean_is_unbiased(self):
        people = UserData(np.ones((2000, 1)), offsets=np.arange(2001))
        with use_noise(SeededNoise(0)):
            run = sampled_run(people, UserSample(rate=0.1, multiplier=1.0), 50)
            statistic = UserMeans(Ball(1.0, dimension=1))
            found = [sampled_mean(run, statistic).value[0] for _ in range(50)]
        assert np.mean(found) == pytest.approx(1.0, abs=6 * 0.07 / np.sqrt(50))

    def test_an_empty_sample_is_released_like_any_other(self):
        people = UserData(np.ones((3, 1)), offsets=np.arange(4))
        with use_noise(SeededNoise(0)):
            run = sampled_run(people, UserSample(rate=1e-9, multiplier=1.0), 1)
            assert sampled_mean(run, UserMeans(Ball(1.0, dimension=1))).value.shape == (1,)


class TestPublicSteps:
    @pytest.mark.parametrize(
        ("records", "relation"), [("auto", Relation.REPLACE), (20, Relation.ADD_REMOVE)]
    )
    def test_a_number_of_steps_that_was_released_is_refused(self, records, relation):
        with pytest.raises(ParameterError, match="steps="):
            check_public_steps(0.1, steps=None, records=records, relation=relation)
        check_public_steps(0.1, steps=5, records=records, relation=relation)
        check_public_steps(None, steps=None, records=records, relation=relation)
