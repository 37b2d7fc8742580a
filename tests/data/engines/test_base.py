"""Crowds in parts: nothing but results comes out, and places are those of the keys."""

import traceback

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.data.engines.base import (
    Outcome,
    PartedCrowd,
    PartWork,
    Schema,
    part_numbers,
    results_of,
)
from quorate.data.engines.memory import MemoryCrowd
from quorate.exceptions import MixedArithmeticError, ParameterError, SchemaError


def people():
    return UserData.from_arrays(np.arange(40.0), users=np.arange(40) // 2)


class TestWhatIsWithheld:
    def test_an_exception_stays_where_it_was_raised(self):
        def quote(users):
            raise ValueError(f"cannot handle {users.X.max()}")

        with pytest.raises(SchemaError, match="withheld") as caught:
            MemoryCrowd(people(), n_parts=3).map(quote)
        assert "39" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None

    def test_what_quorate_says_on_purpose_is_said(self):
        with pytest.raises(ParameterError, match="user_indices twice"):
            MemoryCrowd(people(), n_parts=2).map(lambda part: part.take([0, 0]))

    def test_a_change_that_raises_is_withheld_too(self):
        def change(users):
            if users.n_users:
                raise ValueError(f"cannot handle {users.X.max()}")
            return users

        with pytest.raises(SchemaError, match="withheld"):
            _ = MemoryCrowd(people(), n_parts=2).derive(change).n_users


class TestArithmetic:
    def test_a_mixture_is_refused(self):
        same = [Outcome(1, fingerprint="a"), Outcome(2, fingerprint="a")]
        assert results_of(same) == [1, 2]
        with pytest.raises(MixedArithmeticError, match="one kind"):
            results_of([*same, Outcome(3, fingerprint="b")])


class TestParts:
    def test_parts_are_ranges_of_keys_in_their_order(self):
        keys = np.sort(np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64))
        for n_parts in (1, 3, 64):
            numbers = part_numbers(keys, n_parts)
            assert (np.diff(numbers) >= 0).all()
            assert numbers.min() == 0
            assert numbers.max() == n_parts - 1

    def test_what_is_public_survives_a_change(self):
        crowd = MemoryCrowd(people(), n_parts=4)
        wide = crowd.derive(_doubled)
        assert isinstance(wide, PartedCrowd)
        assert (wide.n_features, wide.unit, wide.n_parts) == (2, "user", 4)
        assert wide.n_users == crowd.n_users

    def test_stored_changes_equal_changes_made_each_time(self):
        crowd = MemoryCrowd(people(), n_parts=4)
        for keep in (True, False):
            twice = crowd.derive(_doubled, keep=keep).cap(1, random_state=0).take([3, 1])
            rows = np.concatenate(twice.map(lambda part: part.X))
            expected = _doubled(people()).cap(1, random_state=0).take_ranked(np.array([1, 3]))
            assert np.array_equal(rows, expected.X)

    def test_nobody_has_the_schema(self):
        nobody = Schema(n_features=3, has_target=True, unit="patient").nobody()
        assert (nobody.n_users, nobody.n_features, nobody.has_target) == (0, 3, True)

    def test_a_number_of_users_is_never_printed(self):
        assert "20" not in repr(MemoryCrowd(people(), n_parts=4))


class TestTasks:
    def test_changes_come_before_the_work(self):
        task = PartWork((_doubled,), lambda part, more: part.n_features + more)
        assert task(people(), ((), (5,))).value == 7

    def test_places_are_checked(self):
        crowd = MemoryCrowd(people(), n_parts=4)
        for wrong, match in (([20], "0 to n_users"), ([1, 1], "twice"), ([0.5], "integer")):
            with pytest.raises(ValueError, match=match):
                crowd.take(wrong)


def _doubled(users):
    return UserData(
        np.hstack([users.X, users.X]),
        offsets=users.offsets,
        ids=None if users.n_users else np.empty(0, np.int64),
    ).with_keys(users.keys())
