"""How many records a user holds is private: stated, or bought."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.mechanisms.user_releases import typical_records
from quorate.models.optimization.gradients import check_records
from sealing import start_run


def start(counts, mu=0.24, relation=Relation.REPLACE):
    offsets = np.concatenate([[0], np.cumsum(counts)])
    people = UserData(np.zeros((offsets[-1], 1)), offsets=offsets)
    return start_run(people, gaussian_account(mu, relation))


@pytest.mark.parametrize("relation", Relation)
def test_the_estimate_brackets_the_median_user(relation):
    with use_noise(SeededNoise(1)):
        run = start(np.full(2000, 10), relation=relation)
        found = typical_records(run, "auto")
    assert found == 16.0


def test_the_estimate_is_paid_for():
    with use_noise(SeededNoise(1)):
        run = start(np.full(300, 10))
        before = run.account.square_left
        typical_records(run, "auto")
    assert 0 < before - run.account.square_left <= 0.05 * 0.24**2


def test_a_stated_number_costs_nothing():
    run = start(np.full(300, 10))
    before = run.account.square_left
    assert typical_records(run, 12) == 12.0
    assert run.account.square_left == before


def test_a_giant_user_is_no_problem():
    with use_noise(SeededNoise(1)):
        assert typical_records(start(np.array([1] * 500 + [100_000])), "auto") <= 2.0


@pytest.mark.parametrize("records", ["many", 0, -1, 2.5, None])
def test_nonsense_is_refused(records):
    with pytest.raises(ParameterError, match="records"):
        check_records(records)
