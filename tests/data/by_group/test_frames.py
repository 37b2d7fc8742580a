"""Whichever way the records of a frame are counted, the cells are the same to the last bit."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.core.users import UserData
from quorate.data.by_group import background, filling, frames
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.person_cells import ToCells, ValueColumn, cells_of
from quorate.data.by_group.reading import Reading

LABELS = ("north", "south", "a label of seventeen")
READING = Reading(by=("town",), keys=(LABELS,), values=("price", "age"))
SUMS = ValueColumn(0, 0.0, 10.0), ValueColumn(1, 0.0, 90.0)


def under_users(rows, ids):
    return UserData.from_arrays(rows, users=ids)


def records(rows=3000, users=60, seed=0):
    rng = np.random.default_rng(seed)
    price = rng.normal(5.0, 4.0, rows)
    price[::17], price[::19], price[::23] = np.nan, 1e308, -np.inf
    town = rng.choice([*LABELS, "somewhere else"], rows).astype(object)
    town[::29] = None
    who = rng.integers(-5, users, rows)
    town[who == 3] = "somewhere else"
    who[who == 7] = 8
    return {"who": who, "town": town, "price": price, "age": rng.integers(0, 120, rows)}


def both_ways(monkeypatch, table, ids, reading=READING, medians=(), sums=SUMS):
    """Return the cells by a table of all of them, and one by one."""
    made = []
    for roomy in (2, 0):
        monkeypatch.setattr(frames, "_ROOMY", roomy)
        found = reading.read(table, under_users, ids)
        change = ToCells(found.numbers, len(found.keys), sums=sums, medians=medians)
        made.append(found.cells(change))
    return made


def same(one, other):
    return (
        np.array_equal(one.X, other.X)
        and np.array_equal(one.keys(), other.keys())
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(cells_of(one).owners, cells_of(other).owners)
        and np.array_equal(cells_of(one).groups, cells_of(other).groups)
    )


@pytest.mark.parametrize("many", [1, 10**9])
@pytest.mark.parametrize("frame", [pa.table, pl.DataFrame, pd.DataFrame])
def test_both_ways_give_the_same_cells(monkeypatch, frame, many):
    monkeypatch.setattr(background, "_MANY_ROWS", many)
    monkeypatch.setattr(filling, "_BLOCK", 256)
    held = records()
    table = frame(held | {"town": held["town"].tolist()})
    texts = np.array([f"person {who}" if who != 9 else None for who in held["who"]], object)
    for ids in (held["who"], held["who"].astype(np.int8), held["who"] + 2**40, texts.tolist()):
        filled, one_by_one = both_ways(monkeypatch, table, ids)
        assert same(filled, one_by_one)
        assert filled.n_users == len({str(who) for who in ids if who is not None})


def test_the_table_is_filled_where_it_is_short_and_no_median_is_asked_for(monkeypatch):
    seen = []
    fill = frames.fill
    monkeypatch.setattr(frames, "fill", lambda *a, **k: seen.append(1) or fill(*a, **k))
    held = records()
    table = pa.table(held)
    both_ways(monkeypatch, table, held["who"])
    assert seen == [1]
    both_ways(monkeypatch, table, held["who"], medians=(SUMS[0],))
    both_ways(monkeypatch, table, np.arange(3000))
    assert seen == [1]


def test_conditions_missing_values_and_columns_in_pieces(monkeypatch):
    held = records()
    pieces = pa.concat_tables([pa.table(records(rows=900, seed=seed)) for seed in (1, 2, 3)])
    ids = pieces.column("who").to_numpy()
    coded = pieces.set_column(1, "town", pieces.column("town").dictionary_encode())
    for table in (pieces, coded, coded.slice(700, 1500)):
        for missing in ("drop", 3.0):
            reading = Reading(
                by=("town",),
                keys=(LABELS,),
                values=("price", "age"),
                where=as_conditions({"age": (20, None)}),
                missing=missing,
            )
            own = ids[700:2200] if len(table) == 1500 else ids
            filled, one_by_one = both_ways(monkeypatch, table, own, reading)
            assert same(filled, one_by_one)
    counted = Reading()
    filled, one_by_one = both_ways(monkeypatch, pa.table(held), held["who"], counted, sums=())
    assert same(filled, one_by_one)


def test_a_giant_person_is_added_up_another_way(monkeypatch):
    """2^14 records of one cell do not fit beside their sum; nobody else's cells change."""
    held = records()
    giant = {
        "who": np.full(20_000, 8),
        "town": np.full(20_000, "north", object),
        "price": np.full(20_000, 1e308),
        "age": np.full(20_000, 40),
    }
    table = pa.concat_tables([pa.table(held), pa.table(giant)])
    ids = np.concatenate([held["who"], giant["who"]])
    filled, one_by_one = both_ways(monkeypatch, table, ids)
    assert same(filled, one_by_one)
    alone, _ = both_ways(monkeypatch, pa.table(held), held["who"])
    others = np.flatnonzero(filled.X[:, 1] < 20_000)
    mine = np.flatnonzero(filled.X[:, 1] >= 20_000)
    assert len(mine) == 1
    assert np.array_equal(filled.X[others], alone.X[np.delete(np.arange(len(alone.X)), mine)])


def test_whose_records_are_of_no_use_keep_their_place(monkeypatch):
    table = pa.table({"town": ["north", "nowhere", None], "price": [1.0, 2.0, 3.0], "age": [1] * 3})
    ids = np.array([5, 6, 7]).repeat(20)
    table = table.take(np.arange(3).repeat(20))
    filled, one_by_one = both_ways(monkeypatch, table, ids)
    assert same(filled, one_by_one)
    assert filled.record_counts().tolist() == [1, 0, 0]
