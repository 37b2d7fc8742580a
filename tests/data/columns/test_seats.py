"""Seats are those of numbers, but for the ones that stay empty."""

import numpy as np
import pyarrow as pa
import pytest

from quorate.data.columns.ids import group
from quorate.data.columns.seats import Seats

EVERY_KIND = [
    np.array([7, 5, 7, 900, 6]),
    np.array([0, 3, 1, 0], dtype=np.uint8),
    np.array([-4, 10**15, 2, 2]),
    np.array([0, 300, 1, 0], dtype=">i8"),
    np.arange(12)[::-3],
    np.array([2**63 + 5, 2**63, 2**63 + 5], dtype=np.uint64),
    ["ann", None, "bob", "ann"],
    (np.array([1, 1, 2]), ["a", "b", "a"]),
    np.empty(0, dtype=np.int64),
]


@pytest.mark.parametrize("ids", EVERY_KIND)
def test_who_has_a_seat_is_numbered_as_a_group_is(ids):
    groups, seats = group(ids), Seats.of(ids)
    numbers, people = seats.numbered()
    assert numbers.tolist() == groups.codes.tolist()
    assert np.array_equal(people.keys, groups.keys)
    assert people.n_columns == groups.n_columns
    assert len(people.codes) == 0
    assert len(seats) == len(groups.codes)
    assert np.array_equal(Seats.of(groups).numbered()[0], numbers)


@pytest.mark.parametrize("ids", EVERY_KIND)
def test_seats_that_are_taken_are_those_of_everybody_in_order(ids):
    groups, seats = group(ids), Seats.of(ids)
    at = np.concatenate([seats.at(slice(0, 2)), seats.at(slice(2, len(seats)))])
    assert at.dtype == np.int64
    assert at.flags.c_contiguous
    assert np.all((at >= 0) & (at <= seats.size))
    assert np.array_equal(at == seats.size, groups.codes < 0)
    taken = np.zeros(seats.size, dtype=bool)
    taken[at[at < seats.size]] = True
    assert np.array_equal(seats.people(taken).keys, groups.keys)
    numbers = np.append(np.cumsum(taken) - 1, -1)
    assert numbers[at].tolist() == groups.codes.tolist()


def test_close_integers_are_seats_as_they_are():
    seats = Seats.of(np.array([104, 101, 104]))
    assert (seats.groups, seats.first, seats.size) == (None, 101, 4)
    assert Seats.of(np.array([104, 10**9, 104])).groups is not None


def test_an_id_column_that_can_be_read_once_is_read_once():
    class Once:
        def __init__(self):
            self.reads = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.reads += 1
            return pa.chunked_array([["b", "a", None]]).__arrow_c_stream__(requested_schema)

    ids = Once()
    assert Seats.of(ids).at(slice(None)).tolist() == [1, 0, 2]
    assert ids.reads == 1
