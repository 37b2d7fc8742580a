"""Counts of people and of records."""

import numpy as np
import pyarrow as pa
import pytest

from bill import Bill
from quorate import Relation, UserCount, UserData
from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines import MemoryCrowd
from quorate.tabulate import StatisticError

RNG = np.random.default_rng(0)
WHO = RNG.integers(0, 3000, 20_000)
TABLE = pa.table({"who": WHO, "age": RNG.integers(10, 90, 20_000)})
OLD = np.asarray(TABLE["age"]) >= 65


@pytest.mark.parametrize("relation", Relation)
def test_people_are_counted_once(relation):
    found = []
    for seed in range(50):
        with use_noise(SeededNoise(seed)):
            count = UserCount(0.5, relation=relation, where={"age": (65, None)})
            found.append(count.fit(TABLE, users="who").count_)
    wanted = len(np.unique(WHO[OLD]))
    assert abs(np.mean(found) - wanted) < 2
    assert np.std(found) == pytest.approx(count.error_.standard_error, rel=0.4)
    assert np.mean(np.abs(np.array(found) - wanted) <= count.error_.bound) >= 0.85


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("cap", [30, "auto"])
def test_records_are_counted_up_to_a_cap(delta, cap):
    caps = []
    for seed in range(12):
        with use_noise(SeededNoise(seed)):
            count = UserCount(1.0, of="records", delta=delta, cap=cap).fit(TABLE, users="who")
        assert count.count_ == pytest.approx(20_000, rel=0.03)
        assert count.algorithm_.name == "laplace"  # one number: better than Gaussian noise
        caps.append(count.error_.cap)
    # Noise lengthens a cap in one fit of twenty.
    assert np.mean((np.array(caps) > 5) & (np.array(caps) < 40)) > 0.9


@pytest.mark.parametrize("of", ["users", "records"])
@pytest.mark.parametrize("relation", Relation)
def test_somebody_with_a_million_records_cannot_be_seen(of, relation):
    def people(extra):
        ids = np.concatenate([np.arange(99), np.full(extra, 99)])
        return UserData.from_arrays(np.zeros((len(ids), 1)), users=ids)

    report = replay(
        lambda data: UserCount(1.0, of=of, relation=relation).fit(data), people(1), people(5000)
    )
    assert report.same, str(report)


@pytest.mark.parametrize("of", ["users", "records"])
def test_what_was_drawn_costs_what_is_promised_and_parts_count_alike(of):
    bill, crowd = Bill(), UserData.from_frame(TABLE, user="who")
    with use_noise(bill):
        one = UserCount(1.0, of=of, relation=Relation.ADD_REMOVE).fit(crowd)
    assert 0.9 < bill.epsilon(0.0) <= 1 + 1e-9
    with use_noise(Bill()):
        parts = UserCount(1.0, of=of, relation=Relation.ADD_REMOVE)
        assert parts.fit(MemoryCrowd(crowd, n_parts=5)).count_ == one.count_


def test_errors_of_several_columns_can_be_compared():
    one, other = (StatisticError(standard_error=np.ones(2), bound=np.ones(2)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != StatisticError(standard_error=np.ones(2), bound=np.zeros(2))


def test_arrays_without_names_can_be_counted():
    assert abs(UserCount(9.0).fit(np.zeros((50, 2)), users=np.arange(50)).count_ - 50) < 9
    assert "within" in str(UserCount(9.0).fit(np.zeros(5), users=range(5)).error_)
