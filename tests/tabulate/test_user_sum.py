"""Sums of everything that people hold."""

import numpy as np
import pyarrow as pa
import pytest

from bill import Bill
from quorate import Relation, UserData, UserSum
from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.tabulate.user_sum import asked_columns

RNG = np.random.default_rng(0)
WHO = RNG.integers(0, 3000, 20_000)
TABLE = pa.table(
    {"who": WHO, "price": RNG.gamma(2.0, 5.0, 20_000), "change": RNG.normal(1.0, 3.0, 20_000)}
)
BOUNDS = {"price": (0, 1000), "change": (-50, 50)}
TRUTH = np.array([np.sum(TABLE["price"]), np.sum(TABLE["change"])])


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("cap", ["auto", {"price": 400, "change": 60}])
def test_sums_are_right(relation, delta, cap):
    with use_noise(SeededNoise(1)):
        total = UserSum(4.0, delta=delta, relation=relation, bounds=BOUNDS, cap=cap).fit(
            TABLE, users="who"
        )
    assert np.all(np.abs(total.sum_ / TRUTH - 1) < 0.08)
    assert np.all(total.error_.bound < 0.05 * TRUTH)


def test_errors_are_as_large_as_stated():
    scores = []
    for seed in range(60):
        with use_noise(SeededNoise(seed)):
            total = UserSum(1.0, bounds=BOUNDS, cap=1e4).fit(TABLE, users="who")
        scores.append((total.sum_ - TRUTH) / total.error_.standard_error)
    assert np.std(scores) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("cap", ["auto", 5])
@pytest.mark.parametrize("relation", Relation)
def test_a_giant_cannot_be_seen(cap, relation):
    def people(value, count):
        rows = np.concatenate([np.ones(99), np.full(count, value)])[:, None]
        ids = np.concatenate([np.arange(99), np.full(count, 99)])
        return UserData.from_arrays(rows, users=ids)

    for value in (1e308, -1e308, np.nan, np.inf):
        report = replay(
            lambda data: UserSum(1.0, bounds=9.0, cap=cap, relation=relation).fit(data),
            people(1.0, 1),
            people(value, 3000),
        )
        assert report.same, str(report)


def test_what_was_drawn_costs_what_is_promised():
    for delta in (0.0, 1e-6):
        bill = Bill()
        with use_noise(bill):
            UserSum(1.0, delta=delta, bounds=BOUNDS).fit(TABLE, users="who")
        assert 0.9 < bill.epsilon(delta) <= 1 + 1e-9


def test_columns_are_those_with_bounds_or_all_others():
    assert asked_columns(UserSum(bounds=9), TABLE, "who", "sum")[0].values == ("price", "change")
    some = UserSum(bounds={"change": 9}, where={"price": (0, 5)})
    assert asked_columns(some, TABLE, "who", "sum")[0].values == ("change",)
    with pytest.raises(ParameterError):
        asked_columns(UserSum(bounds=9), TABLE.select(["who"]), "who", "sum")
    with pytest.raises(UnboundedContributionError):
        UserSum().fit(TABLE, users="who")
