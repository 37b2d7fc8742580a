"""Places in batches follow from ids, and what one user holds moves nobody else's bits."""

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Grid
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.placed import Batch, PlacedSum, Places, slots_of
from quorate.core.sealed import opened
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError

PLACES = Places(width=4, lengths=(2, 4))
GRID = Grid(Ball(4.0, dimension=2), 2.0**-20)


def people(n_users=23, *, first=1, ids=None):
    """Return users of 0 to 5 records, the first with so many."""
    counts = np.arange(n_users) % 6
    counts[0] = first
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(int(count), 2)) for count in counts]
    if first:
        rows[0] = np.full((first, 2), 7.0)
    X = np.concatenate(rows)
    offsets = np.r_[0, np.cumsum(counts)]
    ids = np.arange(n_users) if ids is None else ids
    return UserData(X, X[:, 0], offsets=offsets, ids=ids)


def means(batch):
    """Return the mean record of each place."""
    counts = np.maximum(batch.present.sum(axis=1), 1)
    return (batch.rows * batch.present[:, :, None]).sum(axis=1) / counts[:, None]


def seats(users, ranks=None, places=PLACES):
    """Return the place and the length of the batch of each user, by key."""
    found = {}
    for numbers, batch in places.batches(users, ranks, 0):
        for place, number in enumerate(numbers.tolist()):
            if number >= 0:
                found[int(users.keys()[number])] = place, batch.rows.shape[1]
    return found


class TestPlaces:
    @pytest.mark.parametrize("ranked", [False, True])
    def test_everybody_has_one_place_and_all_records_up_to_the_last_length(self, ranked):
        users = people(first=9)
        ranks = np.sort(users.keys()) if ranked else None
        held = np.zeros(users.n_users, int)
        for numbers, batch in PLACES.batches(users, ranks, 5):
            assert batch.rows.shape[0] == 4
            assert batch.rows.shape[1] in PLACES.lengths
            assert np.all(batch.rows[~batch.present] == 0.0)
            own = numbers >= 0
            assert not batch.present[~own].any()
            for number, rows, present in zip(
                numbers[own], batch.rows[own], batch.present[own], strict=True
            ):
                held[number] += present.sum()
                mine = users.X[users.offsets[number] : users.offsets[number + 1]]
                mine = {tuple(row) for row in mine.astype(np.float32).tolist()}
                assert {tuple(row) for row in rows[present].tolist()} <= mine
        assert held.tolist() == np.minimum(users.record_counts(), 4).tolist()

    def test_who_comes_or_goes_moves_nobody(self):
        users = people()
        for gone in range(users.n_users):
            fewer = users.take(np.delete(np.arange(users.n_users), gone))
            key = int(users.keys()[gone])
            assert seats(fewer) == {k: v for k, v in seats(users).items() if k != key}

    def test_places_by_arrival_are_caught(self, monkeypatch):
        monkeypatch.setattr(Places, "of", lambda self, keys, _: np.arange(len(keys)) % self.width)
        users = people()
        fewer = users.take(np.arange(1, users.n_users))
        key = int(users.keys()[0])
        assert seats(fewer) != {k: v for k, v in seats(users).items() if k != key}

    @pytest.mark.parametrize("first", [0, 1, 3, 50])
    def test_how_many_records_somebody_holds_moves_nobody_else(self, first):
        one, other = people(), people(first=first)
        key, ranks = int(one.keys()[0]), np.sort(one.keys())
        for known in (None, ranks):
            before, after = seats(one, known), seats(other, known)
            del before[key], after[key]
            assert before == after

    def test_ranks_leave_no_place_empty(self):
        users = people(24)
        table = slots_of(PLACES.of(users.keys(), np.sort(users.keys())), 4)
        assert table.shape == (6, 4)
        assert table.min() == 0

    @pytest.mark.parametrize("lengths", [(), (4, 2), (2, 2), (0, 1)])
    def test_lengths_must_increase(self, lengths):
        with pytest.raises(ParameterError, match=r"Expected"):
            Places(width=2, lengths=lengths)


class TestSums:
    @pytest.mark.parametrize("width", [1, 4, 64])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_is_the_sum_of_clipped_vectors(self, width, relation):
        users, places = people(), Places(width=width, lengths=(2, 8))
        sealed = People(users, relation).placed_total(means, GRID, places, word=0)
        own = np.nan_to_num(np.float32(users.user_means()))
        expected = GRID.encode(own).sum(axis=0)
        assert np.abs(opened(sealed) - expected).max() <= users.n_users
        assert sealed.moves.l2_squared == GRID.l2_sensitivity_squared(relation)

    def test_nobody_adds_nothing(self):
        nobody = people().nobody()
        assert PlacedSum(means, GRID, PLACES, None)(nobody).tolist() == [[0, 0], [0, 0]]

    def test_an_empty_place_adds_nothing(self):
        """Whatever a program says of a place that nobody fills."""

        def loud(batch):
            return np.ones((len(batch.rows), 2), dtype=np.float32)

        users = people(5)
        halves = PlacedSum(loud, GRID, Places(width=64, lengths=(8,)), None)(users)
        assert GRID.join(halves).tolist() == (5 * GRID.encode(np.ones((1, 2)))[0]).tolist()

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_who_has_no_finite_vector_adds_nothing(self, value):
        users = people(5)

        def odd(batch):
            return np.full((len(batch.rows), 2), value, dtype=np.float32)

        assert not GRID.join(PlacedSum(odd, GRID, PLACES, None)(users)).any()

    def test_what_went_wrong_is_withheld(self):
        def failing(batch):
            raise ValueError(f"cannot handle {batch.rows.max()}")

        def flat(batch):
            return np.zeros(3)

        for program in (failing, flat):
            with pytest.raises(SchemaError, match="withheld") as caught:
                PlacedSum(program, GRID, PLACES, None)(people())
            assert caught.value.__context__ is None

    def test_a_kept_layout_says_the_same(self):
        users, places = people(), Places(width=4, lengths=(2, 8))
        summed = PlacedSum(means, GRID, places, None)
        assert summed(users).tolist() == summed(users).tolist()
        assert len(places._laid) == 1

    def test_a_batch_has_single_precision(self):
        for _, batch in PLACES.batches(people(), None, 0):
            assert isinstance(batch, Batch)
            assert batch.rows.dtype == batch.targets.dtype == np.float32


class TestWords:
    def test_a_word_chooses_among_records_and_moves_only_who_holds_too_many(self):
        users = people(first=40)
        users = UserData(
            users.X + np.arange(len(users.X))[:, None],
            users.y,
            offsets=users.offsets,
            ids=np.arange(users.n_users),
        )

        def held(word):
            return {
                int(number): rows[present].tolist()
                for numbers, batch in PLACES.batches(users, None, word)
                for number, rows, present in zip(numbers, batch.rows, batch.present, strict=True)
                if number >= 0
            }

        one, other = held(1), held(2)
        counts = users.record_counts()
        assert all(one[user] == other[user] for user in one if counts[user] <= 4)
        assert one[0] != other[0]
