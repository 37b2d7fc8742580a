"""What a user adds to keys: at most one length, and a function of the user's own keys alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions import held_keys as asked
from quorate.core.questions.held_keys import held_keys, keys_by_hand
from quorate.core.sealed import opened
from quorate.core.users import UserData
from quorate.core.users.grouping import mix
from quorate.exceptions import SchemaError, SealedError

RADIUS = 1000
KEYS = st.lists(st.integers(0, 9), max_size=12)
USERS = st.dictionaries(st.integers(0, 50), KEYS, min_size=1, max_size=6)


@dataclass(frozen=True)
class Numbers:
    """The numbers of records are keys; their places depend on who else is there, if asked."""

    shift: int = 0

    def __call__(self, part):
        return part.user_index().astype(np.int64), part.X[:, 0].astype(np.int64) + self.shift

    def words(self, numbers):
        return mix((numbers - self.shift).astype(np.uint64))

    def name(self, number):
        return number - self.shift


def asked_of(users, *, seed=0, shift=0):
    rows = [(user, key) for user, held in users.items() for key in held]
    ids, keys = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    data = UserData.from_arrays(keys[:, None].astype(float), users=ids)
    people = People(data, Relation.ADD_REMOVE)
    return opened(held_keys(people, Numbers(shift), random_state=seed))


def added(users, *, most, standing=None, seed=0, shift=0):
    """Return what is added to each key, by name."""
    division = asked_of(users, seed=seed, shift=shift)
    names = division.named(np.ones(division.size, bool))
    playing, before = np.ones(len(names), bool), None
    if standing is not None:
        playing = np.array([name in standing for name in names], bool)
        before = np.array([standing.get(name, 0) for name in names], np.int64)
    totals = division.totals(playing, before, most=most, radius=RADIUS)
    return {name: total for name, total in zip(names, totals.tolist(), strict=True) if total}


def together(*parts):
    found = {}
    for part in parts:
        for key, value in part.items():
            found[key] = found.get(key, 0) + value
    return found


def check_what_each_adds(users, most, later):
    standing = {key: (key * 7) % 4 for key in range(9)} if later else None
    asks = {"most": most, "standing": standing}
    alone = [added({user: held}, **asks) for user, held in users.items() if held]
    for each in alone:
        assert sum(value**2 for value in each.values()) <= RADIUS**2
        assert len(each) <= most
    assert added(users, **asks) == together(*alone)


class TestWhatAUserAdds:
    @given(USERS, st.integers(1, 5), st.booleans())
    def test_it_depends_on_the_own_keys_alone_and_is_never_too_long(self, users, most, later):
        check_what_each_adds(users, most, later)

    def test_nearly_all_of_the_length_is_used(self):
        for held in (1, 2, 3, 7, 100):
            found = added({1: range(held)}, most=200)
            assert sum(value**2 for value in found.values()) > 0.97 * RADIUS**2

    def test_other_keys_may_move_the_numbers_of_keys_and_change_nothing(self):
        users = {1: range(20), 2: range(5, 25)}
        assert added(users, most=3) == added(users, most=3, shift=1000)

    def test_the_largest_totals_are_chosen_and_equal_ones_by_the_order_of_keys(self):
        found = added({1: [1, 2, 3, 4]}, most=2, standing={1: 5, 2: 9, 3: 5, 4: -(2**63)})
        assert set(found) == {1, 2}

    def test_the_first_choice_is_random_and_follows_the_seed(self):
        chosen = [tuple(added({1: range(50)}, most=3, seed=seed)) for seed in range(20)]
        assert chosen == [tuple(added({1: range(50)}, most=3, seed=seed)) for seed in range(20)]
        assert len(set(chosen)) == 20
        two = added({1: range(50), 2: range(50)}, most=3)
        assert len(two) > 3  # two people with the same keys take different ones

    def test_a_key_that_is_held_often_counts_once(self):
        assert added({1: [3] * 50 + [4]}, most=9) == added({1: [4, 3]}, most=9)


class TestTwins:
    def test_a_choice_by_the_places_of_keys_is_caught(self, monkeypatch):
        monkeypatch.setattr(
            Numbers, "words", lambda self, numbers: mix(np.arange(len(numbers), dtype=np.uint64))
        )
        with pytest.raises(AssertionError):
            check_what_each_adds({1: range(5), 2: range(3, 10)}, 2, False)

    def test_a_length_for_each_key_is_caught(self, monkeypatch):
        whole = lambda most, radius: np.full(most + 1, radius)  # noqa: E731
        monkeypatch.setattr(asked, "_shares", whole)
        with pytest.raises(AssertionError):
            check_what_each_adds({1: range(5), 2: range(3, 10)}, 2, False)


class TestSeal:
    def test_nothing_can_be_read(self):
        held = keys_by_hand([["a"], ["a", "b"]], Relation.REPLACE)
        assert repr(held) == "HeldKeys(several a user)"
        for look in (len, list, bool, hash):
            with pytest.raises(SealedError):
                look(held)

    def test_nobody_else_makes_one(self):
        with pytest.raises(SealedError):
            asked.HeldKeys(object(), None, Relation.REPLACE, None)

    @pytest.mark.parametrize("asked", ["__call__", "words"])
    def test_code_that_raises_tells_nothing(self, asked):
        class Loud(Numbers):
            pass

        def fails(self, given):
            raise ValueError("31337")

        setattr(Loud, asked, fails)
        data = UserData.from_arrays([[1.0]], users=[1])
        with pytest.raises(SchemaError) as caught:
            held_keys(People(data, Relation.REPLACE), Loud())
        assert "31337" not in str(caught.value)
        assert caught.value.__context__ is None

    def test_people_without_keys_are_fine(self):
        held = keys_by_hand([[], [None, 2.5]], Relation.REPLACE)
        assert opened(held).size == 0

    def test_what_is_a_key_does_not_follow_from_what_others_hold(self):
        """1.0 is no key, though it equals the key 1 of somebody else; True is the integer 1."""

        def total(*users):
            held = opened(keys_by_hand(users, Relation.ADD_REMOVE))
            playing = np.ones(held.size, bool)
            found = held.totals(playing, None, most=9, radius=RADIUS).tolist()
            return dict(zip(held.named(playing), found, strict=True))

        others = [[1.0, "a"], [np.float64(1.0)], [True], [["b"]], iter(["c"])]
        assert total(*others) == {"a": RADIUS, 1: RADIUS, "c": RADIUS}
        others[-1] = ["c"]
        assert total(*others, [1]) == {"a": RADIUS, 1: 2 * RADIUS, "c": RADIUS}

    def test_code_that_keeps_records_is_refused(self):
        class Keeping(Numbers):
            kept = []  # noqa: RUF012 - that is what is caught

            def __call__(self, part):
                self.kept.append(part)
                return super().__call__(part)

        data = UserData.from_arrays([[1.0]], users=[1])
        with pytest.raises(SealedError, match="stored something"):
            held_keys(People(data, Relation.REPLACE), Keeping())
