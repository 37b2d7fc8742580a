"""Keys that many people share: one vote a person, and a row for all others."""

import numpy as np

from quorate import Relation, UserTable
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.by_group.keys import LabelNumbers
from quorate.tabulate.popular_keys import popular_keys


def account():
    return Account.open(epsilon=2.0, delta=1e-5, reserve=1e-5, noise=SeededNoise(0))


def test_only_keys_that_many_people_hold_are_found():
    rng = np.random.default_rng(0)
    rows = rng.choice([1.0, 2.0], size=(3000, 2))
    rows[0] = [77.0, 1.0]
    found = popular_keys(
        People(UserData(rows, offsets=range(3001)), Relation.REPLACE),
        (0, 1),
        [LabelNumbers(), LabelNumbers()],
        epsilon=1.0,
        delta=1e-6,
        account=account(),
        random_state=0,
    )
    assert found[0] == ((1, 1), (1, 2), (2, 1), (2, 2))


def test_one_person_with_a_million_records_votes_once():
    rows = np.concatenate([np.full(5000, 9.0), np.ones(500)])[:, None]
    offsets = np.concatenate([[0], np.arange(5000, 5501)])
    found = popular_keys(
        People(UserData(rows, offsets=offsets), Relation.REPLACE),
        (0,),
        [LabelNumbers()],
        epsilon=1.0,
        delta=1e-6,
        account=account(),
        random_state=0,
    )
    assert found[0] == ((1,),)


def test_what_many_hold_is_found_and_the_others_are_one_row():
    """196 of 943 people are students: the key passes, as its size is far above what is needed."""
    import pyarrow as pa

    job = np.repeat(["student", "other", "engineer", "writer"], [196, 105, 67, 45])
    job = np.concatenate([job, [f"job {i}" for i in range(943 - len(job))]])
    frame = pa.table({"who": np.arange(943), "job": job})
    found = []
    for seed in range(12):
        with use_noise(SeededNoise(seed)):
            table = UserTable(
                1.0, delta=1e-6, by="job", keys="popular", statistics={"n": "users"}
            ).fit(frame, users="who")
        found.append(("student",) in table.keys_)
        assert table.keys_[-1] == (None,)
        assert table.error_.smallest_key < 196
        total = sum(table.table_["n"].to_pylist())
        assert abs(total - 943) < sum(table.table_["n_bound"].to_pylist())
    assert np.mean(found) > 0.95
