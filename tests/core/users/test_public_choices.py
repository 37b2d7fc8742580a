"""A public choice about a user follows from the id and the seed, whoever else is there."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate import UserData
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError, SchemaError
from recognised_records import ids_of_records, records_by_user, table_of


def replaced(X, users, who, n_records, seed):
    """Return a neighbouring table: user ``who`` holds other records, at other places."""
    rng = np.random.default_rng(seed)
    others = users != who
    rows = np.concatenate(
        [X[others], 1e6 + np.arange(n_records * X.shape[1]).reshape(n_records, -1)]
    )
    ids = np.concatenate([users[others], np.full(n_records, who)])
    # The others keep their order among themselves; the new records go anywhere between them.
    order = np.argsort(np.r_[np.sort(rng.random(others.sum())), rng.random(n_records)])
    return rows[order], ids[order]


def capped_row_by_row(data, records, *, random_state):
    """A twin of ``cap`` whose random numbers are drawn along the rows."""
    numbers = np.random.default_rng(random_state).random(data.n_records)
    kept = []
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        chosen = np.sort(np.argsort(numbers[start:stop])[:records])
        kept.append(data.X[start:stop][chosen].tolist())
    return kept


def others_move(choose, trials=20):
    """Tell whether choices about other users change when one user's records do."""
    rng = np.random.default_rng(7)
    for trial in range(trials):
        X, users = table_of(rng.integers(0, 8, 60).tolist() + list(range(8)))
        mine = choose(UserData.from_arrays(X, users=users))
        rows, ids = replaced(X, users, 3, 1 + trial, trial)
        theirs = choose(UserData.from_arrays(rows, users=ids))
        if any(mine[u] != theirs[u] for u in range(8) if u != 3):
            return True
    return False


class TestCap:
    @given(ids_of_records, st.integers(1, 8), st.integers(0, 2**32 - 1))
    @settings(max_examples=60)
    def test_every_user_keeps_at_most_so_many_of_their_own_records(self, ids, records, seed):
        X, users = table_of(ids)
        data = UserData.from_arrays(X, X[:, 0], users=users)
        capped = data.cap(records, random_state=seed)
        assert (capped.record_counts() == np.minimum(data.record_counts(), records)).all()
        for mine, kept in zip(records_by_user(data), records_by_user(capped), strict=True):
            assert not Counter(map(str, kept)) - Counter(map(str, mine))
        assert (capped.y == capped.X[:, 0]).all()

    def test_what_is_kept_of_the_others_does_not_depend_on_one_user(self):
        assert not others_move(lambda data: records_by_user(data.cap(2, random_state=5)))

    def test_numbers_drawn_row_by_row_would_be_caught(self):
        assert others_move(lambda data: capped_row_by_row(data, 2, random_state=5))

    def test_every_record_is_as_likely_to_stay(self):
        # 4000 users keep 2 of 5 records; a share of 0.4 has a standard error of 0.0077, so six of
        # them, with five places to look at, fail by chance with probability 1e-8.
        users = np.repeat(np.arange(4000), 5)
        data = UserData.from_arrays(np.tile(np.arange(5.0), 4000), users=users)
        shares = np.bincount(data.cap(2, random_state=1).X.ravel().astype(int)) / 4000
        assert np.abs(shares - 0.4).max() < 0.047

    def test_seeds_decide(self):
        X, users = table_of([0] * 30)
        data = UserData.from_arrays(X, users=users)
        first, again, other = (data.cap(5, random_state=s).X for s in (1, 1, 2))
        assert (first == again).all()
        assert (first != other).any()

    @pytest.mark.parametrize("records", [0, -1, 1.5, np.nan, True, None])
    def test_caps_that_make_no_sense_are_refused(self, records):
        with pytest.raises(ParameterError, match="records"):
            UserData.from_arrays([[1.0]], users=[1]).cap(records)

    def test_one_user_with_all_records(self):
        capped = UserData.from_arrays(np.ones((1000, 1)), users=np.zeros(1000, int)).cap(3)
        assert capped.record_counts().tolist() == [3]


