"""Means over records are ratios of two paid sums."""

import numpy as np
import pytest

from bill import Bill
from quorate import RecordMean, Relation, UserData
from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines import MemoryCrowd

RNG = np.random.default_rng(0)
WHO = RNG.integers(0, 5000, 40_000)
ROWS = np.column_stack([RNG.gamma(2.0, 5.0, 40_000), RNG.normal(-3.0, 1.0, 40_000)])
BOUNDS = ([0.0, -100.0], [1000.0, 100.0])


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("cap", ["auto", 30])
def test_means_are_right_in_ranges_that_are_far_too_wide(relation, delta, cap):
    with use_noise(SeededNoise(1)):
        mean = RecordMean(1.0, delta=delta, relation=relation, bounds=BOUNDS, cap=cap)
        mean.fit(ROWS, users=WHO)
    assert np.abs(mean.mean_ - ROWS.mean(axis=0)).max() < 0.6
    assert mean.count_ == pytest.approx(40_000, rel=0.06)


def test_records_count_and_not_people():
    """Somebody with nine records counts nine times: 9 x 1 and 1 x 0 make 0.9."""
    rows = np.tile([1.0] * 9 + [0.0], 2000)[:, None]
    ids = np.tile([0] * 9 + [1], 2000) + 2 * np.repeat(np.arange(2000), 10)
    with use_noise(SeededNoise(0)):
        mean = RecordMean(2.0, bounds=(0, 1), cap=10).fit(rows, users=ids)
    assert mean.mean_[0] == pytest.approx(0.9, abs=0.02)


def test_bounds_hold():
    held = []
    for seed in range(40):
        with use_noise(SeededNoise(seed)):
            mean = RecordMean(1.0, bounds=BOUNDS, cap=50).fit(ROWS, users=WHO)
        held.append(np.abs(mean.mean_ - ROWS.mean(axis=0)) <= mean.error_.bound)
    assert np.mean(held) > 0.9


def test_a_giant_cannot_be_seen_and_everything_is_paid():
    def people(value, count):
        rows = np.concatenate([np.ones(99), np.full(count, value)])[:, None]
        ids = np.concatenate([np.arange(99), np.full(count, 99)])
        return UserData.from_arrays(rows, users=ids)

    for delta in (0.0, 1e-6):
        report = replay(
            lambda data, delta=delta: RecordMean(1.0, delta=delta, bounds=9.0).fit(data),
            people(1.0, 1),
            people(1e308, 3000),
        )
        assert report.same, str(report)
        bill = Bill()
        with use_noise(bill):
            RecordMean(1.0, delta=delta, bounds=BOUNDS).fit(ROWS, users=WHO)
        assert 0.9 < bill.epsilon(delta) <= 1 + 1e-9


def test_parts_have_the_same_mean():
    crowd = UserData.from_arrays(ROWS[:, :1], users=WHO)
    crowd = UserData(
        crowd.X, offsets=crowd.offsets, feature_names=["a"], ids=np.arange(crowd.n_users)
    )
    found = []
    for data in (crowd, MemoryCrowd(crowd, n_parts=6)):
        with use_noise(SeededNoise(0)):
            found.append(RecordMean(1.0, bounds=(0, 1000)).fit(data).mean_[0])
    assert found[0] == found[1]