class TestSplit:
    def test_whole_users_go_to_either_side(self):
        X, users = table_of(np.random.default_rng(0).integers(0, 50, 400).tolist())
        data = UserData.from_arrays(X, users=users)
        left, right = data.split(0.3, random_state=2)
        assert left.n_users == 15
        assert left.n_users + right.n_users == data.n_users
        everybody = records_by_user(data)
        assert all(mine in everybody for mine in records_by_user(left) + records_by_user(right))
        assert left.n_records + right.n_records == data.n_records

    @pytest.mark.parametrize("relation", Relation)
    def test_the_sides_of_the_others_do_not_depend_on_one_user_s_records(self, relation):
        def sides(data):
            left, _ = data.split(0.5, relation=relation, random_state=3)
            mine = records_by_user(left)
            return [records in mine for records in records_by_user(data)]

        assert not others_move(sides)

    def test_the_arrival_of_a_user_moves_nobody_under_add_remove(self):
        def moved(relation, newcomer):
            few = UserData.from_arrays(np.arange(20.0), users=np.arange(20))
            more = UserData.from_arrays(np.arange(21.0), users=np.r_[np.arange(20), newcomer])
            before, after = (
                d.split(0.5, relation=relation, random_state=1)[0] for d in (few, more)
            )
            return bool(set(before.X.ravel()) - set(after.X.ravel()))

        assert not any(moved(Relation.ADD_REMOVE, who) for who in range(100, 150))
        # The exact sizes of REPLACE would not do: somebody makes room for the newcomer.
        assert any(moved(Relation.REPLACE, who) for who in range(100, 150))

    def test_the_share_is_right_under_add_remove(self):
        data = UserData.from_arrays(np.zeros(10_000), users=np.arange(10_000))
        left, _ = data.split(0.3, relation=Relation.ADD_REMOVE, random_state=0)
        # Six standard errors of 46 users: a false alarm has chance 2e-9.
        assert abs(left.n_users - 3000) < 275

    @pytest.mark.parametrize("fraction", [0.0, 1.0, -1, 2, np.nan])
    def test_shares_that_make_no_sense_are_refused(self, fraction):
        with pytest.raises(ParameterError, match="fraction"):
            UserData.from_arrays([[1.0]], users=[1]).split(fraction)

    def test_something_else_than_a_relation_is_refused(self):
        with pytest.raises(ParameterError, match="Relation"):
            UserData.from_arrays([[1.0]], users=[1]).split(0.5, relation="replace")


class TestPublicDraws:
    def test_they_are_uniform_and_belong_to_the_id(self):
        data = UserData.from_arrays(np.zeros(10_000), users=np.arange(10_000))
        draws = data.public_draws(3)
        assert draws.min() >= 0
        assert draws.max() < 1
        # The mean of 10,000 uniform numbers has a standard error of 0.0029; six of them.
        assert abs(draws.mean() - 0.5) < 0.0174
        assert (data.take([17, 4]).public_draws(3) == draws[[17, 4]]).all()

    def test_with_ids_beside_offsets_nobody_moves_when_the_first_user_leaves(self):
        X, offsets, ids = np.arange(400.0), np.arange(0, 401, 4), np.arange(100)[::-1]
        everybody = UserData(X, offsets=offsets, ids=ids)
        others = UserData(X[4:], offsets=offsets[:-1], ids=ids[1:])
        assert (everybody.public_draws(3)[1:] == others.public_draws(3)).all()
        kept = everybody.cap(1, random_state=3).X[1:]
        assert (kept == others.cap(1, random_state=3).X).all()
        grouped = UserData.from_arrays(X, users=np.repeat(ids, 4))
        assert (grouped.public_draws(3) == everybody.public_draws(3)[::-1]).all()

    def test_without_ids_choices_do_not_follow_from_the_place_of_a_user(self):
        offsets = np.arange(101)
        one, another = (UserData(np.zeros(100), offsets=offsets) for _ in range(2))
        # Two equal draws among 100 pairs of 53-bit numbers: less than 1e-13.
        assert not np.any(one.public_draws(3) == another.public_draws(3))
        assert (one.public_draws(3) == one.take(range(100)).public_draws(3)).all()

    @pytest.mark.parametrize("ids", [[1], [1, 1], [1, None], [1, 2, 3]])
    def test_ids_beside_offsets_are_one_for_each_user(self, ids):
        with pytest.raises(SchemaError, match="different id"):
            UserData(np.zeros(2), offsets=[0, 1, 2], ids=ids)
